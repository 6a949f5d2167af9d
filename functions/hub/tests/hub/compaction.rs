//! A compaction by either door: the earlier turns become a summary, histories leave its turn out, and an undo restores the words.

use crate::support::{Result, start};
use reqwest::Method;
use serde_json::{Value, json};

/// Everything is answered with the same words, the request for a summary, too.
const SCRIPT: &str = "rules:\n- steps:\n  - {text: 'Here I am.'}\n";

#[tokio::test]
async fn a_thread_is_compacted_by_either_door_and_its_words_are_restored() -> Result {
    let data = tempfile::tempdir()?;
    let script = data.path().join("script.yaml");
    std::fs::write(&script, SCRIPT)?;
    let cwd = std::fs::canonicalize(data.path())?.display().to_string();
    let settings = [
        ("BUILDSCALE__AI__SCRIPT", script.to_str().ok_or("no path")?),
        ("BUILDSCALE__HUB__ALLOWED_ROOTS", cwd.as_str()),
    ];
    let hub = start(&data.path().join("hub"), &settings).await?;
    let client = hub.client();
    let request = |method: Method, path: &str| client.request(method, path).header("x-client-id", "story");
    let post = async |path: &str, body: Value| -> Result<Value> {
        client.send(request(Method::POST, path).json(&body)).await?.is(200)?.good()
    };
    let get = async |path: &str| -> Result<Value> { client.send(request(Method::GET, path)).await?.is(200)?.good() };
    let made = post("/v1/threads", json!({ "agent": "buildscale", "cwd": cwd })).await?;
    let id = made["threadId"].as_str().ok_or("no threadId")?.to_owned();
    let thread = format!("/v1/threads/{id}");
    for number in 1..=6 {
        let turn = json!({ "input": format!("{number}: {}", "word ".repeat(800)), "stream": true });
        let told = client.send(request(Method::POST, &format!("{thread}/turns")).json(&turn)).await?.is(200)?.text();
        assert!(told.contains("turn_completed"), "{told}");
    }

    let compact = format!("{thread}/compact");
    let compacted = post(&compact, json!({ "maxSummaryChars": 400 })).await?;
    let turn = compacted["turnId"].as_str().ok_or("no turnId")?;
    assert_eq!(
        compacted,
        json!({ "threadId": id, "turnId": turn, "status": "completed", "stopReason": "end_turn", "summary": "Here I am.",
            "summaryChars": 10 })
    );
    assert_eq!(get(&thread).await?["thread"]["summary"], "Here I am.");
    let turns = async |query: &str| -> Result<usize> {
        let history = get(&format!("{thread}/history{query}")).await?;
        Ok(history["turns"].as_array().ok_or("no turns")?.len())
    };
    assert_eq!((turns("").await?, turns("?includeInternal=true").await?), (6, 7));
    assert_eq!(post(&compact, json!({})).await?["status"], "skipped", "nothing is left to do");

    // The other door sees it, takes it back, and has it again.
    let workspaces = get("/api/v1/workspaces").await?;
    let workspace = workspaces["workspaces"][0]["workspace_id"].as_str().ok_or("no workspace")?;
    let chat = format!("/api/v1/workspaces/{workspace}/chats/{id}");
    let by_chat = format!("{chat}/compact");
    let seen = client.get(&chat).await?["compaction"].clone();
    let smaller = seen["ratio"].as_f64().is_some_and(|ratio| ratio < 1.0);
    assert!(seen["can_be_undone"] == true && smaller && seen["last_line"].as_u64() > Some(0), "{seen}");
    client.ask(Method::DELETE, &by_chat, Value::Null).await?.is(202)?;
    client.until(&chat, |view| view.get("compaction").is_none_or(Value::is_null)).await?;
    client.ask(Method::POST, &by_chat, json!({ "max_summary_chars": 400 })).await?.is(202)?;
    client.until(&chat, |view| view["compaction"]["summary"] == "Here I am.").await?;
    Ok(())
}
