//! The tables of an index.

use crate::readers;
use rusqlite::{Connection, OpenFlags};
use std::{fs, path::Path};

/// The form of the tables. A file with another one is made anew.
pub(super) const VERSION: i64 = 2;

/// The ids of passages and vectors are never used again: who holds one means that one.
///
/// A passage without a vector has none (`NULL`) while it waits for one, and 0 if it is a name, which gets none. The code of a vector is empty for a
/// passage that the model does not take. Vectors are a file's own, and not shared by files with the same passage: else a passage that waits for
/// nothing would tell its author that somebody else has it, too.
const TABLES: &str = "
    CREATE TABLE progress (only_one INTEGER PRIMARY KEY, note TEXT NOT NULL);
    CREATE TABLE files (
        id INTEGER PRIMARY KEY,
        file_id TEXT NOT NULL UNIQUE,
        path TEXT NOT NULL,
        v INTEGER NOT NULL,
        author TEXT NOT NULL,
        updated_at INTEGER NOT NULL,
        size INTEGER NOT NULL,
        derived_from TEXT,
        seal TEXT,
        waits INTEGER NOT NULL,
        name_words INTEGER NOT NULL,
        passages INTEGER NOT NULL,
        words INTEGER NOT NULL
    );
    CREATE INDEX files_by_path ON files (path);
    CREATE INDEX files_that_wait ON files (updated_at) WHERE waits = 1;
    CREATE TABLE passages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        file INTEGER NOT NULL,
        first_line INTEGER NOT NULL,
        last_line INTEGER NOT NULL,
        words INTEGER NOT NULL,
        heading TEXT NOT NULL,
        text TEXT NOT NULL,
        hash BLOB NOT NULL,
        vector INTEGER
    );
    CREATE INDEX passages_by_file ON passages (file);
    CREATE INDEX passages_without_vector ON passages (id, file) WHERE vector IS NULL;
    CREATE TABLE vectors (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        file INTEGER NOT NULL,
        hash BLOB NOT NULL,
        code BLOB NOT NULL,
        UNIQUE (file, hash)
    );
    CREATE TABLE space (only_one INTEGER PRIMARY KEY, name TEXT NOT NULL, dimensions INTEGER NOT NULL);
    CREATE VIRTUAL TABLE words USING fts5 (tokens, content = '', contentless_delete = 1, tokenize = 'ascii');
    CREATE VIRTUAL TABLE occurrences USING fts5vocab ('words', 'instance');
";

/// Opens the index at `path`; an empty one where there is none, or one of another form.
///
/// # Errors
/// Those of SQLite, such as for a file that is no database.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path)?;
    match connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))? {
        VERSION => return Ok(connection),
        0 => {}
        _ => {
            drop(connection);
            for end in ["", "-wal", "-shm"] {
                let mut file = path.as_os_str().to_owned();
                file.push(end);
                drop(fs::remove_file(file));
            }
            return make(connect(path)?);
        }
    }
    make(connection)
}

fn make(connection: Connection) -> rusqlite::Result<Connection> {
    connection.execute_batch(&format!("BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"))?;
    Ok(connection)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    // A power cut may damage it, and then it is made anew.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;",
    )?;
    connection.set_prepared_statement_cache_capacity(32);
    readers::plan_once(&connection)?;
    Ok(connection)
}
