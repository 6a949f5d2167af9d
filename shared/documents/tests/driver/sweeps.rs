//! Documents that wait for a long time.

use super::*;

#[tokio::test]
async fn sweeps_queue_a_document_that_waits_again_after_growing_pauses_alone() {
    let world = World::new().await;
    write(&world.workspace, "hello").await;
    let file = world.info().await.file_id;
    let (task, _) = world.workspace.unconverted(file).await.unwrap().unwrap();
    let sweep = async |before| {
        let mut found = 0;
        for shard in 0..SHARDS {
            found += world.all.convert_forgotten(before, shard, 10, None).await.unwrap().0;
        }
        found
    };
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
    let mut found = 0;
    for shard in 0..SHARDS {
        found += world.all.convert_forgotten(later, shard, 10, None).await.unwrap().0;
    }
    assert_eq!(found, 1);
    let again = world.queue.messages().split_off(1);
    assert_eq!(again.len(), 1);
    assert_eq!((world.drive(again).await, world.status().await), (1, ConversionStatus::Done));
    assert!(world.markdown().await.ends_with("---\n\nhello\n"), "{}", world.markdown().await);
    assert_eq!(world.workspace.unconverted(world.info().await.file_id).await.unwrap(), None);

    // The first message comes after all, and does nothing.
    assert_eq!((world.drive(sent).await, world.echo.calls.load(Ordering::SeqCst)), (1, 1));
}
