//! The tests of each paragraph of spec 002: the names of tests carry the numbers, and docs/paragraphs.md is the table.
//!
//! The table is made from the names: `BLESS=1 scripts/test paragraphs` writes it anew. A paragraph without a test fails.

use crate::{
    repository::{root, rust_files},
    test_names::test_names,
};
use std::collections::BTreeMap;

const TABLE: &str = "docs/paragraphs.md";

/// Every paragraph of the specification that demands something, with its heading.
const PARAGRAPHS: &[(&str, &str)] = &[
    ("1", "Architectural responsibilities"),
    ("2.1", "Task"),
    ("2.2", "Node"),
    ("2.3", "Edge"),
    ("3.1", "Router"),
    ("3.2", "Stage lifecycle"),
    ("3.3", "Node role behaviour"),
    ("3.4", "Status propagation"),
    ("3.5", "Failure handling"),
    ("4", "Context and memory semantics"),
    ("5", "Tools"),
    ("6", "Observability requirements"),
    ("7.1", "Stage errors"),
    ("7.2", "Task errors"),
    ("7.3", "Exit errors"),
    ("8", "Engine initialisation requirements"),
    ("9", "Completion criteria"),
    ("10.1", "Artifact and output storage"),
    ("10.2", "Engine metadata and versioning"),
    ("10.3", "Evaluation and regression"),
    ("10.4", "Performance profiling and metrics"),
    ("10.5", "Security and policy"),
    ("10.6", "Provider and adapter management"),
    ("10.7", "Debugger and inspector mode"),
    ("10.8", "Multi-task execution model"),
    ("10.9", "CLI framework"),
    ("10.10", "Persistent memory and artifact storage"),
    ("10.11", "Secrets and provider credentials"),
    ("10.12", "Multi-task execution layer"),
    ("10.13", "Packaging and deployment templates"),
];

#[test]
fn every_paragraph_of_the_engine_has_tests_and_the_table_names_them() {
    let tests = tests_by_paragraph();
    let without: Vec<&str> =
        PARAGRAPHS.iter().filter(|(number, _)| !tests.contains_key(*number)).map(|(number, _)| *number).collect();
    assert!(without.is_empty(), "no test is named after these paragraphs of spec 002: {without:?}");
    let unknown: Vec<&String> =
        tests.keys().filter(|number| PARAGRAPHS.iter().all(|(known, _)| known != number)).collect();
    assert!(unknown.is_empty(), "tests are named after paragraphs that demand nothing or are not there: {unknown:?}");
    let table = render(&tests);
    let path = root().join(TABLE);
    if std::env::var_os("BLESS").is_some() {
        assert!(std::fs::write(&path, &table).is_ok(), "{TABLE} cannot be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == table,
        "{TABLE} differs from the names of the tests; BLESS=1 scripts/test paragraphs writes it anew"
    );
}

/// The tests, with the crate they are in, by the paragraph that their names begin with.
fn tests_by_paragraph() -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in ["shared", "functions", "tests"] {
        for (path, text) in rust_files(folder) {
            let home = path.split('/').take(2).collect::<Vec<_>>().join("/");
            for name in test_names(&text) {
                if let Some(paragraph) = paragraph_of(name) {
                    found.entry(paragraph).or_default().push(format!("{home}: {name}"));
                }
            }
        }
    }
    found.values_mut().for_each(|tests| {
        tests.sort();
        tests.dedup();
    });
    found
}

/// `s3_3_a_decision…` is about 3.3.
fn paragraph_of(name: &str) -> Option<String> {
    let mut parts = name.strip_prefix('s')?.split('_');
    let chapter: u8 = parts.next()?.parse().ok()?;
    let section: Option<u8> = parts.next()?.parse().ok();
    Some(section.map_or_else(|| chapter.to_string(), |section| format!("{chapter}.{section}")))
}

fn render(tests: &BTreeMap<String, Vec<String>>) -> String {
    let mut table = String::from(
        "# The paragraphs of spec 002 and their tests\n\nWritten from the names of the tests; a guard keeps it complete. \
         One of them is run by its name: `scripts/test <name>`.\n\n| § | heading | tests |\n|---|---|---|\n",
    );
    for (number, heading) in PARAGRAPHS {
        let named = tests.get(*number).map_or(&[][..], Vec::as_slice);
        let listed: Vec<String> = named.iter().map(|test| format!("`{test}`")).collect();
        table.push_str(&format!("| {number} | {heading} | {} |\n", listed.join("<br>")));
    }
    table
}
