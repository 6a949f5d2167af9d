//! A type says whose it is: a bare participle or `Place` names one type at most. No function is called `told`.

use crate::repository::{none, rust_files};
use std::collections::BTreeMap;

/// Words that fit almost anything, so that a reader of one has to look up which.
const BARE: [&str; 20] = [
    "Asked",
    "Began",
    "Brought",
    "Described",
    "Found",
    "Kept",
    "Known",
    "Looked",
    "Lost",
    "Manner",
    "Needs",
    "Place",
    "Ran",
    "Spent",
    "Swept",
    "Taken",
    "Told",
    "Waits",
    "Wanted",
    "Way",
];

/// The types that a file declares at its top level.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| {
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        let is_keyword = |word: &&str| ["struct", "enum", "trait", "type"].contains(word);
        words.find(|word| !["pub", "crate", "super", "in"].contains(word)).filter(is_keyword)?;
        words.next()
    })
}

#[test]
fn a_bare_word_names_one_type_at_most() {
    let mut found = BTreeMap::<&str, Vec<String>>::new();
    let mut seen = 0;
    for (path, text) in ["shared", "functions"].into_iter().flat_map(rust_files) {
        if !path.contains("/src/") || path.contains("/tests") {
            continue;
        }
        for name in declared(&text) {
            seen += 1;
            if let Some(bare) = BARE.iter().find(|bare| **bare == name) {
                found.entry(*bare).or_default().push(path.clone());
            }
        }
    }
    assert!(seen > 1_000, "only {seen} types were found");
    let often = found.into_iter().filter(|(_, paths)| paths.len() > 1);
    none(
        often.map(|(name, paths)| format!("{name}: {}", paths.join(", "))).collect(),
        "Say in the name what was known, found or told: `KnownAgent`, and not `Known`",
    );
}

/// The name says that something was said, and neither the thing nor its form.
#[test]
fn no_function_is_called_told() {
    let mut found = Vec::new();
    let mut seen = 0;
    for (path, text) in ["shared", "functions"].into_iter().flat_map(rust_files) {
        if !path.contains("/src/") || path.contains("/tests") {
            continue;
        }
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        seen += product.matches("fn ").count();
        let told = |line: &&str| line.contains("fn told(") || line.contains("fn told<");
        found.extend(product.lines().filter(told).map(|line| format!("{path}: {}", line.trim())));
    }
    assert!(seen > 5_000, "only {seen} functions were found");
    none(found, "Say what it makes or does: `error_json`, `print_change`, `explain`");
}

#[test]
fn types_are_found_with_any_visibility() {
    let text = "struct Kept;\npub enum Told {\npub(crate) type Place = u8;\n    struct Known;\nfn Found() {}";
    assert_eq!(declared(text).collect::<Vec<_>>(), ["Kept", "Told", "Place"]);
}
