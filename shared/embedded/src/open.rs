//! Why a store does not open, and the lock that keeps other processes out of it.

use crate::schema::{FIRST, VERSION};
use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// Why a store did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process works on it.
    #[error("{} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// A later version of this program wrote it.
    #[error("{} was written by a later version (its schema is {found}, this program knows {VERSION})", .path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// It is older than all that this program reads.
    #[error("{} is too old (its schema is {found}, the oldest one that is read is {FIRST})", .path.display())]
    TooOld {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// The file has nothing in it, and there should be something.
    #[error("{} is missing or empty, but the workspaces that it knew are there", .0.display())]
    Empty(PathBuf),
    /// It was not brought up to date, and is as it was.
    #[error("{} could not be brought from schema {found} to {VERSION}: {source}", .path.display())]
    Migration {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The cause.
        #[source]
        source: rusqlite::Error,
    },
    /// The folder or the lock cannot be used.
    #[error("cannot use {}: {source}", .path.display())]
    Folder {
        /// The file or the folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// SQLite refuses the file.
    #[error("cannot open {}: {source}", .path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rusqlite::Error,
    },
}

/// Refuses the store at `path` if this program cannot read a schema of the version `found`; 0 is for a file without a schema.
pub(crate) fn check_schema(path: &Path, found: i64) -> Result<(), OpenError> {
    match found {
        0 => Err(OpenError::Empty(path.to_owned())),
        FIRST..=VERSION => Ok(()),
        _ if found > VERSION => Err(OpenError::TooNew { path: path.to_owned(), found }),
        _ => Err(OpenError::TooOld { path: path.to_owned(), found }),
    }
}

impl OpenError {
    /// Stable, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InUse(_) => "DATA_IN_USE",
            Self::TooNew { .. } => "STORE_TOO_NEW",
            Self::TooOld { .. } => "STORE_TOO_OLD",
            Self::Empty(_) => "STORE_MISSING",
            Self::Migration { .. } => "STORE_NOT_MIGRATED",
            Self::Folder { .. } => "IO",
            Self::Database { .. } => "STORE_UNREADABLE",
        }
    }

    /// Advice for the operator.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::InUse(_) => {
                Some("two processes would not know of each other's commits: stop that one, or use another data folder")
            }
            Self::TooNew { .. } => Some(
                "start the version that wrote it, or a later one; the way back to this version is the backup from before the upgrade. The file was not changed",
            ),
            Self::TooOld { .. } => Some("use another data folder. The file was not changed"),
            Self::Empty(_) => Some(
                "put it back from a backup (with the file that ends in -wal, if there is one), or move the folder of the workspaces away to begin anew",
            ),
            Self::Migration { .. } => Some(
                "the file is as it was: make room if the disk is full, and start again; the version before still opens it",
            ),
            Self::Database { .. } => Some("put the file back from a backup if it is damaged"),
            Self::Folder { .. } => None,
        }
    }
}

/// The lock of a store, for as long as it is kept. A process that dies leaves none behind.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "an open file is locked")] File);

impl Lock {
    /// Takes the lock of the store at `path`, in the file beside it with the ending `.lock`. Makes the folder.
    ///
    /// # Errors
    /// When another process has it, or the disk refuses.
    pub fn take(path: &Path) -> Result<Self, OpenError> {
        let lock_path = path.with_extension("lock");
        let folder = |source| OpenError::Folder { path: lock_path.clone(), source };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(folder)?;
        }
        let file = File::options().create(true).truncate(false).write(true).open(&lock_path).map_err(folder)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => Err(folder(source)),
        }
    }
}
