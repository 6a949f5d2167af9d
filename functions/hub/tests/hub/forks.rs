//! Chats that branch over HTTP: by the number of an event, and by other words for an earlier message.

use crate::support::{Result, start};
use reqwest::Method;
use serde_json::{Value, json};

const SCRIPT: &str = "rules:\n- steps:\n  - {text: 'You said {{user}}.'}\n";

#[tokio::test]
async fn a_chat_branches_at_the_number_of_an_event_and_by_other_words() -> Result {
    let data = tempfile::tempdir()?;
    let script = data.path().join("script.yaml");
    std::fs::write(&script, SCRIPT)?;
    let script = script.to_str().ok_or("no path")?;
    let hub = start(&data.path().join("hub"), &[("BUILDSCALE__AI__SCRIPT", script)]).await?;
    let client = hub.client();
    let chats = format!("{}/chats", client.place().await?);
    let at = |made: &Value| made["chat_id"].as_str().map(|id| format!("{chats}/{id}"));
    let chat = at(&client.post(&chats, json!({ "goal": "one" })).await?).ok_or("no chat")?;
    let first = client.watch(&chat).until_nth("done", 1).await?;
    client.post(&chat, json!({ "content": "two" })).await?;
    client.watch(&chat).until_nth("done", 2).await?;
    let said = async |chat: &str| -> Result<Vec<String>> {
        let history = client.get(chat).await?;
        let messages = history["messages"].as_array().ok_or("no messages")?.clone();
        Ok(messages.iter().filter_map(|one| one["content"].as_str().map(str::to_owned)).collect())
    };
    let whole = ["one", "You said one.", "two", "You said two."];
    assert_eq!(said(&chat).await?, whole);

    // The turns that had ended at that event.
    let fork = client.ask(Method::POST, &format!("{chat}/fork"), json!({ "at_seq": first.id })).await?.is(201)?.json();
    let fork = at(&fork).ok_or("no fork")?;
    assert_eq!(said(&fork).await?, whole[..2]);
    client.post(&fork, json!({ "content": "three" })).await?;
    client.until(&fork, |view| view["turns"] == 2).await?;
    assert_eq!(said(&fork).await?, ["one", "You said one.", "three", "You said three."]);

    // Other words for the first message; the chat itself stays as it is.
    let words = json!({ "turn_id": first.data["turn_id"], "content": "four" });
    let edited = client.ask(Method::POST, &format!("{chat}/edit"), words).await?.is(202)?.json();
    let edited = at(&edited).ok_or("no edit")?;
    client.until(&edited, |view| view["turns"] == 1).await?;
    assert_eq!(said(&edited).await?, ["four", "You said four."]);
    assert_eq!(said(&chat).await?, whole);
    Ok(())
}
