//! The tests that docs/findings.md names are there.

use crate::repository::{none, read, rust_files};
use std::collections::BTreeSet;

/// The last words of code in backticks that name a test, as `crate: test`; and the functions behind the word *lint*.
fn named(text: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let (mut tests, mut lints, mut before) = (BTreeSet::new(), BTreeSet::new(), "");
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            match part.split_once(": ") {
                Some((of, test)) if is_name(test) && of.chars().all(|c| c.is_ascii_lowercase() || "/-".contains(c)) => {
                    tests.insert(test);
                }
                _ if before.trim_end().ends_with("lint") && is_name(part) => _ = lints.insert(part),
                _ => {}
            }
        }
        before = part;
    }
    (tests, lints)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The words of a text that can be names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
}

#[test]
fn every_test_that_holds_a_finding_is_there() {
    let findings = read("docs/findings.md");
    let (tests, lints) = named(&findings);
    assert!(tests.len() > 250 && lints.len() > 8, "the table was not read: {} and {}", tests.len(), lints.len());
    let mut missing = tests;
    for folder in ["shared", "functions", "tests"] {
        // A name may be the argument of a macro.
        for (_, text) in rust_files(folder) {
            words(&text).for_each(|word| _ = missing.remove(word));
        }
    }
    let python = ["consistent.py", "consistent_test.py", "preflight_test.py"];
    let python = python.map(|file| read(format!("infra/lint/{file}"))).concat();
    let is_there = |name: &&&str| python.contains(&format!("def {name}("));
    let mut faults: Vec<String> = missing.into_iter().map(str::to_owned).collect();
    faults.extend(lints.iter().filter(|name| !is_there(name)).map(|name| format!("lint {name}")));
    none(faults, "docs/findings.md names tests that are not there");
}
