//! The events that a subscription gets, under loss, duplication and reordering on the bus.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::support::{Faults, Log, MemoryBus, MemoryTable, Random, hidden, numbers, parse, text};
use buildscale_stream::{Cursor, FeedOptions, Feeds, Metrics, Start, Subscription};
use domain::{ActorRef, NodeId, TaskEvent};
use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

struct World {
    table: Arc<MemoryTable>,
    bus: Arc<MemoryBus>,
    feeds: Feeds,
    shutdown: CancellationToken,
}

fn world(seed: u64, faults: Faults, options: FeedOptions) -> World {
    let (table, bus) = (Arc::new(MemoryTable::default()), Arc::new(MemoryBus::new(seed, faults)));
    let shutdown = CancellationToken::new();
    let feeds = Feeds::new(table.clone(), bus.clone(), options, Arc::new(Metrics::default()), shutdown.clone());
    World { table, bus, feeds, shutdown }
}

impl World {
    fn log(&self) -> Log {
        Log::new(&self.table, &self.bus)
    }

    async fn watch(&self, log: &Log, cursor: Cursor) -> Subscription {
        self.feeds.subscribe(log.actor, cursor, Start::Live).await.unwrap()
    }
}

fn small() -> FeedOptions {
    FeedOptions { window_frames: 8, window_bytes: 2048, chunk_bytes: 512, ..FeedOptions::default() }
}

/// Reads until the event `last` came.
async fn read_to(subscription: &mut Subscription, seen: &mut String, last: u64) {
    while numbers(seen).last() != Some(&last) {
        let bytes = timeout(Duration::from_secs(600), subscription.next()).await;
        seen.push_str(std::str::from_utf8(&bytes.expect("the stream is stuck").expect("the stream ended")).unwrap());
    }
}

fn after(log: &Log, cursor: u64) -> Vec<u64> {
    log.visible.iter().copied().filter(|number| *number > cursor).collect()
}

#[tokio::test(start_paused = true)]
async fn each_visible_event_once_and_in_order_for_any_fault_of_the_bus() {
    let all = Faults { lost: 20, doubled: 20, late: 20, garbled: 5, away: false };
    let kinds = [Faults::default(), Faults { lost: 100, ..Faults::default() }, Faults { lost: 50, ..all }, all];
    for seed in 0..200_u64 {
        let world = world(seed, kinds[(seed % 4) as usize], small());
        let mut random = Random(seed + 1);
        let mut log = world.log();
        let mut readers: Vec<(u64, Subscription, String)> = Vec::new();
        for _ in 0..random.below(60) {
            let events = (0..random.below(4)).map(|_| if random.below(4) == 0 { hidden() } else { text("word") });
            let events = events.collect();
            log.write(events, random.below(2) * random.below(5)).await;
            if random.below(6) == 0 {
                let cursor = random.below(log.next);
                readers.push((cursor, world.watch(&log, Cursor::After(cursor)).await, String::new()));
            }
            if let Some((_, reader, seen)) = readers.first_mut()
                && random.below(3) == 0
                && let Ok(Some(bytes)) = timeout(Duration::from_millis(1), reader.next()).await
            {
                seen.push_str(std::str::from_utf8(&bytes).unwrap());
            }
        }
        log.chatter(1).await;
        for (cursor, mut reader, mut seen) in readers {
            read_to(&mut reader, &mut seen, log.next - 1).await;
            assert_eq!(numbers(&seen), after(&log, cursor), "seed {seed}, after {cursor}");
        }
    }
}

#[tokio::test]
async fn a_task_is_watched_like_a_chat_live_and_from_its_log() {
    let world = world(1, Faults::default(), small());
    let mut log = Log::of_task(&world.table, &world.bus);
    let mut live = world.watch(&log, Cursor::After(0)).await;
    let routed = |n: u64| TaskEvent::Routed { from: "a".into(), to: NodeId::from(format!("n{n}").as_str()) };
    for n in 0..40 {
        log.write_task(vec![routed(n), TaskEvent::Spawned { node: "a".into(), until: 1 }]).await;
    }
    let mut late = world.watch(&log, Cursor::After(0)).await;
    for reader in [&mut live, &mut late] {
        let mut seen = String::new();
        read_to(reader, &mut seen, 79).await;
        assert_eq!(numbers(&seen), log.visible);
        let expected = (1, "routed".to_owned(), r#"{"from":"a","to":"n0"}"#.to_owned());
        assert_eq!(parse(&seen).first(), Some(&expected));
    }
}

#[tokio::test]
async fn a_stream_resumes_at_every_number_also_inside_an_entry() {
    for options in [small(), FeedOptions::default()] {
        let world = world(1, Faults::default(), options);
        let mut log = world.log();
        for round in 0..60 {
            log.write(vec![text("a"), hidden(), text("b"), text("c")], round % 3).await;
        }
        for cursor in 0..log.next {
            let mut reader = world.watch(&log, Cursor::After(cursor)).await;
            let expected = after(&log, cursor);
            let mut seen = String::from_utf8(reader.next().await.unwrap().to_vec()).unwrap();
            assert!(seen.starts_with(&format!("id: {cursor}\n")), "{seen}");
            if let Some(last) = expected.last() {
                read_to(&mut reader, &mut seen, *last).await;
            }
            assert_eq!(numbers(&seen), expected, "after {cursor}");
        }
    }
}

#[tokio::test]
async fn streams_without_a_cursor_begin_at_the_turn_or_live() {
    let world = world(1, Faults::default(), FeedOptions::default());
    let mut log = world.log();
    log.chatter(9).await;
    let mut live = world.feeds.subscribe(log.actor, Cursor::None, Start::Live).await.unwrap();
    let mut turn = world.feeds.subscribe(log.actor, Cursor::None, Start::Turn(4)).await.unwrap();
    log.chatter(1).await;
    for (reader, first) in [(&mut live, 10), (&mut turn, 4)] {
        let mut seen = String::new();
        read_to(reader, &mut seen, 10).await;
        assert_eq!(numbers(&seen).first(), Some(&first));
    }
}

#[tokio::test]
async fn a_cursor_of_no_use_is_reset_and_the_stream_goes_on() {
    let world = world(1, Faults::default(), FeedOptions::default());
    let mut log = world.log();
    log.chatter(20).await;
    (1..10).for_each(|first| world.table.remove(&log.entry_key(first)));
    let cases = [
        (Cursor::Unknown, Start::Live, "unknown_cursor", 20),
        (Cursor::After(21), Start::Turn(15), "unknown_cursor", 14),
        (Cursor::After(3), Start::Live, "cursor_too_old", 20),
    ];
    let mut readers = Vec::new();
    for (cursor, start, reason, after) in cases {
        let mut reader = world.feeds.subscribe(log.actor, cursor, start).await.unwrap();
        let opening = String::from_utf8(reader.next().await.unwrap().to_vec()).unwrap();
        let data = format!("{{\"reason\":\"{reason}\",\"after\":{after}}}");
        assert_eq!(parse(&opening), [(after, "reset".to_owned(), data)]);
        readers.push((reader, after));
    }
    log.chatter(1).await;
    for (mut reader, after) in readers {
        let mut seen = String::new();
        read_to(&mut reader, &mut seen, 21).await;
        assert_eq!(numbers(&seen), (after + 1..=21).collect::<Vec<_>>());
    }
    assert_eq!(world.feeds.metrics().counts().resets, 3);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_is_ahead_of_a_late_bus_is_not_reset() {
    let world = world(1, Faults { lost: 100, ..Faults::default() }, FeedOptions::default());
    let mut log = world.log();
    let _first = world.watch(&log, Cursor::None).await;
    log.chatter(5).await;
    let mut reader = world.watch(&log, Cursor::After(3)).await;
    let mut seen = String::new();
    read_to(&mut reader, &mut seen, 5).await;
    assert_eq!(numbers(&seen), [4, 5]);
    assert_eq!(world.feeds.metrics().counts().resets, 0);
}

#[tokio::test]
async fn expired_deltas_are_skipped_without_a_word() {
    let world = world(1, Faults::default(), small());
    let mut log = world.log();
    log.chatter(100).await;
    (2..90).for_each(|first| world.table.remove(&log.entry_key(first)));
    let mut reader = world.watch(&log, Cursor::After(0)).await;
    let mut seen = String::new();
    read_to(&mut reader, &mut seen, 100).await;
    assert_eq!(numbers(&seen), [1].into_iter().chain(90..=100).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_lost_last_message_is_found_in_the_log() {
    let world = world(1, Faults { lost: 100, ..Faults::default() }, FeedOptions::default());
    let mut log = world.log();
    let mut reader = world.watch(&log, Cursor::None).await;
    log.chatter(3).await;
    let (began, mut seen) = (Instant::now(), String::new());
    read_to(&mut reader, &mut seen, 3).await;
    assert!(began.elapsed() <= Duration::from_secs(6), "{:?}", began.elapsed());
    assert_eq!(world.feeds.metrics().counts().healed_gaps, 1);
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_hangs_up_and_a_table_that_fails_are_survived() {
    let world = world(1, Faults::default(), FeedOptions::default());
    let mut log = world.log();
    let mut reader = world.watch(&log, Cursor::None).await;
    let mut seen = String::new();
    world.bus.hang_up();
    log.chatter(2).await;
    read_to(&mut reader, &mut seen, 2).await;
    // It listens again: the next message comes by itself.
    let began = Instant::now();
    log.chatter(1).await;
    read_to(&mut reader, &mut seen, 3).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    // A gap while the table is down is healed when it is back.
    world.table.broken.store(true, SeqCst);
    world.bus.set(Faults { garbled: 100, ..Faults::default() });
    log.chatter(2).await;
    assert!(timeout(Duration::from_secs(9), read_to(&mut reader, &mut seen, 5)).await.is_err());
    world.table.broken.store(false, SeqCst);
    read_to(&mut reader, &mut seen, 5).await;
    assert_eq!(numbers(&seen), [1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn subscribing_fails_while_the_table_is_down_and_works_afterwards() {
    let world = world(1, Faults::default(), FeedOptions::default());
    let log = world.log();
    world.table.broken.store(true, SeqCst);
    assert!(world.feeds.subscribe(log.actor, Cursor::None, Start::Live).await.is_err());
    assert_eq!(world.feeds.metrics().counts().feeds, 0);
    world.table.broken.store(false, SeqCst);
    assert!(world.feeds.subscribe(log.actor, Cursor::None, Start::Live).await.is_ok());
}

#[tokio::test]
async fn an_evaluation_has_no_events_to_watch() {
    let world = world(1, Faults::default(), FeedOptions::default());
    let evaluation = ActorRef::Evaluation { workspace: Uuid::nil().into(), evaluation: Uuid::nil().into() };
    let refused = world.feeds.subscribe(evaluation, Cursor::None, Start::Live).await;
    assert!(matches!(refused, Err(ports::Error::Invalid(_))));
    assert_eq!(world.feeds.metrics().counts().feeds, 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_bus_watchers_are_served_from_the_log_until_it_is_back() {
    let world = world(1, Faults { away: true, lost: 100, ..Faults::default() }, FeedOptions::default());
    let mut log = world.log();
    let mut reader = world.watch(&log, Cursor::None).await;
    let mut seen = String::new();
    log.chatter(2).await;
    read_to(&mut reader, &mut seen, 2).await;
    world.bus.set(Faults::default());
    log.chatter(1).await;
    read_to(&mut reader, &mut seen, 3).await;
    assert_eq!((numbers(&seen), world.bus.listeners()), (vec![1, 2, 3], 1));
}

#[tokio::test(start_paused = true)]
async fn silence_is_never_longer_than_the_keep_alive_and_costs_few_reads() {
    let options = FeedOptions { max_life: Duration::from_secs(7200), ..FeedOptions::default() };
    let world = world(1, Faults::default(), options);
    let log = world.log();
    let mut reader = world.watch(&log, Cursor::None).await;
    reader.next().await.unwrap();
    let (start, before) = (Instant::now(), world.table.queries.load(SeqCst));
    while start.elapsed() < Duration::from_secs(3600) {
        let began = Instant::now();
        assert_eq!(reader.next().await.unwrap(), ": keep-alive\n");
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }
    let queries = world.table.queries.load(SeqCst) - before;
    assert!(queries < 140, "an idle chat is looked at about once a minute, each time with two queries: {queries}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_client_is_always_behind_ends_in_time_too() {
    let options = FeedOptions { max_life: Duration::from_secs(600), ..small() };
    let world = world(1, Faults::default(), options);
    let mut log = world.log();
    log.chatter(100).await;
    let mut reader = world.watch(&log, Cursor::After(0)).await;
    let began = Instant::now();
    // It takes a chunk per minute, and more than that comes.
    while reader.next().await.is_some() {
        log.chatter(100).await;
        sleep(Duration::from_secs(60)).await;
        assert!(began.elapsed() < Duration::from_secs(800), "it goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_in_time_to_be_asked_again_and_loses_nothing() {
    let options = FeedOptions { max_life: Duration::from_secs(600), ..FeedOptions::default() };
    let world = world(6, Faults::default(), options);
    let mut log = world.log();
    let (mut lives, mut seen) = (BTreeSet::new(), Vec::new());
    // One that is silent, and others that never are.
    for pause in [100_000, 3, 3, 7, 7] {
        let (began, cursor) = (Instant::now(), seen.last().copied().unwrap_or(0));
        let mut reader = world.watch(&log, Cursor::After(cursor)).await;
        let mut text = String::new();
        loop {
            match timeout(Duration::from_secs(pause), reader.next()).await {
                Ok(Some(bytes)) => text.push_str(std::str::from_utf8(&bytes).unwrap()),
                Ok(None) => break,
                Err(_) => log.chatter(1).await,
            }
        }
        assert!(text.ends_with("retry: 500\n"), "{text}");
        seen.extend(numbers(&text));
        let life = began.elapsed().as_secs();
        assert!((520..=605).contains(&life), "{life}");
        lives.insert(life);
    }
    assert!(lives.len() > 1, "they do not all come back together: {lives:?}");
    assert!(seen.len() > 300 && log.visible.starts_with(&seen), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_task_ends_after_its_last_event_live_and_replayed() {
    let world = world(1, Faults::default(), small());
    let mut log = Log::of_task(&world.table, &world.bus);
    let all = async |mut reader: Subscription| {
        let mut seen = String::new();
        let read = async {
            while let Some(bytes) = reader.next().await {
                seen.push_str(std::str::from_utf8(&bytes).unwrap());
            }
        };
        // Any stream ends by its age, after some minutes.
        timeout(Duration::from_secs(120), read).await.expect("the stream ends");
        assert!(seen.ends_with("retry: 500\n"), "{seen}");
        numbers(&seen)
    };
    let live = tokio::spawn(all(world.watch(&log, Cursor::None).await));
    let at = domain::Timestamp::from_millis(0);
    let (status, output) = (domain::Status::Success, serde_json::json!(1));
    log.write_task(vec![TaskEvent::Routed { from: "a".into(), to: "b".into() }]).await;
    log.write_task(vec![TaskEvent::Finished { status, output, exit: None, error: None, at }]).await;
    // Events that only the machine needs come after it.
    log.write_task(vec![TaskEvent::Archived { files: 1 }]).await;
    assert_eq!(live.await.unwrap(), [1, 2]);
    assert_eq!(all(world.watch(&log, Cursor::After(1)).await).await, [2]);
    // On a server that knows the log only.
    let cold = Feeds::new(
        world.table.clone(),
        world.bus.clone(),
        small(),
        Arc::new(Metrics::default()),
        world.shutdown.clone(),
    );
    let replayed = cold.subscribe(log.actor, Cursor::After(0), Start::Live).await.unwrap();
    assert_eq!(all(replayed).await, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_feed_without_watchers_goes() {
    let world = world(1, Faults::default(), FeedOptions::default());
    let log = world.log();
    let reader = world.watch(&log, Cursor::None).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!((world.feeds.metrics().counts().feeds, world.bus.listeners()), (1, 1));
    drop(reader);
    sleep(Duration::from_secs(4)).await;
    assert_eq!(world.feeds.metrics().counts().feeds, 1, "a client that reconnects finds its feed");
    sleep(Duration::from_secs(7)).await;
    assert_eq!((world.feeds.metrics().counts().feeds, world.bus.listeners()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_lags_behind_the_window_reads_the_log() {
    let world = world(1, Faults::default(), small());
    let mut log = world.log();
    let mut slow = world.watch(&log, Cursor::After(0)).await;
    let mut quick = world.watch(&log, Cursor::After(0)).await;
    let (mut seen_slow, mut seen_quick) = (String::new(), String::new());
    for _ in 0..100 {
        log.chatter(5).await;
        read_to(&mut quick, &mut seen_quick, log.next - 1).await;
    }
    assert_eq!(world.feeds.metrics().counts().log_reads, 0, "a watcher that keeps up never reads the log");
    read_to(&mut slow, &mut seen_slow, log.next - 1).await;
    assert_eq!(numbers(&seen_slow), log.visible);
    assert!(world.feeds.metrics().counts().log_reads > 0);
}

#[tokio::test]
async fn readers_that_return_together_share_their_reads() {
    let world = world(1, Faults::default(), FeedOptions::default());
    let mut log = world.log();
    log.chatter(200).await;
    let mut returned = Vec::new();
    for _ in 0..50 {
        let mut reader = world.watch(&log, Cursor::After(100)).await;
        returned.push(tokio::spawn(async move {
            let mut seen = String::new();
            read_to(&mut reader, &mut seen, 200).await;
            seen
        }));
    }
    for reader in returned {
        assert_eq!(numbers(&reader.await.unwrap()), (101..=200).collect::<Vec<_>>());
    }
    assert!(world.feeds.metrics().counts().log_reads <= 2);
}

#[tokio::test]
async fn a_shutdown_says_when_to_come_back_and_ends() {
    let world = world(1, Faults::default(), FeedOptions::default());
    let log = world.log();
    let (mut waits, mut readers) = (BTreeSet::new(), Vec::new());
    for _ in 0..10 {
        let mut reader = world.watch(&log, Cursor::None).await;
        reader.next().await.unwrap();
        readers.push(reader);
    }
    world.shutdown.cancel();
    for mut reader in readers {
        let last = String::from_utf8(reader.next().await.unwrap().to_vec()).unwrap();
        let wait: u64 = last.strip_prefix("retry: ").and_then(|rest| rest.trim_end().parse().ok()).unwrap();
        waits.insert(wait);
        assert!(reader.next().await.is_none());
    }
    assert!(waits.len() > 5, "they come back spread out: {waits:?}");
}
