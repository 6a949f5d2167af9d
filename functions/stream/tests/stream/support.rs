//! A log in memory and a bus that loses, doubles and reorders messages, chosen by seed.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::{ActorId, Entry};
use async_trait::async_trait;
use bytes::Bytes;
use domain::{ActorRef, ChatEvent, MessageId, TaskEvent, Timestamp};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{Bus, Expect, IndexQuery, Item, Key, Page, Query, Result, Table, Write};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
};
use tokio::sync::mpsc;
use uuid::Uuid;

/// A small generator (xorshift): the same seed gives the same run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % bound
    }
}

#[derive(Default)]
pub struct MemoryTable {
    items: Mutex<BTreeMap<(String, String), String>>,
    pub queries: AtomicU64,
    pub broken: AtomicBool,
}

impl MemoryTable {
    pub fn remove(&self, key: &Key) {
        self.items.lock().remove(&(key.pk.clone(), key.sk.clone()));
    }
}

#[async_trait]
impl Table for MemoryTable {
    async fn get(&self, _: &Key) -> Result<Option<Item>> {
        unimplemented!("streams only query")
    }

    async fn query(&self, query: &Query) -> Result<Page> {
        self.queries.fetch_add(1, SeqCst);
        if self.broken.load(SeqCst) {
            return Err(ports::Error::unavailable("the table", "it was told to be"));
        }
        let items = self.items.lock();
        let from = (query.pk.clone(), query.from.clone().unwrap_or_default());
        let to = (query.pk.clone(), query.to.clone().unwrap_or("\u{10ffff}".into()));
        let item = |((pk, sk), body): (&(String, String), &String)| Item {
            key: Key::new(pk, sk),
            rev: 1,
            body: body.clone(),
            index: None,
            expires_at: None,
        };
        let range = items.range(from..to);
        let found: Vec<Item> = match query.descending {
            false => range.take(query.limit + 1).map(item).collect(),
            true => range.rev().take(query.limit + 1).map(item).collect(),
        };
        let next = (found.len() > query.limit).then(|| "more".to_owned());
        Ok(Page { items: found.into_iter().take(query.limit).collect(), next })
    }

    async fn query_index(&self, _: &IndexQuery) -> Result<Page> {
        unimplemented!("streams only query")
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<()> {
        let mut items = self.items.lock();
        for write in writes {
            let Write::Put { key, body, .. } = write else { unimplemented!("logs only grow") };
            assert!(items.insert((key.pk, key.sk), body).is_none(), "an entry is written once");
        }
        Ok(())
    }
}

/// How often of 100 messages each fault happens.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    pub lost: u64,
    pub doubled: u64,
    pub late: u64,
    pub garbled: u64,
    /// Subscribing fails.
    pub away: bool,
}

pub struct MemoryBus {
    channels: Mutex<HashMap<String, Vec<mpsc::UnboundedSender<Bytes>>>>,
    random: Mutex<Random>,
    late: Mutex<Vec<(String, Bytes)>>,
    faults: Mutex<Faults>,
}

impl MemoryBus {
    pub fn new(seed: u64, faults: Faults) -> Self {
        let random = Mutex::new(Random(seed.wrapping_mul(2).wrapping_add(1)));
        Self { channels: Mutex::default(), random, late: Mutex::default(), faults: Mutex::new(faults) }
    }

    pub fn set(&self, faults: Faults) {
        *self.faults.lock() = faults;
    }

    /// Ends every subscription.
    pub fn hang_up(&self) {
        self.channels.lock().clear();
    }

    pub fn listeners(&self) -> usize {
        let mut channels = self.channels.lock();
        channels.values_mut().for_each(|senders| senders.retain(|sender| !sender.is_closed()));
        channels.values().map(Vec::len).sum()
    }

    fn send(&self, channel: &str, message: &Bytes) {
        if let Some(senders) = self.channels.lock().get_mut(channel) {
            senders.retain(|sender| sender.send(message.clone()).is_ok());
        }
    }
}

#[async_trait]
impl Bus for MemoryBus {
    async fn publish(&self, channel: &str, message: Bytes) -> Result<()> {
        let faults = *self.faults.lock();
        let mut random = self.random.lock();
        let mut happens = |percent| random.below(100) < percent;
        if happens(faults.lost) {
            return Ok(());
        }
        if happens(faults.late) {
            self.late.lock().push((channel.into(), message));
            return Ok(());
        }
        let message = if happens(faults.garbled) { Bytes::from_static(b"{\"see\": \"the log\"}") } else { message };
        self.send(channel, &message);
        if happens(faults.doubled) {
            self.send(channel, &message);
        }
        if happens(30) {
            let late = std::mem::take(&mut *self.late.lock());
            late.iter().rev().for_each(|(channel, message)| self.send(channel, message));
        }
        Ok(())
    }

    async fn subscribe(&self, channel: &str) -> Result<ports::Subscription> {
        if self.faults.lock().away {
            return Err(ports::Error::Unavailable { what: "the bus", source: "it is away".into() });
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        self.channels.lock().entry(channel.into()).or_default().push(sender);
        Ok(stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) }).boxed())
    }
}

/// One actor's log, written as a worker would: commit, then publish.
pub struct Log {
    pub actor: ActorRef,
    pub next: u64,
    table: Arc<MemoryTable>,
    bus: Arc<MemoryBus>,
    /// The numbers that clients see.
    pub visible: Vec<u64>,
}

pub fn text(text: &str) -> ChatEvent {
    ChatEvent::Chunk { text: text.into(), message_id: MessageId(Uuid::nil()) }
}

pub fn hidden() -> ChatEvent {
    ChatEvent::Unpaused { at: Timestamp::default() }
}

impl Log {
    /// Of a chat.
    pub fn new(table: &Arc<MemoryTable>, bus: &Arc<MemoryBus>) -> Self {
        Self::of(ActorRef::Chat { workspace: Uuid::nil().into(), chat: Uuid::nil().into() }, table, bus)
    }

    /// Of a task.
    pub fn of_task(table: &Arc<MemoryTable>, bus: &Arc<MemoryBus>) -> Self {
        Self::of(ActorRef::Task { workspace: Uuid::nil().into(), task: Uuid::nil().into() }, table, bus)
    }

    fn of(actor: ActorRef, table: &Arc<MemoryTable>, bus: &Arc<MemoryBus>) -> Self {
        Self { actor, next: 1, table: table.clone(), bus: bus.clone(), visible: Vec::new() }
    }

    /// The key of the entry whose first event has this number.
    pub fn entry_key(&self, first: u64) -> Key {
        ActorId::from(self.actor).entry_key(first)
    }

    /// Writes an entry, with `skipped` numbers after its events.
    pub async fn write(&mut self, events: Vec<ChatEvent>, skipped: u64) {
        self.write_as(events, |event| domain::native::encode(event).is_some(), skipped).await;
    }

    /// Writes an entry of a task.
    pub async fn write_task(&mut self, events: Vec<TaskEvent>) {
        self.write_as(events, |event| domain::task_native::encode(event).is_some(), 0).await;
    }

    async fn write_as<E: Serialize + DeserializeOwned>(
        &mut self,
        events: Vec<E>,
        shown: impl Fn(&E) -> bool,
        skipped: u64,
    ) {
        let (first, next) = (self.next, self.next + (events.len() as u64).max(1) + skipped);
        // As JSON, because this test does not depend on the runtime's own part of an entry.
        let (at, step) = (Timestamp::default(), Uuid::nil());
        let body = json!({ "first": first, "next": next, "at": at, "step": step, "events": events }).to_string();
        let entry: Entry<E> = serde_json::from_str(&body).unwrap();
        let seen = entry.numbered().filter(|(_, event)| shown(event));
        self.visible.extend(seen.map(|(number, _)| number));
        self.next = next;
        let put = Write::put(self.entry_key(first), body.clone(), Expect::Absent);
        self.table.commit(vec![put]).await.unwrap();
        self.bus.publish(&self.actor.to_string(), body.into()).await.unwrap();
    }

    /// Writes entries of one visible event each.
    pub async fn chatter(&mut self, count: u64) {
        for _ in 0..count {
            let words = format!("event {}", self.next);
            self.write(vec![text(&words)], 0).await;
        }
    }
}

/// The events of an event stream: number, name and data, in order. Incomplete ones at the end are left out.
pub fn parse(stream: &str) -> Vec<(u64, String, String)> {
    let complete = stream.rfind("\n\n").map_or("", |end| &stream[..end]);
    complete
        .split("\n\n")
        .filter_map(|frame| {
            let field = |name| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            Some((field("id: ")?.parse().ok()?, field("event: ")?, field("data: ")?))
        })
        .collect()
}

pub fn numbers(stream: &str) -> Vec<u64> {
    parse(stream).into_iter().map(|(number, _, _)| number).collect()
}
