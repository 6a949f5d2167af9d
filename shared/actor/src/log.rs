//! The log of an actor: one item per entry, each written on the condition that it is absent.
//!
//! That one conditional write is the state change, the fencing token, the outbox and the persisted event stream at once
//! (ARCHITECTURE.md, idea 2). Two workers that both believe to own an actor compute the same next key, and one of them loses.

use crate::StopTarget;
use domain::{ActorRef, CommandId, Timestamp};
use ports::{Item, Key, Query, QueueMessage, Result, Table};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{collections::VecDeque, fmt};
use uuid::Uuid;

/// Entries that a [`LogReader`] reads at once.
const PAGE: usize = 128;
/// Requests to stop or hold that are read at once.
const AT_ONCE: usize = 256;

/// The prefix of the keys of requests to stop or hold, and of those among them for a tree.
const CONTROL: &str = "control/";
const TREE_CONTROL: &str = "control/tree/";

/// An actor of any machine: also its queue group, its partition in the table, and its channel on the bus. That of a chat, a task or an
/// evaluation is the text of its [`ActorRef`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActorId(String);

impl ActorId {
    /// The actor of a kind, found under `name`.
    pub fn new(kind: &str, name: impl fmt::Display) -> Self {
        Self(format!("{kind}/{name}"))
    }
    /// From a queue group.
    pub fn from_group(group: &str) -> Self {
        Self(group.into())
    }
    /// The kind of the actor: the first part of the text, which says which machine drives it ([`crate::Machine::KIND`]).
    pub fn kind(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(kind, _)| kind)
    }
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// The channel on which requests to stop are announced.
    pub fn control_channel(&self) -> String {
        format!("{}/control", self.0)
    }
    /// The key of the entry whose first event has the number `first`.
    pub fn entry_key(&self, first: u64) -> Key {
        Key::new(&self.0, format!("log/{first:020}"))
    }
    /// All entries of its log, oldest first, in pages of `limit`.
    pub fn entries(&self, limit: usize) -> Query {
        Query { from: Some("log/".into()), to: Some("log0".into()), ..Query::all(&self.0, limit) }
    }
    /// The key of the newest snapshot.
    pub fn snapshot_key(&self) -> Key {
        Key::new(&self.0, "snapshot")
    }
    /// The key of the place at which the log begins; see [`crate::Machine::TRUNCATES`].
    pub(crate) fn truncation_key(&self) -> Key {
        Key::new(&self.0, "truncation")
    }
    /// The key of the note that a delivery failed, or was begun in quarantine; see [`crate::Quarantine`].
    pub(crate) fn attempt_key(&self) -> Key {
        Key::new(&self.0, "trial")
    }
    /// The key of the note that this command waits in the mailbox; see [`crate::Mailbox::note`].
    pub fn waiting_key(&self, command: CommandId) -> Key {
        Key::new(&self.0, format!("waiting/{command}"))
    }
    /// The key of the newest request to stop `target`. A request for everything has a key of its own, so that no later request for less
    /// replaces it.
    pub fn control_key(&self, target: StopTarget) -> Key {
        let place = match target {
            StopTarget::Everything => "control/everything",
            StopTarget::This(_) | StopTarget::First | StopTarget::Tree => "control/one",
        };
        Key::new(&self.0, place)
    }
    /// The key of a request to stop `member` and all below it, in the tree that has this actor as its root.
    pub(crate) fn tree_control_key(&self, member: Uuid) -> Key {
        Key::new(&self.0, format!("{TREE_CONTROL}{member}"))
    }
    /// The key of a request to hold `member` and all below it, in the tree that has this actor as its root.
    pub(crate) fn tree_hold_key(&self, member: Uuid) -> Key {
        Key::new(&self.0, format!("{TREE_CONTROL}{member}/hold"))
    }
    /// Reads the requests to stop the actor alone: the one for everything first, then the other one. One query for both.
    pub(crate) async fn controls(&self, table: &dyn Table) -> Result<Vec<Item>> {
        let both = Query { from: Some(CONTROL.into()), to: Some(TREE_CONTROL.into()), ..Query::all(&self.0, AT_ONCE) };
        table.all(both).await
    }
    /// Reads the requests for parts of the tree that has this actor as its root: one query, unless there are very many.
    pub(crate) async fn tree_controls(&self, table: &dyn Table) -> Result<Vec<Item>> {
        table.all(Query::prefix(&self.0, TREE_CONTROL, AT_ONCE)).await
    }
}

impl From<ActorRef> for ActorId {
    fn from(actor: ActorRef) -> Self {
        Self(actor.to_string())
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The mark beside a log that is [shortened](crate::Machine::TRUNCATES).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct LogBeginning {
    /// The number with which the log begins.
    pub begins: u64,
    /// The number before which the actor was as new.
    pub as_new_before: u64,
    /// When it was.
    pub at: Timestamp,
}

/// The number with which the log of an actor begins.
///
/// # Errors
/// Those of [`Table::get`]; [`ports::Error::Damaged`] and [`ports::Error::Lost`] for a mark that cannot be read.
pub(crate) async fn beginning(table: &dyn Table, actor: &ActorId) -> Result<u64> {
    let mark = table.get(&actor.truncation_key()).await?;
    mark.map_or(Ok(1), |item| Ok(item.content::<LogBeginning>()?.begins))
}

/// One entry of a log: the decision of one step, or of several that needed nothing from outside in between. The table keeps it as JSON, and
/// the bus carries the same JSON. A worker that finds unknown fields in it leaves the actor to a newer worker.
///
/// Events are numbered through: the one at position `i` has the number `first + i`, beginning with 1 for an actor's first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry<E> {
    /// The number of the first event.
    pub first: u64,
    /// The number that the next entry begins with. At least `first + 1`, also for an entry without events; larger than
    /// `first + events.len()` if numbers were skipped.
    pub next: u64,
    /// When the first of its steps began.
    pub at: Timestamp,
    /// The step's own random id: how a worker knows its entry when the table did not say whether a write took effect.
    pub step: Uuid,
    /// The commands that this entry consumed, in order: those that came together and were decided one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandId>,
    /// The events, in order.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<E>,
    /// Messages to send because of it; sent again after a crash, under the same ids. None where the table [sends](ports::Table::sends): they went
    /// with the entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outbox: Vec<QueueMessage>,
    /// Set when the actor was paused or resumed, or a message was put aside while it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parking: Option<Parking>,
}

/// The part of an entry that pauses or resumes an actor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parking {
    /// Whether it is paused from now on. When it is not, all messages put aside are in the outbox or dropped.
    pub parked: bool,
    /// Messages that were put aside: ids and bodies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "mail")]
    pub messages: Vec<(CommandId, String)>,
}

impl<E> Entry<E> {
    /// The events with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &E)> {
        (self.first..).zip(&self.events)
    }
}

/// A page of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPage<E> {
    /// The entries, oldest first. The first one may also hold events up to and including `after`.
    pub entries: Vec<Entry<E>>,
    /// Whether there is more.
    pub more: bool,
}

/// Reads the entries that hold events numbered above `after`, oldest first, at most `limit` (at least 1) of them.
///
/// Entries of transient events may have expired: numbers can be missing between two entries, and the whole message that follows has their
/// text.
///
/// # Errors
/// Those of [`Table::query`](ports::Table::query); [`ports::Error::Damaged`] and [`ports::Error::Lost`] for an entry that cannot be read: one
/// that was passed over would be missing in the state, and nobody would know.
pub async fn read_after<E: DeserializeOwned>(
    table: &dyn Table,
    actor: &ActorId,
    after: u64,
    limit: usize,
) -> Result<LogPage<E>> {
    let wanted = after.saturating_add(1);
    let from = actor.entry_key(wanted).sk;
    let range = Query { from: Some(from.clone()), ..actor.entries(limit) };
    let page = table.query(&range).await?;
    let mut entries = page.items.iter().map(Item::content).collect::<Result<Vec<Entry<E>>>>()?;
    let begins_inside_an_entry = after > 0 && entries.first().is_none_or(|entry| entry.first != wanted);
    if begins_inside_an_entry {
        let before = Query { to: Some(from), ..actor.entries(1) }.descending();
        if let Some(item) = table.query(&before).await?.items.first() {
            let entry: Entry<E> = item.content()?;
            if entry.first + entry.events.len() as u64 > wanted {
                entries.insert(0, entry);
            }
        }
    }
    Ok(LogPage { entries, more: page.next.is_some() })
}

/// Reads the events of a log in order, up to its end. A page of it is in memory.
pub struct LogReader<E> {
    actor: ActorId,
    /// The events up to this number were read.
    after: u64,
    page: VecDeque<(u64, Timestamp, E)>,
    more: bool,
}

impl<E: DeserializeOwned> LogReader<E> {
    /// The events numbered `from` and above.
    pub fn starting_at(actor: ActorId, from: u64) -> Self {
        Self { actor, after: from.saturating_sub(1), page: VecDeque::new(), more: true }
    }

    /// The next event with its number and the time of its entry; none at the end of what there is.
    ///
    /// # Errors
    /// Those of [`read_after`]; the same place is read again then.
    pub async fn next(&mut self, table: &dyn Table) -> Result<Option<(u64, Timestamp, E)>> {
        loop {
            if let Some(event) = self.page.pop_front() {
                return Ok(Some(event));
            }
            if !self.more {
                return Ok(None);
            }
            let page = read_after::<E>(table, &self.actor, self.after, PAGE).await?;
            self.more = page.more && !page.entries.is_empty();
            for entry in page.entries {
                let (after, at) = (self.after, entry.at);
                self.after = after.max(entry.next.saturating_sub(1));
                let new = (entry.first..).zip(entry.events).filter(|(number, _)| *number > after);
                self.page.extend(new.map(|(number, event)| (number, at, event)));
            }
        }
    }
}

/// The entries that begin before the event numbered `before`, the newest first; the first of them may go on after it.
///
/// # Errors
/// Those of [`Table::query`](ports::Table::query); [`ports::Error::Damaged`] and [`ports::Error::Lost`] for an entry that cannot be read: one
/// that was passed over would be missing in the state, and nobody would know.
pub async fn read_before<E: DeserializeOwned>(
    table: &dyn Table,
    actor: &ActorId,
    before: u64,
    limit: usize,
) -> Result<LogPage<E>> {
    let last = actor.entry_key(before.saturating_sub(1)).sk;
    let range = Query { to: Some(last), ..actor.entries(limit) }.descending();
    let page = table.query(&range).await?;
    let entries = page.items.iter().map(Item::content).collect::<Result<Vec<Entry<E>>>>()?;
    Ok(LogPage { entries, more: page.next.is_some() })
}

/// The number that the next entry begins with: 1 for an actor without a log.
///
/// # Errors
/// Those of [`Table::query`](ports::Table::query); [`ports::Error::Damaged`] and [`ports::Error::Lost`] for an entry that cannot be read: one
/// that was passed over would be missing in the state, and nobody would know.
pub async fn next_number(table: &dyn Table, actor: &ActorId) -> Result<u64> {
    #[derive(Deserialize)]
    struct Next {
        next: u64,
    }
    match table.query(&actor.entries(1).descending()).await?.items.first() {
        None => Ok(1),
        Some(item) => item.content::<Next>().map(|entry| entry.next),
    }
}

/// The part of an entry that identifies its writer.
#[derive(Deserialize)]
pub(crate) struct Step {
    pub step: Uuid,
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use ports::{Expect, Write};
    use std::sync::Arc;
    use testkit::{
        TestClock,
        fakes::{FakeTable, Faults},
    };

    #[tokio::test(start_paused = true)]
    async fn one_query_reads_the_requests_to_stop_an_actor_alone_the_one_for_everything_first() {
        let (actor, table) =
            (ActorId::new("test", "a"), FakeTable::new(Arc::new(TestClock::new(0)), 0, Faults::none()));
        let (this, everything) = (StopTarget::This(Uuid::nil()), StopTarget::Everything);
        let others = [actor.tree_control_key(Uuid::nil()), actor.tree_hold_key(Uuid::nil()), actor.entry_key(1)];
        let more = [actor.snapshot_key(), actor.waiting_key(CommandId(Uuid::nil()))];
        for key in [actor.control_key(this), actor.control_key(everything)].into_iter().chain(others).chain(more) {
            table.commit(vec![Write::put(key, "{}", Expect::Any)]).await.unwrap();
        }
        let keys = async || actor.controls(&table).await.unwrap().into_iter().map(|item| item.key).collect::<Vec<_>>();
        assert_eq!(keys().await, [actor.control_key(everything), actor.control_key(StopTarget::First)]);
        table.commit(vec![Write::delete(actor.control_key(everything), Expect::Any)]).await.unwrap();
        assert_eq!(keys().await, [actor.control_key(this)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_gives_each_event_once_from_any_number_on() {
        /// Entries of two events each, with a number left out after them: more than two pages.
        const ENTRIES: u64 = 2 * PAGE as u64 + 1;
        let (actor, clock) = (ActorId::new("test", "a"), Arc::new(TestClock::new(0)));
        let table = FakeTable::new(clock, 0, Faults::none());
        let firsts = || (0..ENTRIES).map(|entry| 3 * entry + 1);
        for first in firsts() {
            let (at, step) = (Timestamp::default(), Uuid::nil());
            let (commands, outbox, parking) = (Vec::new(), Vec::new(), None);
            let events = vec![first, first + 1];
            let entry = Entry { first, next: first + 3, at, step, commands, events, outbox, parking };
            let body = serde_json::to_string(&entry).unwrap();
            table.commit(vec![Write::put(actor.entry_key(first), body, Expect::Absent)]).await.unwrap();
        }
        let last = 3 * ENTRIES - 1;
        for from in [0, 1, 2, 3, 3 * PAGE as u64 + 2, last, last + 1, last + 9] {
            let mut log = LogReader::<u64>::starting_at(actor.clone(), from);
            let mut read = Vec::new();
            while let Some((number, _, event)) = log.next(&table).await.unwrap() {
                assert_eq!(number, event);
                read.push(number);
            }
            let all = firsts().flat_map(|first| [first, first + 1]);
            assert_eq!(read, all.filter(|number| *number >= from).collect::<Vec<_>>(), "from {from}");
        }
    }
}
