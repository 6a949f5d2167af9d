//! Answers of strangers, bounded.

use domain::text;
use reqwest::{Response, header::CONTENT_TYPE};

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
}
