//! The shapes of answers, for the document and for authors of clients. For a shape of a domain value, the value itself is sent; the tests hold every
//! answer against its shape here.

mod artifacts;
mod chats;
mod errors;
mod evaluations;
mod events;
mod files;
mod flows;
mod identity;
mod insight;
mod people;
mod tasks;

pub use artifacts::*;
pub use chats::*;
pub use errors::*;
pub use evaluations::*;
pub use events::*;
pub use files::*;
pub use flows::*;
pub use identity::*;
pub use insight::*;
pub use people::*;
pub use tasks::*;
