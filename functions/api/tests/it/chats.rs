//! Chats, from the goal to the last answer.

use crate::support::{Door, Setup, long_ago};
use axum::body::Body;
use domain::{CallId, ChatEvent, Message, MessageId, Timestamp, ToolCall};
use futures::StreamExt;
use http::Request;
use ports::ModelInfo;
use serde_json::{Value, json};
use uuid::Uuid;

#[tokio::test]
async fn a_goal_is_accepted_and_the_chat_is_there() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let body = json!({ "goal": "Write a report\nwith care", "limits": { "max_steps": 5 }, "mode": "plan" });
    let made = door.json("POST", &format!("{workspace}/chats"), body).await.is(202);
    assert_eq!((made.text("status").as_str(), &made.json["plan_id"]), ("queued", &json!(null)));
    let chat = format!("{workspace}/chats/{}", made.text("chat_id"));

    let shown = door.get(&chat).await.is(200);
    assert_eq!((shown.text("title").as_str(), shown.text("mode").as_str()), ("Write a report", "plan"));
    assert_eq!((&shown.json["messages"], &shown.json["last_seq"]), (&json!([]), &json!(0)));
    let list = door.get(&format!("{workspace}/chats?limit=1")).await.is(200);
    assert_eq!(list.json["chats"][0]["chat_id"], made.json["chat_id"]);
    let file = door.get(&format!("{workspace}/files/by-path?path=/chats/{}.md", made.text("chat_id"))).await.is(200);
    assert_eq!((file.text("kind").as_str(), file.text("file_id")), ("projection", made.text("chat_id")));
}

#[tokio::test]
async fn a_message_costs_one_durable_send_and_no_write() {
    let door = Door::open();
    let (chat, id) = door.chat(&door.workspace().await).await;
    door.put_view(&chat, json!({ "status": "idle" })).await;
    let before = door.calls.names().len();
    let turn = door.json("POST", &chat, json!({ "content": "And now?" })).await.is(202);
    assert_eq!(turn.json, json!({ "chat_id": id, "turn_id": turn.json["turn_id"], "status": "queued" }));
    let calls = door.calls.names().split_off(before);
    assert_eq!(calls, ["table.get", "queue.send"]);
}

#[tokio::test]
async fn an_approved_plan_is_shown_with_its_approval() {
    let door = Door::open();
    let (chat, id) = door.chat(&door.workspace().await).await;
    let approval = json!({
        "plan_path": "/plans/report.md",
        "plan_id": id,
        "v": 3,
        "digest": domain::Sha256::of(b"plan").to_string(),
        "by": domain::Principal::local().to_string(),
        "at": long_ago(),
    });
    door.put_view(&chat, json!({ "approval": approval })).await;
    assert_eq!(door.get(&chat).await.is(200).json["approval"], approval);
}

#[tokio::test]
async fn a_waiting_message_shows_its_place_in_the_queue() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    let question = json!([{ "event": "question", "data": { "question_id": "q" } }]);
    let permission = json!([{ "event": "permission_required", "data": { "permission_id": "p" } }]);
    let mut waiting = Vec::new();
    for (view, behind) in [
        (json!({ "status": "running", "waiting_for": [] }), "running_turn"),
        (json!({ "status": "suspended", "waiting_for": question }), "open_question"),
        (json!({ "status": "suspended", "waiting_for": permission }), "open_permission"),
        (json!({ "status": "paused", "waiting_for": [], "paused_reason": "it panics" }), "paused_turn"),
    ] {
        door.put_view(&chat, view).await;
        let turn = door.json("POST", &chat, json!({ "content": behind })).await.is(202);
        assert_eq!(turn.text("queued_behind"), behind);
        assert!(turn.text("hint").contains("read"), "{}", turn.json);
        let paused = if behind == "paused_turn" { json!("it panics") } else { json!(null) };
        assert_eq!(turn.json["paused_reason"], paused);
        waiting.push((turn.text("turn_id"), behind.to_owned()));
        let shown = door.get(&chat).await.is(200);
        let queued = shown.json["queued"].as_array().unwrap().clone();
        let text = |message: &serde_json::Value, key: &str| message[key].as_str().unwrap().to_owned();
        let queued: Vec<_> = queued.iter().map(|each| (text(each, "turn_id"), text(each, "content"))).collect();
        assert_eq!(queued, waiting);
    }
    let rejected = door.json("POST", &chat, json!({ "content": "Now!", "on_busy": "reject" })).await;
    rejected.refuses(409, "CONFLICT");
    door.ask("POST", &format!("{chat}/stop"), &[], "").await.is(200);
}

#[tokio::test]
async fn a_message_behind_fifty_others_is_refused_with_the_time_to_come_again() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    let message = |number: u128| json!({ "turn_id": Uuid::from_u128(number), "at": long_ago(), "content": "more" });
    let queued: Vec<_> = (1..=50).map(message).collect();
    door.put_view(&chat, json!({ "status": "running", "turn_id": Uuid::from_u128(99), "queued": queued })).await;
    door.take_messages().await;
    let refused = door.json("POST", &chat, json!({ "content": "And this?" })).await.refuses(429, "RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), "5");
    assert_eq!(door.take_messages().await, Vec::<String>::new());
    door.json("POST", &chat, json!({ "content": "Now!", "on_busy": "interrupt" })).await.is(202);
}

#[tokio::test]
async fn the_file_of_a_deleted_chat_can_be_restored_moved_and_removed() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let (chat, id) = door.chat(&workspace).await;
    let file = format!("{workspace}/files/{id}");
    door.ask("DELETE", &file, &[], "").await.refuses(403, "FORBIDDEN");
    door.json("PATCH", &file, json!({ "path": "/projects/kept.md" })).await.refuses(403, "FORBIDDEN");
    door.ask("DELETE", &chat, &[], "").await.is(204);
    door.ask("POST", &format!("{file}/restore"), &[], "").await.is(200);
    door.json("PATCH", &file, json!({ "path": "/projects/kept.md" })).await.is(200);
    assert_eq!(door.ask("DELETE", &file, &[], "").await.is(200).text("op"), "removed");
    door.ask("DELETE", &format!("{file}/purge"), &[], "").await.is(200);
}

#[tokio::test]
async fn a_busy_chat_refuses_when_asked_to() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    let refused = door.json("POST", &chat, json!({ "content": "Now!", "on_busy": "reject" })).await;
    refused.refuses(409, "CONFLICT");
    door.json("POST", &chat, json!({ "content": "Now!", "on_busy": "interrupt" })).await.is(202);
    door.ask("DELETE", &chat, &[], "").await.is(204);
    door.json("POST", &chat, json!({ "content": "Now!" })).await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_second_stop_is_harmless_and_a_stop_of_ended_work_is_told() {
    let door = Door::open();
    let (chat, id) = door.chat(&door.workspace().await).await;
    for _ in 0..2 {
        let stopped = door.ask("POST", &format!("{chat}/stop"), &[], "").await.is(200);
        assert_eq!(stopped.json, json!({ "status": "cancelled", "chat_id": id }));
    }
    door.put_view(&chat, json!({ "status": "idle", "active_at": long_ago() })).await;
    door.ask("POST", &format!("{chat}/stop"), &[], "").await.refuses(404, "NOT_FOUND");
    door.ask("DELETE", &chat, &[], "").await.is(204);
    door.get(&chat).await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn questions_and_permissions_are_answered_while_they_are_open() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    let id = "019bf537-f228-7cd3-aa1c-3da8af302e12";
    let (question, permission) = (format!("{chat}/answers/{id}"), format!("{chat}/permissions/{id}"));
    door.json("POST", &question, json!({ "answers": { "colour": "red" } })).await.refuses(409, "CONFLICT");
    door.take_messages().await;
    // The chat never asked for it: of a person it keeps one such answer.
    for made_up in [id, "019bf537-f228-7cd3-aa1c-3da8af302e13"] {
        let path = format!("{chat}/permissions/{made_up}");
        let refused = door.json("POST", &path, json!({ "outcome": "approved" })).await.refuses(404, "NOT_FOUND");
        assert_eq!(refused.json["error"]["details"]["permission_id"], made_up);
    }
    let noted = door.take_messages().await;
    assert!(noted.len() == 1 && noted[0].contains("\"note_refused\"") && noted[0].contains(id), "{noted:?}");
    door.put_permission(&chat, id.parse().unwrap()).await;
    door.json("POST", &permission, json!({ "outcome": "approved" })).await.refuses(409, "CONFLICT");
    let noted = door.take_messages().await.concat();
    assert!(noted.contains("\"note_refused\"") && noted.contains(id) && !noted.contains("\"decide\""), "{noted}");

    let schema = json!({ "type": "string", "enum": ["red", "blue"] });
    let asked = json!([
        { "event": "question", "data": { "question_id": id, "questions": [
            { "name": "colour", "question": "Which?", "schema": schema }] } },
        { "event": "permission_required", "data": { "permission_id": id } },
    ]);
    door.put_view(&chat, json!({ "status": "suspended", "waiting_for": asked })).await;
    door.get(&chat).await.is(200);
    let wrong = door.json("POST", &question, json!({ "answers": { "colour": "green" } })).await;
    assert_eq!(wrong.status, 400, "{}", wrong.json);
    door.json("POST", &question, json!({ "answers": { "colour": "red" } })).await.is(202);
    // The chat has not taken it in: the same again is harmless, and another one would be passed over.
    door.json("POST", &question, json!({ "answers": { "colour": "red" } })).await.is(202);
    door.take_messages().await;
    door.json("POST", &question, json!({ "answers": { "colour": "blue" } })).await.refuses(409, "CONFLICT");
    assert!(door.take_messages().await.is_empty());
    door.json("POST", &permission, json!({ "outcome": "approved" })).await.is(202);
    door.json("POST", &permission, json!({ "outcome": "maybe" })).await.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn the_parts_of_a_decision_fit_together() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    let (id, other) = ("019bf537-f228-7cd3-aa1c-3da8af302e12", "019bf537-f228-7cd3-aa1c-3da8af302e13");
    let rule = json!({ "kind": "command_prefix", "words": ["cargo", "test"] });
    let asked = |id: &str, more: serde_json::Value| {
        let mut data = json!({ "permission_id": id });
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "event": "permission_required", "data": data })
    };
    let waiting = [asked(id, json!({ "always": rule })), asked(other, json!({}))];
    door.put_view(&chat, json!({ "status": "suspended", "waiting_for": waiting })).await;
    let (offers, plain) = (format!("{chat}/permissions/{id}"), format!("{chat}/permissions/{other}"));
    for (path, body, field) in [
        (&offers, json!({ "outcome": "cancelled", "always": true }), "always"),
        (&plain, json!({ "outcome": "approved", "always": true }), "always"),
        (&offers, json!({ "outcome": "approved", "reason": "why not" }), "reason"),
        (&offers, json!({ "outcome": "declined", "reason": " " }), "reason"),
        (&offers, json!({ "outcome": "declined", "reason": "x".repeat(1_001) }), "reason"),
    ] {
        let refused = door.json("POST", path, body.clone()).await.is(400);
        let error = &refused.json["error"];
        assert_eq!(error["code"], "INVALID_ARGUMENT", "{body}");
        assert_eq!(error["details"]["field"], field, "{body}");
        assert!(error["hint"].is_string(), "{body}");
    }
    let never = json!({ "outcome": "declined", "always": true, "reason": "it takes too long" });
    door.take_messages().await;
    door.json("POST", &offers, never).await.is(202);
    let sent = door.take_messages().await.concat();
    assert!(sent.contains("\"always\":true") && sent.contains("it takes too long"), "{sent}");
    door.json("POST", &plain, json!({ "outcome": "declined", "reason": "ö".repeat(1_000) })).await.is(202);
}

#[tokio::test]
async fn granted_rules_are_shown_and_forgotten() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    let rules = json!([
        { "kind": "command_prefix", "words": ["cargo", "test"], "folder": "/projects/app" },
        { "kind": "command", "words": ["make"] },
        { "kind": "file", "path": "/system/skills/x/SKILL.md" },
        { "kind": "deny", "rule": { "kind": "tool", "tool": "mcp__mail__send" } },
    ]);
    door.put_view(&chat, json!({ "permissions": rules })).await;
    assert_eq!(door.get(&chat).await.is(200).json["permissions"], rules);
    let listed = door.get(&format!("{chat}/permissions")).await.is(200).json["permissions"].clone();
    let effects: Vec<_> = listed.as_array().unwrap().iter().map(|one| one["effect"].as_str().unwrap()).collect();
    assert_eq!(effects, ["allow", "allow", "allow", "deny"]);
    for _ in 0..2 {
        door.ask("DELETE", &format!("{chat}/permissions"), &[], "").await.is(202);
    }
    let nobody = chat.rsplit_once('/').unwrap().0.to_owned() + "/019bf537-f228-7cd3-aa1c-3da8af302e12";
    door.ask("DELETE", &format!("{nobody}/permissions"), &[], "").await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn one_rule_is_revoked_by_its_id() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    let rules = json!([{ "kind": "command", "words": ["make"] }, { "kind": "command", "words": ["ls"] }]);
    door.put_view(&chat, json!({ "permissions": rules })).await;
    door.take_messages().await;
    let path = format!("{chat}/permissions");
    let listed = door.get(&path).await.is(200).json["permissions"].clone();
    assert_eq!((&listed[0]["rule"], &listed[1]["rule"]), (&rules[0], &rules[1]));
    assert!(listed[0]["words"].as_str().unwrap().contains("make"), "{listed}");
    let id = listed[1]["rule_id"].as_str().unwrap();
    door.ask("DELETE", &format!("{path}?rule_id={id}"), &[], "").await.is(202);
    let sent = door.take_messages().await.concat();
    assert!(sent.contains("forget_permissions") && sent.contains(id), "{sent}");
    door.ask("DELETE", &format!("{path}?rule_id=0000000000000000"), &[], "").await.refuses(404, "NOT_FOUND");
    door.ask("DELETE", &format!("{path}?rule={id}"), &[], "").await.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_paused_chat_is_resumed() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    door.ask("POST", &format!("{chat}/resume"), &[], "").await.refuses(409, "CONFLICT");
    door.put_view(&chat, json!({ "status": "paused", "paused_reason": "it broke" })).await;
    let accepted = door.json("POST", &chat, json!({ "content": "Go on" })).await.is(202);
    assert_eq!(accepted.text("paused_reason"), "it broke");
    door.json("POST", &format!("{chat}/resume"), json!({ "drop": true })).await.is(202);
}

#[tokio::test]
async fn a_chat_is_set_up_anew() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    door.json("PATCH", &chat, json!({ "title": "Reports", "model": "m", "mode": "plan" })).await.is(202);
    door.json("PATCH", &chat, json!({ "mode": "build" })).await.refuses(400, "INVALID_ARGUMENT");
    door.json("PATCH", &chat, json!({})).await.refuses(400, "INVALID_ARGUMENT");
    door.json("PATCH", &chat, json!({ "title": "  " })).await.refuses(400, "INVALID_ARGUMENT");
    door.json("PATCH", &chat, json!({ "model": "m".repeat(201) })).await.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_model_that_there_is_not_is_refused_at_the_door_with_those_that_there_are() {
    let model = |id: &str, available: bool| ModelInfo {
        id: id.into(),
        provider: "openai".into(),
        available,
        note: None,
        default: false,
        context_tokens: None,
    };
    let models = vec![model("openai/gpt-5-mini", true), model("gemini/gemini-2.5-pro", false)];
    // A name that the list does not have is known all the same, also one with a slash in it.
    let knows = |model: &str| model.starts_with("openai/") || model == "meta-llama/llama-3";
    let door = Door::with(Setup { models, knows_model: std::sync::Arc::new(knows), ..Setup::default() });
    let workspace = door.workspace().await;
    let (chat, _) = door.chat(&workspace).await;
    let (chats, schedules) = (format!("{workspace}/chats"), format!("{workspace}/schedules"));
    let due = |action: Value| json!({ "name": "n", "rrule": "FREQ=DAILY", "action": action });
    let requests = |model: &str| {
        [
            ("POST", chats.clone(), "model", json!({ "goal": "Go", "model": model })),
            ("PATCH", chat.clone(), "model", json!({ "model": model })),
            ("POST", schedules.clone(), "action.model", due(json!({ "kind": "chat", "goal": "Go", "model": model }))),
            ("POST", schedules.clone(), "action.model", due(json!({ "kind": "daily_brief", "model": model }))),
        ]
    };
    door.take_messages().await;
    for name in ["nonsense", "gpt5", "nobody/nothing", "scripted/none"] {
        for (method, path, field, body) in requests(name) {
            let refused = door.json(method, &path, body).await.refuses(400, "INVALID_ARGUMENT");
            let error = &refused.json["error"];
            assert_eq!(error["details"]["field"], field, "{path}: {error}");
            assert!(error["message"].as_str().unwrap().contains(name), "{error}");
            let hint = error["hint"].as_str().unwrap();
            assert!(hint.contains("openai/gpt-5-mini") && !hint.contains("gemini"), "{hint}");
        }
    }
    assert!(door.take_messages().await.is_empty(), "a refused request sends nothing");
    for name in ["openai/gpt-5-mini", "openai/a-name-of-its-own", "meta-llama/llama-3"] {
        for (method, path, _, body) in requests(name) {
            door.json(method, &path, body).await.is(202);
        }
    }
}

#[tokio::test]
async fn a_persona_for_a_model_that_there_is_not_begins_no_chat() {
    let door = Door::open();
    let workspace = door.workspace().await;
    for (name, model) in [("lost", "nobody/small"), ("found", "openai/small")] {
        let text = format!("---\ndescription: x\nmodel: {model}\n---\nYou look.\n");
        door.file(&workspace, &format!("/system/agents/{name}/AGENT.md"), text.as_str()).await;
    }
    door.take_messages().await;
    let chats = format!("{workspace}/chats");
    for body in [
        json!({ "goal": "Go", "role": "lost" }),
        json!({ "goal": "Go", "scenario": "parallel_agents", "agents": ["found", "lost"] }),
    ] {
        let refused = door.json("POST", &chats, body.clone()).await.refuses(422, "UNPROCESSABLE");
        let error = &refused.json["error"];
        assert_eq!(error["details"]["field"], "role", "{body}: {error}");
        assert!(error["message"].as_str().unwrap().contains("nobody/small"), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("GET /api/v1/models"), "{error}");
    }
    assert!(door.take_messages().await.is_empty(), "a refused request sends nothing");
    let faults =
        async |name: &str| door.get(&format!("{workspace}/agents/{name}")).await.is(200).json["faults"].clone();
    assert_eq!(faults("lost").await[0]["line"], 3);
    assert!(faults("found").await.as_array().is_none_or(Vec::is_empty));
    door.json("POST", &chats, json!({ "goal": "Go", "role": "found" })).await.is(202);
    door.json("POST", &chats, json!({ "goal": "Go", "role": "lost", "model": "openai/small" })).await.is(202);
}

#[tokio::test]
async fn a_history_shows_messages_without_the_parts_that_only_models_read() {
    let door = Door::open();
    let (chat, _) = door.chat(&door.workspace().await).await;
    let (id, call_id) = (MessageId(Uuid::nil()), CallId(Uuid::nil()));
    let at = Timestamp::from_millis(0);
    let call = ToolCall { call_id, tool: "ls".into(), args: "{}".into() };
    let said = |message| ChatEvent::MessageAdded { message };
    let events = vec![
        said(Message::User {
            id,
            at,
            content: "Look".into(),
            files: vec!["/a.md".parse().unwrap()],
            context: "only for models".into(),
            user_id: None,
        }),
        said(Message::Assistant {
            id,
            at,
            content: "I look".into(),
            calls: vec![call],
            reasoning: "First, look".into(),
            provider: json!({ "signature": "only for models" }),
        }),
        ChatEvent::Observed {
            call_id,
            tool: "ls".into(),
            output: "/a.md".into(),
            success: true,
            misuse: false,
            code: None,
            resources: None,
            truncated: false,
            seen: Vec::new(),
            at,
        },
        said(Message::System { id, at, content: "[System: Response was interrupted]".into() }),
    ];
    door.put_events(&chat, events).await;
    let all = door.get(&chat).await.is(200);
    let roles = |reply: &crate::support::Reply| -> Vec<String> {
        let messages = reply.json["messages"].as_array().unwrap().iter();
        messages.map(|message| format!("{} {}", message["seq"], message["role"].as_str().unwrap())).collect()
    };
    assert_eq!(roles(&all), ["1 user", "2 assistant", "3 tool", "4 system"]);
    assert!(!all.json.to_string().contains("only for models"), "{:#}", all.json);
    assert_eq!(all.json["last_seq"], 4);
    assert_eq!(roles(&door.get(&format!("{chat}?after=3")).await.is(200)), ["4 system"]);
    let back = door.get(&format!("{chat}?before=4&limit=200")).await.is(200);
    assert_eq!(roles(&back), ["1 user", "2 assistant", "3 tool"], "the end of the part before, oldest first");
    assert_eq!(back.json.get("next_before"), None, "and there is nothing before it");
    let newest = door.get(&format!("{chat}?before=9223372036854775807")).await.is(200);
    assert_eq!(roles(&newest).len(), 4);
    door.get(&format!("{chat}?before=4&after=1")).await.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn events_begin_where_they_should_and_end_with_the_server() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let (chat, id) = door.chat(&workspace).await;
    let at = Timestamp::from_millis(0);
    let events = (0..3).map(|n| ChatEvent::Paused { reason: format!("reason {n}"), at }).collect();
    door.put_events(&chat, events).await;
    let first = |after: &'static str| {
        let uri = format!("{chat}/events{after}");
        let door = &door;
        async move {
            let response = door.send(Request::get(uri).body(Body::empty()).unwrap()).await;
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()["content-type"], "text/event-stream");
            assert_eq!(response.headers()["x-accel-buffering"], "no");
            assert!(response.headers().contains_key("x-request-id"));
            let bytes = response.into_body().into_data_stream().next().await.unwrap().unwrap();
            String::from_utf8_lossy(&bytes).lines().next().unwrap().to_owned()
        }
    };

    assert_eq!(first("").await, "id: 3", "live, as no turn runs");
    door.put_view(&chat, json!({ "status": "running", "turn_seq": 2 })).await;
    assert_eq!(first("").await, "id: 1", "at the start of the running turn");
    assert_eq!(first("?after=2").await, "id: 2");
    assert_eq!(first("?after=0&protocol=native").await, "id: 0");
    let refused = door.get(&format!("{chat}/events?protocol=ag-ui")).await.refuses(400, "INVALID_ARGUMENT");
    let hint = refused.json["error"]["hint"].to_string();
    assert!(hint.contains("supported: native;") && hint.contains("ai-sdk"), "{hint}");
    door.get(&format!("{}/events", chat.replace(&id, "019bf537-f228-7cd3-aa1c-3da8af302e12")))
        .await
        .refuses(404, "NOT_FOUND");

    let response = door.send(Request::get(format!("{chat}/events")).body(Body::empty()).unwrap()).await;
    door.shutdown.cancel();
    let all = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    assert!(String::from_utf8_lossy(&all).contains("retry: "));
}

#[tokio::test]
async fn a_chat_asks_for_no_more_than_the_configuration_allows() {
    let door = Door::open();
    let workspace = door.workspace().await;
    door.take_messages().await;
    let limits = json!({ "max_steps": 100_000, "max_tokens": 7, "max_cost_usd": 1e12 });
    door.json("POST", &format!("{workspace}/chats"), json!({ "goal": "x", "limits": limits })).await.is(202);
    let sent = door.take_messages().await.concat();
    for part in ["\"max_steps\":200,", "\"max_tokens\":7,", "\"max_cost_usd\":20.0"] {
        assert!(sent.contains(part), "{part} is not in {sent}");
    }
}

#[tokio::test]
async fn the_settings_of_the_model_are_bounded_and_shown() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let (chat, _) = door.chat(&workspace).await;
    let chats = format!("{workspace}/chats");
    door.take_messages().await;
    for (name, value) in [("temperature", json!(2.5)), ("top_p", json!(-1)), ("max_output_tokens", json!(0))] {
        let settings = json!({ name: value });
        let new = json!({ "goal": "x", "model_settings": settings });
        for (method, path, body) in [("POST", &chats, new), ("PATCH", &chat, json!({ "model_settings": settings }))] {
            let refused = door.json(method, path, body).await.refuses(400, "INVALID_ARGUMENT");
            assert_eq!(refused.json["error"]["details"]["field"], format!("model_settings.{name}"));
        }
    }
    assert!(door.take_messages().await.is_empty(), "a refused request sends nothing");
    let settings = json!({ "temperature": 0.2, "max_output_tokens": 500 });
    let made = door.json("POST", &chats, json!({ "goal": "x", "model_settings": settings })).await.is(202);
    let shown = door.get(&format!("{chats}/{}", made.text("chat_id"))).await.is(200);
    assert_eq!(shown.json["model_settings"], settings);
    door.json("PATCH", &chat, json!({ "model_settings": {} })).await.is(202);
    let sent = door.take_messages().await.concat();
    for part in [r#""model_settings":{"temperature":0.2,"max_output_tokens":500}"#, r#""model_settings":{}"#] {
        assert!(sent.contains(part), "{part} is not in {sent}");
    }
}
