//! The reasons for which a chat goes on later, and holds nothing until then.

use crate::{CallId, CommandId, Error, FilePath, Limits, MessageId, Timestamp, TraceContext, TurnWishes, UserId};
use serde::{Deserialize, Serialize};

/// A message waits for the turn before its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnWait {
    /// The command that asked for the turn.
    pub command_id: CommandId,
    /// When it was asked for.
    pub at: Timestamp,
    /// The person's words.
    pub content: String,
    /// Attached files.
    pub files: Vec<FilePath>,
    /// The text that the model reads after the words.
    pub context: String,
    /// Narrower limits.
    pub limits: Option<Limits>,
    /// Whether it goes before the others that wait, because it interrupts. An event has it only where it is true, and a snapshot
    /// always, since all versions write both so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<bool>,
    /// Whether the sender has the right to approve.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_approve: bool,
    /// Whether the sender may run no flows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_not_run: bool,
    /// Whether the sender is an agent without the home of its person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_home: bool,
    /// The trace that the request came in, where it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The person who wrote the words; none where a program did. Older logs lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The wishes of the message about the calls of the model, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wishes: Option<Box<TurnWishes>>,
}

/// A model is to be asked, and as many are asked as may be at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlotWait {
    /// The message to come.
    pub message_id: MessageId,
    /// The name under which it waits.
    pub holder: String,
    /// The start of the wait.
    pub at: Timestamp,
}

/// A provider failed in a way that passes, and said nothing yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryWait {
    /// The message to come.
    pub message_id: MessageId,
    /// How often the call has failed.
    pub failures: u32,
    /// The last failure.
    pub error: Error,
    /// When it failed.
    pub at: Timestamp,
    /// When the model is asked again.
    pub until: Timestamp,
}

/// A command is to run, and its machine has as many as it takes, or starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaceWait {
    /// The call.
    pub call_id: CallId,
    /// The attempt that starts then.
    pub attempt: u32,
    /// The start of the wait.
    pub at: Timestamp,
    /// The reason for the wait, if it has its place and the machine is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it is made again then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}
