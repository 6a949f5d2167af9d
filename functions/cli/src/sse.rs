//! Server-sent events, as the HTML standard defines them: bytes in, frames out.
//!
//! Bytes may be cut anywhere, also inside of a character or between the CR and the LF of a line end.

use std::{mem, time::Duration};

/// The longest line that is taken; the hub's events stay far below.
const MAX_LINE: usize = 32 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The last id that was set, by this event or one before.
    pub(crate) id: String,
    /// Its type; `message` when it names none.
    pub(crate) event: String,
    /// Its data.
    pub(crate) data: String,
}

/// A line is longer than anything a hub sends.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {MAX_LINE} bytes")]
pub(crate) struct TooLong;

/// The part of the event that has been read so far.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    after_cr: bool,
    past_first_line: bool,
    event: String,
    data: Option<String>,
    id: String,
    last_id: String,
    retry: Option<Duration>,
}

impl Parser {
    /// Takes more bytes and gives the frames that are complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<Frame>, TooLong> {
        let mut frames = Vec::new();
        while let Some((&first, rest)) = bytes.split_first() {
            if mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = rest;
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(bytes);
                break;
            };
            let (line, rest) = bytes.split_at(end);
            self.line.extend_from_slice(line);
            self.after_cr = rest.first() == Some(&b'\r');
            bytes = rest.get(1..).unwrap_or_default();
            let line = mem::take(&mut self.line);
            frames.extend(self.end_of_line(&String::from_utf8_lossy(&line)));
        }
        let pending = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if pending > MAX_LINE { Err(TooLong) } else { Ok(frames) }
    }

    /// The id to resume after: set by a frame, or by a block that had nothing but an id.
    pub(crate) fn last_id(&self) -> &str {
        &self.last_id
    }

    /// How long the server wants clients to wait before they come back.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn end_of_line(&mut self, line: &str) -> Option<Frame> {
        let line = if mem::replace(&mut self.past_first_line, true) {
            line
        } else {
            line.strip_prefix('\u{feff}').unwrap_or(line)
        };
        if line.is_empty() {
            return self.end_of_block();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event = value.to_owned(),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.id = value.to_owned(),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry);
            }
            _ => {} // comments, which have an empty field, and unknown fields
        }
        None
    }

    fn end_of_block(&mut self) -> Option<Frame> {
        self.last_id.clone_from(&self.id);
        let event = mem::take(&mut self.event);
        let data = self.data.take()?;
        let event = if event.is_empty() { "message".to_owned() } else { event };
        Some(Frame { id: self.last_id.clone(), event, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(id: &str, event: &str, data: &str) -> Frame {
        Frame { id: id.into(), event: event.into(), data: data.into() }
    }

    fn parse(text: &str) -> Vec<Frame> {
        Parser::default().push(text.as_bytes()).unwrap_or_default()
    }

    #[test]
    fn the_same_however_it_is_cut() {
        let text = "\u{feff}id: 4\r\nretry: 2000\r\n\r\n: padding\r\n\r\nid: 5\nevent: chunk\ndata: {\"text\":\"grüß\"}\n\n\
                    event: done\rdata: a\rdata: b\rdata\r\r";
        let expected = vec![frame("5", "chunk", "{\"text\":\"grüß\"}"), frame("5", "done", "a\nb\n")];
        assert_eq!(parse(text), expected);
        for size in 1..text.len() {
            let mut parser = Parser::default();
            let frames: Vec<_> =
                text.as_bytes().chunks(size).flat_map(|piece| parser.push(piece).unwrap_or_default()).collect();
            assert_eq!(frames, expected, "in pieces of {size}");
            assert_eq!((parser.last_id(), parser.retry()), ("5", Some(Duration::from_secs(2))));
        }
    }

    #[test]
    fn ids_last_until_the_next_and_count_only_at_the_end_of_a_block() {
        let mut parser = Parser::default();
        assert_eq!(parser.push(b"id: 7\n\n"), Ok(vec![]));
        assert_eq!(parser.last_id(), "7");
        assert_eq!(parser.push(b"data: x\n\nid: 8\ndata: y\n"), Ok(vec![frame("7", "message", "x")]));
        assert_eq!(parser.last_id(), "7", "event 8 is not complete: a stream that ends here resumes after 7");
        assert_eq!(parser.push(b"\nid\ndata: z\n\n"), Ok(vec![frame("8", "message", "y"), frame("", "message", "z")]));
    }

    #[test]
    fn odd_lines_are_passed_over() {
        assert_eq!(parse(": comment\nfoo: bar\nevent: only a name\n\n"), []);
        assert_eq!(parse("data:  two spaces\n\n"), [frame("", "message", " two spaces")]);
        assert_eq!(parse("data\n\n"), [frame("", "message", "")]);
        assert_eq!(parse("id: a\0b\ndata: x\n\n"), [frame("", "message", "x")]);
        assert_eq!(parse("data: never ended\n"), []);
        let mut parser = Parser::default();
        assert!(parser.push(b"retry: 12s\nretry: 99999999999999999999999\n\n").is_ok());
        assert_eq!(parser.retry(), None);
    }

    #[test]
    fn a_line_without_end_is_not_kept_for_ever() {
        let mut parser = Parser::default();
        let piece = vec![b'x'; 1024 * 1024];
        let refused = (0..40).find_map(|_| parser.push(&piece).err());
        assert_eq!(refused, Some(TooLong));
    }
}
