//! The `config` of a plugin: a few keys, each of its type. Other keys are refused.

use domain::Error;
use ports::SecretRef;
use serde_json::{Map, Value};

/// The `config` of one plugin. An absent key and `null` are the same.
///
/// # Errors
/// Every method fails with `INVALID_ARGUMENT` on the field `config`, with the plugin and the key in words, for a value of another type.
#[derive(Clone, Copy)]
pub(crate) struct Config<'a> {
    /// The plugin's id.
    pub of: &'a str,
    pub values: &'a Map<String, Value>,
}

impl Config<'_> {
    /// Refuses keys that the plugin does not have.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for the first key that is not `known` and does not begin with `x-`; the hint lists the known ones.
    pub fn only(&self, known: &[&str]) -> Result<(), Error> {
        let wrong = self.values.keys().find(|key| !known.contains(&key.as_str()) && !key.starts_with("x-"));
        match wrong {
            None => Ok(()),
            Some(key) => Err(self.fault(key, "it has no such key").hint(format!("its keys are: {}", known.join(", ")))),
        }
    }

    /// A text, if there is one.
    ///
    /// # Errors
    /// Those of [`Config`].
    pub fn text(&self, key: &str) -> Result<Option<String>, Error> {
        match self.values.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.fault(key, "it is a text")),
        }
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// Those of [`Config`], also when there is none.
    pub fn wanted(&self, key: &str) -> Result<String, Error> {
        self.text(key)?.ok_or_else(|| self.fault(key, "it is needed"))
    }

    /// A whole number from 0 on, if there is one.
    ///
    /// # Errors
    /// Those of [`Config`].
    pub fn number(&self, key: &str) -> Result<Option<u64>, Error> {
        match self.values.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| self.fault(key, "it is a number")),
        }
    }

    /// Whether a key is true; an absent one is not.
    ///
    /// # Errors
    /// Those of [`Config`].
    pub fn flag(&self, key: &str) -> Result<bool, Error> {
        match self.values.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| self.fault(key, "it is true or false")),
        }
    }

    /// A reference to a secret, if there is one.
    ///
    /// # Errors
    /// Those of [`Config`], also for a secret in the clear.
    pub fn secret(&self, key: &str) -> Result<Option<SecretRef>, Error> {
        match self.values.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => self.reference(key, value).map(Some),
        }
    }

    /// References to secrets by names, which come in lower case.
    ///
    /// # Errors
    /// Those of [`Config`], also for a secret in the clear.
    pub fn secrets(&self, key: &str) -> Result<Vec<(String, SecretRef)>, Error> {
        match self.values.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Object(fields)) => {
                fields.iter().map(|(name, value)| Ok((name.to_lowercase(), self.reference(key, value)?))).collect()
            }
            Some(_) => Err(self.fault(key, "it holds one reference per name")),
        }
    }

    fn reference(&self, key: &str, value: &Value) -> Result<SecretRef, Error> {
        let one = value.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.iter().next());
        match one.and_then(|(way, name)| Some((way.as_str(), name.as_str()?.to_owned()))) {
            Some(("env", name)) => Ok(SecretRef::Env(name)),
            Some(("file", path)) => Ok(SecretRef::File(path)),
            Some(("secret", name)) => Ok(SecretRef::Named(name)),
            _ => Err(self
                .fault(key, "a manifest holds no secrets")
                .hint("say where it is: {env: NAME}, {file: path} or {secret: name}")),
        }
    }

    fn fault(&self, key: &str, why: &str) -> Error {
        let shown: String = key.chars().take(64).collect();
        Error::invalid("config", format!("plugin {}: {shown}: {why}", self.of))
    }
}

/// Decodes `%41` to `A`; any other text stays as it is.
pub(crate) fn percent_decoded(text: &str) -> String {
    String::from_utf8_lossy(&domain::text::percent_decoded(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn s10_11_secrets_come_by_reference_only() {
        let values = json!({ "secret": "plain-text", "url": 5, "headers": { "X-Key": { "secret": "k" } } });
        let config = Config { of: "hook", values: values.as_object().expect("an object") };
        let refused = config.secret("secret").expect_err("a plain text");
        assert!(!refused.to_string().contains("plain-text"), "{refused}");
        assert!(config.wanted("url").is_err() && config.wanted("endpoint").is_err());
        assert_eq!(config.secrets("headers"), Ok(vec![("x-key".into(), SecretRef::Named("k".into()))]));
        assert!(config.only(&["url", "secret"]).is_err());
        assert!(config.only(&["url", "secret", "headers"]).is_ok());
    }

    #[test]
    fn codes_of_headers() {
        for (text, decoded) in [("Bearer%20abc", "Bearer abc"), ("100%", "100%"), ("%zz", "%zz"), ("", "")] {
            assert_eq!(percent_decoded(text), decoded);
        }
    }
}
