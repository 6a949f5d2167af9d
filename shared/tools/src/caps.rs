//! Caps: no answer fills a model's context by itself, and a cut never goes unsaid.

/// The most bytes of an answer.
pub(crate) const MAX_BYTES: usize = 50 * 1024;
/// The most lines of an answer.
pub(crate) const MAX_LINES: usize = 2000;
/// The most bytes of one line.
pub(crate) const MAX_LINE: usize = 2000;

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
    text.push_str(&format!("\n[cut here: {left} bytes more; ask for less at a time to see the rest]"));
    (text, true)
}

/// A line, cut if it is too long.
pub(crate) fn line(text: &str, max: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    let end = text.floor_char_boundary(max);
    format!("{} [… {} bytes more in this line]", text.get(..end).unwrap_or_default(), text.len() - end).into()
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
}
