//! The first messages of tasks, which are kept until their tasks have begun.

use crate::admission_keys::start_key;
use domain::{TaskConfig, TaskId, Timestamp};
use ports::{Error as PortError, Expect, Key, QueueMessage, Result as PortResult, Write};
use serde::{Deserialize, Serialize};

/// The number of parts in which the index has them: one key of an index takes a thousand writes a second.
pub const START_SHARDS: u8 = 16;

fn shard(task: TaskId) -> u8 {
    task.0.as_bytes().last().copied().unwrap_or_default() % START_SHARDS
}

pub(super) fn partition(shard: u8) -> String {
    format!("starts/{shard:x}")
}

/// The key in the index of a task that waits for its beginning since `at`.
pub(super) fn waits(task: TaskId, at: Timestamp) -> Key {
    Key::new(partition(shard(task)), format!("{at}/{task}"))
}

/// The first message of a task.
#[derive(Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) at: Timestamp,
    pub(super) message: QueueMessage,
}

impl Start {
    pub(super) fn write(&self, config: &TaskConfig) -> PortResult<Write> {
        let put = Write::put(start_key(config), text(self)?, Expect::Absent);
        Ok(put.indexed(waits(config.task, self.at)))
    }
}

/// The JSON of what admission keeps.
pub(super) fn text(value: &impl Serialize) -> PortResult<String> {
    serde_json::to_string(value).map_err(|error| PortError::Invalid(error.to_string()))
}
