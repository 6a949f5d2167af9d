//! A table whose large bodies live in blobs: a commit and a page stay small with items of any size.

use crate::{
    Blobs, Damage, Error, IndexQuery, Item, Key, Page, Query, QueueMessage, Result, Table, Write,
    body_reference::{BodyReference, MARK},
    validate,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::try_join_all;
use std::sync::Arc;

/// Bodies with more bytes than this leave the table.
pub const SPILL_ABOVE: usize = 64 * 1024;
/// The longest body, in bytes: far more than a table takes, because long bodies are kept in blobs; a bound all the same.
pub const MAX_SPILLED: usize = 32 * 1024 * 1024;
/// The space of the blobs that hold them. Not a workspace: a workspace's id has no `_`.
pub const SPILL_SPACE: &str = "_table";
/// The most bytes of bodies in a page, as [`Query::limit`] promises.
const PAGE_BYTES: usize = 1024 * 1024;

/// A [`Table`] over a [`Table`] and a [`Blobs`]: bodies above [`SPILL_ABOVE`] go to blobs first and leave a reference that reads resolve.
/// Smaller ones pass untouched, at the cost of a comparison.
///
/// The blob is durable before the commit that refers to it. A commit that fails, and an item that is replaced, deleted or
/// expired, leave a blob that nothing refers to: storage, not damage, because contents are shared by digest and counting
/// references would cost every commit a write. A sweep may drop blobs that no item names.
///
/// A blob that is lost costs the item its body and nothing else. [`Table::get`] fails with [`Error::Lost`]. A page has the item in its place,
/// with a body that is no JSON: so a reader of a list leaves it out ([`crate::readable`]), and a reader of a log, who must not miss an entry,
/// fails with [`Error::Lost`] ([`Item::content`]). Such a body that is written again refers to the same blob as before, which a backup may
/// bring back.
pub struct Spilling {
    table: Arc<dyn Table>,
    blobs: Arc<dyn Blobs>,
}

impl Spilling {
    /// Over `table`, with the large bodies in `blobs`.
    pub fn new(table: Arc<dyn Table>, blobs: Arc<dyn Blobs>) -> Self {
        Self { table, blobs }
    }

    async fn spill_all(&self, writes: Vec<Write>) -> Result<Vec<Write>> {
        validate::writes_up_to(&writes, MAX_SPILLED)?;
        try_join_all(writes.into_iter().map(|write| self.spill(write))).await
    }

    async fn spill(&self, mut write: Write) -> Result<Write> {
        if let Write::Put { body, .. } = &mut write
            && (body.len() > SPILL_ABOVE || body.starts_with(MARK))
        {
            let reference = match BodyReference::of(body) {
                Some(lost @ BodyReference { lost: Some(_), .. }) => BodyReference { lost: None, ..lost },
                _ => {
                    let length = body.len();
                    let digest = self.blobs.put(SPILL_SPACE, Bytes::from(std::mem::take(body))).await?;
                    BodyReference { digest, length, lost: None }
                }
            };
            *body = reference.to_string();
        }
        Ok(write)
    }

    /// The item with the body that it refers to; one that is lost is told of in its place.
    async fn resolve(&self, mut item: Item) -> Result<Item> {
        let Some(reference) = BodyReference::of(&item.body) else { return Ok(item) };
        let digest = reference.digest;
        let found = match self.blobs.get(SPILL_SPACE, digest, None).await {
            Ok(Some(content)) => String::from_utf8(content.into()).map_err(|_| Damage::Altered),
            Ok(None) => Err(Damage::Missing),
            Err(Error::Damaged(why)) => {
                tracing::error!(key = ?item.key, %digest, %why, "a stored body is damaged");
                Err(Damage::Altered)
            }
            Err(error) => return Err(error),
        };
        item.body = found.unwrap_or_else(|damage| BodyReference { lost: Some(damage), ..reference }.to_string());
        Ok(item)
    }

    /// Resolves a page, cut to the size limit of a page. Only the inner table knows the cursor of a shorter page, so a page that grew too
    /// large is asked for again with fewer items. A commit in between may move its end; its bodies may then be somewhat more, never its
    /// items fewer than one.
    async fn resolve_page(&self, mut page: Page, query: &Query, by_index: bool) -> Result<Page> {
        let fits = fitting(&page.items);
        if fits < page.items.len() {
            let shorter = Query { limit: fits, ..query.clone() };
            page = if by_index { self.table.query_index(&shorter).await } else { self.table.query(&shorter).await }?;
        }
        let items = try_join_all(page.items.into_iter().map(|item| self.resolve(item))).await?;
        Ok(Page { items, next: page.next })
    }
}

#[async_trait]
impl Table for Spilling {
    fn max_body(&self) -> usize {
        MAX_SPILLED
    }

    fn sends(&self) -> bool {
        self.table.sends()
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        let Some(item) = self.table.get(key).await? else { return Ok(None) };
        let item = self.resolve(item).await?;
        item.lost().map_or(Ok(Some(item)), Err)
    }

    async fn query(&self, query: &Query) -> Result<Page> {
        self.resolve_page(self.table.query(query).await?, query, false).await
    }

    async fn query_index(&self, query: &IndexQuery) -> Result<Page> {
        self.resolve_page(self.table.query_index(query).await?, query, true).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<()> {
        self.table.commit(self.spill_all(writes).await?).await
    }

    async fn commit_sending(&self, writes: Vec<Write>, messages: Vec<QueueMessage>) -> Result<()> {
        self.table.commit_sending(self.spill_all(writes).await?, messages).await
    }
}

/// How many of `items` a page may hold once they are resolved; at least one of one or more.
fn fitting(items: &[Item]) -> usize {
    let mut bytes = 0_usize;
    for (position, item) in items.iter().enumerate() {
        bytes = bytes.saturating_add(BodyReference::of(&item.body).map_or(item.body.len(), |found| found.length));
        if bytes > PAGE_BYTES && position > 0 {
            return position;
        }
    }
    items.len()
}
