//! Limits through the door: requests that put agents to work count, per person, and looking is free.

use super::world::{World, accounts, token, user_id};
use crate::support::Setup;
use buildscale_api::Auth;
use domain::{Principal, Timestamp, WorkspaceId};
use http::header::{AUTHORIZATION, HeaderName};
use identity::Allowance;
use ports::{Clock, Expect, Key, Write};
use serde_json::json;
use std::sync::Arc;
use testkit::fakes::FakeSandboxes;

#[tokio::test]
async fn requests_that_put_agents_to_work_are_counted() {
    // The fixture of a tenant makes six of them: a chat, a turn of a thread, two tasks, an evaluation and a schedule.
    let world = World::with(accounts().limited(Allowance { requests: 8, tokens: 30_000 }));
    let ann = world.tenant("ann").await;
    let chat = format!("{}/chats/{}", ann.workspace, ann.has["chat_id"]);
    let headers = || {
        let key = HeaderName::from_static("idempotency-key");
        vec![(AUTHORIZATION, format!("Bearer {}", ann.token)), (key, "one".to_owned())]
    };
    let say = r#"{"content": "more"}"#;
    for _ in 0..5 {
        world.call_with(headers(), "POST", &chat, say).await.is(202);
    }
    world.call(Some(&ann.token), "POST", &chat, say).await.is(202);
    let refused = world.call(Some(&ann.token), "POST", &chat, say).await.refuses(429, "RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), "61");
    assert_eq!(refused.json["error"]["details"]["limit"], "requests");
    assert!(refused.json["error"]["hint"].is_string());

    world.call_with(headers(), "POST", &chat, say).await.is(202);
    let flow = format!("{}/flows/{}", ann.workspace, ann.has["flow"]);
    for (target, body) in [
        (format!("{}/chats", ann.workspace), r#"{"goal": "x"}"#),
        (format!("{flow}/tasks"), "{}"),
        (format!("{flow}/evaluations"), "{}"),
        (format!("{flow}/check"), "{}"),
        (format!("{}/schedules/{}/run", ann.workspace, ann.has["schedule_id"]), ""),
        (format!("{}/tasks/{}/replay", ann.workspace, ann.has["task_id"]), "{}"),
        (format!("{}/tasks/{}/retry", ann.workspace, ann.has["task_id"]), ""),
        (format!("{}/sandbox", ann.workspace), ""),
    ] {
        world.call(Some(&ann.token), "POST", &target, body).await.refuses(429, "RATE_LIMITED");
    }
    // New times may be those of now. What ends work is never refused.
    let schedule = format!("{}/schedules/{}", ann.workspace, ann.has["schedule_id"]);
    for body in [r#"{"at": "2100-01-01T00:00:00Z"}"#, r#"{"paused": false}"#] {
        world.call(Some(&ann.token), "PATCH", &schedule, body).await.refuses(429, "RATE_LIMITED");
    }
    world.call(Some(&ann.token), "PATCH", &schedule, r#"{"paused": true}"#).await.is(202);
    world.call(Some(&ann.token), "GET", &chat, "").await.is(200);
    world.call(Some(&ann.token), "POST", &format!("{chat}/stop"), "").await.is(200);
    // Strangers use up no member's allowance, and another member has their own.
    world.call(Some(&token("eve")), "POST", &chat, say).await.refuses(404, "NOT_FOUND");
    let member = world.person_as(&ann, identity::Role::Member).await;
    world.call(Some(&token(&member)), "POST", &chat, say).await.is(202);
}

#[tokio::test]
async fn commands_of_people_are_counted_and_tools_that_look_are_free() {
    let sandboxes = Arc::new(FakeSandboxes::default());
    let auth = accounts().limited(Allowance { requests: 2, tokens: 30_000 });
    let world = World::of(Setup { auth, sandboxes: Some(sandboxes.clone()), ..Setup::default() });
    let ann = token("ann");
    let made = world.json(&ann, "POST", "/api/v1/workspaces", json!({ "name": "w" })).await.is(201);
    let id: WorkspaceId = made.text("workspace_id").parse().unwrap();
    let sandbox = sandboxes.come_up(id);
    let workspace = format!("/api/v1/workspaces/{id}");
    let tools = format!("{workspace}/tools");
    let look = json!({ "tool": "ls", "args": {} });
    let run = json!({ "tool": "exec", "args": { "words": ["make", "all"] } });
    for _ in 0..3 {
        let looked = world.json(&ann, "POST", &tools, look.clone()).await.is(200);
        assert_eq!(looked.json["success"], true, "{}", looked.json);
    }
    for _ in 0..2 {
        let ran = world.json(&ann, "POST", &tools, run.clone()).await.is(200);
        assert_eq!(ran.json["success"], true, "{}", ran.json);
    }
    let refused = world.json(&ann, "POST", &tools, run).await.refuses(429, "RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), "61");
    assert_eq!(refused.json["error"]["details"]["limit"], "requests");
    assert_eq!(sandbox.begun().len(), 2);
    // It is one allowance for commands and for all else that counts.
    let goal = json!({ "goal": "x" });
    world.json(&ann, "POST", &format!("{workspace}/chats"), goal).await.refuses(429, "RATE_LIMITED");
    world.json(&ann, "POST", &tools, look).await.is(200);
}

/// Writes the usage of a turn of this person that ended, as the machine of chats does.
async fn ended(world: &World, person: &str, (turn, ago_ms): (&str, i64), tokens: u64, of_session: bool) {
    let at = Timestamp::from_millis(world.clock.now().as_millis() - ago_ms);
    let usage = json!({ "input_tokens": tokens - 1, "output_tokens": 1, "cached_tokens": 0, "cost_usd": 0.0 });
    let id = uuid::Uuid::nil().to_string();
    let mut record = json!({ "day": &at.to_string()[..10], "chat_id": id, "turn_id": id, "model": null, "calls": 1,
        "usage": usage });
    if of_session {
        record["of_session"] = json!(true);
    }
    let under = Key::new(format!("spent/{person}"), format!("{at}/{turn}"));
    let put = Write::put(Key::new(format!("{id}/usage"), turn), record.to_string(), Expect::Any).indexed(under);
    world.door.table.commit(vec![put]).await.unwrap();
}

#[tokio::test]
async fn tokens_that_turns_used_are_counted() {
    let world = World::with(accounts().limited(Allowance { requests: 1000, tokens: 30_000 }));
    let ann = world.tenant("ann").await;
    let chat = format!("{}/chats/{}", ann.workspace, ann.has["chat_id"]);
    let say = r#"{"content": "more"}"#;
    let person = user_id("ann");
    let ended = async |ago_ms: i64, turn: &str, tokens: u64| {
        ended(&world, &person, (turn, ago_ms), tokens, false).await;
    };
    ended(61_000, "long ago", 1_000_000).await;
    ended(0, "just now", 29_999).await;
    world.call(Some(&ann.token), "POST", &chat, say).await.is(202);
    ended(0, "and now", 1).await;
    let refused = world.call(Some(&ann.token), "POST", &chat, say).await.refuses(429, "RATE_LIMITED");
    assert_eq!(refused.json["error"]["details"]["limit"], "tokens");
    assert_eq!(refused.header("retry-after"), "60");
}

#[tokio::test]
async fn without_accounts_messages_to_the_planner_chat_are_counted_and_nothing_else_is() {
    let world = World::with(Auth::loopback().limiting_sessions(Allowance { requests: 2, tokens: 30_000 }));
    let workspace = world.door.workspace().await;
    let say = async || {
        let message = json!({ "message": "Hello", "stream": false });
        world.door.json("POST", "/api/agent/stream", message).await
    };
    for _ in 0..2 {
        say().await.is(202);
        world.door.json("POST", &format!("{workspace}/chats"), json!({ "goal": "x" })).await.is(202);
    }
    let refused = say().await.refuses(429, "RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), "61");
    assert_eq!(refused.json["error"]["details"]["limit"], "requests");
    assert!(refused.json["error"]["hint"].is_string());
    world.door.json("POST", &format!("{workspace}/chats"), json!({ "goal": "x" })).await.is(202);
    world.door.get("/api/agent/stream").await.is(200);
}

#[tokio::test]
async fn without_accounts_the_tokens_of_sessions_are_counted_and_no_others() {
    let world = World::with(Auth::loopback().limiting_sessions(Allowance { requests: 1000, tokens: 30_000 }));
    world.door.workspace().await;
    let person = Principal::local().user().to_string();
    let say = async || {
        let message = json!({ "message": "Hello", "stream": false });
        world.door.json("POST", "/api/agent/stream", message).await
    };
    ended(&world, &person, ("long ago", 61_000), 1_000_000, true).await;
    ended(&world, &person, ("another chat", 0), 1_000_000, false).await;
    ended(&world, &person, ("just now", 0), 29_999, true).await;
    say().await.is(202);
    ended(&world, &person, ("and now", 0), 1, true).await;
    let refused = say().await.refuses(429, "RATE_LIMITED");
    assert_eq!(refused.json["error"]["details"]["limit"], "tokens");
    assert_eq!(refused.header("retry-after"), "60");
}

#[tokio::test]
async fn without_limits_nothing_is_counted() {
    let world = World::open();
    world.tenant("ann").await;
    let counted = ports::Query::all(format!("rate/{}", user_id("ann")), 1);
    assert!(world.door.table.query(&counted).await.unwrap().items.is_empty());
}
