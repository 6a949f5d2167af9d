//! Files that are text already.

use super::*;

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
