//! The fakes pass the suites, also while they do everything that a contract does not forbid.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_testkit::{
    Queue, TestClock,
    conformance::{self, Env},
    crash::{Crash, Side},
    fakes::{FakeBlobs, FakeBus, FakeEmbedder, FakeQueue, FakeTable, Faults},
};
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use ports::{
    Blobs, Bus, Damage, Embedder, Error, Expect, Key, MAX_BODY, Query, QueueMessage, QueueReceiver, QueueSender,
    SPILL_SPACE, Spilling, Table, Write, spill_space,
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

const ATTEMPTS: u32 = 5;

fn env() -> (Env, Arc<TestClock>) {
    let clock = Arc::new(TestClock::new(1));
    (Env::paused(clock.clone()), clock)
}

/// The faults that a suite must hold under: everything but failing calls.
fn unfailing() -> Faults {
    Faults { unavailable_before: 0.0, unavailable_after: 0.0, early_timeout: 0.0, duplicate: 0.0, ..Faults::some() }
}

#[tokio::test(start_paused = true)]
async fn the_fake_table_conforms() {
    let (env, clock) = env();
    for (seed, faults) in [(0, Faults::none()), (1, unfailing()), (2, unfailing())] {
        conformance::table(&env, || async {
            Arc::new(FakeTable::new(clock.clone(), seed, faults.clone())) as Arc<dyn Table>
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_fake_queue_conforms() {
    let (env, clock) = env();
    let restless = Faults { empty_receive: 0.2, short_batches: 0.5, ..Faults::none() };
    for (seed, faults) in [(0, Faults::none()), (1, restless.clone()), (2, restless)] {
        let fresh =
            || async { Arc::new(FakeQueue::new(clock.clone(), seed, faults.clone(), ATTEMPTS)) as Arc<dyn Queue> };
        conformance::queue(&env, ATTEMPTS, fresh).await;
        conformance::queue_in_turn(&env, fresh).await;
    }
}

#[tokio::test(start_paused = true)]
async fn commits_of_fakes_that_send_conform() {
    let (env, clock) = env();
    let restless = Faults { empty_receive: 0.2, short_batches: 0.5, ..Faults::none() };
    for (seed, faults) in [(0, Faults::none()), (1, restless.clone()), (2, restless)] {
        for one_store in [true, false] {
            conformance::sending(&env, one_store, || async {
                let queue = Arc::new(FakeQueue::new(clock.clone(), seed, faults.clone(), ATTEMPTS));
                let table = FakeTable::new(clock.clone(), seed, faults.clone());
                let table = Arc::new(if one_store { table.sending_to(queue.clone()) } else { table });
                (table as Arc<dyn Table>, queue as Arc<dyn Queue>)
            })
            .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_fake_bus_conforms() {
    let (env, _) = env();
    for (seed, faults) in [(0, Faults::none()), (1, unfailing())] {
        conformance::bus(&env, || async { Arc::new(FakeBus::new(seed, faults.clone())) as Arc<dyn Bus> }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_fake_blobs_conform() {
    let (env, _) = env();
    for (seed, faults) in [(0, Faults::none()), (1, unfailing())] {
        conformance::blobs(&env, || async { Arc::new(FakeBlobs::new(seed, faults.clone())) as Arc<dyn Blobs> }).await;
        let large = || async { Arc::new(FakeBlobs::new(seed, faults.clone())) as Arc<dyn Blobs> };
        conformance::large_blobs(100_000, large).await;
    }
}

#[tokio::test]
async fn the_fake_embedder_conforms() {
    conformance::embedder(|| async { Arc::new(FakeEmbedder::new("fake/words")) as Arc<dyn Embedder> }).await;
}

#[tokio::test(start_paused = true)]
async fn a_spilling_table_conforms() {
    let (env, clock) = env();
    conformance::table(&env, || async {
        let table = Arc::new(FakeTable::new(clock.clone(), 0, Faults::none()));
        Arc::new(Spilling::new(table, Arc::new(FakeBlobs::new(0, Faults::none())))) as Arc<dyn Table>
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn large_bodies_leave_the_table_and_a_body_is_never_taken_for_a_reference() {
    let (_, clock) = env();
    let table = Arc::new(FakeTable::new(clock, 0, Faults::none()));
    let blobs = Arc::new(FakeBlobs::new(0, Faults::none()));
    let spilling = Spilling::new(table.clone(), blobs.clone());
    let bodies = ["small".to_owned(), "x".repeat(64 * 1024), "x".repeat(64 * 1024 + 1), "y".repeat(MAX_BODY)];
    for (n, body) in bodies.iter().enumerate() {
        spilling.commit(vec![Write::put(Key::new("p", n.to_string()), body, Expect::Absent)]).await.unwrap();
    }
    let stored: Vec<usize> = table.items().iter().map(|item| item.body.len()).collect();
    assert_eq!(stored[..2], [5, 64 * 1024]);
    assert!(stored[2..].iter().all(|length| *length < 100), "{stored:?}");
    assert_eq!(blobs.digests("_table").len(), 2);
    let page = spilling.query(&Query::all("p", 9)).await.unwrap();
    assert_eq!(page.items.into_iter().map(|item| item.body).collect::<Vec<_>>(), bodies);
    // The table's reference to a large body, written as a body itself, is still that body.
    let reference = table.items()[2].body.clone();
    spilling.commit(vec![Write::put(Key::new("p", "copy"), &reference, Expect::Absent)]).await.unwrap();
    assert_eq!(spilling.get(&Key::new("p", "copy")).await.unwrap().unwrap().body, reference);
    for digest in blobs.digests("_table") {
        blobs.delete("_table", digest).await.unwrap();
    }
    let missing = spilling.get(&Key::new("p", "3")).await;
    assert!(matches!(missing, Err(Error::Lost { damage: Damage::Missing, .. })), "{missing:?}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_lost_keeps_no_other_row_back_and_comes_back_with_its_blob() {
    let (_, clock) = env();
    let table = Arc::new(FakeTable::new(clock, 0, Faults::none()));
    let blobs = Arc::new(FakeBlobs::new(0, Faults::none()));
    let spilling = Spilling::new(table.clone(), blobs.clone());
    let long = |letter: &str| format!("\"{}\"", letter.repeat(64 * 1024));
    let bodies = [("a", "\"1\"".to_owned()), ("b", long("b")), ("c", long("c")), ("d", long("d"))];
    for (sk, body) in &bodies {
        let index = Key::new("i", *sk);
        let put = Write::put(Key::new("p", *sk), body, Expect::Absent).indexed(index);
        spilling.commit(vec![put]).await.unwrap();
    }
    let stored = table.items();
    let digests = [1, 2].map(|at: usize| domain::Sha256::of(bodies[at].1.as_bytes()));
    blobs.lose(SPILL_SPACE, digests[0]);
    blobs.damage(SPILL_SPACE, digests[1], "other bytes");
    let rows = spilling.query(&Query::all("p", 9)).await.unwrap().items;
    assert_eq!(spilling.query_index(&Query::all("i", 9)).await.unwrap().items, rows);
    // The reader of a list goes on, and the reader of a log knows of each row that it lacks.
    let read: Vec<_> = ports::readable::<String>(&rows).map(|(item, _)| item.key.sk.as_str()).collect();
    assert_eq!((read, rows.len()), (vec!["a", "d"], 4));
    for (row, digest, damage) in [(1, digests[0], Damage::Missing), (2, digests[1], Damage::Altered)] {
        for lost in [rows[row].content::<String>().map(drop), spilling.get(&rows[row].key).await.map(drop)] {
            let place = format!("the content {digest} of the item {} of p", rows[row].key.sk);
            assert!(
                matches!(&lost, Err(Error::Lost { place: at, damage: is }) if *at == place && *is == damage),
                "{lost:?}"
            );
        }
    }
    // A row that is written again as it was read goes on referring to its blob.
    let again = Write::put(rows[1].key.clone(), &rows[1].body, Expect::Rev(rows[1].rev));
    spilling.commit(vec![again]).await.unwrap();
    assert_eq!(table.items()[1].body, stored[1].body);
    blobs.put(SPILL_SPACE, Bytes::from(bodies[1].1.clone())).await.unwrap();
    assert_eq!(spilling.get(&rows[1].key).await.unwrap().unwrap().body, bodies[1].1);
}

/// A workspace, and a body that leaves the table.
fn long_of_workspace() -> (domain::WorkspaceId, String) {
    (domain::WorkspaceId::from_key("test", "a workspace"), format!("\"{}\"", "x".repeat(64 * 1024)))
}

#[tokio::test(start_paused = true)]
async fn long_bodies_of_a_workspace_go_with_its_space_and_earlier_ones_are_read_where_they_are() {
    let (_, clock) = env();
    let table = Arc::new(FakeTable::new(clock, 0, Faults::none()));
    let blobs = Arc::new(FakeBlobs::new(0, Faults::none()));
    let spilling = Spilling::new(table.clone(), blobs.clone());
    let (one, long) = long_of_workspace();
    let other = domain::WorkspaceId::from_key("test", "another");
    let keys = [format!("{one}/tasks"), format!("chat/{one}/c"), format!("{other}/tasks")].map(|pk| Key::new(pk, "a"));
    for key in &keys {
        spilling.commit(vec![Write::put(key.clone(), &long, Expect::Absent)]).await.unwrap();
    }
    assert_eq!((blobs.digests(&spill_space(one)).len(), blobs.digests(SPILL_SPACE).len()), (1, 0));
    blobs.delete_space(&spill_space(one)).await.unwrap();
    for (key, is_lost) in keys.iter().zip([true, true, false]) {
        assert_eq!(matches!(spilling.get(key).await, Err(Error::Lost { .. })), is_lost, "{key:?}");
    }
    // As an earlier version wrote it; one that reads there alone has it, too.
    blobs.put(SPILL_SPACE, Bytes::from(long.clone())).await.unwrap();
    for key in &keys {
        assert_eq!(spilling.get(key).await.unwrap().unwrap().body, long);
    }
}

#[tokio::test(start_paused = true)]
async fn beside_an_earlier_version_long_bodies_stay_where_it_reads_them_for_an_hour() {
    let (_, clock) = env();
    let table = Arc::new(FakeTable::new(clock.clone(), 0, Faults::none()));
    let blobs = Arc::new(FakeBlobs::new(0, Faults::none()));
    let process = || Spilling::beside_earlier(table.clone(), blobs.clone(), clock.clone());
    let (workspace, long) = long_of_workspace();
    let write = async |spilling: &Spilling, sk: &str| {
        let key = Key::new(format!("{workspace}/tasks"), sk);
        spilling.commit(vec![Write::put(key, format!("{long} "), Expect::Any)]).await.unwrap();
        (blobs.digests(SPILL_SPACE).len(), blobs.digests(&spill_space(workspace)).len())
    };
    let first = process();
    assert_eq!(write(&first, "a").await, (1, 0));
    tokio::time::advance(Duration::from_secs(3_599)).await;
    assert_eq!(write(&process(), "b").await, (1, 0));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(write(&first, "c").await, (1, 1), "a process that has run all the time");
    assert_eq!(write(&process(), "d").await, (1, 1), "and a new one");
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_cleared_takes_its_long_bodies_along_wherever_they_are() {
    let (_, clock) = env();
    let table = Arc::new(FakeTable::new(clock, 0, Faults::none()));
    let blobs = Arc::new(FakeBlobs::new(0, Faults::none()));
    let spilling = Spilling::new(table.clone(), blobs.clone());
    let (workspace, long) = long_of_workspace();
    let pk = format!("chat/{workspace}/c");
    for n in 0..120 {
        let body = if n % 40 == 0 { format!("{long}{}", " ".repeat(n)) } else { "1".into() };
        spilling.commit(vec![Write::put(Key::new(&pk, format!("log/{n:020}")), body, Expect::Absent)]).await.unwrap();
    }
    // One that an earlier version wrote, and one that is no log entry: others may have the same body.
    blobs.put(SPILL_SPACE, Bytes::from(long.clone())).await.unwrap();
    spilling.commit(vec![Write::put(Key::new(&pk, "snapshot"), format!("{long}\n"), Expect::Absent)]).await.unwrap();
    spilling.clear(&pk).await.unwrap();
    assert_eq!(table.items(), []);
    assert_eq!((blobs.digests(SPILL_SPACE).len(), blobs.digests(&spill_space(workspace)).len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn manifests_of_a_flow_with_the_name_log_that_another_workspace_has_too_stay() {
    let (_, clock) = env();
    let table = Arc::new(FakeTable::new(clock.clone(), 0, Faults::none()));
    let blobs = Arc::new(FakeBlobs::new(0, Faults::none()));
    // Long bodies of all workspaces are in one space.
    let spilling = Spilling::beside_earlier(table, blobs, clock);
    let (one, long) = long_of_workspace();
    let other = domain::WorkspaceId::from_key("test", "another");
    let key = |workspace| Key::new(format!("{workspace}/flows"), format!("log/{}", "a".repeat(64)));
    for workspace in [one, other] {
        spilling.commit(vec![Write::put(key(workspace), &long, Expect::Absent)]).await.unwrap();
    }
    spilling.clear(&key(one).pk).await.unwrap();
    assert_eq!(spilling.get(&key(one)).await.unwrap(), None);
    assert_eq!(spilling.get(&key(other)).await.unwrap().unwrap().body, long);
}

#[tokio::test(start_paused = true)]
async fn a_blob_store_that_does_not_answer_is_no_damage() {
    let (_, clock) = env();
    let table = Arc::new(FakeTable::new(clock, 0, Faults::none()));
    let long = "x".repeat(64 * 1024 + 1);
    let blobs = Arc::new(FakeBlobs::new(0, Faults::none()));
    let put = Write::put(Key::new("p", "a"), &long, Expect::Absent);
    Spilling::new(table.clone(), blobs).commit(vec![put]).await.unwrap();
    let away = Arc::new(FakeBlobs::new(0, Faults { unavailable_before: 1.0, ..Faults::none() }));
    let read = Spilling::new(table, away).query(&Query::all("p", 9)).await;
    assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
}

fn message(id: u32) -> QueueMessage {
    QueueMessage { group: "g".into(), id: id.to_string(), body: String::new(), ..QueueMessage::default() }
}

#[tokio::test(start_paused = true)]
async fn with_every_fault_a_patient_worker_sees_every_message_in_order() {
    let mut again = 0;
    for seed in 0..50 {
        let clock = Arc::new(TestClock::new(seed));
        let queue = FakeQueue::new(clock, seed, Faults::some(), 1000);
        for id in 0..20 {
            while queue.send(vec![message(id)]).await.is_err() {}
        }
        let mut seen = Vec::new();
        while !queue.is_empty() {
            let Ok(deliveries) = queue.receive(4, Duration::from_secs(30)).await else { continue };
            for delivery in deliveries {
                let id: u32 = delivery.id.parse().unwrap();
                match seen.len() as u32 {
                    next if id == next => seen.push(id),
                    next => {
                        assert!(id < next, "seed {seed}: {id} overtook {next}");
                        again += 1;
                    }
                }
                _ = queue.ack(std::slice::from_ref(&delivery.receipt)).await;
            }
        }
        assert_eq!(seen.len(), 20, "seed {seed}");
        assert!(queue.dead().is_empty());
    }
    assert!(again > 20, "the faults happen: {again} redeliveries");
}

#[tokio::test(start_paused = true)]
async fn a_process_dies_at_its_call_and_takes_everything_of_it_along() {
    for (side, found) in [(Side::Before, 1), (Side::After, 2)] {
        let (_, clock) = env();
        let table: Arc<FakeTable> = Arc::new(FakeTable::new(clock.clone(), 0, Faults::none()));
        let queue = Arc::new(FakeQueue::new(clock, 0, Faults::none(), ATTEMPTS));
        let crash = Crash::at(3, side);
        let (mortal, mortal_queue) = (crash.table(table.clone()), crash.queue(queue.clone()));
        let waiting = tokio::spawn(async move { mortal_queue.receive(1, Duration::from_secs(9)).await });
        tokio::task::yield_now().await;
        let worker = tokio::spawn(async move {
            for n in 0..9 {
                mortal.commit(vec![Write::put(Key::new("p", n.to_string()), "1", Expect::Absent)]).await.unwrap();
            }
        });
        crash.died().await;
        assert_eq!(crash.names(), ["queue.receive", "table.commit", "table.commit"]);
        assert_eq!((table.items().len(), crash.calls()), (found, 3), "{side:?}");
        queue.send(vec![message(1)]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!waiting.is_finished() && !worker.is_finished());
        assert_eq!((table.items().len(), crash.calls()), (found, 3), "the dead do nothing");
        assert_eq!(queue.receive(1, Duration::from_secs(9)).await.unwrap()[0].attempt, 1, "nor receive");
        waiting.abort();
        worker.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_makes_the_same_run() {
    let run = |seed| async move {
        let bus = FakeBus::new(seed, Faults::some());
        let mut heard = None;
        while heard.is_none() {
            heard = bus.subscribe("c").await.ok();
        }
        for n in 0..200_u32 {
            _ = bus.publish("c", Bytes::from(n.to_string())).await;
        }
        let mut heard = heard.unwrap();
        std::iter::from_fn(|| heard.next().now_or_never().flatten()).collect::<Vec<_>>()
    };
    assert_eq!(run(7).await, run(7).await);
    let runs: BTreeSet<Vec<Bytes>> = [run(1).await, run(2).await, run(3).await].into();
    assert_eq!(runs.len(), 3);
}
