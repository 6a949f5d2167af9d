//! The state that survives every process.

use crate::{agent::AgentJournal, plan::Plan, retrying_stores::RetryingStore, script};
use actor::Entry;
use chat::ChatState;
use domain::{ChatEvent, ChatId, Principal, TaskEvent, WorkspaceId};
use parking_lot::Mutex;
use ports::{Blobs, Clock, Item, Key, Model, Table};
use serde::de::DeserializeOwned;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use tempfile::TempDir;
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeBus, FakeQueue, FakeTable, Faults},
};
use workspace::Workspaces;

/// How often the queue delivers a message before it puts it aside. Far above the runtime's own limit: a dead letters would
/// be a command that the runtime could not even pause.
const MAX_DELIVERIES: u32 = 60;

/// The survivors: stores, folders on disk, the time, and the model provider.
pub struct World {
    /// The time.
    pub clock: Arc<TestClock>,
    /// The table.
    pub table: Arc<FakeTable>,
    /// The queue.
    pub queue: Arc<FakeQueue>,
    /// The bus.
    pub bus: Arc<FakeBus>,
    /// The blobs.
    pub blobs: Arc<FakeBlobs>,
    /// The model.
    pub model: Arc<dyn Model>,
    /// While it is set, the model panics at messages that say `poison`.
    pub poison: Arc<AtomicBool>,
    /// The prompts, updates, questions and answers of coding agents.
    pub book: AgentJournal,
    /// The workspace that everything happens in.
    pub workspace: WorkspaceId,
    /// How long its processes keep the states of chats that were shut down.
    pub context_cache: Duration,
    folders: TempDir,
    chat_entries: EntryCache<ChatEvent>,
    /// The entries of tasks.
    pub(crate) task_entries: EntryCache<TaskEvent>,
}

/// Entries of logs with the bodies that they were read from: every invariant reads them again.
pub(crate) struct EntryCache<E>(Mutex<HashMap<Key, (String, Entry<E>)>>);

impl<E> Default for EntryCache<E> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<E: Clone + DeserializeOwned> EntryCache<E> {
    /// The entry that `item` has.
    pub(crate) fn read(&self, Item { key, body, .. }: Item) -> Entry<E> {
        let mut known = self.0.lock();
        match known.get(&key) {
            Some((known, entry)) if *known == body => entry.clone(),
            _ => {
                #[expect(clippy::expect_used, reason = "a test's own assertion: entries of the log can be read")]
                let entry: Entry<E> = serde_json::from_str(&body).expect("an entry of the log");
                known.insert(key, (body, entry.clone()));
                entry
            }
        }
    }
}

impl World {
    /// A world with one workspace in it, for a run under `plan` with these faults of the stores.
    pub async fn new(plan: &Plan, faults: &Faults) -> Self {
        let seed = plan.seed;
        let clock = Arc::new(TestClock::new(seed));
        let table = FakeTable::new(clock.clone(), seed ^ 1, faults.clone());
        let queue = Arc::new(FakeQueue::new(clock.clone(), seed ^ 2, faults.clone(), MAX_DELIVERIES));
        let table = Arc::new(if plan.one_store { table.sending_to(queue.clone()) } else { table });
        let poison = Arc::new(AtomicBool::new(true));
        let world = Self {
            table,
            queue,
            bus: Arc::new(FakeBus::new(seed ^ 3, faults.clone())),
            blobs: Arc::new(FakeBlobs::new(seed ^ 4, faults.clone())),
            model: script::model(poison.clone()),
            poison,
            book: AgentJournal::default(),
            workspace: WorkspaceId(clock.id()),
            context_cache: plan.context_cache(),
            folders: folder(),
            chat_entries: EntryCache::default(),
            task_entries: EntryCache::default(),
            clock,
        };
        let workspaces = world.workspaces(0);
        let mut made = workspaces.create(world.workspace, "simulated", &Principal::local()).await.is_ok();
        while !made {
            // The commit took effect and its answer was lost, so that the one after it found it: only the disk remains to be repaired.
            made = workspaces.repair_all().await.is_ok();
        }
        // The mark spares the processes to compare unchanged files.
        let _ = workspaces.checkpoint().await;
        world
    }

    /// The folder on disk of the machine number `machine`.
    pub fn folder(&self, machine: usize) -> PathBuf {
        self.folders.path().join(machine.to_string())
    }

    /// The files, apart from all processes.
    pub fn workspaces(&self, machine: usize) -> Workspaces {
        Workspaces::new(
            self.patient_table(),
            Arc::new(RetryingStore::<dyn Blobs>(self.blobs.clone())),
            self.clock.clone(),
            self.folder(machine),
        )
    }

    /// The table, apart from all processes: it always answers.
    pub fn patient_table(&self) -> Arc<dyn Table> {
        Arc::new(RetryingStore::<dyn Table>(self.table.clone()))
    }

    /// The log of a chat from the entry that begins with number `from` on.
    pub fn log(&self, chat: ChatId, from: u64) -> Vec<Entry<ChatEvent>> {
        let first = chat::actor_id(self.workspace, chat).entry_key(from);
        let items = self.table.partition_from(&first).into_iter();
        let entries = items.take_while(|item| item.key.sk.starts_with("log/"));
        entries.map(|item| self.chat_entries.read(item)).collect()
    }
}

fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    #[expect(clippy::expect_used, reason = "without a folder there is no test")]
    folder.expect("a folder for the files")
}

/// A chat as its log tells it, read as it grows.
#[derive(Default)]
pub struct Observer {
    /// The fold of the log.
    pub state: ChatState,
    /// All entries so far.
    pub entries: Vec<Entry<ChatEvent>>,
    /// How many commits the table had seen when it was last looked at.
    commits: u64,
}

impl Observer {
    /// Takes in new commits.
    pub fn look(&mut self, world: &World, chat: ChatId) {
        let commits = world.table.commits();
        if std::mem::replace(&mut self.commits, commits) == commits {
            return;
        }
        let next = self.entries.last().map_or(1, |entry| entry.next);
        for entry in world.log(chat, next) {
            for (number, event) in entry.numbered() {
                self.state.apply(number, event);
            }
            self.entries.push(entry);
        }
    }

    /// The events.
    pub fn events(&self) -> impl Iterator<Item = &ChatEvent> {
        self.entries.iter().flat_map(|entry| &entry.events)
    }

    /// Whether nothing runs, waits or is paused.
    pub fn is_at_rest(&self) -> bool {
        self.state.turn.is_none() && self.state.queued.is_empty() && self.state.paused.is_none()
    }
}
