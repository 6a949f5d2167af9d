//! Redacts keys in the texts of providers.

use ports::REDACTED;
pub use ports::Secret;
use regex::Regex;
use std::sync::LazyLock;

/// Upstream messages are cut to this many characters: some servers answer with whole pages.
const MAX_CHARS: usize = 600;

/// Takes keys out of texts that come from elsewhere: a provider may repeat the key that it refuses.
#[derive(Clone, Default)]
pub(crate) struct Redactor(ports::Redactor);

/// Matches texts that look like a key of any owner: a proxy may answer with a key of its own.
static LOOKS_LIKE_A_KEY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)\bsk-[a-z0-9_*-]{6,}|\bbedrock-api-key-[a-z0-9+/=]{6,}|\bAIza[a-z0-9_-]{20,}|\bbearer\s+[^\s"',]{6,}|\bkey=[^\s&"']{6,}"#).ok()
});

impl Redactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let secrets: Vec<Secret> = secrets.into_iter().map(Secret::new).collect();
        Self(ports::Redactor::new(&secrets))
    }

    /// The text without keys, on one line, cut to a length that people read.
    pub(crate) fn clean(&self, text: &str) -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut clean = self.0.text(&line).into_owned();
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
    fn known_keys_and_texts_that_look_like_one_are_redacted() {
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
