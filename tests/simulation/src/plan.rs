//! The faults of a run.

use crate::sabotage::Safeguard;
use std::time::Duration;
use testkit::{crash::Side, fakes::Faults};

/// How the life of one process goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It lives to the end.
    Whole,
    /// It dies at its call with this number, beginning with 1. Another one begins in its place.
    Dies(u64, Side),
    /// It dies as soon as it has received messages. Another one begins in its place.
    DiesReceiving,
    /// It is cut off from the world in front of its call with this number, for a time longer than its deliveries stay
    /// invisible. Another one begins on another machine; then there are two.
    CutOff(u64),
    /// It is ended so long after its beginning, in the middle of its work, as a function is that overruns its time. Another one begins in
    /// its place.
    TimesOut(Duration),
    /// It lives to the end, and the process of a coding agent, its child, dies instead of doing its step with this number, beginning with 1.
    /// Another one begins with the next turn.
    LosesAgent(u64),
}

/// The faults of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The source of all choices: faults, ids, and the times of people's acts.
    pub seed: u64,
    /// The faults of the stores.
    pub faults: Faults,
    /// The lives of the processes, one after the other; those after the last one are whole.
    pub lives: Vec<Life>,
    /// Whether people act at random times instead of when the scenario says so.
    pub restless: bool,
    /// Whether the table and the queue are one store, as on a hub: an entry and its messages are one call. As on AWS, they are two otherwise.
    pub one_store: bool,
    /// A safeguard that is taken out, to see that it is missed.
    pub without: Option<Safeguard>,
}

impl Plan {
    /// Nothing goes wrong.
    pub fn calm() -> Self {
        Self { seed: 0, faults: Faults::none(), lives: Vec::new(), restless: false, one_store: false, without: None }
    }

    /// The first process has this life, nothing else goes wrong.
    pub fn with(life: Life) -> Self {
        Self { lives: vec![life], ..Self::calm() }
    }

    /// How long the processes keep the states of chats that were shut down. One of three schedules of seeds has a cache, so that a state comes back
    /// behind a log that another process wrote; in all others idle chats are read again.
    pub fn context_cache(&self) -> Duration {
        let has_cache = self.restless && self.seed % 3 == 1;
        if has_cache { Duration::from_secs(3600) } else { Duration::ZERO }
    }
}

/// How long a process that is cut off stays away.
pub const AWAY: Duration = Duration::from_secs(75);
/// How long until a process that died is replaced.
pub const REPLACED_AFTER: Duration = Duration::from_secs(1);
