//! The table: items under two keys, conditional writes, ordered ranges. Modelled on DynamoDB.

use crate::{Error, QueueMessage, Result, body_reference::BodyReference};
use async_trait::async_trait;
use domain::Timestamp;
use serde::de::DeserializeOwned;

/// The most writes in one commit (DynamoDB: `TransactWriteItems`).
pub const MAX_WRITES: usize = 100;
/// The longest body of one item, in bytes (DynamoDB: 400 KiB per item). Writers keep to 64 KiB and put more into blobs.
pub const MAX_BODY: usize = 380 * 1024;

/// The place of an item: items with one `pk` are a partition, ordered by `sk` as bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The partition key; not empty.
    pub pk: String,
    /// The sort key; not empty.
    pub sk: String,
}

impl Key {
    /// From both parts.
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }
}

/// An item as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its key.
    pub key: Key,
    /// 1 when it was made, one more with every put.
    pub rev: u64,
    /// A JSON text of at most [`Table::max_body`] bytes. The table never looks inside.
    pub body: String,
    /// Its key in the index, if it has one.
    pub index: Option<Key>,
    /// From when on it is gone.
    pub expires_at: Option<Timestamp>,
}

impl Item {
    /// The content of its body.
    ///
    /// # Errors
    /// [`Error::Lost`] for a body that a store beside the table has lost, and [`Error::Damaged`] for one that is no such JSON; both with the
    /// place of the item.
    pub fn content<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.body).map_err(|error| {
            // Such a body is no JSON.
            self.lost().unwrap_or_else(|| Error::Damaged(format!("{}: {error}", self.place())))
        })
    }

    /// The error about its body, where that is lost.
    pub(crate) fn lost(&self) -> Option<Error> {
        let BodyReference { digest, lost, .. } = BodyReference::of(&self.body)?;
        lost.map(|damage| Error::Lost { place: format!("the content {digest} of {}", self.place()), damage })
    }

    fn place(&self) -> String {
        let Key { pk, sk } = &self.key;
        format!("the item {sk} of {pk}")
    }
}

/// The precondition of a write. An expired item counts as absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No item.
    Absent,
    /// An item with this revision.
    Rev(u64),
    /// Some item.
    Present,
    /// Anything.
    Any,
}

/// One write of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Makes or replaces an item. Its revision becomes 1, or one more than the one replaced.
    Put {
        /// The key.
        key: Key,
        /// The body.
        body: String,
        /// The key in the index; none takes it out of the index.
        index: Option<Key>,
        /// From when on it is gone.
        expires_at: Option<Timestamp>,
        /// The precondition.
        expect: Expect,
    },
    /// Removes an item; removing none is fine under [`Expect::Any`] and [`Expect::Absent`].
    Delete {
        /// The key.
        key: Key,
        /// The precondition.
        expect: Expect,
    },
    /// Changes nothing.
    Check {
        /// The key.
        key: Key,
        /// The precondition.
        expect: Expect,
    },
}

impl Write {
    /// A put outside the index that never expires.
    pub fn put(key: Key, body: impl Into<String>, expect: Expect) -> Self {
        Self::Put { key, body: body.into(), index: None, expires_at: None, expect }
    }
    /// A delete.
    pub fn delete(key: Key, expect: Expect) -> Self {
        Self::Delete { key, expect }
    }
    /// A check.
    pub fn check(key: Key, expect: Expect) -> Self {
        Self::Check { key, expect }
    }
    /// The same put, found in the index under `index`.
    #[must_use]
    pub fn indexed(mut self, under: Key) -> Self {
        if let Self::Put { index, .. } = &mut self {
            *index = Some(under);
        }
        self
    }
    /// The same put, gone from `at` on.
    #[must_use]
    pub fn expiring(mut self, at: Timestamp) -> Self {
        if let Self::Put { expires_at, .. } = &mut self {
            *expires_at = Some(at);
        }
        self
    }
    /// The key that it writes or checks.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key, .. } | Self::Check { key, .. } => key,
        }
    }
    /// The precondition.
    pub fn expect(&self) -> Expect {
        match self {
            Self::Put { expect, .. } | Self::Delete { expect, .. } | Self::Check { expect, .. } => *expect,
        }
    }
    /// Whether it makes an item: a commit with such a write takes effect once for as long as the item is there.
    pub fn makes_item(&self) -> bool {
        matches!(self, Self::Put { expect: Expect::Absent, .. })
    }
}

/// A range of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The partition.
    pub pk: String,
    /// The first sort key, inclusive; the beginning when none.
    pub from: Option<String>,
    /// The last sort key, exclusive; the end when none.
    pub to: Option<String>,
    /// From the highest sort key down.
    pub descending: bool,
    /// At most this many items (at least 1); a page may be shorter, as it also ends at 1 MiB.
    pub limit: usize,
    /// The cursor from the page before.
    pub cursor: Option<String>,
}

impl Query {
    /// The whole partition, ascending, in pages of `limit`.
    pub fn all(pk: impl Into<String>, limit: usize) -> Self {
        Self { pk: pk.into(), from: None, to: None, descending: false, limit, cursor: None }
    }
    /// The sort keys that begin with `prefix`.
    pub fn prefix(pk: impl Into<String>, prefix: &str, limit: usize) -> Self {
        // The sort keys are UTF-8, so nothing in them is above this character's successor.
        Self { from: Some(prefix.into()), to: Some(format!("{prefix}\u{10ffff}")), ..Self::all(pk, limit) }
    }
    /// The same range from the highest sort key down.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }
    /// The same range from the cursor of a page on.
    #[must_use]
    pub fn after(mut self, cursor: Option<String>) -> Self {
        self.cursor = cursor;
        self
    }
}

/// A range of the index: the same as [`Query`], over [`Item::index`] instead of [`Item::key`].
pub type IndexQuery = Query;

/// A page of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The items, in order.
    pub items: Vec<Item>,
    /// The cursor of the next page; none at the end. Opaque, good for the same range only.
    pub next: Option<String>,
}

/// A store of items.
///
/// Guarantees: a commit is all or nothing, and durable when it returns; `get` and `query` see every commit that returned
/// before they were called, and each item either before or after a commit, never between. Expired items are never returned.
///
/// Not promised: that `query_index` sees a commit at once (an index may lag); that pages of one query see one moment;
/// that a failed call had no effect (only [`crate::Error::Conflict`] and [`crate::Error::Invalid`] promise that).
#[async_trait]
pub trait Table: Send + Sync {
    /// The longest body of one item, in bytes; at least [`MAX_BODY`].
    fn max_body(&self) -> usize {
        MAX_BODY
    }
    /// Whether [`commit_sending`](Self::commit_sending) sends: the table shares its store with the queue.
    fn sends(&self) -> bool {
        false
    }
    /// One item.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the table does not answer; [`Error::Damaged`] when the stored item cannot be read, and [`Error::Lost`] when
    /// its body is kept beside the table and is not there.
    async fn get(&self, key: &Key) -> Result<Option<Item>>;
    /// One page of a range of a partition. An item whose body is lost keeps none of the others back: it comes with a body that is no JSON, of
    /// which [`Item::content`] tells what is lost.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a limit of 0, an empty partition, and a cursor that is broken or of another range; [`Error::Unavailable`] when the
    /// table does not answer; [`Error::Damaged`] when it cannot be read.
    async fn query(&self, query: &Query) -> Result<Page>;
    /// One page of a range of the index.
    ///
    /// # Errors
    /// As [`Table::query`].
    async fn query_index(&self, query: &IndexQuery) -> Result<Page>;
    /// All of the writes or none. At most [`MAX_WRITES`], no key twice.
    ///
    /// # Errors
    /// [`Error::Conflict`] when an expectation does not hold; [`Error::Invalid`] for writes over a limit ([`crate::validate::writes`]). Neither
    /// wrote anything. [`Error::Unavailable`] when the table does not answer or [has no room](Error::is_full); [`Error::Damaged`] when the
    /// stored data around a write cannot be read.
    async fn commit(&self, writes: Vec<Write>) -> Result<()>;
    /// The same for writes that cause messages. A table that [sends](Self::sends) does so in the commit, as
    /// [`QueueSender::send`](crate::QueueSender::send) would: the writes and the messages, or none of them. Any other table commits the writes
    /// alone, and the caller sends the messages.
    ///
    /// A commit that [makes an item](Write::makes_item) is refused when it comes again, and its messages with it. So a table that sends need not
    /// remember their ids or look for them: such an id has to be of this commit alone, and another message under it is a new one.
    ///
    /// The queue that the caller sends to and receives from has to be the one of that store.
    ///
    /// # Errors
    /// Those of [`Table::commit`]; [`Error::Invalid`] also for a message that [`QueueMessage::check`] refuses. After
    /// [`Error::Conflict`] and [`Error::Invalid`] nothing was written and nothing was sent.
    async fn commit_sending(&self, writes: Vec<Write>, messages: Vec<QueueMessage>) -> Result<()> {
        messages.iter().try_for_each(QueueMessage::check)?;
        self.commit(writes).await
    }
    /// Removes all items of a partition, in several commits. To be called where nothing writes to the partition any more; again is harmless, and
    /// goes on after an error.
    ///
    /// # Errors
    /// Those of [`Table::query`] and [`Table::commit`]. Some items are gone then.
    async fn clear(&self, partition: &str) -> Result<()> {
        loop {
            let items = self.query(&Query::all(partition, MAX_WRITES)).await?.items;
            if items.is_empty() {
                return Ok(());
            }
            self.commit(items.into_iter().map(|item| Write::delete(item.key, Expect::Any)).collect()).await?;
        }
    }
}

impl dyn Table + '_ {
    /// All pages of a range of a partition, each read when it is asked for.
    pub fn pages(&self, query: Query) -> Pages<'_> {
        Pages { table: self, by_index: false, next: Some(query) }
    }
    /// The same for a range of the index.
    pub fn index_pages(&self, query: IndexQuery) -> Pages<'_> {
        Pages { table: self, by_index: true, next: Some(query) }
    }
    /// All items of a range of a partition, in order. All of them are in memory at once: read a range without a bound by its `pages`.
    ///
    /// # Errors
    /// As [`Table::query`].
    pub async fn all(&self, query: Query) -> Result<Vec<Item>> {
        let (mut all, mut pages) = (Vec::new(), self.pages(query));
        while let Some(items) = pages.next().await? {
            all.extend(items);
        }
        Ok(all)
    }
}

/// The pages of a range, read one after the other.
pub struct Pages<'a> {
    table: &'a dyn Table,
    by_index: bool,
    /// The query of the next page; none after the last.
    next: Option<Query>,
}

impl Pages<'_> {
    /// The items of the next page, in order; a page may be empty. There is none after the last page, and none after an error.
    ///
    /// # Errors
    /// As [`Table::query`].
    pub async fn next(&mut self) -> Result<Option<Vec<Item>>> {
        let Some(query) = self.next.take() else { return Ok(None) };
        let page = if self.by_index { self.table.query_index(&query).await } else { self.table.query(&query).await }?;
        self.next = page.next.map(|cursor| query.after(Some(cursor)));
        Ok(Some(page.items))
    }
    /// Whether pages are left.
    pub fn has_more(&self) -> bool {
        self.next.is_some()
    }
}
