//! Errors of stores and queues as clients read them.

use domain::{ActorKind, Error};

/// Logs the cause of an internal error; a client learns that it was not its fault.
pub fn internal(error: impl std::error::Error + 'static) -> Error {
    actor::unreachable(ActorKind::Task, error)
}
