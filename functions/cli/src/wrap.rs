//! Text in lines that end between words, where a terminal would break them anywhere.

use unicode_width::UnicodeWidthStr;

/// On a narrower terminal words are not arranged: it breaks lines wherever they end.
const NARROWEST: usize = 20;

/// `text` in lines of at most `width` columns. A line that goes on is indented: below the explanation, where two blanks or more stand before
/// one, and else a little further than its beginning.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    text.split('\n').map(|line| in_lines(line, width)).collect::<Vec<_>>().join("\n")
}

fn in_lines(line: &str, width: usize) -> String {
    if width < NARROWEST || seen_width(line) <= width {
        return line.to_owned();
    }
    // Blanks at the end stay: a prompt keeps its distance from the answer.
    let (text, blanks) = line.split_at(line.trim_end_matches(' ').len());
    let mut words = WordStream { indent: indent(line, width), ..WordStream::default() };
    words.push(text, width) + &words.finish(width) + blanks
}

/// The column at which a line goes on in the next one.
fn indent(line: &str, width: usize) -> usize {
    let line = without_codes(line);
    let text = line.trim_start_matches(' ');
    let before = line.len() - text.len();
    let explained = text.find("  ").and_then(|at| {
        let explanation = text.get(at..)?.trim_start_matches(' ');
        Some(before + text.strip_suffix(explanation)?.width())
    });
    let beside = if before == 0 { 0 } else { before + 2 };
    explained.filter(|column| *column <= width / 2).unwrap_or(beside)
}

/// Breaks text into lines of at most so many columns, also text that comes in pieces. A word is written when it is complete.
#[derive(Debug, Default)]
pub(crate) struct WordStream {
    /// The columns of the line that are written.
    column: usize,
    /// The column at which a line goes on in the next one.
    indent: usize,
    /// The blanks before the word that is coming.
    blanks: usize,
    word: String,
}

impl WordStream {
    /// Takes a piece; gives the words that are complete with it.
    pub(crate) fn push(&mut self, piece: &str, width: usize) -> String {
        let mut lines = String::new();
        for c in piece.chars() {
            match c {
                '\n' => {
                    self.place(width, &mut lines);
                    lines.push('\n');
                    (self.column, self.blanks) = (0, 0);
                }
                ' ' => {
                    self.place(width, &mut lines);
                    self.blanks += 1;
                }
                c => self.word.push(c),
            }
        }
        lines
    }

    /// Gives the last word; the text that comes next begins a line.
    pub(crate) fn finish(&mut self, width: usize) -> String {
        let mut lines = String::new();
        self.place(width, &mut lines);
        *self = Self { indent: self.indent, ..Self::default() };
        lines
    }

    /// The columns of the line that are written.
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    /// Writes the word that is complete: on this line, or on the next one where it would be too wide for this one.
    fn place(&mut self, width: usize, lines: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let wide = seen_width(&self.word);
        if width >= NARROWEST && self.column > self.indent && self.column + self.blanks + wide > width {
            lines.push('\n');
            lines.push_str(&" ".repeat(self.indent));
            self.column = self.indent;
        } else {
            lines.push_str(&" ".repeat(self.blanks));
            self.column += self.blanks;
        }
        lines.push_str(&self.word);
        self.column += wide;
        self.blanks = 0;
        self.word.clear();
    }
}

/// The beginning of `text` that has room in `width` columns; a cut is shown.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        short.push(c);
        if short.width() >= width {
            short.pop();
            break;
        }
    }
    if width > 0 {
        short.push('…');
    }
    short
}

/// The columns of a text without the codes of its looks.
pub(crate) fn seen_width(text: &str) -> usize {
    without_codes(text).width()
}

fn without_codes(text: &str) -> String {
    let mut seen = String::new();
    let mut rest = text;
    while let Some((before, code)) = rest.split_once('\x1b') {
        seen.push_str(before);
        rest = code.split_once('m').map_or("", |(_, after)| after);
    }
    seen.push_str(rest);
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_and_go_on_below_their_text() {
        for (text, lines) in [
            ("one two three four five", "one two three four\nfive"),
            ("  = one two three four", "  = one two three\n    four"),
            ("  /a     one two three four", "  /a     one two\n         three four"),
            ("twenty-columns-at-most or not", "twenty-columns-at-most\nor not"),
            ("short\none two three four five", "short\none two three four\nfive"),
            ("\x1b[2mone two three four five\x1b[0m", "\x1b[2mone two three four\nfive\x1b[0m"),
            ("  allow? (y, n) ", "  allow? (y, n) "),
        ] {
            assert_eq!(wrapped(text, 20), lines, "{text:?}");
        }
        assert_eq!(wrapped("one two three four", 10), "one two three four", "too narrow for words");
    }

    #[test]
    fn words_are_arranged_while_they_come() {
        let mut words = WordStream::default();
        let pieces = ["one t", "wo three", " four fi", "ve\n  six", " "];
        let mut lines: String = pieces.iter().map(|piece| words.push(piece, 20)).collect();
        assert_eq!(lines, "one two three four\nfive\n  six");
        lines.push_str(&words.push("seven", 20));
        lines.push_str(&words.finish(20));
        assert_eq!(lines, "one two three four\nfive\n  six seven");
        assert_eq!(words.push("eight ", 20), "eight", "a new line begins");
    }

    #[test]
    fn whole_lines_and_words_that_come_break_at_the_same_places() {
        for text in
            ["one two three four five", "\x1b[2mone two\x1b[0m three four five", "ein schönes 漢字 für alle Leser"]
        {
            let mut words = WordStream::default();
            let pieces: Vec<String> = text.chars().map(|c| words.push(&c.to_string(), 20)).collect();
            assert_eq!(pieces.concat() + &words.finish(20), wrapped(text, 20), "{text:?}");
        }
        assert_eq!(
            wrapped("  allow the command? (y, n) ", 20),
            "  allow the command?\n    (y, n) ",
            "a prompt keeps its blank"
        );
    }

    #[test]
    fn cuts_are_shown_and_count_columns() {
        assert_eq!(
            (cut("abc", 3), cut("abcd", 3), cut("日本語", 5), cut("a", 0)),
            ("abc".into(), "ab…".into(), "日本…".into(), String::new())
        );
        assert_eq!(cut("👩‍👩‍👧 abcd", 5), "👩‍👩‍👧 a…", "a joined character counts once");
    }

    #[test]
    fn looks_take_no_room() {
        assert_eq!(seen_width("\x1b[1mbold\x1b[0m"), 4);
    }
}
