//! Excerpts of long texts, for a reader with a budget. Pure.

/// The beginning and the end of a text, in `room` bytes together: a person often asks at the end of a long text. It says how much is left out.
pub(crate) fn ends(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(room / 2);
    let tail = text.ceil_char_boundary(text.len() - (room - room / 2));
    format!("{}… (cut: {} of {} bytes) …{}", &text[..head], tail - head, text.len(), &text[tail..])
}

/// The end of a text, in `room` bytes: of a conversation the newest words. It begins with a whole line where it has one, and says how much is kept.
pub(crate) fn newest(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let from = text.ceil_char_boundary(text.len() - room);
    let next = text[from..].find('\n').map(|at| from + at + 1).filter(|next| *next < text.len());
    let kept = &text[next.unwrap_or(from)..];
    format!("(cut: the last {} of {} bytes) …\n{kept}", kept.len(), text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_long_text_stay_and_a_short_one_is_whole() {
        assert_eq!(ends("short", 5), "short");
        assert_eq!(ends("abcdefgh", 4), "ab… (cut: 4 of 8 bytes) …gh");
        assert_eq!(ends("éééé", 5), "é… (cut: 4 of 8 bytes) …é", "characters stay whole");
        assert_eq!(ends("abc", 0), "… (cut: 3 of 3 bytes) …");
    }

    #[test]
    fn the_newest_words_stay_as_whole_lines() {
        assert_eq!(newest("a\nb\n", 4), "a\nb\n");
        assert_eq!(newest("old words\nnew\n", 6), "(cut: the last 4 of 14 bytes) …\nnew\n");
        assert_eq!(newest("one line without an end\n", 4), "(cut: the last 4 of 24 bytes) …\nend\n");
        assert_eq!(newest("éé", 1), "(cut: the last 0 of 4 bytes) …\n");
    }
}
