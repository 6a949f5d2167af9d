//! Commands of flows on a real hub (spec 002 §5): nodes that are one and tools that run one, really run, in the sandbox of this
//! machine.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use domain::{Code, Status, TaskId, TaskPhase};
use engine::RerunOptions;
use flows::Hub;
use serde_json::{Value, json};
use telemetry::Stage;
use uuid::Uuid;

const TOOLS: &str = r#"
tools:
  - {id: count, command: [/bin/sh, -c, 'wc -w < "$1"', sh, '{{input.file}}'], permissions: {root: /projects/notes, allow_shell: true}}
  - {id: peek, command: [cat, '{{input.file}}'], permissions: {root: /projects/notes, allow_shell: true}}
"#;

/// A flow of one node between its start and its end.
fn around(node: &str) -> String {
    format!(
        "nodes:\n  - {{id: begin, kind: deterministic, role: start, context: none}}\n{node}\
         \x20 - {{id: end, kind: deterministic, role: exit, context: none}}\n\
         edges: [{{from: begin, to: work}}, {{from: work, to: end}}]\n"
    )
}

fn command(words: &Value, more: &str) -> String {
    around(&format!(
        "  - {{id: work, kind: deterministic, role: linear, context: none, op: {{command: {words}}}{more}}}\n"
    ))
}

async fn hub(folder: &tempfile::TempDir, script: &Value) -> Hub {
    let hub = Hub::open(folder, &script.to_string()).await;
    hub.write("/projects/notes/a.md", "two words").await;
    hub.write("/data/secret.md", "S3CRET").await;
    hub
}

async fn stage(hub: &Hub, task: domain::TaskId) -> Stage {
    let history = telemetry::history(&hub.tasks, hub.workspace, task, 0, 100).await.unwrap();
    history.stages.into_iter().find(|stage| stage.node.as_str() == "work").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_a_command_node_runs_and_says_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, &json!({ "rules": [] })).await;
    let words = json!([
        "/bin/sh",
        "-c",
        "cat \"$1\"; echo so; echo but >&2; exit ${2:-0}",
        "sh",
        "{{input.file}}",
        "{{input.code}}"
    ]);
    hub.flow("cat", [("workflow.yaml", command(&words, "").as_str())]).await;
    let view = hub.run("cat", json!({ "file": "projects/notes/a.md", "code": 0 })).await;
    let output = view.output.unwrap();
    assert_eq!((view.status, &output["exit_code"], &output["stderr"]), (Status::Success, &json!(0), &json!("but\n")));
    assert_eq!(output["stdout"], "two wordsso\n");
    let used = &stage(&hub, view.task_id).await.tools[0];
    assert_eq!((used.tool.as_str(), used.status), ("command", Status::Success));

    // One that fails passes on its output, for the flow to decide about: a partial success.
    let view = hub.run("cat", json!({ "file": "projects/none.md", "code": 3 })).await;
    let output = view.output.unwrap();
    assert_eq!((view.status, &output["exit_code"]), (Status::Partial, &json!(3)));
    let used = &stage(&hub, view.task_id).await.tools[0];
    assert_eq!(used.status, Status::Partial);
    assert!(used.output.contains("[exit code 3"), "{}", used.output);
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_the_output_of_a_command_is_json_if_a_schema_wants_it() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, &json!({ "rules": [] })).await;
    let schema = r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#;
    let words = json!(["/bin/sh", "-c", "echo \"$1\"; exit \"$2\"", "sh", "{{input.say}}", "{{input.code}}"]);
    let workflow = command(&words, ", schema_out: n");
    hub.flow("json", [("workflow.yaml", workflow.as_str()), ("schemas/n.json", schema)]).await;
    let view = hub.run("json", json!({ "say": "{\"n\": 7}", "code": 0 })).await;
    assert_eq!((view.status, view.output), (Status::Success, Some(json!({ "n": 7 }))), "{:?}", view.error);
    let view = hub.run("json", json!({ "say": "seven", "code": 0 })).await;
    assert_eq!(view.status, Status::Failure);
    let view = hub.run("json", json!({ "say": "no seven here", "code": 2 })).await;
    let error = view.error.unwrap();
    assert!(error.message.contains("exit code 2") && error.message.contains("no seven here"), "{error}");
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_a_command_tool_needs_its_permission_and_reads_nothing_beyond_its_root() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, &json!({ "rules": [] })).await;
    let node = |tool: &str| {
        around(&format!(
            "  - {{id: work, kind: deterministic, role: linear, context: none, tools: [{tool}], op: {{tool: {tool}, args: \
             {{file: '{{{{input}}}}'}}}}}}\n"
        ))
    };
    for tool in ["count", "peek"] {
        hub.flow(tool, [("workflow.yaml", node(tool).as_str()), ("tools.yaml", TOOLS)]).await;
    }
    let view = hub.run("count", json!("a.md")).await;
    assert_eq!(view.output.unwrap()["stdout"].as_str().map(str::trim), Some("2"), "{:?}", view.error);
    for outside in ["../../data/secret.md", "../../../latest/data/secret.md"] {
        let view = hub.run("peek", json!(outside)).await;
        let output = view.output.unwrap();
        assert!(output["exit_code"] != json!(0) && !output.to_string().contains("S3CRET"), "{output}");
        assert_eq!(stage(&hub, view.task_id).await.tools[0].status, Status::Partial);
    }
    // One that has no permission to run a command is refused before anything runs.
    let wild = "tools: [{id: wild, command: [echo, hello]}]";
    hub.flow("wild", [("workflow.yaml", node("wild").as_str()), ("tools.yaml", wild)]).await;
    let report = hub.tasks.flows().check(hub.workspace, "wild").await.unwrap().unwrap_err();
    assert_eq!(report.faults.iter().map(|fault| fault.code).collect::<Vec<_>>(), ["shell_not_allowed"], "{report}");
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_an_agent_runs_the_commands_of_its_node() {
    let folder = tempfile::tempdir().unwrap();
    let calls = |tool: &str, args: Value| json!({ "calls": [{ "tool": tool, "args": args }] });
    let last = json!({ "text": "{{result}}" });
    let steps =
        [calls("peek", json!({ "file": "../../data/secret.md" })), calls("count", json!({ "file": "a.md" })), last];
    let hub = hub(&folder, &json!({ "rules": [{ "steps": steps }] })).await;
    let workflow = around(
        "  - {id: work, kind: agent, role: linear, agent_id: clerk, context: none, prompt: Go., tools: [count, peek]}\n",
    );
    let agents = "agents: [{id: clerk, system: You are a clerk.}]";
    hub.flow("clerk", [("workflow.yaml", workflow.as_str()), ("agents.yaml", agents), ("tools.yaml", TOOLS)]).await;
    let view = hub.run("clerk", Value::Null).await;
    assert_eq!(view.status, Status::Success, "{:?}", view.error);
    let said = view.output.unwrap().to_string();
    assert!(said.contains("[exit code 0"), "{said}");
    let history = stage(&hub, view.task_id).await;
    let answer = history.conversation[0].reply.as_ref().unwrap();
    let used: Vec<_> = answer.tools.iter().map(|used| (used.tool.as_str(), used.status)).collect();
    assert_eq!(used, [("peek", Status::Partial), ("count", Status::Success)]);
    assert!(!format!("{:?}", answer.tools).contains("S3CRET"));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_a_command_is_ended_with_the_time_of_its_node_and_with_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, &json!({ "rules": [] })).await;
    // No test would wait for these to end.
    let words = json!(["sleep", "100000"]);
    hub.flow("short", [("workflow.yaml", command(&words, ", timeout_seconds: 0.2").as_str())]).await;
    let view = hub.run("short", Value::Null).await;
    // Whichever is first, the node's clock or the sandbox's.
    match (view.error, view.output) {
        (Some(error), _) => assert_eq!(error.code, Code::Timeout),
        (None, output) => assert_eq!(output.unwrap()["timed_out"], true),
    }
    hub.flow("long", [("workflow.yaml", command(&words, "").as_str())]).await;
    let task = hub.create("long", Value::Null).await.unwrap();
    hub.until(task, |view| view.node.as_ref().is_some_and(|node| node.as_str() == "work")).await;
    hub.tasks.stop(hub.workspace, task, hub.command(), &hub.by).await.unwrap();
    let view = hub.finished(task).await;
    assert_eq!((view.phase, view.status), (TaskPhase::Finished, Status::Failure));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_a_command_node_keeps_the_files_that_it_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, &json!({ "rules": [] })).await;
    let words = json!([
        "/bin/sh",
        "-c",
        "mkdir $TMPDIR/out && echo $1 > $TMPDIR/out/a.md; echo '{\"n\": 7}'",
        "sh",
        "{{input.say}}"
    ]);
    let keeps = |from: &str, more: &str| {
        let op = format!("{{command: {words}, keep: [{{from: '{from}', to: '/projects/{{{{input.to}}}}'}}]}}");
        around(&format!("  - {{id: work, kind: deterministic, role: linear, context: none, op: {op}{more}}}\n"))
    };
    hub.flow("makes", [("workflow.yaml", keeps("out", "").as_str())]).await;
    let view = hub.run("makes", json!({ "say": "first", "to": "made" })).await;
    let output = view.output.unwrap();
    let kept = json!([{ "from": "out/a.md", "path": "/projects/made/a.md", "v": 1, "changed": true }]);
    assert_eq!((view.status, &output["kept"], &output["left_out"]), (Status::Success, &kept, &json!([])));
    assert_eq!(hub.read("/projects/made/a.md").await.as_deref(), Some("first\n"));
    let used = &stage(&hub, view.task_id).await.tools[0];
    assert!(used.output.ends_with("kept out/a.md as /projects/made/a.md (version 1)"), "{}", used.output);
    // A place that is none refuses the command before it begins.
    let view = hub.run("makes", json!({ "say": "first", "to": "../made" })).await;
    assert_eq!((view.status, view.error.unwrap().code), (Status::Failure, Code::InvalidArgument));
    // A file that cannot be kept is no success; a schema makes a failure of it.
    hub.flow("lacks", [("workflow.yaml", keeps("none", "").as_str())]).await;
    let view = hub.run("lacks", json!({ "say": "first", "to": "made" })).await;
    assert_eq!((view.status, &view.output.unwrap()["left_out"][0]["from"]), (Status::Partial, &json!("none")));
    let (workflow, schema) = (keeps("none", ", schema_out: n"), r#"{"type": "object", "required": ["n"]}"#);
    hub.flow("fails", [("workflow.yaml", workflow.as_str()), ("schemas/n.json", schema)]).await;
    let error = hub.run("fails", json!({ "say": "first", "to": "made" })).await.error.unwrap();
    assert!(error.message.starts_with("1 file of the command could not be kept, the first is none"), "{error}");
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_7_a_command_that_a_stop_ended_has_no_output_that_a_re_run_could_keep() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, &json!({ "rules": [] })).await;
    // No test would wait for it to end before the file is there.
    let words = json!(["/bin/sh", "-c", "echo begun; test -e projects/notes/go.md || sleep 100000"]);
    hub.flow("waits", [("workflow.yaml", command(&words, "").as_str())]).await;
    let task = hub.create("waits", Value::Null).await.unwrap();
    hub.until(task, |view| view.node.as_ref().is_some_and(|node| node.as_str() == "work")).await;
    hub.tasks.stop(hub.workspace, task, hub.command(), &hub.by).await.unwrap();
    assert_eq!(hub.finished(task).await.error.unwrap().code, Code::Cancelled);
    hub.write("/projects/notes/go.md", "go").await;
    let (retried, replayed) = (TaskId(Uuid::now_v7()), TaskId(Uuid::now_v7()));
    let options = RerunOptions::default;
    hub.tasks.retry(hub.workspace, task, retried, options(), &hub.by).await.unwrap();
    hub.tasks.replay(hub.workspace, task, replayed, Some("end"), options(), &hub.by).await.unwrap();
    for again in [retried, replayed] {
        let view = hub.finished(again).await;
        assert_eq!((view.status, &view.output.unwrap()["exit_code"]), (Status::Success, &json!(0)));
    }
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_of_a_tool_ends_its_node_as_one_of_its_own_does_and_is_tried_again_where_the_node_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, &json!({ "rules": [] })).await;
    let tools = "tools: [{id: fail, command: [/bin/sh, -c, 'echo no; exit 22'], permissions: {allow_shell: true}}]";
    let by_tool = "tools: [fail], op: {tool: fail}";
    let own = "op: {command: [/bin/sh, -c, 'echo no; exit 22']}";
    let retries = ", retries: {times: 2, on: ['exit:22'], backoff_seconds: 0}";
    let schema = r#"{"type": "object", "required": ["n"]}"#;
    for (op, more, status, attempts) in [
        (by_tool, String::new(), Status::Partial, 1),
        (by_tool, ", retries: 2".into(), Status::Partial, 1),
        (by_tool, retries.into(), Status::Partial, 3),
        (own, retries.into(), Status::Partial, 3),
        (own, format!("{retries}, schema_out: n"), Status::Failure, 3),
        (by_tool, format!("{retries}, schema_out: n"), Status::Failure, 3),
    ] {
        let workflow =
            around(&format!("  - {{id: work, kind: deterministic, role: linear, context: none, {op}{more}}}\n"));
        let files = [("workflow.yaml", workflow.as_str()), ("tools.yaml", tools), ("schemas/n.json", schema)];
        hub.flow("fails", files).await;
        let view = hub.run("fails", Value::Null).await;
        assert_eq!(view.status, status, "{workflow}: {:?}", view.error);
        assert_eq!(stage(&hub, view.task_id).await.attempt, attempts, "{workflow}");
        if status == Status::Partial {
            assert_eq!(view.output.unwrap()["exit_code"], 22);
        }
    }
    hub.close().await;
}
