//! Backups of a data folder, made while the hub runs or not, and the way back.
//!
//! A backup is a folder:
//!
//! | file | has |
//! |---|---|
//! | `backup.json` | the [manifest](manifest::Manifest): all parts of the backup, with lengths and digests. It is written last |
//! | `store-N.sqlite3` | the store as of one moment |
//! | `contents-N.txt` | the digest, the length and the space of every content |
//! | `workspaces/SPACE/archive` | the contents, laid out as in the data folder; those that are there already are not copied again |
//! | `files-N` | files that neither the store nor the archive has |
//! | `lock` | keeps two backups apart |
//!
//! The order makes the backup consistent: first a [hold](embedded::Hold) on deletions, then the store, then the contents. A content
//! is durable before anything refers to it, so the contents that the copy of the store names are on the disk when contents are copied.
//!
//! `latest/` is in no backup: a hub that finds none makes it from the index, the archive and the logs.

mod copy;
mod make;
mod manifest;
mod restore;

pub use make::{BackupJob, make};
pub use restore::{RestoreJob, check, restore};

use crate::layout::{ACCOUNTS_KEY, STORE, WEBHOOKS_KEY};
use domain::Timestamp;
use embedded::OpenError;
use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// The configuration, where it is in the data folder, the folder of secrets, and the key of webhooks.
const SECRETS: [&str; 4] = ["buildscale.toml", "secrets", WEBHOOKS_KEY, ACCOUNTS_KEY];

/// How far it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The part that is being copied or read.
    pub part: &'static str,
    /// Files so far.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The result of a backup or a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The moment that the backup shows.
    pub made_at: Timestamp,
    /// Files that the backup has, the store's among them.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them that were copied now.
    pub copied_files: u64,
    /// Their bytes.
    pub copied_bytes: u64,
    /// Contents that are not what their digest says, or are missing.
    pub damaged: Vec<String>,
    /// The files that were left out on purpose.
    pub left_out: Vec<String>,
    /// The folder that the earlier content of the data folder was moved to.
    pub moved_to: Option<PathBuf>,
    /// How long it took.
    pub took: Duration,
}

/// Why there is no backup, or nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The data folder has no store.
    #[error("{} is no data folder of a hub: it has no {STORE}", .0.display())]
    NoData(PathBuf),
    /// The store or the lock of the data folder.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The folder has other things in it, or nothing.
    #[error("{} is no backup", .0.display())]
    NotABackup(PathBuf),
    /// A backup where a data folder is wanted.
    #[error("{} is a backup, and no data folder", .0.display())]
    Backup(PathBuf),
    /// A backup that was never completed.
    #[error("{} has a backup that was not completed", .0.display())]
    NotWhole(PathBuf),
    /// A later version of this program made it.
    #[error("{} was made by a later version of BuildScale ({program}): its {what} is {found}, this program knows {known}", .path.display())]
    TooNew {
        /// The backup.
        path: PathBuf,
        /// The version that made it.
        program: String,
        /// The format of the backup, or the schema of the store.
        what: &'static str,
        /// Its version.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// Files of the backup are missing, or not what was written.
    #[error("{} is damaged: {} of its files are missing or not what was written, such as {}", .path.display(), .files.len(), .files.first().map_or("", |file| file.as_str()))]
    Damaged {
        /// The backup.
        path: PathBuf,
        /// The damaged files.
        files: Vec<String>,
    },
    /// Another hub's backup.
    #[error("{} has the backup of another hub: it has none of the workspaces that are here", .0.display())]
    OfAnother(PathBuf),
    /// Two at once.
    #[error("another process works on {}", .0.display())]
    Busy(PathBuf),
    /// The backup would be in the data folder.
    #[error("{} is in the data folder", .0.display())]
    Inside(PathBuf),
    /// There is something in the data folder.
    #[error("{} is not empty: it has {has}", .path.display())]
    NotEmpty {
        /// The data folder.
        path: PathBuf,
        /// Some of it.
        has: String,
    },
    /// The index of the files.
    #[error("the index cannot be read: {0}")]
    Index(domain::Error),
    /// The folder of the contents; the error says where.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// A file or a folder.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Its path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl BackupError {
    /// Stable, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoData(_) | Self::Backup(_) => "NOT_A_DATA_FOLDER",
            Self::Store(error) => error.code(),
            Self::NotABackup(_) => "NOT_A_BACKUP",
            Self::NotWhole(_) => "BACKUP_NOT_WHOLE",
            Self::TooNew { .. } => "BACKUP_TOO_NEW",
            Self::Damaged { .. } => "BACKUP_DAMAGED",
            Self::OfAnother(_) => "BACKUP_OF_ANOTHER",
            Self::Busy(_) => "BACKUP_IN_USE",
            Self::Inside(_) => "INVALID_ARGUMENT",
            Self::NotEmpty { .. } => "DATA_NOT_EMPTY",
            Self::Index(_) => "INDEX_UNREADABLE",
            Self::Disk(_) | Self::Io { .. } => "IO",
        }
    }

    /// Advice for the operator.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoData(_) => Some("name the hub's data folder with --data-dir or BUILDSCALE_DATA_DIR"),
            Self::Store(error) => error.hint(),
            Self::NotABackup(_) => {
                Some("name a folder that `buildscale backup` made, or for a new backup one that is empty or not there")
            }
            Self::Backup(_) => Some("put it into a data folder with: buildscale restore BACKUP --data-dir DATA"),
            Self::NotWhole(_) => Some("run the backup again: it goes on with what is there"),
            Self::TooNew { .. } => Some("use that version of BuildScale, or a later one"),
            Self::Damaged { .. } => {
                Some("use another backup, or restore what is whole with --keep-going; nothing was put in place")
            }
            Self::OfAnother(_) => Some("check --data-dir, or make the backup in a folder of its own"),
            Self::Busy(_) => Some("wait until that one has ended"),
            Self::Inside(_) => Some("use a folder outside of it, best on another disk"),
            Self::NotEmpty { .. } => Some("name an empty folder, or move what is there aside with --replace"),
            Self::Index(_) => Some("the store may be damaged: the log of the hub says more"),
            Self::Disk(_) | Self::Io { .. } => None,
        }
    }
}

/// Refuses a backup as the data folder of a hub, which would find no store there and begin an empty one.
pub(crate) fn refuse(data: &Path) -> Result<(), BackupError> {
    if data.join(manifest::MANIFEST).is_file() && !data.join(STORE).exists() {
        return Err(BackupError::Backup(data.to_owned()));
    }
    Ok(())
}

/// An error of the disk with its place.
fn at(path: &Path) -> impl FnOnce(io::Error) -> BackupError + '_ {
    move |source| BackupError::Io { path: path.to_owned(), source }
}
