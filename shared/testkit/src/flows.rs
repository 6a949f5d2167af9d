//! The smallest flows that show a feature each, as the text of a `workflow.yaml`: for tests in any world that need some flow. Tests of the
//! manifests themselves have their own.

use domain::{Budget, Labels, NodeId, TaskConfig, TaskId, Timestamp, UserId, WorkspaceId, task::FlowRef};
use serde_json::json;

/// A task that was made at the beginning of time, with default settings.
pub fn task(workspace: WorkspaceId, task: TaskId, flow: FlowRef, start: impl Into<NodeId>) -> TaskConfig {
    TaskConfig {
        workspace,
        task,
        flow,
        user: UserId::from_key("test", "user"),
        input: json!("in"),
        start: start.into(),
        origin: None,
        files: Vec::new(),
        priority: 0,
        stepping: false,
        breakpoints: Vec::new(),
        replay: None,
        keep_outputs: false,
        keep_artifacts: false,
        counted: false,
        trace: None,
        handoff: None,
        budget: Budget::default(),
        refused: None,
        labels: Labels::default(),
        created_at: Timestamp::default(),
    }
}

/// Chooses by its input: `{"good": true}` ends with "well done", `{"good": false}` fails.
pub const CHOICE: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - id: choose
    kind: deterministic
    role: decision
    context: none
    op: {expr: '{"selected_edge": input.good ? "yes" : "no"}'}
  - {id: good, kind: deterministic, role: linear, context: none, op: {expr: '"well done"'}}
  - {id: end, kind: deterministic, role: exit, context: none}
  - {id: bad, kind: deterministic, role: exit, context: none, always_fail: true}
edges:
  - {from: begin, to: choose}
  - {from: choose, to: good, label: 'yes'}
  - {from: choose, to: bad, label: 'no'}
  - {from: good, to: end}
"#;

/// Makes a subtask of each of `{"items": [1, 2]}`, and ends with their doubles in order.
pub const DOUBLES: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: items, kind: deterministic, role: split, context: none, split: {over: 'input.items'}}
  - {id: worker, kind: deterministic, role: linear, context: none, op: {expr: 'input * 2'}}
  - {id: join, kind: deterministic, role: merge, context: none, merge: {strategy: all}, op: {expr: 'input.map(one, one.output)'}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: items}
  - {from: items, to: worker}
  - {from: worker, to: join}
  - {from: join, to: end}
";

/// Waits for a person at the node `review`, then ends with its input.
pub const APPROVAL: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: review, kind: deterministic, role: linear, context: none, ask: {approve: 'Publish {{input}}?'}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: review}
  - {from: review, to: end}
";

/// Makes a subtask of each of three numbers, and ends with `[10, 20, 30]`.
pub const NUMBERS: &str = r#"
nodes:
- {id: s, kind: deterministic, role: start, context: none}
- {id: each, kind: deterministic, role: split, context: none, split: {over: "[1, 2, 3]", as: n}}
- {id: work, kind: deterministic, role: linear, context: none, op: {expr: "input.n * 10"}}
- {id: gather, kind: deterministic, role: merge, context: none, op: {expr: "input.map(one, one.output)"}}
- {id: done, kind: deterministic, role: exit, context: none}
edges: [{from: s, to: each}, {from: each, to: work}, {from: work, to: gather}, {from: gather, to: done}]
"#;

/// Has the agent `kind` of [`AGENTS`] answer "hello", and ends with that answer.
pub const AGENT: &str = r#"
nodes:
- {id: s, kind: deterministic, role: start, context: none}
- {id: thank, kind: agent, role: linear, context: none, agent_id: kind, prompt: "hello"}
- {id: done, kind: deterministic, role: exit, context: none}
edges: [{from: s, to: thank}, {from: thank, to: done}]
"#;

/// The `agents.yaml` of [`AGENT`].
pub const AGENTS: &str = "agents:\n- {id: kind}\n";
