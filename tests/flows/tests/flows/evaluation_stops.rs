//! The stop of an evaluation whose worker stands still or is dead.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::evaluate::{ECHO, put};
use async_trait::async_trait;
use domain::{Code, EvaluationId};
use evaluation::Selection;
use flows::{Ground, Hub, Slow};
use ports::{IndexQuery, Item, Key, Page, Query, Table, Write};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::Notify;
use uuid::Uuid;

/// A table that writes the first record of an evaluation in which a case has passed, and does not say so until it is told to.
struct StandsStill {
    table: Arc<dyn Table>,
    stood: AtomicBool,
    written: Notify,
    goes_on: Notify,
}

#[async_trait]
impl Table for StandsStill {
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
        let done = self.table.commit(writes).await;
        if has_result && !self.stood.swap(true, Ordering::Relaxed) {
            self.written.notify_one();
            self.goes_on.notified().await;
        }
        done
    }
}

#[tokio::test(start_paused = true)]
async fn s10_3_a_stop_cleans_up_the_case_whose_worker_died_behind_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let evaluations = "
suites:
  - name: s
    cases:
      - {id: one, input: {text: hello}, assertions: [{type: status, expected: success}]}
";
    let ground = Ground::in_memory(0, Arc::new(Slow::default()));
    let still = Arc::new(StandsStill {
        table: ground.table.clone(),
        stood: AtomicBool::new(false),
        written: Notify::new(),
        goes_on: Notify::new(),
    });
    let hub = Hub::on(Ground { table: still.clone(), ..ground }, &folder).await;
    put(&hub, ECHO, evaluations).await;
    let id = EvaluationId(Uuid::now_v7());
    hub.evaluations.start(hub.workspace, id, "echo", Selection::default(), &hub.by).await.unwrap();
    still.written.notified().await;
    let workspaces = async || hub.workspaces.list(100, None).await.unwrap().workspaces.len();
    assert_eq!(workspaces().await, 2, "that of the case is there");

    let stopped = hub.evaluations.stop(hub.workspace, id).await.unwrap();
    assert_eq!(stopped.error.map(|error| error.code), Some(Code::Cancelled));
    assert_eq!((stopped.cases.len(), workspaces().await), (1, 1), "the result stays, and its case is cleaned up");
    still.goes_on.notify_one();
    hub.close().await;
}
