//! Files that are text already.

use super::*;

#[tokio::test]
async fn a_document_whose_content_or_row_is_lost_keeps_no_other_one_waiting() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
    let queue = Arc::new(FakeQueue::new(clock.clone(), 1, Faults::none(), 100));
    let (root, blobs) = (TempDir::new().unwrap(), Arc::new(FakeBlobs::new(1, Faults::none())));
    let all = Workspaces::new(table.clone(), blobs.clone(), clock, root.path().into()).converting(queue.clone());
    let workspace = async || {
        let id = WorkspaceId(Uuid::now_v7());
        all.create(id, "test", &Principal::local()).await.unwrap();
        all.open(id, Access::platform("a test")).await.unwrap()
    };
    // One that is a blob, and whose copy in latest/ is gone, too. A good copy may be behind a damaged row, so that is in another workspace.
    let (of_lost, of_damaged) = (workspace().await, workspace().await);
    let lost = "lost ".repeat(5_000);
    put(&of_lost, "/data/a.pdf", &lost).await;
    put(&of_lost, "/data/c.pdf", "sound").await;
    put(&of_damaged, "/data/b.pdf", "of a damaged row").await;
    put(&of_damaged, "/data/c.pdf", "sound").await;
    let folder = of_damaged.stat(&path("/data")).await.unwrap().file_id;
    table.damage(&ports::Key::new(format!("{}/dir/{folder}", of_damaged.id()), "b.pdf"), "{}");
    blobs.lose(&of_lost.id().to_string(), domain::Sha256::of(lost.as_bytes()));
    std::fs::remove_file(root.path().join(of_lost.id().to_string()).join("latest/data/a.pdf")).unwrap();

    let documents = Documents::new(all.clone(), Arc::new(Echo::default()), 1);
    let delivery = |QueueMessage { group, id, body, .. }| Delivery {
        group,
        id,
        body,
        attempt: 1,
        receipt: Receipt(String::new()),
    };
    let deliveries: Vec<Delivery> = queue.messages().into_iter().map(delivery).collect();
    assert_eq!(documents.deliver(&deliveries, &CancellationToken::new()).await.done, 4);
    let state = async |workspace: &Workspace, at: &str| {
        let conversion = workspace.stat(&path(at)).await.unwrap().conversion.unwrap();
        (conversion.status, conversion.reason.unwrap_or_default())
    };
    assert_eq!(state(&of_lost, "/data/a.pdf").await, (ConversionStatus::Failed, "content_lost".to_owned()));
    for workspace in [&of_lost, &of_damaged] {
        assert_eq!(state(workspace, "/data/c.pdf").await, (ConversionStatus::Done, String::new()));
    }
    // The document of the damaged row still has its task.
    let mut found = 0;
    for shard in 0..SHARDS {
        let later = SystemClock.now() + Duration::from_secs(60);
        found += all.convert_forgotten(later, shard, 10, None).await.unwrap().0;
    }
    assert_eq!(found, 1);
}

#[tokio::test]
async fn a_file_that_is_text_already_asks_for_no_conversion() {
    let world = World::new().await;
    let status = async |at: &str| {
        let conversion = world.workspace.stat(&path(at)).await.unwrap().conversion.unwrap();
        (conversion.status, conversion.reason.unwrap_or_default())
    };
    put(&world.workspace, "/data/notes.md", "# Notes").await;
    put(&world.workspace, "/data/notes.md", "# Notes, again").await;
    assert_eq!(status("/data/notes.md").await, (ConversionStatus::Skipped, "text".to_owned()));
    for at in ["/data/list.txt", "/data/facts.json", "/data/draw.py"] {
        put(&world.workspace, at, "a text").await;
        assert_eq!(status(at).await, (ConversionStatus::Skipped, "text".to_owned()), "{at}");
    }
    assert_eq!((world.queue.messages().len(), world.conversions()), (0, 0));

    // A page that was saved under such a name is converted, and its Markdown goes when the file becomes Markdown itself.
    put(&world.workspace, "/data/notes.md", "<html>mail</html>").await;
    world.settle().await;
    assert_eq!((status("/data/notes.md").await.0, world.conversions()), (ConversionStatus::Done, 1));
    assert_eq!(world.names("/data").await, ["draw.py", "facts.json", "list.txt", "notes.md"]);
    assert!(world.text("/data/notes.md.md").await.contains("<html>mail</html>"));
    put(&world.workspace, "/data/notes.md", "# Notes").await;
    world.settle().await;
    assert_eq!(status("/data/notes.md").await, (ConversionStatus::Skipped, "text".to_owned()));
    assert_eq!(world.workspace.stat(&path("/data/notes.md.md")).await.unwrap_err().code, Code::NotFound);
    assert_eq!(world.conversions(), 1);
}
