//! Door 2, `/v1`: its contract, over chats without a worker.

mod attachments;
mod history;

use crate::support::{Door, Reply, Setup};
use axum::body::Body;
use domain::{
    ChatEvent, CommandId, Limits, MessageId, PermissionId, Principal, StopReason, Timestamp, TurnId,
    event::PermissionOutcome,
};
use embedded::LocalFolders;
use http::Request;
use ports::{Clock, Expect, Key, SystemClock, Write};
use serde_json::{Value, json};
use std::sync::Arc;

const CLIENT: (&str, &str) = ("x-client-id", "test");

/// A door with one allowed root, and the folder in it.
fn hub() -> (Door, String, tempfile::TempDir) {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    std::fs::create_dir(format!("{root}/app")).unwrap();
    let folders = LocalFolders::below(&[format!("{root}/app").into()]).unwrap();
    let door = Door::with(Setup { folders: Some(Arc::new(folders)), ..Setup::default() });
    (door, format!("{root}/app"), place)
}

async fn ask(door: &Door, method: &str, path: &str, body: Value) -> Reply {
    let headers = [CLIENT, ("content-type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    door.ask(method, path, &headers, body).await
}

async fn get(door: &Door, path: &str) -> Reply {
    ask(door, "GET", path, Value::Null).await
}

/// A new thread: its path.
async fn thread(door: &Door, cwd: &str) -> String {
    let made = ask(door, "POST", "/v1/threads", json!({ "agent": "buildscale", "cwd": cwd })).await.is(200);
    format!("/v1/threads/{}", made.text("threadId"))
}

async fn turn(door: &Door, thread: &str) -> Reply {
    ask(door, "POST", &format!("{thread}/turns"), json!({ "input": "go on" })).await
}

/// The path of the thread's chat at door 1.
async fn chat(door: &Door, thread: &str) -> String {
    let page = door.get("/api/v1/workspaces").await.is(200);
    let workspace = page.json["workspaces"][0]["workspace_id"].as_str().unwrap().to_owned();
    format!("/api/v1/workspaces/{workspace}/chats/{}", thread.rsplit('/').next().unwrap())
}

fn started(turn_id: &str) -> ChatEvent {
    ChatEvent::TurnStarted {
        turn_id: turn_id.parse().unwrap(),
        attempt: 1,
        asked_at: Timestamp::default(),
        limits: Limits::default(),
        may_approve: true,
        trace: None,
    }
}

fn done(turn_id: TurnId) -> ChatEvent {
    let (message, stop_reason, at) = ("Hi".into(), StopReason::EndTurn, SystemClock.now());
    ChatEvent::Done { turn_id, message, stop_reason, at }
}

#[tokio::test]
async fn section_8_every_route_needs_the_name_of_a_client_and_healthz_does_not() {
    let (door, cwd, _place) = hub();
    let thread = thread(&door, &cwd).await;
    for path in ["/v1/agents", "/v1/threads", thread.as_str(), "/v1/path-search", "/v1/recent-directories"] {
        for headers in [vec![], vec![("x-client-id", " ")], vec![("x-client-id", "n\u{e4}me")]] {
            let refused = door.ask("GET", path, &headers, "").await.refuses(400, "INVALID_ARGUMENT");
            assert_eq!(refused.json["error"]["details"]["field"], "x-client-id", "{path}");
        }
        // `EventSource` cannot send headers.
        door.ask("GET", &format!("{path}?clientId=web"), &[], "").await.is(200);
    }
    assert_eq!(door.get("/healthz").await.is(200).json, json!({ "ok": true }));
}

#[tokio::test]
async fn section_8_the_agents_are_ours_and_the_personas_of_the_workspace() {
    let (door, ..) = hub();
    let agents = get(&door, "/v1/agents").await.is(200).json["agents"].clone();
    let ids: Vec<_> = agents.as_array().unwrap().iter().map(|agent| agent["id"].as_str().unwrap()).collect();
    assert_eq!(ids[0], "buildscale");
    assert!(ids.contains(&"reviewer"), "{ids:?}");
    assert!(agents.as_array().unwrap().iter().all(|agent| agent["status"] == "available"));
    assert_eq!(get(&door, "/v1/agents/buildscale/models").await.is(200).json["models"], json!([]));
    get(&door, "/v1/agents/nobody/models").await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn section_9_an_agent_is_on_the_list_and_a_folder_inside_an_allowed_root() {
    let (door, cwd, place) = hub();
    let make =
        async |agent: &str, cwd: &str| ask(&door, "POST", "/v1/threads", json!({ "agent": agent, "cwd": cwd })).await;
    make("buildscale", &cwd).await.is(200);
    let refused = make("nobody", &cwd).await.refuses(400, "INVALID_ARGUMENT");
    assert_eq!(refused.json["error"]["details"]["field"], "agent");
    std::os::unix::fs::symlink("/", format!("{cwd}/out")).unwrap();
    let outside = place.path().to_str().unwrap();
    for cwd in ["app", ".", "", outside, &format!("{cwd}/.."), &format!("{cwd}/out"), &format!("{cwd}/missing"), "/"] {
        let refused = make("buildscale", cwd).await.refuses(400, "INVALID_ARGUMENT");
        assert_eq!(refused.json["error"]["details"]["field"], "cwd", "{cwd}");
        assert!(refused.json["error"]["hint"].as_str().unwrap().contains("/app"), "{cwd}");
    }
    // The files of the workspace are a folder everywhere; without folders of the machine they are the only one.
    let cloud = Door::open();
    for (cwd, status) in
        [("/workspace", 200), ("/workspace/src", 200), ("/workspaces", 400), ("/workspace/../etc", 400), ("/", 400)]
    {
        for door in [&cloud, &door] {
            ask(door, "POST", "/v1/threads", json!({ "agent": "reviewer", "cwd": cwd })).await.is(status);
        }
    }
}

#[tokio::test]
async fn section_8_threads_are_made_listed_changed_and_deleted() {
    let (door, cwd, _place) = hub();
    let new = json!({ "agent": "buildscale", "cwd": cwd, "title": " First ", "agentOptions": { "mode": "plan" } });
    let first = ask(&door, "POST", "/v1/threads", new).await.is(200).text("threadId");
    let second = thread(&door, &cwd).await;
    let listed = get(&door, "/v1/threads").await.is(200).json["threads"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(listed[1]["threadId"], first.as_str());
    let one = get(&door, &format!("/v1/threads/{first}")).await.is(200).json["thread"].clone();
    assert_eq!(one, listed[1]);
    assert_eq!((&one["title"], &one["agentOptions"]), (&json!("First"), &json!({ "mode": "plan" })));
    assert_eq!((&one["cwd"], &one["agent"], &one["summary"]), (&json!(cwd), &json!("buildscale"), &json!("")));
    let path = format!("/v1/threads/{first}");
    let changed =
        ask(&door, "PATCH", &path, json!({ "title": "Other", "agentOptions": { "mode": "chat" } })).await.is(200);
    assert_eq!(
        (&changed.json["thread"]["title"], &changed.json["thread"]["agentOptions"]["mode"]),
        (&json!("Other"), &json!("chat"))
    );
    for body in [
        json!({}),
        json!({ "agentOptions": { "mode": "build" } }),
        json!({ "agentOptions": { "sessionId": "s" } }),
        json!({ "agentOptions": { "modelId": "nobody/nothing" } }),
        json!({ "cwd": "/" }),
        json!({ "title": "x".repeat(201) }),
    ] {
        ask(&door, "PATCH", &path, body).await.refuses(400, "INVALID_ARGUMENT");
    }
    let options = ask(&door, "POST", &format!("{path}/config-options"), json!({ "configId": "mode", "value": "plan" }))
        .await
        .is(200);
    let mode = options.json["configOptions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|option| option["id"] == "mode")
        .cloned()
        .unwrap();
    assert_eq!((&mode["currentValue"], &mode["options"][1]["value"]), (&json!("plan"), &json!("plan")));
    assert_eq!(get(&door, &format!("{path}/sessions")).await.is(200).json["supported"], false);
    assert_eq!(get(&door, &format!("{path}/session-history?sessionId=s")).await.is(200).json["supported"], false);
    assert_eq!(get(&door, &format!("{path}/slash-commands")).await.is(200).json["commands"], json!([]));
    ask(&door, "POST", &format!("{path}/compact"), json!({})).await.refuses(422, "UNPROCESSABLE");
    let deleted = ask(&door, "DELETE", &path, Value::Null).await.is(200);
    assert_eq!(deleted.json, json!({ "threadId": first, "status": "deleted" }));
    get(&door, &path).await.refuses(404, "NOT_FOUND");
    get(&door, &second).await.is(200);
    assert_eq!(get(&door, "/v1/recent-directories").await.is(200).json, json!({ "directories": [cwd] }));
    assert_eq!(
        get(&door, &format!("/v1/path-search?q={cwd}")).await.is(200).json,
        json!({ "query": cwd, "results": [cwd] })
    );
}

#[tokio::test]
async fn section_3_a_thread_has_one_active_turn_and_the_second_is_a_conflict() {
    let (door, cwd, _place) = hub();
    let thread = thread(&door, &cwd).await;
    let racing = futures::future::join_all((0..4).map(|_| turn(&door, &thread))).await;
    let (begun, refused): (Vec<_>, Vec<_>) = racing.into_iter().partition(|reply| reply.status == 202);
    assert_eq!((begun.len(), refused.len()), (1, 3));
    for reply in refused {
        reply.refuses(409, "CONFLICT");
    }
    let first = begun[0].text("turnId");
    turn(&door, &thread).await.refuses(409, "CONFLICT");
    // Shared state does not change under a turn, and a title is none.
    ask(&door, "PATCH", &thread, json!({ "agentOptions": { "mode": "plan" } })).await.refuses(409, "CONFLICT");
    ask(&door, "DELETE", &thread, Value::Null).await.refuses(409, "CONFLICT");
    ask(&door, "PATCH", &thread, json!({ "title": "Meanwhile" })).await.is(200);
    assert_eq!(door.take_messages().await.iter().filter(|body| body.contains("start_turn")).count(), 1);
    let chat = chat(&door, &thread).await;
    door.put_view(&chat, json!({ "status": "idle", "turns": 1 })).await;
    let short = json!({ "maxSummaryChars": 50 });
    let short = ask(&door, "POST", &format!("{thread}/compact"), short).await.refuses(400, "INVALID_ARGUMENT");
    assert_eq!(short.json["error"]["details"]["field"], "maxSummaryChars");
    let second = json!({ "input": "go on", "stream": null });
    let second = ask(&door, "POST", &format!("{thread}/turns"), second).await.is(202).text("turnId");
    assert_ne!(first, second);
    let messages = door.take_messages().await;
    assert!(messages.iter().any(|body| body.contains(&second) && !body.contains("\"create\"")), "{messages:?}");
    let cancel = |turn: &str| format!("/v1/turns/{turn}/cancel");
    ask(&door, "POST", &cancel(&first), Value::Null).await.refuses(409, "CONFLICT");
    let cancelled = ask(&door, "POST", &cancel(&second), Value::Null).await.is(200);
    let id = thread.rsplit('/').next().unwrap();
    assert_eq!(cancelled.json, json!({ "turnId": second, "threadId": id, "status": "cancelling" }));
    ask(&door, "POST", &cancel("019bf537-f228-7cd3-aa1c-3da8af302e12"), Value::Null).await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_turn_under_an_idempotency_key_begins_once() {
    let (door, cwd, _place) = hub();
    let path = format!("{}/turns", thread(&door, &cwd).await);
    let headers = [CLIENT, ("content-type", "application/json"), ("idempotency-key", "one")];
    let post =
        async || door.ask("POST", &path, &headers, json!({ "input": "go" }).to_string()).await.is(202).text("turnId");
    assert_eq!(post().await, post().await);
    assert_eq!(door.take_messages().await.len(), 1);
}

#[tokio::test]
async fn section_7_a_turn_is_streamed_and_its_past_is_replayed_from_the_log() {
    let (door, cwd, _place) = hub();
    let thread = thread(&door, &cwd).await;
    let request =
        Request::post(format!("{thread}/turns")).header(CLIENT.0, CLIENT.1).header("content-type", "application/json");
    let streamed = door.send(request.body(Body::from(r#"{"input": "Hello", "stream": true}"#)).unwrap()).await;
    assert_eq!(
        (streamed.status().as_u16(), &streamed.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    let turn_id = {
        let messages = door.take_messages().await;
        let message: Value = serde_json::from_str(&messages[0]).unwrap();
        message["id"].as_str().unwrap().to_owned()
    };
    let chat = chat(&door, &thread).await;
    let message_id = MessageId(SystemClock.id());
    let events = vec![
        started(&turn_id),
        ChatEvent::Chunk { text: "Hi".into(), message_id },
        ChatEvent::Chunk { text: " you".into(), message_id },
        done(turn_id.parse().unwrap()),
    ];
    door.put_events(&chat, events).await;
    // The door's bus says nothing of it: the stream looks at the log by itself.
    let bytes = axum::body::to_bytes(streamed.into_body(), usize::MAX).await.unwrap();
    let live = String::from_utf8(bytes.to_vec()).unwrap();
    let frames = |text: &str| text.split_once(" \n").unwrap().1.to_owned();
    let own = |number: u64| format!("\"turnId\":\"{turn_id}\",\"seq\":{number}");
    let delta = |number, text| {
        format!("id: {number}\nevent: message_delta\ndata: {{\"delta\":\"{text}\",{}}}\n\n", own(number))
    };
    let id = thread.rsplit('/').next().unwrap();
    let expected = [
        format!("id: 1\nevent: turn_started\ndata: {{\"threadId\":\"{id}\",{}}}\n\n", own(1)),
        delta(2, "Hi"),
        delta(3, " you"),
        format!("id: 4\nevent: turn_completed\ndata: {{\"stopReason\":\"end_turn\",{}}}\n\n", own(4)),
    ];
    let expected = expected.concat();
    assert_eq!(frames(&live), expected);
    let replayed = get(&door, &format!("/v1/turns/{turn_id}/events")).await.is(200);
    assert_eq!(frames(&String::from_utf8_lossy(&replayed.bytes)), expected);
    let rest =
        door.ask("GET", &format!("/v1/turns/{turn_id}/events"), &[CLIENT, ("last-event-id", "2")], "").await.is(200);
    assert_eq!(frames(&String::from_utf8_lossy(&rest.bytes)), expected[expected.find("id: 3").unwrap()..]);
    get(&door, &format!("/v1/turns/{turn_id}/events?after=4")).await.is(204);
    let history = get(&door, &format!("{thread}/history?includeEvents=1&includeInternal=0")).await.is(200).json;
    get(&door, &format!("{thread}/history?includeEvents=yes")).await.refuses(400, "INVALID_ARGUMENT");
    let turn = &history["turns"][0];
    assert_eq!(
        (&turn["turnId"], &turn["responseText"], &turn["status"]),
        (&json!(turn_id), &json!("Hi you"), &json!("completed"))
    );
    let types: Vec<_> =
        turn["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["turn_started", "message_delta", "message_delta", "turn_completed"]);
    let ids: Vec<_> =
        turn["events"].as_array().unwrap().iter().map(|event| event["eventId"].as_u64().unwrap()).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    assert!(get(&door, &format!("{thread}/history")).await.is(200).json["turns"][0].get("events").is_none());
}

#[tokio::test]
async fn section_5_a_permission_is_answered_by_outcome_or_option_and_once() {
    let (door, cwd, _place) = hub();
    let thread = thread(&door, &cwd).await;
    turn(&door, &thread).await.is(202);
    door.take_messages().await;
    let chat = chat(&door, &thread).await;
    let (open, decided) = (SystemClock.id(), SystemClock.id());
    let resolved = ChatEvent::PermissionResolved {
        permission_id: PermissionId(decided),
        outcome: PermissionOutcome::Declined,
        by: "timeout".into(),
        always: None,
        reason: None,
        option_id: None,
        at: SystemClock.now(),
    };
    door.put_events(&chat, vec![resolved]).await;
    for id in [open, decided] {
        door.put_permission(&chat, id).await;
    }
    let rule = json!({ "kind": "command", "words": ["ls"] });
    let waiting = json!([{ "event": "permission_required", "data": { "permission_id": open, "always": rule } }]);
    door.put_view(&chat, json!({ "status": "suspended", "waiting_for": waiting })).await;
    let answer = async |id: uuid::Uuid, body: Value| ask(&door, "POST", &format!("/v1/permissions/{id}"), body).await;
    for body in [json!({}), json!({ "optionId": "allow_all" }), json!({ "outcome": "perhaps" })] {
        answer(open, body).await.refuses(400, "INVALID_ARGUMENT");
    }
    // Of two opposite answers that come before the chat has taken one in, the first counts.
    answer(open, json!({ "outcome": "approved" })).await.is(200);
    answer(open, json!({ "outcome": "approved" })).await.is(200);
    answer(open, json!({ "outcome": "declined" })).await.refuses(409, "CONFLICT");
    door.take_messages().await;
    let asked = async || {
        let open = SystemClock.id();
        door.put_permission(&chat, open).await;
        let waiting = json!([{ "event": "permission_required", "data": { "permission_id": open, "always": rule } }]);
        door.put_view(&chat, json!({ "status": "suspended", "waiting_for": waiting })).await;
        open
    };
    for (body, outcome, sent) in [
        (json!({ "outcome": "approved" }), "approved", "\"outcome\":\"approved\""),
        (json!({ "outcome": "approved", "optionId": "reject_once" }), "declined", "\"outcome\":\"declined\""),
        (json!({ "optionId": "allow_always" }), "approved", "\"always\":true"),
        (json!({ "optionId": "reject_always" }), "declined", "\"always\":true"),
    ] {
        let open = asked().await;
        let reply = answer(open, body).await.is(200);
        assert_eq!(reply.json, json!({ "permissionId": open, "status": "recorded", "outcome": outcome }));
        assert!(door.take_messages().await[0].contains(sent));
    }
    // A rule can be of a person, or of the workspace.
    let open = asked().await;
    answer(open, json!({ "optionId": "reject_once", "scope": "person" })).await.refuses(400, "INVALID_ARGUMENT");
    answer(open, json!({ "optionId": "allow_always", "scope": "person" })).await.is(200);
    let workspace = chat.split_once("/chats/").unwrap().0;
    let rules = get(&door, &format!("{workspace}/permissions")).await.is(200);
    assert_eq!(
        (&rules.json["permissions"][0]["scope"], &rules.json["permissions"][0]["rule"]),
        (&json!("person"), &rule)
    );
    // One that denies beside it is another rule.
    answer(asked().await, json!({ "optionId": "reject_always", "scope": "workspace" })).await.is(200);
    let rules = get(&door, &format!("{workspace}/permissions")).await.is(200).json["permissions"].clone();
    let effects: Vec<_> = rules.as_array().unwrap().iter().map(|one| (&one["scope"], &one["effect"])).collect();
    assert!(effects.contains(&(&json!("workspace"), &json!("deny"))), "{rules}");
    assert!(effects.contains(&(&json!("person"), &json!("allow"))), "{rules}");
    // Neither is one of the chat, which would keep it when it is revoked.
    let sent = door.take_messages().await.concat();
    assert!(sent.contains("\"decide\"") && !sent.contains("\"always\""), "{sent}");
    // A coding agent's option for good is a rule of ours where it has a scope, and the agent's own without one.
    let of_agent = async || {
        let open = SystemClock.id();
        door.put_permission(&chat, open).await;
        let option = |id: &str, kind: &str| json!({ "option_id": id, "name": id, "kind": kind });
        let options = [option("yes", "allow_once"), option("ever", "allow_always"), option("no", "reject_once")];
        let data = json!({ "permission_id": open, "always": rule, "options": options, "digest": "ab" });
        let waiting = json!([{ "event": "permission_required", "data": data }]);
        door.put_view(&chat, json!({ "status": "suspended", "waiting_for": waiting })).await;
        open
    };
    for (body, sent, absent) in [
        (json!({ "optionId": "ever" }), "\"option_id\":\"ever\"", &["\"always\""][..]),
        (json!({ "optionId": "ever", "scope": "thread" }), "\"always\":true", &["\"option_id\""]),
        (json!({ "optionId": "reject_always", "scope": "person" }), "\"declined\"", &["\"option_id\"", "\"always\""]),
    ] {
        door.take_messages().await;
        answer(of_agent().await, body).await.is(200);
        let message = door.take_messages().await.concat();
        assert!(message.contains(sent) && !absent.iter().any(|word| message.contains(word)), "{message}");
    }
    let digest = json!({ "outcome": "approved", "digest": domain::Sha256::of(b"another request").to_string() });
    let refused = answer(of_agent().await, digest).await.refuses(409, "CONFLICT");
    assert_eq!(refused.json["error"]["details"], json!({ "field": "digest", "digest": "ab" }));
    // One that comes late or second is no answer; the log of the chat will tell of it.
    door.take_messages().await;
    answer(decided, json!({ "outcome": "approved" })).await.refuses(409, "CONFLICT");
    answer(decided, json!({ "optionId": "reject_once" })).await.refuses(409, "CONFLICT");
    answer(decided, json!({ "outcome": "declined" })).await.refuses(409, "CONFLICT");
    let noted = door.take_messages().await.concat();
    assert!(noted.contains("\"note_refused\"") && noted.contains(&decided.to_string()), "{noted}");
    assert!(noted.contains("\"approved\"") && noted.contains("\"declined\""), "{noted}");
    assert!(!noted.contains("\"decide\""), "{noted}");
    assert_eq!(noted.matches("\"note_refused\"").count(), 2, "the same answer is told of once: {noted}");
    answer(SystemClock.id(), json!({ "outcome": "approved" })).await.refuses(404, "NOT_FOUND");
    assert_eq!(door.take_messages().await, [""; 0], "a request that nobody made leaves nothing");
}

#[tokio::test]
async fn section_5_an_answer_that_counted_counts_when_its_sender_repeats_it() {
    let (door, cwd, _place) = hub();
    let thread = thread(&door, &cwd).await;
    turn(&door, &thread).await.is(202);
    door.take_messages().await;
    let chat = chat(&door, &thread).await;
    let permission_id = PermissionId(SystemClock.id());
    door.put_permission(&chat, permission_id.0).await;
    let option = json!({ "option_id": "ever", "name": "Ever", "kind": "allow_always" });
    let data = json!({ "permission_id": permission_id, "options": [option] });
    let waiting = json!([{ "event": "permission_required", "data": data }]);
    door.put_view(&chat, json!({ "status": "suspended", "waiting_for": waiting })).await;
    let path = format!("/v1/permissions/{permission_id}");
    let answer = async |key: &str| {
        let headers = [CLIENT, ("content-type", "application/json"), ("idempotency-key", key)];
        door.ask("POST", &path, &headers, json!({ "optionId": "ever" }).to_string()).await
    };
    let first = answer("one").await.is(200);
    assert_eq!(first.json["outcome"], "approved");
    // The chat takes it in, and the answer that was kept for the key is gone.
    let message: Value = serde_json::from_str(&door.take_messages().await[0]).unwrap();
    let command = CommandId(message["id"].as_str().unwrap().parse().unwrap());
    let resolved = ChatEvent::PermissionResolved {
        permission_id,
        outcome: PermissionOutcome::Approved,
        by: "user".into(),
        always: None,
        reason: None,
        option_id: Some("ever".into()),
        at: SystemClock.now(),
    };
    door.put_events_of(command, &chat, vec![resolved]).await;
    door.put_view(&chat, json!({ "status": "running", "waiting_for": [] })).await;
    let kept = Key::new(format!("idempotency/-/{}", Principal::local().user()), "one");
    assert!(door.table.get(&kept).await.unwrap().is_some());
    door.table.commit(vec![Write::delete(kept, Expect::Any)]).await.unwrap();
    assert_eq!(answer("one").await.is(200).json, first.json);
    assert_eq!(door.take_messages().await, [""; 0], "it is not late");
    answer("two").await.refuses(409, "CONFLICT");
    assert!(door.take_messages().await.concat().contains("\"note_refused\""));
}

#[tokio::test]
async fn section_5_rules_are_listed_and_revoked_one_by_one() {
    let (door, cwd, _place) = hub();
    let thread = thread(&door, &cwd).await;
    let empty = get(&door, &format!("{thread}/rules")).await.is(200);
    assert_eq!(empty.json["rules"], json!([]), "its chat is made by its first turn");
    turn(&door, &thread).await.is(202);
    let chat = chat(&door, &thread).await;
    let rule = json!({ "kind": "command", "words": ["ls"] });
    door.put_view(&chat, json!({ "permissions": [rule] })).await;
    let listed = get(&door, &format!("{thread}/rules")).await.is(200).json["rules"].clone();
    assert_eq!(listed[0]["rule"], rule);
    door.take_messages().await;
    let path = format!("{thread}/rules/{}", listed[0]["ruleId"].as_str().unwrap());
    let revoked = ask(&door, "DELETE", &path, Value::Null).await.is(200);
    assert_eq!((&revoked.json["status"], &revoked.json["ruleId"]), (&json!("revoked"), &listed[0]["ruleId"]));
    assert!(door.take_messages().await.concat().contains("forget_permissions"));
    ask(&door, "DELETE", &format!("{thread}/rules/0000"), Value::Null).await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn section_10_refusals_have_code_message_hint_request_id_and_details() {
    let (door, cwd, _place) = hub();
    let refused = ask(&door, "POST", "/v1/threads", json!({ "agent": "nobody", "cwd": cwd }))
        .await
        .refuses(400, "INVALID_ARGUMENT");
    let error = &refused.json["error"];
    assert!(error["message"].is_string() && error["hint"].is_string() && error["details"].is_object());
    assert_eq!(error["request_id"], refused.header("x-request-id"));
}

#[tokio::test]
async fn a_workspace_can_be_named_and_one_that_is_not_there_is_not_found() {
    let (door, cwd, _place) = hub();
    thread(&door, &cwd).await;
    let other = door.workspace().await;
    let other = other.rsplit('/').next().unwrap();
    let within = async |id: &str| door.ask("GET", "/v1/threads", &[CLIENT, ("x-workspace-id", id)], "").await;
    assert_eq!(within(other).await.is(200).json["threads"], json!([]));
    within("019bf537-f228-7cd3-aa1c-3da8af302e12").await.refuses(404, "NOT_FOUND");
    within("elsewhere").await.refuses(400, "INVALID_ARGUMENT");
    assert_eq!(get(&door, "/v1/threads").await.is(200).json["threads"].as_array().unwrap().len(), 1);
}
