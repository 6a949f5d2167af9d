//! The same journey with a model behind any server that speaks OpenAI's chat completions.

use crate::support::{Hub, Result};
use axum::{Json, Router, response::IntoResponse, routing::post};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Calls `write` first; when it has the result, says so.
fn completion(request: &Value) -> Vec<Value> {
    let choice =
        |delta: Value, reason: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] });
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let answered = messages.last().is_some_and(|message| message["role"] == "tool");
    let mut frames = if answered {
        vec![
            choice(json!({ "role": "assistant", "content": "It is " }), Value::Null),
            choice(json!({ "content": "written." }), Value::Null),
            choice(json!({}), json!("stop")),
        ]
    } else {
        let function = json!({ "name": "write", "arguments": "{\"path\":\"/projects/stub/a.md\"," });
        let call = json!({ "index": 0, "id": "call_1", "type": "function", "function": function });
        let rest = json!({ "index": 0, "function": { "arguments": "\"content\":\"by a real protocol\"}" } });
        vec![
            choice(json!({ "role": "assistant", "tool_calls": [call] }), Value::Null),
            choice(json!({ "tool_calls": [rest] }), Value::Null),
            choice(json!({}), json!("tool_calls")),
        ]
    };
    frames
        .push(json!({ "choices": [], "usage": { "prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107 } }));
    frames
}

#[tokio::test]
async fn any_openai_compatible_server_is_a_model() -> Result {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let kept = requests.clone();
    let answer = move |Json(request): Json<Value>| async move {
        let frames: String = completion(&request).iter().map(|frame| format!("data: {frame}\n\n")).collect();
        if let Ok(mut kept) = kept.lock() {
            kept.push(request);
        }
        ([("content-type", "text/event-stream")], format!("{frames}data: [DONE]\n\n")).into_response()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}/v1", listener.local_addr()?);
    let server =
        tokio::spawn(
            async move { axum::serve(listener, Router::new().route("/v1/chat/completions", post(answer))).await },
        );

    let folder = tempfile::tempdir()?;
    let environment = [
        ("OPENAI_BASE_URL", base.as_str()),
        ("OPENAI_API_KEY", "sk-not-to-be-seen"),
        ("BUILDSCALE_MODEL", "openai/stub"),
    ];
    let hub = Hub::start_with(folder.path(), &environment).await?;
    let client = hub.client();
    let workspace = client.workspace().await?;
    let api = format!("/api/v1/workspaces/{workspace}");
    let chats = format!("{api}/chats");
    let file = client
        .post(&format!("{api}/files"), json!({ "path": "/data/brief.md", "content": "The brief says blue." }))
        .await?;
    let skill = "---\nname: invoices\ndescription: Writes invoices\n---\nThe whole skill.";
    client
        .post(&format!("{api}/files"), json!({ "path": "/system/skills/invoices/SKILL.md", "content": skill }))
        .await?;
    let made = client.post(&chats, json!({ "goal": "write something", "files": [file["file_id"]] })).await?;
    let chat = format!("{chats}/{}", made["chat_id"].as_str().unwrap_or_default());
    let watch = client.watch(&chat);
    let done = watch.until_event("done").await?;
    assert_eq!(done.data["message"], "It is written.");
    let written = folder.path().join("workspaces").join(&workspace).join("latest/projects/stub/a.md");
    assert_eq!(std::fs::read_to_string(written)?, "by a real protocol");
    let usage = watch.until_event("usage").await?;
    assert_eq!((&usage.data["input_tokens"], &usage.data["output_tokens"]), (&json!(100), &json!(7)));

    let used = client.get(&format!("{api}/usage")).await?;
    let total = &used["total"];
    assert_eq!(
        (&total["input_tokens"], &total["output_tokens"], &total["calls"]),
        (&json!(200), &json!(14), &json!(2))
    );

    let requests = requests.lock().map(|requests| requests.clone()).unwrap_or_default();
    assert_eq!(requests.len(), 2);
    let before = requests[0]["messages"].as_array().cloned().unwrap_or_default();
    let after = requests[1]["messages"].as_array().cloned().unwrap_or_default();
    assert!(after.starts_with(&before), "the bytes that the provider has cached do not change");
    // The system text names the skill and does not have its body; the attached file comes with the message.
    let system = before[0]["content"].to_string();
    assert!(system.contains("invoices: Writes invoices (/system/skills/invoices/SKILL.md)"), "{system}");
    assert!(!system.contains("The whole skill."));
    assert!(before[1].to_string().contains("The brief says blue."), "{}", before[1]);
    let tools = requests[0]["tools"].as_array().map(Vec::len);
    assert_eq!(tools, Some(16));
    server.abort();
    Ok(())
}
