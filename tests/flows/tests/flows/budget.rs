//! The budget of a task and of all tasks below it on a real hub (spec 002 §10.12).
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{Budget, Code, Status, TaskId, TaskView};
use engine::{NewTask, RerunOptions};
use flows::Hub;
use serde_json::{Value, json};
use uuid::Uuid;

/// A subtask with an agent for each element, and a merge that takes those that came.
const EACH: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: input}}
  - {id: work, kind: agent, role: linear, agent_id: clerk, context: none, prompt: 'Do {{input}}.', tools: [words]}
  - {id: join, kind: deterministic, role: merge, context: none, merge: {on_failure: include}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: each}
  - {from: each, to: work}
  - {from: work, to: join}
  - {from: join, to: end}
";
const AGENTS: &str = "agents: [{id: clerk, system: You are a clerk.}]";
const TOOLS: &str = "tools: [{id: words, type: function, entrypoint: 'text:words'}]";

/// An agent that reads 500 tokens in each of two answers, and a hungry one that does so in six. One that is told to go on answers at once.
fn script() -> String {
    let usage = json!({ "input_tokens": 490, "output_tokens": 10 });
    let call = json!({ "calls": [{ "tool": "words", "args": { "text": "a b" } }], "usage": usage });
    let last = json!({ "text": "done", "usage": usage });
    let hungry: Vec<&Value> = std::iter::repeat_n(&call, 5).chain([&last]).collect();
    json!({ "rules": [
        { "when": { "user": "end of your budget" }, "steps": [last] },
        { "when": { "user": "hungry" }, "steps": hungry },
        { "steps": [call, last] },
    ] })
    .to_string()
}

async fn hub(folder: &tempfile::TempDir, execution: &str) -> Hub {
    let hub = Hub::open(folder, &script()).await;
    let files =
        [("workflow.yaml", EACH), ("agents.yaml", AGENTS), ("tools.yaml", TOOLS), ("execution.yaml", execution)];
    hub.flow("each", files).await;
    hub
}

fn tokens(max_tokens: u64) -> Budget {
    Budget { max_tokens: Some(max_tokens), ..Budget::default() }
}

async fn run(hub: &Hub, input: Value, budget: Budget) -> TaskView {
    let new = NewTask { input, budget, ..NewTask::default() };
    hub.finished(hub.create_in(hub.workspace, "each", new).await.unwrap()).await
}

/// The tokens of all tasks below a task.
async fn spent(hub: &Hub, task: TaskId) -> u64 {
    let children = hub.children(task).await;
    children.iter().map(|child| child.usage.input_tokens + child.usage.output_tokens).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_12_the_budget_of_a_task_is_that_of_execution_yaml_and_a_request_may_name_another() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, "budget: {max_tokens: 900, max_cost_usd: 2.5, max_seconds: 3600}\n").await;
    let view = run(&hub, json!(["one"]), Budget::default()).await;
    let budget = Budget { max_tokens: Some(900), max_cost_usd: Some(2.5), max_wall_ms: Some(3_600_000) };
    assert_eq!((view.status, view.budget), (Status::Success, budget));
    // Two calls, of which the second began within the budget. The child tells of them after its end.
    hub.until(view.task_id, |view| view.usage_below.input_tokens == 980).await;
    // An element more has no part that is worth a call.
    let short = run(&hub, json!(["one", "two"]), tokens(399)).await;
    assert_eq!(
        (short.status, short.budget.max_tokens, short.budget.max_cost_usd),
        (Status::Partial, Some(399), Some(2.5))
    );
    let free = run(&hub, json!(["one"]), Budget { max_wall_ms: Some(1), ..Budget::default() }).await;
    assert_eq!(
        (free.status, free.error.map(|error| error.code)),
        (Status::Partial, None),
        "no agent is asked after the time"
    );
    assert_eq!(free.usage_below.input_tokens, 0);
    for wrong in [tokens(0), Budget { max_cost_usd: Some(-1.0), ..Budget::default() }] {
        let new = NewTask { input: json!(null), budget: wrong, ..NewTask::default() };
        assert_eq!(hub.create_in(hub.workspace, "each", new).await.unwrap_err().code, Code::InvalidArgument);
    }
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_needs_more_gets_the_rest_of_the_others_and_goes_on_in_its_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, "").await;
    // Its part is 1,500; it needs 3,000, and the two others leave 1,000.
    let view = run(&hub, json!(["hungry", "one", "two"]), tokens(4_500)).await;
    assert_eq!((view.status, view.error.clone()), (Status::Success, None));
    let hungry = &hub.children(view.task_id).await[0];
    assert!(hungry.usage.input_tokens > 1_500, "more than its part");
    assert!(spent(&hub, view.task_id).await <= 4_500);
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_at_the_end_of_its_budget_keeps_what_is_done_and_a_retry_with_more_does_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, "").await;
    let view = run(&hub, json!(["hungry", "hungry", "one"]), tokens(3_600)).await;
    assert_eq!(view.status, Status::Partial);
    let children = hub.children(view.task_id).await;
    let refused: Vec<&TaskView> = children.iter().filter(|child| child.status == Status::Failure).collect();
    assert!(!refused.is_empty() && refused.len() < 3, "{children:?}");
    let error = refused[0].error.clone().unwrap();
    assert_eq!((error.code, error.details["budget"].clone()), (Code::LimitReached, json!("tokens")));
    // The last call of each may end above the budget.
    assert!(spent(&hub, view.task_id).await <= 3_600 + 3 * 500);
    let again = TaskId(Uuid::now_v7());
    let options = RerunOptions { budget: tokens(9_000), ..RerunOptions::default() };
    hub.tasks.retry(hub.workspace, view.task_id, again, options, &hub.by).await.unwrap();
    let whole = hub.finished(again).await;
    assert_eq!((whole.status, whole.error), (Status::Success, None));
    let done = hub.children(again).await.iter().filter(|child| child.usage.input_tokens > 0).count();
    assert_eq!(done, refused.len(), "what was done is not done again");
    hub.close().await;
}
