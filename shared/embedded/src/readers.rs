//! The connections that read.
//!
//! Reads run on the calling thread, not on a thread for blocking work: a read of one item takes a few microseconds, less than handing it
//! over and coming back. In WAL mode a reader never waits for the writer, and it begins with the newest commit.
//!
//! A connection is taken for one read and given back, so there are as many as there were reads at one moment: at most one a
//! runtime thread. The pool keeps them with their prepared statements.

use parking_lot::Mutex;
use ports::Error;
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use std::{borrow::Borrow, path::PathBuf};

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
        let idle = self.idle.lock().pop();
        let connection = idle.map_or_else(|| self.open(), Ok).map_err(failed)?;
        let answer = read(&connection);
        // After an error the connection may be the reason: the next read gets a fresh one.
        if answer.is_ok() {
            let mut idle = self.idle.lock();
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
        plan_once(&connection)?;
        Ok(connection)
    }
}

/// Has each statement keep its plan whatever its parameters are. Without this SQLite parses and plans most queries of a range again each time
/// that they come out of the cache of statements, which clears their parameters: another value could suggest another plan.
pub(crate) fn plan_once(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
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

/// Whether one page of the file is the reason: it [is not what was written](is_damage), or the disk does not give it back. Other pages may be whole.
pub(crate) fn is_of_a_page(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_CORRUPTFS, SQLITE_IOERR_DATA, SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ};
    const READS: [i32; 4] = [SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ, SQLITE_IOERR_DATA, SQLITE_IOERR_CORRUPTFS];
    is_damage(error) || error.sqlite_error().is_some_and(|error| READS.contains(&error.extended_code))
}

/// Whether the disk has no room: for the file, its log, or the index of its log.
pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    use rusqlite::{ErrorCode::DiskFull, ffi::SQLITE_IOERR_SHMSIZE};
    let of_disk = |error: &rusqlite::ffi::Error| error.code == DiskFull || error.extended_code == SQLITE_IOERR_SHMSIZE;
    error.sqlite_error().is_some_and(of_disk)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use rusqlite::StatementStatus;

    /// How often SQLite plans the query of a range again for other ranges.
    fn planned_again(prepare: impl FnOnce(&Connection)) -> i32 {
        let connection = Connection::open_in_memory().unwrap();
        crate::schema::bring_up_to_date(&connection, 0).unwrap();
        prepare(&connection);
        let sql =
            "SELECT body FROM items WHERE pk = ?1 AND sk >= ?2 AND sk < ?3 AND (expires_at IS NULL OR expires_at > ?4)
                   ORDER BY sk";
        for number in 0..4 {
            let bound = rusqlite::params!["p", format!("a{number}"), format!("b{number}"), number];
            let mut statement = connection.prepare_cached(sql).unwrap();
            let found: Vec<String> =
                statement.query_map(bound, |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
            assert!(found.is_empty());
        }
        let statement = connection.prepare_cached(sql).unwrap();
        statement.get_status(StatementStatus::RePrepare)
    }

    #[test]
    fn a_statement_is_planned_once_whatever_its_parameters_are() {
        assert!(planned_again(|_| ()) > 0, "SQLite needs to be told no more");
        assert_eq!(planned_again(|connection| plan_once(connection).unwrap()), 0);
    }
}
