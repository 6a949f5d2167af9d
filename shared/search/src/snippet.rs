//! Snippets: the lines of a passage with the most terms in them, with the words that match marked.

use crate::{
    query::{Role, Term},
    rank::is_of,
    words::{plain, words},
};
use serde::Serialize;
use std::collections::HashSet;

/// How long a snippet is about, in bytes, and how many lines it has at most.
const LENGTH: usize = 400;
const LINES: usize = 4;

/// A part of a snippet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The text.
    pub text: String,
    /// Whether it is a word that matches.
    pub mark: bool,
}

/// A snippet, and the numbers of its first and last line within the passage, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snippet {
    pub parts: Vec<Part>,
    pub first: u64,
    pub last: u64,
}

struct Mark {
    start: usize,
    end: usize,
    term: usize,
}

/// The best part of a text.
pub(crate) fn snippet(text: &str, terms: &[Term]) -> Snippet {
    let marks = marks(text, terms);
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line_of = |at: usize| starts.partition_point(|start| *start <= at).saturating_sub(1);
    // The window that begins with the line of a mark and has the most terms, then the most marks.
    let count = |first: usize| {
        let inside = marks.iter().filter(|mark| (first..first + LINES).contains(&line_of(mark.start)));
        let inside: Vec<usize> = inside.map(|mark| mark.term).collect();
        (inside.iter().collect::<HashSet<_>>().len(), inside.len())
    };
    let lines: HashSet<usize> = marks.iter().map(|mark| line_of(mark.start)).collect();
    let first = lines.into_iter().max_by_key(|line| (count(*line), std::cmp::Reverse(*line))).unwrap_or(0);
    let from = starts.get(first).copied().unwrap_or(0);
    // A long line is shown from a little before its first mark.
    let first_mark = marks.iter().map(|mark| mark.start).find(|start| *start >= from).unwrap_or(from);
    let from = if first_mark - from > LENGTH / 2 { text.ceil_char_boundary(first_mark - LENGTH / 4) } else { from };
    let end = starts.get(first + LINES).map_or(text.len(), |next| next.saturating_sub(1));
    let end = text.floor_char_boundary(end.min(from + LENGTH)).max(from);
    let last = line_of(end.saturating_sub(1).max(from));
    let mut parts = Vec::new();
    let mut at = from;
    for mark in marks.iter().filter(|mark| mark.start >= from && mark.end <= end) {
        push(&mut parts, text.get(at..mark.start), false);
        push(&mut parts, text.get(mark.start..mark.end), true);
        at = mark.end;
    }
    push(&mut parts, text.get(at..end).map(str::trim_end), false);
    Snippet { parts, first: first as u64, last: last.max(first) as u64 }
}

fn push(parts: &mut Vec<Part>, text: Option<&str>, mark: bool) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        parts.push(Part { text: text.into(), mark });
    }
}

fn marks(text: &str, terms: &[Term]) -> Vec<Mark> {
    let wanted = |stem: &str, plain: &str| {
        let mut terms = terms.iter().enumerate().filter(|(_, term)| term.role != Role::Unwanted);
        terms.find(|(_, term)| is_of(&term.term, stem, plain)).map(|(position, _)| position)
    };
    let both = words(text).into_iter().zip(plain(text));
    both.filter_map(|(stem, plain)| {
        let term = wanted(&stem.text, &plain.text)?;
        Some(Mark { start: stem.start, end: stem.end, term })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::query::parse;

    fn shown(text: &str, query: &str) -> (String, u64, u64) {
        let found = snippet(text, &parse(query).unwrap());
        let part = |part: &Part| if part.mark { format!("[{}]", part.text) } else { part.text.clone() };
        (found.parts.iter().map(part).collect(), found.first, found.last)
    }

    #[test]
    fn the_lines_with_the_most_terms_are_shown_with_marks() {
        let text = "one parser\n\n\n\n\ntwo\nthe Parsers\nand lexers\nend\n";
        assert_eq!(shown(text, "parser lexer"), ("the [Parsers]\nand [lexers]\nend".into(), 6, 8));
        assert_eq!(shown(text, "lex*"), ("and [lexers]\nend".into(), 7, 8));
        assert_eq!(shown("nothing", "parser"), ("nothing".into(), 0, 0));
        assert_eq!(shown("", "parser"), (String::new(), 0, 0));
    }

    #[test]
    fn a_long_line_is_shown_around_its_first_mark() {
        let text = format!("{} parser {}", "é".repeat(5_000), "x ".repeat(5_000));
        let (found, ..) = shown(&text, "parser");
        assert!(found.contains("[parser]") && found.len() <= LENGTH + 2, "{found}");
    }

    proptest::proptest! {
        #[test]
        fn parts_are_a_piece_of_the_text(text in "[a-dé索 \n]{0,1500}", query in "[a-d]{1,2}") {
            let found = snippet(&text, &parse(&query).unwrap());
            assert!(text.contains(&found.parts.iter().map(|part| part.text.as_str()).collect::<String>()));
        }
    }
}
