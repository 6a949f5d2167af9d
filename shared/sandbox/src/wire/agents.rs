//! The requests to the coding agents of a sandbox, and to the working copies that they work in.

use domain::{ChatId, FilePath};
use ports::{AgentPrompt, AgentTurn, AgentUpdate, CopiedFile, CopyRecord};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use uuid::Uuid;

/// How long a copy stays in the hand of a caller that does not use it.
pub const COPY_LEASE: Duration = Duration::from_secs(60);

/// A call of [`ports::Agents`] for a chat of the sandbox's workspace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentCall {
    /// The answer is empty.
    Prompt(Box<AgentPrompt>),
    /// The answer is [`Updates`], within [`super::LONGEST_WAIT`].
    Updates {
        /// The turn.
        turn: AgentTurn,
        /// The number of the last batch that the caller has; none for a caller that has none yet.
        seen: Option<u64>,
    },
    /// The answer is empty.
    Answer {
        /// The turn.
        turn: AgentTurn,
        /// The request of the agent.
        request: String,
        /// The option; none cancels the request.
        option: Option<String>,
    },
    /// The answer is empty.
    Settle {
        /// The turn.
        turn: AgentTurn,
        /// The request of the agent.
        request: String,
        /// Why its file is not written; none for one that is.
        refused: Option<String>,
    },
    /// The answer is empty.
    Cancel(AgentTurn),
    /// The answer is empty.
    End(ChatId),
    /// The answer is a list of [`ports::AgentCommand`].
    Commands(ChatId),
}

/// A batch of updates of a turn. An answer that was lost on its way is given again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Updates {
    /// The number of the batch in its turn, from 1.
    pub number: u64,
    /// The updates; none when there was none for a while.
    pub updates: Vec<AgentUpdate>,
}

/// A call of [`ports::WorkingCopies`] or [`ports::WorkingCopy`]. The body is [`super::packed`]: the call as JSON, and with [`CopyCall::Put`] the content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyCall {
    /// The answer is a [`HeldCopy`], or null when another caller had the copy for [`super::LONGEST_WAIT`].
    Hold(ChatId),
    /// The answer is a map of [`CopiedFile`] by path.
    Scan {
        /// The hold.
        hold: Uuid,
        /// The folder.
        folder: FilePath,
        /// The record as the caller has it.
        record: CopyRecord,
    },
    /// The answer is [`super::packed`]: the content, or nothing.
    Read {
        /// The hold.
        hold: Uuid,
        /// The file.
        path: FilePath,
        /// The file as it was found.
        found: CopiedFile,
    },
    /// The answer is whether it was put there.
    Put {
        /// The hold.
        hold: Uuid,
        /// The file.
        path: FilePath,
        /// The file that was found there; none where there was none.
        over: Option<CopiedFile>,
    },
    /// The answer is whether it was removed.
    TakeAway {
        /// The hold.
        hold: Uuid,
        /// The file.
        path: FilePath,
        /// The file as it was found.
        found: CopiedFile,
    },
    /// The answer is empty.
    Keep {
        /// The hold.
        hold: Uuid,
        /// The record as the caller has it.
        record: CopyRecord,
    },
    /// Lets others have the copy. A hold that is not used for [`COPY_LEASE`] is let go by itself. The answer is empty.
    Release(Uuid),
    /// The answer is empty.
    Remove(ChatId),
}

/// A copy in the hand of a caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldCopy {
    /// The hold.
    pub hold: Uuid,
    /// The knowledge that the copy keeps of itself.
    pub record: CopyRecord,
}
