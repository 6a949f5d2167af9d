//! Caps: no answer fills a model's context by itself, and a cut never goes unsaid.

use domain::text::counted;

/// The most bytes of an answer.
pub(crate) const MAX_BYTES: usize = 50 * 1024;
/// The most lines of an answer.
pub(crate) const MAX_LINES: usize = 2000;
/// The most bytes of one line.
pub(crate) const MAX_LINE: usize = 2000;

/// How much of the end of an output is told while its command runs, in bytes.
const MAX_TOLD: usize = 2 * 1024;

/// Cuts an answer that is over the caps, and says so; whether it was cut.
pub fn cap(mut text: String) -> (String, bool) {
    let lines = text.match_indices('\n').nth(MAX_LINES).map_or(text.len(), |(at, _)| at);
    // Room for the text that tools add after they have kept to the caps.
    const MARGIN: usize = 1024;
    let end = text.floor_char_boundary(lines.min(MAX_BYTES + MARGIN));
    if end == text.len() {
        return (text, false);
    }
    let left = text.len() - end;
    text.truncate(end);
    text.push_str(&format!("\n[cut here: {} more; ask for less at a time to see the rest]", counted(left, "byte")));
    (text, true)
}

/// A line, cut if it is too long.
pub(crate) fn line(text: &str, max: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    let end = text.floor_char_boundary(max);
    let left = counted(text.len() - end, "byte");
    format!("{} [… {left} more in this line]", text.get(..end).unwrap_or_default()).into()
}

/// A text without the escape codes of terminals (ECMA-48): colours and moves of a cursor say nothing to a model or on a page.
pub(crate) fn plain(text: &str) -> std::borrow::Cow<'_, str> {
    const ESCAPE: char = '\u{1b}';
    if !text.contains(ESCAPE) {
        return text.into();
    }
    let mut parts = text.split(ESCAPE);
    let begins = parts.next().unwrap_or_default().to_owned();
    parts.map(after_code).fold(begins, |plain, part| plain + part).into()
}

/// The rest of a text that begins with an escape code, without its escape character.
fn after_code(text: &str) -> &str {
    // A text for the terminal, such as its title: it ends with a bell, with the next escape code, or at the latest with its line.
    if text.starts_with([']', 'P', 'X', '^', '_']) {
        let end = text.find(['\u{7}', '\n']).unwrap_or(text.len());
        let rest = text.get(end..).unwrap_or_default();
        return rest.strip_prefix('\u{7}').unwrap_or(rest);
    }
    let (rest, last) = match text.strip_prefix('[') {
        Some(rest) => (rest.trim_start_matches(|c: char| (' '..='?').contains(&c)), '@'),
        None => (text.trim_start_matches(|c: char| (' '..='/').contains(&c)), '0'),
    };
    rest.strip_prefix(|c: char| (last..='~').contains(&c)).unwrap_or(rest)
}

/// The last lines of an output, as many as fit.
pub(crate) fn end_of(output: &str) -> String {
    let cut = output.ceil_char_boundary(output.len().saturating_sub(MAX_TOLD));
    let end = &output[cut..];
    match end.split_once('\n') {
        Some((_, lines)) if cut > 0 && !lines.is_empty() => lines.to_owned(),
        _ => end.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_by_lines_and_by_bytes_and_says_so() {
        assert_eq!(cap("a\nb".into()), ("a\nb".into(), false));
        let (text, cut) = cap("é\n".repeat(5000));
        assert!(cut && text.lines().count() <= MAX_LINES + 2 && text.ends_with("to see the rest]"));
        let (text, cut) = cap("é".repeat(MAX_BYTES));
        assert!(cut && text.len() < MAX_BYTES + 2048);
        assert_eq!(line("éé", 3), "é [… 2 bytes more in this line]");
    }

    #[test]
    fn escape_codes_of_terminals_are_left_out() {
        for (text, expected) in [
            ("a [31m é\t", "a [31m é\t"),
            ("\u{1b}[1;31merror\u{1b}[0m: é", "error: é"),
            ("\u{1b}[?25l\u{1b}[2K\rdone\u{1b}(B\u{1b}7", "\rdone"),
            ("\u{1b}]8;;https://a.b\u{7}link\u{1b}]8;;\u{1b}\\ after", "link after"),
            ("\u{1b}]0;a title without end\nnext", "\nnext"),
            ("cut\u{1b}[3", "cut"),
            ("cut\u{1b}", "cut"),
            ("\u{1b}[31é", "é"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_end_of_an_output_is_its_last_lines() {
        assert_eq!(end_of("one\ntwo"), "one\ntwo");
        let long = "é".repeat(MAX_TOLD);
        assert!(end_of(&long).len() <= MAX_TOLD && end_of(&long).ends_with('é'));
        let lines = format!("{}\nlast one\nlast two\n", "x".repeat(MAX_TOLD - 10));
        assert_eq!(end_of(&lines), "last one\nlast two\n");
    }
}
