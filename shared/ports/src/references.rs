//! Secrets by reference within texts, such as `Bearer ${secret:stripe}`: declarations of workspaces hold the references, and the secrets come into their
//! places where a request is made.

use crate::{Recipient, SecretRef, Secrets};
use std::collections::BTreeMap;

/// A piece of a declared text.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Secret(SecretRef),
}

/// The pieces of a text: `${secret:NAME}` and `${env:NAME}` are secrets by reference, and so is `${NAME}`, as most hosts write it.
fn pieces(value: &str) -> Vec<Piece> {
    let (mut found, mut rest) = (Vec::new(), value);
    while let Some((before, (name, after))) =
        rest.split_once("${").and_then(|(before, inside)| Some((before, inside.split_once('}')?)))
    {
        if !before.is_empty() {
            found.push(Piece::Text(before.to_owned()));
        }
        let reference = match name.split_once(':') {
            Some(("secret", name)) => SecretRef::Named(name.to_owned()),
            Some(("env", name)) => SecretRef::Env(name.to_owned()),
            _ => SecretRef::Env(name.to_owned()),
        };
        found.push(Piece::Secret(reference));
        rest = after;
    }
    if !rest.is_empty() {
        found.push(Piece::Text(rest.to_owned()));
    }
    found
}

/// A text with its secrets in the places of the references. `name` is that of the text, for the reason.
///
/// # Errors
/// The reason, for people: a secret is not there, or is not granted to this recipient.
pub async fn filled(secrets: &dyn Secrets, to: Recipient<'_>, name: &str, value: &str) -> Result<String, String> {
    let mut text = String::new();
    for piece in pieces(value) {
        match piece {
            Piece::Text(plain) => text.push_str(&plain),
            Piece::Secret(reference) => match secrets.get(&reference, to).await {
                Ok(Some(secret)) => text.push_str(secret.expose()),
                Ok(None) => return Err(format!("{reference}, which {name} refers to, is not there")),
                Err(error) => return Err(error.to_string()),
            },
        }
    }
    Ok(text)
}

/// The same for texts by their names, such as headers.
///
/// # Errors
/// Those of [`filled`].
pub async fn all_filled(
    secrets: &dyn Secrets,
    to: Recipient<'_>,
    values: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let mut all = BTreeMap::new();
    for (name, value) in values {
        all.insert(name.clone(), filled(secrets, to, name, value).await?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_references_within_a_value() {
        let named = |name: &str| Piece::Secret(SecretRef::Named(name.into()));
        let env = |name: &str| Piece::Secret(SecretRef::Env(name.into()));
        assert_eq!(pieces("Bearer ${secret:a}"), [Piece::Text("Bearer ".into()), named("a")]);
        assert_eq!(pieces("${env:A}${B}-${"), [env("A"), env("B"), Piece::Text("-${".into())]);
        assert_eq!(pieces("plain"), [Piece::Text("plain".into())]);
    }
}
