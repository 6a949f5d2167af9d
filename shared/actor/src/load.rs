//! Rehydration: the newest snapshot and the log after it, folded into a state; and the way back, a snapshot.

use crate::{ActorId, Announcement, Entry, Machine, View, log::beginning};
use domain::{CommandId, Timestamp, Waiting};
use ports::{Expect, Item, QueueMessage, Result, Table, Write};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::{HashSet, VecDeque};

/// How many consumed commands an actor remembers. A command comes again only while it was not acknowledged, the queue delivers in order,
/// and no more than a batch is unacknowledged at once, so a batch would do; more covers queues that repeat acknowledged messages, and
/// senders that repeat themselves after the queue forgot. A machine that gets thousands of commands within minutes, such as the parent of a
/// fan-out, must tolerate a command that comes twice all the same.
const CONSUMED_REMEMBERED: usize = 256;
const _: () = assert!(CONSUMED_REMEMBERED >= 2 * ports::MAX_BATCH);

/// An actor in memory.
pub(crate) struct Loaded<M: Machine> {
    pub state: M::State,
    /// The number of the next entry.
    pub next: u64,
    /// The last commands consumed, oldest first.
    pub consumed: VecDeque<CommandId>,
    /// Messages that were put aside, oldest first; the actor is paused while there is some or while it is `parked`.
    pub parked_mail: Vec<(CommandId, String)>,
    /// Whether the actor is paused.
    pub parked: bool,
    /// The messages in the outboxes of the entries since the last consumed command; a crash may have kept them from being sent.
    pub unsettled_outbox: Vec<QueueMessage>,
    /// The view as it was last written, once that is known.
    pub view: Option<View>,
    /// The announcement that was sent last, once that is known.
    pub announced: Option<Announcement>,
    /// The requests to people, as they are in the list of what waits in the workspace.
    pub waiting: Option<Waiting>,
    /// When the newest entry was written.
    pub newest_at: Timestamp,
    /// Bytes of log since the newest snapshot, and the size of that.
    pub logged_bytes: usize,
    pub snapshot_bytes: usize,
}

/// Whether the actor is known to have consumed this command: for a sender that got no answer. Its effects, above all on the view, are
/// visible before this says yes. Commands older than the actor's memory count as not consumed.
///
/// # Errors
/// As [`consumed`].
pub async fn has_consumed(table: &dyn Table, actor: &ActorId, command: CommandId) -> Result<bool> {
    Ok(consumed(table, actor, &[command]).await?.contains(&command))
}

/// The state of an actor as its log has it now; the default state for one without a log.
///
/// # Errors
/// As [`consumed`].
pub async fn read_state<M: Machine>(table: &dyn Table, actor: &ActorId) -> Result<M::State> {
    Ok(Loaded::<M>::read(table, actor).await?.state)
}

/// Those of these commands that the actor is known to have consumed; see [`has_consumed`].
///
/// # Errors
/// Those of [`Table::query`]; [`ports::Error::Damaged`] and [`ports::Error::Lost`] for an entry that cannot be read.
pub async fn consumed(table: &dyn Table, actor: &ActorId, commands: &[CommandId]) -> Result<HashSet<CommandId>> {
    const PAGE: usize = 256;
    #[derive(Deserialize)]
    struct Remembered {
        next: u64,
        consumed: VecDeque<CommandId>,
    }
    #[derive(Deserialize)]
    struct Consumes {
        #[serde(default)]
        commands: Vec<CommandId>,
    }
    let (mut next, mut found) = (1, HashSet::new());
    if let Some(item) = snapshot_of(table, actor).await?
        && let Some(remembered) = readable::<Remembered>(actor, &item.body)
    {
        found.extend(remembered.consumed.into_iter().filter(|command| commands.contains(command)));
        next = remembered.next;
    }
    let from = actor.entry_key(next).sk;
    let range = ports::Query { from: Some(from), ..actor.entries(PAGE) };
    let mut pages = table.pages(range);
    while found.len() < commands.len()
        && let Some(items) = pages.next().await?
    {
        for item in &items {
            let consumed = item.content::<Consumes>()?.commands;
            found.extend(consumed.into_iter().filter(|command| commands.contains(command)));
        }
    }
    Ok(found)
}

/// The version of the fold that made a snapshot.
#[derive(Deserialize)]
struct MadeBy {
    #[serde(default = "first")]
    v: u32,
}

fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_first(v: &u32) -> bool {
    *v == first()
}

#[derive(Deserialize)]
struct Snapshot<S> {
    next: u64,
    at: Timestamp,
    consumed: VecDeque<CommandId>,
    parked: bool,
    parked_mail: Vec<(CommandId, String)>,
    state: S,
}

/// The item of the newest snapshot; none when it is lost, as for a damaged one.
async fn snapshot_of(table: &dyn Table, actor: &ActorId) -> Result<Option<Item>> {
    match table.get(&actor.snapshot_key()).await {
        Err(error) if error.is_damage() => {
            tracing::error!(%actor, %error, "a snapshot is lost: the whole log is read instead");
            Ok(None)
        }
        found => found,
    }
}

/// A snapshot; none when it is damaged. The log has all that a snapshot has, so the damage costs a longer read, and goes with the next
/// snapshot.
fn readable<S: DeserializeOwned>(actor: &ActorId, snapshot: &str) -> Option<S> {
    let read = serde_json::from_str(snapshot);
    read.inspect_err(|error| tracing::error!(%actor, %error, "a snapshot is damaged: the whole log is read instead"))
        .ok()
}

/// A snapshot that this version of the fold made, so that it stands for the log before it; none for one of another version, or a damaged
/// one.
fn own_snapshot<M: Machine>(actor: &ActorId, snapshot: &str) -> Option<Snapshot<M::State>> {
    let made: MadeBy = readable(actor, snapshot)?;
    if made.v == M::VERSION { readable(actor, snapshot) } else { None }
}

#[derive(Serialize)]
struct SnapshotRef<'a, S> {
    #[serde(skip_serializing_if = "is_first")]
    v: u32,
    next: u64,
    at: Timestamp,
    consumed: &'a VecDeque<CommandId>,
    parked: bool,
    parked_mail: &'a [(CommandId, String)],
    state: &'a S,
}

impl<M: Machine> Loaded<M> {
    /// Reads the actor; an unknown one is its default state.
    ///
    /// # Errors
    /// Those of [`Table::query`]; [`ports::Error::Damaged`] and [`ports::Error::Lost`] for an entry that cannot be read.
    pub async fn read(table: &dyn Table, actor: &ActorId) -> Result<Self> {
        const PAGE: usize = 256;
        let mut loaded = Self {
            state: M::State::default(),
            next: 1,
            consumed: VecDeque::new(),
            parked_mail: Vec::new(),
            parked: false,
            unsettled_outbox: Vec::new(),
            view: None,
            announced: None,
            waiting: None,
            newest_at: Timestamp::default(),
            logged_bytes: 0,
            snapshot_bytes: 0,
        };
        if let Some(item) = snapshot_of(table, actor).await?
            && let Some(snapshot) = own_snapshot::<M>(actor, &item.body)
        {
            loaded.snapshot_bytes = item.body.len();
            loaded.state = snapshot.state;
            loaded.next = snapshot.next;
            loaded.newest_at = snapshot.at;
            loaded.consumed = snapshot.consumed;
            loaded.parked = snapshot.parked;
            loaded.parked_mail = snapshot.parked_mail;
        } else if M::TRUNCATES {
            loaded.next = beginning(table, actor).await?;
        }
        loop {
            let from = actor.entry_key(loaded.next).sk;
            let range = ports::Query { from: Some(from), ..actor.entries(PAGE) };
            let page = table.query(&range).await?;
            for item in &page.items {
                let entry: Entry<M::Event> = item.content()?;
                loaded.apply(&entry, item.body.len());
            }
            if page.next.is_none() {
                loaded.waiting = M::waiting(&loaded.state);
                return Ok(loaded);
            }
        }
    }

    /// Folds one entry of `bytes` bytes.
    pub fn apply(&mut self, entry: &Entry<M::Event>, bytes: usize) {
        for (number, event) in entry.numbered() {
            M::apply(&mut self.state, number, event);
        }
        self.note(entry, bytes);
    }

    /// Takes in the fields of an entry other than its events, which are in the state already.
    pub fn note(&mut self, entry: &Entry<M::Event>, bytes: usize) {
        if !entry.commands.is_empty() {
            self.unsettled_outbox.clear();
            self.consumed.extend(&entry.commands);
            let forgotten = self.consumed.len().saturating_sub(CONSUMED_REMEMBERED);
            self.consumed.drain(..forgotten);
        }
        self.unsettled_outbox.extend(entry.outbox.iter().cloned());
        if let Some(parking) = &entry.parking {
            self.parked = parking.parked;
            if !parking.parked {
                self.parked_mail.clear();
            }
            self.parked_mail.extend(parking.messages.iter().cloned());
        }
        self.next = entry.next;
        self.newest_at = entry.at;
        self.logged_bytes += bytes;
    }

    /// The size of the state, by its snapshot and the log since.
    pub fn bytes(&self) -> usize {
        self.snapshot_bytes + self.logged_bytes
    }

    /// Whether the log has grown so much that reading it costs more than reading a new snapshot. Snapshots double in distance as they grow,
    /// so that their cost stays in proportion to the log.
    pub fn wants_snapshot(&self) -> bool {
        const SMALLEST: usize = 32 * 1024;
        self.logged_bytes > self.snapshot_bytes.max(SMALLEST)
    }

    /// Writes a snapshot. A stale one, by a worker that lost its actor, does no harm: the entries after it are still there.
    ///
    /// # Errors
    /// [`ports::Error::Invalid`] for a state that is no JSON; those of [`Table::commit`]. The counts stay, so the next step tries again.
    pub async fn write_snapshot(&mut self, table: &dyn Table, actor: &ActorId) -> Result<()> {
        let snapshot = SnapshotRef {
            v: M::VERSION,
            next: self.next,
            at: self.newest_at,
            consumed: &self.consumed,
            parked: self.parked,
            parked_mail: &self.parked_mail,
            state: &self.state,
        };
        let body = serde_json::to_string(&snapshot).map_err(|error| ports::Error::Invalid(error.to_string()))?;
        let bytes = body.len();
        table.commit(vec![Write::put(actor.snapshot_key(), body, Expect::Any)]).await?;
        self.snapshot_bytes = bytes;
        self.logged_bytes = 0;
        Ok(())
    }
}
