//! A table whose large bodies live in blobs: a commit and a page stay small with items of any size.

use crate::{
    Blobs, Clock, Damage, Error, Expect, IndexQuery, Item, Key, MAX_WRITES, Page, Query, QueueMessage, Result, Table,
    Write,
    body_reference::{BodyReference, MARK},
    validate,
};
use async_trait::async_trait;
use bytes::Bytes;
use domain::{Sha256, Timestamp, WorkspaceId};
use futures::future::try_join_all;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Bodies with more bytes than this leave the table.
pub const SPILL_ABOVE: usize = 64 * 1024;
/// The longest body, in bytes: far more than a table takes, because long bodies are kept in blobs; a bound all the same.
pub const MAX_SPILLED: usize = 32 * 1024 * 1024;
/// The space of the blobs with the bodies of items of no workspace, and with those that earlier versions wrote. Not a workspace: a workspace's id
/// has no `_`.
pub const SPILL_SPACE: &str = "_table";
/// How long after the first long body a process may still run that reads [`SPILL_SPACE`] alone: longer than any deploy.
const ROLLOUT: Duration = Duration::from_secs(3600);
/// The beginning of the sort keys of log entries, before twenty digits.
const LOG: &str = "log/";
/// The most bytes of bodies in a page, as [`Query::limit`] promises.
const PAGE_BYTES: usize = 1024 * 1024;

/// A [`Table`] over a [`Table`] and a [`Blobs`]: bodies above [`SPILL_ABOVE`] go to blobs first and leave a reference that reads resolve.
/// Smaller ones pass untouched, at the cost of a comparison.
///
/// Bodies of a workspace's items are in a space of this workspace ([`spill_space`]), which the key of the item tells: a reference names none. So
/// workspaces share no body, and the deletion of a workspace removes its bodies with one [`Blobs::delete_space`]. A body that is not there is
/// looked for in [`SPILL_SPACE`], where earlier versions put all of them.
///
/// The blob is durable before the commit that refers to it. A commit that fails, and an item that is replaced, deleted or
/// expired, leave a blob that nothing refers to: storage, not damage, because contents of a space are shared by digest and counting
/// references would cost every commit a write. It goes with the workspace. [`Table::clear`] removes the bodies of log entries at once.
///
/// A blob that is lost costs the item its body and nothing else. [`Table::get`] fails with [`Error::Lost`]. A page has the item in its place,
/// with a body that is no JSON: so a reader of a list leaves it out ([`crate::readable`]), and a reader of a log, who must not miss an entry,
/// fails with [`Error::Lost`] ([`Item::content`]). Such a body that is written again refers to the same blob as before, which a backup may
/// bring back.
pub struct Spilling {
    table: Arc<dyn Table>,
    blobs: Arc<dyn Blobs>,
    rollout: Option<Rollout>,
}

/// The space of the long bodies of a workspace's items.
pub fn spill_space(workspace: WorkspaceId) -> String {
    format!("{SPILL_SPACE}-{workspace}")
}

/// The space of the body of an item of a workspace: partitions of workspaces have its id as their first part, or as the second one after a kind.
fn own_space(key: &Key) -> Option<String> {
    key.pk.split('/').take(2).find_map(|part| part.parse::<WorkspaceId>().ok()).map(spill_space)
}

/// Whether this is the sort key of a log entry. Others may begin in the same way: that of the manifests of a flow begins with the flow's name.
fn is_entry(sk: &str) -> bool {
    let number = sk.strip_prefix(LOG);
    number.is_some_and(|number| number.len() == 20 && number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Tells when no process of a version runs any more that reads [`SPILL_SPACE`] alone.
struct Rollout {
    clock: Arc<dyn Clock>,
    is_over: AtomicBool,
}

impl Rollout {
    /// Whether it is over. The first process that asks notes the time in the table, for all.
    async fn is_over(&self, table: &dyn Table) -> Result<bool> {
        if self.is_over.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let (key, now) = (Key::new("bodies", "by-workspace"), self.clock.now());
        let Some(note) = table.get(&key).await? else {
            let body = serde_json::to_string(&now).map_err(|error| Error::Invalid(error.to_string()))?;
            return match table.commit(vec![Write::put(key, body, Expect::Absent)]).await {
                Ok(()) | Err(Error::Conflict { .. }) => Ok(false),
                Err(error) => Err(error),
            };
        };
        let is_over = now.since(note.content::<Timestamp>()?) >= ROLLOUT;
        self.is_over.store(is_over, Ordering::Relaxed);
        Ok(is_over)
    }
}

impl Spilling {
    /// Over `table`, with the large bodies in `blobs`, for a process that shares them with no process of another version.
    pub fn new(table: Arc<dyn Table>, blobs: Arc<dyn Blobs>) -> Self {
        Self { table, blobs, rollout: None }
    }

    /// The same for a process that may run beside those of an earlier version, which know [`SPILL_SPACE`] alone: all bodies go there until an hour after
    /// the first one.
    pub fn beside_earlier(table: Arc<dyn Table>, blobs: Arc<dyn Blobs>, clock: Arc<dyn Clock>) -> Self {
        Self { table, blobs, rollout: Some(Rollout { clock, is_over: AtomicBool::new(false) }) }
    }

    /// The space into which the body of an item goes now.
    async fn space_for(&self, key: &Key) -> Result<String> {
        let Some(own) = own_space(key) else { return Ok(SPILL_SPACE.into()) };
        if let Some(rollout) = &self.rollout
            && !rollout.is_over(&*self.table).await?
        {
            return Ok(SPILL_SPACE.into());
        }
        Ok(own)
    }

    /// The body with this digest of an item with this key, from either space.
    async fn body(&self, key: &Key, digest: Sha256) -> Result<Option<Bytes>> {
        let Some(space) = own_space(key) else { return self.blobs.get(SPILL_SPACE, digest, None).await };
        let own = self.blobs.get(&space, digest, None).await;
        if !matches!(own, Ok(None) | Err(Error::Damaged(_))) {
            return own;
        }
        match self.blobs.get(SPILL_SPACE, digest, None).await {
            Ok(None) => own,
            shared => shared,
        }
    }

    async fn spill_all(&self, writes: Vec<Write>) -> Result<Vec<Write>> {
        validate::writes_up_to(&writes, MAX_SPILLED)?;
        try_join_all(writes.into_iter().map(|write| self.spill(write))).await
    }

    async fn spill(&self, mut write: Write) -> Result<Write> {
        if let Write::Put { key, body, .. } = &mut write
            && (body.len() > SPILL_ABOVE || body.starts_with(MARK))
        {
            let reference = match BodyReference::of(body) {
                Some(lost @ BodyReference { lost: Some(_), .. }) => BodyReference { lost: None, ..lost },
                _ => {
                    let (length, space) = (body.len(), self.space_for(key).await?);
                    let digest = self.blobs.put(&space, Bytes::from(std::mem::take(body))).await?;
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
        let found = match self.body(&item.key, digest).await {
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

    /// The body of a log entry has the random id of its step, so no other row can have the same one: it goes with its row. Bodies of other rows may be
    /// shared, and go with the space. No body is loaded.
    async fn clear(&self, partition: &str) -> Result<()> {
        loop {
            let items = self.table.query(&Query::all(partition, MAX_WRITES)).await?.items;
            if items.is_empty() {
                return Ok(());
            }
            for item in items.iter().filter(|item| is_entry(&item.key.sk)) {
                let Some(BodyReference { digest, .. }) = BodyReference::of(&item.body) else { continue };
                for space in own_space(&item.key).into_iter().chain([SPILL_SPACE.to_owned()]) {
                    self.blobs.delete(&space, digest).await?;
                }
            }
            let deletes = items.into_iter().map(|item| Write::delete(item.key, Expect::Any));
            self.table.commit(deletes.collect()).await?;
        }
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
