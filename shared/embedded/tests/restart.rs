//! The state of a store after it was closed, or left, and opened again; and its behaviour on a full disk.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_embedded::{Durability, LocalBlobs, OpenError, Options, Store};
use bytes::Bytes;
use ports::{
    Blobs, Clock, DeadLetterQueue, Error, Expect, Key, Query, QueueMessage, QueueReceiver, QueueSender, SystemClock,
    URGENT, Write,
};
use std::{
    os::unix::process::ExitStatusExt as _, path::Path, process::Command, slice::from_ref, sync::Arc, time::Duration,
};
use testkit::{SmallDisk, TestClock, clock::holding_time};

const VISIBLE: Duration = Duration::from_secs(30);

fn open(path: &Path, clock: &Arc<TestClock>) -> Store {
    Store::open(path, clock.clone(), Options { max_attempts: 3, ..Options::default() }).unwrap()
}

fn message(id: &str) -> QueueMessage {
    QueueMessage { group: "g".into(), id: id.into(), body: format!("body {id}"), ..QueueMessage::default() }
}

/// How many rows a table of a closed store has.
fn rows(path: &Path, table: &str) -> u32 {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn everything_that_was_answered_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made/by/it/store.sqlite3");
    let clock = Arc::new(TestClock::new(1));
    let store = open(&path, &clock);
    let put = Write::put(Key::new("p", "1"), "1", Expect::Absent).indexed(Key::new("i", "1"));
    store.table().commit(vec![put]).await.unwrap();
    let delayed = QueueMessage { deliver_at: Some(clock.now() + VISIBLE), ..message("delayed") };
    store.queue().send(vec![delayed, message("acked"), message("tried"), message("behind")]).await.unwrap();
    let acked = store.queue().receive(1, VISIBLE).await.unwrap().remove(0);
    assert!(store.queue().ack(from_ref(&acked.receipt)).await.unwrap());
    let tried = store.queue().receive(1, VISIBLE).await.unwrap().remove(0);
    store.close().await;

    let store = open(&path, &clock);
    assert_eq!(store.table().query(&Query::all("p", 9)).await.unwrap().items.len(), 1);
    assert_eq!(store.table().query_index(&Query::all("i", 9)).await.unwrap().items.len(), 1);
    assert!(!store.queue().ack(from_ref(&tried.receipt)).await.unwrap(), "a receipt of an earlier process is stale");
    // Sent again: those that are known have no effect, also the one that is settled.
    holding_time(store.queue().send(vec![message("acked"), message("tried")])).await.unwrap();
    for (id, attempt) in [("tried", 2), ("behind", 1), ("delayed", 1)] {
        let delivery = store.queue().receive(1, VISIBLE).await.unwrap().remove(0);
        assert_eq!((delivery.id.as_str(), delivery.attempt), (id, attempt));
        assert_eq!(delivery.body, format!("body {id}"));
        assert!(store.queue().ack(from_ref(&delivery.receipt)).await.unwrap());
    }
    assert_eq!((store.stats().waiting, store.stats().in_flight), (0, 0));
    store.close().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_clock_that_was_set_back_a_message_waits_for_as_long_as_it_was_sent_to_wait() {
    let folder = tempfile::tempdir().unwrap();
    let (path, ahead) = (folder.path().join("store.sqlite3"), Arc::new(TestClock::new(1)));
    tokio::time::advance(Duration::from_secs(24 * 3600)).await;
    let store = open(&path, &ahead);
    let delayed = QueueMessage { deliver_at: Some(ahead.now() + VISIBLE), ..message("delayed") };
    holding_time(store.queue().send(vec![delayed])).await.unwrap();
    store.close().await;

    let behind = Arc::new(TestClock::new(2));
    assert!(behind.now() < ahead.now());
    let store = open(&path, &behind);
    let delivery = tokio::time::timeout(2 * VISIBLE, store.queue().receive(1, VISIBLE)).await.unwrap().unwrap();
    assert_eq!(delivery[0].id, "delayed");
    store.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_delivery_has_the_same_content_from_memory_from_its_row_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("store.sqlite3"), Arc::new(TestClock::new(1)));
    let of = |group: &str, body: &str| QueueMessage { group: group.into(), body: body.into(), ..message(group) };
    let long = "x".repeat(100_000);
    let sent = [of("short", "Grüße\0\n{\"a\": 1.50}"), of("empty", ""), of("long", &long)];
    let mut store = open(&path, &clock);
    store.queue().send(sent.to_vec()).await.unwrap();
    for attempt in 1..=3 {
        let mut taken = store.queue().receive(9, VISIBLE).await.unwrap();
        taken.sort_by_key(|delivery| sent.iter().position(|message| message.group == delivery.group));
        let contents = taken.iter().map(|delivery| (&delivery.group, &delivery.id, &delivery.body));
        assert!(contents.eq(sent.iter().map(|message| (&message.group, &message.id, &message.body))), "{attempt}");
        assert!(taken.iter().all(|delivery| delivery.attempt == attempt));
        for delivery in &taken {
            assert!(store.queue().reject(from_ref(&delivery.receipt), Duration::ZERO).await.unwrap());
        }
        if attempt == 2 {
            store.close().await;
            store = open(&path, &clock);
        }
    }
    store.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_commit_and_the_messages_that_it_sends_are_one_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("store.sqlite3"), Arc::new(TestClock::new(1)));
    let store = open(&path, &clock);
    let put = || vec![Write::put(Key::new("p", "1"), "1", Expect::Absent)];
    let before = store.stats();
    store.table().commit_sending(put(), vec![message("sent"), message("behind")]).await.unwrap();
    let after = store.stats();
    assert_eq!((after.groups - before.groups, after.requests - before.requests, after.waiting), (1, 1, 2));
    let refused = store.table().commit_sending(put(), vec![message("refused")]).await;
    assert!(matches!(refused, Err(Error::Conflict { write: 0 })), "{refused:?}");
    assert_eq!((store.stats().conflicts - after.conflicts, store.stats().waiting), (1, 2));
    store.close().await;
    let written = (rows(&path, "messages"), rows(&path, "sent_ids"));
    assert_eq!(written, (2, 0), "the item keeps the commit from a second effect, so no id is remembered");

    let store = open(&path, &clock);
    assert_eq!(store.table().query(&Query::all("p", 9)).await.unwrap().items.len(), 1);
    for id in ["sent", "behind"] {
        let delivery = store.queue().receive(1, VISIBLE).await.unwrap().remove(0);
        assert_eq!((delivery.id.as_str(), delivery.attempt), (id, 1));
        assert!(store.queue().ack(from_ref(&delivery.receipt)).await.unwrap());
    }
    assert_eq!((store.stats().waiting, store.stats().in_flight), (0, 0));
    store.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_commit_does_not_wait_for_thousands_of_settlements() {
    const MANY: usize = 1_000;
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(TestClock::new(1));
    let store = open(&folder.path().join("store.sqlite3"), &clock);
    let messages = (0..MANY).map(|number| QueueMessage { group: format!("g{number}"), ..message("m") });
    store.queue().send(messages.collect()).await.unwrap();
    let taken = store.queue().receive(MANY, VISIBLE).await.unwrap();
    let before = store.stats();
    let receipts: Vec<_> = taken.into_iter().map(|delivery| delivery.receipt).collect();
    for receipt in &receipts {
        assert!(store.queue().ack(from_ref(receipt)).await.unwrap());
    }
    let mut commits = 0;
    while store.stats().lazy_writes < before.lazy_writes + MANY as u64 {
        let put = Write::put(Key::new("p", commits.to_string()), "x", Expect::Absent);
        store.table().commit(vec![put]).await.unwrap();
        commits += 1;
    }
    let (groups, changes) = (store.stats().groups - before.groups, store.stats().lazy_writes - before.lazy_writes);
    assert!(changes <= groups * 256, "{changes} changes in {groups} transactions");
    store.close().await;

    let store = open(&folder.path().join("store.sqlite3"), &clock);
    assert_eq!((store.stats().waiting, store.stats().in_flight), (0, 0), "the rest was written at the end");
    store.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_settled_message_leaves_its_id_alone_until_that_may_be_sent_again() {
    const MANY: u32 = 100;
    const FIVE_MINUTES: Duration = Duration::from_secs(5 * 60);
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("store.sqlite3"), Arc::new(TestClock::new(1)));
    let messages = || (0..MANY).map(|number| message(&number.to_string())).collect::<Vec<_>>();
    let store = open(&path, &clock);
    // As many are new as come to be received.
    let new = async |store: &Store| {
        store.queue().send(messages()).await.unwrap();
        let mut settled = 0;
        while store.stats().waiting > 0 {
            for delivery in store.queue().receive(1, VISIBLE).await.unwrap() {
                assert!(store.queue().ack(from_ref(&delivery.receipt)).await.unwrap());
                settled += 1;
            }
        }
        settled
    };
    assert_eq!((new(&store).await, new(&store).await), (MANY, 0));
    tokio::time::sleep(FIVE_MINUTES - Duration::from_millis(1)).await;
    assert_eq!(new(&store).await, 0, "known until the last moment");
    store.close().await;
    assert_eq!((rows(&path, "messages"), rows(&path, "sent_ids")), (0, MANY));

    let store = open(&path, &clock);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((new(&store).await, new(&store).await), (MANY, 0));
    tokio::time::sleep(2 * FIVE_MINUTES).await;
    for number in 0..4 {
        store.queue().send(vec![message(&format!("later {number}"))]).await.unwrap();
    }
    store.close().await;
    assert_eq!((rows(&path, "messages"), rows(&path, "sent_ids")), (4, 4), "the forgotten ones are gone");
}

#[tokio::test(start_paused = true)]
async fn attempts_of_processes_that_died_add_up_to_a_dead_letter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    let clock = Arc::new(TestClock::new(1));
    for attempt in 1..=3 {
        let store = open(&path, &clock);
        store.queue().send(vec![message("poison")]).await.unwrap();
        assert_eq!(store.queue().receive(1, VISIBLE).await.unwrap()[0].attempt, attempt);
        store.close().await;
    }
    let store = open(&path, &clock);
    let letters = store.queue().dead_letters(9).await.unwrap();
    assert_eq!((letters.len(), letters[0].attempts, &letters[0].message.body), (1, 3, &"body poison".to_owned()));
    assert_eq!(store.stats().dead, 1);
    store.close().await;
    let store = open(&path, &clock);
    assert_eq!(store.stats().dead, 1, "they are counted at the start");
    assert_eq!(store.queue().redrive("g").await.unwrap(), 1, "dead letters survive, too");
    assert_eq!(store.stats().dead, 0);
    assert_eq!(store.queue().receive(1, VISIBLE).await.unwrap()[0].attempt, 1);
    store.close().await;
}

#[tokio::test]
async fn a_message_that_ends_its_process_at_once_is_counted() {
    const PATH: &str = "STORE_OF_A_PROCESS_THAT_DIES";
    const SIGABRT: i32 = 6;
    let clock = Arc::new(TestClock::new(1));
    // The process that dies runs this test, too: it dies of what it has received, before anything is committed.
    if let Some(path) = std::env::var_os(PATH) {
        let store = open(Path::new(&path), &clock);
        assert_eq!(store.queue().receive(9, VISIBLE).await.unwrap().len(), 2);
        std::process::abort();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    let store = open(&path, &clock);
    let beside = QueueMessage { group: "beside".into(), ..message("1") };
    store.queue().send(vec![message("1"), beside]).await.unwrap();
    store.close().await;
    for _ in 0..2 {
        let this = ["--exact", "a_message_that_ends_its_process_at_once_is_counted"];
        let died = Command::new(std::env::current_exe().unwrap()).args(this).env(PATH, &path).output().unwrap();
        assert_eq!(died.status.signal(), Some(SIGABRT), "{died:?}");
    }
    let store = open(&path, &clock);
    let taken = store.queue().receive(9, VISIBLE).await.unwrap();
    assert_eq!(taken.iter().map(|delivery| delivery.attempt).collect::<Vec<_>>(), [3, 3]);
    store.close().await;
}

#[tokio::test]
async fn a_second_opening_is_refused_until_the_first_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    let clock = Arc::new(TestClock::new(1));
    let store = open(&path, &clock);
    let second = Store::open(&path, clock.clone(), Options::default());
    assert!(matches!(second.as_ref().map(drop), Err(OpenError::InUse(_))));
    store.ping().await.unwrap();
    let (table, queue) = (store.table(), store.queue());
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.receive(1, VISIBLE).await }
    });
    tokio::task::yield_now().await;
    store.close().await;
    store.close().await;
    assert!(matches!(waiting.await.unwrap(), Err(Error::Unavailable { .. })), "a waiter is told");
    assert!(matches!(store.ping().await, Err(Error::Unavailable { .. })));
    let put = Write::put(Key::new("p", "1"), "1", Expect::Any);
    assert!(matches!(table.commit(vec![put]).await, Err(Error::Unavailable { .. })));
    assert!(matches!(queue.send(vec![message("1")]).await, Err(Error::Unavailable { .. })));
    open(&path, &clock).close().await;
}

#[tokio::test(start_paused = true)]
async fn expired_items_are_removed_by_later_commits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    let clock = Arc::new(TestClock::new(1));
    let store = Store::open(
        &path,
        clock.clone(),
        Options { durability: Durability::Normal, max_attempts: 3, ..Options::default() },
    )
    .unwrap();
    let at = clock.now() + VISIBLE;
    for n in 0..200 {
        let put = Write::put(Key::new("p", n.to_string()), "1", Expect::Absent).expiring(at);
        store.table().commit(vec![put]).await.unwrap();
    }
    tokio::time::sleep(VISIBLE).await;
    for n in 0..4 {
        store.table().commit(vec![Write::put(Key::new("q", n.to_string()), "1", Expect::Absent)]).await.unwrap();
    }
    assert_eq!(store.stats().swept, 200);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_used_again_and_does_not_grow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    let options = Options { durability: Durability::Normal, ..Options::default() };
    let store = Store::open(&path, Arc::new(ports::SystemClock), options).unwrap();
    let body = "x".repeat(16 * 1024);
    let mut longest = 0;
    for n in 0..4000 {
        let put = Write::put(Key::new("p", (n % 500).to_string()), &body, Expect::Any);
        store.table().commit(vec![put]).await.unwrap();
        longest = longest.max(store.stats().wal_pages);
    }
    // 4,000 commits of 5 pages and more, 20,000 in all, of which the log held few at once.
    assert!(longest > 2048, "long enough to be copied: {longest}");
    assert!(longest < 12_000, "the log grew to {longest} pages");
    store.close().await;
    let left = std::fs::metadata(path.with_extension("sqlite3-wal")).map(|file| file.len()).unwrap_or(0);
    assert_eq!(left, 0, "closing moves it into the file");
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_are_in_the_folders_of_the_archive_and_leftovers_go() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = LocalBlobs::new(folder.path());
    let digest = blobs.put("space", Bytes::from_static(b"content")).await.unwrap().to_string();
    let path = folder.path().join("space/archive").join(&digest[..2]).join(&digest[2..4]).join(&digest);
    assert_eq!(std::fs::read(&path).unwrap(), b"content");
    let beside = folder.path().join("space/latest");
    std::fs::create_dir(&beside).unwrap();
    blobs.delete_space("space").await.unwrap();
    assert!(beside.is_dir() && !path.exists(), "only the archive is the blobs' to remove");
    let leftover = folder.path().join(".temporary/17");
    std::fs::write(&leftover, "half").unwrap();
    LocalBlobs::new(folder.path());
    assert!(!leftover.exists());
}

#[tokio::test]
async fn a_store_that_lost_its_file_is_no_new_one_beside_the_workspaces_that_it_knew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    let open = |has_data| Store::open(&path, Arc::new(ports::SystemClock), Options { has_data, ..Options::default() });
    let refused = |what: &str| {
        let error = open(true).map(drop).unwrap_err();
        assert!(matches!(error, OpenError::Empty(_)), "{what}: {error}");
        assert!(error.to_string().contains("store.sqlite3"));
        assert!(error.hint().is_some_and(|hint| hint.contains("backup")));
    };
    refused("missing");
    assert!(!path.exists(), "nothing is made");
    std::fs::write(&path, "").unwrap();
    refused("empty");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    open(false).unwrap().close().await;
    open(true).unwrap().close().await;
}

#[test]
fn a_store_that_cannot_be_opened_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path| {
        Store::open(path, Arc::new(ports::SystemClock), Options::default()).map(drop).unwrap_err().to_string()
    };
    let garbage = folder.path().join("garbage.sqlite3");
    std::fs::write(&garbage, "this is no database, ".repeat(100)).unwrap();
    let why = open(&garbage);
    assert!(why.contains("garbage.sqlite3") && why.contains("not a database"), "{why}");
    std::fs::create_dir(folder.path().join("store.lock")).unwrap();
    let why = open(&folder.path().join("store.sqlite3"));
    assert!(why.contains("store.lock: ") && why.contains("directory"), "{why}");
}

#[tokio::test]
async fn a_damaged_page_is_damage_to_reads_and_writes_and_no_other_write_fails_with_it() {
    const ITEMS: usize = 400;
    const PAGE: usize = 4096;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    // Long keys, so that the index has many pages, too.
    let key = |n: usize| Key::new("p", format!("{n:0100}"));
    let put = |n: usize| Write::put(key(n), n.to_string().repeat(500), Expect::Present);
    let store = Store::open(&path, Arc::new(SystemClock), Options::default()).unwrap();
    for n in 0..ITEMS {
        let new = Write::put(key(n), n.to_string().repeat(500), Expect::Absent);
        store.table().commit(vec![new]).await.unwrap();
    }
    store.close().await;
    drop(store);
    let mut file = std::fs::read(&path).unwrap();
    let half = file.len() / PAGE / 2 * PAGE;
    file[half..].fill(0xff);
    std::fs::write(&path, file).unwrap();

    let store = Store::open(&path, Arc::new(SystemClock), Options::default()).unwrap();
    let (mut whole, mut damaged) = (Vec::new(), Vec::new());
    for n in 0..ITEMS {
        match store.table().get(&key(n)).await {
            Ok(item) => whole.push(item.map(|_| n).unwrap()),
            Err(error) => {
                assert!(matches!(error, Error::Damaged(_)), "{n}: {error}");
                damaged.push(n);
            }
        }
    }
    assert!(whole.len() > 20 && damaged.len() > 20, "{} of {ITEMS} are whole", whole.len());
    for (whole, damaged) in whole.into_iter().zip(damaged).take(20) {
        let table = store.table();
        let (written, refused) = tokio::join!(table.commit(vec![put(whole)]), table.commit(vec![put(damaged)]));
        assert!(matches!(refused, Err(Error::Damaged(_))), "{damaged}: {refused:?}");
        written.unwrap();
    }
    store.close().await;
}

#[tokio::test]
async fn a_value_of_another_type_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    let store = Store::open(&path, Arc::new(SystemClock), Options::default()).unwrap();
    let put = || Write::put(Key::new("p", "1"), "1", Expect::Any);
    store.table().commit(vec![put()]).await.unwrap();
    store.close().await;
    drop(store);
    rusqlite::Connection::open(&path).unwrap().execute("UPDATE items SET rev = 'x'", []).unwrap();
    let store = Store::open(&path, Arc::new(SystemClock), Options::default()).unwrap();
    let read = store.table().get(&Key::new("p", "1")).await;
    assert!(matches!(read, Err(Error::Damaged(_))), "{read:?}");
    let written = store.table().commit(vec![put()]).await;
    assert!(matches!(written, Err(Error::Damaged(_))), "{written:?}");
    store.close().await;
}

const MIB: u64 = 1024 * 1024;

fn on_a_small_disk(disk: &SmallDisk) -> Store {
    let options = Options { reserve: 2 * MIB, ..Options::default() };
    Store::open(disk.path().join("store.sqlite3"), Arc::new(SystemClock), options).unwrap()
}

/// Asks until it is so.
async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            // poll: the store's own thread looks at the disk once a second
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(VISIBLE, waiting).await.unwrap();
}

#[tokio::test]
async fn on_a_full_disk_deletions_and_urgent_messages_go_on_and_others_wait_untried() {
    let Some(disk) = SmallDisk::mounted(8 * MIB).unwrap() else { return };
    let mut store = on_a_small_disk(&disk);
    let put = |n: u32| Write::put(Key::new("p", n.to_string()), "x".repeat(1000), Expect::Any);
    for n in 0..100 {
        store.table().commit(vec![put(n)]).await.unwrap();
    }
    assert!(store.has_room());
    disk.fill().unwrap();
    assert!(!store.has_room());
    until(|| std::fs::metadata(disk.path().join("store.reserve")).is_err()).await;

    let to = |group: &str, priority| QueueMessage { group: group.into(), priority, ..message("1") };
    store.queue().send(vec![to("chat/w/waits", 0), to("chat/w/stops", URGENT)]).await.unwrap();
    let taken = store.queue().receive(9, VISIBLE).await.unwrap();
    assert_eq!(taken.iter().map(|taken| taken.group.as_str()).collect::<Vec<_>>(), ["chat/w/stops"]);
    for n in 0..50 {
        store.table().commit(vec![Write::delete(put(n).key().clone(), Expect::Present)]).await.unwrap();
    }

    // A commit that is too long for the remaining room is refused, a short one beside it is not, and a start works.
    let long = |n: u32| vec![Write::put(Key::new("long", n.to_string()), "x".repeat(300_000), Expect::Any)];
    let mut told = None;
    for n in 0..20 {
        let table = store.table();
        let (long, short) = tokio::join!(table.commit(long(n)), table.commit(vec![put(n)]));
        told = told.or(long.err());
        short.unwrap();
    }
    assert!(told.is_some_and(|error| error.is_full()));
    store.close().await;
    drop(store);
    store = on_a_small_disk(&disk);
    assert!(!store.has_room());
    assert_eq!(store.table().query(&Query::all("p", 999)).await.unwrap().items.len(), 70);

    disk.free().unwrap();
    until(|| store.has_room()).await;
    let waited = store.queue().receive(9, VISIBLE).await.unwrap();
    assert_eq!(
        waited.iter().map(|taken| (taken.group.as_str(), taken.attempt)).collect::<Vec<_>>(),
        [("chat/w/stops", 2), ("chat/w/waits", 1)]
    );
    store.table().commit(long(20)).await.unwrap();
    store.close().await;
}
