//! Text in any encoding.

use crate::{budget::Limits, converted, skipped};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};
use ports::{Converted, IS_TEXT, NotConverted};
use serde_json::json;
use std::borrow::Cow;

/// How far bytes that no text has are looked for.
const LOOK_AT: usize = 8 * 1024;
/// How far a page names its encoding, in bytes.
const NAMED_WITHIN: usize = 1024;
/// The fewest characters of UTF-32 without a mark: fewer numbers of 4 bytes may all be characters by chance.
const CERTAIN: usize = 16;
/// A text with so many characters of UTF-8 beyond ASCII for each place that is none is UTF-8 with a damage, and in no other encoding by chance.
const MOSTLY: usize = 10;
/// The beginnings of Japanese characters in ISO-2022-JP, all of whose bytes are ASCII.
const ESCAPES: [&[u8]; 4] = [b"\x1b$B", b"\x1b$@", b"\x1b(J", b"\x1b$(D"];

/// Whether a content is no text.
pub(crate) fn is_binary(content: &[u8]) -> bool {
    if Encoding::for_bom(content).is_some() || utf_32(content).is_some() || wide(content).is_some() {
        return false;
    }
    let start = content.get(..content.len().min(LOOK_AT)).unwrap_or_default();
    let is_strange = |byte: &&u8| matches!(byte, 0..=8 | 14..=26 | 28..=31);
    start.contains(&0) || start.iter().filter(is_strange).count() * 50 > start.len()
}

/// UTF-16 without a mark: of most letters one byte is 0, and always the same one.
fn wide(content: &[u8]) -> Option<&'static Encoding> {
    let start = content.get(..content.len().min(LOOK_AT)).unwrap_or_default();
    let (mut zeros, mut pairs) = ([0, 0], 0);
    for pair in start.chunks_exact(2) {
        pairs += 1;
        zeros.iter_mut().zip(pair).for_each(|(count, byte)| *count += usize::from(*byte == 0));
    }
    let encoding = match zeros {
        [0, second] if second * 2 > pairs => UTF_16LE,
        [first, 0] if first * 2 > pairs => UTF_16BE,
        _ => return None,
    };
    let text = encoding.decode_without_bom_handling_and_without_replacement(content)?;
    (!text.contains(|c: char| c.is_control() && !c.is_whitespace())).then_some(encoding)
}

/// Reads a number in an order of its bytes.
type ReadNumber = fn([u8; 4]) -> u32;

/// UTF-32, by its mark or because every number of 4 bytes is a character and nearly all are those of texts.
fn utf_32(content: &[u8]) -> Option<(String, &'static str)> {
    if content.is_empty() || !content.len().is_multiple_of(4) {
        return None;
    }
    let of = |read: ReadNumber| {
        let units = content.chunks_exact(4).map(|unit| unit.try_into().ok().map(read).and_then(char::from_u32));
        units.collect::<Option<String>>()
    };
    let orders: [(&str, ReadNumber); 2] = [("UTF-32LE", u32::from_le_bytes), ("UTF-32BE", u32::from_be_bytes)];
    for (name, read) in orders {
        let Some(text) = of(read) else { continue };
        if let Some(text) = text.strip_prefix('\u{feff}') {
            // The mark of UTF-32LE begins with that of UTF-16LE, in which a text has no NUL.
            return Some((text.to_owned(), name));
        }
        let is_of_texts = |c: &char| c.is_alphanumeric() || c.is_whitespace() || c.is_ascii_punctuation();
        let (all, usual) = (text.chars().count(), text.chars().filter(is_of_texts).count());
        let has_control = text.chars().any(|c| c.is_control() && !c.is_whitespace());
        if all >= CERTAIN && usual * 10 >= all * 9 && !has_control {
            return Some((text, name));
        }
    }
    None
}

/// A text, and the name of its encoding: by its mark, else as UTF-8, else as the most likely one.
pub(crate) fn decode(content: &[u8]) -> (Cow<'_, str>, &'static str) {
    if let Some((text, name)) = utf_32(content) {
        return (Cow::Owned(text), name);
    }
    if let Some((encoding, _)) = Encoding::for_bom(content) {
        let (text, encoding, _) = encoding.decode(content);
        return (text, encoding.name());
    }
    if let Some(encoding) = wide(content) {
        return (encoding.decode_without_bom_handling(content).0, encoding.name());
    }
    if let Some(text) = iso_2022_jp(content) {
        return (text, ISO_2022_JP.name());
    }
    if let Ok(text) = std::str::from_utf8(content) {
        return (Cow::Borrowed(text), UTF_8.name());
    }
    if let Some(text) = damaged_utf_8(content) {
        return (Cow::Owned(text), UTF_8.name());
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(content, true);
    let encoding = detector.guess(None, Utf8Detection::Allow);
    (encoding.decode_without_bom_handling(content).0, encoding.name())
}

/// A text in ISO-2022-JP; none for any other.
fn iso_2022_jp(content: &[u8]) -> Option<Cow<'_, str>> {
    let may_have = content.contains(&0x1b) && content.is_ascii();
    let has_escape = may_have && ESCAPES.iter().any(|escape| find(content, escape).is_some());
    has_escape.then(|| ISO_2022_JP.decode_without_bom_handling_and_without_replacement(content)).flatten()
}

/// UTF-8 with a few bytes that are none, such as a text that was cut within a character; none for a text that may be in another encoding.
fn damaged_utf_8(content: &[u8]) -> Option<String> {
    let (mut wide, mut broken) = (0_usize, 0_usize);
    for chunk in content.utf8_chunks() {
        wide += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    let is_cut = broken == 1 && std::str::from_utf8(content).is_err_and(|error| error.error_len().is_none());
    let is_utf_8 = wide >= broken * MOSTLY || is_cut && wide > 0;
    is_utf_8.then(|| String::from_utf8_lossy(content).into_owned())
}

/// A page: the encoding that it names comes before one that is guessed, and after a mark and UTF-8.
pub(crate) fn decode_page(content: &[u8]) -> Cow<'_, str> {
    let is_plain = Encoding::for_bom(content).is_some() || std::str::from_utf8(content).is_ok();
    match named_in_page(content).filter(|_| !is_plain) {
        Some(encoding) => encoding.decode_without_bom_handling(content).0,
        None => decode(content).0,
    }
}

/// The encoding that the beginning of a page names: `<meta charset="windows-1251">`, or at the end of a content type.
fn named_in_page(content: &[u8]) -> Option<&'static Encoding> {
    let start = content.get(..content.len().min(NAMED_WITHIN)).unwrap_or_default();
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let mut labels = start.split("charset").skip(1).filter_map(|after| after.trim_start().strip_prefix('='));
    let is_outside = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | ':' | '.');
    let first = |label: &str| {
        let label = label.trim_start().trim_start_matches(['"', '\'']);
        Encoding::for_label_no_replacement(label.split(is_outside).next().unwrap_or_default().as_bytes())
    };
    // The name would not be found in UTF-16, and the page is no UTF-8.
    labels.find_map(first).filter(|encoding| encoding.is_ascii_compatible() && *encoding != UTF_8)
}

/// A text that every reader reads needs no other form.
pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    let has_mark = Encoding::for_bom(content).is_some();
    let (text, encoding) = decode(content);
    if encoding == UTF_8.name() && !has_mark && matches!(text, Cow::Borrowed(_)) {
        let (reason, message) = IS_TEXT;
        return Err(skipped(reason, message));
    }
    limits.fits(text.len())?;
    let facts = [("encoding", json!(encoding)), ("lines", json!(text.lines().count()))];
    Ok(converted(text.replace("\r\n", "\n"), facts))
}

/// Where `needle` begins.
pub(crate) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
