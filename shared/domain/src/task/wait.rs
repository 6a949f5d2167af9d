//! The waits of a node, and the reasons to begin one anew.

use crate::{Error, Timestamp};
use serde::{Deserialize, Serialize};

/// Why a node was begun anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Counts from 1.
    pub number: u32,
    /// The last failure.
    pub error: Error,
}

/// A wait of a node that holds no worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Wait {
    /// It failed, and is tried again then.
    Backoff {
        /// The time of the retry.
        until: Timestamp,
        /// The retry that follows, with the error.
        retry: Retry,
    },
    /// Its flow or the node itself has as many at work as may be (`max_concurrency`). It begins when its turn comes.
    Slots {
        /// The names that it waits for, such as `flow/<name>/<hash>`.
        names: Vec<String>,
        /// The name under which it waits.
        holder: String,
        /// The retry that it begins with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<Retry>,
        /// How long the task waited in the queue before, in milliseconds.
        queue_ms: u64,
    },
    /// Nothing is left of the budget for its agent. It goes on when the task above gives more, or a child gives back its rest.
    Budget {
        /// The answers of its agent so far; 0 if it is not asked yet.
        round: u32,
    },
    /// The machine that its command runs on has as many as it takes, or starts. It begins when its turn comes.
    Place {
        /// The name under which it waits.
        holder: String,
        /// The retry that it begins with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<Retry>,
        /// How long it waited before, in milliseconds.
        queue_ms: u64,
        /// The reason for the wait, if it has its place and the machine is not ready.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// When it is begun again then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
}
