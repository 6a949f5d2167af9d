//! A mode in which an agent may do more is a right: every role and every key, by every way in (spec 000 §4.2).

use super::world::{Tenant, World, token};
use crate::support::Reply;
use actor::{Content, Envelope};
use domain::{ChatCommand, Code, Error, Mode, Status, TaskEvent, Timestamp, TurnRequest, task::NodeMetrics};
use identity::{Action, Role, Scopes};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The commands to chats that the queue got since the last call.
async fn told(world: &World) -> Vec<ChatCommand> {
    let mut commands = Vec::new();
    for message in world.door.take_messages().await {
        if let Ok(Envelope { content: Content::Command { body }, .. }) = serde_json::from_str(&message) {
            commands.push(body);
        }
    }
    commands
}

struct Chat {
    path: String,
    plan: String,
}

/// A chat in plan mode with a plan of one step in version 1, and of another in version 2.
async fn planned(world: &World, tenant: &Tenant) -> Chat {
    let say = async |method: &str, path: &str, body: Value| {
        let reply = world.call(Some(&tenant.token), method, path, &body.to_string()).await;
        assert!(reply.status.is_success(), "{path}: {}", String::from_utf8_lossy(&reply.bytes));
        reply
    };
    let files = format!("{}/files", tenant.workspace);
    let path = format!("/projects/{}/plan.md", super::world::uuid());
    let plan = say("POST", &files, json!({ "path": path, "content": "- [ ] one\n" })).await.text("file_id");
    say("PUT", &format!("{files}/{plan}"), json!({ "content": "- [ ] two\n" })).await;
    let body = json!({ "goal": "plan it", "mode": "plan", "plan_id": plan });
    let made = say("POST", &format!("{}/chats", tenant.workspace), body).await;
    assert_eq!(made.text("plan_id"), plan, "the answer names the plan");
    Chat { path: format!("{}/chats/{}", tenant.workspace, made.text("chat_id")), plan }
}

#[tokio::test]
async fn a_member_without_approval_gets_no_wider_mode_by_any_way_in() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let chat = planned(&world, &ann).await;
    let mut bearers = Vec::new();
    for role in [Role::Admin, Role::Editor, Role::Member, Role::Viewer] {
        bearers.push((role.to_string(), token(&world.person_as(&ann, role).await), role.may(Action::Approve)));
    }
    let rest = Scopes::all().iter().filter(|scope| *scope != Action::Approve).collect::<Vec<_>>();
    bearers.push(("an owner's key that may not approve".into(), world.key("ann", &rest, None).await, false));
    bearers.push(("the owner".into(), ann.token.clone(), true));
    let chats = format!("{}/chats", ann.workspace);
    let build = json!({ "goal": "run", "mode": "build", "plan_id": chat.plan, "plan_v": 2 });
    let bare = json!({ "goal": "run", "mode": "build" });
    let attempts = [
        ("POST", chats.clone(), build),
        ("POST", chats, bare),
        ("PATCH", chat.path.clone(), json!({ "mode": "build" })),
        ("PATCH", chat.path.clone(), json!({ "mode": "chat" })),
        ("PATCH", chat.path.clone(), json!({ "mode": "chat", "title": "x", "model": "m" })),
        ("POST", format!("{}/approve", chat.path), json!({ "v": 2 })),
    ];
    told(&world).await;
    for (who, bearer, may) in &bearers {
        for (method, path, body) in &attempts {
            let reply = world.call(Some(bearer), method, path, &body.to_string()).await;
            let forbidden = reply.status == 403;
            assert_eq!(forbidden, !may, "{who}: {method} {path} {body}: {}", reply.json);
        }
        let sent = told(&world).await;
        assert_eq!(sent.is_empty(), !may, "{who}: to whom it is refused, for them nothing is sent to a chat: {sent:?}");
    }
}

#[tokio::test]
async fn the_chat_itself_is_told_who_may_approve() {
    // Its view may be behind, so that the API sees no wider mode where there is one.
    let world = World::open();
    let ann = world.tenant("ann").await;
    let chat = planned(&world, &ann).await;
    let member = token(&world.person_as(&ann, Role::Member).await);
    told(&world).await;
    world.door.put_view(&chat.path, json!({ "mode": "build" })).await;
    world.call(Some(&member), "PATCH", &chat.path, r#"{"mode": "chat"}"#).await.is(202);
    world.call(Some(&ann.token), "PATCH", &chat.path, r#"{"mode": "chat"}"#).await.is(202);
    let rights = told(&world).await.into_iter().map(|command| match command {
        ChatCommand::Configure { mode: Some(Mode::Chat), may_approve, .. } => may_approve,
        other => panic!("{other:?}"),
    });
    assert_eq!(rights.collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
async fn a_message_says_whether_it_comes_from_somebody_who_may_approve() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let chat = planned(&world, &ann).await;
    let member = token(&world.person_as(&ann, Role::Member).await);
    // In each mode: where no plan is carried out, granted rules count.
    for mode in ["chat", "build"] {
        world.door.put_view(&chat.path, json!({ "mode": mode })).await;
        told(&world).await;
        let chats = chat.path.rsplit_once('/').unwrap().0;
        for bearer in [&member, &ann.token] {
            world.call(Some(bearer), "POST", &chat.path, r#"{"content": "run it"}"#).await.is(202);
            world.call(Some(bearer), "POST", chats, r#"{"goal": "run it"}"#).await.is(202);
        }
        let rights = told(&world).await.into_iter().map(|command| match command {
            ChatCommand::StartTurn(request) => (request.create.is_some(), request.may_approve),
            other => panic!("{other:?}"),
        });
        let rights: BTreeSet<_> = rights.collect();
        assert_eq!(rights, [(false, false), (false, true), (true, false), (true, true)].into(), "{mode}");
    }
}

#[tokio::test]
async fn an_answer_says_whether_it_comes_from_somebody_who_may_approve() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let chat = planned(&world, &ann).await;
    let member = token(&world.person_as(&ann, Role::Member).await);
    let id = super::world::uuid();
    let question = json!({ "name": "colour", "question": "Which?", "schema": { "type": "string" } });
    let asked = json!({ "event": "question", "data": { "question_id": id, "questions": [question] } });
    world.door.put_view(&chat.path, json!({ "mode": "build", "waiting_for": [asked] })).await;
    told(&world).await;
    for bearer in [&member, &ann.token] {
        let path = format!("{}/answers/{id}", chat.path);
        world.call(Some(bearer), "POST", &path, r#"{"answers": {"colour": "red"}}"#).await.is(202);
    }
    let rights = told(&world).await.into_iter().map(|command| match command {
        ChatCommand::Answer { may_approve, .. } => may_approve,
        other => panic!("{other:?}"),
    });
    assert_eq!(rights.collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
async fn messages_answers_and_schedules_say_whether_their_senders_may_run_flows() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let chat = planned(&world, &ann).await;
    let id = super::world::uuid();
    let question = json!({ "name": "colour", "question": "Which?", "schema": { "type": "string" } });
    let asked = json!({ "event": "question", "data": { "question_id": id, "questions": [question] } });
    world.door.put_view(&chat.path, json!({ "waiting_for": [asked] })).await;
    let chats = chat.path.rsplit_once('/').unwrap().0;
    let talks = world.key("ann", &[Action::Read, Action::Converse], None).await;
    let runs = world.key("ann", &[Action::Read, Action::Converse, Action::Run], None).await;
    told(&world).await;
    for (bearer, may) in [(&talks, false), (&runs, true)] {
        world.call(Some(bearer), "POST", chats, r#"{"goal": "write it"}"#).await.is(202);
        world.call(Some(bearer), "POST", &chat.path, r#"{"content": "write it"}"#).await.is(202);
        let path = format!("{}/answers/{id}", chat.path);
        world.call(Some(bearer), "POST", &path, r#"{"answers": {"colour": "red"}}"#).await.is(202);
        let rights = told(&world).await.into_iter().map(|command| match command {
            ChatCommand::StartTurn(TurnRequest { may_not_run, .. }) | ChatCommand::Answer { may_not_run, .. } => {
                !may_not_run
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(rights.collect::<Vec<_>>(), [may; 3]);
        let action = json!({ "kind": "chat", "goal": "write it" });
        let schedule = json!({ "name": "n", "rrule": "FREQ=DAILY", "action": action });
        world.json(bearer, "POST", &format!("{}/schedules", ann.workspace), schedule).await.is(202);
        let made = world.door.take_messages().await.concat();
        assert_eq!(made.contains(r#""may_not_run":true"#), !may, "{made}");
    }
}

#[tokio::test]
async fn an_approval_names_a_version_that_the_plan_still_says() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let chat = planned(&world, &ann).await;
    let approve = async |body: Value| -> Reply {
        world.call(Some(&ann.token), "POST", &format!("{}/approve", chat.path), &body.to_string()).await
    };
    approve(json!({})).await.refuses(400, "INVALID_ARGUMENT");
    approve(json!({ "v": 9 })).await.refuses(404, "NOT_FOUND");
    let stale = approve(json!({ "v": 1 })).await.refuses(412, "STALE_VERSION");
    assert_eq!(stale.json["error"]["details"]["current_v"], 2);
    approve(json!({ "v": 2, "plan_id": ann.has["file_id"] })).await.refuses(422, "UNPROCESSABLE");
    // A tick is no change of the plan.
    let file = format!("{}/files/{}", ann.workspace, chat.plan);
    let ticked = json!({ "content": "- [x] two\n" }).to_string();
    world.call(Some(&ann.token), "PUT", &file, &ticked).await.is(200);
    told(&world).await;
    let accepted = approve(json!({ "v": 2 })).await.is(202);
    let sent = told(&world).await;
    let [ChatCommand::StartTurn(TurnRequest { content, context, approval: Some(approval), .. })] = &sent[..] else {
        panic!("an approval starts the work: {sent:?}")
    };
    assert!(content.contains("is approved in version 2"), "{content}");
    assert!(context.contains("- [x] two"), "the plan comes along: {context}");
    assert_eq!((approval.v, approval.plan_id.to_string()), (2, chat.plan.clone()));
    assert_eq!(approval.by, format!("user:{}", super::world::user_id("ann")));
    assert_eq!(accepted.text("status"), "queued");
}

#[tokio::test]
async fn a_chat_that_begins_in_build_mode_says_which_version_is_approved() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let chat = planned(&world, &ann).await;
    let chats = format!("{}/chats", ann.workspace);
    let make = async |body: Value| world.call(Some(&ann.token), "POST", &chats, &body.to_string()).await;
    let goal = "build";
    make(json!({ "goal": goal, "mode": "build" })).await.refuses(400, "INVALID_ARGUMENT");
    make(json!({ "goal": goal, "mode": "build", "plan_id": chat.plan })).await.refuses(400, "INVALID_ARGUMENT");
    make(json!({ "goal": goal, "plan_id": chat.plan, "plan_v": 2 })).await.refuses(400, "INVALID_ARGUMENT");
    make(json!({ "goal": goal, "mode": "build", "plan_id": chat.plan, "plan_v": 1 }))
        .await
        .refuses(412, "STALE_VERSION");
    told(&world).await;
    make(json!({ "goal": goal, "mode": "build", "plan_id": chat.plan, "plan_v": 2 })).await.is(202);
    let sent = told(&world).await;
    let [ChatCommand::StartTurn(TurnRequest { create: Some(config), approval: Some(approval), .. })] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!((config.mode, approval.v), (Mode::Build, 2));
}

#[tokio::test]
async fn an_approval_of_a_flow_needs_the_right_to_approve_and_a_question_does_not() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let asks = |ask: &str| {
        format!(
            "nodes:\n  - {{id: begin, kind: deterministic, role: start, context: none}}\n  - {{id: ask, kind: deterministic, role: linear, \
             context: none, ask: {ask}}}\n  - {{id: end, kind: deterministic, role: exit, context: none}}\nedges:\n  - {{from: begin, \
             to: ask}}\n  - {{from: ask, to: end}}\n"
        )
    };
    let begun = async |name: &str, ask: &str| {
        let file = json!({ "path": format!("/system/flows/{name}/workflow.yaml"), "content": asks(ask) });
        world.json(&ann.token, "POST", &format!("{}/files", ann.workspace), file).await.is(201);
        let tasks = format!("{}/flows/{name}/tasks", ann.workspace);
        let task = world.json(&ann.token, "POST", &tasks, json!({})).await.is(202).text("task_id");
        format!("{}/tasks/{task}/answers/ask", ann.workspace)
    };
    let approval = begun("approval", "{approve: 'Publish it?'}").await;
    let question = begun("question", "{questions: [{name: colour, question: 'Which?'}]}").await;
    let scopes: Vec<_> = Scopes::all().iter().filter(|scope| *scope != Action::Approve).collect();
    let member = token(&world.person_as(&ann, Role::Member).await);
    let editor = token(&world.person_as(&ann, Role::Editor).await);
    for (bearer, may) in [(member, false), (world.key("ann", &scopes, None).await, false), (editor, true)] {
        let given = json!({ "answers": { "approved": true } });
        let reply = world.json(&bearer, "POST", &approval, given).await;
        if may {
            reply.is(202);
        } else {
            let refused = reply.refuses(403, "FORBIDDEN");
            assert_eq!(refused.json["error"]["details"]["needs"], "approve");
        }
        world.json(&bearer, "POST", &question, json!({ "answers": { "colour": "red" } })).await.is(202);
    }
}

#[tokio::test]
async fn a_re_run_that_uses_an_approval_again_needs_the_right_to_approve() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let asks = "nodes:\n  - {id: begin, kind: deterministic, role: start, context: none}\n  - {id: ask, kind: deterministic, role: linear, \
        context: none, ask: {approve: 'Publish it?'}}\n  - {id: publish, kind: deterministic, role: linear, context: none, op: {expr: input}}\n  - {id: end, \
        kind: deterministic, role: exit, context: none}\nedges:\n  - {from: begin, to: ask}\n  - {from: ask, to: publish}\n  - {from: publish, \
        to: end}\n";
    let file = json!({ "path": "/system/flows/publishes/workflow.yaml", "content": asks });
    world.json(&ann.token, "POST", &format!("{}/files", ann.workspace), file).await.is(201);
    let tasks = format!("{}/flows/publishes/tasks", ann.workspace);
    let task = world.json(&ann.token, "POST", &tasks, json!({})).await.is(202).text("task_id");
    let task = format!("{}/tasks/{task}", ann.workspace);
    // It was approved, and the node behind the approval failed.
    let (at, attempt, output, metrics) = (Timestamp::default(), 1, Value::Null, NodeMetrics::default());
    let begins = |node: &str| TaskEvent::NodeStarted { node: node.into(), attempt, retry: None, queue_ms: 0, at };
    let ends = |node: &str, status, error| {
        let (node, output, metrics) = (node.into(), output.clone(), metrics.clone());
        TaskEvent::NodeFinished { node, attempt, status, output, error, metrics, at }
    };
    let failed = Some(Error::new(Code::UpstreamUnavailable, "the server does not answer"));
    let events = vec![
        begins("ask"),
        ends("ask", Status::Success, None),
        begins("publish"),
        ends("publish", Status::Failure, failed),
    ];
    world.door.put_task_events(&task, events).await;
    world.door.put_task_view(&task, json!({ "phase": "finished" })).await;
    let scopes: Vec<_> = Scopes::all().iter().filter(|scope| *scope != Action::Approve).collect();
    let member = token(&world.person_as(&ann, Role::Member).await);
    let editor = token(&world.person_as(&ann, Role::Editor).await);
    for (bearer, may) in [(member, false), (world.key("ann", &scopes, None).await, false), (editor, true)] {
        for (from, keeps) in [("publish", true), ("end", true), ("ask", false), ("begin", false)] {
            let reply = world.json(&bearer, "POST", &format!("{task}/replay"), json!({ "from": from })).await;
            assert_eq!(reply.status == 403, keeps && !may, "from {from}: {}", reply.json);
            if keeps && !may {
                assert_eq!(reply.json["error"]["details"]["needs"], "approve");
            }
        }
        let reply = world.json(&bearer, "POST", &format!("{task}/retry"), json!({})).await;
        assert_eq!(reply.status == 403, !may, "a retry: {}", reply.json);
        if !may {
            assert_eq!(reply.json["error"]["details"]["needs"], "approve");
            assert!(reply.json["error"]["hint"].as_str().unwrap().contains("from ask"), "{}", reply.json);
        }
    }
}
