//! The exchange of two files.

use rustix::{
    fs::{AtFlags, renameat, unlinkat},
    io::Errno,
};
use std::{io, os::fd::OwnedFd};

/// Puts a file in the place of another.
///
/// A plain rename over a file makes ext4 write the new one out at once (`auto_da_alloc`), and the next commit then waits for that. An
/// exchange does not, and a file that is replaced before it was written out costs no write at all.
pub(super) fn swap(from: &OwnedFd, new: &str, folder: &OwnedFd, name: &str) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match rustix::fs::renameat_with(from, new, folder, name, rustix::fs::RenameFlags::EXCHANGE) {
        Ok(()) => return Ok(unlinkat(from, new, AtFlags::empty())?),
        // Not every file system can, and the other file may have gone.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(renameat(from, new, folder, name)?)
}
