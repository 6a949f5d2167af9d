//! The protocols of clients, as projections of the one log: a folder per protocol. Each turns the events of an actor into the frames of its
//! protocol, and the bodies of its requests into commands that exist. Nothing here holds state of its own beyond what a projection has folded
//! from the log, and nothing does I/O: `functions/api` and `functions/stream` carry the frames, and `functions/cli` the messages of editors.

pub mod a2a;
pub mod acp;
pub mod agui;
pub mod ai_sdk;
pub mod fields;
pub mod functions;
pub mod hub;
mod incoming_file;
pub mod langgraph;
pub mod mcp;
mod message_text;
pub mod multipart;
pub mod openai;
mod part;
mod pauses;
mod plan;
pub mod planner;
mod projection;
pub mod task_as_turn;

pub use incoming_file::IncomingFile;
pub use part::{ChatParts, Part, PartEnd, PartEvent, PartReader};
pub use pauses::{PauseFilter, after_pauses};
pub use projection::{Frame, Projection, Span};
