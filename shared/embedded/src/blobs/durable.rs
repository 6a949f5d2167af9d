//! The durability of contents: a file or a folder survives a power cut once the folder with its entry is synced.
//!
//! A writer that finds a file may take it for durable only if its maker has synced it. A maker in this process marks the file as pending until then. A maker in
//! an earlier process may have died between the change and the sync, and the kernel writes the change within a minute. So a file that was changed
//! within the last minute before this process began is synced again.

use super::{Archive, KNOWN, absent_as_none};
use domain::Timestamp;
use ports::{Clock as _, SystemClock};
use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

/// The kernel has written each change of a file or a folder that is older: the common file systems do so within 5 to 30 seconds.
pub const WRITTEN_BACK: Duration = Duration::from_secs(60);

impl Archive {
    /// Whether a content is there, and is so after a power cut too. One that an earlier process may not have synced is synced now.
    pub(super) fn is_durable(&self, path: &Path) -> io::Result<bool> {
        let Some(found) = absent_as_none(fs::metadata(path))? else { return Ok(false) };
        // In this order: a file that exists and has no writer afterwards is durable.
        if self.is_pending(path) {
            return Ok(false);
        }
        let is_resynced = || self.resynced.lock().contains(path);
        if self.is_unproven(&found) && !is_resynced() {
            let above = path.ancestors().skip(1).take_while(|above| above.starts_with(&self.root));
            // The folder that the root itself is in.
            let beyond = self.root.parent().filter(|beyond| !beyond.as_os_str().is_empty());
            if let Err(error) = above.chain(beyond).try_for_each(self.sync) {
                self.unsynced.lock().insert(path.to_owned());
                return Err(error);
            }
            let mut resynced = self.resynced.lock();
            if resynced.len() >= KNOWN {
                resynced.clear();
            }
            resynced.insert(path.to_owned());
        }
        Ok(true)
    }

    /// Whether an earlier process may have made the last change without a sync. A change that lies in the future was made before the clock was set back.
    fn is_unproven(&self, found: &Metadata) -> bool {
        let changed =
            Timestamp::from_millis(found.ctime().saturating_mul(1000).saturating_add(found.ctime_nsec() / 1_000_000));
        let is_recent = changed <= self.begun && self.begun.since(changed) < WRITTEN_BACK;
        is_recent || changed > SystemClock.now()
    }

    /// Gives a temporary file, which is durable, its name.
    pub(super) fn place(&self, temporary: &Path, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(&self.root);
        let made = self.make_folder(folder)?;
        let _pending = self.mark_pending(path);
        fs::rename(temporary, path)?;
        // Those above it last, because a file system with a journal has by now written them with the rest, and little is left to do.
        let above = made.iter().rev().filter_map(|(folder, _)| folder.parent());
        let synced = [folder].into_iter().chain(above).try_for_each(self.sync);
        let renamed = made.iter().map(|(folder, _)| folder.as_path()).chain([path]);
        let mut unsynced = self.unsynced.lock();
        match synced {
            Ok(()) => renamed.for_each(|path| drop(unsynced.take(path))),
            Err(_) => unsynced.extend(renamed.map(Path::to_owned)),
        }
        synced
    }

    /// Makes a folder and those above it. Returns those whose entry in the folder above is not durable yet: each is marked as pending
    /// until its guard is dropped.
    fn make_folder<'a>(&'a self, folder: &Path) -> io::Result<Vec<(PathBuf, PendingPath<'a>)>> {
        let mut made = Vec::new();
        let mut missing = vec![folder.to_owned()];
        while let Some(next) = missing.pop() {
            // In this order, as for a file.
            let found = fs::metadata(&next).ok().filter(Metadata::is_dir);
            let is_proven = found.is_some_and(|found| !next.starts_with(&self.root) || !self.is_unproven(&found));
            if is_proven && !self.is_pending(&next) {
                continue;
            }
            let pending = self.mark_pending(&next);
            match fs::create_dir(&next) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let Some(parent) = next.parent().map(Path::to_owned) else { return Err(error) };
                    missing.extend([next, parent]);
                    continue;
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {
                    // Another writer may have made the one above, and have synced it as little.
                    let above = next.parent().filter(|above| !above.as_os_str().is_empty());
                    let above = above.filter(|above| made.iter().all(|(known, _): &(PathBuf, _)| known != above));
                    missing.extend(above.map(Path::to_owned));
                    made.push((next, pending));
                }
            }
        }
        Ok(made)
    }

    fn mark_pending(&self, path: &Path) -> PendingPath<'_> {
        *self.pending.lock().entry(path.to_owned()).or_default() += 1;
        PendingPath { archive: self, path: path.to_owned() }
    }

    pub(super) fn is_pending(&self, path: &Path) -> bool {
        self.pending.lock().contains_key(path) || self.unsynced.lock().contains(path)
    }
}

/// A path that is not durable yet.
struct PendingPath<'a> {
    archive: &'a Archive,
    path: PathBuf,
}

impl Drop for PendingPath<'_> {
    fn drop(&mut self) {
        let mut all = self.archive.pending.lock();
        if let Some(makers) = all.get_mut(&self.path) {
            *makers -= 1;
            if *makers == 0 {
                all.remove(&self.path);
            }
        }
    }
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
