//! Schedules are made over stores that do not answer.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::Mailbox;
use buildscale_schedule::{Action, MissedPolicy, NewSchedule, NewTimes, OverlapPolicy, ScheduleView, Schedules};
use domain::{Code, CommandId, Error, Principal, WorkspaceId};
use ports::{QueueReceiver, Table};
use serde_json::Value;
use std::{path::PathBuf, slice, sync::Arc, time::Duration};
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeBus, FakeQueue, FakeTable, Faults, LosingQueue, Posting},
};
use uuid::Uuid;
use workspace::Workspaces;

/// The way in to the schedules of one workspace, in front of a queue that may take nothing.
struct Door {
    schedules: Schedules,
    queue: Arc<LosingQueue>,
    workspace: WorkspaceId,
    folder: PathBuf,
}

impl Drop for Door {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

impl Door {
    async fn open() -> Self {
        let clock = Arc::new(TestClock::new(0));
        let table: Arc<dyn Table> = Arc::new(FakeTable::new(clock.clone(), 0, Faults::none()));
        let blobs = Arc::new(FakeBlobs::new(0, Faults::none()));
        let queue = Arc::new(LosingQueue::new(Arc::new(FakeQueue::new(clock.clone(), 0, Faults::none(), 3))));
        let bus = Arc::new(FakeBus::new(0, Faults::none()));
        let folder = std::env::temp_dir().join(format!("schedules-{}", Uuid::now_v7()));
        let workspaces = Workspaces::new(table.clone(), blobs, clock.clone(), folder.clone());
        let workspace = WorkspaceId::from_key("test", "workspace");
        workspaces.create(workspace, "w", &Principal::local()).await.unwrap();
        let mailbox = Mailbox { table: table.clone(), queue: queue.clone(), bus };
        Self { schedules: Schedules::new(table, mailbox, clock, workspaces), queue, workspace, folder }
    }

    async fn make(&self, number: u128) -> Result<ScheduleView, Error> {
        self.make_by(number, "FREQ=DAILY").await
    }

    async fn make_by(&self, number: u128, rrule: &str) -> Result<ScheduleView, Error> {
        let rrule = rrule.to_owned();
        let new = NewSchedule {
            name: "Daily".into(),
            times: NewTimes::Rule { rrule, time_zone: "UTC".into(), begins: None },
            missed: MissedPolicy::RunOnce,
            overlap: OverlapPolicy::Begin,
            action: Action::Task { flow: "review".into(), input: Value::Null },
            may_not_run: false,
        };
        let (id, command) = (Uuid::from_u128(number), CommandId(Uuid::from_u128(number)));
        self.schedules.create(self.workspace, id, command, new, &Principal::local()).await
    }

    async fn count(&self) -> usize {
        self.schedules.list(self.workspace, 1_000, None).await.unwrap().schedules.len()
    }
}

#[tokio::test]
async fn a_schedule_that_was_not_made_is_on_no_list() {
    let door = Door::open().await;
    door.queue.set(Posting::IsRefused);
    assert!(door.make(1).await.is_err());
    assert_eq!(door.count().await, 0, "one that never runs would be shown as active");
    door.queue.set(Posting::Comes);
    door.make(1).await.unwrap();
    assert_eq!(door.count().await, 1);
}

#[tokio::test]
async fn a_schedule_that_is_made_again_is_no_further_one() {
    let door = Door::open().await;
    for number in 1..=200 {
        door.make(number).await.unwrap();
    }
    // The answer to the last one was lost.
    assert_eq!(door.make(200).await.unwrap().schedule_id, Uuid::from_u128(200));
    assert_eq!(door.make(201).await.unwrap_err().code, Code::Conflict);
    assert_eq!(door.count().await, 200);
}

/// On a full disk a hub delivers urgent messages alone.
#[tokio::test]
async fn pauses_and_deletions_of_schedules_are_urgent() {
    let door = Door::open().await;
    let group = async || {
        let taken = door.queue.receive(1, Duration::from_secs(60)).await.unwrap().remove(0);
        assert!(door.queue.ack(slice::from_ref(&taken.receipt)).await.unwrap());
        taken.group
    };
    for number in 1..=3 {
        door.make(number).await.unwrap();
        group().await;
    }
    let (schedules, workspace, by) = (&door.schedules, door.workspace, Principal::local());
    let command = || CommandId(Uuid::now_v7());
    schedules.pause(workspace, Uuid::from_u128(1), command(), false, &by).await.unwrap();
    schedules.pause(workspace, Uuid::from_u128(2), command(), true, &by).await.unwrap();
    schedules.delete(workspace, Uuid::from_u128(3), command(), &by).await.unwrap();
    for number in [2, 3, 1] {
        let group = group().await;
        assert!(group.ends_with(&Uuid::from_u128(number).to_string()), "{group} comes before {number}");
    }
}

#[tokio::test]
async fn the_hint_about_a_rule_that_is_never_due_speaks_of_an_end_only_where_it_has_one() {
    let door = Door::open().await;
    let refused = door.make_by(1, "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30").await.unwrap_err();
    let hint = refused.hint.unwrap_or_default();
    assert_eq!(refused.code, Code::InvalidArgument);
    assert!(hint.contains("days and times that there are") && !hint.contains("UNTIL"), "{hint}");
}
