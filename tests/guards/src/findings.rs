//! The tests that docs/findings.md names are there.

use crate::repository::{none, read, rust_files};
use std::collections::{BTreeMap, BTreeSet};

/// The crates and tests that code in backticks names, as `crate: test`; and the functions behind the word *lint*.
fn named(text: &str) -> (BTreeSet<(&str, &str)>, BTreeSet<&str>) {
    let (mut tests, mut lints, mut before) = (BTreeSet::new(), BTreeSet::new(), "");
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            match part.split_once(": ") {
                Some((of, test)) if is_name(test) && of.chars().all(|c| c.is_ascii_lowercase() || "/-".contains(c)) => {
                    tests.insert((of, test));
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

/// The names of the crate that a file belongs to: with its folder, and without.
fn crate_of(path: &str) -> [String; 2] {
    let mut parts = path.split('/');
    let (layer, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    // `sandbox` is the crate in `shared`.
    let name = if (layer, folder) == ("functions", "sandbox") { "machine" } else { folder };
    [format!("{layer}/{folder}"), name.to_owned()]
}

#[test]
fn every_test_that_holds_a_finding_is_there() {
    let findings = read("docs/findings.md");
    let (tests, lints) = named(&findings);
    assert!(tests.len() > 250 && lints.len() > 8, "the table was not read: {} and {}", tests.len(), lints.len());
    // Other code with a colon.
    let tests = tests.into_iter().filter(|(of, _)| !["crate", "scenario"].contains(of));
    let mut missing = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (of, test) in tests {
        missing.entry(of).or_default().insert(test);
    }
    for (path, text) in ["shared", "functions", "tests"].into_iter().flat_map(rust_files) {
        for of in crate_of(&path) {
            let Some(left) = missing.get_mut(of.as_str()) else { continue };
            // A name may be the argument of a macro.
            words(&text).for_each(|word| _ = left.remove(word));
        }
    }
    let python = ["account.py", "consistent.py", "consistent_test.py", "preflight_test.py"];
    let python = python.map(|file| read(format!("infra/lint/{file}"))).concat();
    let is_there = |name: &&&str| python.contains(&format!("def {name}("));
    let lost = lints.iter().filter(|name| !is_there(name));
    let mut faults: Vec<String> = lost.map(|name| format!("lint {name}")).collect();
    for (of, tests) in missing {
        faults.extend(tests.iter().map(|test| format!("{of}: {test}")));
    }
    none(faults, "docs/findings.md names tests that are not there");
}
