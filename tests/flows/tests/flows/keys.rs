//! Keys of manifests whose effect shows in a run alone.
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{Code, Status};
use evaluation::{Outcome, Selection};
use flows::Hub;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_split_names_each_element_and_makes_no_more_subtasks_than_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let flow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: input, as: item, max_subtasks: 2}}
  - {id: work, kind: deterministic, role: linear, context: none, op: {expr: 10 / input.item}}
  - {id: join, kind: deterministic, role: merge, context: none, op: {function: 'merge:outputs'}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: each}, {from: each, to: work}, {from: work, to: join}, {from: join, to: end}]
";
    hub.flow("few", [("workflow.yaml", flow)]).await;
    let view = hub.run("few", json!([1, 2])).await;
    assert_eq!((view.status, view.output), (Status::Success, Some(json!([10, 5]))), "{:?}", view.error);
    let view = hub.run("few", json!([1, 2, 5])).await;
    let error = view.error.unwrap();
    assert_eq!((view.status, error.code, view.children), (Status::Failure, Code::LimitReached, 0));
    assert!(error.message.contains("each would make 3 subtasks; the limit is 2"), "{error}");
    hub.close().await;
}

/// Those that failed have no score: they are shown beside the best where the merge includes them, and no reason to fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3_3_the_best_is_chosen_of_those_that_succeeded_and_the_first_of_equals() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    for (on_failure, list, given) in [
        ("include", json!([5, 0, 1, 1, 2]), json!(["each/work[1]", "each/work[2]"])),
        ("ignore", json!([5, 0, 1, 1, 2]), json!(["each/work[2]"])),
        ("fail", json!([5, 1, 1]), json!(["each/work[1]"])),
    ] {
        let flow = format!(
            "
nodes:
  - {{id: begin, kind: deterministic, role: start, context: none}}
  - {{id: each, kind: deterministic, role: split, context: none, split: {{over: input}}}}
  - {{id: work, kind: deterministic, role: linear, context: none, op: {{expr: 10 / input}}}}
  - {{id: join, kind: deterministic, role: merge, context: none, merge: {{strategy: best_of, score: input.output, on_failure: {on_failure}}},
     op: {{expr: 'input.map(one, one.child)'}}}}
  - {{id: end, kind: deterministic, role: exit, context: none}}
edges: [{{from: begin, to: each}}, {{from: each, to: work}}, {{from: work, to: join}}, {{from: join, to: end}}]
"
        );
        hub.flow(on_failure, [("workflow.yaml", flow.as_str())]).await;
        let view = hub.run(on_failure, list).await;
        assert_eq!(view.output, Some(given), "{on_failure}: {:?}", view.error);
    }
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_asked_with_its_buttons() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let flow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: ask, kind: deterministic, role: linear, context: none, ask: {questions: [{name: colour, question: 'Which, {{input}}?', buttons: [red, blue]}]}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: ask}, {from: ask, to: end}]
";
    hub.flow("asks", [("workflow.yaml", flow)]).await;
    let task = hub.create("asks", json!("Ann")).await.unwrap();
    let view = hub.until(task, |view| !view.waiting_for.is_empty()).await;
    let question = &view.waiting_for[0]["data"]["questions"][0];
    assert_eq!((&question["question"], &question["buttons"]), (&json!("Which, Ann?"), &json!(["red", "blue"])));
    hub.answer(task, "ask", json!({ "colour": "red" })).await;
    assert_eq!(hub.finished(task).await.output, Some(json!({ "colour": "red" })));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_3_a_case_begins_at_the_start_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let flow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none, default_start: true}
  - {id: one, kind: deterministic, role: linear, context: none, op: {expr: \"'one'\"}}
  - {id: end, kind: deterministic, role: exit, context: none}
  - {id: begin_again, kind: deterministic, role: start, context: none}
  - {id: two, kind: deterministic, role: linear, context: none, op: {expr: \"'two'\"}}
  - {id: over, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: one}, {from: one, to: end}, {from: begin_again, to: two}, {from: two, to: over}]
";
    let evaluations = "
suites:
  - name: s
    cases:
      - {id: usual, assertions: [{type: equals, expected: one}]}
      - {id: other, start: begin_again, assertions: [{type: equals, expected: two}]}
";
    hub.flow("two", [("workflow.yaml", flow), ("evaluations.yaml", evaluations)]).await;
    let evaluation = hub.evaluate("two", Selection::default()).await;
    let outcomes: Vec<_> = evaluation.cases.iter().map(|case| (case.case.as_str(), case.outcome)).collect();
    assert_eq!(outcomes, [("usual", Outcome::Passed), ("other", Outcome::Passed)], "{evaluation:#?}");
    hub.close().await;
}
