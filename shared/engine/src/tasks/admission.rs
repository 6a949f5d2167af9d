//! Admission (spec 002 §10.8, §10.12): a task that would wait for ever is refused at once, with a time to come again, instead of
//! being put at the end of a queue without bound.
//!
//! Two bounds. The number of messages that wait in a tenant's lane is bounded for everybody ([`MOST_WAITING`]), by the
//! queue's own count, which is about right. The number of root tasks of a flow that run or wait is bounded where
//! `execution.yaml` says so, and that is exact:
//!
//! ```text
//!   {workspace}/admitted/{flow}   gate          how many places are taken at most, and the task that took the last one
//!                                 task/<task>   a place, from the commit that makes the task to the entry that ends it
//!                                 start/<task>  the first message of the task, until it has begun; of every flow, bounded or not
//! ```
//!
//! The places are a set and no counter, so nothing is given back twice. They are taken by commits that name the gate's
//! revision, so that two callers that see one place left do not both get it; they are given back without the gate
//! ([`crate::TaskMachine`], `record`), so that no task waits for others to end. The gate therefore knows a bound only, and
//! a caller that would be refused by it counts anew.
//!
//! A place could only stay taken by a task that never begins: its maker died between the commit and the message. Its
//! client was told nothing, and asks again or not. A caller that is refused begins such tasks with the message that is
//! kept for that.

use super::{
    Tasks, first_view,
    start::{Start, text},
};
use crate::{
    admission_keys::{partition, place_key},
    error::internal,
    machine::{actor_id, view_index, view_key},
    metadata,
};
use actor::ended;
use domain::{Code, Error, TaskConfig, TaskId, WorkspaceId, text::counted};
use flow::Flow;
use ports::{Error as PortError, Expect, Key, Query, QueueMessage, Result as PortResult, Table, Write, lane};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many messages of tasks a tenant may have waiting where nothing else is configured: ten of the largest splits.
pub const MOST_WAITING: usize = 100_000;
/// When to come again, in seconds.
const COME_AGAIN: u64 = 5;
/// How long a task that was admitted may take to begin before it is begun once more.
const SLOW: Duration = Duration::from_secs(60);
/// How many tasks that did not begin a refused caller begins, the oldest first.
const REPAIRED_AT_ONCE: usize = 8;
/// How often one is overtaken by others that are admitted before this is an answer, too.
const OVERTAKEN: usize = 1_000;

/// An observer of tasks that are accepted. It never fails and never waits.
pub trait AdmissionObserver: Send + Sync {
    /// A task is about to be queued; it was not begun yet, unless it came before.
    fn accepted(&self, config: &TaskConfig, flow: &Flow);
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gate {
    /// Places taken, at most.
    taken: u32,
    /// The task that took the last one.
    last: TaskId,
}

impl Tasks {
    /// Refuses a task when its tenant has too much waiting already.
    pub(super) async fn check_lane(&self, workspace: WorkspaceId, task: TaskId) -> Result<(), Error> {
        let waiting = self.mailbox.queue.waiting(lane(actor_id(workspace, task).as_str())).await.map_err(internal)?;
        if waiting < self.most_waiting {
            return Ok(());
        }
        Err(come_again(format!("{waiting} messages of tasks of this workspace wait; {} may", self.most_waiting)))
    }

    /// Writes down that there is a task, once however often it is asked for: with it a place, where its flow has only so many. One that was deleted
    /// since is not made again while its log is there: the log has begun, so that nothing would begin, and nothing would give the place back.
    pub(super) async fn write_down(&self, flow: &Flow, config: &TaskConfig, start: &QueueMessage) -> Result<(), Error> {
        let key = view_key(config.workspace, config.task);
        let view = serde_json::to_string(&first_view(config)).map_err(internal)?;
        let put = Write::put(key, view, Expect::Absent).indexed(view_index(config));
        // Its metadata is written down now: later it may be another engine that reads it (spec 002 §10.2). And its first
        // message is kept until it has begun, in case this process dies before it has sent it.
        let begun = Start { at: self.clock.now(), message: start.clone() };
        let made_with = metadata::record(config, flow, self.flows.known().default_model.as_deref());
        let mut task = vec![put, made_with, begun.write(config).map_err(internal)?];
        task.extend(ended::absent(&actor_id(config.workspace, config.task)));
        let Some(most) = flow.limits.max_queued else {
            return match self.table.commit(task).await {
                Ok(()) => {
                    self.count(config, flow);
                    Ok(())
                }
                Err(PortError::Conflict { .. }) => Ok(()),
                Err(error) => Err(internal(error)),
            };
        };
        let places = FlowPlaces { table: &*self.table, config, most };
        for _ in 0..OVERTAKEN {
            let Some(place) = places.take().await.map_err(internal)? else { break };
            let writes = task.iter().cloned().chain(place).collect();
            match self.table.commit(writes).await {
                Ok(()) => {
                    self.count(config, flow);
                    return Ok(());
                }
                Err(PortError::Conflict { .. }) => {}
                Err(error) => return Err(internal(error)),
            }
            if self.was_written_down(config).await? {
                return Ok(());
            }
        }
        if self.was_written_down(config).await? {
            return Ok(());
        }
        self.begin_stuck(&places).await.map_err(internal)?;
        Err(come_again(format!("at most {} of this flow may run or wait, and no place is free", counted(most, "task"))))
    }

    /// Whether there is the task, or was one that was deleted since.
    async fn was_written_down(&self, config: &TaskConfig) -> Result<bool, Error> {
        let (place, actor) = (view_key(config.workspace, config.task), actor_id(config.workspace, config.task));
        let is_listed = self.table.get(&place).await.map_err(internal)?.is_some();
        Ok(is_listed || ended::has_left(&*self.table, &actor).await.map_err(internal)?)
    }

    /// Counts a task that is new.
    fn count(&self, config: &TaskConfig, flow: &Flow) {
        if let Some(observer) = &self.observer {
            observer.accepted(config, flow);
        }
    }

    /// Begins tasks that were admitted and have not begun. One whose message is only slow gets it twice, which is harmless. One that cannot
    /// be read keeps none of the others waiting.
    async fn begin_stuck(&self, places: &FlowPlaces<'_>) -> PortResult<()> {
        let now = self.clock.now();
        let page = self.table.query(&Query::prefix(partition(places.config), "start/", REPAIRED_AT_ONCE)).await?;
        for (_, start) in ports::readable::<Start>(&page.items) {
            if now.since(start.at) >= SLOW {
                self.mailbox.send(start.message).await?;
            }
        }
        Ok(())
    }
}

/// The places of a flow.
struct FlowPlaces<'a> {
    table: &'a dyn Table,
    config: &'a TaskConfig,
    most: u32,
}

impl FlowPlaces<'_> {
    /// The writes that take one; none when all are taken. They fail when another caller takes one in the meantime.
    async fn take(&self) -> PortResult<Option<Vec<Write>>> {
        let gate = Key::new(partition(self.config), "gate");
        let (expect, mut taken, last) = match self.table.get(&gate).await? {
            None => (Expect::Absent, 0, None),
            Some(item) => {
                let Gate { taken, last } = item.content()?;
                (Expect::Rev(item.rev), taken, Some(last))
            }
        };
        if taken >= self.most {
            taken = self.count(last).await?;
        }
        if taken >= self.most {
            return Ok(None);
        }
        Ok(Some(vec![
            Write::put(gate, text(&Gate { taken: taken + 1, last: self.config.task })?, expect),
            Write::put(place_key(self.config), "{}", Expect::Absent),
        ]))
    }

    /// How many are taken: never fewer than there are, as none is taken without the gate. A range may be read while the last
    /// commit that took one becomes visible, so that one is looked for by itself.
    async fn count(&self, last: Option<TaskId>) -> PortResult<u32> {
        let mut last = last.map(|task| place_key(&TaskConfig { task, ..self.config.clone() }));
        let (mut taken, mut pages) = (0, self.table.pages(Query::prefix(partition(self.config), "task/", 256)));
        while let Some(items) = pages.next().await? {
            taken += items.len() as u32;
            last = last.filter(|last| items.iter().all(|item| item.key != *last));
            if taken >= self.most {
                return Ok(taken);
            }
        }
        let unseen = match &last {
            Some(last) => self.table.get(last).await?.is_some(),
            None => false,
        };
        Ok(taken + u32::from(unseen))
    }
}

fn come_again(message: String) -> Error {
    Error::new(Code::RateLimited, message)
        .detail("retry_after_s", COME_AGAIN)
        .hint(format!("try again in {COME_AGAIN} seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;
    use testkit::golden;

    #[test]
    fn persisted_admissions_are_read_for_ever() {
        const ROOT: &str = env!("CARGO_MANIFEST_DIR");
        golden::check(ROOT, "admission_gate", &Gate { taken: 3, last: TaskId(uuid::Uuid::from_u128(7)) });
        let message = QueueMessage {
            group: "task/w/t".into(),
            id: "1".into(),
            body: "{}".into(),
            deliver_at: Some(Timestamp::from_millis(1_767_225_600_042)),
            priority: 3,
        };
        golden::check(ROOT, "admission_start", &Start { at: Timestamp::from_millis(1_767_225_600_042), message });
    }
}
