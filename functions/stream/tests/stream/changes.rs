//! The changes of a workspace, on a bus that loses, repeats or delays their announcements.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::support::{Faults, Log, MemoryBus, MemoryTable, Random, hidden, text};
use async_trait::async_trait;
use axum::body::BodyDataStream;
use buildscale_stream::{Changes, Cursor, FeedOptions, Feeds, Followed, Metrics, Records, Start, States};
use domain::{
    Announced, ChatId, ChatStatus, FileId, FileKind, FileOp, FilePath, Mode, PresenceTarget, Status, TaskEvent, TaskId,
    Timestamp, UserId, WorkspaceEvent,
};
use futures::StreamExt;
use parking_lot::Mutex;
use ports::Bus;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The moment at which a test begins, in milliseconds since 1970.
const BEGIN: i64 = 1_800_000_000_000;
const LATE: Duration = Duration::from_secs(30);
const PAGE: usize = 8;
const CHANNEL: &str = "changes/w";

/// A workspace in memory, on the clock of the test.
struct Workspace {
    began: Instant,
    records: Mutex<BTreeMap<Uuid, WorkspaceEvent>>,
    chats: Mutex<Vec<WorkspaceEvent>>,
    bus: Arc<MemoryBus>,
    serial: AtomicUsize,
    reads: AtomicUsize,
    is_gone: AtomicBool,
    more_waits: AtomicBool,
}

#[async_trait]
impl Changes for Workspace {
    fn channel(&self) -> String {
        CHANNEL.into()
    }
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(BEGIN) + self.began.elapsed()
    }
    fn late(&self) -> Duration {
        LATE
    }
    fn kept(&self) -> Duration {
        Duration::from_secs(3600)
    }
    async fn records(&self, from: Timestamp, cursor: Option<String>) -> ports::Result<Records> {
        self.reads.fetch_add(1, SeqCst);
        if self.is_gone.load(SeqCst) {
            return Err(ports::Error::Invalid("the workspace is gone".into()));
        }
        let from = cursor.map_or_else(|| id(from, 0), |cursor| cursor.parse().unwrap());
        let records = self.records.lock();
        let mut rest = records.range(from..).map(|(id, event)| (*id, event.clone()));
        let page: Vec<_> = rest.by_ref().take(PAGE).collect();
        Ok((page, rest.next().map(|(id, _)| id.to_string())))
    }
    fn seen(&self, event: WorkspaceEvent) -> Option<WorkspaceEvent> {
        let hidden =
            matches!(&event, WorkspaceEvent::Presence { at: PresenceTarget::Path(at), .. } if at.as_str() == "/hidden");
        (!hidden).then_some(event)
    }
    async fn states(&self) -> ports::Result<States> {
        let events = self.chats.lock().clone();
        Ok(States { events, more_waits: self.more_waits.load(SeqCst) })
    }
}

fn id(at: Timestamp, serial: usize) -> Uuid {
    Uuid::from_u128((u128::try_from(at.as_millis()).unwrap() << 80) | serial as u128)
}

fn path(name: &str) -> FilePath {
    FilePath::parse(&format!("/{name}")).unwrap()
}

impl Workspace {
    fn new(bus: &Arc<MemoryBus>) -> Arc<Self> {
        let (records, chats) = (Mutex::default(), Mutex::default());
        let (serial, reads, bus) = (AtomicUsize::new(1), AtomicUsize::new(0), bus.clone());
        let (is_gone, more_waits) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self { began: Instant::now(), records, chats, bus, serial, reads, is_gone, more_waits })
    }

    /// Commits a change of a file whose id was drawn `ago`, and announces it.
    async fn write(&self, name: &str, ago: Duration) {
        let drawn = Timestamp::from_millis(self.now().as_millis() - i64::try_from(ago.as_millis()).unwrap());
        let event = WorkspaceEvent::FileUpdated {
            path: path(name),
            v: 1,
            file_id: FileId(Uuid::nil()),
            kind: FileKind::File,
            op: FileOp::Written,
            from: None,
            author: "user:ann".into(),
            at: drawn,
            conversion: None,
        };
        let id = id(drawn, self.serial.fetch_add(1, SeqCst));
        self.records.lock().insert(id, event.clone());
        self.announce(&Announced { id: Some(id), event }).await;
    }

    async fn chat(&self, title: &str, status: ChatStatus) {
        let event = WorkspaceEvent::ChatUpdated {
            chat_id: ChatId(Uuid::from_u128(7)),
            title: title.into(),
            model: None,
            mode: Mode::Chat,
            status,
            turn_id: None,
            waiting_for: 0,
            handed_out: None,
            active_at: self.now(),
        };
        *self.chats.lock() = vec![event.clone()];
        self.announce(&Announced { id: None, event }).await;
    }

    async fn announce(&self, announced: &Announced) {
        self.bus.publish(CHANNEL, serde_json::to_vec(announced).unwrap().into()).await.unwrap();
    }
}

struct World {
    table: Arc<MemoryTable>,
    bus: Arc<MemoryBus>,
    workspace: Arc<Workspace>,
    feeds: Feeds,
    shutdown: CancellationToken,
}

fn world(seed: u64, faults: Faults) -> World {
    let bus = Arc::new(MemoryBus::new(seed, faults));
    let shutdown = CancellationToken::new();
    let (table, metrics) = (Arc::new(MemoryTable::default()), Arc::<Metrics>::default());
    let feeds = Feeds::new(table.clone(), bus.clone(), FeedOptions::default(), metrics, shutdown.clone());
    World { workspace: Workspace::new(&bus), table, bus, feeds, shutdown }
}

/// A client with its events so far, as `name of file or title and status`, each with its cursor.
struct Client {
    body: BodyDataStream,
    text: String,
    seen: Vec<(u64, String)>,
}

impl World {
    async fn watch(&self, cursor: Cursor) -> Client {
        let answer = self.feeds.changes(self.workspace.clone(), cursor).await.unwrap();
        Client { body: answer.into_body().into_data_stream(), text: String::new(), seen: Vec::new() }
    }
}

impl Client {
    /// Reads on until `fits`, for ten minutes of the test's clock at most; false when the stream ends before.
    async fn until(&mut self, fits: impl Fn(&Self) -> bool) -> bool {
        while !fits(self) {
            let bytes = timeout(Duration::from_secs(600), self.body.next()).await;
            let Some(bytes) = bytes.unwrap_or_else(|_| panic!("nothing more comes: {:?}", self.seen)) else {
                return false;
            };
            self.text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
            while let Some((frame, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                if let (Some(id), Some(data)) = (field("id: "), field("data: ")) {
                    let data: serde_json::Value = serde_json::from_str(&data).unwrap();
                    let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
                    let here = data["here"].as_bool().map_or("", |here| if here { " here" } else { " gone" });
                    let requests = data.get("requests").map(ToString::to_string).unwrap_or_default();
                    let what =
                        [&*text("path"), &text("title"), &text("status"), &text("reason"), here, &requests].concat();
                    self.seen.push((id.parse().unwrap(), what));
                }
                self.text = rest.to_owned();
            }
        }
        true
    }

    fn names(&self) -> Vec<&str> {
        self.seen.iter().map(|(_, what)| what.as_str()).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.seen.iter().any(|(_, what)| what == name)
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_hears_what_comes_and_nothing_from_before() {
    let world = world(1, Faults::default());
    world.workspace.write("before", Duration::ZERO).await;
    world.workspace.chat("old", ChatStatus::Idle).await;
    let mut client = world.watch(Cursor::None).await;
    world.workspace.write("a", Duration::ZERO).await;
    world.workspace.chat("old", ChatStatus::Running).await;
    world.workspace.write("b", Duration::ZERO).await;
    assert!(client.until(|client| client.has("/b")).await);
    assert_eq!(client.names(), ["/a", "oldrunning", "/b"]);
    // The checks of a minute find nothing new.
    world.workspace.write("c", Duration::from_secs(3)).await;
    assert!(client.until(|client| client.has("/c")).await);
    assert_eq!(client.names(), ["/a", "oldrunning", "/b", "/c"]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_told_after_any_state_and_a_list_that_lags_brings_nothing_back() {
    let world = world(2, Faults::default());
    let mut client = world.watch(Cursor::None).await;
    world.workspace.chat("old", ChatStatus::Idle).await;
    let event = WorkspaceEvent::ChatDeleted { chat_id: ChatId(Uuid::from_u128(7)) };
    world.workspace.announce(&Announced { id: None, event }).await;
    assert!(client.until(|client| client.has("")).await);
    // Checks of two minutes still find the chat in the list.
    for _ in 0..24 {
        assert!(client.until(|client| client.text.ends_with(": keep-alive\n")).await);
        client.text.clear();
    }
    world.workspace.write("z", Duration::ZERO).await;
    assert!(client.until(|client| client.has("/z")).await);
    assert_eq!(client.names(), ["oldidle", "", "/z"]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_told_with_each_request_and_is_over_when_it_is_on_the_list_no_more() {
    let world = world(9, Faults::default());
    let mut client = world.watch(Cursor::None).await;
    let task = TaskId(Uuid::from_u128(8));
    let told = async |request: u128| {
        let chat_id = Some(ChatId(Uuid::from_u128(7)));
        let requests = vec![Uuid::from_u128(request)];
        let event = WorkspaceEvent::WaitingUpdated { root_task_id: task, task_id: task, chat_id, node: None, requests };
        *world.workspace.chats.lock() = vec![event.clone()];
        world.workspace.announce(&Announced { id: None, event }).await;
    };
    // A request that takes the place of another one in the same commit is as many requests as before.
    for request in [1, 2] {
        told(request).await;
        let requests = format!("[\"{}\"]", Uuid::from_u128(request));
        assert!(client.until(|client| client.has(&requests)).await);
    }
    // Nobody heard of its end. A list that has not all that waits does not tell it in two minutes of checks.
    world.workspace.more_waits.store(true, SeqCst);
    world.workspace.chats.lock().clear();
    for _ in 0..24 {
        assert!(client.until(|client| client.text.ends_with(": keep-alive\n")).await);
        client.text.clear();
    }
    assert_eq!(client.names().len(), 2, "{:?}", client.names());
    world.workspace.more_waits.store(false, SeqCst);
    assert!(client.until(|client| client.has("[]")).await);
    assert_eq!(client.names().len(), 3, "{:?}", client.names());
}

#[tokio::test(start_paused = true)]
async fn a_presence_is_told_once_and_ends_by_itself_when_it_is_not_repeated() {
    let world = world(8, Faults::default());
    let mut client = world.watch(Cursor::None).await;
    let look = async |name: &str, here: bool| {
        let (user_id, at) = (UserId(Uuid::from_u128(1)), PresenceTarget::Path(path(name)));
        let event = WorkspaceEvent::Presence { user_id, at, here };
        world.workspace.announce(&Announced { id: None, event }).await;
    };
    look("hidden", true).await;
    look("never", false).await;
    look("a", true).await;
    look("b", true).await;
    look("b", false).await;
    assert!(client.until(|client| client.has("/b gone")).await);
    for _ in 0..6 {
        tokio::time::advance(Duration::from_secs(20)).await;
        look("a", true).await;
        world.workspace.write("beat", Duration::ZERO).await;
        let seen = client.seen.len();
        assert!(client.until(|client| client.seen.len() > seen).await);
    }
    let told: Vec<_> = client.names().into_iter().filter(|name| *name != "/beat").collect();
    assert_eq!(told, ["/a here", "/b here", "/b gone"]);
    let last = tokio::time::Instant::now();
    assert!(client.until(|client| client.has("/a gone")).await);
    assert!((60..=70).contains(&last.elapsed().as_secs()), "{:?}", last.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_lost_announcement_comes_with_a_check_and_once() {
    for seed in 0..32 {
        let faults = Faults { lost: 40, doubled: 20, garbled: 10, ..Faults::default() };
        let world = world(seed, faults);
        let mut random = Random(seed * 2 + 1);
        let mut client = world.watch(Cursor::None).await;
        let mut expected = Vec::new();
        for n in 0..60 {
            let ago = Duration::from_millis(random.below(LATE.as_millis() as u64 - 1000));
            world.workspace.write(&n.to_string(), ago).await;
            expected.push(format!("/{n}"));
            if random.below(3) == 0 {
                tokio::time::advance(Duration::from_millis(random.below(9000))).await;
            }
        }
        world.workspace.chat("end", ChatStatus::Idle).await;
        assert!(client.until(|client| client.seen.len() > expected.len()).await);
        let mut names = client.names();
        names.sort_unstable();
        expected.push("endidle".into());
        expected.sort_unstable();
        assert_eq!(names, expected, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_misses_nothing_wherever_it_left() {
    let world = world(3, Faults { lost: 50, ..Faults::default() });
    let mut first = world.watch(Cursor::After(0)).await;
    let mut random = Random(11);
    for n in 0..40 {
        let ago = Duration::from_millis(random.below(20_000));
        world.workspace.write(&n.to_string(), ago).await;
        world.workspace.chat(&format!("t{n}"), ChatStatus::Running).await;
        tokio::time::advance(Duration::from_millis(random.below(20_000))).await;
        let told = first.seen.len();
        assert!(first.until(|client| client.seen.len() > told).await);
    }
    assert!(first.until(|client| (0..40).all(|n| client.has(&format!("/{n}")))).await);
    for left in 0..first.seen.len() {
        let mut again = world.watch(Cursor::After(first.seen[left].0)).await;
        let missed: Vec<_> = first.seen[left + 1..].iter().filter(|(_, what)| what.starts_with('/')).collect();
        assert!(again.until(|client| missed.iter().all(|(_, what)| client.has(what))).await, "left at {left}");
        assert!(again.until(|client| client.has("t39running")).await, "left at {left}: the state of the chat");
    }
}

#[tokio::test(start_paused = true)]
async fn cursors_that_are_of_no_use_begin_anew() {
    let world = world(4, Faults::default());
    let hour = 3_600_000;
    for (cursor, reason) in [
        (Cursor::Unknown, "unknown_cursor"),
        (Cursor::After(BEGIN as u64 + hour), "unknown_cursor"),
        (Cursor::After(u64::MAX), "unknown_cursor"),
        (Cursor::After(BEGIN as u64 - hour - 1), "cursor_too_old"),
    ] {
        let mut client = world.watch(cursor).await;
        assert!(client.until(|client| client.has(reason)).await, "{cursor:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_bus_looks_at_every_beat() {
    let world = world(5, Faults { away: true, ..Faults::default() });
    let mut client = world.watch(Cursor::None).await;
    world.workspace.write("a", Duration::ZERO).await;
    assert!(client.until(|client| client.has("/a")).await);
    world.bus.set(Faults::default());
    world.workspace.write("b", Duration::ZERO).await;
    assert!(client.until(|client| client.has("/b")).await);
    world.bus.hang_up();
    world.workspace.write("c", Duration::ZERO).await;
    assert!(client.until(|client| client.has("/c")).await);
}

#[tokio::test(start_paused = true)]
async fn a_stream_says_that_it_lives_and_ends_with_the_server_and_with_its_workspace() {
    let world = world(6, Faults::default());
    let mut client = world.watch(Cursor::None).await;
    assert!(client.until(|client| client.text.contains(": keep-alive")).await);
    assert_eq!(world.feeds.metrics().counts().subscriptions, 1);
    let mut other = world.watch(Cursor::None).await;
    world.workspace.is_gone.store(true, SeqCst);
    assert!(!other.until(|_| false).await, "a workspace that is gone has no changes");
    world.workspace.is_gone.store(false, SeqCst);
    let mut last = world.watch(Cursor::None).await;
    world.shutdown.cancel();
    assert!(!last.until(|_| false).await);
    assert!(last.text.contains("retry: "), "{}", last.text);
    drop((client, other, last));
    assert_eq!(world.feeds.metrics().counts().subscriptions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_costs_no_reads_of_the_table() {
    let world = world(7, Faults::default());
    let mut client = world.watch(Cursor::None).await;
    let before = world.workspace.reads.load(SeqCst);
    for n in 0..100 {
        world.workspace.write(&n.to_string(), Duration::ZERO).await;
        tokio::time::advance(Duration::from_secs(5)).await;
    }
    assert_eq!(world.workspace.reads.load(SeqCst), before);
    assert!(client.until(|client| client.has("/99")).await);
    assert_eq!(client.seen.len(), 100);
}

/// A block of a merged stream: cursor, name, and of an event of an actor its number and name.
type Block = (u64, String, Option<(u64, String)>);

fn blocks(text: &str) -> Vec<Block> {
    let parsed = text.split("\n\n").filter_map(|block| {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        let (id, event, data) = (field("id: ")?.parse().ok()?, field("event: ")?.to_owned(), field("data: ")?);
        let data: serde_json::Value = serde_json::from_str(data).ok()?;
        let inner = data["id"].as_u64().zip(data["event"].as_str().map(str::to_owned));
        Some((id, event, inner))
    });
    parsed.collect()
}

#[tokio::test(start_paused = true)]
async fn one_connection_has_the_changes_and_each_event_of_each_actor_once_and_in_order() {
    let routed = || TaskEvent::Routed { from: "a".into(), to: "b".into() };
    for seed in 0..40 {
        let faults = Faults { lost: 30, doubled: 20, late: 20, garbled: 5, away: false };
        let world = world(seed, faults);
        let (mut chat, mut task) = (Log::new(&world.table, &world.bus), Log::of_task(&world.table, &world.bus));
        chat.write(vec![text("before"), hidden(), text("before")], 0).await;
        let first = chat.visible[0];
        let followed = [(chat.actor, Cursor::After(first)), (task.actor, Cursor::None)];
        let followed = followed.map(|(actor, cursor)| Followed { actor, cursor, start: Start::Turn(1) });
        let answer = world.feeds.merged(world.workspace.clone(), Cursor::None, followed.to_vec()).await.unwrap();
        let mut body = answer.into_body().into_data_stream();
        for round in 0..10 {
            world.workspace.write(&format!("f{round}"), Duration::ZERO).await;
            chat.write(vec![text("word"), hidden()], 0).await;
            task.write_task(vec![routed()]).await;
        }
        let told = |seen: &str, kind: &str| -> Vec<u64> {
            let own = blocks(seen).into_iter().filter(|(_, event, _)| event == kind);
            own.filter_map(|(_, _, inner)| inner.filter(|(_, event)| event != "cursor").map(|(number, _)| number))
                .collect()
        };
        let mut seen = String::new();
        let is_whole = |seen: &str| {
            let files = blocks(seen).iter().filter(|(_, event, _)| event == "file_updated").count();
            files >= 10 && told(seen, "chat_event").len() >= 11 && told(seen, "task_event").len() >= 10
        };
        while !is_whole(&seen) {
            let bytes = timeout(Duration::from_secs(600), body.next()).await;
            let bytes = bytes.unwrap_or_else(|_| panic!("nothing more comes: {:?}", blocks(&seen)));
            seen.push_str(std::str::from_utf8(&bytes.unwrap().unwrap()).unwrap());
        }
        let cursors: Vec<u64> = blocks(&seen).iter().map(|(id, _, _)| *id).collect();
        assert!(cursors.is_sorted() && cursors[0] > 0, "seed {seed}: {cursors:?}");
        let expected: Vec<u64> = chat.visible.iter().copied().filter(|number| *number > first).collect();
        assert_eq!(
            (told(&seen, "chat_event"), told(&seen, "task_event")),
            (expected, task.visible.clone()),
            "seed {seed}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_the_whole_connection_and_the_end_of_a_task_does_not() {
    let world = world(3, Faults::default());
    let mut task = Log::of_task(&world.table, &world.bus);
    let followed = Followed { actor: task.actor, cursor: Cursor::After(0), start: Start::Live };
    let answer = world.feeds.merged(world.workspace.clone(), Cursor::None, vec![followed]).await.unwrap();
    let mut body = answer.into_body().into_data_stream();
    task.write_task(vec![TaskEvent::Finished {
        status: Status::Success,
        exit: None,
        output: serde_json::Value::Null,
        error: None,
        at: world.workspace.now(),
    }])
    .await;
    let mut seen = String::new();
    while !seen.contains("\"event\":\"done\"") {
        seen.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    world.workspace.write("after", Duration::ZERO).await;
    while !seen.contains("/after") {
        seen.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    world.shutdown.cancel();
    while let Some(bytes) = body.next().await {
        seen.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
    }
    assert!(seen.trim_end().lines().next_back().is_some_and(|line| line.starts_with("retry: ")), "{seen}");
}
