//! Documents that wait for a long time.

use super::*;
use domain::Timestamp;
use ports::{IndexQuery, Item, Key, Page, Query, Write};
use std::sync::OnceLock;

/// A table in which a sweep goes by between the first and the second look at the task of a document.
struct Swept {
    table: Arc<dyn Table>,
    looks: AtomicUsize,
    /// Set when the looks begin to count.
    all: OnceLock<Workspaces>,
}

#[async_trait]
impl Table for Swept {
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        if let Some(all) = self.all.get().filter(|_| key.pk.ends_with("unconverted"))
            && self.looks.fetch_add(1, Ordering::SeqCst) == 1
        {
            sweep(all, SystemClock.now() + Duration::from_secs(60)).await;
        }
        self.table.get(key).await
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        self.table.query(query).await
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        self.table.query_index(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> ports::Result<()> {
        self.table.commit(writes).await
    }
}

/// How many documents a sweep finds.
async fn sweep(all: &Workspaces, before: Timestamp) -> u64 {
    let mut found = 0;
    for shard in 0..SHARDS {
        found += all.convert_forgotten(before, shard, 10, None).await.unwrap().0;
    }
    found
}

#[tokio::test]
async fn a_document_whose_task_a_sweep_writes_anew_meanwhile_is_left_for_the_next_message() {
    let mut swept = None;
    let world = World::on(|table| {
        let one = Arc::new(Swept { table, looks: AtomicUsize::new(0), all: OnceLock::new() });
        swept = Some(one.clone());
        one
    })
    .await;
    write(&world.workspace, "hello").await;
    let sent = world.queue.messages();
    assert!(swept.unwrap().all.set(world.all.clone()).is_ok());
    assert_eq!((world.drive(sent).await, world.conversions()), (0, 0), "its message comes again");
    let swept = world.queue.messages().split_off(1);
    assert_eq!((world.drive(swept).await, world.conversions()), (1, 1));
    assert_eq!(world.status().await, ConversionStatus::Done);
}

#[tokio::test]
async fn sweeps_queue_a_document_that_waits_again_after_growing_pauses_alone() {
    let world = World::new().await;
    write(&world.workspace, "hello").await;
    let file = world.info().await.file_id;
    let (task, _) = world.workspace.unconverted(file).await.unwrap().unwrap();
    let sweep = async |before| sweep(&world.all, before).await;
    let later = SystemClock.now() + Duration::from_secs(60);
    assert_eq!((sweep(later).await, sweep(later).await, sweep(later).await), (1, 0, 0));
    assert_eq!(world.queue.messages().len(), 2);
    assert_eq!(world.workspace.unconverted(file).await.unwrap().unwrap().0, task, "the task itself stays");
    // A message may get lost in the queue, too.
    assert_eq!(sweep(later + Duration::from_secs(60)).await, 1);

    let sent = world.queue.messages();
    assert_eq!((world.drive(sent).await, world.echo.calls.load(Ordering::SeqCst)), (3, 1));
    assert_eq!(world.workspace.unconverted(file).await.unwrap(), None);
}

#[tokio::test]
async fn a_document_whose_message_was_lost_is_found_by_the_sweep() {
    let world = World::new().await;
    write(&world.workspace, "hello").await;
    let sent = world.queue.messages();
    assert_eq!((sent.len(), world.status().await), (1, ConversionStatus::Queued));

    // Nobody receives that message. The item of the commit is found by its time.
    let later = SystemClock.now() + Duration::from_secs(60);
    assert_eq!(sweep(&world.all, later).await, 1);
    let again = world.queue.messages().split_off(1);
    assert_eq!(again.len(), 1);
    assert_eq!((world.drive(again).await, world.status().await), (1, ConversionStatus::Done));
    assert!(world.markdown().await.ends_with("---\n\nhello\n"), "{}", world.markdown().await);
    assert_eq!(world.workspace.unconverted(world.info().await.file_id).await.unwrap(), None);

    // The first message comes after all, and does nothing.
    assert_eq!((world.drive(sent).await, world.echo.calls.load(Ordering::SeqCst)), (1, 1));
}
