//! A disk that can be full: a file system in memory of a fixed size.

use crate::Means;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::{
    ffi::CString,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// A mounted file system in memory; it goes when this is dropped.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// A disk of so many bytes. None if this process may not mount, which takes `CAP_SYS_ADMIN`: tests that need it are skipped then. Such a test has
    /// `full_disk` in its name, by which `scripts/test` finds those that it runs in a user namespace.
    ///
    /// # Errors
    /// When there is no folder to mount it on.
    ///
    /// # Panics
    /// When this process may not mount, and the test must run ([`Means`]).
    pub fn mounted(bytes: u64) -> io::Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let size = CString::new(format!("size={bytes}"))?;
        let mounted = mount("none", folder.path(), "tmpfs", MountFlags::empty(), size.as_c_str());
        Ok(Means::Mounts.needed(mounted).map(|()| Self(folder)))
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file until not one byte is free.
    ///
    /// # Errors
    /// When a write fails for another reason than want of room.
    pub fn fill(&self) -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(self.ballast())?;
        let mut piece = vec![b'b'; 64 * 1024];
        loop {
            match file.write(&piece) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull && piece.len() == 1 => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::StorageFull => piece.truncate(piece.len() / 2),
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes the file of [`SmallDisk::fill`].
    ///
    /// # Errors
    /// When there is no such file.
    pub fn free(&self) -> io::Result<()> {
        fs::remove_file(self.ballast())
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A process with an open file keeps the file system until it closes the file.
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}
