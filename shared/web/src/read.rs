//! Answers of strangers, bounded.

use reqwest::{Response, header::CONTENT_TYPE};
use std::error::Error as _;

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
    let whole = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    whole.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Why nothing was answered, without the address: it may hold a secret.
pub(crate) fn unreachable(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() { "it did not answer in time" } else { "it cannot be reached" };
    // The error itself has the address in its text, its cause has not.
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    cause.map_or_else(|| what.to_owned(), |cause| format!("{what}: {cause}"))
}

/// At most so many characters, without those that act on a terminal, and whether that was all.
pub(crate) fn printable(text: &str, most: usize) -> (String, bool) {
    let is_plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let mut left = text.chars().filter(is_plain);
    let shown = left.by_ref().take(most).collect();
    (shown, left.next().is_none())
}

/// A text as a part of a URL has it.
pub(crate) fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().fold(String::new(), |url, byte| match plain(byte) {
        true => url + &char::from(byte).to_string(),
        false => url + &format!("%{byte:02X}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_model_stay_within_their_segment() {
        assert_eq!(escaped("../a?b=c#d é"), "..%2Fa%3Fb%3Dc%23d%20%C3%A9");
        assert_eq!(printable("a\u{1b}[31mbc", 5), ("a[31m".into(), false));
    }
}
