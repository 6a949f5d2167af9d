//! The keys of tasks that were admitted. The facade takes the places and keeps the first messages; the machine gives both back.

use domain::{TaskConfig, WorkspaceId};
use ports::Key;

/// The partition of the tasks of a flow that were admitted.
pub(crate) fn partition(config: &TaskConfig) -> String {
    partition_of(config.workspace, &config.flow.name)
}

/// The same by the name of the flow.
pub(crate) fn partition_of(workspace: WorkspaceId, flow: &str) -> String {
    format!("{workspace}/admitted/{flow}")
}

/// The key of a task's place.
pub(crate) fn place_key(config: &TaskConfig) -> Key {
    Key::new(partition(config), format!("task/{}", config.task))
}

/// The key of a task's first message.
pub(crate) fn start_key(config: &TaskConfig) -> Key {
    Key::new(partition(config), format!("start/{}", config.task))
}
