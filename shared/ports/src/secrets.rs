//! Secrets: where keys come from, and keeping them out of everything that is read.

use crate::Result;
use async_trait::async_trait;
use domain::WorkspaceId;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

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

/// Who asks for a secret, and the address that it will be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipient<'a> {
    /// The workspace of the flow.
    pub workspace: WorkspaceId,
    /// Where the secret goes.
    pub address: Address<'a>,
}

/// An address that a secret is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address<'a> {
    /// That of a well-known provider of models, by the name of its adapter, such as `openai`.
    Provider(&'a str),
    /// The URL that a flow names.
    Url(&'a str),
}

/// The secrets of the host.
///
/// Guarantees: what is returned is never empty and has no white space around it; an error names the reference and never
/// the secret. An adapter may refuse a reference ([`crate::Error::Invalid`]): the author of a flow does not choose which
/// secrets of the host it reads, nor where they go.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The secret, for this recipient; none when there is none.
    async fn get(&self, reference: &SecretRef, to: Recipient<'_>) -> Result<Option<Secret>>;
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
    /// How often a secret may have been put into a JSON text that was put into a JSON text.
    const QUOTED: usize = 3;

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
            // As it is, inside of a JSON text, and inside of a JSON text that is a text of another one: the arguments of a call in
            // a log entry that is itself a message.
            let mut needle = text.to_owned();
            for _ in 0..=Self::QUOTED {
                let quoted = Value::String(needle.clone()).to_string();
                needles.push(needle);
                needle = quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned();
            }
        }
        needles.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        needles.dedup();
        Self { needles: needles.into() }
    }

    /// The end of `text` that may be the beginning of a secret, in bytes: what comes in pieces has to be held back from there.
    pub fn unsure(&self, text: &str) -> usize {
        let longest = |needle: &String| {
            let most = needle.len().saturating_sub(1).min(text.len());
            let begins =
                |length: &usize| text.as_bytes().ends_with(needle.as_bytes().get(..*length).unwrap_or_default());
            (1..=most).rev().find(begins).unwrap_or_default()
        };
        let mut unsure = self.needles.iter().map(longest).max().unwrap_or_default();
        // Never inside of a character.
        while !text.is_char_boundary(text.len() - unsure) {
            unsure += 1;
        }
        unsure
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

/// Every secret that a process has come to know: from its configuration, its environment, its files, and by looking one up
/// for a flow. Whoever writes something down takes these out of it first. Cheap to clone; clones share what is learned.
#[derive(Clone, Default)]
pub struct KnownSecrets(Arc<RwLock<Known>>);

#[derive(Default)]
struct Known {
    secrets: Vec<Secret>,
    redactor: Redactor,
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KnownSecrets({:?})", self.redactor())
    }
}

impl KnownSecrets {
    /// Remembers these, for as long as the process lives: a key that was replaced may still be in somebody's text.
    pub fn learn<'a>(&self, secrets: impl IntoIterator<Item = &'a Secret>) {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<Secret> = secrets.into_iter().filter(|secret| !known.secrets.contains(secret)).cloned().collect();
        drop(known);
        if new.is_empty() {
            return;
        }
        let known = &mut *self.0.write().unwrap_or_else(PoisonError::into_inner);
        for secret in new {
            if !known.secrets.contains(&secret) {
                known.secrets.push(secret);
            }
        }
        known.redactor = Redactor::new(&known.secrets);
    }

    /// What takes out all that are known by now.
    pub fn redactor(&self) -> Redactor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).redactor.clone()
    }
}

/// Secrets that are remembered by [`KnownSecrets`] the moment that they are looked up, before anybody can write one down.
pub struct Noted {
    inner: Arc<dyn Secrets>,
    known: KnownSecrets,
}

impl Noted {
    /// `inner`, with whatever it gives noted in `known`.
    pub fn new(inner: Arc<dyn Secrets>, known: KnownSecrets) -> Self {
        Self { inner, known }
    }
}

#[async_trait]
impl Secrets for Noted {
    async fn get(&self, reference: &SecretRef, to: Recipient<'_>) -> Result<Option<Secret>> {
        let found = self.inner.get(reference, to).await?;
        self.known.learn(&found);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use futures::FutureExt;
    use serde_json::json;

    #[test]
    fn s10_11_what_comes_in_pieces_is_held_back_where_a_secret_may_begin() {
        let redactor = Redactor::new(&["hunter2-ä-hunter2", "2-hu-other"].map(Secret::new));
        for (text, unsure) in
            [("", 0), ("say hun", 3), ("hunter2-", 8), ("hunter2-ä", 10), ("hunter2-x", 0), ("a2-", 2)]
        {
            assert_eq!(redactor.unsure(text), unsure, "{text}");
        }
        assert_eq!(Redactor::default().unsure("anything"), 0);
    }

    #[test]
    fn s10_11_a_secret_inside_of_json_inside_of_json_is_found() {
        let redactor = Redactor::new([&Secret::new("pl4nted-\"s3cret\"\\value")]);
        let mut text = json!({ "key": "pl4nted-\"s3cret\"\\value" }).to_string();
        for _ in 0..3 {
            assert!(!redactor.text(&text).contains("s3cret"), "{text}");
            text = json!({ "args": text }).to_string();
        }
    }

    #[test]
    fn s10_11_what_is_looked_up_is_known_from_then_on() {
        struct Host;
        #[async_trait]
        impl Secrets for Host {
            async fn get(&self, _: &SecretRef, _: Recipient<'_>) -> Result<Option<Secret>> {
                Ok(Some(Secret::new("looked-up-secret")))
            }
        }
        let known = KnownSecrets::default();
        known.learn(&[Secret::new("first-secret"), Secret::new("first-secret")]);
        let secrets = Noted::new(Arc::new(Host), known.clone());
        assert_eq!(known.redactor().text("looked-up-secret"), "looked-up-secret");
        let to = Recipient {
            workspace: WorkspaceId::from_key("secrets", "tests"),
            address: Address::Url("https://a.example"),
        };
        secrets.get(&SecretRef::Named("x".into()), to).now_or_never().unwrap().unwrap();
        assert_eq!(known.redactor().text("looked-up-secret first-secret"), "[redacted] [redacted]");
        assert!(!format!("{known:?}").contains("secret"), "{known:?}");
    }

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
