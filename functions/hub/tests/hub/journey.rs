//! What a new user does, in order: a workspace, a goal, the stream, the file and its versions, a stop, a question.

use crate::support::{Event, Hub, Result};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

fn count(events: &[Event], name: &str) -> usize {
    events.iter().filter(|event| event.name == name).count()
}

#[tokio::test]
async fn a_goal_becomes_files_that_can_be_watched_stopped_and_found_again() -> Result {
    let folder = tempfile::tempdir()?;
    let mut hub = Hub::start(folder.path()).await?;
    let client = hub.client();
    assert_eq!(client.get("/health").await?["status"], "ok");
    let workspace = client.workspace().await?;
    let api = format!("/api/v1/workspaces/{workspace}");

    let (status, made) = client.call(Method::POST, &format!("{api}/chats"), json!({ "goal": "novel" })).await?;
    assert_eq!(status, StatusCode::ACCEPTED);
    let chat = format!("{api}/chats/{}", made["chat_id"].as_str().ok_or("no chat_id")?);
    let watch = client.watch(&chat);
    let done = watch.until_event("done").await?;
    assert_eq!(
        (&done.data["stop_reason"], &done.data["message"]),
        (&json!("end_turn"), &json!("The file of novel is done."))
    );
    let names: Vec<String> = watch.events().into_iter().map(|event| event.name).collect();
    for name in ["turn_started", "message", "thought", "chunk", "call", "observation", "file_updated", "usage"] {
        assert!(names.iter().any(|seen| seen == name), "no {name} in {names:?}");
    }

    let latest = folder.path().join("workspaces").join(&workspace).join("latest");
    assert_eq!(std::fs::read_to_string(latest.join("projects/novel/a.md"))?, "second");
    let file = client.get(&format!("{api}/files/by-path?path=/projects/novel/a.md")).await?;
    let versions =
        client.get(&format!("{api}/files/{}/versions", file["file_id"].as_str().unwrap_or_default())).await?;
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(2));

    // Stop while it writes; a second stop is harmless; the chat goes on.
    client.post(&chat, json!({ "content": "slow please" })).await?;
    let writes =
        |events: &[Event]| events.iter().skip_while(|event| event.name != "done").any(|event| event.name == "chunk");
    watch.until(writes).await?;
    for _ in 0..2 {
        let stopped = client.post(&format!("{chat}/stop"), Value::Null).await?;
        assert_eq!(stopped["status"], "cancelled");
    }
    let stopped = watch.until_event("stopped").await?;
    assert_eq!(stopped.data["reason"], "user_cancelled");
    let partial = stopped.data["partial_response"].as_str().unwrap_or_default().to_owned();
    assert!(!partial.is_empty() && "one two three four five six seven eight nine ten".starts_with(&partial));

    // Ask, answer wrong, answer right.
    client.post(&chat, json!({ "content": "ask me" })).await?;
    let question = watch.until_event("question").await?;
    let answers = format!("{chat}/answers/{}", question.data["question_id"].as_str().unwrap_or_default());
    let (status, refused) = client.call(Method::POST, &answers, json!({ "answers": { "colour": "green" } })).await?;
    assert_eq!((status, &refused["error"]["code"]), (StatusCode::BAD_REQUEST, &json!("INVALID_ARGUMENT")));
    client.post(&answers, json!({ "answers": { "colour": "blue" } })).await?;
    watch.until(|events| count(events, "done") == 2).await?;
    let last = watch.events().pop().ok_or("nothing")?;
    assert_eq!(last.data["message"], "You said blue.");
    assert_eq!(count(&watch.events(), "stopped"), 1);

    // The history has it all, and the marker that the model reads.
    let history = client.get(&chat).await?;
    let texts: Vec<&str> = history["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert!(texts.contains(&"[System: Response was interrupted by user (user_cancelled)]"), "{texts:?}");
    assert!(texts.contains(&partial.as_str()));

    // The chat's file follows the events; at the latest a hub that has ended in good order has written all of it.
    assert!(hub.terminate().await?.success());
    let transcript =
        std::fs::read_to_string(latest.join(format!("chats/{}.md", made["chat_id"].as_str().unwrap_or_default())))?;
    assert!(transcript.starts_with("---\nchat: ") && transcript.contains("The file of novel is done."), "{transcript}");
    assert!(transcript.contains("You said blue."), "{transcript}");
    Ok(())
}

#[tokio::test]
async fn a_hub_that_ends_in_good_order_checkpoints_its_turns_and_goes_on() -> Result {
    let folder = tempfile::tempdir()?;
    let mut hub = Hub::start_scripted(folder.path(), &[("BUILDSCALE__SERVER__DRAIN_SECONDS", "0")]).await?;
    let client = hub.client();
    let workspace = client.workspace().await?;
    let chats = format!("/api/v1/workspaces/{workspace}/chats");
    let made = client.post(&chats, json!({ "goal": "slow please" })).await?;
    let chat = format!("{chats}/{}", made["chat_id"].as_str().unwrap_or_default());
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
async fn an_idle_chat_leaves_memory_and_its_stream_stays() -> Result {
    let folder = tempfile::tempdir()?;
    let idle = [("BUILDSCALE__AI__ACTOR_INACTIVITY_TIMEOUT_SECONDS", "1")];
    let hub = Hub::start_scripted(folder.path(), &idle).await?;
    let client = hub.client();
    let workspace = client.workspace().await?;
    let chats = format!("/api/v1/workspaces/{workspace}/chats");
    let made = client.post(&chats, json!({ "goal": "hello" })).await?;
    let chat = format!("{chats}/{}", made["chat_id"].as_str().unwrap_or_default());
    let stream = client.open(&format!("{chat}/events?after=0")).await?;
    let watch = client.watch(&chat);
    watch.until_event("done").await?;

    // First it comes to rest and is kept in memory; from then on nothing but the time-out takes it out of there.
    client.until_settled().await?;
    client
        .until("/metrics", |metrics| metrics.as_str().is_some_and(|text| text.contains("buildscale_actors_warm 0\n")))
        .await?;
    let (status, gone) = client.call(Method::POST, &format!("{chat}/stop"), Value::Null).await?;
    assert_eq!((status, &gone["error"]["code"]), (StatusCode::NOT_FOUND, &json!("NOT_FOUND")));

    client.post(&chat, json!({ "content": "hello again" })).await?;
    watch.until(|events| count(events, "done") == 2).await?;
    let seen = stream.until(|events| count(events, "done") == 2).await?;
    assert_eq!(seen, watch.events(), "one connection, from the first event to the last, across the time-out");
    Ok(())
}

#[tokio::test]
async fn what_is_said_right_after_a_post_counts() -> Result {
    let folder = tempfile::tempdir()?;
    let hub = Hub::start(folder.path()).await?;
    let client = hub.client();
    let workspace = client.workspace().await?;
    let chats = format!("/api/v1/workspaces/{workspace}/chats");
    let made = client.post(&chats, json!({ "goal": "hello" })).await?;
    let chat = format!("{chats}/{}", made["chat_id"].as_str().unwrap_or_default());
    let watch = client.watch(&chat);
    watch.until_event("done").await?;
    for stops in 1..=5 {
        client.post(&chat, json!({ "content": "slow please" })).await?;
        client.post(&format!("{chat}/stop"), Value::Null).await?;
        watch.until(|events| count(events, "stopped") == stops).await?;
    }
    // A deleted chat stays deleted, whatever was accepted before. The first of these turns may have begun; neither of them
    // ends by itself.
    client.post(&chat, json!({ "content": "slow please" })).await?;
    client.post(&chat, json!({ "content": "slow once more" })).await?;
    let (status, _) = client.call(Method::DELETE, &chat, Value::Null).await?;
    assert_eq!(status, StatusCode::NO_CONTENT);
    watch.until(|events| count(events, "stopped") == 6).await?;
    client.until_settled().await?;
    let events = watch.events();
    assert_eq!(events.last().map(|event| &event.data["reason"]), Some(&json!("deleted")));
    assert_eq!((count(&events, "turn_started"), count(&events, "done")), (7, 1));
    let (status, _) = client.call(Method::GET, &chat, Value::Null).await?;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(client.get(&chats).await?["chats"], json!([]));
    Ok(())
}
