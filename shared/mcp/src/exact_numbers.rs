//! Numbers of answers that a double does not hold. The protocol's library reads each number as a 64-bit integer or a double, so these are put
//! into quotes before it reads a message ([`domain::exact_numbers`]).

use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use rmcp::transport::streamable_http_client::SseError;
use serde::Deserialize;
use serde_json::value::RawValue;
use sse_stream::Sse;
use std::{
    borrow::Cow,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, ReadBuf};

/// The mark of a message with data.
const DATA: &str = "\"structuredContent\"";
/// The bytes that are read at once.
const PIECE: usize = 8 * 1024;

/// A message, in whose data each number that would change stands as a text; none where nothing changes. All beside the data stays as it is: the
/// protocol has numbers of its own there, which no text stands for.
pub(crate) fn kept(message: &str) -> Option<String> {
    let data = data_of(message)?;
    let Cow::Owned(exact) = domain::exact_numbers::quoted(data) else { return None };
    let begin = data.as_ptr().addr().checked_sub(message.as_ptr().addr())?;
    Some([message.get(..begin)?, &exact, message.get(begin + data.len()..)?].concat())
}

/// The data of the answer of a tool, where they are in its message.
fn data_of(message: &str) -> Option<&str> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        result: Option<Answer<'a>>,
    }
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow, rename = "structuredContent")]
        data: Option<&'a RawValue>,
    }
    if !message.contains(DATA) {
        return None;
    }
    let message: Message<'_> = serde_json::from_str(message).ok()?;
    Some(message.result?.data?.get())
}

/// Events that carry messages, as [`kept`] gives these.
pub(crate) fn events(events: BoxStream<'static, Result<Sse, SseError>>) -> BoxStream<'static, Result<Sse, SseError>> {
    let exact = |message: String| kept(&message).unwrap_or(message);
    events.map_ok(move |event| Sse { data: event.data.map(exact), ..event }).boxed()
}

/// Reads lines of messages, as [`kept`] gives these.
pub(crate) struct ExactLines<R> {
    inner: R,
    /// The longest line that is looked at; a longer one passes as it comes, and is refused behind this.
    longest: usize,
    /// The beginning of a line that is not whole yet.
    line: Vec<u8>,
    /// Bytes to be read, those before `at` were.
    ready: Vec<u8>,
    at: usize,
}

impl<R> ExactLines<R> {
    /// Of lines with so many bytes at most.
    pub fn new(inner: R, longest: usize) -> Self {
        Self { inner, longest, line: Vec::new(), ready: Vec::new(), at: 0 }
    }

    /// Takes in the bytes that came; what is whole of them can be read.
    fn take(&mut self, piece: &[u8]) {
        let before = self.line.len();
        self.line.extend_from_slice(piece);
        let Some(end) = piece.iter().rposition(|byte| *byte == b'\n') else {
            if self.line.len() > self.longest {
                self.ready = std::mem::take(&mut self.line);
            }
            return;
        };
        let rest = self.line.split_off(before + end + 1);
        let lines = std::mem::replace(&mut self.line, rest);
        let text = std::str::from_utf8(&lines).ok().filter(|text| text.contains(DATA));
        let exact = text.map(|text| {
            let exact = text.split_inclusive('\n').map(|line| kept(line).map_or(Cow::Borrowed(line), Cow::Owned));
            exact.collect::<String>()
        });
        self.ready = exact.map_or(lines, String::into_bytes);
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ExactLines<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let rest = this.ready.get(this.at..).unwrap_or_default();
            if !rest.is_empty() {
                let length = rest.len().min(into.remaining());
                into.put_slice(rest.get(..length).unwrap_or_default());
                this.at += length;
                return Poll::Ready(Ok(()));
            }
            (this.ready, this.at) = (Vec::new(), 0);
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut piece))?;
            match piece.filled() {
                // The end. A line without an end is no message.
                [] if this.line.is_empty() => return Poll::Ready(Ok(())),
                [] => this.ready = std::mem::take(&mut this.line),
                filled => this.take(filled),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const NUMBER: &str = "12345678901234567890123";

    async fn read(came: &[u8], longest: usize) -> String {
        let (mut there, here) = tokio::io::duplex(PIECE / 3);
        let came = came.to_vec();
        tokio::spawn(async move { there.write_all(&came).await });
        let mut text = String::new();
        ExactLines::new(here, longest).read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn lines_with_data_keep_their_numbers_however_they_come() {
        let schema = format!("{{\"result\":{{\"tools\":[{{\"maximum\":{NUMBER}}}]}}}}\n");
        let odd = "{\"structuredContent\": \"an open text\n";
        let data =
            |number: &str| format!("{{\"result\":{{\"text\":\"{}\",{DATA}:[{number},7]}}}}\r\n", "é".repeat(PIECE));
        let came = [schema.as_str(), odd, &data(NUMBER), &schema, "{\"end"].concat();
        let expected = [schema.as_str(), odd, &data(&format!("\"{NUMBER}\"")), &schema, "{\"end"].concat();
        assert_eq!(read(came.as_bytes(), 1 << 20).await, expected);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_passes_as_it_came() {
        let long = format!("{{\"result\":{{{DATA}:[{}{NUMBER}]}}}}\n", " ".repeat(2 * PIECE));
        let next = format!("{{\"result\":{{{DATA}:{NUMBER}}}}}\n");
        let expected = [long.as_str(), &next.replace(NUMBER, &format!("\"{NUMBER}\""))].concat();
        assert_eq!(read([long.as_str(), &next].concat().as_bytes(), PIECE / 2).await, expected);
    }

    #[test]
    fn numbers_beside_the_data_stay_numbers() {
        let of = |data: &str| {
            // A double that was written with 17 digits.
            let content = "[{\"type\":\"text\",\"text\":\"t\",\"annotations\":{\"priority\":0.10000000000000001}}]";
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"content\":{content}, {DATA} : {data} }}}}")
        };
        let (data, exact) = ("{\"n\":[1e400, 7, \"7\"]}", "{\"n\":[\"1e400\", 7, \"7\"]}");
        assert_eq!(kept(&of(data)), Some(of(exact)));
        let is_read = |message: &str| serde_json::from_str::<rmcp::model::ServerJsonRpcMessage>(message).is_ok();
        assert!(is_read(&of(exact)));
        for other in [of("7"), of("null"), of("\"1e400\""), of(data).replace("result", "params"), of("[1e400,]")] {
            assert_eq!(kept(&other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn events_keep_their_numbers_and_their_ids() {
        let message = format!("{{\"result\":{{{DATA}:{NUMBER}}}}}");
        let event = Sse { id: Some(NUMBER.into()), data: Some(message.clone()), ..Sse::default() };
        let came = events(futures::stream::iter([Ok(event)]).boxed()).next().await.unwrap().unwrap();
        let quoted = message.replace(NUMBER, &format!("\"{NUMBER}\""));
        assert_eq!((came.id, came.data), (Some(NUMBER.to_owned()), Some(quoted)));
    }
}
