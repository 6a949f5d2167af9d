//! Files that start flows on a real hub (spec 001 §6): once per version, for their author, within limits that say so.
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{ActorRef, ChatId, Code, FilePath, Principal, Sha256, Status, TaskView, UserId};
use engine::TaskFilter;
use flows::{Ground, Hub, until};
use models::Scripted;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use workspace::{Expect, Writer};

const SILENT: &str = "rules: []";
const TOOLS: &str = "tools:\n- {id: put, entrypoint: write_file, permissions: {root: /data}}\n";

/// A flow that starts on `on` and writes a text to a file.
fn writes(on: &str, path: &str, content: &str) -> String {
    format!(
        "on: [{on}]
nodes:
- {{id: s, kind: deterministic, role: start, context: none}}
- {{id: note, kind: deterministic, role: linear, context: none, tools: [put], op: {{tool: put, args: {{path: {path}, content: {content}}}}}}}
- {{id: done, kind: deterministic, role: exit, context: none}}
edges: [{{from: s, to: note}}, {{from: note, to: done}}]
"
    )
}

async fn put(hub: &Hub, name: &str, workflow: &str) {
    hub.flow(name, [("workflow.yaml", workflow), ("tools.yaml", TOOLS)]).await;
}

/// The tasks of a workspace, once there are so many and all have ended; the oldest first.
async fn ended(hub: &Hub, count: usize) -> Vec<TaskView> {
    until(|| async {
        let page = hub.tasks.list(hub.workspace, &TaskFilter::default(), 100, None).await.unwrap();
        let all = page.tasks.len() >= count && page.tasks.iter().all(|task| task.finished_at.is_some());
        all.then(|| page.tasks.into_iter().rev().collect())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_starts_a_flow_once_for_its_author_with_the_file_as_input() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, SILENT).await;
    let content =
        "\"{{input.path}} {{input.v}} {{input.event}} {{input.status}} {{input.front_matter.n}} {{input.author}}\"";
    put(&hub, "note", &writes("{path: /data/in/*.md, status: ready}", "/data/out.txt", content)).await;
    let author = Principal::User { id: UserId(uuid::Uuid::from_u128(77)) };
    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let write = async |path: &str, text: &str| {
        let (path, writer) = (FilePath::parse(path).unwrap(), Writer::new(author.clone()));
        files.write(&path, text.to_owned(), Expect::Any, &writer).await.unwrap()
    };
    write("/data/in/a.md", "---\nstatus: draft\n---\n").await;
    write("/data/in/a.txt", "---\nstatus: ready\n---\n").await;
    write("/data/in/deep/a.md", "---\nstatus: ready\n---\n").await;
    let change = write("/data/in/a.md", "---\nstatus: ready\nn: 7\n---\n").await;
    write("/data/in/a.md", "---\nstatus: ready\nn: 7\n---\n").await;
    let tasks = ended(&hub, 1).await;
    assert_eq!(tasks.len(), 1, "{tasks:#?}");
    let task = &tasks[0];
    assert_eq!((task.status, task.flow.name.as_str()), (Status::Success, "note"), "{task:#?}");
    let handoff = task.handoff.clone().unwrap();
    assert_eq!((handoff.file_id, handoff.v, handoff.chain.len()), (change.file_id, 2, 0));
    assert_eq!(hub.tasks.state(hub.workspace, task.task_id).await.unwrap().config.unwrap().user, author.user());
    let told = hub.read("/data/out.txt").await.unwrap();
    assert_eq!(told, format!("/data/in/a.md 2 updated ready 7 {author}"));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_that_a_file_starts_has_not_the_home_of_its_author() {
    let folder = tempfile::tempdir().unwrap();
    let author = Principal::User { id: UserId(uuid::Uuid::from_u128(77)) };
    let draft = format!("/users/{}/draft.md", author.user());
    let read = |path: &str| json!({ "calls": [{ "tool": "read", "args": { "path": path } }] });
    let found = json!({ "text": "{{result}}", "when": { "success": true }, "else": { "text": "nothing" } });
    let rule = |word: &str, path: &str| json!({ "when": { "user": word }, "steps": [read(path), found] });
    let script = json!({ "rules": [rule("^home", &draft), rule("^shared", "/data/in.md")] });
    let hub = Hub::open(&folder, &script.to_string()).await;
    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let write = async |path: &str, text: &str| {
        let (path, writer) = (FilePath::parse(path).unwrap(), Writer::new(author.clone()));
        files.write(&path, text.to_owned(), Expect::Any, &writer).await.unwrap();
    };
    write(&draft, "a secret").await;
    // Somebody else wrote these flows: a tool and an agent look into the home of the person whose file starts them.
    let tools = "tools:\n- {id: read, entrypoint: 'fs:read_file'}\n";
    let agents = "agents: [{id: clerk, system: You are a clerk.}]";
    let flow = |node: &str| {
        format!(
            "on: [/data/in.md]\nnodes:\n- {{id: s, kind: deterministic, role: start, context: none}}\n- {{id: look, role: linear, context: none, \
             tools: [read], {node}}}\n- {{id: done, kind: deterministic, role: exit, context: none}}\nedges: [{{from: s, to: look}}, {{from: look, to: done}}]\n"
        )
    };
    for (name, node) in [
        ("by_tool", format!("kind: deterministic, op: {{tool: read, args: {{path: {draft}}}}}")),
        ("by_agent", "kind: agent, agent_id: clerk, prompt: home".to_owned()),
        ("shared", "kind: agent, agent_id: clerk, prompt: shared".to_owned()),
    ] {
        hub.flow(name, [("workflow.yaml", &*flow(&node)), ("tools.yaml", tools), ("agents.yaml", agents)]).await;
    }
    write("/data/in.md", "for all").await;
    let tasks = ended(&hub, 3).await;
    let of = |name: &str| tasks.iter().find(|task| task.flow.name == name).unwrap();
    let output = |name: &str| of(name).output.clone().unwrap_or_default().to_string();
    assert!(output("by_tool").contains("NOT_FOUND"), "{}", output("by_tool"));
    assert_eq!(output("by_agent"), "\"nothing\"");
    assert!(output("shared").contains("for all"), "{}", output("shared"));
    for task in &tasks {
        let state = hub.tasks.state(hub.workspace, task.task_id).await.unwrap();
        assert_eq!(state.config.as_ref().unwrap().user, author.user());
        assert!(!format!("{state:?}").contains("a secret"), "{}", task.flow.name);
    }
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_ends_at_the_depth_bound_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, SILENT).await;
    put(&hub, "ping", &writes("/data/ping.md", "/data/pong.md", "\"v {{input.v}}\"")).await;
    put(&hub, "pong", &writes("/data/pong.md", "/data/ping.md", "\"{{input.v}} again\"")).await;
    hub.write("/data/ping.md", "begin").await;
    let tasks = ended(&hub, 17).await;
    assert_eq!(tasks.len(), 17);
    let (last, before) = tasks.split_last().unwrap();
    assert!(before.iter().all(|task| task.status == Status::Success), "{before:#?}");
    let error = last.error.clone().unwrap();
    assert_eq!((last.status, error.code), (Status::Failure, Code::LimitReached));
    assert_eq!(error.details["cycle"], json!(["ping", "pong", "ping"]), "{error:?}");
    assert_eq!(last.handoff.as_ref().unwrap().chain.len(), 16);
    assert_eq!((last.steps, last.flow.name.as_str()), (0, "ping"), "no node of it ran");
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_may_start_nothing_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, SILENT).await;
    put(&hub, "note", &writes("/data/in/*.md", "/data/out.txt", "ran")).await;
    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let writer = Writer { may_run: false, ..Writer::new(hub.by.clone()) };
    files.write(&FilePath::parse("/data/in/a.md").unwrap(), "text", Expect::Any, &writer).await.unwrap();
    let task = ended(&hub, 1).await.remove(0);
    assert_eq!((task.status, task.error.unwrap().code, task.steps), (Status::Failure, Code::Forbidden, 0));
    assert_eq!(hub.read("/data/out.txt").await, None);

    // A flow with faults cannot run; the version that asked for it is not lost without a word.
    hub.flow("broken", [("workflow.yaml", "on: [/data/broken.md]\nnodes: []\nedges: []\n")]).await;
    hub.write("/data/broken.md", "text").await;
    let task = ended(&hub, 2).await.pop().unwrap();
    assert_eq!((task.flow.name.as_str(), task.error.unwrap().code), ("broken", Code::Unprocessable));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_whose_manifest_is_lost_holds_up_no_other_flow() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, SILENT).await;
    let lost = writes("/data/in/*.md", "/data/lost.txt", "ran");
    put(&hub, "lost", &lost).await;
    put(&hub, "note", &writes("/data/in/*.md", "/data/out.txt", "ran")).await;
    let content = ports::Key::new(format!("{}/text", hub.workspace), Sha256::of(lost.as_bytes()).to_string());
    assert!(hub.table.get(&content).await.unwrap().is_some(), "the archive has it");
    hub.table.commit(vec![ports::Write::delete(content, ports::Expect::Any)]).await.unwrap();
    let latest = folder.path().join("workspaces").join(hub.workspace.to_string()).join("latest");
    std::fs::remove_file(latest.join("system/flows/lost/workflow.yaml")).unwrap();
    hub.write("/data/in/a.md", "text").await;
    let tasks = ended(&hub, 1).await;
    let found: Vec<_> = tasks.iter().map(|task| (task.flow.name.as_str(), task.status)).collect();
    assert_eq!(found, [("note", Status::Success)]);
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_version_whose_author_cannot_be_read_is_refused_in_the_end_and_those_behind_it_start_their_flows() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::on(Ground::in_memory(0, Arc::new(Scripted::from_yaml(SILENT).unwrap())), &folder).await;
    put(&hub, "note", &writes("/data/in/*.md", "/data/out.txt", "ran")).await;
    let chat = ChatId(uuid::Uuid::from_u128(5));
    let log: actor::ActorId = ActorRef::Chat { workspace: hub.workspace, chat }.into();
    let damaged = ports::Write::put(log.entry_key(1), "no entry", ports::Expect::Absent);
    hub.table.commit(vec![damaged]).await.unwrap();
    let author = Principal::Agent { role: "clerk".into(), chat, user: UserId(uuid::Uuid::from_u128(77)) };
    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let path = FilePath::parse("/data/in/a.md").unwrap();
    files.write(&path, "text".to_owned(), Expect::Any, &Writer::new(author)).await.unwrap();
    hub.write("/data/in/b.md", "text").await;
    // Longer than all attempts at the first one take: the time jumps.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let mut tasks = ended(&hub, 2).await;
    tasks.sort_by_key(|task| task.handoff.as_ref().map(|handoff| handoff.path.clone()));
    assert_eq!(
        tasks.iter().map(|task| task.status).collect::<Vec<_>>(),
        [Status::Failure, Status::Success],
        "{tasks:#?}"
    );
    assert_eq!(tasks[0].error.as_ref().map(|error| error.code), Some(Code::Internal));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_without_triggers_for_a_path_and_one_that_tries_things_out_start_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, SILENT).await;
    // A folder of the name of a flow in the box goes before it: without `on`, it starts nothing.
    let own = writes("/data/never.md", "/data/out.txt", "ran").replace("on: [/data/never.md]\n", "");
    put(&hub, "handoff_plan", &own).await;
    hub.write("/projects/app/plan.md", "---\nstatus: draft\n---\n").await;
    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    files.start_nothing().await.unwrap();
    put(&hub, "note", &writes("/data/in/*.md", "/data/out.txt", "ran")).await;
    hub.write("/data/in/a.md", "text").await;
    // The plan's path concerns other flows in the box; nothing waits once they have been asked.
    until(|| async {
        let left = hub.table.query(&ports::Query::all(format!("{}/handoffs", hub.workspace), 10)).await.unwrap();
        left.items.iter().all(|item| item.key.sk == "off").then_some(())
    })
    .await;
    let page = hub.tasks.list(hub.workspace, &TaskFilter::default(), 10, None).await.unwrap();
    assert_eq!(page.tasks, []);
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_names_flows_that_share_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, SILENT).await;
    put(&hub, "one", &writes("{path: /data/*.md, status: ready}", "/data/out.txt", "ran")).await;
    put(&hub, "two", &writes("{path: /data/plan.md, status: ready}", "/data/out.txt", "ran")).await;
    put(&hub, "three", &writes("{path: /data/plan.md, status: done}", "/data/out.txt", "ran")).await;
    let flows = hub.tasks.flows();
    let shared = async |name: &str| {
        let flow = flows.load(hub.workspace, name).await.unwrap();
        let notes = flows.notes(hub.workspace, &flow).await.unwrap();
        notes.into_iter().map(|note| note.message).collect::<Vec<_>>()
    };
    assert_eq!(
        shared("one").await,
        ["`/data/*.md status=ready` overlaps `/data/plan.md status=ready` of the flow two"]
    );
    assert_eq!(shared("three").await, Vec::<String>::new());
    hub.close().await;
}
