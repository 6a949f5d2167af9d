//! Event streams, as a browser reads them.

use crate::{Client, PATIENCE, Result, client::PAUSE};
use futures::StreamExt;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::{sync::watch, task::JoinHandle};

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number.
    pub id: u64,
    /// Its type.
    pub name: String,
    /// Its data.
    pub data: Value,
}

/// How many of them have this name.
pub fn count(events: &[Event], name: &str) -> usize {
    events.iter().filter(|event| event.name == name).count()
}

/// The event stream format, as far as it is used.
#[derive(Default)]
pub(crate) struct Parser {
    text: Vec<u8>,
}

impl Parser {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.text.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.text.windows(2).position(|pair| pair == b"\n\n") {
            let frame: Vec<u8> = self.text.drain(..end + 2).collect();
            let frame = String::from_utf8_lossy(&frame);
            let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            if let (Some(id), Some(name), Some(data)) = (field("id:"), field("event:"), field("data:")) {
                let data = serde_json::from_str(data).unwrap_or(Value::Null);
                events.push(Event { id: id.parse().unwrap_or(0), name: name.into(), data });
            }
        }
        events
    }
}

/// One connection's events. It is not opened again when it breaks.
pub struct OneStream {
    answer: reqwest::Response,
    parser: Parser,
    seen: Vec<Event>,
}

impl OneStream {
    pub(crate) fn of(answer: reqwest::Response) -> Self {
        Self { answer, parser: Parser::default(), seen: Vec::new() }
    }

    /// The cursor that the stream begins at.
    ///
    /// # Errors
    /// When the stream ends before it says so.
    pub async fn cursor(mut self) -> Result<u64> {
        let reading = async {
            let mut text = String::new();
            loop {
                text.push_str(&String::from_utf8_lossy(&self.answer.chunk().await?.ok_or("the stream ended")?));
                if let Some((_, rest)) = text.split_once("id: ")
                    && let Some((id, _)) = rest.split_once('\n')
                {
                    return Ok(id.trim().parse()?);
                }
            }
        };
        tokio::time::timeout(PATIENCE, reading).await?
    }

    /// Reads on until the seen events fit, and returns all of them.
    ///
    /// # Errors
    /// When the stream ends before.
    pub async fn until(mut self, fits: impl Fn(&[Event]) -> bool) -> Result<Vec<Event>> {
        let reading = async {
            while !fits(&self.seen) {
                let bytes = self.answer.chunk().await?.ok_or("the stream ended")?;
                self.seen.extend(self.parser.push(&bytes));
            }
            Ok(())
        };
        match tokio::time::timeout(PATIENCE, reading).await {
            Ok(read) => read.map(|()| self.seen),
            Err(_) => Err(format!("it did not come: {:#?}", self.seen).into()),
        }
    }

    /// Reads on until an event of this name has come, and returns the events up to it.
    ///
    /// # Errors
    /// When the stream ends before.
    pub async fn until_event(self, name: &str) -> Result<Vec<Event>> {
        let mut seen = self.until(|seen| seen.iter().any(|event| event.name == name)).await?;
        let end = seen.iter().position(|event| event.name == name).map_or(seen.len(), |at| at + 1);
        seen.truncate(end);
        Ok(seen)
    }
}

/// The events of a stream that is opened again whenever it breaks, after the last event that was seen.
pub struct Watch {
    seen: Arc<Mutex<Vec<Event>>>,
    heard: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watch {
    pub(crate) fn start(client: Client, path: String, after: u64) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (news, heard) = watch::channel(0);
        let task = tokio::spawn(follow(client, path, after, seen.clone(), news));
        Self { seen, heard, task }
    }

    /// All of it so far.
    pub fn events(&self) -> Vec<Event> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the seen events fit.
    ///
    /// # Errors
    /// When they do not come.
    pub async fn until(&self, fits: impl Fn(&[Event]) -> bool) -> Result {
        let mut heard = self.heard.clone();
        let waiting = async {
            while !fits(&self.events()) {
                heard.changed().await?;
            }
            Ok(())
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| Err(format!("it did not come: {:#?}", self.events()).into()))
    }

    /// Waits for the first event of this name.
    ///
    /// # Errors
    /// When it does not come.
    pub async fn until_event(&self, name: &str) -> Result<Event> {
        self.until(|events| events.iter().any(|event| event.name == name)).await?;
        self.events().into_iter().find(|event| event.name == name).ok_or_else(|| "gone".into())
    }

    /// Waits until so many events of this name have come, and returns the last of them.
    ///
    /// # Errors
    /// When they do not come.
    pub async fn until_nth(&self, name: &str, n: usize) -> Result<Event> {
        self.until(|events| count(events, name) >= n).await?;
        self.events().into_iter().filter(|event| event.name == name).nth(n - 1).ok_or_else(|| "gone".into())
    }
}

async fn follow(client: Client, path: String, after: u64, seen: Arc<Mutex<Vec<Event>>>, news: watch::Sender<usize>) {
    let lock = || seen.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let last = lock().last().map_or(after, |event: &Event| event.id);
        let request = client.request(reqwest::Method::GET, &path).header("last-event-id", last.to_string());
        if let Ok(answer) = request.send().await.and_then(reqwest::Response::error_for_status) {
            let mut parser = Parser::default();
            let mut body = answer.bytes_stream();
            while let Some(Ok(bytes)) = body.next().await {
                for event in parser.push(&bytes) {
                    let mut seen = lock();
                    seen.push(event);
                    news.send_replace(seen.len());
                }
            }
        }
        // poll: the condition is in another process, which does not notify this one
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let text = b": hello\n\nretry: 1000\n\nid: 3\nevent: chunk\ndata: {\"text\":\"\xc3\xa9\"}\n\nid: 4\nevent: done\ndata: {}\n\n";
        for size in [1, 7, text.len()] {
            let mut parser = Parser::default();
            let events: Vec<Event> = text.chunks(size).flat_map(|piece| parser.push(piece)).collect();
            let told: Vec<_> = events.iter().map(|event| (event.id, event.name.as_str(), &event.data)).collect();
            assert_eq!(told, [(3, "chunk", &json!({ "text": "é" })), (4, "done", &json!({}))]);
        }
    }
}
