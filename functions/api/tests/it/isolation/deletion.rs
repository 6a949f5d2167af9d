//! The end of a workspace, and of a membership: nothing of it acts later, and nobody gets it back.

use super::world::{World, token, user_id};
use domain::{ChatEvent, FilePath, PermissionRule, TaskEvent, TaskId, WorkspaceId};
use http::header;
use identity::{Action, Caller, Members, Role};
use ports::{Clock, Key, Query};
use serde_json::{Value, json};
use uuid::Uuid;

const WORKSPACES: &str = "/api/v1/workspaces";

/// Begins a thread in the person's own workspace, which is made with the first one: its path.
async fn own_workspace(world: &World, bearer: &str) -> String {
    let new = json!({ "agent": "buildscale", "cwd": "/workspace", "title": "Mine" });
    world.json(bearer, "POST", "/v1/threads", new).await.is(200);
    let listed = world.call(Some(bearer), "GET", WORKSPACES, "").await.is(200);
    let id = listed.json["workspaces"][0]["workspace_id"].as_str().unwrap().to_owned();
    format!("{WORKSPACES}/{id}")
}

#[tokio::test]
async fn a_workspace_that_is_made_again_has_nothing_that_acts_from_the_one_before() {
    let world = World::open();
    let dan = token("dan");
    let own = own_workspace(&world, &dan).await;
    let hook = json!({ "name": "mine", "url": "https://receiver.example/", "events": ["turn.ended"] });
    world.json(&dan, "POST", &format!("{own}/webhooks"), hook).await.is(201);
    let rule = PermissionRule::Command { words: vec!["make".into()], folder: FilePath::root() };
    world.door.put_standing_rule(&own, &rule).await;
    let daily = json!({ "name": "mine", "rrule": "FREQ=DAILY", "action": { "kind": "chat", "goal": "go on" } });
    world.json(&dan, "POST", &format!("{own}/schedules"), daily).await.is(202);
    world.door.take_messages().await;

    world.call(Some(&dan), "DELETE", &own, "").await.is(204);
    let sent = world.door.take_messages().await.concat();
    assert!(sent.contains(r#""command":"delete""#), "the schedule ends: {sent}");
    assert_eq!(own_workspace(&world, &dan).await, own, "the id follows from the person");
    for what in ["webhooks", "permissions"] {
        let listed = world.call(Some(&dan), "GET", &format!("{own}/{what}"), "").await.is(200);
        assert_eq!(listed.json[what], json!([]), "{what}");
    }
    let threads = world.call(Some(&dan), "GET", "/v1/threads", "").await.is(200);
    assert_eq!(threads.json["threads"].as_array().unwrap().len(), 1, "the new one alone: {}", threads.json);
}

/// The index of a table on AWS shows for a moment what has gone.
#[tokio::test]
async fn a_chat_or_a_task_that_is_listed_and_has_gone_does_not_keep_its_workspace() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let made = world.json(&ann.token, "POST", &format!("{}/chats", ann.workspace), json!({ "goal": "work" })).await;
    let chat = format!("{}/chats/{}", ann.workspace, made.is(202).text("chat_id"));
    world.door.put_view(&chat, json!({ "chat_id": Uuid::now_v7() })).await;
    let flow = format!("{}/flows/{}/tasks", ann.workspace, ann.has["flow"]);
    let made = world.json(&ann.token, "POST", &flow, json!({ "input": "x" })).await.is(202);
    let task = format!("{}/tasks/{}", ann.workspace, made.text("task_id"));
    world.door.put_task_view(&task, json!({ "task_id": Uuid::now_v7() })).await;
    world.call(Some(&ann.token), "DELETE", &ann.workspace, "").await.is(204);
}

#[tokio::test]
async fn a_workspace_that_was_not_made_keeps_nobody_from_their_own() {
    let world = World::open();
    let dan = token("dan");
    world.json(&dan, "POST", WORKSPACES, json!({ "name": " " })).await.refuses(400, "INVALID_ARGUMENT");
    world.call(Some(&dan), "POST", "/api/v1/imports", "no archive").await.refuses(400, "INVALID_ARGUMENT");
    own_workspace(&world, &dan).await;

    // A membership of nothing, as earlier versions left it.
    let caller = Caller::account(user_id("eve").parse().unwrap(), "eve".into());
    let members = Members::new(world.door.table.clone(), world.clock.clone());
    let founding = members.founding(WorkspaceId(Uuid::from_u128(1)), &caller).unwrap();
    world.door.table.commit(founding).await.unwrap();
    world.call(Some(&token("eve")), "GET", "/api/agent/stream", "").await.refuses(404, "NOT_FOUND");
    own_workspace(&world, &token("eve")).await;
    world.call(Some(&token("eve")), "GET", "/api/agent/stream", "").await.is(200);
}

#[tokio::test]
async fn the_maker_of_a_workspace_who_is_no_member_any_more_gets_nothing_of_it() {
    let world = World::open();
    let (dan, ann) = (token("dan"), token("ann"));
    let own = own_workspace(&world, &dan).await;
    let members = format!("{own}/members");
    world.json(&dan, "POST", &members, json!({ "subject": "ann", "role": "owner" })).await.is(201);
    world.call(Some(&ann), "DELETE", &format!("{members}/{}", user_id("dan")), "").await.is(204);
    let thread = world.call(Some(&ann), "GET", "/v1/threads", "").await.is(200);
    let thread = thread.json["threads"][0]["threadId"].as_str().unwrap().to_owned();
    let run = json!({ "input": "go on" });
    let new = json!({ "agent": "buildscale", "cwd": "/workspace" });
    for (method, path, body) in [
        ("GET", "/v1/threads".to_owned(), Value::Null),
        ("GET", format!("/v1/threads/{thread}"), Value::Null),
        ("GET", format!("/v1/threads/{thread}/history"), Value::Null),
        ("PATCH", format!("/v1/threads/{thread}"), json!({ "title": "Mine again" })),
        ("POST", format!("/v1/threads/{thread}/turns"), run),
        ("DELETE", format!("/v1/threads/{thread}"), Value::Null),
        ("POST", "/v1/threads".to_owned(), new),
        ("POST", "/langgraph/threads/search".to_owned(), json!({})),
    ] {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        world.call(Some(&dan), method, &path, &body).await.refuses(404, "NOT_FOUND");
    }
    world.call(Some(&ann), "GET", &format!("/v1/threads/{thread}"), "").await.is(200);
}

#[tokio::test]
async fn a_key_for_a_workspace_that_is_lost_to_it_opens_no_other_one() {
    let world = World::open();
    let dan = token("dan");
    let own = own_workspace(&world, &dan).await;
    let ann = world.tenant("ann").await;
    let members = format!("{}/members", ann.workspace);
    world.json(&ann.token, "POST", &members, json!({ "subject": "dan", "role": "editor" })).await.is(201);
    let key = world.key("dan", &[Action::Read, Action::Converse], Some(&ann.has["workspace_id"])).await;
    let threads = async || world.call(Some(&key), "GET", "/v1/threads", "").await;
    assert_eq!(threads().await.is(200).json["threads"][0]["threadId"], ann.has["thread_id"]);
    world.call(Some(&ann.token), "DELETE", &format!("{members}/{}", user_id("dan")), "").await.is(204);
    threads().await.refuses(404, "NOT_FOUND");
    let mine = world.call(Some(&dan), "GET", "/v1/threads", "").await.is(200);
    assert_eq!(mine.json["threads"][0]["title"], "Mine", "the person still has {own}");
}

#[tokio::test]
async fn a_member_who_leaves_takes_along_the_push_notifications_of_their_agents() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let dan = token(&world.person_as(&ann, Role::Member).await);
    let ask = async |bearer: &str, url: &str| {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "Hello" }] });
        let configuration = json!({ "returnImmediately": true, "taskPushNotificationConfig": { "url": url } });
        let params = json!({ "message": message, "configuration": configuration });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params }).to_string();
        let version = header::HeaderName::from_static("a2a-version");
        let headers = vec![(header::AUTHORIZATION, format!("Bearer {bearer}")), (version, "1.0".to_owned())];
        let reply = world.call_with(headers, "POST", &format!("/a2a/{}", ann.has["workspace_id"]), &body).await.is(200);
        assert_eq!(reply.json["error"], Value::Null, "{}", reply.json);
    };
    ask(&dan, "https://of-dan.example/").await;
    ask(&ann.token, "https://of-ann.example/").await;
    let key = Key::new(format!("{}/webhooks", ann.has["workspace_id"]), "all");
    let receivers = async || {
        let row = world.door.table.get(&key).await.unwrap().unwrap();
        ["of-dan", "of-ann", "receiver"].map(|name| row.body.contains(&format!("https://{name}.example/")))
    };
    assert_eq!(receivers().await, [true, true, true]);
    let at = format!("{}/members/{}", ann.workspace, user_id(&format!("{}-of-ann", Role::Member)));
    world.call(Some(&ann.token), "DELETE", &at, "").await.is(204);
    assert_eq!(receivers().await, [false, true, true], "only what the one who left configured is gone");
}

/// The configuration of a task in the message that begins it.
fn config_in(value: &Value) -> Option<&Value> {
    match value {
        Value::Object(fields) => fields.get("config").or_else(|| fields.values().find_map(config_in)),
        Value::Array(items) => items.iter().find_map(config_in),
        _ => None,
    }
}

#[tokio::test]
async fn the_work_of_somebody_who_leaves_rests_and_that_of_others_goes_on() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let dan = world.person_as(&ann, Role::Editor).await;
    let (mut chats, mut tasks) = (Vec::new(), Vec::new());
    for (bearer, name) in [(token(&dan), dan.as_str()), (ann.token.clone(), "ann")] {
        let new = json!({ "goal": "work" });
        let made = world.json(&bearer, "POST", &format!("{}/chats", ann.workspace), new).await.is(202);
        let (chat, turn) = (format!("{}/chats/{}", ann.workspace, made.text("chat_id")), Uuid::now_v7().to_string());
        let config = json!({
            "workspace": ann.has["workspace_id"], "chat": made.text("chat_id"), "user": user_id(name), "title": "",
            "role": "assistant", "context_tokens": 1000, "created_at": world.clock.now(),
        });
        let config = serde_json::from_value(config).unwrap();
        world.door.put_events(&chat, vec![ChatEvent::Created { config }]).await;
        world.door.put_view(&chat, json!({ "status": "running", "turn_id": turn })).await;
        chats.push(turn);

        world.door.take_messages().await;
        let flow = format!("{}/flows/{}/tasks", ann.workspace, ann.has["flow"]);
        let task = world.json(&bearer, "POST", &flow, json!({ "input": "x" })).await.is(202).text("task_id");
        let sent = world.door.take_messages().await;
        let sent: Vec<Value> = sent.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
        let config = serde_json::from_value(sent.iter().find_map(config_in).unwrap().clone()).unwrap();
        let path = format!("{}/tasks/{task}", ann.workspace);
        world.door.put_task_events(&path, vec![TaskEvent::Created { config }]).await;
        tasks.push(task);
    }
    let at = format!("{}/members/{}", ann.workspace, user_id(&dan));
    world.call(Some(&ann.token), "DELETE", &at, "").await.is(204);
    let sent = world.door.take_messages().await;
    let stops = |id: &str| sent.iter().any(|body| body.contains("stop_id") && body.contains(id));
    assert_eq!([stops(&chats[0]), stops(&chats[1])], [true, false], "{sent:?}");
    for (task, is_paused) in tasks.iter().zip([true, false]) {
        let id: TaskId = task.parse().unwrap();
        let actor = engine::machine::actor_id(ann.has["workspace_id"].parse().unwrap(), id);
        let rows = world.door.table.query(&Query::all(actor.as_str(), 10)).await.unwrap().items;
        let asked = rows.iter().any(|row| row.body.contains("hold_id"));
        assert_eq!(asked, is_paused, "{rows:?}");
    }
}
