//! Turns errors of ports into errors for people.

use domain::{Code, Error};

/// The result of this crate's calls.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// A port's error: the caller learns whether to try again, the log learns why.
pub(crate) fn port(error: ports::Error) -> Error {
    let told = match error.kind() {
        ports::ErrorKind::Retry if error.is_full() => Error::storage_full(),
        ports::ErrorKind::Retry => Error::new(Code::UpstreamUnavailable, "a store did not answer").hint("try again"),
        ports::ErrorKind::Reject => Error::new(Code::InvalidArgument, error.to_string()),
        ports::ErrorKind::Bug => Error::new(Code::Internal, "stored data is damaged"),
    };
    if told.code != Code::InvalidArgument {
        tracing::error!(error = %error.with_causes(), "the records of people could not be read or written");
    }
    told
}

/// Stored data differs from the data that was written here.
pub(crate) fn damaged(error: serde_json::Error) -> Error {
    port(ports::Error::Damaged(error.to_string()))
}

/// Refuses an item with fields that this version does not know: to ignore one could allow what it forbids, and to rewrite the item would
/// lose it.
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

/// One refusal for every fault before the signature: a forger learns nothing from it.
pub(crate) fn not_valid() -> Error {
    unauthorized("the token is not valid", "send one that was signed for this server")
}
