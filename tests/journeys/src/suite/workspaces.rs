//! The work of a workspace beside keeping files. Documents become Markdown. Policies bind people and agents. Tags and links lead from file to file,
//! and travel with the workspace.

use super::Stage;
use crate::Result;
use reqwest::Method;
use serde_json::{Value, json};

pub(super) async fn a_document_becomes_markdown_that_follows_it(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let at = |path: &str| format!("{place}/files/by-path?path={path}");
    let content = async |path: &str| -> Result<String> {
        let read = client.look(&format!("{place}/files/by-path/content?path={path}")).await?;
        Ok(read.is(200)?.text())
    };
    client.file(&place, "/data/sales.csv", "name,amount\nchair,12\n").await?;
    let done = |v: u64| move |info: &Value| info["conversion"]["status"] == "done" && info["v"] == v;
    client.until(&at("/data/sales.csv"), done(1)).await?;
    let first = content("/data/sales.csv.md").await?;
    assert!(first.contains("| chair | 12 |") && first.contains("derived_from"), "{first}");
    let listed = client.get(&format!("{place}/files?path=/data")).await?;
    assert_eq!(listed["entries"].as_array().map(Vec::len), Some(1), "what is derived is not listed: {listed}");

    let put = client.request(Method::PUT, &at("/data/sales.csv"));
    client.send(put.json(&json!({ "content": "name,amount\ntable,40\n" }))).await?.is(200)?;
    client.until(&at("/data/sales.csv"), done(2)).await?;
    let second = content("/data/sales.csv.md").await?;
    assert!(second.contains("| table | 40 |") && !second.contains("chair"), "{second}");
    // The reader of documents is a tool of agents, too.
    let read = json!({ "tool": "read", "args": { "path": "/data/sales.csv" } });
    let read = client.post(&format!("{place}/tools"), read).await?;
    assert!(read.to_string().contains("| table | 40 |"), "{read}");

    // A file that is attached to a chat is a document wherever it lies.
    let words = "Revenue grew".encode_utf16().flat_map(u16::to_le_bytes);
    let text: Vec<u8> = [0xff, 0xfe].into_iter().chain(words).collect();
    let put = client.request(Method::PUT, &format!("{place}/files/by-path/content?path=/projects/letter.txt"));
    let letter = client.send(put.body(text)).await?.good()?;
    assert_eq!(letter["conversion"], Value::Null, "nobody has attached it: {letter}");
    client.post(&format!("{place}/chats"), json!({ "goal": "read it", "files": [letter["file_id"]] })).await?;
    client.until(&at("/projects/letter.txt"), done(1)).await?;
    let markdown = content("/projects/letter.txt.md").await?;
    assert!(markdown.contains("Revenue grew"), "{markdown}");
    Ok(())
}

pub(super) async fn a_policy_binds_people_and_agents_until_it_is_gone(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let policy = r#"@id("frozen") @why("it is being printed") forbid (principal, action == Action::"write", resource in Path::"/projects/watched");"#;
    let kept = client.file(&place, "/system/policies/print.cedar", policy).await?;
    let write = json!({ "path": "/projects/watched/mine.md", "content": "x" });
    let refused =
        client.ask(Method::POST, &format!("{place}/files"), write.clone()).await?.refuses(403, "FORBIDDEN")?;
    assert_eq!(refused["details"]["policy"], "/system/policies/print.cedar#frozen");
    let why =
        client.get(&format!("{place}/access?path=/projects/watched/a.md&action=write&principal=agent:builder")).await?;
    assert_eq!(
        (&why["decisions"][0]["decision"], &why["decisions"][0]["why"]),
        (&json!("deny"), &json!("it is being printed"))
    );
    // The agent is told, and goes on without the file.
    let chat = client.chat(&place, "watched").await?;
    client.until(&chat, |view| view["status"] == "idle" && view["turns"] == 1).await?;
    client.look(&format!("{place}/files/by-path?path=/projects/watched/a.md")).await?.refuses(404, "NOT_FOUND")?;
    let broken = client.request(Method::PUT, &kept).json(&json!({ "content": "forbid (principal, acton, resource);" }));
    client.send(broken).await?.refuses(422, "UNPROCESSABLE")?;
    client.ask(Method::DELETE, &kept, Value::Null).await?.is(200)?;
    client.ask(Method::POST, &format!("{place}/files"), write).await?.is(201)?;
    Ok(())
}

pub(super) async fn tags_and_links_lead_on_and_travel_with_the_workspace(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let spec = client.file(&place, "/projects/spec.md", "the spec").await?;
    let plan = client.file(&place, "/projects/plan.md", "see [[spec]]").await?;
    client.post(&format!("{spec}/tags"), json!({ "tags": ["open"] })).await?;
    let to = spec.rsplit('/').next().unwrap_or_default();
    client.post(&format!("{plan}/links"), json!({ "to": to, "kind": "answers" })).await?;
    let archive = client.look(&format!("{place}/export")).await?.is(200)?.bytes.clone();
    let import = client.request(Method::POST, "/api/v1/imports?name=copy").header("content-type", "application/x-tar");
    let made = client.send(import.body(archive)).await?.is(201)?.json();
    let copy = format!("/api/v1/workspaces/{}", made["workspace_id"].as_str().ok_or("no workspace_id")?);
    for place in [&place, &copy] {
        let tagged = client.get(&format!("{place}/files/tags/open")).await?;
        assert_eq!(tagged["files"][0]["path"], "/projects/spec.md", "{tagged}");
        let spec = client.get(&format!("{place}/files/by-path?path=/projects/spec.md")).await?;
        let file = format!("{place}/files/{}", spec["file_id"].as_str().ok_or("no file_id")?);
        let links = client.get(&format!("{file}/links")).await?;
        let mut kinds: Vec<&str> =
            links["backlinks"].as_array().into_iter().flatten().filter_map(|link| link["kind"].as_str()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["answers", "wiki"], "{links}");
        let network = client.get(&format!("{file}/network?depth=2")).await?;
        assert_eq!(network["nodes"].as_array().map(Vec::len), Some(2), "{network}");
    }
    Ok(())
}
