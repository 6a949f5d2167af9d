//! Where streams are served by another process, a request that would be streamed is refused before anything is taken.

use crate::support::{Door, Setup};
use serde_json::json;

#[tokio::test]
async fn a_request_that_would_be_streamed_is_refused_and_sends_nothing() {
    let door = Door::with(Setup { has_streams: false, ..Setup::default() });
    let workspace = door.workspace().await;
    let message =
        json!({ "id": "m", "role": "user", "content": "Hello", "parts": [{ "type": "text", "text": "Hello" }] });
    let requests = [
        ("/api/agent/stream".to_owned(), json!({ "message": "Hello" })),
        ("/openai/v1/responses".to_owned(), json!({ "model": "assistant", "input": "Hello", "stream": true })),
        ("/openai/v1/responses".to_owned(), json!({ "model": "assistant", "input": "Hello" })),
        ("/openai/v1/chat/completions".to_owned(), json!({ "model": "assistant", "messages": [message] })),
        (format!("{workspace}/ai-sdk/chat"), json!({ "id": "c", "messages": [message], "trigger": "submit-message" })),
        (
            format!("{workspace}/ag-ui"),
            json!({ "threadId": "t", "runId": "r", "messages": [message], "state": {}, "tools": [], "context": [], "forwardedProps": {} }),
        ),
    ];
    let run = json!({ "assistant_id": "assistant", "input": { "messages": [message] } });
    let of_langgraph = [("/langgraph/runs/stream".to_owned(), run.clone()), ("/langgraph/runs/wait".to_owned(), run)];
    for (path, body) in requests.into_iter().chain(of_langgraph) {
        let refused = door.json("POST", &path, body).await;
        let text = refused.json.to_string();
        assert_eq!(refused.status, 503, "{path}: {text}");
        assert!(text.contains("UPSTREAM_UNAVAILABLE") || text.contains("upstream_unavailable"), "{path}: {text}");
    }
    let a2a = async |method: &str, configuration: serde_json::Value| {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "Hello" }] });
        let params = json!({ "message": message, "configuration": configuration });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        door.ask("POST", "/a2a", &[("a2a-version", "1.0"), ("content-type", "application/json")], body).await
    };
    for method in ["SendMessage", "SendStreamingMessage"] {
        let refused = a2a(method, json!({})).await.is(200);
        assert_eq!(refused.json["error"]["data"][0]["metadata"]["code"], "UPSTREAM_UNAVAILABLE", "{}", refused.json);
    }
    let chats = door.get(&format!("{workspace}/chats")).await.is(200);
    assert_eq!(chats.json["chats"], json!([]));
    let taken = door.json("POST", "/api/agent/stream", json!({ "message": "Hello", "stream": false })).await.is(202);
    assert_eq!(taken.json["session"]["title"], "Hello", "{}", taken.json);
    let background = json!({ "model": "assistant", "input": "Hello", "background": true });
    let taken = door.json("POST", "/openai/v1/responses", background).await.is(200);
    assert_eq!(taken.text("status"), "queued");
    let taken = a2a("SendMessage", json!({ "returnImmediately": true })).await.is(200);
    assert_eq!(taken.json["result"]["task"]["status"]["state"], "TASK_STATE_SUBMITTED", "{}", taken.json);
    let run = json!({ "assistant_id": "assistant", "input": { "messages": "Hello" } });
    let taken = door.json("POST", "/langgraph/runs", run).await.is(200);
    let run = format!("/langgraph/threads/{}/runs/{}", taken.text("thread_id"), taken.text("run_id"));
    assert_eq!(door.get(&run).await.is(200).text("status"), "pending");
    for way in ["join", "stream"] {
        door.get(&format!("{run}/{way}")).await.refuses(503, "UPSTREAM_UNAVAILABLE");
    }
}

#[tokio::test]
async fn a_run_that_stops_with_its_client_is_refused_where_nobody_learns_that_it_goes() {
    let door = Door::with(Setup { sees_clients_go: false, ..Setup::default() });
    door.workspace().await;
    let message = json!({ "role": "user", "content": "Hello" });
    let run = json!({ "assistant_id": "assistant", "input": { "messages": [message] }, "on_disconnect": "cancel" });
    for path in ["/langgraph/runs/stream", "/langgraph/runs/wait"] {
        let refused = door.json("POST", path, run.clone()).await.refuses(422, "UNPROCESSABLE");
        let error = &refused.json["error"];
        assert_eq!(error["details"]["field"], "on_disconnect", "{path}");
        let options = ["reconnectOnMount: true", "onDisconnect: 'continue'"];
        assert!(options.iter().all(|option| error["hint"].as_str().unwrap().contains(option)), "{path}: {error}");
    }
}
