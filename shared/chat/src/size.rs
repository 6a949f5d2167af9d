//! The limit on a model's answers: an entry of the log has to fit into the store (32 MiB), and it has some texts more than once.

/// The most that a model may say in one answer, as JSON: text, reasoning and calls together. Ten times the longest output that any
/// model has today.
pub(crate) const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// The most calls of one answer: each is in several events, also where it does not run.
pub(crate) const MAX_CALLS: usize = 1_000;

/// How many bytes a text has as JSON, without the quotes.
pub(crate) fn in_json(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// As much of the beginning of a text as has at most `most` bytes as JSON.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    // Nearly every text fits, even if each of its characters is escaped.
    if text.len().saturating_mul(6) <= most {
        return text;
    }
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += width(character);
        if used > most {
            return text.get(..at).unwrap_or(text);
        }
    }
    text
}

fn width(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        control if control < ' ' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_as_long_as_fits_and_ends_between_characters() {
        for text in ["", "plain", "a\"b\\c\nd\u{1}e", "äöü€😀"] {
            let whole = in_json(text);
            assert_eq!(whole + 2, serde_json::to_string(text).map_or(0, |json| json.len()), "{text:?}");
            for most in 0..=whole {
                let cut = beginning(text, most);
                assert!(text.starts_with(cut) && in_json(cut) <= most, "{text:?} {most}");
                let next = text[cut.len()..].chars().next();
                assert!(next.is_none_or(|next| in_json(cut) + width(next) > most), "{text:?} {most}");
            }
            assert_eq!(beginning(text, whole), text);
        }
    }
}
