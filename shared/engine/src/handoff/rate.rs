//! The limit on how many tasks files start in a workspace: a window of one minute, in one item that is replaced under its revision.

use super::HandoffLimits;
use domain::{TaskId, Timestamp, WorkspaceId};
use ports::{Error, Expect, Key, Result, Table, Write};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The length of the window.
const WINDOW: Duration = Duration::from_secs(60);
/// How often a lost race for the item is run again.
const ATTEMPTS: u32 = 16;

/// The starts of the last minute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    starts: Vec<(TaskId, Timestamp)>,
}

/// Takes a place in the window for a task; how long to wait for one, when there is none. A task that has a place keeps it.
///
/// # Errors
/// Those of the table; [`Error::Conflict`] when others were faster again and again.
pub(super) async fn take(
    table: &dyn Table,
    workspace: WorkspaceId,
    task: TaskId,
    limits: &HandoffLimits,
    now: Timestamp,
) -> Result<Option<Duration>> {
    let key = Key::new(format!("{workspace}/handoff-rate"), "window");
    for round in 1.. {
        let found = table.get(&key).await?;
        let expect = found.as_ref().map_or(Expect::Absent, |item| Expect::Rev(item.rev));
        let mut window: Window = found.and_then(|item| serde_json::from_str(&item.body).ok()).unwrap_or_default();
        window.starts.retain(|(_, at)| now.is_within(WINDOW, *at));
        if window.starts.iter().any(|(has, _)| *has == task) {
            return Ok(None);
        }
        if window.starts.len() >= limits.per_minute.max(1) {
            let oldest = window.starts.iter().map(|(_, at)| *at).min().unwrap_or(now);
            return Ok(Some((oldest + WINDOW).since(now).max(Duration::from_millis(100))));
        }
        window.starts.push((task, now));
        let body = serde_json::to_string(&window).map_err(|error| Error::Invalid(error.to_string()))?;
        match table.commit(vec![Write::put(key.clone(), body, expect).expiring(now + 2 * WINDOW)]).await {
            Ok(()) => return Ok(None),
            Err(Error::Conflict { .. }) if round < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::sync::Arc;
    use testkit::{
        TestClock,
        fakes::{FakeTable, Faults},
        golden,
    };
    use uuid::Uuid;

    #[tokio::test]
    async fn a_start_beyond_the_limit_waits_for_the_oldest_to_be_a_minute_old() {
        let table = FakeTable::new(Arc::new(TestClock::new(0)), 0, Faults::none());
        let limits = HandoffLimits { per_minute: 2, ..HandoffLimits::default() };
        let at = |seconds: u64| Timestamp::from_millis(1_767_225_600_000) + Duration::from_secs(seconds);
        let workspace = WorkspaceId(Uuid::from_u128(1));
        let take = async |task: u128, seconds: u64| {
            super::take(&table, workspace, TaskId(Uuid::from_u128(task)), &limits, at(seconds)).await.unwrap()
        };
        assert_eq!(take(1, 0).await, None);
        assert_eq!(take(2, 10).await, None);
        assert_eq!(take(3, 20).await, Some(Duration::from_secs(40)));
        assert_eq!(take(2, 20).await, None, "it has its place");
        assert_eq!(take(3, 60).await, None);
        assert_eq!(take(4, 61).await, Some(Duration::from_secs(9)));
    }

    #[tokio::test]
    async fn starts_of_a_clock_that_was_set_back_by_a_day_keep_nobody_waiting_for_a_day() {
        const DAY_MS: i64 = 24 * 60 * 60 * 1000;
        let table = FakeTable::new(Arc::new(TestClock::new(0)), 0, Faults::none());
        let limits = HandoffLimits { per_minute: 2, ..HandoffLimits::default() };
        let workspace = WorkspaceId(Uuid::from_u128(1));
        let take = async |task: u128, ms: i64| {
            let now = Timestamp::from_millis(1_767_225_600_000 + ms);
            super::take(&table, workspace, TaskId(Uuid::from_u128(task)), &limits, now).await.unwrap()
        };
        assert_eq!((take(1, DAY_MS).await, take(2, DAY_MS).await), (None, None));
        assert_eq!(take(3, DAY_MS).await, Some(WINDOW));
        assert_eq!((take(3, 0).await, take(4, 0).await), (None, None));
        assert_eq!(take(5, 0).await, Some(WINDOW), "the limit holds");
    }

    #[test]
    fn persisted_windows_are_read_for_ever() {
        let window = Window { starts: vec![(TaskId(Uuid::from_u128(7)), Timestamp::from_millis(1_767_225_600_042))] };
        golden::check(env!("CARGO_MANIFEST_DIR"), "handoff_windows", &window);
    }
}
