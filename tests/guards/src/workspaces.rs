//! The tests of each paragraph of specs 000, 001, 003 and 004: a table of each. They are written by hand, since these tests have names of their own. The
//! sentences that specs 003 and 000 §4 were made from are a table, too.

use crate::{
    repository::{none, root},
    test_names::tests_by_crate,
};
use std::collections::BTreeSet;

/// The words of a row without a test.
const NOT_BUILT: &str = "not built yet";

#[test]
fn each_paragraph_of_the_agentic_engine_names_tests_that_exist() {
    check("docs/spec/000-agentic-engine.md", "docs/paragraphs-000.md", 100);
}

#[test]
fn each_paragraph_of_workspaces_names_tests_that_exist() {
    check("docs/spec/001-workspaces.md", "docs/paragraphs-001.md", 80);
}

#[test]
fn each_paragraph_of_the_planner_chat_names_tests_that_exist() {
    check("docs/spec/003-planner-chat.md", "docs/paragraphs-003.md", 80);
}

#[test]
fn each_paragraph_of_the_agent_hub_names_tests_that_exist() {
    check("docs/spec/004-agent-hub.md", "docs/paragraphs-004.md", 70);
}

#[test]
fn each_sentence_of_the_first_design_has_paragraphs_whose_tests_exist() {
    let text = read("docs/sentences.md");
    let (planner, scenarios) = text.split_once("## The scenarios").unwrap_or_default();
    let mut faults = Vec::new();
    for (table, text, least) in [("docs/paragraphs-003.md", planner, 90), ("docs/paragraphs-000.md", scenarios, 15)] {
        // `check` holds that the tests which a row names are there.
        let tested: BTreeSet<String> =
            rows(&read(table)).into_iter().filter(|(_, tests)| !tests.is_empty()).map(|(number, _)| number).collect();
        let sentences = sentences(text);
        assert!(sentences.len() >= least, "the sentences beside {table} are not found: {}", sentences.len());
        for (sentence, paragraphs) in sentences {
            let without = paragraphs.iter().filter(|paragraph| !tested.contains(*paragraph));
            faults.extend(without.map(|paragraph| format!("{sentence:?}: §{paragraph} is not in {table} with a test")));
        }
    }
    none(faults, "docs/sentences.md names tested paragraphs for each sentence");
}

/// The rows of a table of sentences, each with its paragraphs.
fn sentences(text: &str) -> Vec<(&str, Vec<String>)> {
    let cells = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let rows = cells.filter(|(sentence, _)| *sentence != "sentence");
    rows.map(|(sentence, paragraphs)| (sentence, paragraphs.split(", ").map(str::to_owned).collect())).collect()
}

/// Holds a table of tests against its specification, which has at least so many paragraphs.
fn check(spec: &str, table: &str, least: usize) {
    let paragraphs = paragraphs(&read(spec));
    assert!(paragraphs.len() >= least, "the paragraphs of {spec} are not found: {}", paragraphs.len());
    let rows = rows(&read(table));
    let mut faults = Vec::new();
    if rows.iter().map(|(number, _)| number).ne(paragraphs.iter().map(|(number, _)| number)) {
        let (listed, there): (BTreeSet<&String>, BTreeSet<&String>) =
            (rows.iter().map(|(number, _)| number).collect(), paragraphs.iter().map(|(number, _)| number).collect());
        faults.extend(there.difference(&listed).map(|number| format!("§{number} has no row")));
        faults.extend(listed.difference(&there).map(|number| format!("§{number} is no paragraph")));
        if faults.is_empty() {
            faults.push("the rows are not in the order of the paragraphs, or one is there twice".into());
        }
    }
    let known = tests_by_crate();
    for (number, tests) in &rows {
        if tests.is_empty() && !paragraphs.iter().any(|(of, built)| of == number && !built) {
            faults.push(format!("§{number} names no test"));
        }
        for test in tests {
            let (home, name) = test.split_once(": ").unwrap_or(("", test));
            if !known.get(home).is_some_and(|names| names.contains(name)) {
                faults.push(format!("§{number}: there is no test {test}"));
            }
        }
    }
    none(faults, &format!("{table} names the tests of each paragraph of {spec}"));
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_default()
}

/// The numbered paragraphs in their order: `3A (2)`, and whether anything of it is built.
fn paragraphs(spec: &str) -> Vec<(String, bool)> {
    let (mut found, mut section): (Vec<(String, bool)>, String) = (Vec::new(), String::new());
    for line in spec.lines() {
        if let Some(heading) = line.strip_prefix("## §").or_else(|| line.strip_prefix("### §")) {
            section = heading.split(' ').next().unwrap_or_default().to_owned();
            continue;
        }
        let number = line.split_once(". ").filter(|(number, _)| number.parse::<u8>().is_ok());
        if let Some((number, text)) = number {
            let is_built = !text.contains("**Not built yet.**") || text.contains("**Built");
            found.push((format!("{section} ({number})"), is_built));
        }
    }
    found
}

/// The rows of the table: a paragraph, and its tests.
fn rows(table: &str) -> Vec<(String, Vec<String>)> {
    let cells = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let rows = cells.filter(|(number, _)| *number != "§");
    rows.map(|(number, tests)| {
        let named = tests.split("<br>").map(|test| test.trim_matches('`').to_owned());
        (number.to_owned(), named.filter(|test| !test.is_empty() && test != NOT_BUILT).collect())
    })
    .collect()
}

#[test]
fn paragraphs_are_numbered_by_their_section() {
    let spec = "# 001\n## §1 One\n1. a\n2. b\n   **Differs.** c\n### §1A More\n1. d. **Not built yet.**\n";
    let expected = [("1 (1)", true), ("1 (2)", true), ("1A (1)", false)];
    assert_eq!(paragraphs(spec), expected.map(|(number, built)| (number.to_owned(), built)));
    let table = "| § | tests |\n|---|---|\n| 1 (1) | `a: b`<br>`a: c` |\n| 2 (1) | not built yet |\n";
    let expected = [("1 (1)".to_owned(), vec!["a: b".to_owned(), "a: c".to_owned()]), ("2 (1)".to_owned(), vec![])];
    assert_eq!(rows(table), expected);
}
