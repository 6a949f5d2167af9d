//! Taking secrets out of decisions, before anything comes of them.

use super::OutboxMessage;
use ports::Redactor;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Takes secrets out of a message.
pub(crate) fn message(message: &mut OutboxMessage, redactor: &Redactor) {
    if !redactor.is_empty() {
        redactor.value(&mut message.command);
    }
}

/// Takes secrets out of an event. Nearly none has one, so the only JSON that is made of it is that of its entry. Secrets are texts: a number is
/// never one.
pub(crate) fn event<E: Serialize + DeserializeOwned>(event: &mut E, redactor: &Redactor) {
    if !redactor.is_needed(event) {
        return;
    }
    let Ok(mut value) = serde_json::to_value(&*event) else { return };
    let mut places = Vec::new();
    find(&value, redactor, String::new(), &mut places);
    if !clean::<E>(&mut value, &places, redactor) {
        // Such as a password that is the name of a field. The log does not say which one.
        tracing::warn!("a secret of this host is too ordinary a word to be taken out everywhere: choose another one");
    }
    if let Ok(clean) = serde_json::from_value(value) {
        *event = clean;
    }
}

/// A text with a secret.
enum SecretPlace {
    /// The text at a JSON pointer.
    Text(String),
    /// A key of the object at a JSON pointer.
    Key(String, String),
}

/// Finds the texts with secrets in the value at `pointer`. The keys of an object come after all that is below them, so that a changed key moves no
/// place that comes later.
fn find(value: &Value, redactor: &Redactor, pointer: String, places: &mut Vec<SecretPlace>) {
    match value {
        Value::String(text) if redactor.is_needed(text) => places.push(SecretPlace::Text(pointer)),
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                find(item, redactor, format!("{pointer}/{position}"), places);
            }
        }
        Value::Object(object) => {
            for (key, item) in object {
                let step = key.replace('~', "~0").replace('/', "~1");
                find(item, redactor, format!("{pointer}/{step}"), places);
            }
            let keys = object.keys().filter(|key| redactor.is_needed(key.as_str()));
            places.extend(keys.map(|key| SecretPlace::Key(pointer.clone(), key.clone())));
        }
        _ => {}
    }
}

/// Takes the secrets out at these places, but not where the event could not be read without the word, which then is one of the program's own.
/// Whether nothing was left. Halves find such a word among many texts in few tries.
fn clean<E: DeserializeOwned>(value: &mut Value, places: &[SecretPlace], redactor: &Redactor) -> bool {
    let mut cleaned = value.clone();
    for place in places {
        take_out(&mut cleaned, place, redactor);
    }
    if E::deserialize(&cleaned).is_ok() {
        *value = cleaned;
        return true;
    }
    if places.len() < 2 {
        return false;
    }
    let (some, others) = places.split_at(places.len() / 2);
    let some_are_clean = clean::<E>(value, some, redactor);
    clean::<E>(value, others, redactor) && some_are_clean
}

fn take_out(value: &mut Value, place: &SecretPlace, redactor: &Redactor) {
    match place {
        SecretPlace::Text(pointer) => {
            if let Some(text) = value.pointer_mut(pointer) {
                redactor.value(text);
            }
        }
        SecretPlace::Key(pointer, key) => {
            if let Some(Value::Object(object)) = value.pointer_mut(pointer) {
                let rename = |own: String| if own == *key { redactor.text(&own).into_owned() } else { own };
                *object = std::mem::take(object).into_iter().map(|(own, item)| (rename(own), item)).collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::Secret;
    use serde::Deserialize;
    use serde_json::json;

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
    }

    #[test]
    fn s10_11_a_secret_that_is_a_word_of_the_program_keeps_no_other_secret_in_an_event() {
        // The name of the event, a part of the name of a field, and another secret.
        let redactor = Redactor::new(&["happened", "took_m", "hunter2"].map(Secret::new));
        let mut one = happened("hunter2 happened", "took_m");
        event(&mut one, &redactor);
        assert_eq!(one, happened("[redacted] [redacted]", "[redacted]"));
    }

    #[test]
    fn s10_11_keys_lose_secrets_where_they_are_no_names_of_fields() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Holds {
            fields: Value,
        }
        let redactor = Redactor::new(&["fields", "hunter2"].map(Secret::new));
        let holds =
            |key: &str, inner: &str, text: &str| Holds { fields: json!({ key: { inner: [text, 1] }, "b": null }) };
        let mut one = holds("a~/hunter2", "hunter2/~", "fields");
        event(&mut one, &redactor);
        assert_eq!(one, holds("a~/[redacted]", "[redacted]/~", "[redacted]"));
    }
}
