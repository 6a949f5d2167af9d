//! The tests that are declared in the sources, by their names.

use crate::repository::{files, rust_files};
use std::collections::{BTreeMap, BTreeSet};

/// Whether a text can be the name of a test in Rust.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The names of the functions that an attribute makes tests of, and of those that a macro of the same file makes of its arguments.
pub(crate) fn test_names(text: &str) -> Vec<&str> {
    let (mut names, mut is_test) = (Vec::new(), false);
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        }
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let Some(rest) = line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn ")) else { continue };
        if std::mem::take(&mut is_test) {
            names.extend(rest.split(['(', '<']).next().filter(|name| is_name(name)));
        }
    }
    names.extend(made_by_macros(text));
    names
}

/// The arguments of each macro whose definition has a test named after an argument.
fn made_by_macros(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for definition in text.split("\nmacro_rules! ").skip(1) {
        let name = definition.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
        let body = definition.split("\n}").next().unwrap_or_default();
        let tests = body.split("#[test]").skip(1).chain(body.split("#[tokio::test").skip(1));
        if !tests.filter_map(|test| test.split_once("fn ")).any(|(_, function)| function.starts_with('$')) {
            continue;
        }
        for call in text.split(&format!("\n{name}!(")).skip(1) {
            let arguments = call.split(')').next().unwrap_or_default();
            names.extend(arguments.split(',').map(str::trim).filter(|argument| is_name(argument)));
        }
    }
    names
}

/// The names of all tests in Rust by the folder of their crate, such as `shared/engine`; a journey is one, too.
pub(crate) fn tests_by_crate() -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    for folder in ["shared", "functions", "tests"] {
        for (path, text) in rust_files(folder) {
            let home = path.split('/').take(2).collect::<Vec<_>>().join("/");
            let names = found.entry(home).or_default();
            names.extend(test_names(&text).into_iter().map(str::to_owned));
            if path == "tests/journeys/src/suite.rs" {
                let rows = text.lines().filter(|line| !line.trim().starts_with("//"));
                let journeys = rows.filter_map(|row| Some(row.split_once("::")?.1.split_once(" [")?.0));
                names.extend(journeys.map(str::to_owned));
            }
        }
    }
    found
}

/// The suites in JavaScript and Python, by their paths, with their texts.
pub(crate) fn other_suites() -> Vec<(String, String)> {
    let folders = ["clients", "examples", "functions/console/web", "infra"];
    let suites = folders.into_iter().flat_map(files);
    suites.filter(|(path, _)| [".js", ".mjs", ".py"].iter().any(|end| path.ends_with(end))).collect()
}

/// Whether a suite in JavaScript has a test of this name.
pub(crate) fn has_test(suite: &str, name: &str) -> bool {
    ['\'', '"', '`'].iter().any(|quote| suite.contains(&format!("test({quote}{name}{quote}")))
}

#[test]
fn a_function_that_is_no_test_proves_no_paragraph() {
    let text = "#[test]\nfn s1_one() {}\nfn s1_two() {}\n// fn s1_named()\n  #[tokio::test(flavor = \"x\")]\n  #[cfg(unix)]\n  async fn s1_three() {}";
    assert_eq!(test_names(text), ["s1_one", "s1_three"]);
}

#[test]
fn the_arguments_of_a_macro_count_where_it_makes_tests_of_them() {
    let makes = "\nmacro_rules! green {\n    ($($flow:ident),*) => {$(\n        #[tokio::test]\n        async fn $flow() {}\n    )*};\n}\n";
    let calls = "\ngreen!(\n    one,\n    two\n);\nlisted!(three);\n// four\n";
    let lists = "\nmacro_rules! listed {\n    ($($flow:ident),*) => { [$(stringify!($flow)),*] };\n}\n";
    assert_eq!(test_names(&format!("{makes}{lists}{calls}")), ["one", "two"]);
}

#[test]
fn the_name_of_a_test_in_javascript_is_whole() {
    let suite = "test('a reader waits', async () => {});\n// a reader leaves\n";
    assert_eq!(
        ["a reader waits", "a reader", "a reader leaves"].map(|name| has_test(suite, name)),
        [true, false, false]
    );
}
