//! Files that stay readable, move between machines, and leave nothing behind.

use crate::repository::{files, none, root, rust_files};

/// Past this, look for the second story.
const LINES: usize = 500;

#[test]
fn files_tell_one_story() {
    let long = rust_files("").into_iter().map(|(path, text)| (path, text.lines().count())).filter(|(_, n)| *n > LINES);
    none(long.map(|(path, lines)| format!("{path}: {lines} lines")).collect(), "Find the second story in these files");
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    let roots = ["work", "root", "home", "Users"].map(|folder| format!("/{folder}/"));
    let mut faults = Vec::new();
    for (path, text) in files("") {
        for (number, line) in text.lines().enumerate() {
            if roots.iter().any(|root| names_absolute(line, root)) {
                faults.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    none(
        faults,
        "These lines name a folder of one machine; use a relative path, a temporary folder or the environment",
    );
}

/// Whether an absolute path in `line` starts with `root`.
fn names_absolute(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|character| character.is_alphanumeric() || "._-~*}>])$".contains(character))
    })
}

#[test]
fn only_absolute_paths_count() {
    let root = format!("/{}/", "work");
    for (line, expected) in [
        (format!("cd {root}x"), true),
        (format!("\"{root}x\""), true),
        (format!("projects{root}x"), false),
        (format!("{{base}}{root}x"), false),
        (format!("..{root}x"), false),
    ] {
        assert_eq!(names_absolute(&line, &root), expected, "{line}");
    }
}

/// React calls the value of an effect as its clean-up. A browser gives values where its types still say none: `scrollIntoView` returns a promise
/// in Chromium 156.
#[test]
fn effects_of_pages_have_no_value_by_accident() {
    let mut faults = Vec::new();
    for (path, text) in files("").into_iter().filter(|(path, _)| path.ends_with(".tsx")) {
        for (number, line) in text.lines().enumerate() {
            let effect = line.split_once("Effect(() => ").map(|(_, rest)| rest.trim_start());
            if effect.is_some_and(|rest| !rest.starts_with('{')) {
                faults.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    none(faults, "Write these effects as blocks, and return a clean-up in so many words");
}

#[test]
fn snapshots_belong_to_a_test() {
    let mut faults = Vec::new();
    for (path, text) in files("").into_iter().filter(|(path, _)| path.ends_with(".snap")) {
        let source = text.lines().find_map(|line| line.strip_prefix("source: ")).unwrap_or_default().trim_matches('"');
        let asserts = std::fs::read_to_string(root().join(source)).is_ok_and(|code| code.contains("snapshot!"));
        if source.is_empty() || !asserts {
            faults.push(format!("{path}: `{source}` asserts no snapshot; delete the file"));
        }
    }
    none(faults, "These snapshots are orphans");
}

/// JSON lines have the words of such a value, and none of its causes.
#[test]
fn errors_are_logged_with_their_causes() {
    let mut faults = Vec::new();
    for (path, text) in rust_files("") {
        for (number, line) in
            text.lines().enumerate().filter(|(_, line)| line.contains(concat!("as &dyn std::error", "::Error")))
        {
            faults.push(format!("{path}:{}: {}", number + 1, line.trim()));
        }
    }
    none(faults, "Log these as `error = %error.with_causes()`, or with `ports::with_causes`");
}
