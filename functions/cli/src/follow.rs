//! The events of a chat or a task, each once and in order, also across broken connections.

use crate::{client::Client, failure::CliError};
use ::client::{Events, Source, Update};
use futures::StreamExt;
use serde_json::{Value, json};
use std::time::Duration;

/// One event of a chat or a task, or one that a command makes of their state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// Its number in the chat's or the task's log.
    pub(crate) number: Option<u64>,
    /// Its type.
    pub(crate) name: String,
    /// Its data, as JSON.
    pub(crate) data: Value,
}

impl Event {
    /// For programs: one object.
    pub(crate) fn json(&self) -> Value {
        json!({ "id": self.number, "event": self.name, "data": self.data })
    }
}

impl From<::client::Event> for Event {
    fn from(::client::Event { id, name, data }: ::client::Event) -> Self {
        Self { number: Some(id), name, data }
    }
}

/// The messages of a follower.
#[derive(Debug)]
pub(crate) enum FollowerNews {
    /// The stream is open, and its place is known: no later event can be missed. Always the first.
    Ready,
    /// An event; `reset` is one, too.
    Event(Event),
    /// The connection is lost, and the first attempt to get it back failed, too.
    Lost(CliError),
    /// It is back.
    Back,
    /// There is nothing more: the task has ended, and its last event came before.
    Ended,
    /// It is over: the hub refuses, or does not come back.
    Over(CliError),
}

/// Hears the events of a chat or a task.
pub(crate) struct Follower {
    client: Client,
    source: Source,
    after: Option<u64>,
    patience: Option<Duration>,
    /// None until the first look: a task of tokio reads them.
    events: Option<Events>,
    /// Whether `Ended` or `Over` was told.
    ended: bool,
}

impl Follower {
    /// Follows the chat after the event numbered `after`; without it, from the start of the running turn, else from now
    /// on. A lost connection is given up after `patience`; without it, never.
    pub(crate) fn new(
        client: Client,
        workspace: &str,
        chat: &str,
        after: Option<u64>,
        patience: Option<Duration>,
    ) -> Self {
        Self::of(client, Source::chat(workspace, chat), after, patience)
    }

    /// Follows the task after the event numbered `after`; without it, from its beginning.
    pub(crate) fn of_task(
        client: Client,
        workspace: &str,
        task: &str,
        after: Option<u64>,
        patience: Option<Duration>,
    ) -> Self {
        Self::of(client, Source::task(workspace, task), after, patience)
    }

    fn of(client: Client, source: Source, after: Option<u64>, patience: Option<Duration>) -> Self {
        Self { client, source, after, patience, events: None, ended: false }
    }

    fn start(&self) -> Events {
        let mut watch = self.client.watch(self.source.clone());
        if let Some(after) = self.after {
            watch = watch.after(after);
        }
        if let Some(patience) = self.patience {
            watch = watch.give_up_after(patience);
        }
        watch.start()
    }

    /// The next message. May be dropped at any time without losing anything.
    pub(crate) async fn next(&mut self) -> FollowerNews {
        if self.ended {
            return std::future::pending().await; // there is nothing more
        }
        if self.events.is_none() {
            self.events = Some(self.start());
        }
        let Some(events) = &mut self.events else { return FollowerNews::Ended };
        let update = events.next().await;
        self.ended = matches!(update, None | Some(Err(_)));
        match update {
            Some(Ok(Update::Open)) => FollowerNews::Ready,
            Some(Ok(Update::Event(event))) => FollowerNews::Event(event.into()),
            Some(Ok(Update::Reset(reset))) => FollowerNews::Event(::client::Event::from(reset).into()),
            Some(Ok(Update::Lost(error))) => FollowerNews::Lost(error.into()),
            Some(Ok(Update::Back)) => FollowerNews::Back,
            Some(Err(error)) => FollowerNews::Over(error.into()),
            None => FollowerNews::Ended,
        }
    }

    /// Waits until the stream is open.
    pub(crate) async fn ready(&mut self) -> Result<(), CliError> {
        match self.next().await {
            FollowerNews::Over(failure) => Err(failure),
            _ => Ok(()),
        }
    }
}
