//! Requests of persons that lose every race for a row.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::lost::{HOOK, WORKSPACE, World};
use async_trait::async_trait;
use domain::Code;
use ports::{IndexQuery, Item, Key, Page, Query, Table, Write};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// A table in which others are always faster.
struct AlwaysRaced {
    table: Arc<dyn Table>,
    commits: AtomicU32,
}

#[async_trait]
impl Table for AlwaysRaced {
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        self.table.get(key).await
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        self.table.query(query).await
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        self.table.query_index(query).await
    }
    async fn commit(&self, _: Vec<Write>) -> ports::Result<()> {
        // An endless loop fails here, and does not hang the suite.
        assert!(self.commits.fetch_add(1, Ordering::Relaxed) < 100, "the races are run again without an end");
        Err(ports::Error::Conflict { write: 0 })
    }
}

#[tokio::test]
async fn a_retry_that_loses_every_race_ends_with_an_error() {
    let world = World::new().await;
    assert!(world.hears(7).await);
    let record = world.table.partition(&format!("{WORKSPACE}/webhooks/{HOOK}")).into_iter().next().unwrap();
    let raced = Arc::new(AlwaysRaced { table: world.table.clone(), commits: AtomicU32::new(0) });
    let webhooks = world.webhooks_over(raced);
    let refused = webhooks.retry(WORKSPACE, HOOK, record.key.sk.parse().unwrap()).await.unwrap_err();
    assert_eq!(refused.code, Code::UpstreamUnavailable);
}
