//! The task machine by hand: its decision for every input, without anything else.

#![expect(clippy::unwrap_used, reason = "tests")]

mod agents;
mod budget;
mod crashes;
mod deletion;
mod golden;
mod human_steps;
mod inspect;
mod lifecycle;
mod ops;
mod paused_tasks;
mod play;
mod spawn;
