//! A hub that is killed in a loop while long turns run: no actor is blamed for it, and accepted work ends exactly once.

use crate::support::{Client, Hub, PATIENCE, Result, count, start};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use tokio::time::timeout;

/// Turns of three seconds. One kind says something all the time, the other one nothing until the end; both have written a file.
const SCRIPT: &str = r"
rules:
- when: {user: '^talk'}
  steps:
  - {calls: [{tool: write, args: {path: '/projects/{{user}}.md', content: 'once'}}]}
  - {text: 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen', chunks: 15, delay_ms: 200}
- when: {user: '^think'}
  steps:
  - {calls: [{tool: write, args: {path: '/projects/{{user}}.md', content: 'once'}}]}
  - {text: 'That was all.', chunks: 1, delay_ms: 3000}
";
const KILLS: u64 = 30;

async fn scripted(data: &Path) -> Result<Hub> {
    std::fs::create_dir_all(data)?;
    let script = data.join("long.yaml");
    std::fs::write(&script, SCRIPT)?;
    let script = script.display().to_string();
    start(data, &[("BUILDSCALE__AI__SCRIPT", script.as_str())]).await
}

/// How many messages a chat had, and how many of them have ended.
struct Talk {
    chat: String,
    says: &'static str,
    messages: usize,
}

#[tokio::test]
async fn a_hub_that_is_killed_in_a_loop_blames_no_actor() -> Result {
    let data = tempfile::tempdir()?;
    let mut hub = scripted(data.path()).await?;
    let client = hub.client();
    let place = client.place().await?;
    let mut talks = Vec::new();
    for (number, says) in ["talk", "think", "talk", "think"].into_iter().enumerate() {
        let goal = json!({ "goal": format!("{says}-{number}-1") });
        let made = client.post_surely(&format!("{place}/chats"), &format!("make-{number}"), &goal).await?;
        let chat = format!("{place}/chats/{}", made["chat_id"].as_str().ok_or("no chat_id")?);
        talks.push(Talk { chat, says, messages: 1 });
    }
    let watches: Vec<_> = talks.iter().map(|talk| client.watch(&talk.chat)).collect();

    let mut random = 7_u64;
    for kill in 0..KILLS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let moment = Duration::from_millis(100 + (random >> 33) % 600);
        // Dies at that moment, or when nothing is left to be interrupted.
        let all_ended = async {
            for (watch, talk) in watches.iter().zip(&talks) {
                watch.until(|events| count(events, "done") >= talk.messages).await?;
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        };
        drop(timeout(moment, all_ended).await);
        if let Some(number) = [4, 8, 12, 16].iter().position(|at| *at == kill) {
            let talk = &mut talks[number];
            talk.messages += 1;
            let message = json!({ "content": format!("{}-{number}-2", talk.says) });
            client.post_surely(&talk.chat, &format!("post-{number}"), &message).await?;
        }
        hub.kill().await?;
        hub.restart().await?;
    }

    for (number, (watch, talk)) in watches.iter().zip(&talks).enumerate() {
        timeout(PATIENCE, watch.until(|events| count(events, "done") >= talk.messages)).await??;
        let events = watch.events();
        let terminal = ["done", "stopped", "error"].map(|name| count(&events, name));
        assert_eq!(terminal, [talk.messages, 0, 0], "{}", talk.chat);
        let started = events.iter().filter(|event| event.name == "turn_started");
        let attempts = started.filter_map(|event| event.data["attempt"].as_u64()).max();
        assert!(attempts > Some(3), "it was interrupted again and again: {attempts:?}");
        for message in 1..=talk.messages {
            let said = format!("{}-{number}-{message}", talk.says);
            let file = client.get(&format!("{place}/files/by-path?path=/projects/{said}.md")).await?;
            assert_eq!(file["v"], 1, "{said} was written once");
            let told = events.iter().filter(|event| event.name == "message" && event.data["content"] == said.as_str());
            assert_eq!(told.count(), 1, "{said}");
        }
        is_idle(&client, &talk.chat).await?;
    }
    Ok(())
}

async fn is_idle(client: &Client, chat: &str) -> Result<Value> {
    client.until(chat, |chat| chat["status"] == "idle" && chat["paused_reason"].is_null()).await
}
