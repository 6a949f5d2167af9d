//! Semaphores: limits by name on concurrent work, such as of a flow, a node, a provider (spec 002 §10.12) or a machine that runs commands.
//!
//! A semaphore is an actor like any other. An actor that wants a slot sends it a request and rests; a message grants the slot, and another
//! message gives it back. So a waiting request is a row of a log: it holds no worker, no task and no connection, it survives every crash,
//! and the limit is exact with any number of workers.
//!
//! ```text
//!   task or chat ── Ask ──▶ semaphore ── the asker's own command ──▶ task or chat ── Give ──▶ semaphore
//!                           Asked, Granted                                                   Given, Granted
//! ```
//!
//! It does not know why a request waits, and it takes nothing back: a holder gives its slots back in the entry that ends the work they were
//! for, so that a crash can neither lose nor double a slot. The removal of a holder's log gives back the slots that no entry has given back, and
//! the removal of a workspace all that its actors asked for ([`SlotsCommand::Release`]). A holder that is paused gives its slots back, too, or takes its
//! request out of the line, and asks again when it goes on. The answer to its earlier request may still be under way then: the command that grants
//! says which request it answers.

mod fair_queue;
mod held;
mod machine;
mod places;
mod request;
mod slot_request;
mod state;

pub use held::Held;
pub use machine::{NoEffects, SlotsMachine, semaphore};
pub use places::{Places, places_of, shared_places};
pub use request::{Ask, QueueLimit, SlotsCommand, SlotsEvent};
pub use slot_request::SlotRequest;
pub use state::SlotsState;
