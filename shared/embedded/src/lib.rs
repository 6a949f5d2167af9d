//! Adapters that need nothing installed: table and queue in one SQLite file, blobs on the local disk, a bus in the process.
//!
//! They promise what [`ports`] promises and no more; the conformance suites of `testkit` check it. The costs: a commit takes one `fdatasync`
//! for any number of actors that share it, a read takes microseconds, a wait takes nothing.
//!
//! * [`Store`] opens the file and holds the one [writer](mod@writer) and the [readers](mod@readers).
//! * [`LocalBlobs`] keeps contents under their SHA-256.
//! * [`Marks`] tells the next process what this one computed when it died.
//! * [`LocalBus`] carries hints between the tasks of this process.

mod blobs;
mod bus;
mod checkpoint;
mod cursor;
mod lanes;
mod mailbox;
mod marks;
mod messages;
mod queue;
mod readers;
mod reserve;
mod secrets;
mod stats;
mod store;
mod table;
mod waiting;
mod writer;

pub use blobs::LocalBlobs;
pub use bus::LocalBus;
pub use marks::{Left, Marks};
pub use secrets::LocalSecrets;
pub use stats::Stats;
pub use store::{Durability, OpenError, Options, Store};
