//! Makes time pass without a wait: for processes with clocks of their own, which a test cannot move. Stored items are rewritten with older
//! times.

use domain::Timestamp;
use ports::{Expect, Item, Key, Query, Result, Table, Write};
use serde_json::Value;
use std::time::Duration;

/// How many items of a partition are made older at most.
const MOST: usize = 1_000;

/// Makes the log of an actor older: all that it has written so far, it wrote so much earlier. The actor must rest.
///
/// # Errors
/// When the table does not answer, or somebody writes meanwhile.
pub async fn age_log(table: &dyn Table, actor: &str, by: Duration) -> Result<usize> {
    age(table, table.query(&Query::prefix(actor, "log/", MOST)).await?.items, by).await
}

/// The same for everything in a partition.
///
/// # Errors
/// As above.
pub async fn age_partition(table: &dyn Table, partition: &str, by: Duration) -> Result<usize> {
    age(table, table.query(&Query::all(partition, MOST)).await?.items, by).await
}

/// The same for all that a partition of the index has by time.
///
/// # Errors
/// As above.
pub async fn age_indexed(table: &dyn Table, partition: &str, by: Duration) -> Result<usize> {
    age(table, table.query_index(&Query::all(partition, MOST)).await?.items, by).await
}

/// An item says when it was written under `at`, and stands in an index by time under that very text.
async fn age(table: &dyn Table, items: Vec<Item>, by: Duration) -> Result<usize> {
    let mut aged = 0;
    for Item { key, rev, body, index, expires_at } in items {
        let Some((body, before, now)) = older(&body, by) else { continue };
        let index = index.map(|index| Key::new(index.pk, index.sk.replacen(&before, &now, 1)));
        table.commit(vec![Write::Put { key, body, index, expires_at, expect: Expect::Rev(rev) }]).await?;
        aged += 1;
    }
    Ok(aged)
}

/// The body with an older `at`, with the old and the new time.
fn older(body: &str, by: Duration) -> Option<(String, String, String)> {
    let mut parsed: Value = serde_json::from_str(body).ok()?;
    let at: Timestamp = parsed["at"].as_str()?.parse().ok()?;
    let older = at - by;
    parsed["at"] = older.to_string().into();
    Some((parsed.to_string(), at.to_string(), older.to_string()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::{
        TestClock,
        fakes::{FakeTable, Faults},
    };
    use ports::Clock;
    use std::sync::Arc;

    #[tokio::test(start_paused = true)]
    async fn aged_entries_have_an_earlier_time_and_the_key_of_that_time() {
        let clock: Arc<dyn Clock> = Arc::new(TestClock::new(0));
        let table = FakeTable::new(clock.clone(), 0, Faults::none());
        let (key, at) = (Key::new("chat/1", "log/1"), clock.now());
        let entry = Write::put(key.clone(), format!(r#"{{"at":"{at}","n":1}}"#), Expect::Absent);
        let other = Write::put(Key::new("chat/1", "snapshot"), format!(r#"{{"at":"{at}"}}"#), Expect::Absent);
        table.commit(vec![entry.indexed(Key::new("due", format!("{at}/1"))), other]).await.unwrap();
        let hour = Duration::from_secs(3600);
        assert_eq!(age_log(&table, "chat/1", hour).await.unwrap(), 1);
        assert_eq!(age_indexed(&table, "due", hour).await.unwrap(), 1);
        assert_eq!(age_partition(&table, "chat/1", hour).await.unwrap(), 2);
        let item = table.get(&key).await.unwrap().unwrap();
        let expected = Timestamp::from_millis(at.as_millis() - 3 * 3_600_000);
        assert_eq!(item.body, format!(r#"{{"at":"{expected}","n":1}}"#));
        assert_eq!(item.index, Some(Key::new("due", format!("{expected}/1"))));
    }
}
