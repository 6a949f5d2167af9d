//! Contents as text. A text need not be UTF-8: sources of older programs and exports of other systems are in the encodings of their time. Such a text is
//! read as any other, and an edit writes it back in the encoding that it has.

use crate::media_type::media_type;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use domain::{Code, Error, FilePath};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::borrow::Cow;

/// How far a NUL is looked for, in bytes.
const LOOK_AT: usize = 8 * 1024;
/// How much the encoding is guessed from, in bytes, around the first one that is not ASCII, and how much of that is before it.
const GUESSED_FROM: usize = 64 * 1024;
const BEFORE: usize = 256;
/// A text with so many characters of UTF-8 beyond ASCII for each place that is none is UTF-8 with a damage.
const MOSTLY: usize = 10;

/// A content as text.
#[derive(Debug)]
pub struct Decoded<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    form: Form<'a>,
}

#[derive(Debug)]
enum Form<'a> {
    Utf8,
    /// UTF-8 with places that are none: they are shown as U+FFFD.
    Damaged,
    /// Another encoding, and its byte order mark, which is empty for most.
    Other(&'static Encoding, &'a [u8]),
}

/// A content in UTF-8 as text; none when it is binary or in another encoding.
pub fn as_utf_8(bytes: &[u8]) -> Option<&str> {
    if bytes.iter().take(LOOK_AT).any(|byte| *byte == 0) {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

impl<'a> Decoded<'a> {
    /// A content as text; none when it is binary.
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        if let Some(text) = as_utf_8(bytes) {
            return Some(Self { text: Cow::Borrowed(text), form: Form::Utf8 });
        }
        let found = match Encoding::for_bom(bytes) {
            Some((encoding, length)) if encoding != UTF_8 => {
                let (mark, rest) = bytes.split_at_checked(length)?;
                let text = encoding.decode_without_bom_handling_and_without_replacement(rest)?;
                Self { text, form: Form::Other(encoding, mark) }
            }
            _ if bytes.contains(&0) || media_type(bytes).is_some() => return None,
            _ if is_damaged_utf_8(bytes) => Self { text: String::from_utf8_lossy(bytes), form: Form::Damaged },
            _ => {
                let encoding = guess(bytes)?;
                let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
                Self { text, form: Form::Other(encoding, &[]) }
            }
        };
        let is_control = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}');
        (!found.text.contains(is_control)).then_some(found)
    }

    /// The name of the encoding; none for UTF-8.
    pub fn encoding(&self) -> Option<&'static str> {
        match self.form {
            Form::Utf8 => None,
            Form::Damaged => Some("UTF-8 with damaged places"),
            Form::Other(encoding, _) => Some(encoding.name()),
        }
    }

    /// Another text in the encoding of this one.
    ///
    /// # Errors
    /// `UNPROCESSABLE` when the encoding has no code for a character of `text`, and when the unchanged text would not become the bytes that it was read
    /// from: an edit would change more than it says.
    pub fn encode(&self, path: &FilePath, bytes: &[u8], text: String) -> Result<Vec<u8>, Error> {
        let (encoding, mark) = match self.form {
            Form::Utf8 => return Ok(text.into_bytes()),
            Form::Damaged => {
                return Err(unwritable(path, "is UTF-8 with damaged places, which an edit would not keep"));
            }
            Form::Other(encoding, mark) => (encoding, mark),
        };
        if encoded(encoding, mark, &self.text).is_none_or(|same| same != bytes) {
            return Err(unwritable(path, &format!("is in {}, in a form that an edit would not keep", encoding.name())));
        }
        encoded(encoding, mark, &text).ok_or_else(|| {
            unwritable(path, &format!("is in {}, which has not all characters of the new text", encoding.name()))
        })
    }
}

fn unwritable(path: &FilePath, why: &str) -> Error {
    Error::new(Code::Unprocessable, format!("{path} {why}")).hint("write the whole file: it is in UTF-8 from then on")
}

fn encoded(encoding: &'static Encoding, mark: &[u8], text: &str) -> Option<Vec<u8>> {
    let mut bytes = mark.to_vec();
    // The library writes UTF-8 for these.
    if encoding == UTF_16LE {
        bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    } else if encoding == UTF_16BE {
        bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
    } else {
        let (coded, _, has_unknown) = encoding.encode(text);
        if has_unknown {
            return None;
        }
        bytes.extend_from_slice(&coded);
    }
    Some(bytes)
}

/// The most likely encoding of a text that is not UTF-8.
fn guess(bytes: &[u8]) -> Option<&'static Encoding> {
    let from = bytes.iter().position(|byte| !byte.is_ascii())?.saturating_sub(BEFORE);
    let part = bytes.get(from..bytes.len().min(from + GUESSED_FROM))?;
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(part, from + part.len() == bytes.len());
    Some(detector.guess(None, Utf8Detection::Deny))
}

/// Whether this is UTF-8 with a few bytes that are none, such as a text that was cut within a character.
fn is_damaged_utf_8(bytes: &[u8]) -> bool {
    let (mut wide, mut broken) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        wide += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    let is_cut = broken == 1 && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none());
    wide > 0 && (wide >= broken * MOSTLY || is_cut)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn decoded(bytes: &[u8]) -> Option<(String, Option<&'static str>)> {
        Decoded::of(bytes).map(|decoded| (decoded.text.clone().into_owned(), decoded.encoding()))
    }

    #[test]
    fn a_text_is_told_from_binary_contents_in_any_encoding() {
        let text = |text: &str, encoding| Some((text.to_owned(), encoding));
        let umlauts = b"// Gr\xf6\xdfe der Stra\xdfe, f\xfcr die \xdcbersicht\nint x;\n";
        let words = "// Größe der Straße, für die Übersicht\nint x;\n";
        assert_eq!(decoded(umlauts), text(words, Some("windows-1252")));
        assert_eq!(decoded(b"\xff\xfea\0\n\0"), text("a\n", Some("UTF-16LE")));
        assert_eq!(decoded(b"\xfe\xff\0a"), text("a", Some("UTF-16BE")));
        assert_eq!(decoded("\u{feff}a".as_bytes()), text("\u{feff}a", None));
        let cut = "größer".as_bytes().iter().chain(b"\xc3").copied().collect::<Vec<u8>>();
        assert_eq!(decoded(&cut), text("größer\u{fffd}", Some("UTF-8 with damaged places")));
        for binary in [
            &b"\x01\0\x02"[..],
            b"\x89PNG\r\n\x1a\n\x0f",
            b"\xff\xd8\xff picture",
            b"%PDF-1.7 \xe2\xe3",
            b"PK\x03\x04\xff",
            b"\x1f\x8b\x08\xff\xfe",
            b"\xff\xfe\0\0a\0\0\0",
        ] {
            assert_eq!(decoded(binary), None, "{binary:?}");
        }
    }

    #[test]
    fn an_edited_text_has_the_encoding_and_the_mark_that_it_had() {
        let path = FilePath::parse("/projects/a.c").unwrap();
        let edit = |bytes: &[u8], old: &str, new: &str| {
            let decoded = Decoded::of(bytes).unwrap();
            decoded.encode(&path, bytes, decoded.text.replace(old, new))
        };
        assert_eq!(
            edit(b"caf\xe9 na\xefve, d\xe9j\xe0 vu", "vu", "\u{fc}"),
            Ok(b"caf\xe9 na\xefve, d\xe9j\xe0 \xfc".to_vec())
        );
        assert_eq!(edit(b"\xff\xfea\0b\0", "b", "\u{e4}"), Ok(b"\xff\xfea\0\xe4\0".to_vec()));
        assert_eq!(edit(b"\xfe\xff\0a", "a", "c"), Ok(b"\xfe\xff\0c".to_vec()));
        let refused = edit(b"caf\xe9 na\xefve, d\xe9j\xe0 vu", "vu", "\u{3b1}").unwrap_err();
        assert_eq!(refused.code, Code::Unprocessable);
        assert!(refused.message.contains("windows-1252"), "{refused}");
    }
}
