//! How an event stream leaves hyper.
//!
//! hyper keeps two buffers of 8 KiB and a few KiB of state a connection: right for requests, wasteful for ten thousand
//! streams that are silent most of the time. So the response of [`crate::events`] carries its subscription as an
//! extension. `serve` takes it out, keeps hyper from answering, takes the socket back, writes the head itself, and lets a
//! [`crate::pump::Pump`] go on. Without `serve` around it (tests, another server), the response's body does the same work.

use crate::subscription::Subscription;
use http::{HeaderName, header, response::Parts};
use parking_lot::Mutex;
use ports::Clock;
use std::{fmt, io::Write, sync::Arc};

/// The subscription of a response: the first taker writes it.
#[derive(Clone)]
pub(crate) struct Handover(Arc<Mutex<Option<Subscription>>>);

impl Handover {
    pub(crate) fn new(subscription: Subscription) -> Self {
        Self(Arc::new(Mutex::new(Some(subscription))))
    }

    pub(crate) fn take(&self) -> Option<Subscription> {
        self.0.lock().take()
    }

    pub(crate) fn with<T>(&self, poll: impl FnOnce(&mut Subscription) -> T) -> Option<T> {
        self.0.lock().as_mut().map(poll)
    }
}

impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handover")
    }
}

/// The head of a response whose body ends with the connection. That is the plainest framing (RFC 9112 §6.3), and as good as any for an
/// event stream: a client comes back with its cursor however the stream ended.
pub(crate) fn head(parts: &Parts, clock: &dyn Clock) -> Vec<u8> {
    const FRAMING: [HeaderName; 4] =
        [header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::DATE];
    let mut out = Vec::with_capacity(512);
    let status = parts.status;
    // Writing to memory does not fail.
    let _ = write!(out, "HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or_default());
    for (name, value) in parts.headers.iter().filter(|(name, _)| !FRAMING.contains(name)) {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    let now = jiff::Timestamp::from_millisecond(clock.now().as_millis()).unwrap_or_default();
    let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap_or_default();
    let _ = write!(out, "date: {date}\r\nconnection: close\r\n\r\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stopped;

    impl Clock for Stopped {
        fn now(&self) -> domain::Timestamp {
            domain::Timestamp::from_millis(784_111_777_000)
        }
        fn id(&self) -> uuid::Uuid {
            uuid::Uuid::nil()
        }
    }

    #[test]
    fn a_head_keeps_the_headers_and_brings_its_own_framing() -> http::Result<()> {
        let response = http::Response::builder().header("x-request-id", "7").header("content-length", "9").body(())?;
        let head = head(&response.into_parts().0, &Stopped);
        let expected =
            "HTTP/1.1 200 OK\r\nx-request-id: 7\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\nconnection: close\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&head), expected);
        Ok(())
    }
}
