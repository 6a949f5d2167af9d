//! The address of a hub.

use crate::Error;
use reqwest::Url;

/// The URL of a hub that `text` means; `http` when it names no scheme, as in `localhost:8686`.
///
/// # Errors
/// [`Error::Unusable`] for text that is no URL of HTTP with a host.
pub fn parse_url(text: &str) -> Result<Url, Error> {
    let text = text.trim();
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    match Url::parse(&full) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        Ok(_) => Err(Error::Unusable(format!("{text:?} is not the URL of a hub: it begins with http:// or https://"))),
        Err(error) => Err(Error::Unusable(format!("{text:?} is not the URL of a hub: {error}"))),
    }
}

/// Whether it is one of this machine.
pub(crate) fn is_here(base: &Url) -> bool {
    matches!(base.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// As people write it.
pub(crate) fn display_url(base: &Url) -> String {
    base.as_str().trim_end_matches('/').to_owned()
}

/// The URL of a path of the hub, with its query. A hub may stand below a path of its host, which is none of its concern.
pub(crate) fn of_path(base: &Url, path: &str) -> String {
    format!("{}{path}", display_url(base))
}

/// The URL of a resource below `/api/v1`. Each segment stays one, whatever is in it.
pub(crate) fn of_resource(base: &Url, path: &[&str], query: &[(&str, &str)]) -> Url {
    let mut url = base.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(["api", "v1"]).extend(path);
    }
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let check = |text: &str, expected: Option<&str>| {
            let url = parse_url(text).ok();
            assert_eq!(url.as_ref().map(Url::as_str), expected, "{text}");
        };
        check("http://127.0.0.1:8686", Some("http://127.0.0.1:8686/"));
        check(" localhost:8686 ", Some("http://localhost:8686/"));
        check("https://example.org/hub/", Some("https://example.org/hub/"));
        check("ftp://example.org", None);
        check("file:///etc/passwd", None);
        check("", None);
    }

    #[test]
    fn segments_stay_one_segment_and_paths_are_below_the_hub() -> Result<(), Error> {
        let base = parse_url("localhost:1/hub/")?;
        let url = of_resource(&base, &["workspaces", "../x?y"], &[("path", "/a b&c")]);
        assert_eq!(url.as_str(), "http://localhost:1/hub/api/v1/workspaces/..%2Fx%3Fy?path=%2Fa+b%26c");
        assert_eq!(of_path(&base, "/health?x=1"), "http://localhost:1/hub/health?x=1");
        Ok(())
    }
}
