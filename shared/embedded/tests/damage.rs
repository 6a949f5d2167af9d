//! A store in which one row cannot be read goes on with all others; so does one whose clock was set back.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_embedded::{Options, Store};
use domain::Timestamp;
use ports::{Clock, Error, Expect, Key, QueueMessage, QueueReceiver, QueueSender, Write};
use std::{
    path::Path,
    slice::from_ref,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};
use uuid::Uuid;

const VISIBLE: Duration = Duration::from_secs(30);
/// The bytes of a page of SQLite, and of the number of the next page at the beginning of a page with a part of a long body.
const PAGE: usize = 4096;
const NEXT: usize = 4;

fn open(path: &Path, clock: &Arc<Steps>) -> Store {
    Store::open(path, clock.clone(), Options::default()).unwrap()
}

/// A body that fills pages of its own.
fn long(letter: &str) -> String {
    letter.repeat(10 * PAGE)
}

/// Breaks the chain of the pages that have the body of this letter. Only its row cannot be read then.
fn break_chain(path: &Path, letter: u8) {
    let mut file = std::fs::read(path).unwrap();
    let mut broken = 0;
    for page in file.chunks_exact_mut(PAGE) {
        let (next, content) = page.split_at_mut(NEXT);
        if content.iter().all(|byte| *byte == letter) {
            next.fill(0xff);
            broken += 1;
        }
    }
    assert!(broken > 5, "{broken}");
    std::fs::write(path, file).unwrap();
}

fn put(n: u32) -> Write {
    Write::put(Key::new("p", n.to_string()), "x", Expect::Any)
}

const BEGINNING_MS: i64 = 1_800_000_000_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A clock that is set by hand, in milliseconds after a moment.
#[derive(Default)]
struct Steps(AtomicI64);

impl Clock for Steps {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(BEGINNING_MS + self.0.load(Relaxed))
    }
    fn id(&self) -> Uuid {
        Uuid::nil()
    }
}

#[tokio::test]
async fn an_expired_item_that_cannot_be_read_keeps_no_commit_from_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    let clock = Arc::new(Steps::default());
    let expired = Write::put(Key::new("e", "1"), long("Z"), Expect::Absent).expiring(clock.now() + VISIBLE);
    let store = open(&path, &clock);
    store.table().commit(vec![expired]).await.unwrap();
    store.close().await;
    drop(store);
    break_chain(&path, b'Z');

    clock.0.store(DAY_MS, Relaxed);
    let store = open(&path, &clock);
    for n in 0..3 {
        store.table().commit(vec![put(n)]).await.unwrap();
    }
    let table = store.table();
    let (one, other) = tokio::join!(table.commit(vec![put(4)]), table.commit(vec![put(5)]));
    assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
    assert_eq!(store.stats().swept, 0, "it stays");
    store.close().await;
}

#[tokio::test]
async fn expired_items_are_looked_for_after_the_clock_was_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    let clock = Arc::new(Steps(AtomicI64::new(DAY_MS)));
    let store = open(&path, &clock);
    store.table().commit(vec![put(0)]).await.unwrap();
    clock.0.store(0, Relaxed);
    let expired = put(1).expiring(clock.now() + VISIBLE);
    store.table().commit(vec![expired]).await.unwrap();
    clock.0.store(60_000, Relaxed);
    store.table().commit(vec![put(2)]).await.unwrap();
    assert_eq!(store.stats().swept, 1);
    store.close().await;
}

#[tokio::test]
async fn a_message_that_cannot_be_read_keeps_no_other_message_and_no_commit_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    let clock = Arc::new(Steps::default());
    let store = open(&path, &clock);
    let to = |group: &str, body: String| QueueMessage {
        group: group.into(),
        id: "1".into(),
        body,
        ..QueueMessage::default()
    };
    store.queue().send(vec![to("damaged", long("Z")), to("whole", "body".into())]).await.unwrap();
    store.close().await;
    drop(store);
    break_chain(&path, b'Z');

    let store = open(&path, &clock);
    let taken = store.queue().receive(9, VISIBLE).await.unwrap();
    assert_eq!(taken.iter().map(|taken| taken.group.as_str()).collect::<Vec<_>>(), ["whole"]);
    // The attempts of the damaged one ride along with the next commit, and cannot be written.
    store.table().commit(vec![put(1)]).await.unwrap();
    assert!(store.queue().ack(from_ref(&taken[0].receipt)).await.unwrap());
    for n in 2..5 {
        store.table().commit(vec![put(n)]).await.unwrap();
    }
    store.close().await;
    drop(store);

    let store = open(&path, &clock);
    assert_eq!(store.stats().waiting, 1, "the other one was settled");
    let unread = store.queue().receive(9, VISIBLE).await;
    assert!(matches!(unread, Err(Error::Damaged(_))), "{unread:?}");
    store.close().await;
}
