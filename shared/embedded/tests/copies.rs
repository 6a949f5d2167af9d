//! The parts of a backup: a copy of a store that is in use, and a hold on the contents that it refers to.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_embedded::{
    Hold, LocalBlobs, Lock, OpenError, Options, Store, StoredContent, copy_store, frozen_table, known_schema, place_of,
};
use bytes::Bytes;
use domain::Sha256;
use ports::{Blobs, Error, Expect, Key, Query, SystemClock, Write};
use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

fn put(number: u64) -> Write {
    Write::put(Key::new("p", format!("{number:09}")), format!("body {number}"), Expect::Absent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_store_that_is_written_to_has_all_that_was_answered_before_it_and_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("store.sqlite3"), folder.path().join("copy.sqlite3"));
    let store = Arc::new(Store::open(&path, Arc::new(SystemClock), Options::default()).unwrap());
    let answered = Arc::new(AtomicU64::new(0));
    for number in 0..100 {
        store.table().commit(vec![put(number)]).await.unwrap();
    }
    answered.store(100, SeqCst);
    let writing = tokio::spawn({
        let (store, answered) = (store.clone(), answered.clone());
        async move {
            for number in 100.. {
                if store.table().commit(vec![put(number)]).await.is_err() {
                    return;
                }
                answered.store(number + 1, SeqCst);
            }
        }
    });
    while answered.load(SeqCst) < 120 {
        tokio::task::yield_now().await;
    }
    let before = answered.load(SeqCst);
    let mut told = 0;
    assert_eq!(copy_store(&path, &copy, |bytes| told = bytes).unwrap(), known_schema());
    assert_eq!(told, std::fs::metadata(&copy).unwrap().len());
    store.close().await;
    writing.await.unwrap();

    let table = frozen_table(&copy, Arc::new(SystemClock));
    let (mut cursor, mut count) = (None, 0);
    loop {
        let page = table.query(&Query::all("p", 1000).after(cursor)).await.unwrap();
        for item in &page.items {
            assert_eq!(item.body, format!("body {count}"), "they are of one moment");
            count += 1;
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert!(count >= before, "{count} of {before}");
    assert!(matches!(table.commit(vec![put(0)]).await, Err(Error::Unavailable { .. })));
    assert!(!copy.with_extension("sqlite3-wal").exists(), "a copy is one file");
    Store::open(&copy, Arc::new(SystemClock), Options::default()).unwrap().close().await;
}

#[test]
fn a_file_that_is_no_store_of_this_version_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("store.sqlite3"), folder.path().join("copy.sqlite3"));
    let refused = || copy_store(&path, &copy, |_| ()).unwrap_err().code();
    assert_eq!(refused(), "STORE_UNREADABLE", "nothing is there, and nothing is made");
    assert!(!path.exists());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE x (y)").unwrap();
    assert_eq!(refused(), "STORE_MISSING");
    connection.pragma_update(None, "user_version", 99).unwrap();
    assert_eq!(refused(), "STORE_TOO_NEW");
    assert!(!copy.exists());
}

#[test]
fn one_process_at_a_time_has_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made/store.sqlite3");
    let lock = Lock::take(&path).unwrap();
    let refused = Lock::take(&path).map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::InUse(_)), "{refused}");
    assert_eq!((refused.code(), refused.hint().is_some()), ("DATA_IN_USE", true));
    assert!(Store::open(&path, Arc::new(SystemClock), Options::default()).is_err());
    drop(lock);
    Lock::take(&path).unwrap();
}

fn held(hold: &Hold) -> Vec<(String, Sha256)> {
    let mut all = Vec::new();
    let each = |stored: StoredContent| -> io::Result<()> {
        assert_eq!(Sha256::of(&std::fs::read(&stored.path)?), stored.digest);
        all.push((stored.space, stored.digest));
        Ok(())
    };
    hold.contents(each).unwrap();
    all
}

fn aside(root: &Path) -> usize {
    std::fs::read_dir(root.join(".deleted")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn contents_of_a_space_that_is_deleted_stay_for_as_long_as_they_are_held() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let blobs = LocalBlobs::new(root);
    let first = blobs.put("one", Bytes::from_static(b"first")).await.unwrap();
    let other = blobs.put("two", Bytes::from_static(b"other")).await.unwrap();
    assert!(root.join(place_of("one", first)).is_file());

    let hold = Hold::take(root).unwrap();
    assert_eq!(hold.spaces().unwrap(), ["one", "two"]);
    blobs.delete_space("one").await.unwrap();
    assert_eq!(blobs.get("one", first, None).await.unwrap(), None, "it is gone at once");
    let second = blobs.put("one", Bytes::from_static(b"second")).await.unwrap();
    blobs.delete_space("one").await.unwrap();
    assert_eq!(hold.spaces().unwrap(), ["two"]);
    let all = || vec![("two".to_owned(), other), ("one".to_owned(), first), ("one".to_owned(), second)];
    assert_eq!(held(&hold), all());
    // A hub that starts meanwhile, and a second backup, take nothing away.
    let again = LocalBlobs::new(root);
    drop(Hold::take(root).unwrap());
    assert_eq!(held(&hold), all());
    drop(hold);
    assert_eq!(aside(root), 0);
    assert_eq!(again.get("two", other, None).await.unwrap(), Some(Bytes::from_static(b"other")));
}

#[tokio::test]
async fn a_content_that_is_deleted_stays_for_as_long_as_it_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let blobs = LocalBlobs::new(root);
    let body = blobs.put("one", Bytes::from_static(b"a long body of a log")).await.unwrap();
    let other = blobs.put("one", Bytes::from_static(b"other")).await.unwrap();
    let hold = Hold::take(root).unwrap();
    for _ in 0..2 {
        blobs.delete("one", body).await.unwrap();
        assert_eq!(blobs.get("one", body, None).await.unwrap(), None, "it is gone at once");
        assert_eq!(held(&hold), [("one".to_owned(), other), ("one".to_owned(), body)]);
        blobs.put("one", Bytes::from_static(b"a long body of a log")).await.unwrap();
    }
    drop(hold);
    assert_eq!(aside(root), 0);
    blobs.delete("one", body).await.unwrap();
    assert_eq!((aside(root), blobs.get("one", other, None).await.unwrap().is_some()), (0, true));
}

#[tokio::test]
async fn contents_left_by_a_hold_that_died_go_with_the_next_deletion_or_start() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let blobs = LocalBlobs::new(root);
    let leave = async || {
        blobs.put("one", Bytes::from_static(b"content")).await.unwrap();
        let lock = std::fs::File::options().create(true).append(true).open(root.join(".hold")).unwrap();
        lock.lock_shared().unwrap();
        blobs.delete_space("one").await.unwrap();
        drop(lock);
        assert_eq!(aside(root), 1);
    };
    leave().await;
    blobs.delete_space("another").await.unwrap();
    assert_eq!(aside(root), 0);
    leave().await;
    LocalBlobs::new(root);
    assert_eq!(aside(root), 0);
}
