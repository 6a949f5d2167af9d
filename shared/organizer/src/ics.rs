//! iCalendar files (RFC 5545): events in and out, and changes of events that stand in a calendar elsewhere.

mod patch;
mod read;
mod windows;
mod write;

pub use patch::{Change, Patch, patch};
pub use read::{Imported, read};
pub use write::{ExportedEntity, write};

/// The longest calendar that is read, in bytes.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The most events of a calendar that is read.
pub const MAX_EVENTS: usize = 1_000;
/// The line that says that a calendar was written here.
const PRODUCT: &str = "PRODID:-//BuildScale//Organizer//EN";

/// Whether a file is a calendar that [`write`] made.
pub fn is_export(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(bytes.get(..200).unwrap_or(bytes)).into_owned();
    head.lines().any(|line| line.trim_end() == PRODUCT)
}
