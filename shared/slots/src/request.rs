//! The requests of a semaphore, and its events.

use actor::ActorId;
use domain::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The commands of a semaphore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum SlotsCommand {
    /// Somebody wants slots. The same again changes nothing, but for a priority that is another one: the request keeps since when it
    /// waits. One that was granted is told again.
    Ask {
        /// The request.
        ask: Box<Ask>,
    },
    /// Somebody wants its slots no more, whether it has them or waits for them. Again is harmless.
    Give {
        /// The holder.
        holder: String,
    },
    /// The logs of all actors of a party are removed, so that these give nothing back. All that they asked for before this command is given back,
    /// and their requests leave the line. A request that lies in the mailbox already comes before this command. Again is harmless.
    Release {
        /// The party.
        party: String,
    },
}

/// A request: one slot of each of some names, all or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The purpose of the slots, unique per request: for example a task with its node and attempt.
    pub holder: String,
    /// The names, and how many slots there are of each (at least 1).
    pub wants: Vec<(String, u32)>,
    /// The party of the request: parties that want the same slots take turns.
    pub party: String,
    /// How many slots of a name its party holds at most for each that is free, so that a party which takes all it can leaves some
    /// to the next one (the dynamic threshold of Choudhury and Hahne); all of them when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
    /// Of the requests of a party, one with more goes first; -100 to 100.
    pub priority: i8,
    /// The actor to tell when the slots are granted.
    pub to: ActorId,
    /// The command that tells it. It names the request, if its sender may ask again.
    pub grant: Value,
    /// How many requests of its party may wait before this one is refused; as many as come when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<QueueLimit>,
}

/// A limit on waiting requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueLimit {
    /// How many requests of a party may wait.
    pub waiting: u32,
    /// The command that refuses one more.
    pub refusal: Value,
}

impl Ask {
    /// The key that requests for the same slots share.
    pub(crate) fn line(&self) -> String {
        self.wants.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// The events of a semaphore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SlotsEvent {
    /// A request waits for slots, or has got another priority.
    Asked {
        /// The request.
        ask: Box<Ask>,
        /// When it came.
        at: Timestamp,
    },
    /// A holder has its slots.
    Granted {
        /// The holder.
        holder: String,
    },
    /// A holder gave its slots back, or waits no more.
    Given {
        /// The holder.
        holder: String,
    },
}
