//! From what a port says to what people read.

use domain::{Code, Error};

/// The result of this crate's calls.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// A port's error: the caller learns whether to try again, the log learns why.
pub(crate) fn port(error: ports::Error) -> Error {
    let told = match error.kind() {
        ports::Kind::Retry if error.is_full() => Error::storage_full(),
        ports::Kind::Retry => Error::new(Code::UpstreamUnavailable, "a store did not answer").hint("try again"),
        ports::Kind::Reject => Error::new(Code::InvalidArgument, error.to_string()),
        ports::Kind::Bug => Error::new(Code::Internal, "stored data is damaged"),
    };
    if told.code != Code::InvalidArgument {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "what is known of people could not be read or written"
        );
    }
    told
}

/// What is stored is not what was written here.
pub(crate) fn damaged(error: serde_json::Error) -> Error {
    port(ports::Error::Damaged(error.to_string()))
}

/// Refuses an item that says more than this version knows: overlooking it could give away what it forbids, and writing it anew
/// would lose it.
pub(crate) fn known(newer: &serde_json::Map<String, serde_json::Value>) -> Result<()> {
    match newer.keys().next() {
        None => Ok(()),
        Some(name) => Err(port(ports::Error::Damaged(format!("{name:?} is of a newer version")))),
    }
}

/// The body of an item.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(damaged)
}

/// No valid credential.
pub(crate) fn unauthorized(message: &str, hint: &str) -> Error {
    Error::new(Code::Unauthorized, message).hint(hint)
}
