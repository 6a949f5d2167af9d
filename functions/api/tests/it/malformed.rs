//! Requests that are wrong in one field: each refusal names it, and nothing that is wrong counts as left out.

use crate::{
    flows::{WORKFLOW, with_flow},
    openapi::operations,
    support::{Door, Reply, Setup},
};
use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

#[track_caller]
fn names(reply: Reply, field: &str, asked: &str) {
    let refused = reply.refuses(400, "INVALID_ARGUMENT");
    assert_eq!(refused.json["error"]["details"]["field"], field, "{asked}: {}", refused.json);
}

#[tokio::test]
async fn each_list_refuses_a_cursor_of_another_list_by_its_name() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let file = door.file(&workspace, "/projects/a.md", "one").await;
    let lists =
        ["files?path=/projects&", "files/tags/a?", "files/trash?", "members?", "chats?", "tasks?", "schedules?"];
    let lists = lists.map(|list| format!("{workspace}/{list}"));
    let beside = ["/api/v1/workspaces?".to_owned(), "/api/v1/keys?".to_owned(), format!("{file}/versions?")];
    for list in lists.into_iter().chain(beside) {
        let refused = door.get(&format!("{list}cursor=x")).await;
        assert!(refused.json["error"]["hint"].is_string(), "{list}: {}", refused.json);
        names(refused, "cursor", &list);
    }
}

#[tokio::test]
async fn a_content_is_not_given_as_it_is_for_a_parameter_that_is_not_known() {
    let door = Door::open();
    let file = door.file(&door.workspace().await, "/projects/a.md", "one").await;
    for query in ["form=markdown", "as[]=markdown", "As=markdown"] {
        door.get(&format!("{file}/content?{query}")).await.refuses(400, "INVALID_ARGUMENT");
    }
    door.get(&format!("{file}/content")).await.is(200);
}

#[tokio::test]
async fn what_a_route_does_not_know_is_refused_where_it_knows_nothing() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let file = door.file(&workspace, "/projects/a.md", "one").await;
    let (chat, _) = door.chat(&workspace).await;
    for (method, at, field) in [
        ("GET", format!("{file}?v=1"), "v"),
        ("GET", format!("{file}/versions/1?as=markdown"), "as"),
        ("GET", format!("{file}/versions/1/content?as=markdown"), "as"),
        ("DELETE", format!("{file}?purge=true"), "purge"),
        ("PUT", format!("{file}/content?as=markdown"), "as"),
        ("GET", format!("{workspace}/permissions?limit=1"), "limit"),
        ("GET", format!("{chat}/permissions?limit=1"), "limit"),
    ] {
        names(door.ask(method, &at, &[], "").await, field, &at);
    }
    door.ask("DELETE", &file, &[], "").await.is(200);
    let restore = format!("{file}/restore");
    names(door.json("POST", &restore, json!({ "path": "/projects/b.md" })).await, "path", &restore);
    door.ask("POST", &restore, &[("content-type", "text/plain")], "now").await.refuses(415, "INVALID_ARGUMENT");
    door.json("POST", &restore, json!({})).await.is(200);
}

#[tokio::test]
async fn each_route_of_the_api_refuses_a_parameter_that_it_does_not_describe_and_other_protocols_ignore_it() {
    let door = Door::open();
    let id = "019bf537-f228-7cd3-aa1c-3da8af302e12";
    let of_others = ["/ag-ui", "/ai-sdk/chat", "/{id}/stream", "/{id}/stop", "/mcp", "/mcp/callback"];
    for operation in operations() {
        let (method, path) = operation.split_once(' ').unwrap();
        let is_own = path.starts_with("/api/") && !of_others.iter().any(|end| path.ends_with(end));
        let parts = path.split('/').map(|part| match part {
            "{v}" => "1",
            part if part.starts_with('{') => id,
            part => part,
        });
        let at = format!("{}?no_such_thing=1", parts.collect::<Vec<_>>().join("/"));
        let reply = door.ask(method, &at, &[], "").await;
        let is_refused = reply.json["error"]["details"]["field"] == "no_such_thing";
        assert_eq!(is_refused, is_own, "{operation}: {} {}", reply.status, reply.json);
    }
    let workspace = door.workspace().await;
    let refused = door.get(&format!("{workspace}/events?afterr=1")).await.refuses(400, "INVALID_ARGUMENT");
    assert_eq!(refused.json["error"]["hint"], "did you mean after?");
}

#[tokio::test]
async fn a_parameter_that_is_not_in_utf8_is_refused_and_is_the_path_of_no_file() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let json = [("content-type", "application/json")];
    for name in ["caf%E9.md", "caf%E8.md", "%ff"] {
        let at = format!("{workspace}/files/by-path?path=/projects/{name}");
        names(door.ask("PUT", &at, &json, r#"{"content": "x"}"#).await, "path", &at);
        let at = format!("{workspace}/files/by-path/content?as=raw&path=/projects/{name}");
        names(door.get(&at).await, "path", &at);
    }
    let at = format!("{workspace}/files/by-path?path=/projects/caf%C3%A9.md");
    let made = door.ask("PUT", &at, &json, r#"{"content": "x"}"#).await.is(201);
    assert_eq!(made.text("path"), "/projects/café.md");
    let changes = format!("{workspace}/changes?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z");
    names(door.get(&changes).await, "until", &changes);
}

#[tokio::test]
async fn a_field_that_is_given_twice_is_named() {
    let door = Door::open();
    let chats = format!("{}/chats", door.workspace().await);
    let json = [("content-type", "application/json")];
    for (body, field) in [
        (r#"{"goal": "x", "goal": "y"}"#, "goal"),
        (r#"{"goal": "x", "limits": {"max_steps": 1, "max_steps": 2}}"#, "limits.max_steps"),
    ] {
        names(door.ask("POST", &chats, &json, body).await, field, body);
    }
}

/// serde takes an array for the fields of a type, in their order.
#[tokio::test]
async fn an_array_in_the_place_of_an_object_is_refused_at_any_depth() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    let (chats, tasks) = (format!("{workspace}/chats"), format!("{workspace}/flows/review/tasks"));
    for (at, body, field) in [
        ("/api/v1/workspaces", json!(["a"]), "body"),
        (&*chats, json!({ "goal": "x", "limits": [5, 1_000, 60_000, 1.0] }), "limits"),
        (&*tasks, json!({ "input": { "good": true }, "budget": [1_000, 1.0, 60_000] }), "budget"),
        (
            "/api/agent/stream",
            json!({ "message": "x", "conversationHistory": [["user", "y"]] }),
            "conversationHistory[0]",
        ),
        (
            &*format!("{workspace}/schedules"),
            json!({ "name": "a", "rrule": "FREQ=DAILY", "action": ["chat", { "goal": "x" }] }),
            "action",
        ),
    ] {
        names(door.json("POST", at, body.clone()).await, field, &body.to_string());
    }
}

#[tokio::test]
async fn each_door_refuses_a_key_that_is_given_twice_at_any_depth() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let (mcp, tools) = (format!("{workspace}/mcp"), format!("{workspace}/tools"));
    let json = [("content-type", "application/json"), ("a2a-version", "1.0")];
    for (at, body, field) in [
        ("/a2a", r#"{"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}, "params": {}}"#, "params"),
        (&*mcp, r#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "method": "tools/list"}"#, "method"),
        ("/langgraph/threads", r#"{"metadata": {"graph_id": "a", "graph_id": "b"}}"#, "metadata.graph_id"),
        ("/openai/v1/responses", r#"{"model": "a", "model": "b", "input": "x"}"#, "model"),
        (&*tools, r#"{"tool": "read", "args": {"path": "/a", "path": "/b"}}"#, "args.path"),
    ] {
        names(door.ask("POST", at, &json, body).await, field, body);
    }
}

#[tokio::test]
async fn the_focus_of_a_session_is_an_object_or_null() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let path = format!("/api/agent/stream?workspace_id={}", workspace.rsplit('/').next().unwrap());
    let talk = |focus: Value| json!({ "message": "Hello", "stream": false, "project_focus": focus });
    for focus in [json!("atlas"), json!(["atlas"]), json!(7), json!(true)] {
        let asked = focus.to_string();
        names(door.json("POST", &path, talk(focus)).await, "project_focus", &asked);
    }
    for focus in [json!({ "path": "/projects/atlas" }), Value::Null] {
        door.json("POST", &path, talk(focus)).await.is(202);
    }
}

#[tokio::test]
async fn a_word_of_another_type_is_named_and_a_null_is_the_usual_one() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let path = format!("/api/agent/stream?workspace_id={}", workspace.rsplit('/').next().unwrap());
    for odd in [json!(5), json!(true), json!(["steer"])] {
        let (asked, talk) = (odd.to_string(), json!({ "message": "Hello", "on_busy": odd }));
        names(door.json("POST", &path, talk).await, "on_busy", &asked);
        let chat = json!({ "goal": "x", "mode": odd });
        names(door.json("POST", &format!("{workspace}/chats"), chat).await, "mode", &asked);
    }
    let json = [("content-type", "application/json")];
    names(door.ask("POST", &path, &json, r#"{"message": "Hello", "on_busy": }"#).await, "body", "no value");
    let usual = json!({
        "message": "Hello", "session_id": null, "context_type": "project", "entity_id": null, "project_focus": null,
        "conversationHistory": null, "on_busy": null, "approve_plans": null, "stream": null,
    });
    // Nothing but the stream is refused, where a server holds none.
    let elsewhere = Door::with(Setup { has_streams: false, ..Setup::default() });
    elsewhere.workspace().await;
    elsewhere.json("POST", "/api/agent/stream", usual).await.refuses(503, "UPSTREAM_UNAVAILABLE");
}

#[tokio::test]
async fn names_that_people_see_are_refused_with_characters_that_nobody_sees() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let (chat, _) = door.chat(&workspace).await;
    for odd in ["a\u{202A}b", "a\u{202E}b", "a\u{2066}b", "a\u{2069}b", "a\u{200B}b", "a\u{7}b", "a\nb"] {
        let key = json!({ "name": odd, "scopes": ["read"] });
        let hook = json!({ "name": odd, "url": "https://receiver.example/hook", "events": ["turn.ended"] });
        let action = json!({ "kind": "chat", "goal": "x" });
        let schedule = json!({ "name": odd, "rrule": "FREQ=DAILY", "action": action });
        for (method, at, body, field) in [
            ("POST", "/api/v1/workspaces".to_owned(), json!({ "name": odd }), "name"),
            ("PATCH", workspace.clone(), json!({ "name": odd }), "name"),
            ("POST", "/api/v1/keys".to_owned(), key, "name"),
            ("POST", format!("{workspace}/webhooks"), hook, "name"),
            ("POST", format!("{workspace}/schedules"), schedule, "name"),
            ("PATCH", chat.clone(), json!({ "title": odd }), "title"),
        ] {
            names(door.json(method, &at, body).await, field, &format!("{at} {odd:?}"));
        }
    }
}

#[tokio::test]
async fn a_refusal_is_short_and_has_its_envelope_however_long_the_value() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let long = "x".repeat(900_000);
    let chats = format!("{workspace}/chats");
    for (path, body) in [
        (chats.clone(), json!({ "goal": "x", "mode": long })),
        (chats.clone(), json!({ "goal": "x", "agent": long, "cwd": "/" })),
        (chats, json!({ "goal": "x", (long.as_str()): 1 })),
        (format!("{workspace}/rewind"), json!({ "scope": { "kind": long } })),
        (format!("{workspace}/flows/review/check"), json!({ "files": { (long.as_str()): 5 } })),
    ] {
        let refused = door.json("POST", &path, body).await.refuses(400, "INVALID_ARGUMENT");
        assert!(refused.bytes.len() < 4_000, "{path}: {} bytes", refused.bytes.len());
    }
}

#[tokio::test]
async fn numbers_fit_64_bits_titles_are_one_line_and_options_may_be_null() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    let tasks = format!("{workspace}/flows/review/tasks");
    door.json("POST", &tasks, json!({ "input": { "good": true }, "budget": null })).await.is(202);
    let (chat, _) = door.chat(&workspace).await;
    let forked = door.json("POST", &format!("{chat}/fork"), json!({ "at_seq": null })).await;
    assert_ne!(forked.code(), "INVALID_ARGUMENT", "{}", forked.json);
    let tickets = format!("{workspace}/stream-tickets");
    door.json("POST", &tickets, json!({ "after": null })).await.is(201);

    let chats = format!("{workspace}/chats");
    let most = i64::MAX as u64;
    for (path, body, field) in [
        (&tasks, json!({ "budget": { "max_tokens": most + 1 } }), "budget.max_tokens"),
        (&tasks, json!({ "budget": { "max_wall_ms": 0 } }), "budget.max_wall_ms"),
        (&chats, json!({ "goal": "x", "limits": { "max_tokens": most + 1 } }), "limits.max_tokens"),
        (&chats, json!({ "goal": "x", "limits": { "max_steps": 0 } }), "limits.max_steps"),
        (&chats, json!({ "goal": "x", "limits": { "max_cost_usd": -1 } }), "limits.max_cost_usd"),
        (&tickets, json!({ "after": most + 1 }), "after"),
        (&format!("{chat}/fork"), json!({ "title": "a\nb" }), "title"),
    ] {
        names(door.json("POST", path, body.clone()).await, field, &body.to_string());
    }
    door.json("POST", &tasks, json!({ "input": { "good": true }, "budget": { "max_tokens": most } })).await.is(202);
}

#[tokio::test]
async fn a_field_of_langgraph_of_another_type_is_refused_and_not_left_out() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let (_, chat) = door.chat(&workspace).await;
    let cron = json!({ "assistant_id": "assistant", "schedule": "0 8 * * *", "input": { "messages": "Hi" } });
    let with = |field: &str, value: Value| {
        let mut cron = cron.clone();
        cron[field] = value;
        cron
    };
    let made = door.json("POST", "/langgraph/runs/crons", with("enabled", json!(null))).await.is(200);
    let place = format!("runs/crons/{}", made.text("cron_id"));
    let thread = format!("threads/{chat}");
    let checkpoint = format!("{thread}/state/checkpoint");
    for (method, path, body, field) in [
        ("POST", "runs/crons", with("enabled", json!("false")), "enabled"),
        ("POST", "runs/crons", with("config", json!("m")), "config"),
        ("PATCH", place.as_str(), json!({ "enabled": "false" }), "enabled"),
        ("POST", "runs/crons/search", json!({ "enabled": 1 }), "enabled"),
        ("POST", "store/items/search", json!({ "filter": ["x"] }), "filter"),
        ("POST", "store/namespaces", json!({ "max_depth": "2" }), "max_depth"),
        ("POST", "store/namespaces", json!({ "max_depth": 0 }), "max_depth"),
        ("POST", "threads", json!({ "metadata": "x" }), "metadata"),
        ("POST", "threads/search", json!({ "metadata": [1] }), "metadata"),
        ("POST", "threads/search", json!({ "status": "done" }), "status"),
        ("POST", checkpoint.as_str(), json!({ "checkpoint": 7 }), "checkpoint"),
        ("POST", checkpoint.as_str(), json!({ "checkpoint": { "checkpoint_id": 7 } }), "checkpoint_id"),
    ] {
        let reply = door.json(method, &format!("/langgraph/{path}"), body.clone()).await;
        names(reply, field, &format!("{method} {path} {body}"));
    }
    for (query, field) in [("status=done", "status"), ("offset=10001", "offset")] {
        names(door.get(&format!("/langgraph/{thread}/runs?{query}")).await, field, query);
    }
    door.get(&format!("/langgraph/{thread}/runs?status=success&offset=10000")).await.is(200);
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_may_send_the_headers_of_every_protocol() {
    let origins = vec!["http://localhost:5173".to_owned()];
    let door = Door::with(Setup { origins, ..Setup::default() });
    let headers = "authorization,if-match,if-range,idempotency-key,a2a-version,mcp-protocol-version,x-stainless-os";
    let asks = Request::options("/mcp")
        .header("origin", "http://localhost:5173")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", headers);
    let told = door.send(asks.body(Body::empty()).unwrap()).await;
    assert_eq!(told.headers()["access-control-allow-headers"], headers);
}
