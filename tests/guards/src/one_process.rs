//! Tests hold in one process as in many: `cargo test` runs all tests of a binary in one, beside each other. So a test leaves the global
//! state of a process alone.

use crate::repository::{none, rust_files};

/// The calls that change global state of a process, and the remedy.
const GLOBAL: &[(&str, &str)] = &[
    (
        "subscriber::set_default(",
        "the subscribers of all threads decide about the log of one: give it a binary of its own",
    ),
    (
        "subscriber::with_default(",
        "the subscribers of all threads decide about the log of one: give it a binary of its own",
    ),
    ("set_global_default(", "there is one per process: give it a binary of its own"),
    ("try_init(", "there is one subscriber per process: give it a binary of its own"),
    ("set_logger(", "there is one logger per process: give it a binary of its own"),
    ("crash::install(", "there is one register per process: make one of your own with Crashes::new"),
    ("set_child_subreaper(", "children of others come to it: wait for your own in a process of your own"),
    ("env::set_var(", "pass the value on"),
    ("env::remove_var(", "pass the value on"),
    ("set_current_dir(", "name the folder whole, or change it in a process of your own"),
    ("setrlimit(", "limit a process of your own"),
    ("panic::set_hook(", "catch the panic where it is"),
    ("umask(", "set the permissions of the file"),
    ("close_range(", "close your own descriptors"),
    ("signal::ctrl_c(", "signals are for a process of your own"),
];

/// Test binaries that have one test, which therefore has its process for itself under any runner.
const ALONE: &[&str] = &["functions/assembly/tests/logged.rs", "shared/models/tests/logged.rs"];

#[test]
fn tests_change_nothing_that_a_process_has_one_of() {
    let mut faults = Vec::new();
    for (path, text) in rust_files("") {
        if ALONE.contains(&path.as_str()) {
            let tests = text.lines().filter(|line| is_test(line)).count();
            if tests != 1 {
                faults.push(format!("{path}: {tests} tests, where each needs the process for itself"));
            }
            continue;
        }
        let whole = path.starts_with("tests/") || path.contains("/tests/");
        for (number, name, instead) in changes(&text, whole) {
            faults.push(format!("{path}:{number}: {name}: {instead}"));
        }
    }
    none(faults, "These tests change state that others in their process depend on");
}

fn is_test(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("#[test]") || line.starts_with("#[tokio::test")
}

/// The lines of tests that change global state. `whole`: all of the file is tests, not only the part after `#[cfg(test)]`.
fn changes(text: &str, whole: bool) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    let mut in_tests = whole;
    for (number, line) in text.lines().enumerate() {
        let code = line.trim();
        in_tests |= code == "#[cfg(test)]";
        if in_tests && !code.starts_with("//") {
            let named = GLOBAL.iter().filter(|(name, _)| names(code, name));
            found.extend(named.map(|(name, instead)| (number + 1, *name, *instead)));
        }
    }
    found
}

/// Whether code calls it by this name: not something whose name ends like it, nor a text that begins with it. (In scripts that another
/// process runs, limits are Python's.)
fn names(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let before = code.get(..at).unwrap_or_default();
        let is_other = before.ends_with(|last: char| last.is_alphanumeric() || last == '_' || last == '"');
        !is_other && !before.ends_with("fn ") && !before.ends_with("resource.")
    })
}

#[test]
fn global_changes_are_seen_in_tests_alone() {
    let line = concat!("    let _guard = tracing::subscriber::", "set_default(subscriber);");
    assert_eq!(changes(line, true).len(), 1);
    assert_eq!(changes(line, false).len(), 0);
    assert_eq!(changes(&format!("fn product() {{}}\n#[cfg(test)]\nmod tests {{\n{line}\n}}"), false).len(), 1);
    assert_eq!(changes(concat!("std::env::", "set_var(\"A\", \"b\");"), true).len(), 1);
    assert_eq!(changes(concat!("registry().with(layer).", "try_init()"), true).len(), 1);
    for fine in [concat!("// it is no ", "umask()"), "fn umask() {}", "    own_umask(7);", "cell.get_or_try_init(made)"]
    {
        assert_eq!(changes(fine, true).len(), 0, "{fine}");
    }
}
