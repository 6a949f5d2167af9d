//! Typed ids. All are UUIDs: version 7 where they are drawn, version 5 where they are derived from a key, and version 8 for tasks. So those
//! that are drawn sort by the time of their making, and all can be made anywhere without a round trip.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use uuid::Uuid;

/// A text that is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {kind} id: expected a UUID like 019bf537-f228-7cd3-aa1c-3da8af302e12")]
pub struct IdError {
    kind: &'static str,
    text: String,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $kind:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// The id that `key` stands for inside `scope`: the same key gives the same id on every machine.
            pub fn from_key(scope: &str, key: &str) -> Self {
                let space = Uuid::new_v5(&Uuid::NAMESPACE_OID, scope.as_bytes());
                Self(Uuid::new_v5(&space, key.as_bytes()))
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(&self.0.hyphenated(), f) }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(&self.0.hyphenated(), f) }
        }
        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Uuid::try_parse(text)
                    .map(Self)
                    .map_err(|_| IdError { kind: $kind, text: text.chars().take(64).collect() })
            }
        }
        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self { Self(id) }
        }
    )*};
}

ids! {
    /// A workspace: one logical volume of files with its chats and members (spec 001 §1).
    WorkspaceId = "workspace";
    /// A chat: one durable conversation, one actor.
    ChatId = "chat";
    /// The permanent identity of a file or folder; survives moves and every new version (spec 000 §1).
    FileId = "file";
    /// One turn of a chat: from a person's message to `done` or `stopped`.
    TurnId = "turn";
    /// One message of a chat.
    MessageId = "message";
    /// One tool call; also the idempotency key of its effects.
    CallId = "call";
    /// One command to an actor; a redelivered command keeps its id.
    CommandId = "command";
    /// One request to stop a turn.
    StopId = "stop";
    /// One request to hold a tree of tasks.
    HoldId = "hold";
    /// One set of questions put to a person.
    QuestionId = "question";
    /// One request for permission.
    PermissionId = "permission";
    /// One run of a flow, or a clone or subtask of one (spec 002 §2.1).
    TaskId = "task";
    /// One run of an evaluation suite.
    EvaluationId = "evaluation";
    /// A person.
    UserId = "user";
}
