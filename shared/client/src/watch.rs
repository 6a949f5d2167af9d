//! The events of a chat, a task or a workspace, also across broken connections.
//!
//! A task of its own reads the stream ahead of its listener, who may stop listening at any time. When the connection breaks, or the hub
//! ends it as it does every quarter of an hour, it is opened again after the last event that was passed on.

use crate::{Client, Connection, Error, Event, Reset};
use futures::{Stream, future::BoxFuture};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

/// The pause before the first attempt to reconnect, beside the one that the hub asks for; it doubles with each attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The most that it becomes.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);
/// How many messages are read ahead.
const AHEAD: usize = 256;

/// A stream of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The events of a chat. Without a cursor they begin at the running turn, or live when none runs.
    Chat {
        /// The chat's workspace.
        workspace: String,
        /// The chat.
        chat: String,
    },
    /// The events of a task. Without a cursor they begin with its first one.
    Task {
        /// The task's workspace.
        workspace: String,
        /// The task.
        task: String,
    },
    /// The changes of a workspace, which come at least once. Without a cursor they begin with the next one.
    Workspace {
        /// The workspace.
        workspace: String,
    },
    /// A path of the hub, such as the `url` of a ticket that somebody else asked for.
    Path(String),
}

impl Source {
    /// Of a chat.
    pub fn chat(workspace: &str, chat: &str) -> Self {
        Self::Chat { workspace: workspace.into(), chat: chat.into() }
    }

    /// Of a task.
    pub fn task(workspace: &str, task: &str) -> Self {
        Self::Task { workspace: workspace.into(), task: task.into() }
    }

    /// Of a workspace.
    pub fn workspace(workspace: &str) -> Self {
        Self::Workspace { workspace: workspace.into() }
    }

    /// The workspace, and what a ticket to it is asked for with.
    fn ticket(&self) -> Option<(&str, Value)> {
        match self {
            Self::Chat { workspace, chat } => Some((workspace, json!({ "chat_id": chat }))),
            Self::Task { workspace, task } => Some((workspace, json!({ "task_id": task }))),
            Self::Workspace { workspace } => Some((workspace, json!({}))),
            Self::Path(_) => None,
        }
    }
}

/// A stream that is about to be watched.
#[derive(Clone)]
#[must_use = "it watches nothing before `start` or `connect`"]
pub struct Watch {
    client: Client,
    source: Source,
    after: Option<u64>,
    patience: Option<Duration>,
    by_ticket: bool,
    tokens: Option<Arc<dyn TokenSource>>,
}

/// The tokens of somebody whose token changes, such as that of a login which is refreshed before it expires.
pub trait TokenSource: Send + Sync {
    /// The token for a request that is sent now; none for an anonymous caller.
    ///
    /// # Errors
    /// [`Error::NoToken`], which says whether to ask again.
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, Error>>;
}

impl Client {
    /// Watches events.
    pub fn watch(&self, source: Source) -> Watch {
        Watch { client: self.clone(), source, after: None, patience: None, by_ticket: false, tokens: None }
    }
}

impl Watch {
    /// Begins after the event with this number; 0 is before the first one.
    pub fn after(self, number: u64) -> Self {
        Self { after: Some(number), ..self }
    }

    /// Gives a lost connection up after this time; without it, never. A first connection that fails is not tried again.
    pub fn give_up_after(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Opens each connection with a new ticket instead of the token: for streams that go another way than the API, past a proxy that
    /// must not see the token or by a redirect to another host, where the token is not sent.
    pub fn by_ticket(self) -> Self {
        Self { by_ticket: true, ..self }
    }

    /// Asks this source for the token of each connection: a stream outlives a token.
    pub fn with_tokens(self, tokens: Arc<dyn TokenSource>) -> Self {
        Self { tokens: Some(tokens), ..self }
    }

    /// The client for a connection that is opened now.
    async fn client(&self) -> Result<Client, Error> {
        match &self.tokens {
            Some(tokens) => self.client.with_token(tokens.token().await?.as_deref()),
            None => Ok(self.client.clone()),
        }
    }

    /// Opens one connection, which is not opened again when it breaks; none when no event will come, because the task has ended.
    ///
    /// # Errors
    /// When it is refused, no hub answers, or there is no token for it.
    pub async fn connect(&self) -> Result<Option<Connection>, Error> {
        let client = self.client().await?;
        let resource = |path: &[&str]| client.resource(Method::GET, path, &[]);
        let mut request = match &self.source {
            source if self.by_ticket => {
                let Some((workspace, wanted)) = source.ticket() else {
                    return Err(Error::Unusable("a path has its ticket in it".into()));
                };
                let made = client.post(&["workspaces", workspace, "stream-tickets"], &wanted).await?;
                let Some(url) = made["url"].as_str() else {
                    return Err(client.foreign("its ticket has no url".into(), None));
                };
                client.http.get(client.address(url))
            }
            Source::Chat { workspace, chat } => resource(&["workspaces", workspace, "chats", chat, "events"]),
            Source::Task { workspace, task } => resource(&["workspaces", workspace, "tasks", task, "events"]),
            Source::Workspace { workspace } => resource(&["workspaces", workspace, "events"]),
            Source::Path(path) => client.signed(client.http.get(client.address(path))),
        };
        if let Some(after) = self.after {
            request = request.header("last-event-id", after);
        }
        client.connect(request).await
    }

    /// Begins, on the tokio runtime that this is called in.
    pub fn start(self) -> Events {
        let (sender, updates) = mpsc::channel(AHEAD);
        let reader = Reader { sender, open: false, lost: false, connected: false, retry: Duration::ZERO, watch: self };
        Events { updates, task: tokio::spawn(reader.run()) }
    }
}

/// The messages of a stream.
#[derive(Debug)]
pub enum Update {
    /// The stream is open, and its place is known: no later event can be missed. Always the first, and once.
    Open,
    /// An event.
    Event(Event),
    /// Events are missing.
    Reset(Reset),
    /// The connection is lost, and the first attempt to get it back failed, too.
    Lost(Error),
    /// It is back.
    Back,
}

/// Events, each connection's after those of the one before. The stream ends after the last event of a task. An error is its last item:
/// the hub refuses, or did not come back in time.
pub struct Events {
    updates: mpsc::Receiver<Result<Update, Error>>,
    task: JoinHandle<()>,
}

impl Events {
    /// The next event alone, a reset among them, without news of the connection; none after the last one. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// When the hub refuses, or did not come back in time.
    pub async fn next_event(&mut self) -> Result<Option<Event>, Error> {
        loop {
            match self.updates.recv().await.transpose()? {
                Some(Update::Event(event)) => return Ok(Some(event)),
                Some(Update::Reset(reset)) => return Ok(Some(reset.into())),
                Some(Update::Open | Update::Lost(_) | Update::Back) => {}
                None => return Ok(None),
            }
        }
    }
}

impl Stream for Events {
    type Item = Result<Update, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.updates.poll_recv(context)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The listener has gone, or the stream has ended.
struct WatchEnd;

struct Reader {
    /// Its `after` is the number of the last event that was passed on, or the place to begin after.
    watch: Watch,
    sender: mpsc::Sender<Result<Update, Error>>,
    /// Whether `Open` was told.
    open: bool,
    /// Whether `Lost` was told, and no `Back` after it.
    lost: bool,
    /// Whether the last attempt reached the stream.
    connected: bool,
    /// The reconnection time of the event stream, which holds until the hub names another one.
    retry: Duration,
}

impl Reader {
    async fn run(mut self) {
        let (mut attempts, mut down_since) = (0_u32, None);
        loop {
            self.connected = false;
            let Ok(failure) = self.read_once().await else { return };
            if self.connected {
                (attempts, down_since) = (0, None);
            }
            let down_for = down_since.get_or_insert_with(Instant::now).elapsed();
            let mut asked = Duration::ZERO;
            if let Some(failure) = failure {
                let is_over = self.watch.patience.is_some_and(|patience| down_for > patience);
                if is_final(&failure) || !self.open || is_over {
                    drop(self.sender.send(Err(failure)).await);
                    return;
                }
                asked = failure.retry_after().unwrap_or_default();
                if !self.connected
                    && !std::mem::replace(&mut self.lost, true)
                    && self.tell(Update::Lost(failure)).await.is_err()
                {
                    return;
                }
            }
            tokio::time::sleep(pause(attempts, self.retry.max(asked))).await;
            attempts += 1;
        }
    }

    /// Reads until the connection ends; gives why, if not in good order.
    async fn read_once(&mut self) -> Result<Option<Error>, WatchEnd> {
        let mut connection = match self.watch.connect().await {
            Ok(Some(connection)) => connection,
            Ok(None) => return Err(WatchEnd),
            Err(failure) => return Ok(Some(failure)),
        };
        self.connected = true;
        if std::mem::take(&mut self.lost) {
            self.tell(Update::Back).await?;
        }
        loop {
            match connection.read_more().await {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(failure) => return Ok(Some(failure)),
            }
            self.retry = connection.retry().unwrap_or(self.retry);
            for event in connection.take() {
                self.pass_on(event).await?;
            }
            // The hub begins with the place that the stream begins after; from here on a broken connection loses nothing.
            if self.watch.after.is_none() {
                self.watch.after = connection.begun();
            }
            if self.watch.after.is_some() {
                self.make_open().await?;
            }
        }
    }

    async fn pass_on(&mut self, event: Event) -> Result<(), WatchEnd> {
        self.make_open().await?;
        match event.reset() {
            Some(reset) => {
                self.watch.after = Some(reset.after);
                self.tell(Update::Reset(reset)).await
            }
            None => {
                // No event of a log is numbered 0: this one has no number, and is no place to resume after.
                self.watch.after = Some(event.id).filter(|id| *id > 0).or(self.watch.after);
                self.tell(Update::Event(event)).await
            }
        }
    }

    async fn make_open(&mut self) -> Result<(), WatchEnd> {
        if std::mem::replace(&mut self.open, true) { Ok(()) } else { self.tell(Update::Open).await }
    }

    async fn tell(&self, update: Update) -> Result<(), WatchEnd> {
        self.sender.send(Ok(update)).await.map_err(|_| WatchEnd)
    }
}

/// The pause after so many attempts without a stream. It is never shorter than `least`, because a hub that shuts down gives each of its streams
/// another time to come back.
fn pause(attempts: u32, least: Duration) -> Duration {
    least.saturating_add((FIRST_PAUSE * 2_u32.pow(attempts.min(8))).min(LONGEST_PAUSE))
}

/// Whether it would be the same again: a hub that says no means it, and an event that is too long stays so.
fn is_final(failure: &Error) -> bool {
    match failure {
        Error::Refused(refusal) => refusal.status < 500 && !failure.is_passing(),
        Error::Foreign { status, .. } => status.is_none(),
        Error::NoToken { is_passing, .. } => !is_passing,
        Error::Unusable(_) | Error::NoTls { .. } => true,
        Error::Unreachable { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_never_shorter_than_the_hub_asks_for() {
        let millis =
            |least: u64| [0, 1, 2, 6, 9].map(|attempts| pause(attempts, Duration::from_millis(least)).as_millis());
        assert_eq!(millis(0), [50, 100, 200, 3000, 3000]);
        assert_eq!(millis(4_500), [4_550, 4_600, 4_700, 7_500, 7_500]);
        assert!(pause(0, Duration::MAX) == Duration::MAX);
    }
}
