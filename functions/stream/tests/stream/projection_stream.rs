//! Streams through a projection: the fold, the cursor, the bus, and the ends.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::support::{Faults, Log, MemoryBus, MemoryTable, Random, hidden, text};
use axum::body::BodyDataStream;
use buildscale_stream::{Cursor, FeedOptions, Feeds, Metrics};
use domain::{ChatEvent, Timestamp};
use futures::StreamExt;
use protocols::{Frame, Projection, Span};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Counts the pieces of text that it saw, as a projection that needs the whole log does. `end` ends it.
#[derive(Default)]
struct Counting {
    pieces: u64,
    named: bool,
    over: bool,
    /// Whether its clients take the end of the stream for its own.
    ends_with_its_stream: bool,
    /// The events that all projections of a test took in. It is no state: nothing depends on it.
    folded: Arc<AtomicU64>,
}

impl std::fmt::Debug for Counting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Counting {} {} {}", self.pieces, self.named, self.over)
    }
}

impl Projection for Counting {
    type Event = ChatEvent;
    fn take_in(&mut self, number: u64, _: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        self.folded.fetch_add(1, SeqCst);
        let ChatEvent::Chunk { text, .. } = event else { return };
        self.pieces += 1;
        let named = self.named.then_some("piece");
        frames.push(Frame { number, event: named, data: json!({ "n": self.pieces }) });
        match text.as_str() {
            "twice" => frames.push(Frame { number, event: named, data: json!({ "again": self.pieces }) }),
            "long" => frames.push(Frame { number, event: named, data: json!({ "long": "x".repeat(64 * 1024) }) }),
            "end" => self.over = true,
            _ => {}
        }
    }
    fn is_over(&self) -> bool {
        self.over
    }
    fn ends_with_its_stream(&self) -> bool {
        self.ends_with_its_stream
    }
}

struct World {
    table: Arc<MemoryTable>,
    bus: Arc<MemoryBus>,
    feeds: Feeds,
    shutdown: CancellationToken,
    folded: Arc<AtomicU64>,
}

fn world(seed: u64, faults: Faults) -> World {
    let (table, bus) = (Arc::new(MemoryTable::default()), Arc::new(MemoryBus::new(seed, faults)));
    let shutdown = CancellationToken::new();
    let options = FeedOptions { chunk_bytes: 512, ..FeedOptions::default() };
    let feeds = Feeds::new(table.clone(), bus.clone(), options, Arc::new(Metrics::default()), shutdown.clone());
    World { table, bus, feeds, shutdown, folded: Arc::default() }
}

const ALL: Span = Span { fold_from: 1, first: 1, to_the_end: false };

impl World {
    fn log(&self) -> Log {
        Log::new(&self.table, &self.bus)
    }

    async fn watch(&self, log: &Log, span: Span, cursor: Cursor) -> Reader {
        let folded = self.folded.clone();
        let projection = Box::new(Counting { named: true, folded, ..Counting::default() });
        let response = self.feeds.projected(log.actor, projection, span, cursor).await.unwrap();
        Reader { bytes: response.into_body().into_data_stream(), seen: String::new() }
    }
}

struct Reader {
    bytes: BodyDataStream,
    seen: String,
}

impl Reader {
    /// Reads the next bytes; false at the end of the stream.
    async fn read(&mut self) -> bool {
        let bytes = timeout(Duration::from_secs(600), self.bytes.next()).await.expect("the stream is stuck");
        let Some(bytes) = bytes else { return false };
        self.seen.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
        true
    }

    async fn read_to(&mut self, id: u64) {
        while !self.seen.ends_with("\n\n") || !self.seen.contains(&format!("id: {id}\n")) {
            assert!(self.read().await, "the stream ended: {}", self.seen);
        }
    }

    /// The data of all frames.
    fn data(&self) -> Vec<&str> {
        self.seen.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_fold_shows_the_frames_after_its_cursor_for_any_fault_of_the_bus() {
    let all = Faults { lost: 20, doubled: 20, late: 20, garbled: 5, away: false };
    let kinds = [Faults::default(), Faults { lost: 100, ..all }, Faults { away: true, ..all }, all];
    for seed in 0..100_u64 {
        let world = world(seed, kinds[(seed % 4) as usize]);
        let (mut random, mut log) = (Random(seed + 1), world.log());
        let (mut readers, mut shown) = (Vec::new(), Vec::new());
        for _ in 0..random.below(60) {
            let first = log.next;
            let words: Vec<_> = (0..random.below(4)).map(|_| random.below(4) != 0).collect();
            shown.extend((first..).zip(&words).filter(|(_, is_shown)| **is_shown).map(|(number, _)| number));
            log.write(
                words.iter().map(|shown| if *shown { text("word") } else { hidden() }).collect(),
                random.below(3),
            )
            .await;
            if random.below(6) == 0 {
                let after = random.below(log.next);
                readers.push((after, world.watch(&log, ALL, Cursor::After(after)).await));
            }
        }
        shown.push(log.next);
        log.write(vec![text("word")], 0).await;
        for (after, mut reader) in readers {
            reader.read_to(log.next - 1).await;
            let expected =
                (1..).zip(&shown).filter(|(_, number)| **number > after).map(|(n, _)| format!("{{\"n\":{n}}}"));
            assert_eq!(reader.data(), expected.collect::<Vec<_>>(), "seed {seed}, after {after}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_projection_and_shows_nothing_after_it() {
    let world = world(1, Faults::default());
    let mut log = world.log();
    log.write(vec![text("one")], 0).await;
    let mut live = world.watch(&log, ALL, Cursor::None).await;
    live.read_to(1).await;
    log.write(vec![text("end"), text("after")], 0).await;
    log.write(vec![text("later")], 0).await;
    while live.read().await {}
    assert_eq!(live.data(), ["{\"n\":1}", "{\"n\":2}"]);
    let mut replayed = world.watch(&log, ALL, Cursor::None).await;
    while replayed.read().await {}
    assert_eq!(replayed.seen, live.seen);
    drop((live, replayed));
    assert_eq!(world.feeds.metrics().counts().subscriptions, 0);
}

#[tokio::test(start_paused = true)]
async fn only_the_last_frame_of_an_event_has_its_number_and_names_are_optional() {
    let world = world(1, Faults::default());
    let mut log = world.log();
    log.write(vec![text("twice"), text("end")], 0).await;
    let named = Box::new(Counting { named: true, ..Counting::default() });
    let unnamed = Box::new(Counting::default());
    let mut texts = Vec::new();
    for projection in [named, unnamed] {
        let response = world.feeds.projected(log.actor, projection, ALL, Cursor::None).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut reader = Reader { bytes: response.into_body().into_data_stream(), seen: String::new() };
        while reader.read().await {}
        texts.push(reader.seen.split_once(" \n").unwrap().1.to_owned());
    }
    let named = "event: piece\ndata: {\"n\":1}\n\nid: 1\nevent: piece\ndata: {\"again\":1}\n\nid: 2\nevent: piece\ndata: {\"n\":2}\n\n";
    assert_eq!(texts, [named.to_owned(), named.replace("event: piece\n", "")]);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_is_not_known_counts_as_none_and_a_span_bounds_the_fold() {
    let world = world(1, Faults::default());
    let mut log = world.log();
    log.chatter(5).await;
    let span = Span { fold_from: 3, first: 4, to_the_end: false };
    for (cursor, expected) in [
        (Cursor::None, vec!["{\"n\":2}", "{\"n\":3}"]),
        (Cursor::Unknown, vec!["{\"n\":2}", "{\"n\":3}"]),
        (Cursor::After(17), vec!["{\"n\":2}", "{\"n\":3}"]),
        (Cursor::After(2), vec!["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"]),
        (Cursor::After(4), vec!["{\"n\":3}"]),
    ] {
        let mut reader = world.watch(&log, span, cursor).await;
        reader.read_to(5).await;
        assert_eq!(reader.data(), expected, "{cursor:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_filled_with_comments_and_a_shutdown_ends_a_stream() {
    let world = world(1, Faults::default());
    let mut log = world.log();
    log.chatter(1).await;
    let mut reader = world.watch(&log, ALL, Cursor::None).await;
    while !reader.seen.contains(": keep-alive\n") {
        assert!(reader.read().await);
    }
    world.shutdown.cancel();
    while reader.read().await {}
    assert_eq!(reader.data(), ["{\"n\":1}"]);
    assert!(reader.seen.lines().last().unwrap().starts_with("retry: "), "{}", reader.seen);
}

/// Clients that take the end of a stream for that of what it shows are told an interruption by a broken answer, after all that was sent. Where answers cannot
/// break off, and where the end itself was told, it ends in good order.
#[tokio::test(start_paused = true)]
async fn an_interrupted_stream_breaks_off_where_its_end_means_something() {
    for (ends_with_its_stream, may_break_off, is_over, is_broken) in
        [(true, true, false, true), (true, true, true, false), (true, false, false, false), (false, true, false, false)]
    {
        for to_the_end in [false, true] {
            let world = world(1, Faults::default());
            let options = FeedOptions { may_break_off, ..FeedOptions::default() };
            let metrics = Arc::new(Metrics::default());
            let feeds = Feeds::new(world.table.clone(), world.bus.clone(), options, metrics, world.shutdown.clone());
            let mut log = world.log();
            log.write(vec![text("one")], 0).await;
            let projection = Box::new(Counting { ends_with_its_stream, ..Counting::default() });
            let span = Span { to_the_end, ..ALL };
            let response = feeds.projected(log.actor, projection, span, Cursor::None).await.unwrap();
            let mut reader = Reader { bytes: response.into_body().into_data_stream(), seen: String::new() };
            reader.read_to(1).await;
            if is_over {
                log.write(vec![text("end")], 0).await;
                reader.read_to(2).await;
            }
            world.shutdown.cancel();
            let broken = loop {
                match timeout(Duration::from_secs(600), reader.bytes.next()).await.unwrap() {
                    Some(Ok(bytes)) => reader.seen.push_str(std::str::from_utf8(&bytes).unwrap()),
                    Some(Err(_)) => break true,
                    None => break false,
                }
            };
            let case = (ends_with_its_stream, may_break_off, is_over, to_the_end);
            assert_eq!(broken, is_broken, "{case:?}: {}", reader.seen);
            let says_when_to_return = reader.seen.lines().last().unwrap().starts_with("retry: ");
            assert_eq!(says_when_to_return, !is_over, "{case:?}: {}", reader.seen);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_to_the_end_outlives_the_others() {
    let world = world(1, Faults::default());
    let mut log = world.log();
    log.chatter(1).await;
    let mut lasting = world.watch(&log, Span { to_the_end: true, ..ALL }, Cursor::None).await;
    let mut others = world.watch(&log, ALL, Cursor::None).await;
    while others.read().await {}
    lasting.read_to(1).await;
    let long = FeedOptions::default().max_life * 2;
    assert!(timeout(long, async { while lasting.read().await {} }).await.is_err(), "it has ended");
    log.write(vec![text("end")], 0).await;
    while lasting.read().await {}
    assert_eq!(lasting.data(), ["{\"n\":1}", "{\"n\":2}"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_has_one_page_of_the_log_read() {
    let world = world(1, Faults::default());
    let mut log = world.log();
    log.chatter(1000).await;
    let before = world.table.queries.load(SeqCst);
    let mut reader = world.watch(&log, ALL, Cursor::None).await;
    for _ in 0..6 {
        assert!(reader.read().await);
    }
    assert_eq!(world.table.queries.load(SeqCst) - before, 2, "the end of the log, and a page");
    reader.read_to(1000).await;
    assert_eq!(reader.data().len(), 1000);
}

/// The frames of a short event may be long: a page of the log may have many times its length as frames.
#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_has_few_long_frames_waiting() {
    const EVENTS: u64 = 60;
    let world = world(1, Faults::default());
    let mut log = world.log();
    for _ in 0..EVENTS {
        log.write(vec![text("long")], 0).await;
    }
    let (metrics, options) = (Arc::new(Metrics::default()), FeedOptions::default());
    let feeds = Feeds::new(world.table.clone(), world.bus.clone(), options, metrics, world.shutdown.clone());
    let projection = Box::new(Counting { named: true, folded: world.folded.clone(), ..Counting::default() });
    let response = feeds.projected(log.actor, projection, ALL, Cursor::None).await.unwrap();
    let mut reader = Reader { bytes: response.into_body().into_data_stream(), seen: String::new() };
    while !reader.seen.contains("data: ") {
        assert!(reader.read().await);
    }
    let folded = world.folded.load(SeqCst);
    assert!((1..20).contains(&folded), "{folded} events were folded for a client that has read one chunk");
    // Those that come meanwhile are left to the log, too.
    log.write(vec![text("last")], 0).await;
    reader.read_to(EVENTS + 1).await;
    assert_eq!(reader.data().len() as u64, 2 * EVENTS + 1);
    assert_eq!(world.folded.load(SeqCst), EVENTS + 1, "each event is taken in once");
}

#[tokio::test(start_paused = true)]
async fn many_watchers_have_the_log_folded_once() {
    const WATCHERS: u64 = 50;
    let world = world(1, Faults::default());
    let mut log = world.log();
    log.chatter(3).await;
    let mut readers = Vec::new();
    for _ in 0..WATCHERS {
        let mut reader = world.watch(&log, ALL, Cursor::None).await;
        reader.read_to(3).await;
        readers.push(reader);
    }
    let before = world.folded.load(SeqCst);
    for _ in 0..100 {
        log.write(vec![text("word")], 0).await;
        for reader in &mut readers {
            reader.read_to(log.next - 1).await;
        }
    }
    // A watcher joins when it is asked for more than the log had: in its first new event, all but the first fold for themselves.
    let folded = world.folded.load(SeqCst) - before;
    assert!(folded <= 100 + WATCHERS, "{folded} events were folded for {WATCHERS} watchers of 100");
    let mut late = world.watch(&log, ALL, Cursor::None).await;
    late.read_to(log.next - 1).await;
    log.write(vec![text("end")], 0).await;
    for reader in readers.iter_mut().chain([&mut late]) {
        while reader.read().await {}
        assert_eq!(reader.data(), (1..=104).map(|n| format!("{{\"n\":{n}}}")).collect::<Vec<_>>());
    }
}

/// Pieces of text expire. A watcher that folds the log without them has another state, and may not take over what others were sent.
#[tokio::test(start_paused = true)]
async fn a_watcher_with_another_state_folds_for_itself() {
    let world = world(1, Faults::default());
    let mut log = world.log();
    log.chatter(3).await;
    let mut first = world.watch(&log, ALL, Cursor::None).await;
    first.read_to(3).await;
    log.chatter(1).await;
    first.read_to(4).await;
    // It begins to fold where the first one has been: its counts are its own.
    let span = Span { fold_from: 4, first: 4, to_the_end: false };
    let mut other = world.watch(&log, span, Cursor::None).await;
    other.read_to(4).await;
    for number in 5..20 {
        log.chatter(1).await;
        first.read_to(number).await;
        other.read_to(number).await;
    }
    assert_eq!(first.data().last(), Some(&"{\"n\":19}"));
    assert_eq!(other.data(), (1..=16).map(|n| format!("{{\"n\":{n}}}")).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_is_too_slow_for_the_others_comes_back() {
    let world = world(1, Faults::default());
    let mut log = world.log();
    log.chatter(1).await;
    let (mut fast, mut slow) = (world.watch(&log, ALL, Cursor::None).await, world.watch(&log, ALL, Cursor::None).await);
    fast.read_to(1).await;
    slow.read_to(1).await;
    log.chatter(1).await;
    fast.read_to(2).await;
    slow.read_to(2).await;
    log.chatter(20_000).await;
    fast.read_to(20_002).await;
    while slow.read().await {}
    let seen = slow.data().len() as u64;
    assert!(seen < 20_002 && slow.seen.lines().last().unwrap().starts_with("retry: "), "{seen}");
    let mut again = world.watch(&log, ALL, Cursor::After(seen)).await;
    again.read_to(20_002).await;
    assert_eq!(again.data().len() as u64 + seen, 20_002, "nothing is lost");
}
