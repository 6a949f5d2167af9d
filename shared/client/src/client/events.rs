//! One connection to an event stream: bytes in, events out.

use crate::{Client, Error, Parser};
use reqwest::Response;
use serde_json::{Value, json};
use std::{collections::VecDeque, time::Duration};

/// One event of a chat, a task or a workspace.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number in the chat's or the task's log; for a workspace a cursor, which events may share. It is the place to resume after.
    pub id: u64,
    /// Its type.
    pub name: String,
    /// Its data. A text that is no JSON, which no hub sends, is a JSON text.
    pub data: Value,
}

impl Event {
    /// The reset that it tells of, if it is one.
    pub fn reset(&self) -> Option<Reset> {
        let reason = || self.data["reason"].as_str().unwrap_or_default().to_owned();
        (self.name == "reset")
            .then(|| Reset { reason: reason(), after: self.data["after"].as_u64().unwrap_or(self.id) })
    }
}

/// The place to resume after means nothing to the hub: events between it and the new place are lost to this client, which should read
/// the resource again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// `unknown_cursor` or `cursor_too_old`.
    pub reason: String,
    /// The number after which the stream goes on.
    pub after: u64,
}

impl From<Reset> for Event {
    fn from(reset: Reset) -> Self {
        let Reset { reason, after } = reset;
        Self { id: after, name: "reset".into(), data: json!({ "reason": reason, "after": after }) }
    }
}

/// One connection's events. It is not opened again when it breaks; [`Client::watch`] does that.
pub struct Connection {
    response: Response,
    client: Client,
    parser: Parser,
    read: VecDeque<Event>,
}

impl Connection {
    pub(crate) fn new(response: Response, client: Client) -> Self {
        Self { response, client, parser: Parser::default(), read: VecDeque::new() }
    }

    /// The next event; none when the hub ends the stream. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When the connection breaks, or something comes that is no event.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.read.pop_front() {
                return Ok(Some(event));
            }
            if !self.read_more().await? {
                return Ok(None);
            }
        }
    }

    /// The number after which the stream begins: from here on a client that reconnects misses nothing. None when the stream ends before
    /// it says so.
    ///
    /// # Errors
    /// When the connection breaks before.
    pub async fn begins_after(&mut self) -> Result<Option<u64>, Error> {
        while self.begun().is_none() {
            if !self.read_more().await? {
                break;
            }
        }
        Ok(self.begun())
    }

    /// The same, as far as it is known.
    pub(crate) fn begun(&self) -> Option<u64> {
        self.parser.first_id()?.parse().ok()
    }

    /// How long the hub wants clients to wait before they come back.
    pub fn retry(&self) -> Option<Duration> {
        self.parser.retry()
    }

    /// The events that were read and not taken.
    pub(crate) fn take(&mut self) -> VecDeque<Event> {
        std::mem::take(&mut self.read)
    }

    /// Waits for more bytes; false when there are none.
    pub(crate) async fn read_more(&mut self) -> Result<bool, Error> {
        let Some(bytes) = self.response.chunk().await.map_err(|error| self.client.broken(&error))? else {
            return Ok(false);
        };
        let frames = self.parser.push(&bytes).map_err(|error| self.client.foreign(error.to_string(), None))?;
        self.read.extend(frames.into_iter().map(|frame| Event {
            id: frame.id.parse().unwrap_or_default(),
            name: frame.event,
            data: serde_json::from_str(&frame.data).unwrap_or(Value::String(frame.data)),
        }));
        Ok(true)
    }
}
