//! Event streams, and waiting for what they tell.

use crate::{
    PATIENCE, Result,
    client::{PAUSE, wait},
};
use ::client::{Connection, Event, Update};
use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use tokio::{sync::watch, task::JoinHandle};

/// How many of them have this name.
pub fn count(events: &[Event], name: &str) -> usize {
    events.iter().filter(|event| event.name == name).count()
}

/// The calls that were answered, each with its answer, in the order of the answers.
///
/// # Errors
/// When an answer is to no call, or to one that has its answer.
pub fn answered(events: &[Event]) -> Result<Vec<(&Value, &Value)>> {
    let (mut calls, mut answered) = (BTreeMap::new(), Vec::new());
    for event in events {
        let id = event.data["call_id"].as_str().unwrap_or_default();
        if event.name == "call" {
            calls.insert(id, &event.data);
        } else if event.name == "observation" {
            let call = calls.remove(id).ok_or_else(|| format!("an answer without its call: {event:?}"))?;
            answered.push((call, &event.data));
        }
    }
    Ok(answered)
}

/// One connection's events. It is not opened again when it breaks.
pub struct OneStream {
    connection: Connection,
    seen: Vec<Event>,
}

impl OneStream {
    pub(crate) fn of(connection: Connection) -> Self {
        Self { connection, seen: Vec::new() }
    }

    /// The cursor that the stream begins at.
    ///
    /// # Errors
    /// When the stream ends before it says so.
    pub async fn cursor(mut self) -> Result<u64> {
        let begins = tokio::time::timeout(PATIENCE, self.connection.begins_after()).await??;
        begins.ok_or_else(|| "the stream ended".into())
    }

    /// Reads on until the seen events fit, and returns all of them.
    ///
    /// # Errors
    /// When the stream ends before.
    pub async fn until(mut self, fits: impl Fn(&[Event]) -> bool) -> Result<Vec<Event>> {
        let reading = async {
            while !fits(&self.seen) {
                self.seen.push(self.connection.next().await?.ok_or("the stream ended")?);
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
    pub(crate) fn start(watch: ::client::Watch, after: u64) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (news, heard) = watch::channel(0);
        let task = tokio::spawn(follow(watch, after, seen.clone(), news));
        Self { seen, heard, task }
    }

    /// All of it so far.
    pub fn events(&self) -> Vec<Event> {
        self.seen.lock().clone()
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

/// Reads on whatever happens: a server that refuses now, because it has just been killed, may not refuse a moment later. A task that has ended is asked
/// for more, too, and answers at once that there is nothing: so each attempt that brings nothing waits longer.
async fn follow(watch: ::client::Watch, after: u64, seen: Arc<Mutex<Vec<Event>>>, news: watch::Sender<usize>) {
    let lock = || seen.lock();
    let mut pause = PAUSE;
    loop {
        let before = lock().len();
        let last = lock().last().map_or(after, |event: &Event| event.id);
        let mut events = watch.clone().after(last).start();
        while let Some(Ok(update)) = events.next().await {
            let event = match update {
                Update::Event(event) => event,
                Update::Reset(reset) => reset.into(),
                Update::Open | Update::Lost(_) | Update::Back => continue,
            };
            let mut seen = lock();
            seen.push(event);
            news.send_replace(seen.len());
        }
        if lock().len() > before {
            pause = PAUSE;
        }
        wait(&mut pause).await;
    }
}
