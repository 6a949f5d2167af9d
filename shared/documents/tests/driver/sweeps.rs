//! Documents that wait for a long time.

use super::*;
use domain::{FileId, Timestamp};
use futures::future::BoxFuture;
use ports::{IndexQuery, Item, Key, Page, Query, Write};

/// A table in which something happens just before a look at a row.
struct Interrupted {
    table: Arc<dyn Table>,
    next: Mutex<Option<Interruption>>,
}

struct Interruption {
    /// How the partition of the row ends, and its sort key.
    row: (&'static str, FileId),
    /// How many looks come before.
    looks: usize,
    event: BoxFuture<'static, ()>,
}

impl Interrupted {
    fn due(&self, key: &Key) -> Option<BoxFuture<'static, ()>> {
        let mut next = self.next.lock();
        let Interruption { row: (partition, file), looks, .. } = next.as_mut()?;
        if !key.pk.ends_with(*partition) || key.sk != file.to_string() {
            return None;
        }
        if *looks > 0 {
            *looks -= 1;
            return None;
        }
        next.take().map(|it| it.event)
    }
}

#[async_trait]
impl Table for Interrupted {
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        if let Some(event) = self.due(key) {
            event.await;
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

/// A world on such a table.
async fn interrupted() -> (World, Arc<Interrupted>) {
    let mut made = None;
    let world = World::on(|table| made.insert(Arc::new(Interrupted { table, next: Mutex::default() })).clone()).await;
    (world, made.unwrap())
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
    let (world, table) = interrupted().await;
    write(&world.workspace, "hello").await;
    let sent = world.queue.messages();
    let all = world.all.clone();
    let event = async move {
        sweep(&all, SystemClock.now() + Duration::from_secs(60)).await;
    };
    let row = ("unconverted", world.info().await.file_id);
    *table.next.lock() = Some(Interruption { row, looks: 1, event: Box::pin(event) });
    assert_eq!((world.drive(sent).await, world.conversions()), (0, 0), "its message comes again");
    let swept = world.queue.messages().split_off(1);
    assert_eq!((world.drive(swept).await, world.conversions()), (1, 1));
    assert_eq!(world.status().await, ConversionStatus::Done);
}

#[tokio::test]
async fn a_document_whose_folder_comes_back_while_its_files_go_is_converted_again() {
    let (world, table) = interrupted().await;
    put(&world.workspace, "/data/x/a.pdf", "hello").await;
    world.settle().await;
    let (here, there) = (path("/data/x"), path("/projects/x"));
    world.workspace.mv(&path("/data/x/a.pdf"), &path("/data/x/b.pdf"), &person()).await.unwrap();
    world.workspace.mv(&here, &there, &person()).await.unwrap();
    let markdown = world.workspace.stat(&path("/projects/x/a.pdf.md")).await.unwrap().file_id;
    let workspace = world.workspace.clone();
    let event = async move { drop(workspace.mv(&there, &here, &person()).await.unwrap()) };
    *table.next.lock() = Some(Interruption { row: ("node", markdown), looks: 0, event: Box::pin(event) });
    let sent = world.queue.messages().split_off(world.settled.load(Ordering::SeqCst));
    assert_eq!(world.drive(sent.clone()).await, 0, "its message comes again");
    assert!(table.next.lock().is_none());
    assert_eq!(world.drive(sent).await, 1);
    assert!(world.text("/data/x/b.pdf.md").await.ends_with("hello\n"));
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
