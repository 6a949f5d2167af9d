//! A copy of a store as of one moment, while another process may be writing to it.
//!
//! In WAL mode a reader sees the store as of the moment at which it began, and neither waits for the writer nor holds it up. So
//! the copy is one read, `VACUUM INTO`: it has what was committed at its beginning and nothing else, without the free pages, in which
//! deleted rows may still be, and in one file. The log grows meanwhile, because only what every reader has passed can be used again.

use crate::{
    open::{OpenError, check_schema},
    readers::Readers,
    schema,
    table::SqliteTable,
    writer::Writer,
};
use ports::{Clock, Table};
use rusqlite::{Connection, OpenFlags};
use std::{
    fs::{self, File},
    io,
    path::Path,
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

/// How often it is told how far the copy has come.
const TOLD_EVERY: Duration = Duration::from_millis(200);

const READS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// The version of the schema that this program writes; it reads older ones, too, and brings them up to date.
pub fn known_schema() -> i64 {
    schema::VERSION
}

/// Copies the store at `from` into the new file `to`, and syncs that. Tells the bytes that were written so far. Gives the version of the
/// schema.
///
/// # Errors
/// [`OpenError::TooNew`], [`OpenError::TooOld`] and [`OpenError::Empty`] as for opening it; errors of SQLite and of the disk.
pub fn copy_store(from: &Path, to: &Path, mut tell: impl FnMut(u64)) -> Result<i64, OpenError> {
    let database = |source| OpenError::Database { path: from.to_owned(), source };
    let folder = |source| OpenError::Folder { path: to.to_owned(), source };
    let Some(target) = to.to_str() else {
        return Err(folder(io::Error::new(io::ErrorKind::InvalidInput, "the path is no UTF-8")));
    };
    let connection = reading(from)?;
    let (ends, ended) = channel::<()>();
    let copied = thread::scope(|scope| {
        let copying = scope.spawn(move || {
            let _ends = ends;
            connection.execute("VACUUM INTO ?1", [target]).map(drop)
        });
        while ended.recv_timeout(TOLD_EVERY) == Err(RecvTimeoutError::Timeout) {
            tell(fs::metadata(to).map_or(0, |file| file.len()));
        }
        copying.join()
    });
    match copied {
        Ok(copied) => copied.map_err(database)?,
        Err(panic) => std::panic::resume_unwind(panic),
    }
    // SQLite syncs no copy that it makes.
    let file = File::open(to).map_err(folder)?;
    file.sync_all().map_err(folder)?;
    tell(file.metadata().map_err(folder)?.len());
    // A hub that started meanwhile may have brought it up to date before the copy began.
    let copy = Connection::open_with_flags(to, READS).map_err(database)?;
    schema::version(&copy).map_err(database)
}

/// A connection that only reads, to a store of a schema that this program knows.
fn reading(from: &Path) -> Result<Connection, OpenError> {
    let database = |source| OpenError::Database { path: from.to_owned(), source };
    let connection = Connection::open_with_flags(from, READS).map_err(database)?;
    connection.busy_timeout(Duration::from_secs(5)).map_err(database)?;
    check_schema(from, schema::version(&connection).map_err(database)?)?;
    Ok(connection)
}

/// Has SQLite check the structure of a store. Gives what is wrong in its words, a few dozen lines at most; nothing for a sound one. Nothing is written.
///
/// # Errors
/// [`OpenError::TooNew`], [`OpenError::TooOld`] and [`OpenError::Empty`] as for opening it; errors of SQLite.
pub fn check_store(path: &Path) -> Result<Vec<String>, OpenError> {
    let database = |source| OpenError::Database { path: path.to_owned(), source };
    let connection = reading(path)?;
    let check = || {
        let mut lines = connection.prepare("PRAGMA integrity_check(50)")?;
        lines.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
    };
    let mut found = check().map_err(database)?;
    found.retain(|line| line != "ok");
    Ok(found)
}

/// The table of a copy, in a file without writers. Commits are unavailable.
pub fn frozen_table(path: &Path, clock: Arc<dyn Clock>) -> Arc<dyn Table> {
    let (requests, _) = std::sync::mpsc::channel();
    Arc::new(SqliteTable { readers: Arc::new(Readers::new(path.to_owned())), writer: Writer(requests), clock })
}
