//! A hub whose disk is full: it reads, deletes and stops, tells its state, starts, and goes on once there is room.

use crate::support::{Hub, PATIENCE, Result, count, start};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::SmallDisk;
use tokio::time::timeout;

const BYTES: u64 = 12 * 1024 * 1024;
/// A turn that takes a while, and one that does not.
const SCRIPT: &str = r"
rules:
- when: {user: '^slow'}
  steps:
  - {text: 'one two three four five six seven eight nine ten', chunks: 10, delay_ms: 200}
- when: {user: '.'}
  steps:
  - {text: 'That was all.'}
";

async fn on(disk: &SmallDisk) -> Result<Hub> {
    let script = disk.path().join("turns.yaml");
    std::fs::write(&script, SCRIPT)?;
    start(disk.path(), &[("BUILDSCALE__AI__SCRIPT", &script.display().to_string())]).await
}

#[tokio::test]
async fn a_hub_on_a_full_disk_reads_deletes_and_goes_on_when_there_is_room() -> Result {
    let Some(disk) = SmallDisk::mounted(BYTES)? else { return Ok(()) };
    let mut hub = on(&disk).await?;
    let client = hub.client();
    let place = client.place().await?;
    let (kept, gone) = ("what stays\n".repeat(1000), "what goes\n".repeat(1000));
    let kept_at = client.file(&place, "/projects/kept.md", &kept).await?;
    let gone_at = client.file(&place, "/projects/gone.md", &gone).await?;
    let old = client.chat(&place, "old").await?;
    client.watch(&old).until_event("done").await?;
    let busy = client.chat(&place, "slow").await?;
    let watch = client.watch(&busy);
    watch.until_event("chunk").await?;
    client.post(&busy, json!({ "content": "and then" })).await?;

    disk.fill()?;
    let ready = client.until("/ready", |ready| ready["degraded"]["disk"].is_string()).await?;
    assert_eq!(ready["status"], "ready", "reading and deleting need it: {ready}");
    adds_nothing(&hub, &place, &old, &kept_at).await?;
    reads(&hub, &kept_at, &kept, &old).await?;
    // The running turn ends on space reserved for that; the message behind it waits.
    timeout(PATIENCE, watch.until(|events| count(events, "done") == 1)).await??;
    client.until(&busy, |chat| chat["turns"] == 1).await?;
    client.ask(Method::DELETE, &gone_at, Value::Null).await?.good()?;
    client.ask(Method::DELETE, &format!("{gone_at}/purge"), Value::Null).await?.good()?;
    client.ask(Method::DELETE, &old, Value::Null).await?.good()?;
    client.look(&old).await?.refuses(404, "NOT_FOUND")?;

    hub.kill().await?;
    hub.restart().await?;
    let client = hub.client();
    client.until("/ready", |ready| ready["degraded"]["disk"].is_string()).await?;
    adds_nothing(&hub, &place, &busy, &kept_at).await?;
    reads(&hub, &kept_at, &kept, &busy).await?;
    let chat = client.get(&busy).await?;
    assert_eq!(
        (&chat["turns"], &chat["status"]),
        (&json!(1), &json!("idle")),
        "it waits, and no actor is blamed: {chat}"
    );

    disk.free()?;
    client.until("/ready", |ready| ready["degraded"].is_null()).await?;
    timeout(PATIENCE, watch.until(|events| count(events, "done") == 2)).await??;
    let events = watch.events();
    let said =
        |what: &str| events.iter().filter(|event| event.name == "message" && event.data["content"] == what).count();
    assert_eq!((said("slow"), said("and then"), said("That was all.")), (1, 1, 1));
    client.file(&place, "/projects/new.md", "room").await?;
    Ok(())
}

/// Every request that adds is refused before anything of it is stored.
async fn adds_nothing(hub: &Hub, place: &str, chat: &str, file: &str) -> Result {
    let client = hub.client();
    for (method, path, body) in [
        (Method::POST, format!("{place}/chats"), json!({ "goal": "more" })),
        (Method::POST, chat.to_owned(), json!({ "content": "more" })),
        (Method::POST, format!("{place}/files"), json!({ "path": "/projects/more.md", "content": "more" })),
        (Method::PUT, file.to_owned(), json!({ "content": "more" })),
        (Method::POST, "/api/v1/workspaces".to_owned(), json!({ "name": "more" })),
    ] {
        let answer = client.ask(method, &path, body).await?;
        assert_eq!(answer.status, StatusCode::INSUFFICIENT_STORAGE, "{path}");
        answer.refuses(507, "STORAGE_FULL")?;
    }
    Ok(())
}

/// Files, lists and logs are read as ever.
async fn reads(hub: &Hub, file: &str, content: &str, chat: &str) -> Result {
    let client = hub.client();
    let found = client.look(&format!("{file}/content")).await?;
    assert_eq!((found.status, found.text().len()), (StatusCode::OK, content.len()));
    let replayed = client.open(&format!("{chat}/events?after=0")).await?;
    replayed.until(|events| count(events, "message") >= 1).await?;
    client.get("/api/v1/workspaces").await?;
    Ok(())
}
