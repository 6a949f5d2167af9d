//! Server-sent events, as the HTML standard defines them: bytes in, frames out.
//!
//! Bytes may be cut anywhere, also inside of a character or between the CR and the LF of a line end.

use std::{mem, time::Duration};

/// The longest event that is taken, in bytes; the hub's stay far below.
const MAX_EVENT: usize = 32 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The last id that was set, by this event or one before.
    pub id: String,
    /// Its type; `message` when it names none.
    pub event: String,
    /// Its data.
    pub data: String,
}

/// An event is longer than anything a hub sends.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {MAX_EVENT} bytes")]
pub struct TooLong;

/// Turns bytes into frames. It holds the part of the event that has been read so far.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    after_cr: bool,
    past_first_line: bool,
    event: String,
    data: Option<String>,
    id: String,
    last_id: String,
    first_id: Option<String>,
    retry: Option<Duration>,
}

impl Parser {
    /// Takes more bytes and gives the frames that are complete.
    ///
    /// # Errors
    /// When an event is longer than any that a hub sends. The connection is of no use any more.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<Frame>, TooLong> {
        let mut frames = Vec::new();
        while let Some((&first, rest)) = bytes.split_first() {
            if mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = rest;
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.line.extend_from_slice(line);
            // At each line, so that it does not depend on how the bytes are cut.
            if self.line.len() + self.data.as_ref().map_or(0, String::len) > MAX_EVENT {
                return Err(TooLong);
            }
            if end.is_none() {
                break;
            }
            self.after_cr = rest.first() == Some(&b'\r');
            bytes = rest.get(1..).unwrap_or_default();
            let line = mem::take(&mut self.line);
            frames.extend(self.end_of_line(&String::from_utf8_lossy(&line)));
        }
        Ok(frames)
    }

    /// The id to resume after: set by a frame, or by a block that had nothing but an id.
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// The first id that was set: the place where the hub's streams begin.
    pub fn first_id(&self) -> Option<&str> {
        self.first_id.as_deref()
    }

    /// How long the server wants clients to wait before they come back.
    pub fn retry(&self) -> Option<Duration> {
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
        if self.first_id.is_none() && !self.id.is_empty() {
            self.first_id = Some(self.id.clone());
        }
        let event = mem::take(&mut self.event);
        let data = self.data.take()?;
        let event = if event.is_empty() { "message".to_owned() } else { event };
        Some(Frame { id: self.last_id.clone(), event, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(id: &str, event: &str, data: &str) -> Frame {
        Frame { id: id.into(), event: event.into(), data: data.into() }
    }

    fn parse(text: &str) -> Vec<Frame> {
        Parser::default().push(text.as_bytes()).unwrap_or_default()
    }

    /// Everything that a parser tells after these pieces.
    fn told<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Frame>, String, Option<String>, Option<Duration>) {
        let mut parser = Parser::default();
        let frames = pieces.into_iter().flat_map(|piece| parser.push(piece).unwrap_or_default()).collect();
        (frames, parser.last_id().to_owned(), parser.first_id().map(str::to_owned), parser.retry())
    }

    #[test]
    fn a_stream_of_a_hub() {
        let text = "\u{feff}id: 4\r\nretry: 2000\r\n\r\n: padding\r\n\r\n\
                    id: 5\nevent: chunk\ndata: {\"text\":\"grüß\"}\n\n\
                    event: done\rdata: a\rdata: b\rdata\r\r";
        let frames = vec![frame("5", "chunk", "{\"text\":\"grüß\"}"), frame("5", "done", "a\nb\n")];
        let expected = (frames, "5".to_owned(), Some("4".to_owned()), Some(Duration::from_secs(2)));
        for ending in ["\n", "\r\n", "\r"] {
            let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', ending);
            assert_eq!(told([text.as_bytes()]), expected, "{ending:?}");
        }
        for size in 1..text.len() {
            assert_eq!(told(text.as_bytes().chunks(size)), expected, "in pieces of {size}");
        }
    }

    /// Lines as servers send them, broken ones among them, and any bytes.
    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let words = [
            "id: 7",
            "id",
            "id: a\0b",
            "event: chunk",
            "data: {\"text\":\"grüß 😀\"}",
            "data",
            "data:  x",
            "retry: 20",
            "retry: x",
            ": comment",
            "odd: 1",
            "\u{feff}",
            "",
        ];
        let endings = ["\n", "\r\n", "\r", "\n\n", "\r\n\r\n", ""];
        let line = (prop::sample::select(words.to_vec()), prop::sample::select(endings.to_vec()));
        let line = line.prop_map(|(word, ending)| format!("{word}{ending}").into_bytes());
        let odd = prop::collection::vec(any::<u8>(), 0..6);
        let piece = prop_oneof![8 => line, 1 => odd];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_split_of_bytes_gives_the_same(
            stream in streams(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.sort_unstable();
            let ends = cuts.iter().copied().chain([stream.len()]);
            let pieces = cuts.iter().copied().rev().chain([0]).collect::<Vec<_>>().into_iter().rev().zip(ends);
            let expected = told([&stream[..]]);
            prop_assert_eq!(told(pieces.map(|(from, to)| &stream[from..to])), expected.clone());
            prop_assert_eq!(told(stream.chunks(1)), expected);
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
    fn an_event_without_end_is_not_kept_for_ever() {
        let mib = vec![b'x'; 1024 * 1024];
        let line = [b"data:".as_slice(), &mib, b"\n"].concat();
        for piece in [&mib, &line] {
            let mut parser = Parser::default();
            let refused = (0..40).find_map(|_| parser.push(piece).err());
            assert_eq!(refused, Some(TooLong));
            assert_eq!(Parser::default().push(&piece.repeat(40)), Err(TooLong), "in one piece it is the same");
        }
    }
}
