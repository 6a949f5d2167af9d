//! Text in any encoding.

use crate::{budget::Limits, converted, skipped};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};
use ports::{Converted, NotConverted};
use serde_json::json;
use std::borrow::Cow;

/// How far bytes that no text has are looked for.
const LOOK_AT: usize = 8 * 1024;

/// Whether a content is no text.
pub(crate) fn is_binary(content: &[u8]) -> bool {
    if Encoding::for_bom(content).is_some() {
        return false;
    }
    let start = content.get(..content.len().min(LOOK_AT)).unwrap_or_default();
    let is_strange = |byte: &&u8| matches!(byte, 0..=8 | 14..=26 | 28..=31);
    start.contains(&0) || start.iter().filter(is_strange).count() * 50 > start.len()
}

/// A text, and its encoding: by its mark, else as UTF-8, else as the most likely one.
pub(crate) fn decode(content: &[u8]) -> (Cow<'_, str>, &'static Encoding) {
    if let Some((encoding, _)) = Encoding::for_bom(content) {
        let (text, encoding, _) = encoding.decode(content);
        return (text, encoding);
    }
    if let Ok(text) = std::str::from_utf8(content) {
        return (Cow::Borrowed(text), UTF_8);
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(content, true);
    let encoding = detector.guess(None, Utf8Detection::Allow);
    (encoding.decode_without_bom_handling(content).0, encoding)
}

/// A text that every reader reads needs no other form.
pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    let has_mark = Encoding::for_bom(content).is_some();
    let (text, encoding) = decode(content);
    if encoding == UTF_8 && !has_mark && matches!(text, Cow::Borrowed(_)) {
        return Err(skipped("text", "it is text already, and is read as it is"));
    }
    limits.fits(text.len())?;
    let facts = [("encoding", json!(encoding.name())), ("lines", json!(text.lines().count()))];
    Ok(converted(text.replace("\r\n", "\n"), facts))
}
