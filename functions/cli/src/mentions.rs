//! The files that a message names: `@/projects/a.md`, or in quotation marks where a path has blanks.

use std::borrow::Cow;

/// The paths that a message names, in their order.
pub(crate) fn mentions(message: &str) -> Vec<&str> {
    let (mut paths, mut end) = (Vec::new(), 0);
    for (at, _) in message.match_indices('@') {
        let (Some(before), Some(after)) = (message.get(..at), message.get(at + 1..)) else { continue };
        if at < end || before.chars().next_back().is_some_and(|last| !last.is_whitespace()) {
            continue;
        }
        let path = match after.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
            Some((quoted, _)) => {
                end = at + quoted.len();
                quoted
            }
            None => after
                .split(char::is_whitespace)
                .next()
                .unwrap_or_default()
                .trim_end_matches([',', '.', ';', ':', '?', '!', ')']),
        };
        if path.starts_with('/') {
            paths.push(path);
        }
    }
    paths
}

/// A path as a message names it.
pub(crate) fn mention(path: &str) -> Cow<'_, str> {
    match path.contains(char::is_whitespace) {
        true => format!("@\"{path}\"").into(),
        false => format!("@{path}").into(),
    }
}

/// The mention that `before`, the text up to the cursor, ends in: the place of its `@`, and the letters after it.
pub(crate) fn begun(before: &str) -> Option<(usize, &str)> {
    let is_begin = |at: usize| before.get(..at).is_some_and(|text| !text.ends_with(|last: char| !last.is_whitespace()));
    if let Some(at) = before.rfind("@\"").filter(|at| is_begin(*at))
        && let Some(query) = before.get(at + 2..).filter(|query| !query.contains('"'))
    {
        return Some((at, query));
    }
    let at = before.rfind('@').filter(|at| is_begin(*at))?;
    let query = before.get(at + 1..).filter(|query| !query.contains(char::is_whitespace))?;
    Some((at, query))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_words_or_stand_in_quotation_marks() {
        let check = |message: &str, expected: &[&str]| assert_eq!(mentions(message), expected, "{message}");
        check("look at @/a.md, and (not) at me@/b.md", &["/a.md"]);
        check("@\"/my notes/a b.md\" and @/c.md.", &["/my notes/a b.md", "/c.md"]);
        check("@ann said @\"/a @/b.md\"", &["/a @/b.md"]);
        check("@\"/never closed", &[]);
        check("", &[]);
        for path in ["/a.md", "/a b/c.md"] {
            check(&format!("see {}", mention(path)), &[path]);
        }
    }

    #[test]
    fn a_mention_is_begun_at_the_cursor() {
        assert_eq!(begun("look at @hel"), Some((8, "hel")));
        assert_eq!(begun("look at @\"my no"), Some((8, "my no")));
        assert_eq!(begun("look at @hel lo"), None);
        assert_eq!(begun("@\"/a b\" "), None);
        assert_eq!(begun("me@example"), None);
        assert_eq!(begun("@"), Some((0, "")));
    }
}
