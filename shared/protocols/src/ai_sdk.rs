//! The UI message stream of the AI SDK (version 6; `useChat` and `DefaultChatTransport`): a message in, the chunks of its answer out.
//!
//! An answer is one [part](crate::Part) of a turn, and all parts of a turn are one message of the client, whose id is the turn's. A request for
//! permission is a tool approval. A question is a call of the tool `ask_user` that the client answers. Files, the plan and the usage are the data
//! parts `data-file`, `data-plan` and `data-usage`.

mod request;
mod stream;

pub use request::{Input, Request, request};
pub use stream::Chunks;
