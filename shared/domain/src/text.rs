//! Texts made shorter, or fit for their place. A text is parted between characters only, and a cut is shown by `…`.

use std::{error::Error, fmt::Display};

/// The first bytes of a text; with `…` behind them if more follows.
pub fn beginning(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(bytes)])
}

/// A text in at most so many characters, the last of which is `…` if more follows.
pub fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some(_) => text.chars().take(characters.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// The bytes of a text, with its percent-encoded bytes decoded (RFC 3986 §2.1). A `%` without two hexadecimal digits behind it stays.
pub fn percent_decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// A number of things, as in `1 file` and `2 files`. `thing` is the singular of a regular noun, such as `file`, `match` or `delivery`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, thing: &str) -> String {
    if count == N::from(1) { format!("{count} {thing}") } else { format!("{count} {}", plural(thing)) }
}

fn plural(thing: &str) -> String {
    match thing.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if ["s", "x", "z", "ch", "sh"].iter().any(|end| thing.ends_with(end)) => format!("{thing}es"),
        _ => format!("{thing}s"),
    }
}

/// A text as a segment of a path or a value of a query has it (RFC 3986 §2.3), and as in `filename*` (RFC 8187): each byte is encoded that is
/// no letter, no digit and none of `-._~`.
pub fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}

/// Why an address gave no answer, for people. The text is that of the innermost cause: the error of an HTTP client names the address, which may
/// hold a secret, and its causes do not.
pub fn unreachable(error: &dyn Error, timed_out: bool) -> String {
    let why = if timed_out { "it did not answer in time" } else { "it cannot be reached" };
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(Error::source) {
        cause = Some(deeper);
    }
    cause.map_or_else(|| why.to_owned(), |cause| format!("{why}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fmt, io};

    #[test]
    fn texts_are_parted_between_characters_and_say_so() {
        assert_eq!(["äöü", "ä"].map(|text| beginning(text, 3)), ["ä…", "ä"]);
        assert_eq!(beginning("", 0), "");
        assert_eq!(["äöü", "äöüß"].map(|text| shortened(text, 3)), ["äöü", "äö…"]);
        assert_eq!((shortened("", 0), shortened("a", 0)), (String::new(), "…".into()));
    }

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!([0_u64, 1, 2].map(|count| counted(count, "file")), ["0 files", "1 file", "2 files"]);
        let many = ["matching line", "match", "delivery", "day", "process"].map(|thing| counted(2_usize, thing));
        assert_eq!(many, ["2 matching lines", "2 matches", "2 deliveries", "2 days", "2 processes"]);
    }

    #[test]
    fn a_text_stays_within_its_segment_and_its_header() {
        assert_eq!(percent_encoded("../a?b=c#d é"), "..%2Fa%3Fb%3Dc%23d%20%C3%A9");
        assert_eq!(percent_encoded("a b\"\r\nü.md"), "a%20b%22%0D%0A%C3%BC.md");
    }

    #[derive(Debug)]
    struct Outer(io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("error sending request for https://example.com/?key=secret")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn an_address_is_not_told() {
        let error = Outer(io::Error::other("connection refused"));
        assert_eq!(unreachable(&error, false), "it cannot be reached: connection refused");
        assert_eq!(unreachable(&io::Error::other("https://example.com"), true), "it did not answer in time");
    }
}
