//! Going back: what a turn, a chat or anybody changed in a folder is taken back, and the files of others are kept.

use super::Stage;
use crate::{Client, Result};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The contents of all files below `/projects/work`, by path.
async fn contents(client: &Client, place: &str) -> Result<BTreeMap<String, String>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec!["/projects/work".to_owned()]);
    while let Some(folder) = folders.pop() {
        let listed = client.get(&format!("{place}/files?path={folder}")).await?;
        for entry in listed["entries"].as_array().into_iter().flatten() {
            let path = entry["path"].as_str().unwrap_or_default().to_owned();
            if entry["kind"] == "folder" {
                folders.push(path);
                continue;
            }
            let content = client.look(&format!("{place}/files/by-path/content?path={path}")).await?.is(200)?;
            found.insert(path, content.text());
        }
    }
    Ok(found)
}

fn work(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, content)| (format!("/projects/work/{name}"), (*content).to_owned())).collect()
}

/// The paths of conflicts or of what is unavailable.
fn paths(rewind: &Value, key: &str) -> Vec<String> {
    let all = rewind[key].as_array().into_iter().flatten();
    all.map(|one| one["path"].as_str().unwrap_or_default().to_owned()).collect()
}

pub(super) async fn a_turn_a_chat_and_a_folder_go_back_and_forth(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    for (name, content) in [("plan.md", "one"), ("old.md", "old"), ("gone/x.md", "gone")] {
        client.file(&place, &format!("/projects/work/{name}"), content).await?;
    }
    let begun = work(&[("plan.md", "one"), ("old.md", "old"), ("gone/x.md", "gone")]);
    let chat = client.chat(&place, "rework it").await?;
    let watch = client.watch(&chat);
    watch.until_event("done").await?;
    let reworked = work(&[("plan.md", "two"), ("new/a.md", "new"), ("away/old.md", "old")]);
    assert_eq!(contents(&client, &place).await?, reworked);
    client.post(&chat, json!({ "content": "more" })).await?;
    watch.until_nth("done", 2).await?;
    let turns: Vec<Value> = watch
        .events()
        .iter()
        .filter(|event| event.name == "turn_started")
        .map(|event| event.data["turn_id"].clone())
        .collect();
    let chat_id = chat.rsplit('/').next().ok_or("no chat_id")?;
    let [first, second] = turns.as_slice() else { return Err(format!("two turns: {turns:?}").into()) };
    let turn = |turn: &Value| json!({ "scope": { "kind": "turn", "chat_id": chat_id, "turn_id": turn } });
    let rewind = format!("{place}/rewind");

    // A turn: the preview shows it and changes nothing.
    let mut preview = turn(first);
    preview["preview"] = json!(true);
    let shown = client.post(&rewind, preview).await?;
    assert_eq!((&shown["state"], &shown["counts"]["conflicts"]), (&json!("preview"), &json!(0)));
    let diffs = shown["steps"].as_array().into_iter().flatten().filter_map(|step| step["diff"].as_str());
    assert_eq!(diffs.filter(|diff| diff.contains("-two") && diff.contains("+one")).count(), 1, "{shown}");
    let mut with_second = reworked.clone();
    with_second.extend(work(&[("second.md", "second")]));
    assert_eq!(contents(&client, &place).await?, with_second);
    client.post(&rewind, turn(second)).await?;
    assert_eq!(contents(&client, &place).await?, reworked);

    // Back, forth, and back again.
    let back = client.post(&rewind, turn(first)).await?;
    assert_eq!((&back["state"], contents(&client, &place).await?), (&json!("done"), begun.clone()));
    let of = |rewind: &Value| json!({ "scope": { "kind": "rewind", "rewind_id": rewind["rewind_id"] } });
    let forth = client.post(&rewind, of(&back)).await?;
    assert_eq!((paths(&forth, "conflicts"), contents(&client, &place).await?), (vec![], reworked.clone()));

    // A chat goes back together with its files: a fork of it ends before the turn.
    let with_fork = with(&of(&forth), "preview", json!(true));
    client.ask(Method::POST, &rewind, with(&with_fork, "fork", json!(true))).await?.refuses(400, "INVALID_ARGUMENT")?;
    let again = client.post(&rewind, with(&turn(second), "fork", json!(true))).await?;
    let fork = again["forked_chat_id"].as_str().ok_or("no fork")?;
    let forked = client.get(&format!("{place}/chats/{fork}")).await?;
    assert_eq!((&forked["forked_from"]["chat_id"], &forked["turns"]), (&json!(chat_id), &json!(1)));
    let said = forked["messages"].to_string();
    assert!(said.contains("rework it") && !said.contains("more"), "{said}");
    let fork = client.post(&format!("{chat}/fork"), json!({ "at_turn": first, "title": "Another way" })).await?;
    assert_eq!((&fork["title"], &fork["status"], &fork["turns"]), (&json!("Another way"), &json!("idle"), &json!(1)));
    client
        .ask(Method::POST, &format!("{chat}/fork"), json!({ "at_seq": 1, "at_turn": first }))
        .await?
        .refuses(400, "INVALID_ARGUMENT")?;

    // A person's change is kept when the chat goes back. The chat's own versions are behind those of the two rewinds, so the folder goes by time.
    let to = json!({ "chat_id": chat_id, "turn_id": first });
    let folder = json!({ "scope": { "kind": "path", "path": "/projects/work" }, "to": to });
    let seen = client.post(&rewind, with(&folder, "preview", json!(true))).await?;
    client
        .ask(Method::PUT, &format!("{place}/files/by-path?path=/projects/work/plan.md"), json!({ "content": "mine" }))
        .await?
        .good()?;
    let kept = client.post(&rewind, with(&folder, "as_of", seen["as_of"].clone())).await?;
    assert_eq!(paths(&kept, "conflicts"), ["/projects/work/plan.md"]);
    let mut mine = begun.clone();
    mine.extend(work(&[("plan.md", "mine")]));
    assert_eq!(contents(&client, &place).await?, mine);
    client.post(&rewind, folder).await?;
    assert_eq!(contents(&client, &place).await?, begun);

    for wrong in [
        json!({}),
        json!({ "scope": { "kind": "workspace" } }),
        json!({ "scope": { "kind": "galaxy" } }),
        json!({ "scope": { "kind": "path", "path": "/../x" }, "to": { "time": "2026-01-01T00:00:00Z" } }),
        json!({ "scope": { "kind": "workspace" }, "to": { "time": "2026-01-01T00:00:00Z", "seq": 3 } }),
    ] {
        client.ask(Method::POST, &rewind, wrong).await?.refuses(400, "INVALID_ARGUMENT")?;
    }
    client
        .ask(Method::POST, &rewind, turn(&json!("019bf537-f228-7cd3-aa1c-3da8af302e12")))
        .await?
        .refuses(404, "NOT_FOUND")?;
    Ok(())
}

fn with(request: &Value, key: &str, value: Value) -> Value {
    let mut request = request.clone();
    request[key] = value;
    request
}
