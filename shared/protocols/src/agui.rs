//! The Agent User Interaction Protocol (AG-UI 1.0): a run in, its events out.
//!
//! A run is one [part](crate::Part) of a turn, and a thread is a chat. A question and a request for permission are interrupts: the run ends with
//! them, and another run has the answer. The state of a run is `plan` and `files`, which the server changes and the client only reads.

mod events;
mod request;

pub use events::Events;
pub use request::{CONTEXT_FILE, Input, Request, request};
