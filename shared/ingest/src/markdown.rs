//! Parts of Markdown.

use ports::counted;

/// The longest cell of a table of values, in characters.
const CELL: usize = 1_000;
/// The longest text among the facts of a document, in characters.
pub(crate) const FACT: usize = 1_000;
/// The rows of a table that are shown from its beginning, and from its end.
pub(crate) const FIRST: usize = 200;
pub(crate) const LAST: usize = 50;

/// Text for one cell of a table of values: a long one is cut.
pub(crate) fn cell(text: &str) -> String {
    let mut cell = whole_cell(text);
    if let Some((at, _)) = cell.char_indices().nth(CELL) {
        cell.truncate(at);
        cell.push('…');
    }
    cell
}

/// Text for one cell of a table of words, which authors also use for the layout of whole pages: nothing of it is cut.
pub(crate) fn whole_cell(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    words.replace('|', "\\|")
}

/// A table; its first row is the head. `cut` says after which row how many are left out.
pub(crate) fn table(rows: &[Vec<String>], cut: Option<(usize, usize)>) -> String {
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    if width == 0 {
        return String::new();
    }
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        if cut.is_some_and(|(after, _)| after == number) {
            let left = cut.map_or(0, |(_, left)| left);
            text.push_str(&format!("\n[left out here: {}]\n\n", counted(left, "row")));
        }
        text.push('|');
        for column in 0..width {
            text.push_str(&format!(" {} |", row.get(column).map_or("", String::as_str)));
        }
        text.push('\n');
        if number == 0 {
            text.push_str(&format!("|{}\n", " --- |".repeat(width)));
        }
    }
    text
}

/// The rows of a long table that are shown: takes them one by one, and keeps its beginning and its end.
#[derive(Default)]
pub(crate) struct Rows {
    first: Vec<Vec<String>>,
    last: std::collections::VecDeque<Vec<String>>,
    /// All rows, the head included.
    pub count: usize,
}

impl Rows {
    pub fn push(&mut self, row: Vec<String>) {
        self.count += 1;
        if self.first.len() <= FIRST {
            return self.first.push(row);
        }
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back(row);
    }

    /// The table, with its middle cut when it is long.
    pub fn table(self) -> String {
        let left = self.count - self.first.len() - self.last.len();
        let cut = (left > 0).then_some((self.first.len(), left));
        let rows: Vec<Vec<String>> = self.first.into_iter().chain(self.last).collect();
        table(&rows, cut)
    }
}

/// A text on one line.
pub(crate) fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text in a fence that is longer than any in it.
pub(crate) fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_long_table_is_cut_and_that_is_said() {
        let mut rows = Rows::default();
        for number in 0..=1_000 {
            rows.push(vec![number.to_string()]);
        }
        let text = rows.table();
        assert!(text.contains("| 200 |\n\n[left out here: 750 rows]\n\n| 951 |\n"), "{text}");
        assert!(text.ends_with("| 1000 |\n"));
    }

    #[test]
    fn a_fence_is_longer_than_those_in_the_text() {
        assert_eq!(fenced("rust", "a\n```\nb"), "````rust\na\n```\nb\n````\n");
    }

    #[test]
    fn a_cell_has_one_line_and_no_border() {
        assert_eq!(cell(" a\n b|c "), "a b\\|c");
    }
}
