//! Queries: words, `"phrases"`, `beginnings*`, `+needed` and `-unwanted`. Everything else in a query separates words.

use crate::words::{plain, words};
use domain::Error;
use ports::IndexTerm;

/// The longest query, in bytes.
const LONGEST: usize = 4096;
/// The most terms of a query.
const MOST: usize = 32;
/// The fewest letters of a beginning: shorter ones match nearly everything.
const SHORTEST: usize = 2;

/// The meaning of a term for a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It ranks, and one of them has to match.
    Wanted,
    /// It has to match.
    Needed,
    /// It must not match.
    Unwanted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    pub role: Role,
    pub term: IndexTerm,
    /// As people read it.
    pub shown: String,
}

/// The words of a query that is not looked up but shown in what it finds.
///
/// # Errors
/// `INVALID_ARGUMENT` for a query that is too long, or has nothing to read.
pub(crate) fn words_of(text: &str) -> Result<Vec<Term>, Error> {
    if text.len() > LONGEST {
        return Err(too_long(text));
    }
    if !text.chars().any(char::is_alphanumeric) {
        return Err(Error::invalid("query", "the query has no word").hint("describe it in words"));
    }
    let plain: String = text.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    // Those of a long query are not marked.
    Ok(parse(&plain).unwrap_or_default())
}

fn too_long(text: &str) -> Error {
    let message = format!("the query is {} bytes long; {LONGEST} fit", text.len());
    Error::invalid("query", message).hint("search for the words that matter")
}

/// The terms of a query, each once.
///
/// # Errors
/// `INVALID_ARGUMENT` for a query that is too long, has too many terms, or has no word that is looked for.
pub(crate) fn parse(text: &str) -> Result<Vec<Term>, Error> {
    if text.len() > LONGEST {
        return Err(too_long(text));
    }
    let mut terms: Vec<Term> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| !c.is_whitespace() && !c.is_control()) {
        rest = rest.get(start..).unwrap_or_default();
        let (role, after) = match rest.as_bytes().first() {
            Some(b'-') => (Role::Unwanted, rest.get(1..)),
            Some(b'+') => (Role::Needed, rest.get(1..)),
            _ => (Role::Wanted, Some(rest)),
        };
        let after = after.unwrap_or_default();
        let found = if let Some(quoted) = after.strip_prefix('"') {
            let (phrase, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            rest = after;
            term(if role == Role::Wanted { Role::Needed } else { role }, phrase, false)
        } else {
            let end = after.find(|c: char| c.is_whitespace() || c.is_control() || c == '"').unwrap_or(after.len());
            let (word, after) = after.split_at(end);
            rest = after;
            term(role, word.trim_end_matches('*'), word.ends_with('*'))
        };
        if let Some(found) = found
            && !terms.contains(&found)
        {
            terms.push(found);
        }
        if terms.len() > MOST {
            let message = format!("the query has more than {MOST} terms");
            return Err(Error::invalid("query", message).hint("leave out words that are everywhere"));
        }
    }
    if terms.iter().all(|term| term.role == Role::Unwanted) {
        return Err(Error::invalid("query", "the query has no word to look for").hint(
            "write words, \"a phrase\", a beginning* of at least two letters, +needed or -unwanted words; regular expressions have mode regex",
        ));
    }
    Ok(terms)
}

fn term(role: Role, text: &str, is_beginning: bool) -> Option<Term> {
    let mut found: Vec<String> = words(text).into_iter().map(|word| word.text).collect();
    let unstemmed = plain(text);
    let last = &unstemmed.last()?.text;
    let term = match found.len() {
        // Of several words only the last would be a beginning, which no index of phrases answers.
        1 if is_beginning && last.chars().count() >= SHORTEST => IndexTerm::Prefix(found.pop()?, last.clone()),
        1 => IndexTerm::Word(found.pop()?),
        _ => IndexTerm::Phrase(found),
    };
    let shown = unstemmed.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    let shown = match &term {
        IndexTerm::Word(_) => shown,
        IndexTerm::Prefix(..) => format!("{shown}*"),
        IndexTerm::Phrase(_) => format!("\"{shown}\""),
    };
    Some(Term { role, term, shown })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::Code;

    fn shown(text: &str) -> Vec<String> {
        let sign = |role| match role {
            Role::Wanted => "",
            Role::Needed => "+",
            Role::Unwanted => "-",
        };
        parse(text).unwrap().into_iter().map(|term| format!("{}{}", sign(term.role), term.shown)).collect()
    }

    #[test]
    fn words_phrases_beginnings_and_signs_are_told_apart() {
        assert_eq!(
            shown("parser \"error recovery\" lex* +fast -slow"),
            ["parser", "+\"error recovery\"", "lex*", "+fast", "-slow"]
        );
        assert_eq!(shown("parse_header parser parsers"), ["\"parse header\"", "parser", "parsers"]);
        assert_eq!(shown("-\"old plan\" new"), ["-\"old plan\"", "new"]);
        assert_eq!(shown("検索"), ["\"検 索\""]);
    }

    #[test]
    fn operators_of_the_index_are_plain_words() {
        assert_eq!(
            shown("NEAR(a b) OR content: ^x {y} AND NOT 'z'; DROP"),
            ["\"near a\"", "b", "or", "content", "x", "y", "and", "not", "z", "drop"]
        );
        assert_eq!(shown("\"unfinished phrase"), ["+\"unfinished phrase\""]);
        assert_eq!(shown("a\"b\"c"), ["a", "+b", "c"]);
        assert_eq!(shown("a\u{0}b *"), ["a", "b"]);
    }

    #[test]
    fn queries_without_words_and_endless_ones_are_refused() {
        let many: String = (0..200).map(|n| format!("w{n} ")).collect();
        for text in ["", " ", "\"\"", "***", "\u{0}", "-only", "--", "+", many.as_str(), &"a".repeat(100_000)] {
            let error = parse(text).unwrap_err();
            assert!(error.code == Code::InvalidArgument && error.hint.is_some(), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_in_a_query_panics(text in "[\"*+ \\-a-c\u{0}é索()\n]{0,40}") {
            drop(parse(&text));
        }
    }
}
