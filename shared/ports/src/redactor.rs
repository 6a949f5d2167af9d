//! Takes secrets out of texts, as they are and in the forms that programs give them.

mod walk;

use crate::{REDACTED, Secret};
use aho_corasick::{AhoCorasick, MatchKind};
use serde::Serialize;
use serde_json::Value;
use std::{borrow::Cow, collections::BTreeSet, fmt, sync::Arc};

/// Takes known secrets out of texts before they are written for people or programs: logs, histories, events, artifacts, errors. Cheap to
/// clone.
///
/// It knows a secret as it is, in JSON texts, percent-encoded, in HTML, in Base64 and in hexadecimal digits, the last two also inside of a
/// longer text that was encoded as a whole. It does not know one that is compressed, encrypted, reversed or broken into lines.
#[derive(Clone, Default)]
pub struct Redactor(Option<Arc<Needles>>);

struct Needles {
    /// In the order of their bytes.
    needles: Vec<String>,
    /// The length of the longest, in bytes.
    longest: usize,
    /// Finds the first of them, and of several there the longest. None: they were too many for it, and no text is passed on.
    finder: Option<AhoCorasick>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.0.as_ref().map_or(0, |known| known.needles.len()))
    }
}

impl Redactor {
    /// Shorter ones are no secrets ("none", "x") and would tear holes into ordinary words.
    const SHORTEST: usize = 6;
    /// A line of a longer secret, such as a certificate, is one by itself from this length on.
    const LINE: usize = 20;
    /// The longest secret that is known in its encoded forms, in bytes.
    const ENCODED: usize = 4 * 1024;

    /// For these secrets.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut needles = BTreeSet::new();
        for secret in secrets {
            let text = secret.expose().trim();
            if text.len() < Self::SHORTEST {
                continue;
            }
            let lines = text.lines().map(str::trim).filter(|line| line.len() >= Self::LINE && *line != text);
            for part in lines.chain([text]) {
                forms::quoted(part, &mut needles);
                if part.len() <= Self::ENCODED {
                    forms::encoded(part, &mut needles);
                }
            }
        }
        let needles: Vec<String> = needles.into_iter().collect();
        let Some(longest) = needles.iter().map(String::len).max() else { return Self::default() };
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&needles).ok();
        Self(Some(Arc::new(Needles { needles, longest, finder })))
    }

    /// The length in bytes of the end of `text` that may be the beginning of a secret: a stream of pieces has to hold back that end.
    pub fn unsure(&self, text: &str) -> usize {
        let Some(known) = &self.0 else { return 0 };
        let most = known.longest.saturating_sub(1).min(text.len());
        let begins = |length: &usize| {
            let end = &text.as_bytes()[text.len() - length..];
            let next = known.needles.partition_point(|needle| needle.as_bytes() <= end);
            known.needles.get(next).is_some_and(|needle| needle.as_bytes().starts_with(end))
        };
        let mut unsure = (1..=most).rev().find(begins).unwrap_or_default();
        // Never inside of a character.
        while !text.is_char_boundary(text.len() - unsure) {
            unsure += 1;
        }
        unsure
    }

    /// The end of a text, of at most `most` bytes, from which these take out their secrets one after the other. A secret that lies across its beginning is
    /// taken out whole. The text may begin inside of a secret: what is before its end stays out, however short the end is without its secrets.
    pub fn end_of(text: &str, most: usize, redactors: &[&Self]) -> String {
        let clean = |text: &str| redactors.iter().fold(text.to_owned(), |text, one| one.text(&text).into_owned());
        let before = text.get(..text.floor_char_boundary(text.len().saturating_sub(most))).unwrap_or_default();
        let unsure = redactors.iter().map(|one| one.unsure(before)).max().unwrap_or_default();
        let before = before.get(..before.len() - unsure).unwrap_or_default();
        let all = clean(text);
        let from = clean(before).len().max(all.len().saturating_sub(most));
        all.get(all.ceil_char_boundary(from)..).unwrap_or_default().to_owned()
    }

    /// Whether there is nothing to take out.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// A text without secrets; borrowed when there was none in it.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(known) = &self.0 else { return Cow::Borrowed(text) };
        let Some(finder) = &known.finder else { return Cow::Owned(REDACTED.into()) };
        let (mut clean, mut from) = (String::new(), 0);
        for found in finder.find_iter(text) {
            clean.push_str(text.get(from..found.start()).unwrap_or_default());
            clean.push_str(REDACTED);
            from = found.end();
        }
        if from == 0 {
            return Cow::Borrowed(text);
        }
        clean.push_str(text.get(from..).unwrap_or_default());
        Cow::Owned(clean)
    }

    /// A body of HTTP without secrets; none when there was none in it. In JSON only texts can be secrets: a number that looks like one has to stay one.
    pub fn body(&self, body: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(body);
        let Cow::Owned(clean) = self.text(&text) else { return None };
        Some(match serde_json::from_str(&text) {
            Ok(mut value) => {
                self.value(&mut value);
                value.to_string()
            }
            Err(_) => clean,
        })
    }

    /// Whether a text of a value has a secret, as [`Redactor::text`] would find it in each of them. Nothing of the value is copied.
    pub fn is_needed<T: Serialize + ?Sized>(&self, value: &T) -> bool {
        let Some(known) = &self.0 else { return false };
        walk::any_text(value, &|text| match &known.finder {
            Some(finder) => text.len() >= Self::SHORTEST && finder.is_match(text),
            None => true,
        })
    }

    /// Takes secrets out of every text of a value, keys included.
    pub fn value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(object) => {
                if object.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
                    let entries = std::mem::take(object);
                    object.extend(entries.into_iter().map(|(key, item)| (self.text(&key).into_owned(), item)));
                }
                object.values_mut().for_each(|item| self.value(item));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// An error without secrets, in its message, its hint and its details.
    #[must_use]
    pub fn error(&self, mut error: domain::Error) -> domain::Error {
        if self.is_empty() {
            return error;
        }
        error.message = self.text(&error.message).into_owned();
        error.hint = error.hint.map(|hint| self.text(&hint).into_owned());
        let mut details = Value::Object(std::mem::take(&mut *error.details));
        self.value(&mut details);
        if let Value::Object(details) = details {
            *error.details = details;
        }
        error
    }
}

/// The forms of a secret.
mod forms {
    use base64::{Engine, alphabet, engine::general_purpose::GeneralPurpose, engine::general_purpose::NO_PAD};
    use serde_json::Value;
    use std::{collections::BTreeSet, fmt::Write};

    /// How often a secret may have been put into a JSON text that was put into a JSON text.
    const QUOTED: usize = 3;
    /// Characters that percent-encoding keeps, beside letters and digits: RFC 3986's unreserved characters, those of `encodeURIComponent`,
    /// and those of `encodeURI`.
    const KEPT: [&str; 3] = ["-._~", "-._~!'()*", "-._~!'()*;,/?:@&=+$#"];

    /// As it is, inside of a JSON text, and inside of a JSON text that is a text of another one: the arguments of a call in a log entry
    /// that is itself a message. Writers of JSON escape different characters.
    pub fn quoted(text: &str, into: &mut BTreeSet<String>) {
        let mut needle = text.to_owned();
        for _ in 0..=QUOTED {
            let quoted = Value::String(needle.clone()).to_string();
            into.insert(needle);
            needle = quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned();
        }
        let plain = Value::String(text.into()).to_string();
        let plain = plain.get(1..plain.len() - 1).unwrap_or_default();
        into.insert(plain.replace('/', "\\/"));
        into.insert(plain.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"));
        into.insert(ascii(plain, false));
        into.insert(ascii(plain, true));
    }

    /// In Base64, hexadecimal digits, percent-encoding and HTML.
    pub fn encoded(text: &str, into: &mut BTreeSet<String>) {
        let hex: String = text.bytes().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        into.insert(hex.to_ascii_uppercase());
        into.insert(hex);
        for kept in KEPT {
            let percent = percent(text, kept);
            into.insert(percent.replace("%20", "+"));
            into.insert(lower_escapes(&percent));
            into.insert(percent);
        }
        let html = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        into.insert(html.replace('\'', "&#39;"));
        into.insert(html.replace('\'', "&#x27;"));
        into.insert(html);
        for alphabet in [alphabet::STANDARD, alphabet::URL_SAFE] {
            let engine = GeneralPurpose::new(&alphabet, NO_PAD);
            for before in 0..3 {
                into.extend(base64(&engine, text, before));
            }
        }
    }

    /// The digits of Base64 that depend on the secret alone, if it comes behind `before` other bytes of three.
    fn base64(engine: &GeneralPurpose, text: &str, before: usize) -> Option<String> {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(text.as_bytes());
        let whole = bytes.len() * 8 / 6;
        engine.encode(&bytes).get((before * 8).div_ceil(6)..whole).map(str::to_owned)
    }

    fn percent(text: &str, kept: &str) -> String {
        text.bytes().fold(String::new(), |mut percent, byte| {
            if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) {
                percent.push(byte.into());
            } else {
                let _ = write!(percent, "%{byte:02X}");
            }
            percent
        })
    }

    /// Percent-encoding with small digits.
    fn lower_escapes(percent: &str) -> String {
        let mut digits = 0_u8;
        let lower = |c: char| {
            digits = if c == '%' { 3 } else { digits };
            let is_digit = digits > 0;
            digits = digits.saturating_sub(1);
            if is_digit { c.to_ascii_lowercase() } else { c }
        };
        percent.chars().map(lower).collect()
    }

    /// A JSON text in ASCII alone.
    fn ascii(text: &str, capital: bool) -> String {
        text.chars().fold(String::new(), |mut ascii, c| {
            if c.is_ascii() {
                ascii.push(c);
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = if capital { write!(ascii, "\\u{unit:04X}") } else { write!(ascii, "\\u{unit:04x}") };
                }
            }
            ascii
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use base64::{Engine, engine::general_purpose};
    use serde_json::json;

    #[test]
    fn a_secret_is_found_in_the_forms_that_programs_give_it() {
        let secret = "pa/ss <w&rd>+'\"ä=hunter2";
        let redactor = Redactor::new([&Secret::new(secret)]);
        let (standard, url) = (general_purpose::STANDARD, general_purpose::URL_SAFE_NO_PAD);
        let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        let mut shown = vec![
            hex(secret),
            hex(secret).to_uppercase(),
            hex(&format!("API_KEY={secret}\n")),
            "pa%2Fss%20%3Cw%26rd%3E%2B%27%22%C3%A4%3Dhunter2".into(),
            "pa%2fss%20%3cw%26rd%3e%2b%27%22%c3%a4%3dhunter2".into(),
            "pa%2Fss+%3Cw%26rd%3E%2B%27%22%C3%A4%3Dhunter2".into(),
            "pa%2Fss%20%3Cw%26rd%3E%2B'%22%C3%A4%3Dhunter2".into(),
            "pa/ss%20%3Cw&rd%3E+'%22%C3%A4=hunter2".into(),
            "pa/ss &lt;w&amp;rd&gt;+&#39;&quot;ä=hunter2".into(),
            "pa\\/ss <w&rd>+'\\\"ä=hunter2".into(),
            "pa/ss <w&rd>+'\\\"\\u00e4=hunter2".into(),
            "pa/ss \\u003cw\\u0026rd\\u003e+'\\\"ä=hunter2".into(),
        ];
        for before in ["", "a", "ab", "abc", "API_KEY="] {
            for after in ["", "\n", "xy"] {
                let text = format!("{before}{secret}{after}");
                shown.extend([standard.encode(&text), url.encode(&text)]);
            }
        }
        for text in shown {
            let clean = redactor.text(&text);
            assert!(clean.contains(REDACTED), "{text}");
            // At the ends of Base64 a digit may be left that has a part of a byte in it.
            assert!(clean.replace(REDACTED, "").len() < 24, "{text} leaves {clean}");
        }
        assert_eq!(redactor.text("pa/ss is no secret, and hunter2 is none"), "pa/ss is no secret, and hunter2 is none");
    }

    #[test]
    fn s10_11_a_stream_of_pieces_is_held_back_from_a_possible_secret_on() {
        let redactor = Redactor::new(&["hunter2-ä-hunter2", "2-hu-other"].map(Secret::new));
        for (text, unsure) in
            [("", 0), ("say hun", 3), ("hunter2-", 8), ("hunter2-ä", 10), ("hunter2-x", 0), ("a2-", 2)]
        {
            assert_eq!(redactor.unsure(text), unsure, "{text}");
        }
        assert_eq!(Redactor::default().unsure("anything"), 0);
    }

    #[test]
    fn s10_11_a_secret_inside_of_json_inside_of_json_is_found() {
        let redactor = Redactor::new([&Secret::new("pl4nted-\"s3cret\"\\value")]);
        let mut text = json!({ "key": "pl4nted-\"s3cret\"\\value" }).to_string();
        for _ in 0..3 {
            assert!(!redactor.text(&text).contains("s3cret"), "{text}");
            text = json!({ "args": text }).to_string();
        }
    }

    #[test]
    fn s10_11_known_secrets_are_taken_out_of_texts_values_and_errors() {
        let secrets = ["pass\"word", "pass\"word-longer", "x", "  spaced-secret\n"].map(Secret::new);
        let redactor = Redactor::new(&secrets);
        assert_eq!(redactor.text("pass\"word-longer! x pass\"word"), "[redacted]! x [redacted]");
        assert!(matches!(redactor.text("nothing"), Cow::Borrowed("nothing")));
        let mut value = json!({"a": ["pass\"word", 1, {"spaced-secret": "{\"k\":\"pass\\\"word\"}"}]});
        redactor.value(&mut value);
        assert_eq!(value, json!({"a": ["[redacted]", 1, {"[redacted]": "{\"k\":\"[redacted]\"}"}]}));
        let error = domain::Error::invalid("spaced-secret", "no spaced-secret").hint("use spaced-secret");
        let text = serde_json::to_string(&redactor.error(error)).unwrap();
        assert!(!text.contains("spaced-secret") && text.contains("use [redacted]"), "{text}");
        assert!(Redactor::new(&[Secret::new("short")]).is_empty());
    }

    #[test]
    fn s10_11_a_line_of_a_certificate_is_a_secret_too() {
        let secret = Secret::new("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASC\n-----END KEY-----\n");
        let redactor = Redactor::new([&secret]);
        assert_eq!(redactor.text("got MIIEvQIBADANBgkqhkiG9w0BAQEF"), "got [redacted]");
        assert_eq!(redactor.text(&json!(secret.expose()).to_string()), "\"[redacted]\\n\"");
    }
}
