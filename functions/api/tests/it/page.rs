//! Door 2 as the web page of the reference server uses it: its requests with its headers, from another origin. None of the page's code is here.

use crate::support::{Door, Reply, Setup};
use axum::body::Body;
use domain::{ChatEvent, Limits, MessageId, PermissionId, StopReason, Timestamp};
use embedded::LocalFolders;
use futures::StreamExt;
use http::Request;
use ports::{Clock, SystemClock};
use serde_json::{Value, json};
use std::sync::Arc;

const ORIGIN: &str = "http://localhost:5173";

/// A request as the page sends it: it says JSON also where it sends none.
async fn page(door: &Door, method: &str, path: &str, body: Value) -> Reply {
    let headers = [
        ("host", "127.0.0.1:8686"),
        ("x-client-id", "ngent-web-ui"),
        ("content-type", "application/json"),
        ("origin", ORIGIN),
    ];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = door.ask(method, path, &headers, body).await;
    assert_eq!(reply.header("access-control-allow-origin"), ORIGIN, "{method} {path}");
    reply
}

/// The values of the page's pickers are texts.
fn are_texts(options: &Value) -> bool {
    options.as_array().is_some_and(|all| {
        all.iter().all(|option| {
            let values = option["options"].as_array().into_iter().flatten();
            let has_texts = values.into_iter().all(|value| value["value"].is_string());
            option["id"].is_string() && option["currentValue"].is_string() && has_texts
        })
    })
}

#[tokio::test]
async fn the_page_of_the_reference_server_gets_its_answers() {
    let place = tempfile::tempdir().unwrap();
    let cwd = place.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let folders = LocalFolders::below(&[cwd.clone().into()]).unwrap();
    let origins = vec![ORIGIN.to_owned()];
    let door = Door::with(Setup { folders: Some(Arc::new(folders)), origins, ..Setup::default() });
    let get = async |path: &str| page(&door, "GET", path, Value::Null).await;

    // It begins with the agents and the threads, and picks a folder.
    let agents = get("/v1/agents").await.is(200);
    let is_there = |agent: &Value| agent["id"] == "buildscale" && agent["status"] == "available";
    assert!(agents.json["agents"].as_array().unwrap().iter().any(is_there), "{}", agents.json);
    assert_eq!(get("/v1/threads").await.is(200).json["threads"], json!([]));
    assert_eq!(get("/v1/recent-directories").await.is(200).json["directories"], json!([]));
    let found = get(&format!("/v1/path-search?q={}", &cwd[..cwd.len() - 1])).await.is(200);
    assert!(found.json["results"].as_array().unwrap().contains(&json!(cwd)), "{}", found.json);
    let new = json!({ "agent": "buildscale", "cwd": cwd, "title": "", "agentOptions": {} });
    let thread = format!("/v1/threads/{}", page(&door, "POST", "/v1/threads", new).await.is(200).text("threadId"));

    // It opens the thread. It also asks for things that this server does not have, and does without them.
    assert_eq!(get(&format!("{thread}/history?includeEvents=1")).await.is(200).json["turns"], json!([]));
    let options = get(&format!("{thread}/config-options")).await.is(200).json["configOptions"].clone();
    assert!(are_texts(&options), "{options}");
    assert_eq!(get(&format!("{thread}/sessions")).await.is(200).json["supported"], false);
    assert!(get(&format!("{thread}/slash-commands")).await.is(200).json["commands"].is_array());
    for absent in ["git", "session-usage?sessionId=s"] {
        let refused = get(&format!("{thread}/{absent}")).await.refuses(404, "NOT_FOUND");
        assert!(refused.json["error"]["message"].is_string(), "{}", refused.json);
    }

    // It gives mode and model back among the options, as it has read them, and renames the thread.
    let mode = |mode: &str| json!({ "agentOptions": { "configOverrides": { "mode": mode } } });
    let changed = page(&door, "PATCH", &thread, mode("plan")).await.is(200);
    assert_eq!(changed.json["thread"]["agentOptions"], json!({ "mode": "plan" }));
    page(&door, "PATCH", &thread, mode("perhaps")).await.refuses(400, "INVALID_ARGUMENT");
    page(&door, "PATCH", &thread, json!({ "title": "Mine" })).await.is(200);
    let choice = json!({ "configId": "mode", "value": "chat" });
    let chosen = page(&door, "POST", &format!("{thread}/config-options"), choice).await.is(200);
    assert!(are_texts(&chosen.json["configOptions"]), "{}", chosen.json);

    // It sends files without a word.
    let part = |name: &str, more: &str, text: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n{text}\r\n")
    };
    let form = [
        part("input", "", ""),
        part("stream", "", "false"),
        part("attachments", "; filename=\"note.md\"\r\nContent-Type: text/markdown", "# Note"),
        "--b--\r\n".to_owned(),
    ];
    let headers = [("x-client-id", "ngent-web-ui"), ("content-type", "multipart/form-data; boundary=b")];
    let begun = door.ask("POST", &format!("{thread}/turns"), &headers, form.concat()).await.is(202);
    let sent = door.take_messages().await.concat();
    assert!(sent.contains("Attached: note.md") && sent.contains("# Note"), "{sent}");
    assert_eq!(get("/v1/threads").await.is(200).json["threads"][0]["hasActiveSession"], true);

    // It answers a permission by the option that was chosen, cancels the turn, and deletes the thread once that is over.
    let workspace = door.get("/api/v1/workspaces").await.is(200).json["workspaces"][0]["workspace_id"].clone();
    let chat =
        format!("/api/v1/workspaces/{}/chats/{}", workspace.as_str().unwrap(), thread.rsplit('/').next().unwrap());
    let asked = PermissionId(SystemClock.id());
    door.put_permission(&chat, asked.0).await;
    let waiting = json!([{ "event": "permission_required", "data": { "permission_id": asked } }]);
    door.put_view(&chat, json!({ "status": "suspended", "waiting_for": waiting })).await;
    let yes = json!({ "optionId": "allow_once" });
    let answered = page(&door, "POST", &format!("/v1/permissions/{asked}"), yes).await.is(200);
    assert_eq!(answered.json["outcome"], "approved");
    page(&door, "DELETE", &thread, Value::Null).await.refuses(409, "CONFLICT");
    let cancel = format!("/v1/turns/{}/cancel", begun.text("turnId"));
    assert_eq!(page(&door, "POST", &cancel, Value::Null).await.is(200).json["status"], "cancelling");
}

#[tokio::test]
async fn the_page_comes_back_to_a_turn_and_shows_no_word_twice() {
    let place = tempfile::tempdir().unwrap();
    let cwd = place.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let folders = LocalFolders::below(&[cwd.clone().into()]).unwrap();
    let door =
        Door::with(Setup { folders: Some(Arc::new(folders)), origins: vec![ORIGIN.to_owned()], ..Setup::default() });
    let new = json!({ "agent": "buildscale", "cwd": cwd });
    let thread = page(&door, "POST", "/v1/threads", new).await.is(200).text("threadId");
    let turns = format!("/v1/threads/{thread}/turns");
    let turn = page(&door, "POST", &turns, json!({ "input": "Go on" })).await.is(202).text("turnId");
    let workspace = door.get("/api/v1/workspaces").await.is(200).json["workspaces"][0]["workspace_id"].clone();
    let chat = format!("/api/v1/workspaces/{}/chats/{thread}", workspace.as_str().unwrap());
    let (turn_id, message_id) = (turn.parse().unwrap(), MessageId(SystemClock.id()));
    let chunk = |text: &str| ChatEvent::Chunk { text: text.into(), message_id };
    let begun = ChatEvent::TurnStarted {
        turn_id,
        attempt: 1,
        asked_at: Timestamp::default(),
        limits: Limits::default(),
        may_approve: true,
        trace: None,
    };
    let (message, stop_reason, at) = ("One two".to_owned(), StopReason::EndTurn, SystemClock.now());
    let ended = ChatEvent::Done { turn_id, message, stop_reason, at };
    door.put_events(&chat, vec![begun, chunk("One"), chunk(" two"), ended]).await;

    // It asks for the events after the greatest `seq` that it knows: of the frames, or of the history after it was loaded again.
    let history =
        page(&door, "GET", &format!("/v1/threads/{thread}/history?includeEvents=1"), Value::Null).await.is(200);
    let events = history.json["turns"][0]["events"].as_array().unwrap();
    for event in events {
        assert!(event["eventId"].is_u64() && event["seq"] == event["data"]["seq"], "{event}");
    }
    let seen = events.iter().find(|event| event["data"]["delta"] == "One").unwrap()["seq"].clone();
    let rest = page(&door, "GET", &format!("/v1/turns/{turn}/events?after={seen}"), Value::Null).await.is(200);
    let rest = String::from_utf8_lossy(&rest.bytes).into_owned();
    let is_the_rest =
        |rest: &str| !rest.contains("One") && rest.contains("\" two\"") && rest.contains("turn_completed");
    assert!(is_the_rest(&rest), "{rest}");

    // The stream of the thread, which has no end, goes on after the event with the same number.
    let request = Request::get(format!("/v1/threads/{thread}/events")).header("x-client-id", "ngent-web-ui");
    let request = request.header("last-event-id", seen.to_string()).body(Body::empty()).unwrap();
    let response = door.send(request).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let (mut rest, mut pieces) = (String::new(), response.into_body().into_data_stream());
    while !rest.contains("turn_completed") {
        rest.push_str(std::str::from_utf8(&pieces.next().await.unwrap().unwrap()).unwrap());
    }
    assert!(is_the_rest(&rest), "{rest}");
}
