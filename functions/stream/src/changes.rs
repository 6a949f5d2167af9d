//! The stream of a workspace's changes: of its files, and of the state of its chats and tasks.
//!
//! There is no log of a workspace with numbers of its own: all writers of a workspace would compete for the next number. So this
//! stream reads what each commit writes anyway, and differs from the streams of actors in its promise:
//!
//! - **At least once, and in the order of arrival.** `id:` is a time in milliseconds. A stream that resumes begins a little before
//!   its cursor, since a change may be committed later than one with a younger id. A client may see those changes again.
//! - **The present state counts.** Chats and tasks are told by their state, and a state that was replaced meanwhile is not told.
//! - **The bus may lose anything.** At a beat the records and the lists are compared with what the stream has told.
//! - **A presence is of its connection.** It comes by the bus alone, and ends by itself (`presence.rs`).
//!
//! Each watcher reads for itself, at the pace of its client.

use crate::{
    Cursor, Feeds, frame,
    metrics::{Metrics, count},
    presence::Presences,
    respond,
    wakeups::{Wakeup, Wakeups},
};
use async_trait::async_trait;
use axum::{body::Body, response::Response};
use bytes::{Bytes, BytesMut};
use domain::{Announced, Timestamp, WorkspaceEvent};
use futures::{Stream, StreamExt, stream};
use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    convert::Infallible,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use uuid::Uuid;

/// The most states of chats and tasks that a stream remembers. Above that it forgets those that are on no list, and may tell
/// them again.
const REMEMBERED: usize = 4096;

/// The changes of one workspace, as the stream reads them.
///
/// # Errors
/// Every read fails with [`ports::Error::Invalid`] when the workspace is gone, which ends the stream. After any other error the next beat
/// tries again. While a stream without a cursor is opened, every error fails [`Feeds::changes`].
#[async_trait]
pub trait Changes: Send + Sync + 'static {
    /// The bus channel with an [`Announced`] for each change.
    fn channel(&self) -> String;
    /// The present time of the clock that draws the ids of records.
    fn now(&self) -> Timestamp;
    /// How long before a moment a record may have drawn its id that is committed after it.
    fn late(&self) -> Duration;
    /// How long records are kept.
    fn kept(&self) -> Duration;
    /// The records of changes of files from `from` on, in the order of their ids: a page, and the cursor of the next one.
    ///
    /// # Errors
    /// Those of [`Changes`].
    async fn records(&self, from: Timestamp, cursor: Option<String>) -> ports::Result<Records>;
    /// An announced change of a file, or a presence, as the watcher sees it; none when it is out of their sight. Records are given as they see them.
    fn seen(&self, event: WorkspaceEvent) -> Option<WorkspaceEvent>;
    /// The present states of chats and tasks: of all that were active lately.
    ///
    /// # Errors
    /// Those of [`Changes`].
    async fn states(&self) -> ports::Result<States>;
}

/// The present states of chats and tasks.
#[derive(Clone, Debug, Default)]
pub struct States {
    /// The states, as the events that tell them.
    pub events: Vec<WorkspaceEvent>,
    /// Whether more waits for people than they tell. The bus alone then tells that a wait is over which is not among them.
    pub more_waits: bool,
}

/// A page of records with their ids, and the cursor of the next page.
pub type Records = (Vec<(Uuid, WorkspaceEvent)>, Option<String>);

/// After every moment.
const NEVER: Timestamp = Timestamp::from_millis(i64::MAX);

impl Feeds {
    /// Answers with the changes of a workspace as an event stream: after the cursor, or those to come. Whether the client may see
    /// them is decided before this is called.
    ///
    /// # Errors
    /// When the table does not answer. The bus is not needed: without it the stream looks at every beat.
    pub async fn changes(&self, of: Arc<dyn Changes>, cursor: Cursor) -> ports::Result<Response> {
        let frames = self.watch_changes(of, cursor).await?;
        Ok(respond::answer(Body::from_stream(frames.map(Ok::<_, Infallible>))))
    }

    /// The bytes of the same stream.
    pub(crate) async fn watch_changes(
        &self,
        of: Arc<dyn Changes>,
        cursor: Cursor,
    ) -> ports::Result<impl Stream<Item = Bytes> + Send + 'static> {
        let options = self.options();
        let wakeups = self.wakeups(of.channel(), false).await;
        let mut watcher = Watcher {
            of,
            wakeups,
            told: ToldChanges::default(),
            present: Presences::default(),
            checked: Timestamp::default(),
            reading: None,
            frames: VecDeque::new(),
            ended: false,
            retry: options.retry,
            chunk: options.chunk_bytes,
            metrics: self.metrics().clone(),
        };
        watcher.open(cursor).await?;
        Ok(stream::unfold(watcher, async |mut watcher| {
            let bytes = watcher.next().await?;
            Some((bytes, watcher))
        }))
    }
}

/// One reader of a workspace's changes.
struct Watcher {
    of: Arc<dyn Changes>,
    wakeups: Wakeups,
    told: ToldChanges,
    present: Presences,
    /// The start of the last complete check, or the client's cursor: a stream that begins there misses nothing.
    checked: Timestamp,
    reading: Option<Reading>,
    /// Frames that the client has not taken yet.
    frames: VecDeque<Bytes>,
    ended: bool,
    retry: Duration,
    chunk: usize,
    metrics: Arc<Metrics>,
}

/// A check under way: the states, then pages of records.
struct Reading {
    started: Timestamp,
    /// The states are still to be read. The client knows those from before this moment.
    states_since: Option<Timestamp>,
    /// The next page of records; none for the first one.
    cursor: Option<String>,
}

impl Reading {
    fn begin(started: Timestamp, states_since: Timestamp) -> Option<Self> {
        Some(Self { started, states_since: Some(states_since), cursor: None })
    }
}

/// The changes that a stream has told, so that it tells nothing twice.
#[derive(Debug, Default)]
struct ToldChanges {
    /// Records from `settled` on.
    records: BTreeSet<Uuid>,
    /// All records from before are told.
    settled: Timestamp,
    /// Of each chat and task the state that was told last.
    states: HashMap<String, WorkspaceEvent>,
}

impl ToldChanges {
    /// Notes a record; false when it was told before.
    fn record(&mut self, id: Uuid) -> bool {
        id >= self.settled.first_id() && self.records.insert(id)
    }

    /// Notes a state; false when it was told before, or a newer one was.
    fn state(&mut self, subject: String, event: &WorkspaceEvent) -> bool {
        match self.states.get(&subject) {
            Some(told) if told == event || told.is_deletion() => false,
            // A list may lag behind the announcement of the state.
            Some(told) if event.at() < told.at() && !event.is_deletion() => false,
            Some(_) | None => self.states.insert(subject, event.clone()).as_ref() != Some(event),
        }
    }

    fn settle(&mut self, at: Timestamp) {
        if at > self.settled {
            self.settled = at;
            self.records = self.records.split_off(&at.first_id());
        }
    }
}

fn millis(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(0)
}

impl Watcher {
    /// Listens, then finds where the stream begins.
    async fn open(&mut self, cursor: Cursor) -> ports::Result<()> {
        self.wakeups.listen().await;
        let now = self.of.now();
        let oldest = now - self.of.kept();
        let (from, reset) = match cursor {
            Cursor::None => (None, None),
            Cursor::Unknown => (None, Some("unknown_cursor")),
            Cursor::After(0) => (Some(Timestamp::default()), None),
            Cursor::After(ms) => match i64::try_from(ms).map(Timestamp::from_millis) {
                Ok(at) if at > now + self.of.late() => (None, Some("unknown_cursor")),
                Ok(at) if at < oldest => (None, Some("cursor_too_old")),
                Ok(at) => (Some(at), None),
                Err(_) => (None, Some("unknown_cursor")),
            },
        };
        self.checked = from.unwrap_or(now);
        self.told.settled = self.checked - self.of.late();
        if reset.is_some() {
            count(&self.metrics.resets);
        }
        let states_since = if from.is_some() { self.told.settled } else { NEVER };
        self.reading = Reading::begin(now, states_since);
        if from.is_none() {
            // The client loads what there is by itself: only what comes from now on is told.
            while self.reading.is_some() {
                self.read().await?;
            }
            self.frames.clear();
        }
        self.frames.push_front(frame::opening(millis(self.checked), self.retry, reset));
        Ok(())
    }

    /// The next bytes; none once the stream has ended.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.frames.is_empty() {
                self.wakeups.spoke();
                return Some(self.chunk());
            }
            if self.ended {
                return None;
            }
            if self.wakeups.has_lived_out() {
                self.end(self.retry);
                continue;
            }
            if self.reading.is_some() {
                match self.read().await {
                    Ok(()) => {}
                    // The workspace is gone. A client that comes back is told so.
                    Err(ports::Error::Invalid(_)) => self.end(self.retry),
                    Err(error) => {
                        tracing::warn!(error = %error.with_causes(), "the changes of a workspace could not be read; the next beat tries again");
                        (self.reading, self.wakeups.schedule.behind) = (None, true);
                    }
                }
                continue;
            }
            match self.wakeups.next().await {
                Wakeup::Messages(batch) => batch.iter().for_each(|message| self.receive(message)),
                Wakeup::Beat => self.beat().await,
                Wakeup::Shutdown(retry) => self.end(retry),
            }
        }
    }

    async fn beat(&mut self) {
        for event in self.present.expire(self.of.now()) {
            self.tell(self.checked, &event);
        }
        if self.wakeups.look_is_due().await {
            self.wakeups.schedule.behind = false;
            self.reading = Reading::begin(self.of.now(), Timestamp::default());
        }
        if self.wakeups.comment_is_due() {
            self.frames.push_back(frame::KEEP_ALIVE);
        }
    }

    fn end(&mut self, retry: Duration) {
        self.frames.push_back(frame::farewell(retry));
        self.ended = true;
    }

    fn receive(&mut self, message: &[u8]) {
        match serde_json::from_slice::<Announced>(message) {
            Ok(Announced { id: Some(id), event }) => {
                if let Some(event) = self.of.seen(event) {
                    self.tell_record(id, &event);
                }
            }
            Ok(Announced { id: None, event: event @ WorkspaceEvent::Presence { .. } }) => {
                if let Some(WorkspaceEvent::Presence { user_id, at, here }) = self.of.seen(event) {
                    let told = self.present.take(user_id, at, here, self.of.now());
                    told.iter().for_each(|event| self.tell(self.checked, event));
                }
            }
            Ok(Announced { id: None, event }) => self.tell_state(&event, Timestamp::default()),
            // Something may have been missed, or a newer version announces a change that is unknown here.
            Err(_) => {
                self.reading = Reading::begin(self.of.now(), Timestamp::default());
            }
        }
    }

    fn tell_record(&mut self, id: Uuid, event: &WorkspaceEvent) {
        if self.told.record(id) {
            self.tell(self.checked, event);
        }
    }

    fn tell_state(&mut self, event: &WorkspaceEvent, since: Timestamp) {
        let Some(subject) = event.subject() else { return };
        let is_known = event.at().map_or(since == NEVER, |at| at < since);
        if self.told.state(subject, event) && !is_known {
            self.tell(self.checked, event);
        }
    }

    fn tell(&mut self, cursor: Timestamp, event: &WorkspaceEvent) {
        self.metrics.deliveries.fetch_add(1, Relaxed);
        self.frames.push_back(frame::render_change(millis(cursor), event));
    }

    /// Does the next part of the check that is under way: the states first, so that a cursor between two records stands for them, too.
    async fn read(&mut self) -> ports::Result<()> {
        let Some(Reading { started, states_since, .. }) = self.reading else { return Ok(()) };
        if let Some(since) = states_since {
            self.read_states(since).await?;
        } else if self.read_records(started).await? {
            self.checked = started.max(self.checked);
            self.told.settle(self.checked - self.of.late());
            self.reading = None;
        }
        Ok(())
    }

    async fn read_states(&mut self, since: Timestamp) -> ports::Result<()> {
        let States { events, more_waits } = self.of.states().await?;
        for event in &events {
            self.tell_state(event, since);
        }
        let listed: HashSet<_> = events.iter().filter_map(WorkspaceEvent::subject).collect();
        let told = self.told.states.iter().filter(|(subject, _)| !more_waits && !listed.contains(*subject));
        let over: Vec<_> = told.filter_map(|(_, event)| event.waiting_over()).collect();
        for event in &over {
            self.tell_state(event, Timestamp::default());
        }
        if self.told.states.len() > REMEMBERED {
            self.told.states.retain(|subject, _| listed.contains(subject));
        }
        if let Some(reading) = &mut self.reading {
            reading.states_since = None;
        }
        Ok(())
    }

    /// Reads a page of records; true after the last one.
    async fn read_records(&mut self, started: Timestamp) -> ports::Result<bool> {
        let cursor = self.reading.as_mut().and_then(|reading| reading.cursor.take());
        let (records, next) = self.of.records(self.told.settled, cursor).await?;
        for (id, event) in &records {
            if self.told.record(*id) {
                // Records come in their order, so all before this one are told.
                let cursor = Timestamp::of_id(*id).clamp(self.checked, started.max(self.checked));
                self.tell(cursor, event);
            }
        }
        let is_last = next.is_none();
        if let Some(reading) = &mut self.reading {
            reading.cursor = next;
        }
        Ok(is_last)
    }

    /// The frames that fit into one write; one that is larger goes alone.
    fn chunk(&mut self) -> Bytes {
        let mut joined = BytesMut::new();
        while let Some(frame) = self.frames.front() {
            if !joined.is_empty() && joined.len() + frame.len() > self.chunk {
                break;
            }
            joined.extend_from_slice(frame);
            self.frames.pop_front();
        }
        self.metrics.bytes.fetch_add(joined.len() as u64, Relaxed);
        joined.freeze()
    }
}
