//! The reserve: a file of some MiB beside the store, which is given up when its disk is full.
//!
//! Deletions and the log need room, too: a commit writes before it frees. The reserve leaves its room to them. While it is given up, the
//! store reports that it has no room, so that callers that ask first add nothing. It is allocated again when there is room for it and for
//! something more, so that the two states do not alternate with every commit.
//!
//! A disk is full when less than [`LEAST`] of it is free, or when a commit found no room, as under a quota. A file system that cannot
//! allocate a file in advance has no reserve; its free space is looked at all the same.

use rustix::{
    fs::{FallocateFlags, fallocate, statvfs},
    io::Errno,
};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Less free space than this, in bytes, is none.
const LEAST: u64 = 512 * 1024;

/// A commit that adds less than this, in bytes, is short: those of deletions are.
const SHORT: u64 = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Reserve {
    file: PathBuf,
    folder: PathBuf,
    bytes: u64,
    given_up: AtomicBool,
}

impl Reserve {
    /// Of so many bytes for the store at `path`; of 0 there is none, and the store never says that it has no room.
    pub fn new(path: &Path, bytes: u64) -> Self {
        let reserve = Self {
            file: path.with_extension("reserve"),
            folder: folder_of(path).to_owned(),
            bytes,
            given_up: AtomicBool::new(bytes > 0),
        };
        if reserve.is_there() && reserve.free() >= LEAST {
            reserve.given_up.store(false, Relaxed);
        } else if bytes > 0 {
            drop(fs::remove_file(&reserve.file));
            reserve.look();
        }
        reserve
    }

    /// Whether there is room for more. One call to the system.
    pub fn has_room(&self) -> bool {
        self.bytes == 0 || (!self.is_given_up() && self.free() >= LEAST)
    }

    /// Whether its room is in use, or free to be used.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Relaxed)
    }

    /// How many bytes of the remaining room one commit may add: so few that the log can always be copied into the file, and deletions go on
    /// to the end. A short commit is always tried, because the log has room of its own, which it uses again.
    pub fn part(&self) -> u64 {
        (self.free() / 4).max(SHORT)
    }

    /// Gives it up when the disk is full, and allocates it again when there is room. Says whether it is given up afterwards.
    pub fn look(&self) -> bool {
        if self.bytes == 0 {
            return false;
        }
        match self.is_given_up() {
            false if self.free() < LEAST => _ = self.give_up(),
            true if self.free() >= self.bytes + 2 * LEAST => match self.allocate() {
                Ok(()) => {
                    self.given_up.store(false, Relaxed);
                    tracing::info!("the disk has room for the reserve");
                }
                Err(error) => {
                    drop(fs::remove_file(&self.file));
                    tracing::debug!(%error, "the reserve was not allocated");
                }
            },
            _ => {}
        }
        self.is_given_up()
    }

    /// Gives it up. False when it was given up before.
    pub fn give_up(&self) -> bool {
        if self.bytes == 0 || self.given_up.swap(true, Relaxed) {
            return false;
        }
        tracing::error!(
            "the disk is full: the reserve is given up for deletions, and nothing else is accepted until there is room"
        );
        if let Err(error) = fs::remove_file(&self.file) {
            tracing::warn!(%error, "the reserve was not removed");
        }
        true
    }

    /// Allocates something more than it needs first: a quota does not show otherwise, and the room of the reserve that was just given up
    /// would be taken back at once.
    fn allocate(&self) -> io::Result<()> {
        let file = File::create(&self.file)?;
        match fallocate(&file, FallocateFlags::empty(), 0, self.bytes + LEAST) {
            Ok(()) => file.set_len(self.bytes),
            Err(Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn is_there(&self) -> bool {
        self.bytes > 0 && fs::metadata(&self.file).is_ok_and(|file| file.len() == self.bytes)
    }

    fn free(&self) -> u64 {
        free(&self.folder)
    }
}

/// The folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The bytes that a program may still write to the disk of a folder. A file system that does not report them counts as not full.
pub(crate) fn free(folder: &Path) -> u64 {
    statvfs(folder).map_or(u64::MAX, |space| space.f_bavail.saturating_mul(space.f_frsize))
}
