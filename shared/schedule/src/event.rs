//! The commands and the events of a schedule.

use crate::config::{ScheduleConfig, StartedWork};
use domain::{Error, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The commands of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum ScheduleCommand {
    /// Make it.
    Create {
        /// How it is set up.
        config: Box<ScheduleConfig>,
    },
    /// Set it up anew.
    Change {
        /// How it is set up from now on.
        config: Box<ScheduleConfig>,
    },
    /// Let nothing begin until it is resumed.
    Pause,
    /// Go on with the next time.
    Resume,
    /// Begin a run now, besides the times.
    RunNow {
        /// The id of the run.
        run: Uuid,
    },
    /// A time is due. A schedule sends it to itself.
    Tick {
        /// The time.
        due: Timestamp,
    },
    /// Give it up.
    Delete,
}

/// The events of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ScheduleEvent {
    /// It was made.
    Created {
        /// How it is set up.
        config: Box<ScheduleConfig>,
        /// Its first time.
        next: Option<Timestamp>,
        /// When.
        at: Timestamp,
    },
    /// It was set up anew.
    Changed {
        /// How it is set up from now on.
        config: Box<ScheduleConfig>,
        /// Its next time.
        next: Option<Timestamp>,
        /// When.
        at: Timestamp,
    },
    /// Nothing begins until it is resumed.
    Paused {
        /// The reason, where no person paused it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
        /// When.
        at: Timestamp,
    },
    /// It goes on.
    Resumed {
        /// Its next time.
        next: Option<Timestamp>,
        /// When.
        at: Timestamp,
    },
    /// A run begins.
    Due {
        /// Its id, from which those of its chat or task follow.
        run: Uuid,
        /// The time that it was due; none when a person asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<Timestamp>,
        /// The next time.
        next: Option<Timestamp>,
        /// How many times were missed since `due`.
        missed: u32,
        /// When it begins.
        at: Timestamp,
    },
    /// The worker that began the run is gone: it is begun again, under the same ids.
    Retried {
        /// The run.
        run: Uuid,
        /// Counts from 2.
        attempt: u32,
    },
    /// A time was found too late, and is skipped.
    Skipped {
        /// The time.
        due: Timestamp,
        /// The next time.
        next: Option<Timestamp>,
        /// How many times were missed since `due`.
        missed: u32,
        /// When it was found.
        at: Timestamp,
    },
    /// A run began its chat, message or task.
    Began {
        /// The run.
        run: Uuid,
        /// The chat or task that it began.
        began: StartedWork,
        /// When.
        at: Timestamp,
    },
    /// A run began nothing.
    Failed {
        /// The run.
        run: Uuid,
        /// Why not.
        error: Error,
        /// When.
        at: Timestamp,
    },
    /// It was given up.
    Deleted {
        /// When.
        at: Timestamp,
    },
}
