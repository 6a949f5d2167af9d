//! The metadata of a thread: the labels of its chat or task, beside its ids.

use domain::{Error, LabelChanges, Labels};
use serde_json::{Map, Value};

/// The names in the metadata of a thread that are no labels. Clients send them back with the labels that they change.
const IDS: [&str; 4] = ["graph_id", "assistant_id", "chat_id", "task_id"];

/// The labels that the metadata of a thread or a run set, and those that they remove. A label is a text.
///
/// # Errors
/// `INVALID_ARGUMENT` about `metadata`.
pub fn labels(metadata: &Map<String, Value>) -> Result<LabelChanges, Error> {
    let all = metadata.iter().filter(|(name, _)| !IDS.contains(&name.as_str()));
    let changes = all.map(|(name, value)| match value {
        Value::Null => Ok((name.clone(), None)),
        Value::String(text) => Ok((name.clone(), Some(text.clone()))),
        _ => {
            let shown: String = name.chars().take(64).collect();
            Err(Error::invalid("metadata", format!("{shown} of metadata is no text")).hint("send its value as a text"))
        }
    });
    changes.collect()
}

/// The metadata of a thread with these labels. A label may stand in the place of `usual`, and none in that of its `ids`.
pub fn metadata(usual: Value, labels: &Labels, ids: Value) -> Value {
    let labels = labels.pairs().map(|(key, value)| (key.to_owned(), Value::from(value))).collect();
    let parts = [usual, Value::Object(labels), ids].into_iter();
    let fields = parts.filter_map(|part| if let Value::Object(fields) = part { Some(fields) } else { None });
    Value::Object(fields.flatten().collect())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn read(metadata: Value) -> Result<LabelChanges, Error> {
        labels(metadata.as_object().unwrap())
    }

    #[test]
    fn texts_are_labels_but_for_the_ids() {
        let changes = LabelChanges::from([("user".to_owned(), Some("ann".to_owned())), ("ticket".to_owned(), None)]);
        let sent = json!({ "user": "ann", "ticket": null, "graph_id": "assistant", "chat_id": "x" });
        assert_eq!(read(sent), Ok(changes));
        for odd in [json!({ "a": 1 }), json!({ "a": ["x"] }), json!({ "a": false })] {
            assert_eq!(read(odd).unwrap_err().details["field"], "metadata");
        }
    }

    #[test]
    fn metadata_that_a_client_sends_back_change_nothing() {
        let pairs = [("chat_id".to_owned(), "other".to_owned()), ("title".to_owned(), "mine".to_owned())];
        let labels = Labels::checked("labels", pairs).unwrap();
        let shown = metadata(json!({ "title": "usual" }), &labels, json!({ "chat_id": "id" }));
        assert_eq!(shown, json!({ "title": "mine", "chat_id": "id" }));
        assert_eq!(labels.changed("metadata", read(shown).unwrap()), Ok(labels));
    }
}
