//! The task machine by hand: its decision for every input, without anything else.

#![expect(clippy::unwrap_used, reason = "tests")]

mod agents;
mod budget;
mod crashes;
mod golden;
mod gone;
mod inspect;
mod life;
mod ops;
mod parked;
mod people;
mod play;
mod spawn;
