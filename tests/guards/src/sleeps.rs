//! Tests wait on conditions. A sleep is either too short, and the test fails at random, or too long, and everyone waits.

use crate::repository::{none, rust_files};

/// The beginning of a comment above a sleep, before the reason, for conditions that only polling can see (of a process from outside, say).
const EXCUSE: &str = "// poll: ";

#[test]
fn tests_do_not_sleep() {
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
        faults.extend(sleeps(&text, whole).into_iter().map(|(line, code)| format!("{path}:{line}: {code}")));
    }
    none(
        faults,
        "These tests sleep; wait on the condition, pause time (`#[tokio::test(start_paused = true)]`), or say `// poll: why`",
    );
}

/// The lines that sleep under a clock that runs, numbered from 1. `whole`: all of the file is tests, not only the part after
/// `#[cfg(test)]`.
fn sleeps(text: &str, whole: bool) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_tests = whole;
    let mut attributes = String::new();
    let mut paused = false;
    let mut previous = "";
    // A function without a test attribute is called by tests: it may sleep where some test of the file pauses time.
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
        if in_tests && !paused && is_sleep(code) && !previous.starts_with(EXCUSE) {
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
        assert_eq!(sleeps(&text, whole).len(), expected, "{text}");
    }
}
