//! Stranded work is found at the next start: the hub sweeps then, and not only at intervals.

use crate::support::{Result, start};
use embedded::{Durability, Options, Store};
use ports::{Expect, Key, QueueReceiver, SystemClock, Write};
use reqwest::Method;
use serde_json::{Value, json};
use std::{path::Path, sync::Arc, time::Duration};
use testkit::{age_indexed, age_log};

/// Longer than the trash is kept, and than anything may lie about before it is looked after.
const MONTH: Duration = Duration::from_secs(31 * 24 * 3600);

/// A month passes while the hub is away: everything of this actor and in the trash is that old. If `purges`, all messages are taken away
/// meanwhile.
async fn a_month_later(data: &Path, actor: &str, purges: bool) -> Result {
    let options = Options { durability: Durability::Normal, max_attempts: 1_000, ..Options::default() };
    let store = Store::open(data.join("buildscale.sqlite3"), Arc::new(SystemClock), options)?;
    let (table, queue) = (store.table(), store.queue());
    if purges {
        let taken = queue.receive(10, MONTH).await?;
        let receipts: Vec<_> = taken.into_iter().map(|delivery| delivery.receipt).collect();
        assert!(receipts.len() == 1 && queue.ack(&receipts).await?);
    }
    assert!(age_log(&*table, actor, MONTH).await? > 0);
    for shard in 0..workspace::TRASH_SHARDS {
        age_indexed(&*table, &format!("trash/{shard:x}"), MONTH).await?;
    }
    // Rounds begin anew: a hub that was killed in the middle of one would go on from there, and look at the rest five minutes later.
    for sweep in ["behind", "trash"] {
        table.commit(vec![Write::delete(Key::new("sweeps", sweep), Expect::Any)]).await?;
    }
    store.close().await;
    Ok(())
}

#[tokio::test]
async fn stranded_work_goes_on_at_the_next_start() -> Result {
    let folder = tempfile::tempdir()?;
    let mut hub = start(folder.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let file = client.file(&place, "/projects/old.md", "x").await?;
    client.ask(Method::DELETE, &file, Value::Null).await?.good()?;
    let chat = client.chat(&place, "slow please").await?;
    let watch = client.watch(&chat);
    watch.until_event("chunk").await?;
    let [workspace, chat_id] = [&place, &chat].map(|path| path.rsplit('/').next().unwrap_or_default());
    let actor = chat::actor_id(workspace.parse()?, chat_id.parse()?);

    hub.kill().await?;
    a_month_later(folder.path(), actor.as_str(), true).await?;
    hub.restart().await?;
    watch.until(|events| events.iter().any(|event| event.name == "turn_started" && event.data["attempt"] == 2)).await?;
    let swept = |sweep: &str, count: u64| format!("buildscale_swept_total{{sweep=\"{sweep}\"}} {count}\n");
    let both = |count: u64| [swept("behind", count), swept("trash", count)];
    client.until_counted(|text| both(1).iter().all(|line| text.contains(line))).await?;
    assert_eq!(client.get(&format!("{place}/files/trash")).await?["files"], json!([]));
    client.post(&format!("{chat}/stop"), Value::Null).await?;
    watch.until_event("stopped").await?;

    // An ended task is left alone, however long ago that was.
    assert!(hub.terminate().await?.success());
    a_month_later(folder.path(), actor.as_str(), false).await?;
    hub.restart().await?;
    client.until_counted(|text| both(0).iter().all(|line| text.contains(line))).await
}
