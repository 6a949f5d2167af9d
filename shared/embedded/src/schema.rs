//! The schema of the store, and the steps that lead to it from each older version that is read.
//!
//! The version is SQLite's `user_version`. A new file takes all steps at once. An older one is brought to it in one
//! transaction, so after any failure it has the old schema or the new one. A newer one, and one from before [`FIRST`], is left
//! as it is.
//!
//! To change the schema: add to [`STEPS`] the step that brings a store of the version before to the next, which a new file takes, too, and add a
//! dump of the new version to `tests/golden`. The dumps of older versions stay: a test opens each of them.

use crate::{items, messages, views};
use rusqlite::Connection;

/// The oldest version that is read: the first one that the main branch kept readable. There is no release yet.
pub(crate) const FIRST: i64 = 2;
/// The version of a new store.
pub(crate) const VERSION: i64 = FIRST + STEPS.len() as i64;

/// The SQL that leads from one version to the next; the first step leads on from [`FIRST`]. A step never changes once it is on the main branch: hubs have taken it.
const STEPS: &[&str] = &[
    views::SCHEMA,
    views::planner::SCHEMA,
    views::planner::COUNTED,
    views::planner::WHOLE,
    views::planner::WAITING,
    messages::IDS_APART,
    messages::IDS_BEFORE_GROUPS,
];

/// The version of a store; 0 for a file without a schema.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Makes the schema in a new file, or brings that of an older one up to date.
///
/// # Errors
/// Those of SQLite; the file is then as it was.
pub(crate) fn bring_up_to_date(connection: &Connection, found: i64) -> rusqlite::Result<()> {
    match found {
        VERSION => Ok(()),
        0 => make(connection),
        _ => migrate(connection, found, STEPS),
    }
}

fn make(connection: &Connection) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(items::SCHEMA)?;
    transaction.execute_batch(messages::SCHEMA)?;
    for step in STEPS {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// Takes the steps that a store of this version lacks, all of them or none.
fn migrate(connection: &Connection, found: i64, steps: &[&str]) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    for (step, version) in steps.iter().zip(FIRST + 1..).filter(|(_, version)| *version > found) {
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", version)?;
    }
    transaction.commit()?;
    tracing::info!(from = found, to = FIRST + steps.len() as i64, "the store was brought to this version's schema");
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// Two versions that are not there yet.
    const NEXT: [&str; 2] = [
        "ALTER TABLE items ADD COLUMN colour TEXT; UPDATE items SET colour = 'red';",
        "UPDATE items SET colour = colour || 'dish'; CREATE TABLE more (id INTEGER PRIMARY KEY);",
    ];

    fn store() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        bring_up_to_date(&connection, 0).unwrap();
        connection.pragma_update(None, "user_version", FIRST).unwrap();
        let row = "INSERT INTO items (pk, sk, rev, body) VALUES ('p', 's', 1, 'body')";
        connection.execute_batch(row).unwrap();
        connection
    }

    fn colour(connection: &Connection) -> rusqlite::Result<String> {
        connection.query_row("SELECT colour FROM items", [], |row| row.get(0))
    }

    #[test]
    fn a_store_takes_each_step_that_it_lacks_once_and_in_order() {
        let connection = store();
        migrate(&connection, FIRST, &NEXT[..1]).unwrap();
        assert_eq!((version(&connection).unwrap(), colour(&connection).unwrap()), (FIRST + 1, "red".to_owned()));
        migrate(&connection, FIRST + 1, &NEXT).unwrap();
        assert_eq!((version(&connection).unwrap(), colour(&connection).unwrap()), (FIRST + 2, "reddish".to_owned()));

        let connection = store();
        migrate(&connection, FIRST, &NEXT).unwrap();
        assert_eq!((version(&connection).unwrap(), colour(&connection).unwrap()), (FIRST + 2, "reddish".to_owned()));
    }

    #[test]
    fn a_step_that_fails_leaves_the_store_as_it_was() {
        let connection = store();
        let failed = migrate(&connection, FIRST, &[NEXT[0], "INSERT INTO nowhere VALUES (1)"]);
        assert!(failed.unwrap_err().to_string().contains("nowhere"));
        assert_eq!(version(&connection).unwrap(), FIRST);
        assert!(colour(&connection).unwrap_err().to_string().contains("colour"), "the first step is undone, too");
        migrate(&connection, FIRST, &NEXT).unwrap();
        assert_eq!(colour(&connection).unwrap(), "reddish");
    }
}
