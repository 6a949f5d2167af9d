//! The table in SQLite: one row an item, in the order of writing, found by an index over the keys.
//!
//! Rows are not clustered by key, because then each of the many actors that share a transaction would write to a page of its own, and rows,
//! bodies and all, would also be the inner nodes of the tree. This way the rows of one transaction lie together: a third fewer pages per
//! commit, for reads of a range that take about twice as long, which is microseconds per row.

use crate::{
    cursor,
    readers::{Readers, failed},
    writer::{Request, Writer},
};
use async_trait::async_trait;
use domain::Timestamp;
use ports::{Clock, Error, Expect, IndexQuery, Item, Key, Page, Query, Result, Table, Write, validate};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::sync::Arc;

/// The body is the last column: a query of the others never follows a long body's pages.
pub(crate) const SCHEMA: &str = "
    CREATE TABLE items (
        number INTEGER PRIMARY KEY, pk TEXT NOT NULL, sk TEXT NOT NULL, rev INTEGER NOT NULL, expires_at INTEGER,
        index_pk TEXT, index_sk TEXT, body TEXT NOT NULL, UNIQUE (pk, sk)
    );
    CREATE INDEX items_by_index ON items (index_pk, index_sk, pk, sk) WHERE index_pk IS NOT NULL;
    CREATE INDEX items_by_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;";

/// The most bytes of keys and bodies in a page; its first item always fits.
const PAGE_BYTES: usize = 1024 * 1024;
/// How many expired items one commit removes: little enough not to be felt.
const SWEPT_AT_ONCE: i64 = 64;

pub(crate) struct SqliteTable {
    pub readers: Arc<Readers>,
    pub writer: Writer,
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Table for SqliteTable {
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        let now = self.clock.now().as_millis();
        self.readers.with(|connection| {
            let mut get = connection
                .prepare_cached(
                    "SELECT pk, sk, rev, expires_at, index_pk, index_sk, body FROM items
                     WHERE pk = ?1 AND sk = ?2 AND (expires_at IS NULL OR expires_at > ?3)",
                )
                .map_err(failed)?;
            get.query_row(params![key.pk, key.sk, now], item).optional().map_err(failed)
        })
    }

    async fn query(&self, query: &Query) -> Result<Page> {
        validate::query(query)?;
        let after = cursor::read::<1>("items", query)?;
        let order = if query.descending { "DESC" } else { "ASC" };
        let beyond = if query.descending { "<" } else { ">" };
        // One text a shape of query, so that the cache of prepared statements finds it again.
        let mut sql = "SELECT pk, sk, rev, expires_at, index_pk, index_sk, body FROM items WHERE pk = ?1".to_owned();
        // A cursor lies inside the range, so it replaces the bound on its side: with both, SQLite may seek to the outer one.
        let (from, to) = bounds(query, after.is_some());
        push_if(&mut sql, from, " AND sk >= ?2");
        push_if(&mut sql, to, " AND sk < ?3");
        push_if(&mut sql, after.is_some(), &format!(" AND sk {beyond} ?4"));
        sql.push_str(&format!(" AND (expires_at IS NULL OR expires_at > ?5) ORDER BY sk {order}"));
        let position = after.map(|[sk]| sk);
        let now = self.clock.now().as_millis();
        self.readers.with(|connection| {
            let mut statement = connection.prepare_cached(&sql).map_err(failed)?;
            let bound: [(usize, &dyn rusqlite::ToSql); 5] =
                [(1, &query.pk), (2, &query.from), (3, &query.to), (4, &position), (5, &now)];
            page(&mut statement, &bound, query, |item| cursor::write("items", query, &[&item.key.sk]))
        })
    }

    async fn query_index(&self, query: &IndexQuery) -> Result<Page> {
        validate::query(query)?;
        let after = cursor::read::<3>("index", query)?;
        let order = if query.descending { "DESC" } else { "ASC" };
        let beyond = if query.descending { "<" } else { ">" };
        let mut sql =
            "SELECT pk, sk, rev, expires_at, index_pk, index_sk, body FROM items WHERE index_pk = ?1".to_owned();
        let (from, to) = bounds(query, after.is_some());
        push_if(&mut sql, from, " AND index_sk >= ?2");
        push_if(&mut sql, to, " AND index_sk < ?3");
        push_if(&mut sql, after.is_some(), &format!(" AND (index_sk, pk, sk) {beyond} (?4, ?5, ?6)"));
        sql.push_str(" AND (expires_at IS NULL OR expires_at > ?7)");
        sql.push_str(&format!(" ORDER BY index_sk {order}, pk {order}, sk {order}"));
        let [index_sk, pk, sk] = after.map_or([None, None, None], |position| position.map(Some));
        let now = self.clock.now().as_millis();
        self.readers.with(|connection| {
            let mut statement = connection.prepare_cached(&sql).map_err(failed)?;
            let bound: [(usize, &dyn rusqlite::ToSql); 7] =
                [(1, &query.pk), (2, &query.from), (3, &query.to), (4, &index_sk), (5, &pk), (6, &sk), (7, &now)];
            page(&mut statement, &bound, query, |item| {
                let index_sk = item.index.as_ref().map_or("", |index| &index.sk);
                cursor::write("index", query, &[index_sk, &item.key.pk, &item.key.sk])
            })
        })
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<()> {
        validate::writes(&writes)?;
        if writes.is_empty() {
            return Ok(());
        }
        self.writer.ask(|answer| Request::Commit { writes, answer }).await
    }
}

/// The row that a write is about, before the write.
struct Found {
    number: i64,
    rev: i64,
    /// Whether its indexed columns are the ones that the write wants.
    is_indexed_alike: bool,
}

/// One commit inside a transaction: every expectation is checked before anything is written, so a conflict has nothing to undo.
pub(crate) fn commit(connection: &Connection, writes: &[Write], now: Timestamp) -> rusqlite::Result<Result<()>> {
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
            Ok(Found { number: row.get(0)?, rev: row.get(1)?, is_indexed_alike: row.get(2)? })
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
    // An update that names an indexed column writes its index anew, also with the same value: a page more for each view.
    let mut replace = connection.prepare_cached("UPDATE items SET rev = ?2, body = ?3 WHERE number = ?1")?;
    let mut put = connection.prepare_cached(
        "INSERT INTO items (pk, sk, rev, expires_at, index_pk, index_sk, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (pk, sk) DO UPDATE SET rev = ?3, expires_at = ?4, index_pk = ?5, index_sk = ?6, body = ?7",
    )?;
    let mut delete = connection.prepare_cached("DELETE FROM items WHERE pk = ?1 AND sk = ?2")?;
    for (write, found) in writes.iter().zip(all_found) {
        match (write, found) {
            (Write::Put { body, .. }, Some(Found { number, rev, is_indexed_alike: true })) => {
                replace.execute(params![number, rev + 1, body])?;
            }
            (Write::Put { key, body, .. }, found) => {
                let (expires_at, index_pk, index_sk) = indexed(write);
                let rev = found.map_or(0, |found| found.rev) + 1;
                put.execute(params![key.pk, key.sk, rev, expires_at, index_pk, index_sk, body])?;
            }
            (Write::Delete { key, .. }, _) => {
                delete.execute(params![key.pk, key.sk])?;
            }
            (Write::Check { .. }, _) => {}
        }
    }
    Ok(Ok(()))
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

fn page(
    statement: &mut rusqlite::Statement<'_>,
    bound: &[(usize, &dyn rusqlite::ToSql)],
    query: &Query,
    cursor_after: impl Fn(&Item) -> String,
) -> Result<Page> {
    for (position, value) in bound {
        // A shape of query that lacks a condition also lacks its parameter, except when a later one keeps its number alive.
        if *position <= statement.parameter_count() {
            statement.raw_bind_parameter(*position, value).map_err(failed)?;
        }
    }
    let mut rows = statement.raw_query();
    let (mut items, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next().map_err(failed)? {
        let item = item(row).map_err(failed)?;
        bytes += item.body.len() + item.key.pk.len() + item.key.sk.len();
        let full = items.len() == query.limit || bytes > PAGE_BYTES;
        if let (true, Some(last)) = (full, items.last()) {
            let next = Some(cursor_after(last));
            return Ok(Page { items, next });
        }
        items.push(item);
    }
    Ok(Page { items, next: None })
}

fn item(row: &Row<'_>) -> rusqlite::Result<Item> {
    let index_pk: Option<String> = row.get(4)?;
    let index_sk: Option<String> = row.get(5)?;
    Ok(Item {
        key: Key { pk: row.get(0)?, sk: row.get(1)? },
        rev: row.get::<_, i64>(2)?.unsigned_abs(),
        body: row.get(6)?,
        index: index_pk.zip(index_sk).map(|(pk, sk)| Key { pk, sk }),
        expires_at: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis),
    })
}

/// Whether the lower and the upper bound still matter.
fn bounds(query: &Query, has_cursor: bool) -> (bool, bool) {
    let from = query.from.is_some() && (query.descending || !has_cursor);
    let to = query.to.is_some() && (!query.descending || !has_cursor);
    (from, to)
}

fn push_if(sql: &mut String, needed: bool, condition: &str) {
    if needed {
        sql.push_str(condition);
    }
}
