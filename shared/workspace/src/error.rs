//! Turns errors of ports and disks into errors for clients.

use crate::Result;
use domain::{Code, Error, FilePath};
use serde::{Serialize, de::DeserializeOwned};
use std::io;

/// The detail of an error about data of the index that cannot be read.
const DAMAGED: &str = "damaged";

/// A port's error. Whether to try again is in the code: `UPSTREAM_UNAVAILABLE` and `CONFLICT` yes, others no.
pub(crate) fn port(error: ports::Error) -> Error {
    match error {
        ports::Error::Conflict { .. } => busy(),
        ports::Error::Invalid(what) => Error::new(Code::InvalidArgument, what),
        ports::Error::Damaged(what) => {
            tracing::error!(%what, "stored data is damaged");
            Error::new(Code::Internal, "stored data of the workspace is damaged").detail(DAMAGED, "index")
        }
        ports::Error::Lost { place, damage } => {
            tracing::error!(place, %damage, "stored data is lost");
            damage.refusal(&place).detail(DAMAGED, "index")
        }
        error if error.is_full() => {
            tracing::warn!(error = %error.with_causes(), "a store is full");
            Error::storage_full()
        }
        ports::Error::Unavailable { what, source } => {
            tracing::warn!(what, error = %ports::with_causes(&*source), "a store did not answer");
            Error::new(Code::UpstreamUnavailable, format!("{what} is unavailable")).hint("try again")
        }
    }
}

/// Whether an error says that the index of a workspace has data that cannot be read.
pub fn is_damage_of_index(error: &Error) -> bool {
    error.details.contains_key(DAMAGED)
}

/// Turns a disk's error while doing `what` into an API error. The path on this machine stays out of it; the log has the cause.
pub(crate) fn disk(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |error| {
        tracing::error!(what, %error, "the workspace's disk failed");
        if ports::is_full(&error) {
            return Error::storage_full();
        }
        Error::new(Code::Internal, format!("{what} failed on disk: {}", error.kind()))
    }
}

/// A task of ours did not end by itself.
pub(crate) fn task(error: tokio::task::JoinError) -> Error {
    tracing::error!(%error, "a task of the workspace failed");
    Error::new(Code::Internal, "the operation did not run to its end")
}

/// Others were faster, again and again.
pub(crate) fn busy() -> Error {
    Error::new(Code::Conflict, "others changed the same place at the same time").hint("look again, then try again")
}

/// `path` is a `there`, which the operation cannot use.
pub(crate) fn wrong_kind(path: &FilePath, is: &str, hint: &str) -> Error {
    Error::new(Code::Unprocessable, format!("{path} is {is}")).hint(hint)
}

pub(crate) fn parse<T: DeserializeOwned>(body: &str) -> Result<T> {
    serde_json::from_str(body).map_err(|error| port(ports::Error::Damaged(error.to_string())))
}

pub(crate) fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| port(ports::Error::Damaged(error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::Damage;

    #[test]
    fn damage_of_the_index_is_told_from_every_other_error_whatever_its_words() {
        let lost = ports::Error::Lost { place: "a row".into(), damage: Damage::Missing };
        for damaged in [port(ports::Error::Damaged("a row".into())), port(lost)] {
            let reworded = Error { message: "it is broken".into(), ..damaged.clone() };
            assert!(is_damage_of_index(&damaged) && is_damage_of_index(&reworded), "{damaged:?}");
            assert!(!crate::damages::is_damage(&damaged), "it is no content that is lost: {damaged:?}");
        }
        let same_words = Error::new(Code::Internal, port(ports::Error::Damaged("a row".into())).message);
        let full = port(ports::Error::full("the store"));
        let disk = disk("to write a file")(io::Error::other("a fault"));
        for other in [same_words, full, busy(), disk] {
            assert!(!is_damage_of_index(&other), "{other:?}");
        }
    }
}
