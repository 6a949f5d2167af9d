//! The shapes of answers, for the document and for authors of clients. For a shape of a domain value, the value itself is sent; the tests hold every
//! answer against its shape here.

mod access;
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
mod relations;
mod rewinds;
mod tasks;

pub(crate) use access::*;
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
pub use relations::*;
pub use rewinds::*;
pub use tasks::*;
