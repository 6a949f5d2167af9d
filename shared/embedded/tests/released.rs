//! Stores of every version that was released are opened, brought up to date, and have what was in them.
//!
//! `golden/store-<version>.sql` is the dump of a store as that version left it. A version that changes the schema adds its own
//! (`BLESS=1`), and the dumps of older ones stay as they are.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_embedded::{OpenError, Options, Store, known_schema};
use ports::{Clock, Expect, Key, Query, QueueMessage, QueueReceiver, QueueSender, Write};
use rusqlite::{Connection, types::Value};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    slice::from_ref,
    sync::Arc,
    time::Duration,
};
use testkit::TestClock;

const FIRST: i64 = 2;
const VISIBLE: Duration = Duration::from_secs(30);

fn golden(version: i64) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/store-{version}.sql"))
}

fn open(path: &Path, clock: &Arc<TestClock>) -> Store {
    Store::open(path, clock.clone(), Options { max_attempts: 2, ..Options::default() }).unwrap()
}

fn message(id: &str) -> QueueMessage {
    QueueMessage { group: "chat/t/1".into(), id: id.into(), body: format!("it's {id}"), ..QueueMessage::default() }
}

/// A store with something of every kind.
async fn fill(path: &Path) {
    let clock = Arc::new(TestClock::new(1));
    let store = open(path, &clock);
    let plain = Write::put(Key::new("p", "1"), r#"{"it's":"plain"}"#, Expect::Absent);
    let indexed = Write::put(Key::new("p", "2"), "indexed", Expect::Absent).indexed(Key::new("i", "2"));
    let expiring = Write::put(Key::new("p", "3"), "expiring", Expect::Absent).expiring(clock.now() + VISIBLE * 1000);
    store.table().commit(vec![plain, indexed, expiring]).await.unwrap();
    let other = QueueMessage { group: "task/t/2".into(), priority: 7, ..message("other") };
    store.queue().send(vec![message("settled"), message("first"), message("second"), other]).await.unwrap();
    let late = QueueMessage { deliver_at: Some(clock.now() + VISIBLE), ..message("late") };
    store.queue().send(vec![late]).await.unwrap();
    let mut settled = 0;
    for delivery in store.queue().receive(9, VISIBLE).await.unwrap() {
        if delivery.body == "it's settled" {
            settled += 1;
            assert!(store.queue().ack(from_ref(&delivery.receipt)).await.unwrap());
        }
    }
    assert_eq!(settled, 1);
    store.close().await;
}

/// Checks that all data from [`fill`] is there.
async fn has_everything(path: &Path) {
    let clock = Arc::new(TestClock::new(2));
    let store = open(path, &clock);
    let items = store.table().query(&Query::all("p", 9)).await.unwrap().items;
    let bodies: Vec<_> = items.iter().map(|item| (item.key.sk.as_str(), item.rev, item.body.as_str())).collect();
    assert_eq!(bodies, [("1", 1, r#"{"it's":"plain"}"#), ("2", 1, "indexed"), ("3", 1, "expiring")]);
    let indexed = store.table().query_index(&Query::all("i", 9)).await.unwrap().items;
    assert_eq!(indexed.iter().map(|item| item.body.as_str()).collect::<Vec<_>>(), ["indexed"]);
    // The ids are known still, also that of the message that is settled.
    store.queue().send(vec![message("settled"), message("first")]).await.unwrap();
    let mut delivered = Vec::new();
    // The last one is due after half a minute, which passes when nothing else happens.
    while delivered.len() < 4 {
        for delivery in store.queue().receive(9, VISIBLE).await.unwrap() {
            delivered.push(delivery.body.clone());
            assert!(store.queue().ack(from_ref(&delivery.receipt)).await.unwrap());
        }
    }
    delivered.sort();
    assert_eq!(delivered, ["it's first", "it's late", "it's other", "it's second"]);
    store.close().await;
}

/// The statements that make a store with this content.
fn dump(path: &Path) -> String {
    let connection = Connection::open(path).unwrap();
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    let mut out = String::new();
    for sql in texts("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, name") {
        writeln!(out, "{};", sql.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap();
    }
    for table in texts("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name") {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1")).unwrap();
        let (names, count) = (statement.column_names().collect::<Vec<_>>().join(", "), statement.column_count());
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values = (0..count).map(|column| match row.get(column).unwrap() {
                Value::Null => "NULL".to_owned(),
                Value::Integer(number) => number.to_string(),
                Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
                other => panic!("{other:?}"),
            });
            let values = values.collect::<Vec<_>>().join(", ");
            writeln!(out, "INSERT INTO {table} ({names}) VALUES ({values});").unwrap();
        }
    }
    writeln!(out, "PRAGMA user_version = {version};").unwrap();
    out
}

fn schema(dump: &str) -> Vec<&str> {
    let mut lines: Vec<_> = dump.lines().filter(|line| !line.starts_with("INSERT ")).collect();
    lines.sort_unstable();
    lines
}

#[tokio::test(start_paused = true)]
async fn a_store_of_today_is_as_its_dump_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite3");
    fill(&path).await;
    let (today, golden) = (dump(&path), golden(known_schema()));
    if std::env::var_os("BLESS").is_some() && !golden.exists() {
        std::fs::write(&golden, &today).unwrap();
    }
    let kept = std::fs::read_to_string(&golden).unwrap();
    assert_eq!(kept, today, "a change of the schema is a new version, with a step that leads to it: see schema.rs");
    has_everything(&path).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_of_each_released_version_is_brought_up_to_date_and_has_what_was_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new.sqlite3");
    open(&new, &Arc::new(TestClock::new(3))).close().await;
    for version in FIRST..=known_schema() {
        let path = folder.path().join(format!("store-{version}.sqlite3"));
        let sql = std::fs::read_to_string(golden(version)).unwrap();
        Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
        has_everything(&path).await;
        assert_eq!(schema(&dump(&path)), schema(&dump(&new)), "version {version}");
        has_everything_but_messages(&path).await;
    }
}

/// It opens a second time.
async fn has_everything_but_messages(path: &Path) {
    let store = open(path, &Arc::new(TestClock::new(4)));
    assert_eq!(store.table().query(&Query::all("p", 9)).await.unwrap().items.len(), 3);
    store.close().await;
}

#[test]
fn a_store_of_another_time_is_refused_with_a_code_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for (version, code) in [(known_schema() + 1, "STORE_TOO_NEW"), (FIRST - 1, "STORE_TOO_OLD")] {
        let path = folder.path().join(format!("store-{version}.sqlite3"));
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE items (of_another TEXT)").unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
        drop(connection);
        let before = std::fs::read(&path).unwrap();
        let refused = Store::open(&path, Arc::new(TestClock::new(1)), Options::default()).map(drop).unwrap_err();
        assert_eq!((refused.code(), refused.hint().is_some()), (code, true), "{refused}");
        assert!(refused.to_string().contains(&format!("its schema is {version}")), "{refused}");
        assert!(matches!(refused, OpenError::TooNew { .. } | OpenError::TooOld { .. }));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
