//! Evaluations on a real hub (spec 002 §10.3): their records, their isolation, and their survival.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::ActorDriver;
use async_trait::async_trait;
use domain::{Code, EvaluationId, NodeId};
use evaluation::{Evaluation, Outcome, Progress, Selection};
use flows::{Ground, Hub, Slow, until};
use models::Scripted;
use ports::{Delivery, IndexQuery, Item, Key, Page, Query, Table, Write};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Echoes its input; remembers it for later tasks; tells the memories that it was given of them.
pub(super) const ECHO: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: say, kind: agent, role: linear, agent_id: voice, context: all, prompt: '{{input.text}}'}
  - id: keep
    kind: deterministic
    role: linear
    context: none
    tools: [write_file]
    op: {tool: write_file, args: {path: /projects/echo.txt, content: '{{input}}'}}
  - id: give
    kind: deterministic
    role: linear
    context: none
    op: {expr: \"{'said': outputs.say, 'list': [1, 2, 3]}\"}
    remember: {store: project}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: say}
  - {from: say, to: keep}
  - {from: keep, to: give}
  - {from: give, to: end}
";
const AGENTS: &str = "agents: [{id: voice, system: You are a voice.}]";
const TOOLS: &str = "
tools: [{id: write_file, entrypoint: 'fs:write_file', permissions: {root: /projects}}]
";
const MEMORY: &str = "
context_profiles: [{id: all, max_tokens: 1000, retrieval_policy: recency, sources: [{store: project}]}]
";
/// The answer of the model for cases that bring no script.
const REAL: &str = "rules: [{steps: [{text: 'This is the real one.'}]}]";

pub(super) async fn put(hub: &Hub, workflow: &str, evaluations: &str) {
    let files = [("workflow.yaml", workflow), ("agents.yaml", AGENTS), ("tools.yaml", TOOLS), ("memory.yaml", MEMORY)];
    hub.flow("echo", files).await;
    hub.flow("echo", [("evaluations.yaml", evaluations)]).await;
}

fn outcomes(evaluation: &Evaluation) -> Vec<(&str, Outcome)> {
    evaluation.cases.iter().map(|case| (case.case.as_str(), case.outcome)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_3_cases_are_isolated_and_their_results_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, REAL).await;
    let evaluations = "
suites:
  - name: s
    script: {rules: [{when: {user: memory}, steps: [{text: 'it leaks'}]}, {steps: [{text: 'scripted'}]}]}
    cases:
      - {id: good, input: {text: hello}, assertions: [{type: equals, field_path: said, expected: scripted}]}
      - {id: bad, input: {text: hello}, assertions: [{type: equals, expected: {said: other, list: [1, 2, 3]}}]}
      - {id: off, enabled: false, assertions: []}
      - id: odd
        input: 1
        assertions: [{type: status, expected: success}]
  - name: open
    cases:
      - {id: model, input: {text: hello}, assertions: [{type: contains, field_path: said, expected: the real one}]}
";
    put(&hub, ECHO, evaluations).await;
    // The memory of people's tasks is no part of an evaluation.
    assert_eq!(hub.run("echo", json!({"text": "memory"})).await.output.unwrap()["said"], "This is the real one.");
    let before = hub.read("/projects/echo.txt").await;

    let evaluation = hub.evaluate("echo", Selection::default()).await;
    let expected = [
        ("good", Outcome::Passed),
        ("bad", Outcome::Failed),
        ("off", Outcome::Skipped),
        ("odd", Outcome::Failed),
        ("model", Outcome::Passed),
    ];
    assert_eq!(outcomes(&evaluation), expected, "{evaluation:#?}");
    let sums = (evaluation.total, evaluation.passed, evaluation.failed, evaluation.skipped);
    assert_eq!(sums, (5, 2, 2, 1));
    assert!(!evaluation.is_green());
    let bad = &evaluation.cases[1];
    assert_eq!(bad.differences.len(), 1);
    assert_eq!((bad.differences[0].path.as_str(), &bad.differences[0].b), ("/said", &Some(json!("scripted"))));
    assert!(evaluation.cases[3].failures[0].contains("the task ended with"), "{:?}", evaluation.cases[3]);
    assert_eq!(hub.read("/projects/echo.txt").await, before, "a case writes into a workspace of its own");

    // A failed case can be looked at, until the next evaluation of the flow.
    let (kept, task) = (bad.workspace_id.unwrap(), bad.task_id.unwrap());
    assert_eq!(hub.tasks.get(kept, task).await.unwrap().flow.name, "echo");
    assert!(evaluation.cases[0].workspace_id.is_none());
    assert_eq!(hub.workspaces.list(100, None).await.unwrap().workspaces.len(), 3);

    let id = evaluation.evaluation_id;
    let results = hub.read(&format!("/tasks/evaluations/{id}/results.json")).await.unwrap();
    assert_eq!(serde_json::from_str::<Evaluation>(&results).unwrap(), evaluation);
    let junit = hub.read(&format!("/tasks/evaluations/{id}/junit.xml")).await.unwrap();
    assert!(junit.contains("tests=\"5\" failures=\"2\" errors=\"0\" skipped=\"1\""), "{junit}");

    let again = hub.evaluate("echo", Selection { suites: vec!["open".into()], ..Selection::default() }).await;
    assert!(again.is_green() && again.total == 1);
    assert_eq!(hub.workspaces.get(kept).await.unwrap_err().code, Code::NotFound);
    let page = hub.evaluations.list(hub.workspace, 10, None).await.unwrap();
    let ids: Vec<EvaluationId> = page.evaluations.iter().map(|one| one.evaluation_id).collect();
    assert_eq!(ids, [again.evaluation_id, id]);
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_3_blessing_writes_the_golden_files_that_are_compared_with_later() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, REAL).await;
    let evaluations = "
suites:
  - name: s
    cases:
      - id: gold
        input: {text: hello}
        assertions: [{type: golden}, {type: golden, node: say, file: golden/said.json}, {type: status, expected: success}]
      - {id: iron, input: {text: hello}, assertions: [{type: golden}, {type: golden, file: policy.yaml}, {type: status, expected: failure}]}
";
    put(&hub, ECHO, evaluations).await;
    let none = hub.evaluate("echo", Selection::default()).await;
    assert!(none.cases[0].failures[0].contains("bless"), "{none:?}");

    let blessed = hub.evaluate("echo", Selection { bless: true, ..Selection::default() }).await;
    assert_eq!(outcomes(&blessed), [("gold", Outcome::Blessed), ("iron", Outcome::Failed)], "{blessed:#?}");
    assert_eq!(hub.read("/system/flows/echo/golden/said.json").await.unwrap(), "\"This is the real one.\"\n");
    assert!(blessed.cases[1].failures[0].contains("in the folder golden"), "no manifest is written over: {blessed:#?}");
    assert_eq!(hub.read("/system/flows/echo/policy.yaml").await, None);
    let later = hub.evaluate("echo", Selection::default()).await;
    assert_eq!(outcomes(&later), [("gold", Outcome::Passed), ("iron", Outcome::Failed)], "{later:#?}");

    hub.write("/system/flows/echo/golden/s/gold.json", "{\"said\": \"old\", \"list\": [1, 2]}").await;
    let changed = hub.evaluate("echo", Selection::default()).await;
    let places: Vec<&str> = changed.cases[0].differences.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(places, ["/list/2", "/said"]);

    let id = EvaluationId(Uuid::now_v7());
    let bless = Selection { bless: true, ..Selection::default() };
    let refused = hub.evaluations.start(hub.workspace, id, "review", bless, &hub.by).await.unwrap_err();
    assert_eq!(refused.code, Code::Conflict, "a flow in the box is no one's to bless");
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_3_a_case_is_bounded_and_a_mistake_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, REAL).await;
    let evaluations = "
suites:
  - name: s
    cases:
      - {id: hangs, timeout_seconds: 0.5, input: {text: x}, script: {rules: [{steps: [{hang: true}]}]}, assertions: []}
  - name: broken
    enabled: false
    cases:
      - {id: broken, input: {text: x}, script: {rules: [{stops: []}]}, assertions: []}
";
    put(&hub, ECHO, evaluations).await;
    let evaluation = hub.evaluate("echo", Selection { suites: vec!["s".into()], ..Selection::default() }).await;
    assert_eq!(outcomes(&evaluation), [("hangs", Outcome::Error)]);
    assert!(evaluation.cases[0].failures[0].contains("did not end within 0.5 s"));
    let start = async |selection: Selection| {
        let id = EvaluationId(Uuid::now_v7());
        hub.evaluations.start(hub.workspace, id, "echo", selection, &hub.by).await.unwrap_err()
    };
    let broken = start(Selection { suites: vec!["broken".into()], ..Selection::default() }).await;
    assert!(broken.message.contains("broken/broken cannot be played"), "{broken}");
    let unknown = start(Selection { suites: vec!["t".into()], ..Selection::default() }).await;
    assert_eq!(unknown.code, Code::InvalidArgument);

    let asks = ECHO.replace(
        "  - id: keep\n    kind: deterministic\n    role: linear\n    context: none\n    tools: [write_file]\n    op: {tool: write_file, args: {path: /projects/echo.txt, content: '{{input}}'}}\n",
        "  - {id: keep, kind: deterministic, role: linear, context: none, ask: {approve: Well?}}\n",
    );
    let evaluations = "
suites:
  - name: s
    cases:
      - {id: silent, input: {text: x}, assertions: []}
      - {id: yes, input: {text: x}, answers: {keep: {approved: true}}, assertions: [{type: status, expected: success}]}
      - {id: no, input: {text: x}, answers: {keep: {approved: false}}, assertions: [{type: status, node: keep, expected: failure}]}
";
    put(&hub, &asks, evaluations).await;
    let evaluation = hub.evaluate("echo", Selection::default()).await;
    let expected = [("silent", Outcome::Error), ("yes", Outcome::Passed), ("no", Outcome::Passed)];
    assert_eq!(outcomes(&evaluation), expected, "{evaluation:#?}");
    assert!(evaluation.cases[0].failures[0].contains("keep asks"));
    hub.close().await;
}

/// `null` stands for a person who does not answer; it ends a case only where the question has an end.
#[tokio::test(start_paused = true)]
async fn s10_3_a_case_shows_what_a_flow_does_when_nobody_answers() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::on(in_memory(), &folder).await;
    let workflow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: ask, kind: deterministic, role: linear, context: none, ask: {approve: Well?, timeout_seconds: 60}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: ask}, {from: ask, to: end}]
";
    let evaluations = "
suites:
  - name: s
    cases:
      - {id: late, input: {text: x}, answers: {ask: null}, assertions: [{type: status, node: ask, expected: failure}]}
";
    let outcome = async |end: &str| {
        let workflow = workflow.replace(", timeout_seconds: 60", end);
        hub.flow("asks", [("workflow.yaml", workflow.as_str()), ("evaluations.yaml", evaluations)]).await;
        let evaluation = hub.evaluate("asks", Selection::default()).await;
        let case = &evaluation.cases[0];
        (case.outcome, case.failures.concat())
    };
    // An end that the case would not see comes at once.
    for end in [", timeout_seconds: 60", ", timeout_seconds: 86400"] {
        assert_eq!(outcome(end).await, (Outcome::Passed, String::new()));
    }
    let (by_default, _) = outcome(", timeout_seconds: 60, default: {approved: true}").await;
    assert_eq!(by_default, Outcome::Failed, "its default answer is taken, so the node does not fail");
    let (without_end, why) = outcome("").await;
    assert_eq!((without_end, why.contains("ask asks")), (Outcome::Error, true), "{why}");
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_3_the_questions_of_all_children_get_their_answers() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::on(Ground::in_memory(0, Arc::new(Scripted::from_yaml(REAL).unwrap())), &folder).await;
    let workflow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: input.items, max_subtasks: 1000}}
  - {id: people, kind: deterministic, role: linear, context: none, ask: {approve: Well?}}
  - {id: gather, kind: deterministic, role: merge, context: none, op: {expr: size(input)}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: each}, {from: each, to: people}, {from: people, to: gather}, {from: gather, to: end}]
";
    // More than a page of children.
    let items: Vec<u32> = (0..210).collect();
    let case = json!({
        "id": "many",
        "input": { "items": items },
        "answers": { "people": { "approved": true } },
        "assertions": [{ "type": "status", "expected": "success" }],
    });
    let evaluations = json!({ "suites": [{ "name": "s", "cases": [case] }] }).to_string();
    hub.flow("many", [("workflow.yaml", workflow), ("evaluations.yaml", &evaluations)]).await;
    let evaluation = hub.evaluate("many", Selection::default()).await;
    assert_eq!(outcomes(&evaluation), [("many", Outcome::Passed)], "{evaluation:#?}");
    hub.close().await;
}

/// For any result of the cases behind a slow one, the reason of its end is not lost until its turn comes.
#[tokio::test(start_paused = true)]
async fn s10_3_a_case_that_is_late_behind_a_slow_one_has_not_passed() {
    let folder = tempfile::tempdir().unwrap();
    let evaluations = "
suites:
  - name: s
    cases:
      - {id: slow, input: {text: x}, script: {rules: [{steps: [{text: late, delay_ms: 9000}]}]}, assertions: []}
      - {id: hangs, timeout_seconds: 0.5, input: {text: x}, script: {rules: [{steps: [{hang: true}]}]}, assertions: []}
      - {id: late, timeout_seconds: 0.5, input: {text: x}, script: {rules: [{steps: [{text: late, delay_ms: 2000}]}]}, assertions: []}
      - {id: quick, input: {text: x}, script: {rules: [{steps: [{text: now}]}]}, assertions: []}
";
    let hub = Hub::on(in_memory(), &folder).await;
    put(&hub, ECHO, evaluations).await;
    let evaluation = hub.evaluate("echo", Selection::default()).await;
    let expected =
        [("slow", Outcome::Passed), ("hangs", Outcome::Error), ("late", Outcome::Error), ("quick", Outcome::Passed)];
    assert_eq!(outcomes(&evaluation), expected, "{evaluation:#?}");
    for late in &evaluation.cases[1..3] {
        assert!(late.failures[0].contains("did not end within 0.5 s"), "{late:?}");
    }
    hub.close().await;
}

fn in_memory() -> Ground {
    Ground::in_memory(0, Arc::new(Scripted::from_yaml(REAL).unwrap()))
}

#[tokio::test(start_paused = true)]
async fn s10_3_an_evaluation_goes_on_after_the_death_of_its_worker() {
    let folder = tempfile::tempdir().unwrap();
    let evaluations = "
suites:
  - name: s
    cases:
      - {id: quick, input: {text: x}, assertions: [{type: status, expected: success}]}
      - id: slow
        input: {text: x}
        script: {rules: [{steps: [{text: late, delay_ms: 2000}]}]}
        assertions: [{type: equals, field_path: said, expected: late}]
";
    let ground = in_memory();
    let hub = Hub::on(ground.clone(), &folder).await;
    put(&hub, ECHO, evaluations).await;
    let id = EvaluationId(Uuid::now_v7());
    let begun = hub.evaluations.start(hub.workspace, id, "echo", Selection::default(), &hub.by).await.unwrap();
    assert_eq!((begun.total, begun.passed, begun.status), (2, 0, Progress::Queued));
    let first = until(|| async {
        let evaluation = hub.evaluations.get(hub.workspace, id).await.unwrap();
        (evaluation.passed == 1).then_some(evaluation)
    })
    .await;
    assert_eq!(first.status, Progress::Running);
    hub.close().await;

    let hub = Hub::on(ground, &folder).await;
    let evaluation = hub.evaluated(id).await;
    assert!(evaluation.is_green() && evaluation.passed == 2, "{evaluation:#?}");
    assert_eq!(evaluation.cases[0], first.cases[0], "a case with a result is not run again");
    let again = hub.evaluations.start(hub.workspace, id, "echo", Selection::default(), &hub.by).await.unwrap();
    assert_eq!(again, evaluation, "the same id is the same evaluation");
    assert!(hub.tasks.flows().load(hub.workspace, "echo").await.unwrap().nodes.contains_key(&NodeId::from("say")));
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_3_more_evaluations_than_workers_take_turns_with_their_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let evaluations = "
suites:
  - name: s
    cases:
      - {id: one, input: {text: x}, assertions: [{type: status, expected: success}]}
";
    let hub =
        Hub::on_with(in_memory(), &folder, worker::Options { concurrency: 2, ..worker::Options::default() }).await;
    put(&hub, ECHO, evaluations).await;
    let ids: Vec<EvaluationId> = (0..6).map(|_| EvaluationId(Uuid::now_v7())).collect();
    for id in &ids {
        hub.evaluations.start(hub.workspace, *id, "echo", Selection::default(), &hub.by).await.unwrap();
    }
    for id in ids {
        let evaluation = hub.evaluated(id).await;
        assert!(evaluation.is_green(), "{evaluation:#?}");
    }
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_3_a_message_that_comes_late_or_twice_drives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let evaluations =
        "suites: [{name: s, cases: [{id: one, input: {text: x}, assertions: [{type: status, expected: success}]}]}]";
    let ground = in_memory();
    let hub = Hub::idle_on(ground.clone(), &folder).await;
    put(&hub, ECHO, evaluations).await;
    let id = EvaluationId(Uuid::now_v7());
    hub.evaluations.start(hub.workspace, id, "echo", Selection::default(), &hub.by).await.unwrap();

    // No worker drives its case's task, so it cannot end, and every message that drives it sends the next one.
    let cut = CancellationToken::new();
    let first = messages(&ground).await;
    assert_eq!(first.len(), 1);
    for _ in 0..3 {
        assert_eq!(hub.evaluations.deliver(&first, &cut).await.done, 1);
    }
    ground.queue.ack(&[first[0].receipt.clone()]).await.unwrap();
    let second = messages(&ground).await;
    assert_eq!(second.iter().map(|message| &*message.body).collect::<Vec<_>>(), ["1"]);
    assert_eq!(hub.evaluations.get(hub.workspace, id).await.unwrap().status, Progress::Running);
    hub.close().await;
}

/// A table that refuses the first record of an evaluation in which a case has passed.
struct RefusesResult {
    table: Arc<dyn Table>,
    refused: AtomicBool,
}

#[async_trait]
impl Table for RefusesResult {
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        self.table.get(key).await
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        self.table.query(query).await
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        self.table.query_index(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> ports::Result<()> {
        let is_result = |write: &Write| {
            matches!(write, Write::Put { key, body, .. }
                if key.pk.ends_with("/evaluations") && body.contains(r#""passed":1"#))
        };
        let has_result = writes.iter().any(is_result);
        if has_result && !self.refused.swap(true, Ordering::Relaxed) {
            return Err(ports::Error::unavailable("the table", "so says the test"));
        }
        self.table.commit(writes).await
    }
}

#[tokio::test(start_paused = true)]
async fn s10_3_a_case_whose_result_was_not_written_down_is_judged_again_and_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let evaluations = "
suites:
  - name: s
    cases:
      - {id: one, input: {text: hello}, assertions: [{type: status, expected: success}]}
";
    let slow = Slow::default();
    let ground = Ground::in_memory(0, Arc::new(slow.clone()));
    let stumbles = Arc::new(RefusesResult { table: ground.table.clone(), refused: AtomicBool::new(false) });
    let hub = Hub::on(Ground { table: stumbles.clone(), ..ground }, &folder).await;
    put(&hub, ECHO, evaluations).await;
    let evaluation = hub.evaluate("echo", Selection::default()).await;
    assert!(evaluation.is_green() && stumbles.refused.load(Ordering::Relaxed), "{evaluation:#?}");
    assert_eq!(slow.begun("hello"), 1, "a model is paid for once");
    let page = hub.workspaces.list(100, None).await.unwrap();
    assert_eq!(page.workspaces.len(), 1, "the workspace of the case is gone");
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_3_an_evaluation_that_is_stopped_ends_its_cases_also_those_that_a_worker_begins_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let case =
        |id: usize| format!("{{id: c{id}, input: {{text: x}}, assertions: [{{type: status, expected: success}}]}}");
    let cases: Vec<String> = (0..9).map(case).collect();
    let ground = in_memory();
    let hub = Hub::idle_on(ground.clone(), &folder).await;
    put(&hub, ECHO, &format!("suites: [{{name: s, cases: [{}]}}]", cases.join(", "))).await;
    let id = EvaluationId(Uuid::now_v7());
    hub.evaluations.start(hub.workspace, id, "echo", Selection::default(), &hub.by).await.unwrap();
    let workspaces = || async { hub.workspaces.list(100, None).await.unwrap().workspaces.len() };

    // A worker drives it, and no worker drives the tasks of its cases.
    let (first, cut) = (messages(&ground).await, CancellationToken::new());
    let drives = hub.evaluations.deliver(&first, &cut);
    let stops = async {
        until(|| async { (workspaces().await == 5).then_some(()) }).await;
        hub.evaluations.stop(hub.workspace, id).await.unwrap()
    };
    let (_, stopped) = tokio::join!(drives, stops);
    assert_eq!(stopped.status, Progress::Finished);
    assert_eq!(stopped.error.as_ref().map(|error| error.code), Some(Code::Cancelled));
    assert_eq!((stopped.total, stopped.cases.len()), (9, 0));

    // The messages after the stop end what the worker began since, and then the evaluation is closed.
    hub.evaluations.deliver(&first, &cut).await;
    ground.queue.ack(&[first[0].receipt.clone()]).await.unwrap();
    for late in messages(&ground).await {
        assert_eq!(hub.evaluations.deliver(std::slice::from_ref(&late), &cut).await.done, 1);
        ground.queue.ack(&[late.receipt]).await.unwrap();
    }
    assert_eq!(messages(&ground).await.len(), 0);
    assert_eq!(workspaces().await, 1, "the workspaces of its cases are gone");
    assert_eq!(hub.evaluations.get(hub.workspace, id).await.unwrap(), stopped);
    assert_eq!(hub.evaluations.stop(hub.workspace, id).await.unwrap(), stopped, "again is harmless");
    let junit = hub.read(&format!("/tasks/evaluations/{id}/junit.xml")).await.unwrap();
    assert!(junit.contains("errors=\"1\""), "{junit}");
    let other = hub.evaluations.stop(hub.workspace, EvaluationId(Uuid::now_v7())).await.unwrap_err();
    assert_eq!(other.code, Code::NotFound);
    hub.close().await;
}

/// The messages to evaluations of the next minute.
async fn messages(ground: &Ground) -> Vec<Delivery> {
    let mut all = Vec::new();
    let minute = Duration::from_secs(60);
    let came = async {
        loop {
            all.extend(ground.queue.receive(10, minute * 10).await.unwrap());
        }
    };
    drop::<Result<(), _>>(tokio::time::timeout(minute, came).await);
    all.retain(|delivery| delivery.group.starts_with("evaluation/"));
    all
}
