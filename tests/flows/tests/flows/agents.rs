//! The tools of agents on a real hub (spec 002 §5): exactly those that the node lists, by their ids, each within its permissions.
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{ActorRef, ChatConfig, ChatEvent, Code, Limits, Status, TaskId, TaskPhase, TaskView};
use engine::RerunOptions;
use flows::{Hub, until};
use serde_json::{Value, json};
use telemetry::Stage;
use uuid::Uuid;

const WORKFLOW: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: work, kind: agent, role: linear, agent_id: clerk, context: none, prompt: Go., tools: [look, keep, words, ask]}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: work}, {from: work, to: end}]
";
const AGENTS: &str = "agents: [{id: clerk, system: You are a clerk.}]";
const TOOLS: &str = "
tools:
  - {id: look, type: filesystem, entrypoint: 'fs:read_file', permissions: {root: /projects/notes}}
  - {id: keep, type: filesystem, entrypoint: 'fs:write_file', permissions: {root: /projects/notes}}
  - {id: words, type: function, entrypoint: 'text:words'}
  - {id: ask, type: human, entrypoint: ask_user}
  - {id: read, type: filesystem, entrypoint: read}
";
const FROZEN: &str = "
rules: [{id: frozen, target: tool, names: [keep], allow: false, reason: the week is frozen}]
";

/// Runs the flow with a model that makes these calls, one after the other, then tells the result of the last of them.
async fn run(policy: Option<&str>, calls: &[(&str, Value)]) -> (TaskView, Stage, Hub, tempfile::TempDir) {
    let steps: Vec<Value> =
        calls.iter().map(|(tool, args)| json!({ "calls": [{ "tool": tool, "args": args }] })).collect();
    let last = json!({ "text": "{{result}}", "when": { "success": true }, "else": { "text": "refused" } });
    let steps: Vec<Value> = steps.into_iter().chain([last]).collect();
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, &json!({ "rules": [{ "steps": steps }] }).to_string()).await;
    hub.write("/projects/notes/a.md", "two words").await;
    hub.write("/data/secret.md", "S3CRET").await;
    hub.flow("clerk", [("workflow.yaml", WORKFLOW), ("agents.yaml", AGENTS), ("tools.yaml", TOOLS)]).await;
    if let Some(policy) = policy {
        hub.flow("clerk", [("policy.yaml", policy)]).await;
    }
    let view = hub.run("clerk", Value::Null).await;
    let history = telemetry::history(&hub.tasks, hub.workspace, view.task_id, 0, 100).await.unwrap();
    let stage = history.stages.into_iter().find(|stage| stage.node.as_str() == "work").unwrap();
    (view, stage, hub, folder)
}

/// The tools that the agent called, and how that went.
fn used(stage: &Stage) -> Vec<(&str, Status)> {
    let answer = stage.conversation[0].reply.as_ref().unwrap();
    answer.tools.iter().map(|used| (used.tool.as_str(), used.status)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_an_agent_calls_the_tools_of_its_node_by_their_ids_functions_among_them() {
    let (view, stage, hub, _folder) = run(
        None,
        &[
            ("look", json!({ "path": "/projects/notes/a.md" })),
            ("keep", json!({ "path": "/projects/notes/b.md", "content": "kept" })),
            ("words", json!({ "text": "two words" })),
        ],
    )
    .await;
    assert_eq!(used(&stage), ["look", "keep", "words"].map(|tool| (tool, Status::Success)));
    assert_eq!((view.status, view.output), (Status::Success, Some(json!(r#"["two","words"]"#))));
    assert_eq!(hub.read("/projects/notes/b.md").await.as_deref(), Some("kept"));
    assert_eq!(stage.denials, []);
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_5_a_denied_tool_of_an_agent_is_noted_and_the_agent_goes_on_with_the_others() {
    let keep = ("keep", json!({ "path": "/projects/notes/b.md", "content": "kept" }));
    let (view, stage, hub, _folder) = run(Some(FROZEN), &[keep, ("words", json!({ "text": "go on" }))]).await;
    let denials: Vec<_> = stage.denials.iter().map(|denial| (denial.what.as_str(), denial.rule.as_str())).collect();
    assert_eq!(denials, [("tool keep", "frozen")]);
    assert_eq!(used(&stage), [("keep", Status::Partial), ("words", Status::Success)]);
    assert_eq!((view.status, view.output), (Status::Success, Some(json!(r#"["go","on"]"#))), "no route is another one");
    assert_eq!(hub.read("/projects/notes/b.md").await, None);

    // A re-run is denied the same, under any later policy.
    let again = TaskId(Uuid::now_v7());
    hub.tasks.replay(hub.workspace, view.task_id, again, None, RerunOptions::default(), &hub.by).await.unwrap();
    until(|| async {
        let view = hub.tasks.get(hub.workspace, again).await.unwrap();
        (view.phase == TaskPhase::Finished).then_some(view)
    })
    .await;
    let (one, other) =
        (telemetry::trace(&hub.tasks, hub.workspace, view.task_id), telemetry::trace(&hub.tasks, hub.workspace, again));
    assert_eq!(one.await.unwrap(), other.await.unwrap());
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_name_of_a_tool_that_the_model_corrects_is_no_failure() {
    let calls = [("word", json!({ "text": "two words" })), ("words", json!({ "text": "two words" }))];
    let (view, stage, hub, _folder) = run(None, &calls).await;
    assert_eq!(used(&stage), [("word", Status::Failure), ("words", Status::Success)]);
    assert_eq!((view.status, view.output), (Status::Success, Some(json!(r#"["two","words"]"#))), "{:?}", view.error);
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_a_tool_that_the_node_does_not_list_is_misuse_and_fails_it() {
    for (tool, args) in [
        // In tools.yaml, and not in the list of the node; a built-in tool by its own name; the name of a function.
        ("read", json!({ "path": "/projects/notes/a.md" })),
        ("write", json!({ "path": "/projects/notes/a.md", "content": "x" })),
        ("text:words", json!({ "text": "x" })),
        // Listed, and beyond its root; listed, and with arguments that it does not take.
        ("look", json!({ "path": "/data/secret.md" })),
        ("words", json!({ "texts": "x" })),
    ] {
        let (view, stage, hub, _folder) = run(None, &[(tool, args)]).await;
        assert_eq!(used(&stage), [(tool, Status::Failure)]);
        let error = view.error.unwrap();
        assert_eq!((view.status, error.code), (Status::Failure, Code::Forbidden), "{tool}");
        assert!(error.message.contains("misused the tool") && !error.message.contains("S3CRET"), "{error}");
        hub.close().await;
    }
}

/// The setup of the chat that the node's agent worked in.
async fn setup(hub: &Hub, stage: &Stage) -> ChatConfig {
    let chat = ActorRef::Chat { workspace: hub.workspace, chat: stage.conversation[0].chat };
    let page = actor::read_after::<ChatEvent>(&*hub.table, &chat.into(), 0, 1).await.unwrap();
    let config = |event| match event {
        ChatEvent::Created { config } => Some(*config),
        _ => None,
    };
    page.entries.into_iter().flat_map(|entry| entry.events).find_map(config).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_settings_of_an_agent_are_those_of_its_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: [{steps: [{text: done}]}]").await;
    let config = "{temperature: 0.25, top_p: 0.5, max_tokens: 77, timeout: 90, system_prompt: You are a clerk.}";
    let limits = "{max_steps: 3, max_tokens: 60000, max_cost_usd: 0.25}";
    let agents = format!("agents: [{{id: clerk, llm: scripted/flow, config: {config}, limits: {limits}}}]");
    hub.flow("clerk", [("workflow.yaml", WORKFLOW), ("agents.yaml", &*agents), ("tools.yaml", TOOLS)]).await;
    let view = hub.run("clerk", Value::Null).await;
    assert_eq!(view.status, Status::Success, "{:?}", view.error);
    let history = telemetry::history(&hub.tasks, hub.workspace, view.task_id, 0, 100).await.unwrap();
    let stage = history.stages.into_iter().find(|stage| stage.node.as_str() == "work").unwrap();
    let config = setup(&hub, &stage).await;
    assert_eq!((config.model.as_deref(), config.system.as_str()), (Some("scripted/flow"), "You are a clerk."));
    let limits = Limits { max_steps: 3, max_tokens: 60_000, max_wall_ms: 90_000, max_cost_usd: 0.25 };
    assert_eq!(config.limits, limits);
    let agent = config.agent.unwrap();
    assert_eq!((agent.temperature, agent.top_p, agent.max_tokens), (Some(0.25), Some(0.5), Some(77)));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_a_persona_bounds_the_tools_of_its_agent_and_names_the_model_where_the_flow_names_none() {
    let keep = |name: &str| json!({ "path": format!("/projects/notes/{name}.md"), "content": "kept" });
    let calls = [("keep", keep("c")), ("keep", keep("b")), ("words", json!({ "text": "go on" })), ("ask", json!({}))];
    let steps = calls.iter().map(|(tool, args)| json!({ "calls": [{ "tool": tool, "args": args }] }));
    let steps: Vec<Value> = steps.chain([json!({ "text": "done" })]).collect();
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, &json!({ "rules": [{ "steps": steps }] }).to_string()).await;
    let front = "---\nmodel: scripted/persona\ntools: [read, 'write(/projects/notes/b.md)']\n---\n";
    hub.write("/system/agents/clerk/AGENT.md", &format!("{front}You are a clerk of all.")).await;
    // A flow is of everybody: the own persona of the person who starts it is no part of it, and neither is their profile.
    let home = format!("/users/{}", hub.by.user());
    hub.write(&format!("{home}/personas/clerk/AGENT.md"), "You are somebody's clerk.").await;
    hub.write(&format!("{home}/profile.md"), "I read French.").await;
    for (agents, model, kept) in [
        ("agents: [{id: clerk, persona: clerk}]", "scripted/persona", Status::Success),
        // The file is there by then, and this agent has not read it.
        ("agents: [{id: clerk, persona: clerk, llm: scripted/flow}]", "scripted/flow", Status::Partial),
    ] {
        hub.flow("clerk", [("workflow.yaml", WORKFLOW), ("agents.yaml", agents), ("tools.yaml", TOOLS)]).await;
        let view = hub.run("clerk", Value::Null).await;
        assert_eq!((view.status, view.output), (Status::Success, Some(json!("done"))), "{:?}", view.error);
        let history = telemetry::history(&hub.tasks, hub.workspace, view.task_id, 0, 100).await.unwrap();
        let stage = history.stages.into_iter().find(|stage| stage.node.as_str() == "work").unwrap();
        let denials: Vec<_> = stage.denials.iter().map(|denial| (denial.what.as_str(), denial.rule.as_str())).collect();
        assert_eq!(denials, [("tool ask", "persona")]);
        let (refused, done, denied) = (Status::Failure, Status::Success, Status::Partial);
        assert_eq!(used(&stage), [("keep", refused), ("keep", kept), ("words", done), ("ask", denied)]);
        assert_eq!(hub.read("/projects/notes/c.md").await, None, "the persona writes one file");
        let config = setup(&hub, &stage).await;
        assert_eq!((config.model.as_deref(), config.role.as_str()), (Some(model), "clerk"));
        assert!(config.system.starts_with("You are a clerk of all."), "{}", config.system);
        assert!(!config.system.contains("French"), "{}", config.system);
    }
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_names_tools_that_a_persona_forbids_and_personas_that_there_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.write("/system/agents/clerk/AGENT.md", "---\ntools: [read, ask_user]\n---\nYou are a clerk.").await;
    let notes = async |agents: &str| {
        hub.flow("clerk", [("workflow.yaml", WORKFLOW), ("agents.yaml", agents), ("tools.yaml", TOOLS)]).await;
        let flow = hub.tasks.flows().load(hub.workspace, "clerk").await.unwrap();
        let notes = hub.tasks.flows().notes(hub.workspace, &flow).await.unwrap();
        notes.into_iter().map(|note| (note.code, note.message)).collect::<Vec<_>>()
    };
    let message =
        "node `work` lists the tool `keep`, and the persona clerk does not list write: its agent is not offered it";
    let told = notes("agents: [{id: clerk, persona: clerk}]").await;
    assert_eq!(told, [("forbidden_tool", message.to_owned())]);
    let told = notes("agents: [{id: clerk, persona: nobody}]").await;
    assert_eq!((told.len(), told[0].0), (1, "unusable_persona"));
    assert!(told[0].1.contains("nobody"), "{told:?}");
    assert_eq!(notes(AGENTS).await, []);
    hub.close().await;
}

/// A flow whose split is over what an agent or a person answers.
fn split_by(plan: &str) -> String {
    format!(
        "
nodes:
  - {{id: begin, kind: deterministic, role: start, context: none}}
  - {{id: plan, role: split, context: none, split: {{over: input.steps, as: step}}, {plan}}}
  - {{id: work, kind: deterministic, role: linear, context: none, op: {{expr: input.step}}}}
  - {{id: join, kind: deterministic, role: merge, context: none, op: {{expr: \"input.map(one, one.output)\"}}}}
  - {{id: end, kind: deterministic, role: exit, context: none}}
edges: [{{from: begin, to: plan}}, {{from: plan, to: work}}, {{from: work, to: join}}, {{from: join, to: end}}]
"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_split_is_over_what_an_agent_or_a_person_answers() {
    let folder = tempfile::tempdir().unwrap();
    let said = json!({ "steps": ["a", "b", "c"] });
    let script = json!({ "rules": [{ "steps": [{ "text": said.to_string() }] }] });
    let hub = Hub::open(&folder, &script.to_string()).await;
    let by_agent = split_by("kind: agent, agent_id: clerk, prompt: Plan.");
    hub.flow("agent", [("workflow.yaml", by_agent.as_str()), ("agents.yaml", AGENTS)]).await;
    let ask = "kind: deterministic, ask: {questions: [{name: steps, question: Which?, schema: {type: array}}]}";
    hub.flow("person", [("workflow.yaml", split_by(ask).as_str())]).await;

    let of_agent = hub.create("agent", json!("x")).await.unwrap();
    let of_person = hub.create("person", json!("x")).await.unwrap();
    hub.answer(of_person, "plan", said).await;
    for task in [of_agent, of_person] {
        let view = hub.finished(task).await;
        assert_eq!((view.children, view.output), (3, Some(json!(["a", "b", "c"]))), "{:?}", view.error);
    }
    hub.close().await;
}
