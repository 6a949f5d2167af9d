//! The attempts of messages in flight, in a file of fixed places beside the store: they outlive a process that dies before its writer has
//! written them.
//!
//! A group has a place for as long as it is in flight. In it is the first message of its batch, the one whose attempts are counted, as a
//! line of text. A place is written by one call to the system and never synced: the kernel has the bytes when the process is gone, and no
//! message is to blame for a power cut. It is not wiped when its group lands, because a count is only ever raised to what it says, and the number of
//! a message is not given again while the store is open.

use rustix::fs::{FallocateFlags, fallocate};
use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::FileExt as _,
    path::Path,
};

/// The bytes of a place: the number of the message, its attempts, the end of the line.
const PLACE: usize = 32;
/// The bytes that the file has room for from the start, so that deliveries are noted on a full disk, too: 128 places.
const RESERVED: u64 = 4096;

/// A message by its number, and how often it was delivered.
pub(crate) type DeliveryCount = (i64, u32);

/// The file of the attempts.
pub(crate) struct Attempts(File);

impl Attempts {
    /// Of the store at `path`, with what the process before left in it.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<DeliveryCount>)> {
        let path = path.with_extension("attempts");
        let mut file = File::options().create(true).truncate(false).read(true).write(true).open(path)?;
        let mut before = Vec::new();
        file.read_to_end(&mut before)?;
        let left = before.chunks_exact(PLACE).filter_map(read).collect();
        Ok((Self(file), left))
    }

    /// Notes a delivery. Without the note the delivery is counted when no message of its group is in flight any more.
    pub fn put(&self, place: usize, (seq, attempts): DeliveryCount) {
        let line = format!("{seq:<20} {attempts:<10}\n");
        if let Err(error) = self.0.write_all_at(line.as_bytes(), (place * PLACE) as u64) {
            tracing::debug!(%error, "the attempts of a message were not noted beside the store");
        }
    }

    /// Forgets what the process before left, and reserves room for the notes of this one.
    ///
    /// # Errors
    /// The disk's.
    pub fn clear(&self) -> io::Result<()> {
        self.0.set_len(0)?;
        if let Err(error) = fallocate(&self.0, FallocateFlags::KEEP_SIZE, 0, RESERVED) {
            tracing::debug!(%error, "attempts of messages may not be noted on a full disk");
        }
        Ok(())
    }
}

fn read(place: &[u8]) -> Option<DeliveryCount> {
    let mut fields = std::str::from_utf8(place).ok()?.split_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_a_process_are_there_for_the_next_one_until_that_forgets_them() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("store.sqlite3");
        let (attempts, left) = Attempts::open(&path)?;
        assert_eq!(left, []);
        attempts.put(0, (7, 1));
        attempts.put(2, (i64::MAX, u32::MAX));
        attempts.put(0, (8, 3));
        drop(attempts);
        // Nothing was noted at the place between them.
        let (attempts, left) = Attempts::open(&path)?;
        assert_eq!(left, [(8, 3), (i64::MAX, u32::MAX)]);
        attempts.clear()?;
        assert_eq!(Attempts::open(&path)?.1, []);
        for torn in [&b"8 3\n"[..], b"8                    x         \n", &[0xff; 64]] {
            std::fs::write(folder.path().join("store.attempts"), torn)?;
            assert_eq!(Attempts::open(&path)?.1, []);
        }
        Ok(())
    }
}
