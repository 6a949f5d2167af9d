//! The events of a chat or a task, each once and in order, also across broken connections.
//!
//! A task of its own reads the stream, so that a listener may stop waiting at any time. When the stream breaks, it is opened again after the last
//! event that was passed on.

use crate::{
    client::Client,
    failure::Failure,
    sse::{Frame, Parser},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

/// The pause before the first attempt to reconnect; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause, unless the hub asks for a shorter one.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// One event of a chat or a task.
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

/// The messages of a follower.
#[derive(Debug)]
pub(crate) enum Told {
    /// The stream is open, and its place is known: no later event can be missed. Always the first.
    Ready,
    /// An event.
    Event(Event),
    /// The connection is lost, and the first attempt to get it back failed, too.
    Lost(Failure),
    /// It is back.
    Back,
    /// There is nothing more: the task has ended, and its last event came before.
    Ended,
    /// It is over: the hub refuses, or does not come back.
    Over(Failure),
}

/// Hears the events of a chat or a task.
pub(crate) struct Follower {
    told: mpsc::Receiver<Told>,
    task: JoinHandle<()>,
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
        Self::of(client, ["workspaces", workspace, "chats", chat, "events"], after, patience)
    }

    /// Follows the task after the event numbered `after`; without it, from its beginning.
    pub(crate) fn of_task(
        client: Client,
        workspace: &str,
        task: &str,
        after: Option<u64>,
        patience: Option<Duration>,
    ) -> Self {
        Self::of(client, ["workspaces", workspace, "tasks", task, "events"], after, patience)
    }

    fn of(client: Client, path: [&str; 5], after: Option<u64>, patience: Option<Duration>) -> Self {
        let (sender, told) = mpsc::channel(256);
        let path = path.map(str::to_owned);
        let reader =
            Reader { client, path, sender, last: after, ready: false, lost: false, opened: false, retry: None };
        Self { told, task: tokio::spawn(reader.run(patience)) }
    }

    /// The next message. May be dropped at any time without losing anything.
    pub(crate) async fn next(&mut self) -> Told {
        match self.told.recv().await {
            Some(told) => told,
            None => std::future::pending().await, // after `Ended` and `Over` there is nothing more
        }
    }

    /// Waits until the stream is open.
    pub(crate) async fn ready(&mut self) -> Result<(), Failure> {
        match self.next().await {
            Told::Over(failure) => Err(failure),
            _ => Ok(()),
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The listener has gone, or the stream has ended.
struct Unheard;

struct Reader {
    client: Client,
    path: [String; 5],
    sender: mpsc::Sender<Told>,
    /// The number of the last event that was passed on, or the place to begin after.
    last: Option<u64>,
    /// Whether `Ready` was told.
    ready: bool,
    /// Whether `Lost` was told, and no `Back` after it.
    lost: bool,
    /// Whether the last attempt reached the hub.
    opened: bool,
    /// The longest pause that the hub asked for.
    retry: Option<Duration>,
}

impl Reader {
    async fn run(mut self, patience: Option<Duration>) {
        let (mut attempts, mut down_since) = (0_u32, None);
        loop {
            self.opened = false;
            let Ok(failure) = self.read_once().await else { return };
            if self.opened {
                (attempts, down_since) = (0, None);
            }
            let down_for = down_since.get_or_insert_with(Instant::now).elapsed();
            if let Some(failure) = failure {
                // A hub that says no means it, and one that was never reached is not waited for.
                let refused = matches!(&failure, Failure::Refused(refusal) if refusal.status < 500);
                if refused || !self.ready || patience.is_some_and(|patience| down_for > patience) {
                    let _ = self.sender.send(Told::Over(failure)).await;
                    return;
                }
                if !self.opened
                    && !std::mem::replace(&mut self.lost, true)
                    && self.tell(Told::Lost(failure)).await.is_err()
                {
                    return;
                }
            }
            let longest = self.retry.unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE);
            tokio::time::sleep((FIRST_PAUSE * 2_u32.pow(attempts.min(8))).min(longest)).await;
            attempts += 1;
        }
    }

    /// Reads until the stream ends; gives why, if not in good order.
    async fn read_once(&mut self) -> Result<Option<Failure>, Unheard> {
        let path = self.path.each_ref().map(String::as_str);
        let mut response = match self.client.events(&path, self.last).await {
            Ok(Some(response)) => response,
            Ok(None) => {
                self.tell(Told::Ended).await?;
                return Err(Unheard);
            }
            Err(failure) => return Ok(Some(failure)),
        };
        self.opened = true;
        if std::mem::take(&mut self.lost) {
            self.tell(Told::Back).await?;
        }
        let mut parser = Parser::default();
        loop {
            let bytes = match response.chunk().await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(None),
                Err(error) => return Ok(Some(self.client.broken(&error))),
            };
            let frames = match parser.push(&bytes) {
                Ok(frames) => frames,
                Err(error) => {
                    let (url, reason) = (self.path.join("/"), error.to_string());
                    return Ok(Some(Failure::Foreign { url, reason }));
                }
            };
            self.retry = parser.retry().or(self.retry);
            for frame in frames {
                self.pass_on(frame).await?;
            }
            // The hub opens with the place that the stream begins after; from here on a broken stream loses nothing.
            if self.last.is_none() {
                self.last = parser.last_id().parse().ok();
            }
            if self.last.is_some() {
                self.make_ready().await?;
            }
        }
    }

    async fn pass_on(&mut self, frame: Frame) -> Result<(), Unheard> {
        let number = frame.id.parse::<u64>().ok();
        // A reset says that our place means nothing there: its number is the new one, and may be lower.
        let seen = number.is_some() && number <= self.last && frame.event != "reset";
        if seen {
            return Ok(());
        }
        self.make_ready().await?;
        self.last = number.or(self.last);
        let data = serde_json::from_str(&frame.data).unwrap_or(Value::String(frame.data));
        self.tell(Told::Event(Event { number, name: frame.event, data })).await
    }

    async fn make_ready(&mut self) -> Result<(), Unheard> {
        if std::mem::replace(&mut self.ready, true) { Ok(()) } else { self.tell(Told::Ready).await }
    }

    async fn tell(&self, told: Told) -> Result<(), Unheard> {
        self.sender.send(told).await.map_err(|_| Unheard)
    }
}
