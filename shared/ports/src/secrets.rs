//! Secrets: where keys come from, and keeping them out of everything that is read.

use crate::Result;
use async_trait::async_trait;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::{borrow::Cow, fmt, sync::Arc};

/// What stands where a secret would.
pub const REDACTED: &str = "[redacted]";

/// A key. It shows itself to nobody: `Debug`, `Display` and `Serialize` give `[redacted]`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// A secret with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

/// Where a secret is: what manifests say instead of the secret. It is none itself and may be shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretRef {
    /// In a variable of the environment.
    Env(String),
    /// In a file.
    File(String),
    /// Under this name in the host's secrets.
    Named(String),
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the environment variable {name}"),
            Self::File(path) => write!(f, "the file {path}"),
            Self::Named(name) => write!(f, "the secret {name}"),
        }
    }
}

/// The secrets of the host.
///
/// Guarantees: what is returned is never empty and has no white space around it; an error names the reference and never
/// the secret. An adapter may refuse a reference ([`crate::Error::Invalid`]): who writes a flow does not choose what of the
/// host it reads.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The secret; none when there is none.
    async fn get(&self, reference: &SecretRef) -> Result<Option<Secret>>;
}

/// Takes known secrets out of whatever is about to be written where people or programs read it: logs, histories, events,
/// artifacts, errors. Cheap to clone.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret that contains another one goes as a whole.
    needles: Arc<[String]>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.needles.len())
    }
}

impl Redactor {
    /// Shorter ones are no secrets ("none", "x") and would tear holes into ordinary words.
    const SHORTEST: usize = 6;
    /// A line of a longer secret, such as a certificate, is one by itself from this length on.
    const LINE: usize = 20;

    /// For these secrets, as they are, and as they look inside of JSON texts.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut needles = Vec::new();
        for secret in secrets {
            let text = secret.expose().trim();
            if text.len() < Self::SHORTEST {
                continue;
            }
            let lines = text.lines().map(str::trim).filter(|line| line.len() >= Self::LINE && *line != text);
            needles.extend(lines.map(str::to_owned));
            let quoted = Value::String(text.into()).to_string();
            needles.push(quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned());
            needles.push(text.to_owned());
        }
        needles.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        needles.dedup();
        Self { needles: needles.into() }
    }

    /// Whether there is nothing to take out.
    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// A text without secrets; borrowed when there was none in it.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        for needle in self.needles.iter() {
            if clean.contains(needle.as_str()) {
                clean = Cow::Owned(clean.replace(needle.as_str(), REDACTED));
            }
        }
        clean
    }

    /// Takes secrets out of every text of a value, keys included.
    pub fn value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(object) => {
                if object.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
                    let entries = std::mem::take(object);
                    object.extend(entries.into_iter().map(|(key, item)| (self.text(&key).into_owned(), item)));
                }
                object.values_mut().for_each(|item| self.value(item));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// An error without secrets, in its message, its hint and its details.
    #[must_use]
    pub fn error(&self, mut error: domain::Error) -> domain::Error {
        if self.is_empty() {
            return error;
        }
        error.message = self.text(&error.message).into_owned();
        error.hint = error.hint.map(|hint| self.text(&hint).into_owned());
        let mut details = Value::Object(std::mem::take(&mut *error.details));
        self.value(&mut details);
        if let Value::Object(details) = details {
            *error.details = details;
        }
        error
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn s10_11_a_secret_shows_itself_to_nobody() {
        let secret = Secret::new("hunter2-hunter2");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "[redacted] [redacted] Some([redacted])");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"[redacted]\"");
        assert_eq!(serde_json::from_str::<Secret>("\"abc\"").unwrap().expose(), "abc");
    }

    #[test]
    fn s10_11_known_secrets_are_taken_out_of_texts_values_and_errors() {
        let secrets = ["pass\"word", "pass\"word-longer", "x", "  spaced-secret\n"].map(Secret::new);
        let redactor = Redactor::new(&secrets);
        assert_eq!(redactor.text("pass\"word-longer! x pass\"word"), "[redacted]! x [redacted]");
        assert!(matches!(redactor.text("nothing"), Cow::Borrowed("nothing")));
        let mut value = json!({"a": ["pass\"word", 1, {"spaced-secret": "{\"k\":\"pass\\\"word\"}"}]});
        redactor.value(&mut value);
        assert_eq!(value, json!({"a": ["[redacted]", 1, {"[redacted]": "{\"k\":\"[redacted]\"}"}]}));
        let error = domain::Error::invalid("spaced-secret", "no spaced-secret").hint("use spaced-secret");
        let text = serde_json::to_string(&redactor.error(error)).unwrap();
        assert!(!text.contains("spaced-secret") && text.contains("use [redacted]"), "{text}");
        assert!(Redactor::new(&[Secret::new("short")]).is_empty());
    }

    #[test]
    fn s10_11_a_line_of_a_certificate_is_a_secret_too() {
        let secret = Secret::new("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASC\n-----END KEY-----\n");
        let redactor = Redactor::new([&secret]);
        assert_eq!(redactor.text("got MIIEvQIBADANBgkqhkiG9w0BAQEF"), "got [redacted]");
        assert_eq!(redactor.text(&json!(secret.expose()).to_string()), "\"[redacted]\\n\"");
    }
}
