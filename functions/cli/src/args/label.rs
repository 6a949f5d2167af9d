//! Labels of chats and tasks.

use serde_json::{Map, Value};

/// The key and the value of a label.
pub(crate) type Label = (String, String);

/// A label, from `KEY=VALUE`.
pub(crate) fn label(text: &str) -> Result<Label, String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let pair = pair.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "write KEY=VALUE, such as customer=c-17".into())
}

/// Labels as the API takes them.
pub(crate) fn labels_body(labels: &[Label]) -> Value {
    labels.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_label_is_a_key_and_all_behind_the_first_equals_sign() {
        let read = |text: &str| label(text).map(|label| labels_body(&[label]));
        assert_eq!(read("customer=c=17"), Ok(json!({ "customer": "c=17" })));
        assert_eq!(read("customer="), Ok(json!({ "customer": "" })));
        assert!(read("customer").is_err() && read("=c-17").is_err());
    }
}
