//! Lists and searches of a folder, without the files that git ignores.

use super::{MAX_FILE, place, text};
use ignore::{DirEntry, WalkBuilder, overrides::OverrideBuilder};
use regex::RegexBuilder;
use serde_json::Value;
use std::{fmt::Write, fs, path::Path};

/// The most names of a list, and the most lines of a search.
const NAMES: usize = 1_000;
const FOUND: usize = 200;
/// The longest line of a search, in characters.
const LINE: usize = 240;
/// The most bytes of a file that are told at once.
const TOLD: usize = 50 * 1024;
/// The largest program of a regular expression, in bytes.
const PROGRAM: usize = 1024 * 1024;

/// The files of a folder, in the order of their paths, by `path` and `glob`.
fn files(root: &Path, args: &Value) -> Result<impl Iterator<Item = DirEntry>, String> {
    let below = place::below(root, args["path"].as_str().unwrap_or_default())?;
    let mut walk = WalkBuilder::new(below);
    // A folder may have a .gitignore and be no repository yet.
    walk.hidden(false).require_git(false).sort_by_file_path(Ord::cmp).filter_entry(|entry| entry.file_name() != ".git");
    if let Some(glob) = args["glob"].as_str() {
        let mut only = OverrideBuilder::new(root);
        let only = only.add(glob).and_then(|only| only.build());
        walk.overrides(only.map_err(|error| format!("glob: {error}"))?);
    }
    // A folder that may not be read is left out.
    let entries = walk.build().filter_map(Result::ok);
    Ok(entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file())))
}

fn relative_path(root: &Path, entry: &DirEntry) -> String {
    entry.path().strip_prefix(root).unwrap_or(entry.path()).display().to_string()
}

/// The paths of the files, each in a line.
pub(super) fn list(root: &Path, args: &Value) -> Result<String, String> {
    let mut all: Vec<String> = files(root, args)?.map(|entry| relative_path(root, &entry)).take(NAMES + 1).collect();
    if all.len() > NAMES {
        all.truncate(NAMES);
        all.push(format!("(There are more than {NAMES}: name a folder or a glob.)"));
    }
    Ok(if all.is_empty() { "There are no files.".into() } else { all.join("\n") })
}

/// The lines that match, each with its path and number.
pub(super) fn search(root: &Path, args: &Value) -> Result<String, String> {
    let pattern = RegexBuilder::new(text(args, "pattern")?).size_limit(PROGRAM).build();
    let pattern = pattern.map_err(|error| format!("pattern is no regular expression: {error}"))?;
    let mut found = Vec::new();
    for entry in files(root, args)? {
        if entry.metadata().map_or(true, |found| found.len() > MAX_FILE) {
            continue;
        }
        // A file that is no text, or that went away meanwhile, has no lines.
        let Ok(content) = fs::read_to_string(entry.path()) else { continue };
        if content.contains('\0') {
            continue;
        }
        for (number, line) in (1..).zip(content.lines()).filter(|(_, line)| pattern.is_match(line)) {
            if found.len() == FOUND {
                found.push(format!("(There are more than {FOUND}: look for something rarer.)"));
                return Ok(found.join("\n"));
            }
            let line: String = line.trim_end().chars().take(LINE).collect();
            found.push(format!("{}:{number}: {line}", relative_path(root, &entry)));
        }
    }
    Ok(if found.is_empty() { "Nothing matches.".into() } else { found.join("\n") })
}

/// Lines of a text from the one with number `first` on, as many as are told at once, with a note about the rest.
pub(super) fn lines(content: &str, first: usize, limit: usize) -> String {
    let (mut told, mut next) = (String::new(), first);
    let mut rest = content.split_inclusive('\n').skip(first.saturating_sub(1)).peekable();
    while let Some(line) = rest.next_if(|line| told.len() + line.len() <= TOLD && next - first < limit) {
        told.push_str(line);
        next += 1;
    }
    match rest.peek() {
        None => {}
        Some(line) if next == first && limit > 0 => {
            let cut = line.floor_char_boundary(TOLD);
            told.push_str(line.get(..cut).unwrap_or_default());
            told.push_str("\n(The rest of this line is too long to be told.)");
        }
        // A text is written without an error.
        Some(_) => drop(write!(told, "(There is more: go on with line {next}.)")),
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_file_says_where_it_goes_on() {
        let text = "a\nb\nc";
        assert_eq!(lines(text, 1, usize::MAX), text);
        assert_eq!(lines(text, 2, 1), "b\n(There is more: go on with line 3.)");
        assert_eq!(lines(text, 9, 1), "");
        let long = "x".repeat(TOLD + 10);
        assert!(lines(&long, 1, usize::MAX).ends_with("x\n(The rest of this line is too long to be told.)"));
        let many = "0123456789\n".repeat(10_000);
        let part = lines(&many, 1, usize::MAX);
        assert!(
            part.len() <= TOLD + 60 && part.ends_with(&format!("(There is more: go on with line {}.)", TOLD / 11 + 1))
        );
    }
}
