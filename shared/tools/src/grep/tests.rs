#![expect(clippy::unwrap_used, reason = "tests")]
use super::*;

const PATTERN: &str = "needle";

/// A folder with these files, and the start of a walk through it.
fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, Start) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let start = Start::at(folder.path().to_owned(), FilePath::root(), true, None).unwrap();
    (folder, start)
}

fn grep(mode: Mode) -> Grep {
    Grep { mode, ..Grep::of(PATTERN.into(), "/".into(), 200) }
}

fn found(grep: &Grep, start: &Start, is_late: IsLate<'_>) -> FoundLines {
    search(start, &grep.matcher().unwrap(), None, grep.wants(), is_late)
}

#[test]
fn a_search_whose_time_is_over_ends_and_does_not_pass_for_a_whole_one() {
    let (_folder, start) = folder(&[("a.txt", "needle\n"), ("b.txt", "needle\n")]);
    for mode in [Mode::Content, Mode::Files, Mode::Count] {
        let grep = grep(mode);
        let whole = grep.show(found(&grep, &start, &|| false));
        assert_eq!((whole.truncated, &whole.result["complete"]), (false, &json!(true)), "{}", whole.output);
        let late = grep.show(found(&grep, &start, &|| true));
        assert_eq!((late.truncated, &late.result["complete"]), (true, &json!(false)), "{}", late.output);
        assert_eq!(late.result["total"], 0);
        let told = "the search ended after 20 s without having seen all files: narrow the pattern, path or glob]";
        assert!(late.output.ends_with(told), "{}", late.output);
    }
}

#[test]
fn a_search_ends_in_the_middle_of_a_file_and_shows_what_it_found() {
    const LINES: usize = 1_000_000;
    let text = "needle\n".repeat(LINES);
    let (_folder, start) = folder(&[("large.txt", text.as_str())]);
    // Of the file's 7 MB one read takes 64 KiB at most.
    let reads = AtomicUsize::new(0);
    let found = found(&grep(Mode::Count), &start, &|| reads.fetch_add(1, Ordering::Relaxed) >= 8);
    assert!(found.gave_up == Some(GaveUp::Late));
    let matches: Vec<usize> = found.files.iter().map(|hits| hits.matches).collect();
    assert!(matches.len() == 1 && (1..LINES / 2).contains(&matches[0]), "{matches:?}");
    assert!(found.unreadable.is_empty() && found.refused.is_empty());
}

#[test]
fn a_search_in_time_sees_all_of_a_file() {
    let grep = grep(Mode::Count);
    let text = "needle\n".repeat(100_000);
    let (_folder, start) = folder(&[("large.txt", text.as_str())]);
    assert_eq!(grep.walk(&start).unwrap().files.iter().map(|hits| hits.matches).sum::<usize>(), 100_000);
}
