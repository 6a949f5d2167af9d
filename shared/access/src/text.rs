//! Texts of policies: parsed, and checked against the schema.

use cedar_policy::{Policy, PolicyId, PolicySet, Schema, ValidationMode, Validator};
use miette::Diagnostic;
use std::{str::FromStr, sync::LazyLock};

/// The longest text of one file of policies, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;
/// How deep brackets may nest in a text.
const DEEPEST: usize = 32;

/// A text of policies, and the name of its file.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The file, such as `/system/policies/team.cedar`.
    pub name: &'a str,
    /// Its text, in the language of Cedar.
    pub text: &'a str,
}

/// Why a text is no set of policies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}, line {line}, column {column}: {message}")]
pub struct SyntaxError {
    /// The file.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The fault.
    pub message: String,
}

#[expect(clippy::expect_used, reason = "a text of ours, which a test reads")]
pub(crate) static SCHEMA: LazyLock<Schema> =
    LazyLock::new(|| Schema::from_str(include_str!("schema.cedarschema")).expect("a schema"));

/// The policies of a text, in their order, each with its name. The built-in text fits the schema, as a test checks: so a process that meets no other text
/// does not read the schema.
pub(crate) fn policies(source: Source<'_>, is_builtin: bool) -> Result<Vec<(String, Policy)>, SyntaxError> {
    let at = |offset: usize, message: String| error(source, offset, message);
    if source.text.len() > MAX_TEXT {
        return Err(at(0, format!("the text is {} bytes long; {MAX_TEXT} fit", source.text.len())));
    }
    if let Some(offset) = too_deep(source.text) {
        return Err(at(offset, format!("brackets nest deeper than {DEEPEST}")));
    }
    let set = PolicySet::from_str(source.text).map_err(|errors| match errors.iter().next() {
        Some(first) => at(offset_of(first), explain(first)),
        None => at(0, errors.to_string()),
    })?;
    if set.templates().next().is_some() {
        return Err(at(source.text.find('?').unwrap_or(0), "templates with slots are not taken".into()));
    }
    if !is_builtin {
        let checked = Validator::new(SCHEMA.clone()).validate(&set, ValidationMode::Strict);
        if let Some(first) = checked.validation_errors().next() {
            return Err(at(offset_of(first), explain(first)));
        }
    }
    // Cedar names them `policy0`, `policy1` and so on, as they come.
    let mut found = Vec::with_capacity(set.num_of_policies());
    for number in 0..set.num_of_policies() {
        let Some(policy) = set.policy(&PolicyId::new(format!("policy{number}"))) else { continue };
        if let Some(asked) = policy.annotation("decision").filter(|decision| *decision != "ask") {
            let offset = source.text.find(&format!("{asked:?}")).unwrap_or(0);
            return Err(at(offset, format!("{asked:?} is no decision: it is \"ask\", or the annotation is left out")));
        }
        let id = policy.annotation("id").map_or_else(|| format!("policy{number}"), str::to_owned);
        if found.iter().any(|(known, _)| *known == id) {
            let offset = source.text.rfind(&format!("{id:?}")).unwrap_or(0);
            return Err(at(offset, format!("two policies have the id {id:?}")));
        }
        found.push((id, policy.clone()));
    }
    if found.len() == set.num_of_policies() { Ok(found) } else { Err(at(0, "its policies could not be named".into())) }
}

fn explain(fault: &dyn Diagnostic) -> String {
    let detail = fault.labels().and_then(|mut labels| labels.next()?.label().map(str::to_owned));
    let help = fault.help().map(|help| help.to_string());
    [Some(fault.to_string()), detail, help].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn offset_of(fault: &dyn Diagnostic) -> usize {
    fault.labels().and_then(|mut labels| labels.next().map(|label| label.offset())).unwrap_or(0)
}

fn error(source: Source<'_>, offset: usize, message: String) -> SyntaxError {
    let before = &source.text[..source.text.floor_char_boundary(offset)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    SyntaxError { name: source.name.to_owned(), line, column, message }
}

/// Where brackets nest too deep: the parser recurses into them.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, character) in text.char_indices() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Some(offset);
        }
    }
    None
}
