//! Keys, and keeping them out of everything that people read.

use regex::Regex;
use serde::Deserialize;
use std::{
    fmt,
    sync::{Arc, LazyLock},
};

/// What stands where a key would.
const REDACTED: &str = "[redacted]";
/// Upstream messages are cut to this many characters: some servers answer with whole pages.
const MAX_CHARS: usize = 600;

/// A key. It shows itself to nobody: `Debug` and `Display` print `[redacted]`, and it cannot be serialised.
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

/// Takes keys out of texts that come from elsewhere: a provider may repeat the key that it refuses.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    /// Longest first, so that a key that contains another one goes as a whole.
    secrets: Arc<[String]>,
}

/// What looks like a key, whoever it belongs to: a proxy may answer with a key of its own.
static LOOKS_LIKE_A_KEY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)\bsk-[a-z0-9_*-]{6,}|\bAIza[a-z0-9_-]{20,}|\bbearer\s+[^\s"',]{6,}|\bkey=[^\s&"']{6,}"#).ok()
});

impl Redactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        // Shorter ones are no secrets ("none", "x") and would tear holes into ordinary words.
        let mut secrets: Vec<_> = secrets.into_iter().filter(|secret| secret.len() >= 6).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets: secrets.into() }
    }

    /// The text without keys, on one line, cut to a length that people read.
    pub(crate) fn clean(&self, text: &str) -> String {
        let mut clean = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for secret in self.secrets.iter() {
            clean = clean.replace(secret, REDACTED);
        }
        if let Some(keys) = LOOKS_LIKE_A_KEY.as_ref() {
            clean = keys.replace_all(&clean, REDACTED).into_owned();
        }
        match clean.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!("{}…", &clean[..end]),
            None => clean,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_itself_to_nobody() {
        let secret = Secret::new("hunter2-hunter2");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "[redacted] [redacted] Some([redacted])");
        assert_eq!(secret.expose(), "hunter2-hunter2");
    }

    #[test]
    fn known_keys_and_what_looks_like_one_are_taken_out() {
        let redactor = Redactor::new(["local-password".into(), "local-password-longer".into(), "x".into()]);
        let check = |text: &str, expected: &str| assert_eq!(redactor.clean(text), expected);
        check("wrong key local-password-longer!", "wrong key [redacted]!");
        check("x marks local-password", "x marks [redacted]");
        check("Incorrect API key provided: sk-proj-ab**********yz.", "Incorrect API key provided: [redacted].");
        check("GET http://h/?key=abcdefghij&alt=sse\n failed", "GET http://h/?[redacted]&alt=sse failed");
        check("Authorization: Bearer abc.def.ghi", "Authorization: [redacted]");
        check("nothing to hide: ask-me-anything", "nothing to hide: ask-me-anything");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let clean = Redactor::default().clean(&"ä".repeat(5000));
        assert_eq!(clean.chars().count(), MAX_CHARS + 1);
    }
}
