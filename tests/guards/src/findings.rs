//! The tests that docs/findings.md names are there.

use crate::{
    repository::{none, read},
    test_names::{has_test, is_name, other_suites, tests_by_crate},
};
use std::collections::BTreeSet;

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

/// The tests in JavaScript that the last cell of a row names in italics, and the files of suites that it names.
fn other_named(text: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let (mut tests, mut suites) = (BTreeSet::new(), BTreeSet::new());
    for row in text.lines().filter(|line| line.starts_with("| ")) {
        let Some((_, cell)) = row.trim_end().strip_suffix('|').and_then(|row| row.rsplit_once(" |")) else { continue };
        tests.extend(cell.split('*').skip(1).step_by(2));
        let code = cell.split('`').skip(1).step_by(2);
        suites.extend(code.filter(|code| [".js", ".mjs", ".py"].iter().any(|end| code.ends_with(end))));
    }
    (tests, suites)
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
    let known = tests_by_crate();
    let is_there = |of: &str, test: &str| {
        known.iter().any(|(home, names)| crate_of(home).iter().any(|name| name == of) && names.contains(test))
    };
    let missing = tests.filter(|(of, test)| !is_there(of, test));
    let mut faults: Vec<String> = missing.map(|(of, test)| format!("{of}: {test}")).collect();
    let python = ["account.py", "consistent.py", "consistent_test.py", "preflight_test.py"];
    let python = python.map(|file| read(format!("infra/lint/{file}"))).concat();
    let is_there = |name: &&&str| python.contains(&format!("def {name}("));
    let lost = lints.iter().filter(|name| !is_there(name));
    faults.extend(lost.map(|name| format!("lint {name}")));
    let (tests, files) = other_named(&findings);
    assert!(tests.len() > 8 && files.len() > 3, "the table was not read: {} and {}", tests.len(), files.len());
    let suites = other_suites();
    let lost = tests.into_iter().filter(|name| !suites.iter().any(|(_, suite)| has_test(suite, name)));
    faults.extend(lost.map(str::to_owned));
    let lost = files.into_iter().filter(|file| !suites.iter().any(|(path, _)| path.ends_with(file)));
    faults.extend(lost.map(str::to_owned));
    none(faults, "docs/findings.md names tests that are not there");
}

#[test]
fn the_last_cell_of_a_row_names_tests_in_other_languages() {
    let text = "| a *word* | `a.py` | `page.test.mjs`, *one waits* and *one leaves* |\n| b *word* | `b.py` | |\n";
    assert_eq!(other_named(text), (BTreeSet::from(["one waits", "one leaves"]), BTreeSet::from(["page.test.mjs"])));
}
