//! The errors that people and programs get: a stable code, a message in words, and a hint on what to do. The adapter of a protocol maps the
//! codes to the protocol's own (an HTTP status, an exit code).

use serde::{Deserialize, Serialize};
use std::fmt;

/// Stable machine-readable error codes (spec 004 §10). Codes never change meaning; messages may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// The request itself is malformed.
    InvalidArgument,
    /// No valid credentials.
    Unauthorized,
    /// Credentials without the right to do this.
    Forbidden,
    /// No such thing, or one that belongs to somebody else.
    NotFound,
    /// The thing is in a state that does not allow this.
    Conflict,
    /// The idempotency key was used with another request.
    IdempotencyMismatch,
    /// The version named is not the current one.
    StaleVersion,
    /// The body or the content is over its limit.
    PayloadTooLarge,
    /// Well-formed, but it cannot be done as asked.
    Unprocessable,
    /// Too many requests; try again later.
    RateLimited,
    /// A limit of the turn (steps, tokens, wall time, money) was reached.
    LimitReached,
    /// Stopped on request.
    Cancelled,
    /// A fault on our side.
    Internal,
    /// A model or another service that we depend on did not answer as it should.
    UpstreamUnavailable,
    /// A model or another service that we depend on refuses us: our key, or an account without credit. The same request fails
    /// until somebody changes that.
    UpstreamRefused,
    /// It took too long.
    Timeout,
    /// A stored content differs from its digest, and no good copy of it was found.
    ContentDamaged,
    /// A stored content is lost, and no copy of it was found.
    ContentMissing,
    /// There is no room to store it.
    StorageFull,
    /// A command failed again and again and was put aside.
    Paused,
    /// It was not begun, because there was no place or no machine for it: nothing of it happened, and it can be tried again as it is.
    NotBegun,
    /// It was begun, and its outcome is not known: it may have taken effect or not.
    OutcomeUnknown,
    /// The very same input ended the process of the server while nothing else ran, so it is not tried again for now.
    Quarantined,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// An error as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind of error, for programs.
    pub code: Code,
    /// The explanation, for people.
    pub message: String,
    /// The advice, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Further facts, for programs: the field at fault, the version found. Boxed, so that results stay small.
    #[serde(default, skip_serializing_if = "no_details")]
    pub details: Box<serde_json::Map<String, serde_json::Value>>,
}

#[expect(clippy::borrowed_box, reason = "serde passes the field as it is")]
fn no_details(details: &Box<serde_json::Map<String, serde_json::Value>>) -> bool {
    details.is_empty()
}

impl Error {
    /// An error with a code and a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, details: Box::default() }
    }
    /// `INVALID_ARGUMENT` about `field`.
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message).detail("field", field)
    }
    /// `NOT_FOUND` for a `kind` of thing named `name`.
    pub fn not_found(kind: &str, name: impl fmt::Display) -> Self {
        Self::new(Code::NotFound, format!("there is no {kind} {name}"))
    }
    /// `NOT_FOUND` of a tool, with the detail by which [`Error::names_no_tool`] knows it.
    pub fn no_tool(name: &str) -> Self {
        Self::not_found("tool", name.chars().take(64).collect::<String>()).detail("field", "tool")
    }
    /// Whether a call named a tool that does not exist, and not a thing that the tool did not find.
    pub fn names_no_tool(&self) -> bool {
        self.code == Code::NotFound && self.details.get("field").is_some_and(|field| field == "tool")
    }
    /// `STORAGE_FULL`: there is no room to store it, and nothing of it was stored.
    pub fn storage_full() -> Self {
        Self::new(Code::StorageFull, "there is no room left to store this, and nothing of it was stored")
            .hint("free space on the disk of the server, then send it again; reads and deletions go on meanwhile")
    }
    /// The same error with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// The same error with one more fact.
    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.details.insert(key.into(), value.into());
        self
    }
}
