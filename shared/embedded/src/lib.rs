//! Adapters that need nothing installed: table and queue in one SQLite file, blobs on the local disk, a bus in the process.
//!
//! They give the guarantees of [`ports`] and no others; the conformance suites of `testkit` check it. The costs: a commit takes one
//! `fdatasync` for any number of actors that share it, a read takes microseconds, a wait takes nothing.
//!
//! * [`Store`] opens the file and holds the one [writer](mod@writer) and the [readers](mod@readers).
//! * [`LocalBlobs`] keeps contents under their SHA-256.
//! * [`CrashMarks`] tells the next process the computations that this one died in.
//! * [`copy_store`] and [`Hold`] are what a backup of both is made of.
//! * [`LocalIndexes`] keeps the indexes of texts, each in a file of its own.
//! * [`LocalBus`] carries hints between the tasks of this process.

mod attempts;
mod blobs;
mod bus;
mod checkpoint;
mod crash_marks;
mod cursor;
mod folders;
mod items;
mod lanes;
mod lazy_writes;
mod mailbox;
mod messages;
mod open;
mod queue;
mod readers;
mod request;
mod reserve;
mod schema;
mod search;
mod secrets;
mod shared_mailbox;
mod snapshot;
mod stats;
mod store;
mod table;
mod views;
mod write_queue;
mod writer;

pub use blobs::{Hold, LocalBlobs, StoredContent, WRITTEN_BACK, contents, place_of, spaces};
pub use bus::LocalBus;
pub use crash_marks::{CrashMarks, PreviousProcess};
pub use folders::LocalFolders;
pub use open::{Lock, OpenError};
pub use queue::SqliteQueue;
pub use search::{ArchivedIndexes, LocalIndexes};
pub use secrets::LocalSecrets;
pub use snapshot::{check_store, copy_store, frozen_table, known_schema};
pub use stats::Stats;
pub use store::{Durability, Options, Store};
