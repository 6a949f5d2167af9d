//! A hub from its start to its end: its disk, its memory, and its shutdown in good order.

use crate::support::{Result, count, start};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::yield_now,
};

#[tokio::test]
async fn everything_in_the_api_is_on_the_disk() -> Result {
    let folder = tempfile::tempdir()?;
    let mut hub = start(folder.path(), &[]).await?;
    let client = hub.client();
    let workspace = client.workspace().await?;
    let place = format!("/api/v1/workspaces/{workspace}");
    let chat = client.chat(&place, "novel").await?;
    let watch = client.watch(&chat);
    watch.until_event("done").await?;
    let latest = folder.path().join("workspaces").join(&workspace).join("latest");
    assert_eq!(std::fs::read_to_string(latest.join("projects/novel/a.md"))?, "second");

    client.post(&chat, json!({ "content": "ask me" })).await?;
    let question = watch.until_event("question").await?;
    let answers = format!("{chat}/answers/{}", question.data["question_id"].as_str().unwrap_or_default());
    client.answer(&answers, json!({ "colour": "blue" })).await?;
    watch.until_nth("done", 2).await?;

    // The chat's file follows the events; at the latest a hub that has ended in good order has written all of it.
    assert!(hub.terminate().await?.success());
    let id = chat.rsplit('/').next().unwrap_or_default();
    let transcript = std::fs::read_to_string(latest.join(format!("chats/{id}.md")))?;
    assert!(transcript.starts_with("---\nchat: "), "{transcript}");
    for said in ["novel", "The file of novel is done.", "ask me", "You said blue."] {
        assert_eq!(transcript.matches(&format!("\n\n{said}\n\n")).count(), 1, "{said} in {transcript}");
    }
    Ok(())
}

#[tokio::test]
async fn a_hub_that_ends_in_good_order_checkpoints_its_turns_and_goes_on() -> Result {
    let folder = tempfile::tempdir()?;
    let mut hub = start(folder.path(), &[("BUILDSCALE__SERVER__DRAIN_SECONDS", "0")]).await?;
    let client = hub.client();
    let chat = client.chat(&client.place().await?, "slow please").await?;
    let watch = client.watch(&chat);
    watch.until_event("chunk").await?;
    let status = hub.terminate().await?;
    assert!(status.success(), "{status}");
    hub.restart().await?;
    watch.until(|events| events.iter().any(|event| event.name == "turn_started" && event.data["attempt"] == 2)).await?;
    client.post(&format!("{chat}/stop"), Value::Null).await?;
    watch.until_event("stopped").await?;
    Ok(())
}

#[tokio::test]
async fn a_request_in_flight_is_answered_although_no_turn_holds_up_the_end() -> Result {
    let folder = tempfile::tempdir()?;
    let mut hub = start(folder.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let address = client.address("").trim_start_matches("http://").to_owned();
    let mut connection = TcpStream::connect(&address).await?;
    let head = format!(
        "PUT {place}/files/by-path/content?path=/projects/slow.txt HTTP/1.1\r\nhost: {address}\r\nexpect: 100-continue\r\n\
         content-type: application/octet-stream\r\ncontent-length: 9\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await?;
    // It is told so when the body is read.
    let mut goes_on = [0; 25];
    connection.read_exact(&mut goes_on).await?;
    assert_eq!(&goes_on, b"HTTP/1.1 100 Continue\r\n\r\n");

    let (ended, answer) = tokio::join!(hub.terminate(), rest_of_request(&mut connection, &address));
    assert!(ended?.success());
    let answer = answer?;
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    hub.restart().await?;
    let read = client.look(&format!("{place}/files/by-path/content?path=/projects/slow.txt")).await?;
    assert_eq!(read.is(200)?.text(), "all of it");
    Ok(())
}

/// Sends the rest of a request once the hub takes no connection any more, and reads the answer.
async fn rest_of_request(connection: &mut TcpStream, address: &str) -> Result<String> {
    while TcpStream::connect(address).await.is_ok() {
        yield_now().await;
    }
    connection.write_all(b"all of it").await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn an_idle_chat_leaves_memory_and_its_stream_stays() -> Result {
    let folder = tempfile::tempdir()?;
    let hub = start(folder.path(), &[("BUILDSCALE__AI__ACTOR_INACTIVITY_TIMEOUT_SECONDS", "1")]).await?;
    let client = hub.client();
    let chat = client.chat(&client.place().await?, "hello").await?;
    let stream = client.open(&format!("{chat}/events?after=0")).await?;
    let watch = client.watch(&chat);
    watch.until_event("done").await?;

    // First it comes to rest and is kept in memory; from then on nothing but the time-out takes it out of there.
    client.until_settled().await?;
    client.until_counted(|text| text.contains("buildscale_actors_warm 0\n")).await?;
    client.until_counted(|text| text.contains("buildscale_context_cache_chats 1\n")).await?;
    client.ask(Method::POST, &format!("{chat}/stop"), Value::Null).await?.refuses(404, "NOT_FOUND")?;

    client.post(&chat, json!({ "content": "hello again" })).await?;
    watch.until_nth("done", 2).await?;
    let seen = stream.until(|events| count(events, "done") == 2).await?;
    assert_eq!(seen, watch.events(), "one connection, from the first event to the last, across the time-out");
    // Its context was kept, so the message did not read it again.
    client.until_counted(|text| text.contains("buildscale_context_cache_hits_total 1\n")).await?;
    Ok(())
}

#[tokio::test]
async fn a_hub_whose_files_cannot_be_reached_is_not_ready() -> Result {
    let folder = tempfile::tempdir()?;
    let hub = start(folder.path(), &[]).await?;
    let client = hub.client();
    let (files, elsewhere) = (folder.path().join("workspaces"), folder.path().join("elsewhere"));
    client.until("/ready", |ready| ready["status"] == "ready").await?;
    std::fs::rename(&files, &elsewhere)?;
    let refused = client.ask(Method::GET, "/ready", Value::Null).await?.refuses(503, "UPSTREAM_UNAVAILABLE")?;
    assert_eq!(refused["message"], "not ready: files");
    client.ask(Method::GET, "/health", Value::Null).await?.is(200)?;
    std::fs::rename(&elsewhere, &files)?;
    client.until("/ready", |ready| ready["status"] == "ready").await?;
    Ok(())
}
