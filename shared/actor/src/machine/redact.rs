//! Taking secrets out of decisions, before anything comes of them.

use super::OutboxMessage;
use ports::Redactor;
use serde::{Serialize, de::DeserializeOwned};
use std::borrow::Cow;

/// Takes secrets out of a message.
pub(crate) fn message(message: &mut OutboxMessage, redactor: &Redactor) {
    if !redactor.is_empty() {
        redactor.value(&mut message.command);
    }
}

/// Takes secrets out of an event.
pub(crate) fn event<E: Serialize + DeserializeOwned>(event: &mut E, redactor: &Redactor) {
    if redactor.is_empty() {
        return;
    }
    // Nearly no event has a secret, and a search of its JSON text is the cheapest test. Secrets are texts: a number is never one.
    let Ok(text) = serde_json::to_string(event) else { return };
    if matches!(redactor.text(&text), Cow::Borrowed(_)) {
        return;
    }
    let Ok(mut value) = serde_json::from_str(&text) else { return };
    redactor.value(&mut value);
    match serde_json::from_value(value) {
        Ok(clean) => *event = clean,
        // Only a secret that is a word of our own does this, such as a password that is the name of a field. Which one is not
        // said.
        Err(_) => tracing::warn!("a secret of this host is too ordinary a word to be taken out: choose another one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::Secret;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "event", rename_all = "snake_case")]
    enum Event {
        Happened { said: String, nested: String, took_ms: u64 },
    }

    fn happened(said: &str, nested: &str) -> Event {
        Event::Happened { said: said.into(), nested: nested.into(), took_ms: 123_456 }
    }

    #[test]
    fn s10_11_texts_lose_secrets_and_numbers_stay() {
        let redactor = Redactor::new(&["hunter2-\"hunter3\"", "123456"].map(Secret::new));
        let mut one =
            happened("it is hunter2-\"hunter3\"!", "{\"key\":\"hunter2-\\\"hunter3\\\"\",\"pin\":\"123456\"}");
        event(&mut one, &redactor);
        assert_eq!(one, happened("it is [redacted]!", "{\"key\":\"[redacted]\",\"pin\":\"[redacted]\"}"));
        // A secret that is a word of ours would make it unreadable: it stays as it is.
        let mut other = happened("happened", "");
        event(&mut other, &Redactor::new([&Secret::new("happened")]));
        assert_eq!(other, happened("happened", ""));
    }
}
