//! The part of the work that a request to stop ends.

use serde::{Deserialize, Serialize};

/// The targets of a request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopTarget {
    /// The work with this id, which the requester saw running.
    This(uuid::Uuid),
    /// Nothing was seen running: the first work that was asked for before the request.
    First,
    /// All running, waiting and future work: the actor is about to be ended by a command that [`ends`](crate::Machine::ends) it, and that command is
    /// already in its mailbox.
    Everything,
    /// The actor and all that works for it: see [`ActorTree`](crate::ActorTree).
    Tree,
}
