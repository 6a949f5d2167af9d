//! A text of several lines that a person edits, with the texts from before.

use crate::output::clean;
use unicode_width::UnicodeWidthStr;

/// An edited text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Composer {
    text: String,
    /// The byte before which the cursor stands.
    at: usize,
    /// The text that was cut last.
    cut: String,
    /// The place in the history that is shown, and the text from before it.
    recalled: Option<(usize, String)>,
}

/// A text in lines of a width.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrappedText {
    pub(crate) lines: Vec<String>,
    /// The line and the column of the cursor.
    pub(crate) cursor: (usize, usize),
}

impl Composer {
    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it has nothing but blanks.
    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Takes the text away.
    pub(crate) fn take(&mut self) -> String {
        self.at = 0;
        self.recalled = None;
        std::mem::take(&mut self.text)
    }

    /// Puts another text in its place.
    pub(crate) fn set(&mut self, text: &str) {
        self.text = clean(text);
        self.at = self.text.len();
    }

    /// Writes a text at the cursor. Characters that drive a terminal are left out.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = clean(text);
        self.text.insert_str(self.at, &text);
        self.at += text.len();
        self.recalled = None;
    }

    /// The part before the cursor.
    pub(crate) fn before(&self) -> &str {
        self.text.get(..self.at).unwrap_or_default()
    }

    fn after(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Puts `text` in place of the part from `from` to the cursor.
    pub(crate) fn replace_from(&mut self, from: usize, text: &str) {
        if self.text.is_char_boundary(from) && from <= self.at {
            self.text.replace_range(from..self.at, "");
            self.at = from;
            self.insert(text);
        }
    }

    pub(crate) fn left(&mut self) {
        self.at -= self.before().chars().next_back().map_or(0, char::len_utf8);
    }

    pub(crate) fn right(&mut self) {
        self.at += self.after().chars().next().map_or(0, char::len_utf8);
    }

    fn word_begin(&self) -> usize {
        let trimmed = self.before().trim_end();
        trimmed.rfind(|c: char| c.is_whitespace() || c == '/').map_or(0, |at| at + 1)
    }

    pub(crate) fn word_left(&mut self) {
        self.at = self.word_begin();
    }

    pub(crate) fn word_right(&mut self) {
        let after = self.after();
        let begin = after.len() - after.trim_start().len();
        let length = after.trim_start().find(char::is_whitespace).unwrap_or(after.trim_start().len());
        self.at += begin + length;
    }

    fn line_begin(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.after().find('\n').map_or(self.text.len(), |at| self.at + at)
    }

    pub(crate) fn home(&mut self) {
        self.at = self.line_begin();
    }

    pub(crate) fn end(&mut self) {
        self.at = self.line_end();
    }

    pub(crate) fn backspace(&mut self) {
        let end = self.at;
        self.left();
        self.text.replace_range(self.at..end, "");
    }

    pub(crate) fn delete(&mut self) {
        if let Some(c) = self.after().chars().next() {
            self.text.replace_range(self.at..self.at + c.len_utf8(), "");
        }
    }

    pub(crate) fn cut_word(&mut self) {
        self.cut(self.word_begin(), self.at);
    }

    pub(crate) fn cut_to_begin(&mut self) {
        self.cut(self.line_begin(), self.at);
    }

    pub(crate) fn cut_to_end(&mut self) {
        let end = self.line_end();
        // At the end of a line its end goes.
        self.cut(self.at, if end == self.at { (end + 1).min(self.text.len()) } else { end });
    }

    fn cut(&mut self, from: usize, to: usize) {
        if from < to {
            self.cut = self.text.get(from..to).unwrap_or_default().to_owned();
            self.text.replace_range(from..to, "");
            self.at = from;
        }
    }

    /// Writes the text that was cut last.
    pub(crate) fn paste_cut(&mut self) {
        let cut = self.cut.clone();
        self.insert(&cut);
    }

    /// A line up; in the first one a text from before.
    pub(crate) fn up(&mut self, history: &[String]) {
        let begin = self.line_begin();
        if begin > 0 {
            let column = self.before().get(begin..).unwrap_or_default().chars().count();
            self.at = begin - 1;
            self.go_to_column(column);
            return;
        }
        let place = self.recalled.as_ref().map_or(history.len(), |(place, _)| *place);
        if let Some(place) = place.checked_sub(1)
            && let Some(line) = history.get(place)
        {
            let kept = self.recalled.take().map_or_else(|| self.text.clone(), |(_, kept)| kept);
            self.set(line);
            self.recalled = Some((place, kept));
        }
    }

    /// A line down; in the last one the text that came after.
    pub(crate) fn down(&mut self, history: &[String]) {
        let end = self.line_end();
        if end < self.text.len() {
            let column = self.before().get(self.line_begin()..).unwrap_or_default().chars().count();
            self.at = end + 1;
            self.go_to_column(column);
            return;
        }
        if let Some((place, kept)) = self.recalled.take() {
            match history.get(place + 1) {
                Some(line) => {
                    self.set(line);
                    self.recalled = Some((place + 1, kept));
                }
                None => self.set(&kept),
            }
        }
    }

    /// Goes to a column of the line that the cursor is in.
    fn go_to_column(&mut self, column: usize) {
        let (begin, end) = (self.line_begin(), self.line_end());
        let line = self.text.get(begin..end).unwrap_or_default();
        self.at = begin + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    }

    /// The text in lines of at most `width` columns.
    pub(crate) fn lay(&self, width: usize) -> WrappedText {
        let width = width.max(2);
        let (mut lines, mut line) = (Vec::new(), String::new());
        let mut cursor = (0, 0);
        for (at, c) in self.text.char_indices() {
            let mut before = line.len();
            match c {
                '\n' => {}
                '\t' => line.push_str("    "),
                c => line.push(c),
            }
            // The whole line is measured, since a code point that joins the one before takes no columns.
            if line.width() > width {
                let rest = line.split_off(before);
                lines.push(std::mem::replace(&mut line, rest));
                before = 0;
            }
            if at == self.at {
                cursor = (lines.len(), line.get(..before).unwrap_or_default().width());
            }
            if c == '\n' {
                lines.push(std::mem::take(&mut line));
            }
        }
        if self.at == self.text.len() {
            if line.width() >= width {
                lines.push(std::mem::take(&mut line));
            }
            cursor = (lines.len(), line.width());
        }
        lines.push(line);
        WrappedText { lines, cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Composer {
        let mut composer = Composer::default();
        composer.insert(text);
        composer
    }

    #[test]
    fn texts_are_edited_by_characters_words_and_lines() {
        let mut composer = typed("one twö");
        composer.left();
        composer.backspace();
        assert_eq!(composer.text(), "one tö");
        composer.delete();
        composer.insert("wo\nthree");
        composer.up(&[]);
        composer.end();
        composer.cut_word();
        assert_eq!((composer.text(), composer.before()), ("one \nthree", "one "));
        composer.cut_to_end();
        assert_eq!(composer.text(), "one three");
        composer.home();
        composer.word_right();
        composer.cut_to_begin();
        composer.end();
        composer.paste_cut();
        assert_eq!(composer.text(), " threeone");
    }

    #[test]
    fn texts_from_before_come_again_and_the_draft_stays() {
        let history = ["first".to_owned(), "second\nline".to_owned()];
        let mut composer = typed("draft");
        composer.up(&history);
        assert_eq!(composer.text(), "second\nline");
        composer.up(&history);
        composer.up(&history);
        assert_eq!(composer.text(), "first");
        composer.up(&history);
        assert_eq!(composer.text(), "first", "there is none before it");
        composer.down(&history);
        composer.down(&history);
        assert_eq!(composer.text(), "draft");
    }

    #[test]
    fn long_lines_are_laid_by_columns_with_the_cursor_in_place() {
        let laid = |text: &str, width| typed(text).lay(width);
        assert_eq!(laid("", 5), WrappedText { lines: vec!["".into()], cursor: (0, 0) });
        assert_eq!(laid("abcde", 5), WrappedText { lines: vec!["abcde".into(), "".into()], cursor: (1, 0) });
        assert_eq!(laid("日本語", 5), WrappedText { lines: vec!["日本".into(), "語".into()], cursor: (1, 2) });
        assert_eq!(laid("👩‍👩‍👧ab", 5), WrappedText { lines: vec!["👩‍👩‍👧ab".into()], cursor: (0, 4) });
        assert_eq!(laid("a\n", 5), WrappedText { lines: vec!["a".into(), "".into()], cursor: (1, 0) });
    }

    #[test]
    fn nothing_that_drives_a_terminal_is_typed_or_pasted() {
        assert_eq!(typed("a\x1b[31mb\u{202e}").text(), "a[31mb");
    }
}
