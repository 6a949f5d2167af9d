//! Tests wait on conditions. A sleep is either too short, and the test fails at random, or too long, and everyone waits. A bound on the time that
//! something took fails at random on a busy machine.

use crate::repository::{none, rust_files};

/// The beginning of a comment above a sleep, before the reason, for conditions that only polling can see (of a process from outside, say).
const POLLS: &str = "// poll: ";
/// The same above a bound on time, for a cost that only a clock shows.
const BOUNDS: &str = "// bound: ";

#[test]
fn tests_do_not_sleep() {
    none(
        in_tests(is_sleep, POLLS),
        "These tests sleep; wait on the condition, pause time (`#[tokio::test(start_paused = true)]`), or say `// poll: why`",
    );
}

#[test]
fn tests_bound_no_time_of_a_clock_that_runs() {
    none(
        in_tests(is_bound, BOUNDS),
        "These tests fail on a busy machine; assert what happened instead of how long it took, pause time, wait for a PATIENCE, or say `// bound: why`",
    );
}

/// The lines of tests that are at fault under a clock that runs, and have no excuse.
fn in_tests(is_fault: fn(&str) -> bool, excuse: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let files = rust_files("");
    let folder_of = |path: &str| path.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
    // A crate of tests that builds its own runtime with paused time runs everything on it.
    let paused: Vec<String> = files
        .iter()
        .filter(|(path, text)| path.starts_with("tests/") && text.contains(concat!(".start_", "paused(true)")))
        .map(|(path, _)| folder_of(path))
        .collect();
    for (path, text) in files {
        if paused.contains(&folder_of(&path)) {
            continue;
        }
        let whole = path.starts_with("tests/") || path.contains("/tests/");
        let found = faults_of(&text, whole, is_fault, excuse);
        faults.extend(found.into_iter().map(|(line, code)| format!("{path}:{line}: {code}")));
    }
    faults
}

/// The lines at fault under a clock that runs, numbered from 1. `whole`: all of the file is tests, not only the part after
/// `#[cfg(test)]`.
fn faults_of<'a>(text: &'a str, whole: bool, is_fault: fn(&str) -> bool, excuse: &str) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    let mut in_tests = whole;
    let mut attributes = String::new();
    let mut paused = false;
    let mut previous = "";
    // A function without a test attribute is called by tests: it may do so where some test of the file pauses time.
    let some_paused = text.contains("start_paused") || text.contains("time::pause()");
    for (number, line) in text.lines().enumerate() {
        let code = line.trim();
        in_tests |= code == "#[cfg(test)]";
        if code.starts_with("#[") {
            attributes.push_str(code);
        } else if code.contains("fn ") && !code.starts_with("//") {
            // Not the attribute of the module of tests, which stands above its first function.
            let is_test = attributes.contains("::test") || attributes.contains("#[test]");
            paused = if is_test { attributes.contains("start_paused") } else { some_paused };
            attributes.clear();
        }
        if in_tests && !paused && is_fault(code) && !previous.starts_with(excuse) {
            found.push((number + 1, code));
        }
        previous = code;
    }
    found
}

fn is_sleep(code: &str) -> bool {
    !code.starts_with("//")
        && code.match_indices("sleep(").any(|(at, _)| {
            let before = &code[..at];
            let named_otherwise = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '"');
            !named_otherwise && !before.ends_with("fn ")
        })
}

/// An assertion that something took less than a time, unless that is the patience with which a test waits.
fn is_bound(code: &str) -> bool {
    let limit = code.split_once(concat!("elapsed()", " <")).map(|(_, limit)| limit);
    code.starts_with("assert") && limit.is_some_and(|limit| !limit.contains("PATIENCE"))
}

#[test]
fn a_bound_is_seen_where_time_runs() {
    let bound = concat!("    assert!(began.elapsed()", " < second);\n");
    for (text, expected) in [
        (format!("#[test]\nfn quick() {{\n{bound}}}"), 1),
        (format!("#[tokio::test(start_paused = true)]\nasync fn quick() {{\n{bound}}}"), 0),
        (format!("#[test]\nfn quick() {{\n    // bound: no other sign shows it\n{bound}}}"), 0),
        (format!("fn comes() {{\n{}}}", bound.replace("second", "journeys::PATIENCE")), 0),
    ] {
        assert_eq!(faults_of(&text, true, is_bound, BOUNDS).len(), expected, "{text}");
    }
}

#[test]
fn a_sleep_is_seen_where_time_runs() {
    let nap = concat!("    tokio::time::", "sleep(second).await;\n");
    for (text, whole, expected) in [
        (format!("fn waits() {{\n{nap}}}"), false, 0),
        (format!("fn waits() {{\n{nap}}}"), true, 1),
        (format!("#[cfg(test)]\nmod tests {{\n#[tokio::test]\nasync fn t() {{\n{nap}}}}}"), false, 1),
        (format!("#[tokio::test(start_paused = true)]\nasync fn t() {{\n{nap}}}"), true, 0),
        (
            format!("#[tokio::test(start_paused = true)]\nasync fn t() {{}}\n#[tokio::test]\nasync fn u() {{\n{nap}}}"),
            true,
            1,
        ),
        (format!("fn boots() {{\n    // poll: the process sends no event\n{nap}}}"), true, 0),
        ("fn sleep(duration: Duration) {}".into(), true, 0),
    ] {
        assert_eq!(faults_of(&text, whole, is_sleep, POLLS).len(), expected, "{text}");
    }
}
