//! The table's items in SQLite: one row per item, in the order of writing, found by an index over the keys.
//!
//! Rows are not clustered by key, because then each of the many actors that share a transaction would write to a page of its own, and rows,
//! bodies and all, would also be the inner nodes of the tree. This way the rows of one transaction lie together: a third fewer pages per
//! commit, for reads of a range that take about twice as long, which is microseconds per row.
//!
//! Rows of the index change often, and entries of logs never change. So rows of the index have numbers of their own, below all others, and lie
//! together: a page has the rows of several actors that were made together.

use crate::readers::is_of_a_page;
use domain::Timestamp;
use ports::{Error, Expect, Result, Write};
use rusqlite::{Connection, OptionalExtension, params};

/// The body is the last column: a query of the others never follows a long body's pages.
pub(crate) const SCHEMA: &str = "
    CREATE TABLE items (
        number INTEGER PRIMARY KEY, pk TEXT NOT NULL, sk TEXT NOT NULL, rev INTEGER NOT NULL, expires_at INTEGER,
        index_pk TEXT, index_sk TEXT, body TEXT NOT NULL, UNIQUE (pk, sk)
    );
    CREATE INDEX items_by_index ON items (index_pk, index_sk, pk, sk) WHERE index_pk IS NOT NULL;
    CREATE INDEX items_by_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;";

/// How many expired items one commit removes: little enough not to be felt.
const SWEPT_AT_ONCE: i64 = 64;

/// The numbers of the rows that are made next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextNumbers {
    /// None if the last one cannot be read: then rows of the index lie among the others.
    of_index: Option<i64>,
    /// None if the last one cannot be read: then SQLite chooses a number, and fails at the same page.
    others: Option<i64>,
}

impl NextNumbers {
    /// The lowest number of a row of the index. All of them are negative.
    const FIRST_OF_INDEX: i64 = -(1 << 40);

    /// The numbers after the rows of a table. A page that cannot be read does not keep the store closed.
    pub fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let after = |last: &str, first: i64| match connection.query_row(last, [], |row| row.get::<_, Option<i64>>(0)) {
            Ok(last) => Ok(Some(last.map_or(first, |last| last + 1))),
            Err(error) if is_of_a_page(&error) => Ok(None),
            Err(error) => Err(error),
        };
        let of_index = after("SELECT max(number) FROM items WHERE number < 0", Self::FIRST_OF_INDEX)?;
        Ok(Self { of_index, others: after("SELECT max(number) FROM items WHERE number >= 0", 1)? })
    }

    fn draw(&mut self, is_of_index: bool) -> Option<i64> {
        let next = if is_of_index && self.of_index.is_some() { &mut self.of_index } else { &mut self.others };
        let number = *next;
        *next = number.map(|number| number + 1);
        number
    }
}

/// The row that a write is about, before the write.
struct StoredRow {
    number: i64,
    rev: i64,
    /// Whether its indexed columns are the ones that the write wants.
    is_indexed_alike: bool,
}

/// One commit inside a transaction: every expectation is checked before anything is written, so a conflict has nothing to undo.
///
/// The first write is mostly an entry of a log that must be new. Once all others hold, its insertion itself is the check, which looks for the key once.
pub(crate) fn commit(
    connection: &Connection,
    writes: &[Write],
    next: &mut NextNumbers,
    now: Timestamp,
) -> rusqlite::Result<Result<()>> {
    if let [first @ Write::Put { expect: Expect::Absent, .. }, others @ ..] = writes
        && let Ok(found) = check(connection, others, now)?
        && insert(connection, first, next)?
    {
        return write(connection, others, found, next).map(Ok);
    }
    match check(connection, writes, now)? {
        Ok(found) => write(connection, writes, found, next).map(Ok),
        Err(conflict) => Ok(Err(conflict)),
    }
}

/// Inserts the row of a write that wants to be the first one under its key; false when there is a row, which may have expired.
fn insert(connection: &Connection, write: &Write, next: &mut NextNumbers) -> rusqlite::Result<bool> {
    let Write::Put { key, body, .. } = write else { return Ok(false) };
    let (expires_at, index_pk, index_sk) = indexed(write);
    let mut insert = connection.prepare_cached(
        "INSERT INTO items (number, pk, sk, rev, expires_at, index_pk, index_sk, body) VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7)
         ON CONFLICT (pk, sk) DO NOTHING",
    )?;
    let number = next.draw(index_pk.is_some());
    Ok(insert.execute(params![number, key.pk, key.sk, expires_at, index_pk, index_sk, body])? == 1)
}

/// The rows that these writes are about, in their order; the first expectation that does not hold is a conflict.
fn check(
    connection: &Connection,
    writes: &[Write],
    now: Timestamp,
) -> rusqlite::Result<Result<Vec<Option<StoredRow>>>> {
    let mut find = connection.prepare_cached(
        "SELECT number, rev, expires_at IS ?4 AND index_pk IS ?5 AND index_sk IS ?6 FROM items
         WHERE pk = ?1 AND sk = ?2 AND (expires_at IS NULL OR expires_at > ?3)",
    )?;
    let mut all_found = Vec::with_capacity(writes.len());
    for (position, write) in writes.iter().enumerate() {
        let key = write.key();
        let (expires_at, index_pk, index_sk) = indexed(write);
        let wanted = params![key.pk, key.sk, now.as_millis(), expires_at, index_pk, index_sk];
        let found = find.query_row(wanted, |row| {
            Ok(StoredRow { number: row.get(0)?, rev: row.get(1)?, is_indexed_alike: row.get(2)? })
        });
        let found = found.optional()?;
        let holds = match write.expect() {
            Expect::Absent => found.is_none(),
            Expect::Rev(rev) => found.as_ref().is_some_and(|found| i64::try_from(rev) == Ok(found.rev)),
            Expect::Present => found.is_some(),
            Expect::Any => true,
        };
        if !holds {
            return Ok(Err(Error::Conflict { write: position }));
        }
        all_found.push(found);
    }
    Ok(Ok(all_found))
}

/// Writes over the rows that the check has found.
fn write(
    connection: &Connection,
    writes: &[Write],
    all_found: Vec<Option<StoredRow>>,
    next: &mut NextNumbers,
) -> rusqlite::Result<()> {
    // An update that names an indexed column writes its index anew, also with the same value: a page more for each view.
    let mut replace = connection.prepare_cached("UPDATE items SET rev = ?2, body = ?3 WHERE number = ?1")?;
    let mut put = connection.prepare_cached(
        "INSERT INTO items (number, pk, sk, rev, expires_at, index_pk, index_sk, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (pk, sk) DO UPDATE SET rev = ?4, expires_at = ?5, index_pk = ?6, index_sk = ?7, body = ?8",
    )?;
    let mut delete = connection.prepare_cached("DELETE FROM items WHERE pk = ?1 AND sk = ?2")?;
    for (write, found) in writes.iter().zip(all_found) {
        match (write, found) {
            (Write::Put { body, .. }, Some(StoredRow { number, rev, is_indexed_alike: true })) => {
                replace.execute(params![number, rev + 1, body])?;
            }
            (Write::Put { key, body, .. }, found) => {
                let (expires_at, index_pk, index_sk) = indexed(write);
                let rev = found.map_or(0, |found| found.rev) + 1;
                let number = next.draw(index_pk.is_some());
                put.execute(params![number, key.pk, key.sk, rev, expires_at, index_pk, index_sk, body])?;
            }
            (Write::Delete { key, .. }, _) => {
                delete.execute(params![key.pk, key.sk])?;
            }
            (Write::Check { .. }, _) => {}
        }
    }
    Ok(())
}

/// The values of the indexed columns beside the key.
fn indexed(write: &Write) -> (Option<i64>, Option<&str>, Option<&str>) {
    let Write::Put { index, expires_at, .. } = write else { return (None, None, None) };
    let (index_pk, index_sk) = index.as_ref().map(|index| (index.pk.as_str(), index.sk.as_str())).unzip();
    (expires_at.map(Timestamp::as_millis), index_pk, index_sk)
}

/// Removes some expired items, which no query returns; returns how many, and whether there may be more.
pub(crate) fn sweep(connection: &Connection, now: Timestamp) -> rusqlite::Result<(usize, bool)> {
    let mut sweep = connection.prepare_cached(
        "DELETE FROM items WHERE number IN (SELECT number FROM items WHERE expires_at <= ?1 LIMIT ?2)",
    )?;
    let swept = sweep.execute(params![now.as_millis(), SWEPT_AT_ONCE])?;
    Ok((swept, swept as i64 == SWEPT_AT_ONCE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::Key;

    fn put(sk: &str, is_of_index: bool) -> Write {
        let index = is_of_index.then(|| Key::new("list", sk));
        Write::Put { key: Key::new("a", sk), body: "{}".into(), index, expires_at: None, expect: Expect::Any }
    }

    #[test]
    fn rows_of_the_index_lie_together_also_in_a_table_that_was_closed_and_has_no_others() -> rusqlite::Result<()> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(SCHEMA)?;
        for writes in [["v1", "v2"], ["e1", "v3"], ["e2", "v1"], ["v4", "e3"]] {
            let mut next = NextNumbers::read(&connection)?;
            let writes = writes.map(|sk| put(sk, sk.starts_with('v')));
            commit(&connection, &writes, &mut next, Timestamp::default())?
                .map_err(|_| rusqlite::Error::InvalidQuery)?;
        }
        let mut rows = connection.prepare("SELECT number, sk FROM items ORDER BY number")?;
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows = rows.collect::<rusqlite::Result<Vec<(i64, String)>>>()?;
        let names: Vec<_> = rows.iter().map(|(_, sk)| sk.as_str()).collect();
        assert_eq!(names, ["v1", "v2", "v3", "v4", "e1", "e2", "e3"]);
        assert_eq!(rows.iter().map(|(number, _)| *number < 0).filter(|is_of_index| *is_of_index).count(), 4);
        Ok(())
    }
}
