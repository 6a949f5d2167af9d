//! The answers of an evaluation to the questions of its cases.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use evaluation::{Outcome, Selection};
use flows::{Ground, Hub, Slow};
use parking_lot::Mutex;
use ports::{IndexQuery, Item, Key, Page, Query, Table, Write};
use serde_json::json;
use std::sync::Arc;

/// A table that shows a task once more as it asked, after the task has gone on. A look at a case reads its task twice: first to see the question, then
/// to answer it. The first read finds the question, and the second one finds that it was answered.
struct Overtaken {
    table: Arc<dyn Table>,
    asking: Mutex<Asking>,
}

/// The task as it asked, and how often it was read so.
#[derive(Default)]
struct Asking {
    view: Option<Item>,
    reads: usize,
    /// Whether it was shown so after it had gone on.
    is_shown_again: bool,
}

#[async_trait]
impl Table for Overtaken {
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        let found = self.table.get(key).await?;
        if !key.pk.ends_with("/tasks") {
            return Ok(found);
        }
        let mut asking = self.asking.lock();
        if found.as_ref().is_some_and(|view| view.body.contains(r#""waiting_for""#)) {
            asking.view.clone_from(&found);
            asking.reads += 1;
            return Ok(found);
        }
        let is_first_of_two = asking.reads.is_multiple_of(2);
        let before = asking.view.take().filter(|_| is_first_of_two);
        asking.is_shown_again |= before.is_some();
        Ok(before.or(found))
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        self.table.query(query).await
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        self.table.query_index(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> ports::Result<()> {
        self.table.commit(writes).await
    }
}

#[tokio::test(start_paused = true)]
async fn s10_3_a_case_whose_task_went_on_while_it_was_answered_again_has_not_failed() {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::in_memory(0, Arc::new(Slow::default()));
    let overtaken = Arc::new(Overtaken { table: ground.table.clone(), asking: Mutex::default() });
    let hub = Hub::on(Ground { table: overtaken.clone(), ..ground }, &folder).await;
    // The agent works for a second after the answer.
    let workflow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: people, kind: deterministic, role: linear, context: none, ask: {approve: Well?}}
  - {id: say, kind: agent, role: linear, agent_id: voice, context: none, prompt: hello}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: people}, {from: people, to: say}, {from: say, to: end}]
";
    let case = json!({
        "id": "one",
        "input": {},
        "answers": { "people": { "approved": true } },
        "assertions": [{ "type": "status", "expected": "success" }],
    });
    let evaluations = json!({ "suites": [{ "name": "s", "cases": [case] }] }).to_string();
    let agents = "agents: [{id: voice, system: You are a voice.}]";
    let files = [("workflow.yaml", workflow), ("agents.yaml", agents), ("evaluations.yaml", &*evaluations)];
    hub.flow("asks", files).await;
    let evaluation = hub.evaluate("asks", Selection::default()).await;
    let [one] = &*evaluation.cases else { panic!("one case: {evaluation:#?}") };
    assert_eq!((one.outcome, &*one.failures), (Outcome::Passed, &[] as &[String]));
    assert!(overtaken.asking.lock().is_shown_again, "the question was seen after its answer");
    hub.close().await;
}

/// A case that is behind a slow one may be late when its turn comes.
#[tokio::test(start_paused = true)]
async fn s10_3_a_case_that_lacks_an_answer_is_told_so_although_its_time_is_up_by_then() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::on(Ground::in_memory(0, Arc::new(Slow::default())), &folder).await;
    let workflow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none, default_start: true}
  - {id: soon, kind: deterministic, role: linear, context: none, ask: {approve: Well?, timeout_seconds: 60}}
  - {id: other, kind: deterministic, role: start, context: none}
  - {id: people, kind: deterministic, role: linear, context: none, ask: {approve: Well?}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: soon}, {from: soon, to: end}, {from: other, to: people}, {from: people, to: end}]
";
    let cases = json!([
        {
            "id": "slow",
            "answers": { "soon": null },
            "assertions": [{ "type": "status", "node": "soon", "expected": "failure" }],
        },
        { "id": "silent", "start": "other", "timeout_seconds": 1, "assertions": [] },
    ]);
    let evaluations = json!({ "suites": [{ "name": "s", "cases": cases }] }).to_string();
    hub.flow("asks", [("workflow.yaml", workflow), ("evaluations.yaml", &*evaluations)]).await;
    let evaluation = hub.evaluate("asks", Selection::default()).await;
    let [slow, silent] = &*evaluation.cases else { panic!("two cases: {evaluation:#?}") };
    assert_eq!((slow.outcome, silent.outcome), (Outcome::Passed, Outcome::Error), "{evaluation:#?}");
    assert!(silent.failures.concat().contains("people asks"), "{silent:?}");
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_3_the_questions_of_subtasks_of_subtasks_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::on(Ground::in_memory(0, Arc::new(Slow::default())), &folder).await;
    let workflow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: rows, kind: deterministic, role: split, context: none, split: {over: '[1, 2]'}}
  - {id: cells, kind: deterministic, role: split, context: none, split: {over: '[1, 2]'}}
  - {id: people, kind: deterministic, role: linear, context: none, ask: {approve: Well?}}
  - {id: row, kind: deterministic, role: merge, context: none}
  - {id: all, kind: deterministic, role: merge, context: none}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: rows}
  - {from: rows, to: cells}
  - {from: cells, to: people}
  - {from: people, to: row}
  - {from: row, to: all}
  - {from: all, to: end}
";
    let cases = json!([
        {
            "id": "answered",
            "answers": { "people": { "approved": true } },
            "assertions": [{ "type": "status", "expected": "success" }],
        },
        { "id": "silent", "timeout_seconds": 1, "assertions": [] },
    ]);
    let evaluations = json!({ "suites": [{ "name": "s", "cases": cases }] }).to_string();
    hub.flow("asks", [("workflow.yaml", workflow), ("evaluations.yaml", &*evaluations)]).await;
    let evaluation = hub.evaluate("asks", Selection::default()).await;
    let [answered, silent] = &*evaluation.cases else { panic!("two cases: {evaluation:#?}") };
    assert_eq!((answered.outcome, silent.outcome), (Outcome::Passed, Outcome::Error), "{evaluation:#?}");
    assert!(silent.failures.concat().contains("people asks"), "{silent:?}");
    hub.close().await;
}
