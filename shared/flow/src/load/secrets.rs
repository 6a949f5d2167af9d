//! Values of secrets where only references may be (spec 002 §10.11).

use super::tree::{SourcePosition, SourceTree};
use crate::manifest::SecretReference;
use serde_json::Value;

/// The places in the `config` of a list's entries that hold a secret in plain text. Files are looked at as they are written,
/// in spite of other faults: nothing must keep a secret from being found.
pub(super) fn in_configs(file: &SourceTree, list: &str) -> Vec<SourcePosition> {
    let mut found = Vec::new();
    if let Some(Value::Array(items)) = file.get(list).map(SourceTree::to_value) {
        for (index, item) in items.iter().enumerate() {
            if let Some(config) = item.get("config") {
                plain_secrets(&format!("/{list}/{index}"), "config", config, &mut found);
            }
        }
    }
    found.iter().map(|pointer| file.place_of(pointer)).collect()
}

/// Whether a reference looks like one, and not like a key that was put in its place.
pub(super) fn is_reference(reference: &SecretReference) -> bool {
    // How keys of well-known providers begin.
    const KEYS: &[&str] =
        &["sk-", "sk_", "pk_", "ghp_", "gho_", "github_pat_", "xox", "AKIA", "AIza", "eyJ", "-----BEGIN", "Bearer "];
    let (SecretReference::Env(text) | SecretReference::File(text) | SecretReference::Secret(text)) = reference;
    let plausible = match reference {
        SecretReference::Env(name) => {
            name.len() <= 128
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        }
        SecretReference::File(path) => path.len() <= 1024 && !path.contains(char::is_control),
        SecretReference::Secret(name) => {
            name.len() <= 256 && !name.contains(|letter: char| letter.is_control() || letter.is_whitespace())
        }
    };
    !text.is_empty() && plausible && !KEYS.iter().any(|key| text.starts_with(key))
}

/// The pointers of texts under keys that name secrets.
fn plain_secrets(pointer: &str, key: &str, value: &Value, found: &mut Vec<String>) {
    const NAMES: &[&str] =
        &["secret", "token", "password", "passwd", "api_key", "apikey", "authorization", "credential", "private_key"];
    let pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
    let lower = key.to_ascii_lowercase().replace('-', "_");
    match value {
        Value::String(_) if NAMES.iter().any(|name| lower.ends_with(name)) => found.push(pointer),
        // A reference, where a secret may be.
        Value::Object(map) if NAMES.iter().any(|name| lower.ends_with(name)) && map.len() == 1 => {
            let is_one = map.iter().any(|(way, to)| {
                let text = to.as_str().unwrap_or_default().to_string();
                match way.as_str() {
                    "env" => is_reference(&SecretReference::Env(text)),
                    "file" => is_reference(&SecretReference::File(text)),
                    "secret" => is_reference(&SecretReference::Secret(text)),
                    _ => false,
                }
            });
            if !is_one {
                found.push(pointer);
            }
        }
        Value::Object(map) => map.iter().for_each(|(key, value)| plain_secrets(&pointer, key, value, found)),
        Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(index, value)| plain_secrets(&pointer, &index.to_string(), value, found));
        }
        _ => {}
    }
}
