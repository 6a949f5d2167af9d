//! A workspace on fakes of the stores, for tests.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::remains::Semaphores;
use actor::{ActorId, Content, Entry, Envelope};
use chat::Chats;
use domain::{Principal, WorkspaceId};
use engine::{FlowCache, Flows, Tasks};
use flow::load::KnownNames;
use ports::{Clock, Expect, Table, Write};
use serde_json::Value;
use slots::{Ask, SlotsCommand, SlotsEvent};
use std::sync::Arc;
use tempfile::TempDir;
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeBus, FakeQueue, FakeTable, Faults},
};
use workspace::Workspaces;

/// One workspace of the local person, and the parts below it.
pub(crate) struct OnFakes {
    pub id: WorkspaceId,
    pub workspaces: Workspaces,
    pub clock: Arc<TestClock>,
    pub table: Arc<dyn Table>,
    pub blobs: Arc<FakeBlobs>,
    pub queue: Arc<FakeQueue>,
    _disk: TempDir,
}

impl OnFakes {
    /// Makes it, without faults.
    pub async fn new() -> Self {
        let disk = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock::new(0));
        let table: Arc<dyn Table> = Arc::new(FakeTable::new(clock.clone(), 0, Faults::none()));
        let blobs = Arc::new(FakeBlobs::new(0, Faults::none()));
        let queue = Arc::new(FakeQueue::new(clock.clone(), 0, Faults::none(), 3));
        let workspaces = Workspaces::new(table.clone(), blobs.clone(), clock.clone(), disk.path().to_owned());
        let id = "019bf537-f228-7cd3-aa1c-3da8af302e12".parse().unwrap();
        workspaces.create(id, "w", &Principal::local()).await.unwrap();
        Self { id, workspaces, clock, table, blobs, queue, _disk: disk }
    }

    /// The way to its semaphores.
    pub fn semaphores(&self) -> Semaphores {
        Semaphores { table: self.table.clone(), queue: self.queue.clone(), clock: self.clock.clone() }
    }

    /// The ways to its tasks and chats.
    pub fn tasks_and_chats(&self) -> (Tasks, Chats) {
        let Self { workspaces, clock, table, queue, .. } = self;
        let bus = Arc::new(FakeBus::new(0, Faults::none()));
        let flows = Flows::new(table.clone(), workspaces.clone(), FlowCache::default(), KnownNames::default());
        let tasks = Tasks::new(table.clone(), queue.clone(), bus.clone(), clock.clone(), workspaces.clone(), flows);
        let settings = chat::Settings::default();
        let chats = Chats::new(table.clone(), queue.clone(), bus, clock.clone(), workspaces.clone(), settings);
        (tasks, chats)
    }

    /// Has a semaphore without a log grant slots of a workspace to these holders, each with the actor that asked.
    pub async fn holds(&self, semaphore: &ActorId, workspace: WorkspaceId, holders: &[(&str, &ActorId)]) {
        let at = self.clock.now();
        let mut events = Vec::new();
        for (holder, actor) in holders {
            let ask = Ask {
                holder: (*holder).to_owned(),
                wants: vec![("commands".to_owned(), 32)],
                party: workspace.to_string(),
                share: None,
                priority: 0,
                to: (*actor).clone(),
                grant: Value::Null,
                bound: None,
            };
            events.push(SlotsEvent::Asked { ask: Box::new(ask), at });
            events.push(SlotsEvent::Granted { holder: (*holder).to_owned() });
        }
        let (next, step) = (1 + events.len() as u64, self.clock.id());
        let entry = Entry { first: 1, next, at, step, commands: vec![], events, outbox: vec![], parking: None };
        let body = serde_json::to_string(&entry).unwrap();
        self.table.commit(vec![Write::put(semaphore.entry_key(1), body, Expect::Absent)]).await.unwrap();
    }

    /// The semaphores that were told of slots that are given back, each with the holder.
    pub fn given_back(&self) -> Vec<(ActorId, String)> {
        let given = |message: ports::QueueMessage| {
            let content = Envelope::<SlotsCommand>::parse(&message.body).unwrap().content;
            match content {
                Content::Command { body: SlotsCommand::Give { holder } } => {
                    Some((ActorId::from_group(&message.group), holder))
                }
                _ => None,
            }
        };
        self.queue.messages().into_iter().filter_map(given).collect()
    }
}
