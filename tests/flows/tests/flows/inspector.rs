//! The inspector and re-runs on a whole hub (spec 002 §10.7): a command to a task holds for its tree, a retry runs the failed nodes and no
//! others, and a re-run sees the recorded answers.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::{HoldRequest, Mailbox};
use domain::{Code, CommandId, Status, TaskEvent, TaskId, TaskPhase, TaskView};
use engine::{NewTask, RerunOptions, machine, memory};
use flow::flow::StoreKind;
use flows::{Ground, Hub, Slow, until};
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::fakes::RecordingTable;
use uuid::Uuid;

const ASKS_EACH: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: "[1, 2, 3]"}}
  - {id: ask, kind: deterministic, role: linear, context: none, ask: {approve: "Is {{input}} right?"}}
  - {id: note, kind: deterministic, role: linear, context: none, op: {expr: "input * 10"}}
  - {id: gather, kind: deterministic, role: merge, context: none, op: {expr: "input.map(one, one.output)"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: each}
  - {from: each, to: ask}
  - {from: ask, to: note}
  - {from: note, to: gather}
  - {from: gather, to: end}
"#;

/// Three subtasks that wait for people.
async fn asking(hub: &Hub) -> (TaskId, Vec<TaskId>) {
    hub.flow("asks_each", [("workflow.yaml", ASKS_EACH)]).await;
    let root = hub.create("asks_each", Value::Null).await.unwrap();
    let children = until(|| async {
        let children = hub.children(root).await;
        let all = children.len() == 3 && children.iter().all(|child| child.phase == TaskPhase::Suspended);
        all.then(|| children.iter().map(|child| child.task_id).collect::<Vec<_>>())
    })
    .await;
    (root, children)
}

async fn has_heard(hub: &Hub, task: TaskId, wanted: impl Fn(&TaskEvent) -> bool) {
    until(|| async {
        let mut heard = false;
        hub.tasks.each_event(hub.workspace, task, |_, event| heard |= wanted(event)).await.unwrap();
        heard.then_some(())
    })
    .await;
}

fn is_paused(view: &TaskView) -> bool {
    view.phase == TaskPhase::Paused
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_7_a_task_is_paused_stepped_and_resumed_with_all_below_it() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let (root, children) = asking(&hub).await;
    let (command, yes) = (|| CommandId(Uuid::now_v7()), || json!({ "approved": true }));
    hub.tasks.pause(hub.workspace, root, &[], command(), &hub.by).await.unwrap();
    hub.until(root, is_paused).await;
    for child in &children {
        has_heard(&hub, *child, |event| matches!(event, TaskEvent::PauseRequested { .. })).await;
    }
    // Each pauses before its next node.
    for child in &children[..2] {
        hub.answer(*child, "ask", yes()).await;
        let view = hub.until(*child, is_paused).await;
        assert_eq!(view.node, Some("note".into()));
    }
    // A step of the whole is one node of each that is paused; the third one waits for a person still.
    hub.tasks.step(hub.workspace, root, command(), &hub.by).await.unwrap();
    for child in &children[..2] {
        assert_eq!(hub.finished(*child).await.steps, 2);
    }
    assert!(is_paused(&hub.tasks.get(hub.workspace, root).await.unwrap()));
    // All go on.
    hub.tasks.resume(hub.workspace, root, false, command(), &hub.by).await.unwrap();
    has_heard(&hub, children[2], |event| matches!(event, TaskEvent::Continued { .. })).await;
    hub.answer(children[2], "ask", yes()).await;
    let view = hub.finished(root).await;
    assert_eq!((view.status, view.output), (Status::Success, Some(json!([10, 20, 30]))));
    let late = hub.tasks.step(hub.workspace, root, command(), &hub.by).await.unwrap_err();
    assert_eq!(late.code, Code::Conflict);
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_7_a_task_that_pauses_before_each_node_does_so_in_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.flow("asks_each", [("workflow.yaml", ASKS_EACH)]).await;
    let stepping = NewTask { stepping: true, ..NewTask::default() };
    let root = hub.create_in(hub.workspace, "asks_each", stepping).await.unwrap();
    let step = async || hub.tasks.step(hub.workspace, root, hub.command(), &hub.by).await.unwrap();
    for node in ["begin", "each"] {
        hub.until(root, |view| is_paused(view) && view.node == Some(node.into())).await;
        step().await;
    }
    until(|| async {
        let children = hub.children(root).await;
        let paused = children.iter().filter(|child| is_paused(child) && child.node == Some("ask".into()));
        (paused.count() == 3).then_some(())
    })
    .await;
    hub.tasks.stop(hub.workspace, root, hub.command(), &hub.by).await.unwrap();
    hub.finished(root).await;
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_7_a_pause_holds_the_whole_tree_before_any_message_tells_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (ground, working) = (Ground::in_memory(0, Arc::new(Slow::default())), worker::Options::default());
    let hub = Hub::on_with(ground.clone(), &folder, working).await;
    let (root, children) = asking(&hub).await;
    let (table, queue, bus) = (ground.table.clone(), ground.queue.clone(), ground.bus.clone());
    let mailbox = Mailbox { queue, table, bus };
    let hold = HoldRequest { hold_id: Uuid::now_v7(), path: vec![root.0], at: ground.clock.now() };
    let root_actor = engine::machine::actor_id(hub.workspace, root);
    // However many other requests there are.
    for number in 0..300 {
        let path = vec![root.0, Uuid::from_u128(number)];
        mailbox.hold_tree(&root_actor, &HoldRequest { hold_id: Uuid::now_v7(), path, at: hold.at }).await.unwrap();
    }
    // The item alone: no task has been told anything.
    mailbox.hold_tree(&root_actor, &hold).await.unwrap();
    hub.answer(children[0], "ask", json!({ "approved": true })).await;
    let view = hub.until(children[0], is_paused).await;
    assert_eq!(view.node, Some("note".into()), "the earlier question is answered, and nothing new begins");
    let step = async || hub.tasks.step(hub.workspace, children[0], hub.command(), &hub.by).await.unwrap();
    step().await;
    assert_eq!(hub.finished(children[0]).await.steps, 2, "a step goes on in spite of it");
    hub.tasks.resume(hub.workspace, root, false, hub.command(), &hub.by).await.unwrap();
    for child in &children[1..] {
        hub.answer(*child, "ask", json!({ "approved": true })).await;
    }
    assert_eq!(hub.finished(root).await.output, Some(json!([10, 20, 30])));
    hub.close().await;
}

/// Each subtask needs a file of its own. All that is computed says by which task it was.
const FILES: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none, remember: {store: task, key: given}}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: "input"}}
  - {id: mark, kind: deterministic, role: linear, context: none, op: {expr: "{'n': input, 'by': task.id}"}}
  - id: look
    kind: deterministic
    role: linear
    context: none
    tools: [reader]
    op: {tool: reader, args: {path: "/projects/{{input.n}}.md"}}
    schema_out: found
  - id: tell
    kind: deterministic
    role: linear
    context: mine
    op: {expr: "{'mark': outputs.mark, 'by': task.id, 'knows': context.items.map(item, item.key)}"}
  - id: gather
    kind: deterministic
    role: merge
    context: none
    merge: {strategy: all, on_failure: include}
    op: {expr: "{'all': input.map(one, one.output), 'by': task.id}"}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: each}
  - {from: each, to: mark}
  - {from: mark, to: look}
  - {from: look, to: tell}
  - {from: tell, to: gather}
  - {from: gather, to: end}
"#;
const FILES_MEMORY: &str = "
context_profiles:
  - {id: mine, max_tokens: 500, retrieval_policy: recency, sources: [{store: task}]}
";
const FILES_TOOLS: &str = "tools:\n  - {id: reader, entrypoint: read_file, permissions: {root: /projects}}\n";
const FOUND: &str = r#"{ "not": { "type": "object", "required": ["error"] } }"#;

async fn retry(hub: &Hub, of: TaskId) -> Result<TaskView, domain::Error> {
    let task = TaskId(Uuid::now_v7());
    hub.tasks.retry(hub.workspace, of, task, RerunOptions::default(), &hub.by).await?;
    Ok(hub.finished(task).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_7_a_retry_runs_only_failed_nodes_and_those_that_depend_on_them() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let files = [
        ("workflow.yaml", FILES),
        ("memory.yaml", FILES_MEMORY),
        ("tools.yaml", FILES_TOOLS),
        ("schemas/found.json", FOUND),
    ];
    hub.flow("files", files).await;
    hub.write("/projects/1.md", "one").await;
    hub.write("/projects/3.md", "three").await;
    let first = hub.run("files", json!([1, 2, 3])).await;
    assert_eq!(first.status, Status::Partial, "{first:?}");
    let output = first.output.clone().unwrap();
    assert!(output["all"][0]["by"].is_string() && output["all"][1].is_null(), "{output}");

    // Nothing has changed: it fails as it did, and everything else is as it was, with the same creator.
    let in_vain = retry(&hub, first.task_id).await.unwrap();
    assert_eq!((in_vain.status, in_vain.output), (Status::Partial, first.output.clone()));

    hub.write("/projects/2.md", "two").await;
    let again = retry(&hub, first.task_id).await.unwrap();
    let (now, child) = (again.output.clone().unwrap(), &hub.children(again.task_id).await[1]);
    assert_eq!(again.status, Status::Success, "{again:?}");
    // The siblings keep their outputs.
    for index in [0, 2] {
        assert_eq!(now["all"][index], output["all"][index]);
    }
    // Nodes before the failure are as they were, nodes after it ran, and so did those that get another input by it.
    let failed = hub.children(first.task_id).await[1].task_id;
    assert_eq!(now["all"][1]["mark"], json!({ "n": 2, "by": failed }));
    assert_eq!(now["all"][1]["by"], json!(child.task_id));
    assert_eq!(now["by"], json!(again.task_id));
    assert_eq!(now["all"][1]["knows"], json!(["given"]), "memories of recorded nodes are there");

    let refused = retry(&hub, again.task_id).await.unwrap_err();
    assert_eq!(refused.code, Code::Conflict, "nothing of it failed");
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_a_task_whose_log_is_gone_fails_and_does_nothing_a_second_time() {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::in_memory(0, Arc::new(Slow::default()));
    let hub = Hub::on(ground.clone(), &folder).await;
    let files = [
        ("workflow.yaml", FILES),
        ("memory.yaml", FILES_MEMORY),
        ("tools.yaml", FILES_TOOLS),
        ("schemas/found.json", FOUND),
    ];
    hub.flow("files", files).await;
    let first = hub.run("files", json!([1])).await;
    hub.close().await;

    let (hub, task) = (Hub::idle_on(ground.clone(), &folder).await, TaskId(Uuid::now_v7()));
    hub.tasks.retry(hub.workspace, first.task_id, task, RerunOptions::default(), &hub.by).await.unwrap();
    let recorded = engine::machine::actor_id(hub.workspace, first.task_id);
    assert!(engine::reruns::any_runs(&*hub.table, hub.workspace).await.unwrap(), "the sweep keeps the log");
    actor::ended::remove(&*hub.table, &recorded).await.unwrap();
    hub.close().await;

    let hub = Hub::on(ground, &folder).await;
    let view = hub.finished(task).await;
    assert_eq!((view.status, view.error.unwrap().code), (Status::Failure, Code::NotFound));
    assert_eq!(hub.children(task).await, []);
    assert!(!engine::reruns::any_runs(&*hub.table, hub.workspace).await.unwrap());
    hub.close().await;
}

const ASKS: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: ask, kind: deterministic, role: linear, context: none, ask: {approve: 'Really?'}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: ask}, {from: ask, to: end}]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_stopped_has_ended_and_did_not_fail() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    // A stop ends the task also where the node may fail.
    let workflow = ASKS.replace("ask: {", "continue_on_failure: true, ask: {");
    hub.flow("asks", [("workflow.yaml", workflow.as_str())]).await;
    let task = hub.create("asks", Value::Null).await.unwrap();
    hub.until(task, |view| view.phase == TaskPhase::Suspended).await;
    hub.tasks.stop(hub.workspace, task, hub.command(), &hub.by).await.unwrap();
    let view = hub.finished(task).await;
    let history = telemetry::history(&hub.tasks, hub.workspace, task, 0, 100).await.unwrap();
    let stage = history.stages.last().unwrap();
    assert_eq!((stage.node.as_str(), stage.finished_at), ("ask", view.finished_at));
    assert_eq!(stage.error.as_ref().map(|error| error.code), Some(Code::Cancelled));
    let flow = hub.tasks.flows().by_hash(hub.workspace, &view.flow).await.unwrap();
    let run_visits = hub.tasks.run_visits(&flow, hub.workspace, task, 100).await.unwrap();
    let ask = run_visits.get(&"ask".into()).unwrap();
    assert_eq!((ask.running, ask.status), (false, None));
    // A retry goes on where it was stopped.
    let goes_on = TaskId(Uuid::now_v7());
    hub.tasks.retry(hub.workspace, task, goes_on, RerunOptions::default(), &hub.by).await.unwrap();
    hub.until(goes_on, |view| view.phase == TaskPhase::Suspended).await;
    hub.answer(goes_on, "ask", json!({ "approved": true })).await;
    assert_eq!(hub.finished(goes_on).await.status, Status::Success);
    // The same run once more ends there, too.
    let again = TaskId(Uuid::now_v7());
    hub.tasks.replay(hub.workspace, task, again, None, RerunOptions::default(), &hub.by).await.unwrap();
    assert_eq!(hub.finished(again).await.error, view.error);
    let trace = async |task| telemetry::trace(&hub.tasks, hub.workspace, task).await.unwrap();
    assert_eq!(trace(again).await, trace(task).await);
    // One from a node on asks anew.
    let asks = TaskId(Uuid::now_v7());
    hub.tasks.replay(hub.workspace, task, asks, Some("end"), RerunOptions::default(), &hub.by).await.unwrap();
    hub.until(asks, |view| view.phase == TaskPhase::Suspended).await;
    hub.answer(asks, "ask", json!({ "approved": true })).await;
    assert_eq!(hub.finished(asks).await.status, Status::Success);
    hub.close().await;
}

const ASKS_SOME: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: judge, kind: deterministic, role: decision, context: none, op: {expr: "input"}}
  - {id: ask, kind: deterministic, role: linear, context: none, ask: {approve: "Really?"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: judge}
  - {from: judge, to: ask, label: asked}
  - {from: judge, to: end, label: straight}
  - {from: ask, to: end}
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_7_a_re_run_keeps_the_approvals_that_were_given_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.flow("asks_some", [("workflow.yaml", ASKS_SOME)]).await;
    let kept = async |task: TaskId, from: &str| {
        let kept = hub.tasks.kept_approvals(hub.workspace, task, from).await.unwrap();
        kept.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>()
    };
    let straight = hub.run("asks_some", json!("straight")).await;
    assert_eq!(kept(straight.task_id, "end").await, [""; 0], "the run did not come to the approval");
    let asked = hub.create("asks_some", json!("asked")).await.unwrap();
    hub.until(asked, |view| view.phase == TaskPhase::Suspended).await;
    hub.answer(asked, "ask", json!({ "approved": true })).await;
    assert_eq!(hub.finished(asked).await.status, Status::Success);
    assert_eq!(kept(asked, "end").await, ["ask"]);
    for asks_again in ["begin", "judge", "ask"] {
        assert_eq!(kept(asked, asks_again).await, [""; 0], "{asks_again}");
    }
    let stopped = hub.create("asks_some", json!("asked")).await.unwrap();
    hub.until(stopped, |view| view.phase == TaskPhase::Suspended).await;
    hub.tasks.stop(hub.workspace, stopped, hub.command(), &hub.by).await.unwrap();
    hub.finished(stopped).await;
    assert_eq!(kept(stopped, "end").await, [""; 0], "a question that was stopped is asked again");
    hub.close().await;
}

const FAILS_BEHIND: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: "input"}}
  - {id: ask, kind: deterministic, role: linear, context: none, ask: {approve: "Publish {{input}}?"}}
  - {id: publish, kind: deterministic, role: linear, context: none, op: {expr: "input"}, schema_out: number}
  - {id: gather, kind: deterministic, role: merge, context: none, op: {expr: "input.map(one, one.output)"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: each}
  - {from: each, to: ask}
  - {from: ask, to: publish}
  - {from: publish, to: gather}
  - {from: gather, to: end}
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_re_run_and_a_retry_name_the_approvals_that_they_keep_also_those_of_subtasks() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let files = [("workflow.yaml", FAILS_BEHIND), ("schemas/number.json", r#"{ "type": "number" }"#)];
    hub.flow("fails_behind", files).await;
    hub.flow("asks", [("workflow.yaml", ASKS)]).await;
    let names = |ids: Vec<domain::NodeId>| ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>();
    let by_retry = async |task: TaskId| names(hub.tasks.approvals_kept_by_retry(hub.workspace, task).await.unwrap());
    let root = hub.create("fails_behind", json!([1, "two"])).await.unwrap();
    let asked = until(|| async {
        let children = hub.children(root).await;
        let all = children.len() == 2 && children.iter().all(|child| child.phase == TaskPhase::Suspended);
        all.then(|| children.iter().map(|child| child.task_id).collect::<Vec<_>>())
    })
    .await;
    for child in asked {
        hub.answer(child, "ask", json!({ "approved": true })).await;
        hub.finished(child).await;
    }
    assert_eq!(hub.finished(root).await.status, Status::Failure, "one of both is published, and the other fails");
    assert_eq!(by_retry(root).await, ["ask"], "what failed would be published by the approval of that time");
    for (from, kept) in [("publish", &["ask"][..]), ("end", &["ask"]), ("ask", &[]), ("each", &[])] {
        assert_eq!(names(hub.tasks.kept_approvals(hub.workspace, root, from).await.unwrap()), kept, "{from}");
    }
    // One that was declined is asked for again.
    let declined = hub.create("asks", Value::Null).await.unwrap();
    hub.until(declined, |view| view.phase == TaskPhase::Suspended).await;
    hub.answer(declined, "ask", json!({ "approved": false })).await;
    assert_eq!(hub.finished(declined).await.status, Status::Failure);
    assert_eq!(by_retry(declined).await, [""; 0]);
    hub.close().await;
}

const KEEPS: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none, remember: {store: project, key: said}}
  - {id: tell, kind: deterministic, role: linear, context: ours, op: {expr: "context.items.map(item, item.content)"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: tell}, {from: tell, to: end}]
"#;
const KEEPS_MEMORY: &str = "
context_profiles:
  - {id: ours, max_tokens: 500, retrieval_policy: recency, sources: [{store: project}]}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_7_a_re_run_takes_the_recorded_context_and_remembers_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.flow("keeps", [("workflow.yaml", KEEPS), ("memory.yaml", KEEPS_MEMORY)]).await;
    let (first, second) = (hub.run("keeps", json!("a")).await, hub.run("keeps", json!("b")).await);
    assert_eq!((first.output.clone(), second.output), (Some(json!(["a"])), Some(json!(["b"]))));
    let task = TaskId(Uuid::now_v7());
    hub.tasks.replay(hub.workspace, first.task_id, task, None, RerunOptions::default(), &hub.by).await.unwrap();
    let again = hub.finished(task).await;
    assert_eq!(again.output, first.output, "later memories change nothing");
    let memory = memory::Memory::new(hub.table.clone());
    let scope = memory::Scope { workspace: hub.workspace, flow: "keeps".into(), root: task };
    let said = memory.recall(&scope, StoreKind::Project, "said").await.unwrap().unwrap();
    assert_eq!(said.content, json!("b"), "and its output is not remembered");
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_keeps_a_node_that_remembers_under_a_key_from_its_context() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let noting = "  - {id: note, kind: deterministic, role: linear, context: ours, remember: {store: task, key: 'note-{{context.items[0].key}}'}}\n  \
        - {id: fails, kind: deterministic, role: linear, context: none, op: {expr: input.nothing}}\n  - {id: end";
    let workflow = KEEPS.replace("  - {id: end", noting);
    let workflow = workflow
        .replace("{from: tell, to: end}", "{from: tell, to: note}, {from: note, to: fails}, {from: fails, to: end}");
    hub.flow("notes", [("workflow.yaml", workflow.as_str()), ("memory.yaml", KEEPS_MEMORY)]).await;
    let first = hub.run("notes", json!("a")).await;
    assert!(first.error.as_ref().unwrap().message.contains("nothing"), "{first:?}");
    let mut of = first.task_id;
    // The second one reads the log of the first one.
    for _ in 0..2 {
        let again = retry(&hub, of).await.unwrap();
        assert_eq!(again.error, first.error, "the node before it is kept");
        let memory = memory::Memory::new(hub.table.clone());
        let scope = memory::Scope { workspace: hub.workspace, flow: "notes".into(), root: again.task_id };
        assert!(memory.recall(&scope, StoreKind::Task, "note-said").await.unwrap().is_some());
        of = again.task_id;
    }
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_re_run_reads_of_the_record_what_a_node_needs_and_not_all_of_it_for_each_node() {
    const NODES: usize = 600;
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::in_memory(0, Arc::new(Slow::default()));
    let table = Arc::new(RecordingTable::new(ground.table.clone()));
    let hub = Hub::on(Ground { table: table.clone(), ..ground }, &folder).await;
    let node = |id: &str, role: &str| json!({ "id": id, "kind": "deterministic", "role": role, "context": "none" });
    let ids: Vec<String> = (0..NODES).map(|n| format!("n{n}")).collect();
    let role = |n: usize| match n {
        0 => "start",
        n if n == NODES - 1 => "exit",
        _ => "linear",
    };
    let nodes: Vec<Value> = ids.iter().enumerate().map(|(n, id)| node(id, role(n))).collect();
    let edges: Vec<Value> = ids.windows(2).map(|ends| json!({ "from": ends[0], "to": ends[1] })).collect();
    let workflow = json!({ "nodes": nodes, "edges": edges }).to_string();
    hub.flow("chain", [("workflow.json", workflow.as_str())]).await;
    let first = hub.run("chain", json!("a")).await;
    table.take_reads();
    let (task, from) = (TaskId(Uuid::now_v7()), format!("n{}", NODES - 2));
    hub.tasks.replay(hub.workspace, first.task_id, task, Some(&from), RerunOptions::default(), &hub.by).await.unwrap();
    assert_eq!(hub.finished(task).await.output, first.output);
    let record = machine::actor_id(hub.workspace, first.task_id);
    let reads = table.take_reads().into_iter().filter(|key| key.pk == record.as_str() && key.sk.starts_with("log/"));
    // Where a node begins inside of an entry, that is looked for by itself.
    let reads = reads.count();
    assert!(reads < 2 * NODES + 100, "{reads} reads for {NODES} nodes");
    hub.close().await;
}
