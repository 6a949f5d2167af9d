//! A snapshot of the disk below a path; a later snapshot shows whether anything changed since.

use crate::mirror::{Mirror, OnDisk, kind_of};
use domain::FilePath;
use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, Stat, openat, statat},
    io::Errno,
};
use std::{collections::BTreeMap, io, os::fd::OwnedFd};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A file, folder or stray as it was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub what: OnDisk,
    /// None for folders, whose times change with their entries.
    pub stamp: Option<Stamp>,
}

/// The attributes that every write changes: a write replaces the file, and no program can set the change time of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    changed: (i64, u64),
    modified: (i64, u64),
    size: i64,
}

impl Seen {
    fn of(stat: &Stat) -> Self {
        let what = kind_of(stat);
        let stamp = Stamp {
            inode: stat.st_ino,
            changed: (stat.st_ctime, stat.st_ctime_nsec),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            size: stat.st_size,
        };
        Self { what, stamp: (what != OnDisk::Folder).then_some(stamp) }
    }
}

impl Mirror {
    /// The entry at `path` of `latest/`.
    pub(crate) fn seen(&self, path: &FilePath) -> io::Result<Option<Seen>> {
        let folder = match self.folder_of_latest(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            folder => folder?,
        };
        let name = if path.is_root() { "." } else { path.name() };
        match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            stat => Ok(Some(Seen::of(&stat?))),
        }
    }

    /// The entries at and below `path` of `latest/`. Names that are no valid paths are left out: this crate did not write them.
    pub(crate) fn snapshot(&self, path: &FilePath) -> io::Result<BTreeMap<FilePath, Seen>> {
        let mut found = BTreeMap::new();
        let Some(seen) = self.seen(path)? else { return Ok(found) };
        found.insert(path.clone(), seen);
        if seen.what != OnDisk::Folder {
            return Ok(found);
        }
        let inside = self.folder_of_latest(path)?;
        let name = if path.is_root() { "." } else { path.name() };
        let mut folders = vec![(path.clone(), openat(&inside, name, FOLDER, Mode::empty())?)];
        while let Some((path, folder)) = folders.pop() {
            for name in names(&folder)? {
                let Ok(path) = path.join(&name) else { continue };
                // An entry that disappears during the walk counts as absent.
                let Ok(stat) = statat(&folder, &*name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
                let seen = Seen::of(&stat);
                if seen.what == OnDisk::Folder
                    && let Ok(inner) = openat(&folder, &*name, FOLDER, Mode::empty())
                {
                    folders.push((path.clone(), inner));
                }
                found.insert(path, seen);
            }
        }
        Ok(found)
    }
}

fn names(folder: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().to_str()
            && !matches!(name, "." | "..")
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
