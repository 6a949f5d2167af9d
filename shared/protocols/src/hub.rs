//! Door 2, `/v1`: the code agent hub (spec 004 §8). A thread is a chat, and a turn of it is a turn of the chat.
//!
//! The events of a chat become the frames of its stream ([`Frames`]) and the turns of its history ([`History`]). Both are folds of the same
//! log, so a client that reads the history has all that a client that watched has seen.

mod form;
mod frames;
mod history;
mod permission;
mod text;
mod tool;
mod update;

pub use form::form;
pub use frames::Frames;
pub use history::{History, Turn, TurnStatus};
pub use permission::{OFFERED, Offered, chosen};
