//! The embedded adapters pass the suites, in paused time: the store's writer is a real thread, so calls that wait for it
//! hold the time.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_embedded::{ArchivedIndexes, LocalBlobs, LocalBus, LocalIndexes, Options, Store};
use ports::{
    Blobs, Bus, DeadLetter, DeadLetterQueue, Delivery, QueueMessage, QueueReceiver, QueueSender, Receipt, Result,
    SearchIndexes, Spilling, Table,
};
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use testkit::{
    Queue, TestClock,
    clock::holding_time,
    conformance::{self, Env},
};

const ATTEMPTS: u32 = 5;

fn env() -> (Env, Arc<TestClock>, TempDir) {
    let clock = Arc::new(TestClock::new(1));
    (Env::paused(clock.clone()), clock, tempfile::tempdir().unwrap())
}

fn open(clock: &Arc<TestClock>, folder: &TempDir) -> Store {
    let path = tempfile::tempdir_in(folder).unwrap().keep().join("store.sqlite3");
    Store::open(path, clock.clone(), Options { max_attempts: ATTEMPTS, ..Options::default() }).unwrap()
}

#[tokio::test]
async fn the_table_conforms() {
    let (env, clock, folder) = env();
    // Paused only between commits, which the suite's waits are: no timer runs while a commit is under way.
    tokio::time::pause();
    conformance::table(&env, || async { open(&clock, &folder).table() }).await;
}

/// A queue whose calls hold the time, except `receive`, which waits for it.
struct Held(Arc<dyn Queue>);

#[async_trait]
impl QueueSender for Held {
    async fn send(&self, messages: Vec<QueueMessage>) -> Result<()> {
        holding_time(self.0.send(messages)).await
    }
    async fn waiting(&self, lane: &str) -> Result<usize> {
        self.0.waiting(lane).await
    }
}

#[async_trait]
impl QueueReceiver for Held {
    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<Delivery>> {
        self.0.receive(max, visibility).await
    }
    async fn ack(&self, receipts: &[Receipt]) -> Result<bool> {
        self.0.ack(receipts).await
    }
    async fn extend(&self, receipts: &[Receipt], visibility: Duration) -> Result<bool> {
        self.0.extend(receipts, visibility).await
    }
    async fn reject(&self, receipts: &[Receipt], delay: Duration) -> Result<bool> {
        self.0.reject(receipts, delay).await
    }
}

#[async_trait]
impl DeadLetterQueue for Held {
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>> {
        holding_time(self.0.dead_letters(limit)).await
    }
    async fn redrive(&self, group: &str) -> Result<usize> {
        holding_time(self.0.redrive(group)).await
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_conforms() {
    let (env, clock, folder) = env();
    let fresh = || async { Arc::new(Held(open(&clock, &folder).queue())) as Arc<dyn Queue> };
    conformance::queue(&env, ATTEMPTS, fresh).await;
    conformance::queue_in_turn(&env, fresh).await;
}

#[tokio::test(start_paused = true)]
async fn commits_that_send_conform() {
    let (env, clock, folder) = env();
    let over = |store: Store, table: Arc<dyn Table>| (table, Arc::new(Held(store.queue())) as Arc<dyn Queue>);
    conformance::sending(&env, true, || async {
        let store = open(&clock, &folder);
        let table = store.table();
        over(store, table)
    })
    .await;
    conformance::sending(&env, true, || async {
        let (store, blobs) = (open(&clock, &folder), Arc::new(LocalBlobs::new(folder.path().join("blobs"))));
        let table = Arc::new(Spilling::new(store.table(), blobs));
        over(store, table)
    })
    .await;
}

#[tokio::test]
async fn the_bus_conforms() {
    let (env, ..) = env();
    conformance::bus(&env, || async { Arc::new(LocalBus::new()) as Arc<dyn Bus> }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_blobs_conform() {
    let (env, _, folder) = env();
    conformance::blobs(&env, || async {
        Arc::new(LocalBlobs::new(tempfile::tempdir_in(&folder).unwrap().keep())) as Arc<dyn Blobs>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_blobs_conform() {
    let (_, _, folder) = env();
    let large = |above: usize| {
        let root = tempfile::tempdir_in(&folder).unwrap().keep();
        Arc::new(LocalBlobs::with_large_above(root, above as u64)) as Arc<dyn Blobs>
    };
    for above in [100_000, 1 << 20] {
        conformance::large_blobs(above, || async { large(above) }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_in_parts_conform() {
    let (_, _, folder) = env();
    let fresh = || async { Arc::new(LocalBlobs::new(tempfile::tempdir_in(&folder).unwrap().keep())) as Arc<dyn Blobs> };
    conformance::uploads(fresh, async |request, _| panic!("a hub takes parts itself: {request:?}")).await;
}

#[tokio::test]
async fn search_indexes_conform() {
    let (_, clock, folder) = env();
    let root = || tempfile::tempdir_in(&folder).unwrap().keep();
    conformance::search_indexes(|| async { Arc::new(LocalIndexes::new(root())) as Arc<dyn SearchIndexes> }).await;
    let kept = || async {
        let blobs = Arc::new(LocalBlobs::new(root()));
        Arc::new(ArchivedIndexes::new(root(), open(&clock, &folder).table(), blobs)) as Arc<dyn SearchIndexes>
    };
    conformance::search_indexes(kept).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_threads_conform_too() {
    let (_, _, folder) = env();
    let clock = Arc::new(ports::SystemClock);
    let env = Env { unit: Duration::from_millis(1500), ..Env::real(clock.clone()) };
    let open = || {
        let path = tempfile::tempdir_in(&folder).unwrap().keep().join("store.sqlite3");
        Store::open(path, clock.clone(), Options { max_attempts: ATTEMPTS, ..Options::default() }).unwrap()
    };
    conformance::table(&env, || async { open().table() as Arc<dyn Table> }).await;
    conformance::queue_races(&env, || async { open().queue() as Arc<dyn Queue> }).await;
}
