//! Public types of the domain are named by words of the glossary.

use crate::repository::{read, rust_files};
use std::collections::BTreeSet;

/// Parts of names that are no terms of their own: forms of another term, and words of the language.
const FORMS: [&str; 21] = [
    "announced",
    "answer",
    "assembled",
    "end",
    "hasher",
    "id",
    "item",
    "kind",
    "name",
    "no",
    "of",
    "on",
    "op",
    "outcome",
    "queued",
    "reason",
    "ref",
    "runs",
    "sha256",
    "spec",
    "use",
];

/// The words in the first column of the glossary.
fn terms() -> BTreeSet<String> {
    let glossary = read("docs/glossary.md");
    let rows = glossary.lines().filter_map(|line| line.strip_prefix("| ")).skip(1);
    rows.flat_map(|row| words(row.split('|').next().unwrap_or_default())).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// `ChatStatus` as `chat` and `status`.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for c in name.chars() {
        match parts.last_mut() {
            Some(part) if !c.is_uppercase() => part.push(c),
            _ => parts.push(c.to_lowercase().collect()),
        }
    }
    parts
}

/// The public types that this text declares, ids among them.
fn types(text: &str) -> Vec<&str> {
    let declared = text.lines().filter_map(|line| {
        let rest = ["pub struct ", "pub enum ", "pub trait "].iter().find_map(|begin| line.strip_prefix(begin))?;
        rest.split(|c: char| !c.is_alphanumeric()).next()
    });
    let ids = text.split_once("ids! {").map_or("", |(_, rest)| rest).lines();
    let ids = ids.filter_map(|line| line.trim().split_once(" = \"").map(|(name, _)| name));
    declared.chain(ids).filter(|name| name.starts_with(char::is_uppercase)).collect()
}

#[test]
fn public_types_of_the_domain_are_in_the_glossary() {
    let terms = terms();
    assert!(terms.contains("turn") && terms.len() > 60, "the glossary was not read: {terms:?}");
    let is_known = |part: &String| terms.contains(part) || FORMS.contains(&part.as_str());
    let mut strange = Vec::new();
    let mut seen = 0;
    for (path, text) in rust_files("shared/domain/src") {
        for name in types(&text) {
            seen += 1;
            let unknown: Vec<_> = parts(name).into_iter().filter(|part| !is_known(part)).collect();
            if !unknown.is_empty() {
                strange.push(format!("{path}: {name} ({})", unknown.join(", ")));
            }
        }
    }
    assert!(seen > 60, "only {seen} types were found");
    assert!(
        strange.is_empty(),
        "use a word of docs/glossary.md, or add the word with its meaning there:\n{}",
        strange.join("\n")
    );
}

#[test]
fn a_name_is_split_into_its_words() {
    assert_eq!(parts("ChatStatus"), ["chat", "status"]);
    assert_eq!(types("pub struct FilePath(String);\nids! {\n    TaskId = \"task\";\n}"), ["FilePath", "TaskId"]);
}
