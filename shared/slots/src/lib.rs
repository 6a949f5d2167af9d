//! Semaphores: limits by name on what runs at once, such as of a flow, a node, a provider (spec 002 §10.12) or a machine
//! that runs commands.
//!
//! A semaphore is an actor like any other. Whoever wants a slot sends it a request and rests; a letter tells it when the slot is its
//! own, and a letter gives the slot back. So a request that waits is a row of a log: it holds no worker, no task and no connection, it
//! survives every crash, and the limit is exact however many workers there are.
//!
//! ```text
//!   task or chat ── Ask ──▶ semaphore ── the asker's own command ──▶ task or chat ── Give ──▶ semaphore
//!                           Asked, Granted                                                   Given, Granted
//! ```
//!
//! It does not know why somebody waits, and it takes nothing back: a holder gives its slots back in the entry that ends what it needed
//! them for, so that a crash can neither lose nor double a slot.

mod line;
mod machine;
mod places;
mod state;

pub use machine::{Ask, Bound, NoEffects, SlotsCommand, SlotsEvent, SlotsMachine, semaphore};
pub use places::{Places, Wanted};
pub use state::SlotsState;
