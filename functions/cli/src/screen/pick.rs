//! A list to pick from: what is typed narrows it, and the best fits come first.

/// The most entries that are shown as fitting.
const MOST: usize = 200;

/// Something to pick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its id or its path.
    pub(crate) value: String,
    /// The words by which it is found.
    pub(crate) label: String,
    /// A remark.
    pub(crate) detail: String,
}

/// The indices of the entries that fit, the best first; all in their order for an empty query.
pub(crate) fn fitting(entries: &[Entry], query: &str) -> Vec<usize> {
    let mut scored: Vec<(i64, usize)> =
        entries.iter().enumerate().filter_map(|(place, entry)| Some((score(&entry.label, query)?, place))).collect();
    scored.sort_by_key(|(score, place)| (-score, *place));
    scored.into_iter().take(MOST).map(|(_, place)| place).collect()
}

/// How well the letters of `query` fit into `text` in their order; none when they do not. Letters side by side, and those at the
/// beginning of a word or of a file's name, count more.
fn score(text: &str, query: &str) -> Option<i64> {
    let lower = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<char>>();
    let wanted = lower(query);
    if wanted.is_empty() {
        return Some(0);
    }
    let text = lower(text);
    let name = text.iter().rposition(|c| *c == '/').map_or(0, |at| at + 1);
    // In the name alone it fits better than over the whole path.
    let in_name = along(text.get(name..).unwrap_or_default(), &wanted).map(|score| score + 40);
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX) / 4;
    in_name.max(along(&text, &wanted)).map(|score| score - length)
}

fn along(text: &[char], wanted: &[char]) -> Option<i64> {
    let (mut at, mut score, mut last) = (0, 0, None::<usize>);
    for letter in wanted {
        let found = at + text.get(at..)?.iter().position(|c| c == letter)?;
        let begins = found == 0 || text.get(found - 1).is_some_and(|c| !c.is_alphanumeric());
        score += 1 + if begins { 8 } else { 0 } + if last.is_some_and(|last| last + 1 == found) { 5 } else { 0 };
        (at, last) = (found + 1, Some(found));
    }
    Some(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_fits_come_first() {
        let entries: Vec<Entry> = ["/projects/parser/main.rs", "/notes/map.md", "/projects/maintain.md", "/a/mxaxixn"]
            .map(|path| Entry { value: path.into(), label: path.into(), detail: String::new() })
            .into();
        let best = |query: &str| {
            fitting(&entries, query).into_iter().map(|place| entries[place].value.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(best("main"), ["/projects/maintain.md", "/projects/parser/main.rs", "/a/mxaxixn"]);
        assert_eq!(best("PPM"), ["/projects/parser/main.rs"]);
        assert_eq!(best("zap"), Vec::<&str>::new());
        assert_eq!(best("").len(), 4);
    }
}
