//! The start of a stream: the cursor that the client asks for, and its meaning for a log.

use http::HeaderMap;

/// How far a client says that it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// It says nothing.
    None,
    /// It has everything up to and including this number; 0 is before the first event.
    After(u64),
    /// It says something that is no number of ours.
    Unknown,
}

/// The start of a stream whose client has no usable cursor. The caller knows it from the actor's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the next event: nothing is running.
    Live,
    /// At the running turn, whose first event has this number. It is trusted: the view may be ahead of the feed.
    Turn(u64),
}

impl Cursor {
    /// The header `Last-Event-ID`, else the value of `?after=`: a browser that reconnects sends both, and the header is newer.
    pub fn from_request(headers: &HeaderMap, after: Option<&str>) -> Self {
        match headers.get("last-event-id") {
            Some(value) if !value.is_empty() => value.to_str().map_or(Self::Unknown, Self::parse),
            _ => after.map_or(Self::None, Self::parse),
        }
    }

    /// A decimal integer; nothing at all is no cursor, as `EventSource` has none before its first `id:`.
    fn parse(text: &str) -> Self {
        let text = text.trim();
        if text.is_empty() {
            return Self::None;
        }
        let only_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| only_digits).map_or(Self::Unknown, Self::After)
    }
}

/// The start of a stream, as a position in the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The cursor to go on from.
    pub(crate) cursor: u64,
    /// Why the client's own cursor is of no use, if so: the reason in the `reset` event.
    pub(crate) reset: Option<&'static str>,
}

impl Position {
    /// For a log whose oldest event has the number `oldest` and whose next one gets the number `next`.
    pub(crate) fn resolve(cursor: Cursor, start: Start, oldest: u64, next: u64) -> Self {
        let end = next.saturating_sub(1);
        let anew = match start {
            Start::Live => end,
            Start::Turn(first) => first.saturating_sub(1),
        };
        match cursor {
            Cursor::None => Self { cursor: anew, reset: None },
            Cursor::After(after) if after > end => Self { cursor: anew, reset: Some("unknown_cursor") },
            Cursor::After(after) if after + 1 < oldest => Self { cursor: anew, reset: Some("cursor_too_old") },
            Cursor::After(after) => Self { cursor: after, reset: None },
            Cursor::Unknown => Self { cursor: anew, reset: Some("unknown_cursor") },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_header_wins_and_only_decimal_numbers_are_cursors() {
        let mut headers = HeaderMap::new();
        assert_eq!(Cursor::from_request(&headers, None), Cursor::None);
        assert_eq!(Cursor::from_request(&headers, Some("0")), Cursor::After(0));
        for text in ["x", "-1", "+1", "1.5", "99999999999999999999999"] {
            assert_eq!(Cursor::from_request(&headers, Some(text)), Cursor::Unknown, "{text}");
        }
        headers.insert("last-event-id", HeaderValue::from_static("12"));
        assert_eq!(Cursor::from_request(&headers, Some("3")), Cursor::After(12));
        headers.insert("last-event-id", HeaderValue::from_static(""));
        assert_eq!(Cursor::from_request(&headers, Some("3")), Cursor::After(3));
        headers.insert("last-event-id", HeaderValue::from_bytes(b"\xff").unwrap_or(HeaderValue::from_static("x")));
        assert_eq!(Cursor::from_request(&headers, None), Cursor::Unknown);
    }

    #[test]
    fn positions() {
        let check = |cursor, start, oldest, expected, reset| {
            assert_eq!(
                Position::resolve(cursor, start, oldest, 11),
                Position { cursor: expected, reset },
                "{cursor:?}"
            );
        };
        check(Cursor::None, Start::Live, 1, 10, None);
        check(Cursor::None, Start::Turn(7), 1, 6, None);
        check(Cursor::After(0), Start::Live, 1, 0, None);
        check(Cursor::After(10), Start::Live, 1, 10, None);
        check(Cursor::After(11), Start::Turn(7), 1, 6, Some("unknown_cursor"));
        check(Cursor::Unknown, Start::Live, 1, 10, Some("unknown_cursor"));
        check(Cursor::After(3), Start::Live, 5, 10, Some("cursor_too_old"));
        check(Cursor::After(4), Start::Live, 5, 4, None);
        check(Cursor::After(u64::MAX), Start::Live, 5, 10, Some("unknown_cursor"));
    }
}
