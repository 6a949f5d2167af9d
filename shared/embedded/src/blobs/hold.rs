//! The end of a space or of a content, and a hold on both.
//!
//! A backup copies the store first and the contents after it, because a content is durable before anything refers to it. So the one thing that a
//! backup could lose is a content or a space that is deleted between the two copies. Therefore a deletion moves the contents aside, where nothing of the hub finds them, and removes them once no process has a [`Hold`]: at the end
//! of the deletion, of the hold, or of the next deletion, or at the next start. A hold is a shared lock of a file: it reaches across
//! processes, and ends with the process that has it.

use super::{ARCHIVE, Archive, absent_as_none, chunks::Chunks};
use domain::Sha256;
use ports::validate;
use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// Beside the spaces, in whose names is no dot.
const DELETED: &str = ".deleted";
const LOCK: &str = ".hold";

impl Archive {
    pub(super) fn delete_space(&self, space: &str) -> io::Result<()> {
        self.delete_unfinished(space)?;
        let deleted = self.root.join(DELETED);
        fs::create_dir_all(&deleted)?;
        for number in 0_u64.. {
            match fs::rename(self.folder(space), deleted.join(format!("{space}.{number}"))) {
                // An earlier one of this name, which is held.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists) => {}
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => break,
            }
        }
        self.clear_deleted()
    }

    pub(super) fn delete_content(&self, space: &str, digest: Sha256) -> io::Result<()> {
        let (path, name) = (self.path(space, digest), digest.to_string());
        absent_as_none(fs::remove_file(Chunks::place(&path)))?;
        let aside = self.root.join(DELETED).join(format!("{space}.{name}")).join(&name[..2]).join(&name[2..4]);
        while path.exists() {
            let _no_clearing = self.clearing.lock();
            fs::create_dir_all(&aside)?;
            // Not found: another thread moved it, or another process cleared the folder meanwhile.
            absent_as_none(fs::rename(&path, aside.join(&name)))?;
        }
        if aside.exists() { self.clear_deleted() } else { Ok(()) }
    }

    /// Removes the contents that were moved aside, unless they are held.
    pub(super) fn clear_deleted(&self) -> io::Result<()> {
        let _one_at_a_time = self.clearing.lock();
        clear(&self.root)
    }
}

fn clear(root: &Path) -> io::Result<()> {
    let Some(deleted) = absent_as_none(fs::read_dir(root.join(DELETED)))? else { return Ok(()) };
    let lock = File::options().create(true).truncate(false).write(true).open(root.join(LOCK))?;
    match lock.try_lock() {
        Ok(()) => deleted.into_iter().try_for_each(|space| absent_as_none(fs::remove_dir_all(space?.path())).map(drop)),
        Err(TryLockError::WouldBlock) => {
            tracing::info!("contents of deleted workspaces stay until the backup that is being made is complete");
            Ok(())
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A content on the disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredContent {
    /// The space that it is of.
    pub space: String,
    /// Its name, which its bytes may have ceased to have.
    pub digest: Sha256,
    /// Its path.
    pub path: PathBuf,
}

impl StoredContent {
    /// The path of the list of its chunks, if it has one. The list can be made again from the content.
    pub fn list(&self) -> PathBuf {
        Chunks::place(&self.path)
    }
}

/// Keeps the contents of spaces that are deleted from now on, until it is dropped.
#[derive(Debug)]
pub struct Hold {
    root: PathBuf,
    lock: Option<File>,
}

impl Hold {
    /// On the contents below `root`, which another process may be using. Waits for the end of a removal that is under way. Where
    /// nothing can be written, nothing can be deleted either.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn take(root: &Path) -> io::Result<Self> {
        let file = File::options().create(true).truncate(false).write(true).open(root.join(LOCK));
        let lock = match file {
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => None,
            file => Some(file?),
        };
        lock.as_ref().map_or(Ok(()), File::lock_shared)?;
        Ok(Self { root: root.to_owned(), lock })
    }

    /// The spaces that there are now.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn spaces(&self) -> io::Result<Vec<String>> {
        spaces(&self.root)
    }

    /// Every content that was there when this was called, and was not deleted when the hold was taken; in the order of spaces and
    /// digests, and then those of spaces that were deleted meanwhile, some of them a second time.
    ///
    /// # Errors
    /// Those of the disk, and those of `each`.
    pub fn contents<E: From<io::Error>>(&self, mut each: impl FnMut(StoredContent) -> Result<(), E>) -> Result<(), E> {
        contents(&self.root, &mut each)?;
        for folder in names(&self.root.join(DELETED))? {
            if let Some((space, _)) = folder.split_once('.') {
                walk(space, &self.root.join(DELETED).join(&folder), &mut each)?;
            }
        }
        Ok(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.lock.take().is_some()
            && let Err(error) = clear(&self.root)
        {
            tracing::warn!(%error, "contents of deleted workspaces stay until the next start");
        }
    }
}

/// The spaces below a folder that is laid out as a hub's contents are.
///
/// # Errors
/// Those of the disk, with the folder. A `root` that is not there has no spaces.
pub fn spaces(root: &Path) -> io::Result<Vec<String>> {
    let mut all = names(root)?;
    all.retain(|name| validate::space(name).is_ok() && root.join(name).join(ARCHIVE).is_dir());
    Ok(all)
}

/// The contents below a folder that is laid out as a hub's contents are, by space and digest.
///
/// # Errors
/// Those of the disk, with the folder, and those of `each`, which end the walk.
pub fn contents<E: From<io::Error>>(
    root: &Path,
    each: &mut impl FnMut(StoredContent) -> Result<(), E>,
) -> Result<(), E> {
    for space in spaces(root)? {
        walk(&space, &root.join(&space).join(ARCHIVE), each)?;
    }
    Ok(())
}

/// Skips contents that vanish meanwhile.
fn walk<E: From<io::Error>>(
    space: &str,
    archive: &Path,
    each: &mut impl FnMut(StoredContent) -> Result<(), E>,
) -> Result<(), E> {
    for first in names(archive)? {
        for second in names(&archive.join(&first))? {
            let folder = archive.join(&first).join(&second);
            for name in names(&folder)? {
                if let Ok(digest) = name.parse() {
                    each(StoredContent { space: space.to_owned(), digest, path: folder.join(name) })?;
                }
            }
        }
    }
    Ok(())
}

/// The names in a folder, in order; none in one that is not there.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let with_place = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries.map_err(with_place)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(with_place)?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}
