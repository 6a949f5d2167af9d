//! Server-sent events, as <https://html.spec.whatwg.org/multipage/server-sent-events.html> parses them, from bytes that are cut
//! anywhere.
//!
//! It also accepts streams of servers that omit parts of the standard: events that no empty line ends, at the end of the body or after a
//! whole JSON object, and a line that is such an object without `data:` before it.

use super::Event;
use serde::de::IgnoredAny;

/// Turns bytes into events.
#[derive(Default)]
pub(super) struct Reader {
    line: Vec<u8>,
    /// The last byte ended a line as a carriage return: a line feed right after it belongs to it, in whichever packet it comes.
    after_return: bool,
    /// The first line is over, so no byte order mark can follow.
    begun: bool,
    name: String,
    data: Option<String>,
    /// Whether the data is one line that may be a whole event. It is looked at once: a look after each of many lines would cost the square of
    /// their length.
    may_be_whole: bool,
}

impl Reader {
    pub fn push(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                self.line.extend_from_slice(bytes);
                return;
            };
            self.line.extend_from_slice(&bytes[..end]);
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.take_line(events);
        }
    }

    /// Nothing more comes.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        self.take_line(events);
        self.dispatch(events);
    }

    fn take_line(&mut self, events: &mut Vec<Event>) {
        let line = std::mem::take(&mut self.line);
        let line = match line.strip_prefix(b"\xEF\xBB\xBF") {
            Some(rest) if !self.begun => rest,
            _ => &line,
        };
        self.begun = true;
        if line.is_empty() {
            return self.dispatch(events);
        }
        if line.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(line).is_ok() {
            self.dispatch(events);
            events.push(Event { name: String::new(), data: String::from_utf8_lossy(line).into_owned() });
            return;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        let field = &line[..colon];
        if matches!(field, b"data" | b"event") {
            // A JSON object is a whole event: the server left out the empty line after it.
            let is_whole = |data: &String| data.starts_with('{') && serde_json::from_str::<IgnoredAny>(data).is_ok();
            if std::mem::take(&mut self.may_be_whole) && self.data.as_ref().is_some_and(is_whole) {
                self.dispatch(events);
            }
        }
        match field {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(&value);
                }
                data => {
                    *data = Some(value.into_owned());
                    self.may_be_whole = true;
                }
            },
            b"event" => self.name = value.into_owned(),
            // Comments, which have nothing before the colon, and the fields for clients that connect again.
            _ => {}
        }
    }

    fn dispatch(&mut self, events: &mut Vec<Event>) {
        let name = std::mem::take(&mut self.name);
        if let Some(data) = self.data.take() {
            events.push(Event { name, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(packets: &[&[u8]]) -> Vec<(String, String)> {
        let (mut reader, mut events) = (Reader::default(), Vec::new());
        for packet in packets {
            reader.push(packet, &mut events);
        }
        reader.end(&mut events);
        events.into_iter().map(|event| (event.name, event.data)).collect()
    }

    #[test]
    fn an_event_of_many_lines_costs_its_length_once() {
        const LINES: usize = 200_000;
        let body = "event: a\ndata: \"key\": \"a value that is somewhat long\",\n".repeat(LINES);
        let read = read(&[format!("data: {{\n{body}data: \"end\": 1}}\n\n").as_bytes()]);
        assert_eq!(read.iter().map(|(_, data)| data.lines().count()).collect::<Vec<_>>(), [LINES + 2]);
    }

    #[test]
    fn events_are_the_same_however_their_bytes_are_cut_and_their_lines_end() {
        let text = "\u{feff}: hello\nevent: a\ndata: {\"x\": \"ä\"}\n\ndata:1\ndata\ndata:  2\nid: 7\nretry: 9\n\nevent: lost\n\n{\"bare\": 1}\nevent: b\ndata: {\"joined\": 1}\nevent: c\ndata: end";
        let expected =
            [("a", "{\"x\": \"ä\"}"), ("", "1\n\n 2"), ("", "{\"bare\": 1}"), ("b", "{\"joined\": 1}"), ("c", "end")];
        let expected = expected.map(|(name, data)| (name.to_owned(), data.to_owned()));
        for ending in ["\n", "\r\n", "\r"] {
            let bytes = text.replace('\n', ending).into_bytes();
            assert_eq!(read(&[&bytes]), expected);
            for cut in 0..bytes.len() {
                assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]), expected, "cut at {cut}");
            }
            assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()), expected);
        }
    }
}
