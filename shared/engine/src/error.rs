//! Errors of stores and queues as clients read them.

use domain::{ActorKind, Code, Error};

/// Logs the cause of an internal error; a client learns that it was not its fault.
pub fn internal(error: impl std::error::Error + 'static) -> Error {
    actor::unreachable(ActorKind::Task, error)
}

/// The failure of a store, such as `memory`, as the failure of a node. A retry of the node may succeed where one of the request may.
pub(crate) fn store_failed(store: &str, error: ports::Error) -> Error {
    match error.kind() {
        _ if error.is_full() => Error::storage_full(),
        ports::ErrorKind::Retry => {
            tracing::warn!(error = %error.with_causes(), "{store} did not answer");
            Error::new(Code::UpstreamUnavailable, format!("{store} did not answer")).hint("try again")
        }
        // A request of ours that the store refuses is a fault of ours, too.
        ports::ErrorKind::Reject | ports::ErrorKind::Bug => {
            tracing::error!(error = %error.with_causes(), "{store} is damaged, or refuses a request");
            error.lost().unwrap_or_else(|| Error::new(Code::Internal, format!("{store} cannot be used")))
        }
    }
}
