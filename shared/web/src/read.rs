//! Answers of strangers, bounded.

use domain::text;
use encoding_rs::Encoding;
use reqwest::{Response, header::CONTENT_TYPE};
use std::borrow::Cow;

/// At most so many bytes of a body, and whether that was all.
///
/// # Errors
/// The body broke off: the reason, for people.
pub(crate) async fn body(mut response: Response, most: usize) -> Result<(Vec<u8>, bool), String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&error))? {
        let room = most - bytes.len();
        bytes.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
        if chunk.len() > room {
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
}

/// The media type of an answer without its parameters, in lower case; empty where there is none.
pub(crate) fn media_type(response: &Response) -> String {
    content_type(response).split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn content_type(response: &Response) -> &str {
    response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default()
}

/// The encoding that an answer names; none where it names none that there is.
pub(crate) fn charset(response: &Response) -> Option<&'static Encoding> {
    named(content_type(response))
}

/// The encoding of a content type such as `text/html; charset=windows-1251`.
fn named(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, label) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Encoding::for_label_no_replacement(label.trim().trim_matches(['"', '\'']).as_bytes())
}

/// A body as text. One that is UTF-8 is taken for that, since many servers name another encoding of all that they have.
pub(crate) fn decoded<'a>(bytes: &'a [u8], charset: Option<&'static Encoding>) -> Cow<'a, str> {
    match (charset, std::str::from_utf8(bytes)) {
        // UTF-16 and ISO-2022-JP may look like UTF-8.
        (Some(charset), _) if !charset.is_ascii_compatible() => charset.decode(bytes).0,
        (_, Ok(text)) => Cow::Borrowed(text),
        (Some(charset), Err(_)) => charset.decode(bytes).0,
        (None, Err(_)) => String::from_utf8_lossy(bytes),
    }
}

/// Why nothing was answered.
pub(crate) fn unreachable(error: &reqwest::Error) -> String {
    text::unreachable(error, error.is_timeout())
}

/// At most so many characters, without those that act on a terminal, and whether that was all.
pub(crate) fn printable(text: &str, most: usize) -> (String, bool) {
    let is_plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let mut left = text.chars().filter(is_plain);
    let shown = left.by_ref().take(most).collect();
    (shown, left.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_act_on_a_terminal_are_left_out() {
        assert_eq!(printable("a\u{1b}[31mbc", 5), ("a[31m".into(), false));
    }

    #[test]
    fn a_text_is_read_in_the_encoding_that_its_server_names() {
        let read = |content_type: &str, bytes: &[u8]| decoded(bytes, named(content_type)).into_owned();
        assert_eq!(read("text/plain; charset=ISO-8859-1", b"caf\xe9"), "café");
        assert_eq!(read("text/plain; format=flowed; Charset=\"windows-1251\"", b"\xcc\xe8\xf0"), "Мир");
        assert_eq!(read("text/html; charset=iso-2022-jp", b"\x1b$B8!:w\x1b(B"), "検索");
        assert_eq!(read("text/html; charset=utf-16le", b"h\0i\0"), "hi");
        assert_eq!(read("text/plain; charset=iso-8859-1", "é".as_bytes()), "é", "it is UTF-8 all the same");
        for content_type in ["text/plain", "text/plain; charset=none", "text/plain; charset=", ""] {
            assert_eq!(read(content_type, b"caf\xe9"), "caf\u{fffd}", "{content_type}");
        }
    }
}
