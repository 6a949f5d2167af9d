//! Calls that nodes make: their ids, and how history shows them. The machine and its effects know both.

use domain::{CallId, NodeId, TaskId, text::beginning};

/// The most of arguments and outputs that history shows, in bytes.
const SHOWN: usize = 4096;

/// The call of a node: the same after a crash, another one when the node is tried again by decision.
pub(crate) fn call_of(task: TaskId, node: &NodeId, retry: u32) -> CallId {
    CallId::from_key(&task.to_string(), &format!("{node}/{retry}"))
}

/// The text as history shows it: its beginning, with `…` behind it where it is long.
pub(crate) fn cut(text: &str) -> String {
    beginning(text, SHOWN)
}
