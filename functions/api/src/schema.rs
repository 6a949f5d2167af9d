//! The shapes of answers, for the document and for authors of clients. For a shape of a domain value, the value itself is sent; the tests hold every
//! answer against its shape here.
//!
//! Domain types do not derive these shapes: `domain` is linked by every deployable, and most of them have no document, so it knows nothing of
//! OpenAPI. A shape here also says less than its type where a client needs less. A test refuses a field that one of the two lacks.

mod access;
mod artifacts;
mod chats;
mod contexts;
mod dead_letters;
mod errors;
mod evaluations;
mod events;
mod files;
mod flows;
mod identity;
mod mcp;
mod people;
mod relations;
mod rewinds;
mod run_inspection;
mod schedules;
mod search;
mod tasks;
mod waiting;
mod webhooks;

pub(crate) use access::*;
pub use artifacts::*;
pub use chats::*;
pub use contexts::*;
pub use dead_letters::*;
pub use errors::*;
pub use evaluations::*;
pub use events::*;
pub use files::*;
pub use flows::*;
pub use identity::*;
pub use mcp::*;
pub use people::*;
pub use relations::*;
pub use rewinds::*;
pub use run_inspection::*;
pub use schedules::*;
pub use search::*;
pub use tasks::*;
pub use waiting::*;
pub use webhooks::*;
