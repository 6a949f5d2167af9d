//! The table over SQLite: reads by the readers, and commits by the writer. The rows are in `items.rs`.

use crate::{
    cursor,
    readers::{Readers, failed},
    request::Request,
    writer::Writer,
};
use async_trait::async_trait;
use domain::Timestamp;
use ports::{Clock, IndexQuery, Item, Key, Page, Query, QueueMessage, Result, Table, Write, validate};
use rusqlite::{OptionalExtension, Row, params};
use std::sync::Arc;

/// The most bytes of keys and bodies in a page; its first item always fits.
const PAGE_BYTES: usize = 1024 * 1024;
pub(crate) struct SqliteTable {
    pub readers: Arc<Readers>,
    pub writer: Writer,
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Table for SqliteTable {
    fn sends(&self) -> bool {
        true
    }

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
        // One text per shape of query, so that the cache of prepared statements finds it again.
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
        self.commit_sending(writes, Vec::new()).await
    }

    async fn commit_sending(&self, writes: Vec<Write>, messages: Vec<QueueMessage>) -> Result<()> {
        validate::writes(&writes)?;
        validate::messages(&messages)?;
        if writes.is_empty() && messages.is_empty() {
            return Ok(());
        }
        self.writer.ask(|answer| Request::Commit { writes, messages, answer }).await
    }
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
