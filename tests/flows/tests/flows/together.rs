//! Many tasks at once, and the failures of a stage, on a real hub.
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{Code, FilePath, Status, TaskId, TaskView};
use flows::{Hub, until};
use ports::{Key, Query};
use serde_json::json;

const ECHO: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none, remember: {store: task, key: said}}
  - {id: work, kind: deterministic, role: linear, context: mine, op: {expr: "{'said': input.word, 'seen': context.items.map(item, item.content.word)}"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: work}, {from: work, to: end}]
"#;
const MEMORY: &str = "
context_profiles:
  - {id: mine, max_tokens: 500, retrieval_policy: recency, sources: [{store: task}]}
";
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_8_tasks_that_run_at_once_see_nothing_of_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.flow("echo", [("workflow.yaml", ECHO), ("memory.yaml", MEMORY)]).await;
    let mut tasks = Vec::new();
    for number in 0..30 {
        let word = format!("word {number}");
        tasks.push((hub.create("echo", json!({ "word": word })).await.unwrap(), word));
    }
    for (task, word) in tasks {
        let view = hub.finished(task).await;
        assert_eq!(view.output, Some(json!({ "said": word, "seen": [word] })));
        assert_eq!((view.status, view.steps), (Status::Success, 3));
    }
    hub.close().await;
}

/// An agent and a person remember, the one under a key of its own; the last node tells the memories that it is given.
const ASKED: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: voice, kind: agent, role: linear, agent_id: voice, context: none, prompt: Speak., remember: {store: task, key: "said-{{input}}"}}
  - {id: person, kind: deterministic, role: linear, context: none, remember: {store: task},
     ask: {questions: [{name: colour, question: "Which colour?"}]}}
  - {id: tell, kind: deterministic, role: linear, context: mine, op: {expr: "context.items.map(item, {'key': item.key, 'is': item.content})"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: voice}, {from: voice, to: person}, {from: person, to: tell}, {from: tell, to: end}]
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_agents_and_people_are_remembered_before_the_next_node_begins() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: [{steps: [{text: hello}]}]").await;
    let agents = "agents: [{id: voice, system: You are a voice.}]";
    hub.flow("asked", [("workflow.yaml", ASKED), ("memory.yaml", MEMORY), ("agents.yaml", agents)]).await;
    let task = hub.create("asked", json!("x")).await.unwrap();
    hub.answer(task, "person", json!({ "colour": "blue" })).await;
    let view = hub.finished(task).await;
    let of_person = json!({ "key": "person", "is": { "colour": "blue" } });
    assert_eq!(view.output, Some(json!([of_person, { "key": "said-x", "is": "hello" }])), "{:?}", view.error);
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_a_step_that_has_ended_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let flow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: one, kind: deterministic, role: linear, context: none, ask: {approve: One?}}
  - {id: two, kind: deterministic, role: linear, context: none, ask: {approve: Two?}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: one}, {from: one, to: two}, {from: two, to: end}]
";
    hub.flow("asks", [("workflow.yaml", flow)]).await;
    let task = hub.create("asks", json!(1)).await.unwrap();
    hub.answer(task, "one", json!({ "approved": true })).await;
    hub.until(task, |view| view.node.as_ref().is_some_and(|node| node.as_str() == "two")).await;
    let answers = serde_json::Map::from_iter([("approved".to_owned(), json!(false))]);
    let again = engine::Answers { answers, may_approve: true };
    let refused = hub.tasks.answer(hub.workspace, task, "one", again, hub.command(), &hub.by).await.unwrap_err();
    assert_eq!(refused.code, Code::Conflict);
    hub.answer(task, "two", json!({ "approved": true })).await;
    assert_eq!(hub.finished(task).await.status, Status::Success);
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_may_be_named_like_the_comment_of_an_approval() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let flow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - id: one
    kind: deterministic
    role: linear
    context: none
    ask: {questions: [{name: comment, question: Why?}], timeout_seconds: 9000, default: {comment: for no reason}}
  - {id: two, kind: deterministic, role: linear, context: none, ask: {approve: Two?}}
  - {id: three, kind: deterministic, role: linear, context: none, ask: {approve: Three?}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: one}, {from: one, to: two}, {from: two, to: three}, {from: three, to: end}]
";
    hub.flow("asks", [("workflow.yaml", flow)]).await;
    let task = hub.create("asks", json!(1)).await.unwrap();
    let refused = async |node: &str, answers: serde_json::Value| {
        let answers = engine::Answers { answers: answers.as_object().unwrap().clone(), may_approve: true };
        let answered = hub.tasks.answer(hub.workspace, task, node, answers, hub.command(), &hub.by).await;
        answered.unwrap_err().code
    };
    assert_eq!(refused("one", json!({})).await, Code::InvalidArgument);
    assert_eq!(refused("two", json!({ "approved": true, "comment": 5 })).await, Code::InvalidArgument);
    hub.answer(task, "one", json!({ "comment": "because" })).await;
    hub.answer(task, "two", json!({ "approved": true, "comment": "well done" })).await;
    hub.answer(task, "three", json!({ "approved": true, "comment": null })).await;
    let view = hub.finished(task).await;
    assert_eq!((view.status, view.output), (Status::Success, Some(json!({ "comment": "because" }))));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_answer_tells_the_question_as_it_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let flow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: one, kind: deterministic, role: linear, context: none, ask: {approve: 'Ship {{input}}?'}}
  - {id: two, kind: deterministic, role: linear, context: none, ask: {approve: 'And {{input}}?'}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: one}, {from: one, to: two}, {from: two, to: end}]
";
    hub.flow("asks", [("workflow.yaml", flow)]).await;
    let task = hub.create("asks", json!("ten bolts")).await.unwrap();
    hub.until(task, |view| !view.waiting_for.is_empty()).await;
    let hint = async |node| {
        let answers = engine::Answers { answers: serde_json::Map::new(), may_approve: true };
        let refused = hub.tasks.answer(hub.workspace, task, node, answers, hub.command(), &hub.by).await.unwrap_err();
        (refused.code, refused.hint)
    };
    assert_eq!(hint("one").await, (Code::InvalidArgument, Some("Ship ten bolts?".into())));
    let not_now = (Code::InvalidArgument, Some("the task does not ask this now".to_owned()));
    assert_eq!(hint("two").await, not_now);
    hub.answer(task, "one", json!({ "approved": true })).await;
    hub.until(task, |view| view.waiting_for.iter().any(|asked| asked["data"]["node"] == "two")).await;
    assert_eq!(hint("one").await, not_now, "it was answered");
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_task_is_gone_with_all_below_it_its_artifacts_and_the_chats_of_its_agents() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: [{steps: [{text: hello}]}]").await;
    let flow = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: "input"}}
  - {id: voice, kind: agent, role: linear, agent_id: voice, context: none, prompt: Speak.}
  - {id: person, kind: deterministic, role: linear, context: none, ask: {approve: Good?}}
  - {id: join, kind: deterministic, role: merge, context: none}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: each}, {from: each, to: voice}, {from: voice, to: person}, {from: person, to: join}, {from: join, to: end}]
"#;
    let agents = "agents: [{id: voice, system: You are a voice.}]";
    hub.flow("each", [("workflow.yaml", flow), ("agents.yaml", agents)]).await;
    // One that waits for people, and one that has ended.
    for ends in [false, true] {
        let task = hub.create("each", json!([1, 2])).await.unwrap();
        let asks = || async {
            let children = hub.children(task).await;
            let asked = |child: &TaskView| child.node.as_ref().is_some_and(|node| node.as_str() == "person");
            (children.len() == 2 && children.iter().all(asked)).then_some(children)
        };
        let children = until(asks).await;
        let listed = async |id: TaskId| {
            let chat = engine::machine::chat_of(id, &"voice".into(), 0);
            let view = hub.table.get(&Key::new(format!("{}/chats", hub.workspace), chat.to_string())).await.unwrap();
            (hub.tasks.get(hub.workspace, id).await.is_ok(), view.is_some())
        };
        let first = children[0].task_id;
        assert_eq!(listed(first).await, (true, true));
        let refused = hub.tasks.delete(hub.workspace, first, hub.command(), &hub.by).await.unwrap_err();
        assert_eq!(refused.code, Code::Conflict, "it goes with the task that made it");
        let kept = FilePath::parse(&format!("/tasks/{first}")).unwrap();
        let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
        if ends {
            for child in &children {
                hub.answer(child.task_id, "person", json!({ "approved": true })).await;
            }
            hub.finished(task).await;
            // The children archive their artifacts after they have told their parent.
            until(|| async { files.stat(&kept).await.ok() }).await;
        }
        hub.tasks.delete(hub.workspace, task, hub.command(), &hub.by).await.unwrap();
        assert!(hub.tasks.get(hub.workspace, task).await.is_err(), "at once");
        for child in &children {
            until(|| async { (listed(child.task_id).await == (false, false)).then_some(()) }).await;
        }
        until(|| async { files.stat(&kept).await.is_err().then_some(()) }).await;
        let all = engine::TaskFilter::default();
        assert!(hub.tasks.list(hub.workspace, &all, 10, None).await.unwrap().tasks.is_empty());
    }
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s7_1_a_stage_fails_of_schemas_of_routes_and_of_misused_tools_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let schema = r#"{ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] }"#;
    let flow = |middle: &str| {
        format!(
            "nodes:
  - {{id: begin, kind: deterministic, role: start, context: none}}
  - {middle}
  - {{id: end, kind: deterministic, role: exit, context: none}}
  - {{id: other, kind: deterministic, role: exit, context: none}}
edges: [{{from: begin, to: middle}}, {{from: middle, to: end, label: one}}, {{from: middle, to: other, label: two}}]
"
        )
    };
    let linear = |middle: &str| {
        flow(middle)
            .replace("  - {id: other, kind: deterministic, role: exit, context: none}\n", "")
            .replace(", {from: middle, to: other, label: two}", "")
    };
    let tools = "tools:\n  - {id: reader, type: function, entrypoint: 'fs:read_file', permissions: {root: /projects/mine}}\n  - {id: lost, \
         entrypoint: http__lost, permissions: {allow_network: true}}\n";
    let cases = [
        (
            "input",
            linear("{id: middle, kind: deterministic, role: linear, context: none, schema_in: number}"),
            "does not fit the schema number",
        ),
        (
            "output",
            linear(
                "{id: middle, kind: deterministic, role: linear, context: none, op: {expr: \"{'n': 'x'}\"}, schema_out: number}",
            ),
            "does not fit the schema number",
        ),
        (
            "route",
            flow(
                "{id: middle, kind: deterministic, role: decision, context: none, op: {expr: \"{'selected_edge': 'three'}\"}}",
            ),
            "selected no edge",
        ),
        (
            "misuse",
            linear(
                "{id: middle, kind: deterministic, role: linear, context: none, tools: [reader], op: {tool: reader, args: {path: /projects/yours/secret.md}}}",
            ),
            "/projects/mine",
        ),
        (
            "no_tool",
            linear("{id: middle, kind: deterministic, role: linear, context: none, tools: [lost], op: {tool: lost}}"),
            "there is no tool",
        ),
        ("context", linear("{id: middle, kind: deterministic, role: linear, context: mine}"), "is denied by no_memory"),
    ];
    let rule = "rules: [{id: no_memory, target: context, names: [task], allow: false}]\n";
    for (name, workflow, told) in cases {
        let files = [("workflow.yaml", workflow.as_str()), ("schemas/number.json", schema), ("tools.yaml", tools)];
        hub.flow(name, files).await;
        if name == "context" {
            hub.flow(name, [("memory.yaml", MEMORY), ("policy.yaml", rule)]).await;
        }
        let view = hub.run(name, json!({ "text": "no number" })).await;
        let error = view.error.expect("it says why");
        assert_eq!(view.status, Status::Failure, "{name}");
        assert!(error.message.contains(told) || error.to_string().contains(told), "{name}: {error:?}");
    }
    hub.close().await;
}

const SQUARES: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: input}}
  - {id: square, kind: deterministic, role: linear, context: none, op: {expr: "input * input"}}
  - {id: more, kind: deterministic, role: linear, context: none, op: {expr: "input + 1"}}
  - {id: join, kind: deterministic, role: merge, context: none, op: {function: "merge:outputs"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: each}, {from: each, to: square}, {from: square, to: more}, {from: more, to: join}, {from: join, to: end}]
"#;

/// How many entries the log of a task has.
async fn entries(hub: &Hub, task: TaskId) -> usize {
    let log = Query::prefix(engine::machine::actor_id(hub.workspace, task).as_str(), "log/", 100);
    hub.table.query(&log).await.unwrap().items.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subtask_whose_nodes_only_compute_is_one_entry_or_one_more_for_each_that_takes_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.flow("squares", [("workflow.yaml", SQUARES)]).await;
    let view = hub.run("squares", json!([1, 2, 3])).await;
    assert_eq!((view.output, view.status), (Some(json!([2, 5, 10])), Status::Success));
    let children = hub.children(view.task_id).await;
    assert_eq!(children.len(), 3);
    for child in children {
        let entries = entries(&hub, child.task_id).await;
        assert!(child.steps == 2 && (1..=3).contains(&entries), "{entries} entries, {} steps", child.steps);
    }
    hub.close().await;
}

const LOOKS: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: look, kind: deterministic, role: linear, context: none, tools: [read], op: {tool: read, args: {path: '{{input.path}}'}}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: look}, {from: look, to: end}]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_sees_the_home_of_the_person_who_started_it_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let tools = "tools: [{id: read, entrypoint: 'fs:read_file'}]";
    hub.flow("looks", [("workflow.yaml", LOOKS), ("tools.yaml", tools)]).await;
    let other = uuid::Uuid::from_u128(1 << 90);
    hub.write(&format!("/users/{other}/draft.md"), "heliotrope").await;
    hub.write(&format!("/users/{}/draft.md", hub.by.user()), "lilac").await;
    let looked =
        async |path: String| hub.run("looks", json!({ "path": path })).await.output.unwrap_or_default().to_string();
    let own = looked(format!("/users/{}/draft.md", hub.by.user())).await;
    assert!(own.contains("lilac"), "{own}");
    let hidden = looked(format!("/users/{other}/draft.md")).await;
    let missing = looked(format!("/users/{other}/nothing.md")).await;
    assert!(hidden.contains("NOT_FOUND") && !hidden.contains("heliotrope"), "{hidden}");
    assert_eq!(hidden.replace("draft.md", ""), missing.replace("nothing.md", ""));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_view_of_a_task_is_made_of_its_log_and_bricks_no_list() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: [{steps: [{text: hello}]}]").await;
    let flow = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: end}]
"#;
    hub.flow("short", [("workflow.yaml", flow)]).await;
    let (first, second) = (hub.create("short", json!(1)).await.unwrap(), hub.create("short", json!(2)).await.unwrap());
    for task in [first, second] {
        hub.finished(task).await;
    }
    let whole = hub.tasks.get(hub.workspace, first).await.unwrap();
    let damage = async |key: Key| {
        let index = hub.table.get(&key).await.unwrap().unwrap().index;
        let (body, expect) = ("{}".to_owned(), ports::Expect::Any);
        hub.table.commit(vec![ports::Write::Put { key, body, index, expires_at: None, expect }]).await.unwrap();
    };
    let listed = async || {
        let page = hub.tasks.list(hub.workspace, &engine::TaskFilter::default(), 10, None).await.unwrap();
        page.tasks.iter().map(|task| task.task_id).collect::<Vec<_>>()
    };
    damage(Key::new(format!("{}/tasks", hub.workspace), first.to_string())).await;
    assert_eq!(hub.tasks.get(hub.workspace, first).await.unwrap(), whole);
    assert_eq!(listed().await.len(), 2);
    damage(engine::machine::actor_id(hub.workspace, first).entry_key(1)).await;
    assert_eq!(hub.tasks.get(hub.workspace, first).await.unwrap_err().code, Code::Internal);
    assert_eq!(listed().await, [second]);
    hub.close().await;
}
