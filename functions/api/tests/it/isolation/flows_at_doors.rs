//! Tasks of flows at the doors of the protocols of clients: to lead one on, and to stop it, is the right to run flows there as everywhere.

use super::world::World;
use actor::{Content, Envelope};
use domain::{QuestionId, TaskCommand, TaskEvent, event::Question};
use identity::Action;
use serde_json::json;

#[tokio::test]
async fn a_key_without_the_scope_run_leads_no_task_on_and_stops_none_by_the_doors_of_clients() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let asks = "nodes:\n  - {id: begin, kind: deterministic, role: start, context: none}\n  - {id: ask, kind: deterministic, role: linear, \
        context: none, ask: {questions: [{name: colour, question: 'Which?'}]}}\n  - {id: end, kind: deterministic, role: exit, context: \
        none}\nedges:\n  - {from: begin, to: ask}\n  - {from: ask, to: end}\n";
    let file = json!({ "path": "/system/flows/asks/workflow.yaml", "content": asks });
    world.json(&ann.token, "POST", &format!("{}/files", ann.workspace), file).await.is(201);
    world.door.take_messages().await;
    let tasks = format!("{}/flows/asks/tasks", ann.workspace);
    let task = world.json(&ann.token, "POST", &tasks, json!({})).await.is(202).text("task_id");
    let sent = world.door.take_messages().await;
    let config = sent.iter().find_map(|message| match serde_json::from_str(message) {
        Ok(Envelope { content: Content::Command { body: TaskCommand::Start { config } }, .. }) => Some(config),
        _ => None,
    });

    let (question_id, at) = (QuestionId(super::world::uuid()), config.as_ref().unwrap().created_at);
    let schema = json!({ "type": "string" });
    let question = Question { name: "colour".into(), question: "Which?".into(), schema, buttons: None };
    let questions = vec![question];
    let data = json!({ "node": "ask", "question_id": question_id, "questions": questions });
    let asked = TaskEvent::Asked { node: "ask".into(), question_id, questions, at, expires_at: None };
    let path = format!("{}/tasks/{task}", ann.workspace);
    world.door.put_task_events(&path, vec![TaskEvent::Created { config: config.unwrap() }, asked]).await;
    let waits = json!({ "phase": "suspended", "node": "ask", "waiting_for": [{ "event": "question", "data": data }] });
    world.door.put_task_view(&path, waits).await;

    let answer = json!({ "interruptId": question_id, "status": "resolved", "payload": { "colour": "red" } });
    let run = json!({
        "threadId": task, "runId": "r", "messages": [], "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "resume": [answer],
    });
    let talks = world.key("ann", &[Action::Read, Action::Converse], None).await;
    let runs = world.key("ann", &[Action::Read, Action::Converse, Action::Run], None).await;
    let (ag_ui, stop) = (format!("{}/ag-ui", ann.workspace), format!("{}/ai-sdk/chat/{task}/stop", ann.workspace));
    for (door, body, sends) in [(&ag_ui, run.to_string(), "red"), (&stop, String::new(), "stop_id")] {
        let refused = world.call(Some(&talks), "POST", door, &body).await.refuses(403, "FORBIDDEN");
        assert_eq!(refused.json["error"]["details"]["needs"], "run", "{door}");
        assert!(world.door.take_messages().await.is_empty(), "{door}");
        world.call(Some(&runs), "POST", door, &body).await.is(200);
        assert!(world.door.take_messages().await.concat().contains(sends), "{door}");
    }
}
