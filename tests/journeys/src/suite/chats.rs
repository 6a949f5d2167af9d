//! Conversations: from a goal to files; stopped, asked, allowed, deleted.

use super::Stage;
use crate::{Ability, Client, Event, Result, count};
use reqwest::Method;
use serde_json::{Value, json};

/// The first steps of a new user, in order: a goal, the stream, the file and its versions, a stop, a question.
pub(super) async fn a_goal_becomes_files_that_can_be_watched_stopped_and_found_again(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let chat = client.chat(&place, "novel").await?;
    let watch = client.watch(&chat);
    let done = watch.until_event("done").await?;
    assert_eq!(done.data["stop_reason"], "end_turn");
    let said = done.data["message"].as_str().ok_or("no message")?;
    let first = watch.events();
    for name in ["turn_started", "message", "thought", "chunk", "call", "observation", "file_updated", "usage"] {
        assert!(count(&first, name) > 0, "no {name} in {first:?}");
    }
    assert!(first.windows(2).all(|pair| pair[0].id < pair[1].id), "in order, each once");

    // Its file is there, and so is the version before.
    let mut updated = first.iter().filter(|event| event.name == "file_updated");
    let path = updated.find_map(|event| event.data["path"].as_str().filter(|path| path.starts_with("/projects/")));
    let path = path.ok_or("nothing was written to /projects")?;
    let file = client.get(&format!("{place}/files/by-path?path={path}")).await?;
    let file = format!("{place}/files/{}", file["file_id"].as_str().ok_or("no file_id")?);
    let versions = client.get(&format!("{file}/versions")).await?;
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(2));
    let (old, new) = (format!("{file}/versions/1/content"), format!("{file}/content"));
    assert_ne!(client.look(&old).await?.is(200)?.bytes, client.look(&new).await?.is(200)?.bytes);

    // Stop while it writes; a second stop is harmless; the chat goes on.
    client.post(&chat, json!({ "content": "slow please" })).await?;
    let of_second = |events: &[Event]| {
        let mut rest = events.iter().skip_while(|event| event.id <= done.id);
        rest.find(|event| event.name == "chunk").cloned()
    };
    watch.until(|events| of_second(events).is_some()).await?;
    for _ in 0..2 {
        assert_eq!(client.post(&format!("{chat}/stop"), Value::Null).await?["status"], "cancelled");
    }
    let stopped = watch.until_event("stopped").await?;
    assert_eq!(stopped.data["reason"], "user_cancelled");
    let partial = stopped.data["partial_response"].as_str().unwrap_or_default().to_owned();
    let began = of_second(&watch.events()).ok_or("no chunk")?;
    assert!(partial.starts_with(began.data["text"].as_str().ok_or("no text")?), "{partial} {began:?}");

    // Ask, answer wrong, answer right; nothing runs in between.
    client.post(&chat, json!({ "content": "ask me" })).await?;
    let question = watch.until_event("question").await?;
    let answers = format!("{chat}/answers/{}", question.data["question_id"].as_str().ok_or("no question_id")?);
    let wrong = client.ask(Method::POST, &answers, json!({ "answers": { "colour": 5 } })).await?;
    wrong.refuses(400, "INVALID_ARGUMENT")?;
    client.answer(&answers, json!({ "colour": "blue" })).await?;
    let last = watch.until_nth("done", 2).await?;
    assert!(last.data["message"].as_str().is_some_and(|message| message.contains("blue")), "{last:?}");
    assert_eq!(count(&watch.events(), "stopped"), 1);
    let late = client.ask(Method::POST, &answers, json!({ "answers": { "colour": "red" } })).await?;
    late.refuses(409, "CONFLICT")?;

    // The history has it all, and the marker that the model reads.
    let history = client.get(&chat).await?;
    let texts = history["messages"].as_array().into_iter().flatten();
    let texts: Vec<&str> = texts.filter_map(|message| message["content"].as_str()).collect();
    for text in ["[System: Response was interrupted by user (user_cancelled)]", &partial, said, "slow please"] {
        assert!(texts.contains(&text), "no {text} in {texts:?}");
    }

    // And so have the chat's own file, which follows the events, and a watcher from the beginning.
    let id = chat.rsplit('/').next().unwrap_or_default();
    let transcript = client.get(&format!("{place}/files/by-path?path=/chats/{id}.md")).await?;
    let transcript = format!("{place}/files/{}/content", transcript["file_id"].as_str().ok_or("no file_id")?);
    let has_all = |text: &Value| {
        text.as_str()
            .is_some_and(|text| text.starts_with("---\nchat: ") && text.contains("blue") && text.contains(said))
    };
    client.until(&transcript, has_all).await?;
    assert_eq!(client.replay(&chat, last.id).await?, watch.events(), "live or replayed, it is the same");
    Ok(())
}

pub(super) async fn commands_right_after_a_post_count(stage: Stage) -> Result {
    // Of its own: without the work of others there, it comes to rest.
    let deployment = stage.another(&[]).await?;
    let client = deployment.client();
    let place = client.place().await?;
    let chat = client.chat(&place, "hello").await?;
    let watch = client.watch(&chat);
    watch.until_event("done").await?;
    for stops in 1..=5 {
        client.post(&chat, json!({ "content": "slow please" })).await?;
        client.post(&format!("{chat}/stop"), Value::Null).await?;
        watch.until_nth("stopped", stops).await?;
    }
    // A deleted chat stays deleted, after any messages accepted before. The first of these turns has begun; neither ends by itself.
    client.post(&chat, json!({ "content": "slow please" })).await?;
    watch.until_nth("turn_started", 7).await?;
    client.post(&chat, json!({ "content": "slow once more" })).await?;
    client.ask(Method::DELETE, &chat, Value::Null).await?.is(204)?;
    watch.until_nth("stopped", 6).await?;
    deployment.until_settled().await?;
    let events = watch.events();
    assert_eq!(events.last().map(|event| &event.data["reason"]), Some(&json!("deleted")));
    assert_eq!((count(&events, "turn_started"), count(&events, "done")), (7, 1));
    client.look(&chat).await?.refuses(404, "NOT_FOUND")?;
    assert_eq!(client.get(&format!("{place}/chats")).await?["chats"], json!([]));
    Ok(())
}

pub(super) async fn several_chats_go_on_at_once(stage: Stage) -> Result {
    const CHATS: usize = 5;
    let client = stage.client();
    let place = client.place().await?;
    let mut chats = Vec::new();
    for n in 0..CHATS {
        let chat = client.chat(&place, &format!("first{n}")).await?;
        let watch = client.watch(&chat);
        // Queued behind the first, which may be running.
        client.post(&chat, json!({ "content": format!("second{n}") })).await?;
        chats.push((chat, watch));
    }
    for (n, (_, watch)) in chats.iter().enumerate() {
        watch.until_nth("done", 2).await?;
        let events = watch.events();
        let said: Vec<&Value> = events.iter().filter(|e| e.name == "done").map(|e| &e.data["message"]).collect();
        assert_eq!(said, [&format!("The file of first{n} is done."), &format!("The file of second{n} is done.")]);
        let others = (0..CHATS).filter(|other| *other != n).map(|other| format!("first{other}"));
        let all = format!("{events:?}");
        // `ls` shows every folder; other names of theirs would have come from their turns.
        let theirs = others.filter(|name| all.contains(&format!("file of {name}")));
        assert_eq!(theirs.count(), 0, "{all}");
    }
    let folders = client.get(&format!("{place}/files?path=/projects")).await?;
    assert_eq!(folders["entries"].as_array().map(Vec::len), Some(2 * CHATS));
    let listed = client.get(&format!("{place}/chats?limit=100")).await?;
    assert_eq!(listed["chats"].as_array().map(Vec::len), Some(CHATS));
    Ok(())
}

/// Decides on the `nth` permission that a chat asks for.
async fn decide(client: &Client, chat: &str, nth: usize, outcome: &str) -> Result<Value> {
    let asked = client.watch(chat).until_nth("permission_required", nth).await?;
    let permission = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
    client.post(&format!("{chat}/permissions/{permission}"), json!({ "outcome": outcome })).await?;
    Ok(asked.data)
}

async fn said(client: &Client, chat: &str) -> Result<String> {
    let done = client.watch(chat).until_event("done").await?;
    Ok(done.data["message"].as_str().ok_or("no message")?.to_owned())
}

pub(super) async fn a_skill_that_one_agent_learnt_is_used_by_a_later_one(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    client.file(&place, "/projects/names.md", "cid\nann\nbob\nann\n").await?;
    let skill = format!("{place}/files/by-path?path=/system/skills/tidy-names/SKILL.md");
    let chat = client.chat(&place, "Learn to tidy names").await?;
    decide(&client, &chat, 1, "declined").await?;
    assert_eq!(said(&client, &chat).await?, "Then I do not learn it.");
    client.look(&skill).await?.refuses(404, "NOT_FOUND")?;
    let chat = client.chat(&place, "Tidy the names").await?;
    assert_eq!(said(&client, &chat).await?, "I know no way.");

    let chat = client.chat(&place, "Learn to tidy names").await?;
    for nth in [1, 2] {
        assert_eq!(decide(&client, &chat, nth, "approved").await?["tool"], "write");
    }
    assert_eq!(said(&client, &chat).await?, "I have learnt it.");
    let listed = client.get(&format!("{place}/skills")).await?;
    assert!(listed.to_string().contains("Put a list of names in order"), "{listed}");
    let chat = client.chat(&place, "Tidy the names").await?;
    if !stage.world.can(Ability::Commands) {
        let said = said(&client, &chat).await?;
        assert!(said.starts_with("It failed: "), "{said}");
        return Ok(());
    }
    assert_eq!(decide(&client, &chat, 1, "approved").await?["tool"], "exec");
    let said = said(&client, &chat).await?;
    assert!(said.starts_with("It said ") && said.contains("ann\nbob\ncid\n"), "{said}");
    Ok(())
}

pub(super) async fn an_agent_that_asks_for_permission_waits_for_a_person(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let poet = format!("{place}/files/by-path?path=/system/agents/poet/persona.md");
    for (turn, (outcome, said)) in
        [("declined", "Then I stay as I am."), ("approved", "I have become a poet.")].into_iter().enumerate()
    {
        let chat = client.chat(&place, "become a poet").await?;
        let watch = client.watch(&chat);
        let asked = watch.until_event("permission_required").await?;
        let decide = format!("{chat}/permissions/{}", asked.data["permission_id"].as_str().ok_or("no permission_id")?);
        client.look(&poet).await?.refuses(404, "NOT_FOUND")?;
        client.ask(Method::POST, &decide, json!({ "outcome": "perhaps" })).await?.refuses(400, "INVALID_ARGUMENT")?;
        client.post(&decide, json!({ "outcome": outcome })).await?;
        assert_eq!(watch.until_event("done").await?.data["message"], said, "{turn}");
        client.ask(Method::POST, &decide, json!({ "outcome": outcome })).await?.refuses(409, "CONFLICT")?;
    }
    client.look(&poet).await?.is(200)?;
    Ok(())
}
