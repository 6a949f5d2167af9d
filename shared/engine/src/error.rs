//! Errors of stores and queues as clients read them.

use domain::{Code, Error};

/// Logs the cause of an internal error; a client learns that it was not its fault.
pub fn internal(error: impl std::error::Error + 'static) -> Error {
    let cause: &(dyn std::error::Error + 'static) = &error;
    tracing::error!(cause = %cause, "a task could not be reached");
    if ports::is_full(cause) {
        return Error::storage_full();
    }
    let is_away = matches!(cause.downcast_ref(), Some(ports::Error::Unavailable { .. }));
    let code = if is_away { Code::UpstreamUnavailable } else { Code::Internal };
    Error::new(code, "the task could not be reached").hint("try again; accepted commands are kept")
}
