//! The ends of streams: after the last event of a task, and of a chat that is deleted.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::support::{Faults, Log, MemoryBus, MemoryTable, numbers, text};
use async_trait::async_trait;
use buildscale_stream::{Changes, Cursor, FeedOptions, Feeds, Followed, Metrics, Records, Start, States, Subscription};
use domain::{ActorRef, ChatEvent, TaskEvent, Timestamp, TurnId, WorkspaceEvent};
use futures::StreamExt;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const AT: Timestamp = Timestamp::from_millis(0);
const TURN: TurnId = TurnId(Uuid::from_u128(2));

struct World {
    table: Arc<MemoryTable>,
    bus: Arc<MemoryBus>,
}

fn world(faults: Faults) -> World {
    World { table: Arc::default(), bus: Arc::new(MemoryBus::new(1, faults)) }
}

impl World {
    /// The feeds of a process that has just begun: it knows the log only.
    fn feeds(&self) -> Feeds {
        let options = FeedOptions { window_frames: 2, ..FeedOptions::default() };
        let (table, bus) = (self.table.clone(), self.bus.clone());
        Feeds::new(table, bus, options, Arc::new(Metrics::default()), CancellationToken::new())
    }

    fn chat(&self) -> Log {
        Log::new(&self.table, &self.bus)
    }
}

fn stopped(turn_id: TurnId) -> ChatEvent {
    let (reason, partial_response) = ("deleted".to_owned(), String::new());
    ChatEvent::Stopped { turn_id, stop_id: None, reason, partial_response, at: AT }
}

fn deleted(turn_id: Option<TurnId>) -> ChatEvent {
    ChatEvent::Deleted { turn_id, at: AT }
}

/// Any stream ends after some minutes: one that ends with its log does so sooner.
const SOON: Duration = Duration::from_secs(120);

/// The numbers of the events up to the end of the stream.
async fn all(mut reader: Subscription) -> Vec<u64> {
    let read = async {
        let mut seen = String::new();
        while let Some(bytes) = reader.next().await {
            seen.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        seen
    };
    let seen = timeout(SOON, read).await.expect("the stream ends");
    assert!(seen.ends_with("retry: 500\n"), "{seen}");
    numbers(&seen)
}

async fn watch(feeds: &Feeds, actor: ActorRef, after: u64) -> Subscription {
    feeds.subscribe(actor, Cursor::After(after), Start::Live).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_deleted_chat_ends_after_its_last_turn_live_and_replayed() {
    for faults in [Faults::default(), Faults { lost: 100, ..Faults::default() }] {
        let (world, turn) = (world(faults), TurnId(Uuid::from_u128(1)));
        let (mut log, feeds) = (world.chat(), world.feeds());
        log.write(vec![text("a"), text("b")], 0).await;
        let live = tokio::spawn(all(watch(&feeds, log.actor, 0).await));
        // The end of an earlier turn is no end of the chat.
        log.write(vec![text("c"), stopped(turn)], 0).await;
        log.write(vec![text("d"), deleted(Some(TURN)), text("e")], 0).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!live.is_finished(), "the turn has not ended");
        log.write(vec![text("f"), stopped(TURN)], 0).await;
        let last = *log.visible.last().unwrap();
        assert_eq!(live.await.unwrap(), log.visible);
        for after in 0..=last {
            let rest: Vec<u64> = log.visible.iter().copied().filter(|number| *number > after).collect();
            assert_eq!(all(watch(&feeds, log.actor, after).await).await, rest, "after {after}");
        }
        assert_eq!(all(watch(&world.feeds(), log.actor, 0).await).await, log.visible);
    }
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_chat_that_is_deleted_between_turns_ends_at_once() {
    let world = world(Faults::default());
    let (mut log, feeds) = (world.chat(), world.feeds());
    log.write(vec![text("a"), stopped(TURN)], 0).await;
    let live = tokio::spawn(all(watch(&feeds, log.actor, 0).await));
    log.write(vec![deleted(None)], 0).await;
    assert_eq!(live.await.unwrap(), [1, 2]);
    assert_eq!(all(watch(&world.feeds(), log.actor, 2).await).await, Vec::<u64>::new());
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_task_that_is_deleted_before_it_begins_ends() {
    let world = world(Faults::default());
    let (mut log, feeds) = (Log::of_task(&world.table, &world.bus), world.feeds());
    let live = tokio::spawn(all(watch(&feeds, log.actor, 0).await));
    log.write_task(vec![TaskEvent::Deleted { at: AT }]).await;
    assert_eq!(live.await.unwrap(), Vec::<u64>::new());
}

/// A workspace in which nothing changes.
struct Quiet;

#[async_trait]
impl Changes for Quiet {
    fn channel(&self) -> String {
        "changes/quiet".into()
    }
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }
    fn late(&self) -> Duration {
        Duration::from_secs(30)
    }
    fn kept(&self) -> Duration {
        Duration::from_secs(3600)
    }
    async fn records(&self, _: Timestamp, _: Option<String>) -> ports::Result<Records> {
        Ok(Records::default())
    }
    fn seen(&self, event: WorkspaceEvent) -> Option<WorkspaceEvent> {
        Some(event)
    }
    async fn states(&self) -> ports::Result<States> {
        Ok(States::default())
    }
}

#[tokio::test(start_paused = true)]
async fn the_changes_of_a_workspace_end_in_time_for_a_client_that_reads_slowly() {
    let answer = world(Faults::default()).feeds().changes(Arc::new(Quiet), Cursor::None).await.unwrap();
    let mut body = answer.into_body().into_data_stream();
    let began = Instant::now();
    // Of the beats of a minute it sees two.
    while body.next().await.is_some() {
        sleep(Duration::from_secs(60)).await;
        assert!(began.elapsed() < FeedOptions::default().max_life * 2, "it goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_merged_stream_ends_with_a_deleted_chat_as_no_event_tells_its_end() {
    let world = world(Faults::default());
    let mut log = world.chat();
    let followed = Followed { actor: log.actor, cursor: Cursor::After(0), start: Start::Live };
    let answer = world.feeds().merged(Arc::new(Quiet), Cursor::None, vec![followed]).await.unwrap();
    let mut body = answer.into_body().into_data_stream();
    log.write(vec![text("a"), deleted(Some(TURN)), stopped(TURN)], 0).await;
    let read = async {
        let mut seen = String::new();
        while let Some(bytes) = body.next().await {
            seen.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
        }
        seen
    };
    let seen = timeout(SOON, read).await.expect("the stream ends");
    assert!(seen.contains("\"event\":\"stopped\""), "{seen}");
}
