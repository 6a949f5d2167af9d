//! The protocols of clients: one request says something, and its answer is the stream of the turn, or waits for its end. Stock clients are tried against
//! a hub (`functions/hub/tests/hub/clients.rs`); here each protocol is spoken in every world.

use super::Stage;
use crate::{Answer, Client, Result};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// The last words of the script's usual turn.
const END: &str = "is done.";

struct Speaker {
    client: Client,
    workspace: String,
}

impl Speaker {
    async fn say(&self, path: &str, body: Value) -> Result<Answer> {
        let request = self.client.request(Method::POST, path).header("x-workspace-id", &self.workspace);
        self.client.send(request.header("a2a-version", "1.0").json(&body)).await
    }

    /// The text of a stream that has ended with this.
    async fn streamed(&self, path: &str, body: Value, last: &str) -> Result<String> {
        let answer = self.say(path, body).await?.is(200)?;
        let kind = answer.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        assert!(kind.starts_with("text/event-stream"), "{path}: {kind}");
        let text = answer.text();
        let end = text.trim_end().rsplit("\n\n").next().unwrap_or_default().to_owned();
        assert!(end.contains(last), "{path} ends with {end}, and not with {last}");
        Ok(text)
    }
}

fn human(words: &str) -> Value {
    json!({ "id": "m", "role": "user", "content": words, "parts": [{ "type": "text", "text": words }] })
}

pub(super) async fn each_protocol_streams_a_turn_or_waits_for_it(stage: Stage) -> Result {
    let client = stage.client();
    let workspace = client.workspace().await?;
    let place = format!("/api/v1/workspaces/{workspace}");
    let speaker = Speaker { client: client.clone(), workspace };

    let sent = json!({ "id": "page", "trigger": "submit-message", "messages": [human("ui")] });
    let ui = speaker.streamed(&format!("{place}/ai-sdk/chat"), sent, "[DONE]").await?;
    assert!(ui.contains(r#""type":"finish""#) && ui.contains("text-delta"), "{ui}");
    let idle = client.look(&format!("{place}/ai-sdk/chat/page/stream")).await?;
    assert_eq!(idle.status, StatusCode::NO_CONTENT, "no turn is under way");

    let run = json!({ "threadId": "page", "runId": "r", "messages": [human("again")], "state": {}, "tools": [], "context": [], "forwardedProps": {} });
    speaker.streamed(&format!("{place}/ag-ui"), run, "RUN_FINISHED").await?;

    let asked = json!({ "model": "assistant", "messages": [{ "role": "user", "content": "chunks" }] });
    let whole = speaker.say("/openai/v1/chat/completions", asked.clone()).await?.is(200)?.json();
    let said = whole["choices"][0]["message"]["content"].as_str().unwrap_or_default();
    assert!(said.ends_with(END), "{whole}");
    let mut chunks = asked;
    chunks["stream"] = true.into();
    speaker.streamed("/openai/v1/chat/completions", chunks, "[DONE]").await?;
    let response = json!({ "model": "assistant", "input": "response", "stream": true });
    speaker.streamed("/openai/v1/responses", response, "response.completed").await?;

    let run =
        json!({ "assistant_id": "assistant", "input": { "messages": [{ "type": "human", "content": "graph" }] } });
    let values = speaker.say("/langgraph/runs/wait", run.clone()).await?.is(200)?.json();
    let last = values["messages"].as_array().and_then(|all| all.last()?["content"].as_str()).unwrap_or_default();
    assert!(last.ends_with(END), "{values}");
    let mut modes = run;
    modes["stream_mode"] = json!(["values"]);
    let told = speaker.streamed("/langgraph/runs/stream", modes, r#""status":"success""#).await?;
    assert!(told.contains(END), "{told}");

    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "task" }] });
    let call = |method: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "message": message } });
    let ended = speaker.say("/a2a", call("SendMessage")).await?.is(200)?.json();
    assert_eq!(ended["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{ended}");
    speaker.streamed("/a2a", call("SendStreamingMessage"), "TASK_STATE_COMPLETED").await?;

    // All of them are chats of one workspace.
    let chats = client.get(&format!("{place}/chats")).await?;
    assert_eq!(chats["chats"].as_array().map(Vec::len), Some(8), "{chats}");
    Ok(())
}
