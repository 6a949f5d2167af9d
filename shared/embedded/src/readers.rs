//! The connections that read.
//!
//! Reads run on the calling thread, not on a thread for blocking work: a read of one item takes a few microseconds, less than handing it
//! over and coming back. In WAL mode a reader never waits for the writer, and it begins with the newest commit.
//!
//! A connection is taken for one read and given back, so there are as many as there were reads at one moment: at most one a
//! runtime thread. The pool keeps them with their prepared statements.

use ports::Error;
use rusqlite::{Connection, OpenFlags};
use std::{
    borrow::Borrow,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// Idle connections above this number are closed.
const KEPT: usize = 8;

pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::default() }
    }

    /// Runs `read` on a connection; every statement in it sees the newest commit.
    ///
    /// # Errors
    /// Those of `read`, and those of [`failed`] when no connection can be opened.
    pub fn with<T>(&self, read: impl FnOnce(&Connection) -> ports::Result<T>) -> ports::Result<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = idle.map_or_else(|| self.open(), Ok).map_err(failed)?;
        let answer = read(&connection);
        // After an error the connection may be the reason: the next read gets a fresh one.
        if answer.is_ok() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < KEPT {
                idle.push(connection);
            }
        }
        answer
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(connection)
    }
}

/// SQLite's error as the port's, of reads and of writes.
pub(crate) fn failed(error: impl Borrow<rusqlite::Error>) -> Error {
    let error = error.borrow();
    match error {
        error if is_damage(error) => Error::Damaged(error.to_string()),
        error if is_full(error) => Error::full("the store"),
        error => Error::unavailable("the store", error.to_string()),
    }
}

/// Whether the file is not what was written: SQLite cannot read it, or finds a value of another type in it.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::{
        Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error},
        ErrorCode::{DatabaseCorrupt, NotADatabase},
    };
    let is_of_a_value = matches!(
        error,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
    );
    is_of_a_value || matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

/// Whether the disk has no room: for the file, its log, or the index of its log.
pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    use rusqlite::{ErrorCode::DiskFull, ffi::SQLITE_IOERR_SHMSIZE};
    let of_disk = |error: &rusqlite::ffi::Error| error.code == DiskFull || error.extended_code == SQLITE_IOERR_SHMSIZE;
    error.sqlite_error().is_some_and(of_disk)
}
