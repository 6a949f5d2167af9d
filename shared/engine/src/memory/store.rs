//! The three stores in the table: one partition each, its items in the order of time.
//!
//! An item is at `at/<time>/<key>`; `key/<key>` says at which time. Both change in one commit.

use super::{MAX_CONTENT, Memory, Scope, port};
use domain::{Code, Error, NodeId, TaskId, Timestamp, task::ContextItem};
use flow::flow::{Bounds, Remember, StoreKind};
use ports::{Expect, Key, Query, Write};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// How often a write is decided anew after another one of the same key was faster.
const ATTEMPTS: u32 = 16;
/// How many items one query asks for.
const PAGE: usize = 100;

/// One remembered thing, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredItem {
    pub key: String,
    pub content: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub at: Timestamp,
    /// The execution of a run that remembered it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Writer>,
}

/// The writer of an item: of two executions of one run that use the same key the later one counts, by their places in the flow
/// and not by the clock; so the same input leaves the same memory, whichever subtask is faster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    /// The root task.
    pub root: TaskId,
    /// How many nodes of the flow lead to the node: more for each one after it.
    pub rank: u32,
    /// The node.
    pub node: NodeId,
    /// The places of the task, and of those above it, among their siblings.
    pub place: Vec<u32>,
}

impl Writer {
    /// Whether this execution comes after that one; none when they are of two runs, or the same.
    fn follows(&self, other: &Self) -> Option<bool> {
        let order = |writer: &Self| (writer.rank, writer.node.clone(), writer.place.clone());
        (self.root == other.root && self != other).then(|| order(self) > order(other))
    }
}

impl StoredItem {
    pub fn into_item(self, store: StoreKind) -> ContextItem {
        let tokens = tokens(&self.content);
        let Self { key, content, tags, at, .. } = self;
        ContextItem { store: store.name().into(), key, content, tags, tokens, at }
    }
}

/// An estimate: four characters per token, at least one.
pub(super) fn tokens(content: &Value) -> u64 {
    let characters = match content {
        Value::String(text) => text.chars().count(),
        other => other.to_string().chars().count(),
    };
    (characters as u64).div_ceil(4).max(1)
}

/// Whether it is time to look for items beyond a store's bounds: after every write of a small store, and after one of many of a
/// large one, so that a write reads some dozens of items on average. No node is given items beyond them.
fn is_due(place: &str, most: usize) -> bool {
    let often = (most / 32).max(1) as u64;
    let sum = place.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    sum.is_multiple_of(often)
}

/// The newest part of a store.
#[derive(Default)]
pub(super) struct Newest {
    /// Newest first; of one moment by key.
    pub items: Vec<StoredItem>,
    /// Whether there are older ones.
    pub more: bool,
}

pub(crate) fn partition(scope: &Scope, store: StoreKind) -> String {
    let workspace = scope.workspace;
    match store {
        StoreKind::Task => format!("{workspace}/memory/task/{}", scope.root),
        StoreKind::Project => format!("{workspace}/memory/project/{}", scope.flow),
        StoreKind::Global => format!("{workspace}/memory/global"),
    }
}

/// More than the clocks of two machines differ by.
const AHEAD: Duration = Duration::from_secs(10 * 60);

fn when(at: Timestamp) -> String {
    format!("{:020}", at.as_millis().max(0))
}

/// Whether the item at this place is of a time so far ahead that the clock was set back since: else nothing would be remembered under its key until then.
fn is_ahead(place: &str, now: Timestamp) -> bool {
    let ms = place.split('/').nth(1).and_then(|ms| ms.parse().ok());
    ms.is_some_and(|ms| Timestamp::from_millis(ms).since(now) >= AHEAD)
}

impl Memory {
    /// Remembers `content` under `key`, in the place of the item before. A newer item stays: a stage that runs again after a
    /// crash does not undo later ones. Items beyond the `bounds` of the store go: an item when its time is over, the oldest ones
    /// when there are too many. Of two executions of one run, the content of the later one by its place in the flow stays ([`Writer`]).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a key or tags that are too long, `PAYLOAD_TOO_LARGE`, and the store's own.
    #[expect(clippy::too_many_arguments, reason = "one item: its scope, its store, its key, its content and its time")]
    pub async fn remember(
        &self,
        by: Option<Writer>,
        scope: &Scope,
        store: StoreKind,
        key: &str,
        content: &Value,
        tags: &[String],
        at: Timestamp,
        bounds: Bounds,
    ) -> Result<(), Error> {
        let (longest_key, most_tags, longest_tag) = (Remember::LONGEST_KEY, Remember::MOST_TAGS, Remember::LONGEST_TAG);
        if key.is_empty() || key.len() > longest_key {
            return Err(Error::invalid("key", format!("a key of memory has 1 to {longest_key} bytes")));
        }
        if tags.len() > most_tags || tags.iter().any(|tag| tag.len() > longest_tag) {
            return Err(Error::invalid(
                "tags",
                format!("at most {most_tags} tags of at most {longest_tag} bytes each"),
            ));
        }
        let mut content = content.clone();
        self.secrets.redactor().value(&mut content);
        let kept = StoredItem { key: key.into(), content, tags: tags.to_vec(), at, by };
        let body = serde_json::to_string(&kept).map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        if body.len() > MAX_CONTENT {
            let message = format!("the content for {key:?} has {} bytes; {MAX_CONTENT} fit", body.len());
            return Err(Error::new(Code::PayloadTooLarge, message).hint("write it to a file and remember its path"));
        }
        let pk = partition(scope, store);
        let (pointer, place) = (Key::new(&pk, format!("key/{key}")), format!("at/{}/{key}", when(at)));
        let lasting = |write: Write| match bounds.retention {
            Some(retention) => write.expiring(at + retention),
            None => write,
        };
        for _ in 0..ATTEMPTS {
            let there = self.table.get(&pointer).await.map_err(port)?;
            let expect = there.as_ref().map_or(Expect::Absent, |item| Expect::Rev(item.rev));
            let old = there.and_then(|item| serde_json::from_str::<String>(&item.body).ok());
            let stays = match (&kept.by, &old) {
                (Some(by), Some(old)) => self.written_by(&pk, old).await?.and_then(|other| other.follows(by)),
                _ => None,
            };
            if stays.unwrap_or_else(|| old.as_ref().is_some_and(|old| *old > place && !is_ahead(old, at))) {
                return Ok(());
            }
            let mut writes = vec![lasting(Write::put(Key::new(&pk, &place), body.clone(), Expect::Any))];
            match old {
                Some(old) if old == place => writes.push(Write::check(pointer.clone(), expect)),
                old => {
                    let body = Value::String(place.clone()).to_string();
                    writes.push(lasting(Write::put(pointer.clone(), body, expect)));
                    writes.extend(old.map(|old| Write::delete(Key::new(&pk, old), Expect::Any)));
                }
            }
            match self.table.commit(writes).await {
                Ok(()) => {
                    if let Some(most) = bounds.max_items.filter(|most| is_due(&place, *most)) {
                        self.forget_beyond(&pk, most).await?;
                    }
                    return Ok(());
                }
                Err(ports::Error::Conflict { .. }) => {}
                Err(error) => return Err(port(error)),
            }
        }
        Err(Error::new(Code::UpstreamUnavailable, format!("too many tasks remember {key:?} at once")).hint("try again"))
    }

    /// The execution that remembered the item at this place; none for an item that is lost, which keeps no other from its key.
    async fn written_by(&self, pk: &str, place: &str) -> Result<Option<Writer>, Error> {
        let item = match self.table.get(&Key::new(pk, place)).await {
            Err(ports::Error::Lost { .. }) => None,
            item => item.map_err(port)?,
        };
        Ok(item.map(|item| parse::<StoredItem>(&item.body)).transpose()?.and_then(|kept| kept.by))
    }

    /// Deletes all but the newest `most` items of a store. An item that another task adds at the same time is looked at the next time.
    async fn forget_beyond(&self, pk: &str, most: usize) -> Result<(), Error> {
        let mut seen = 0;
        let mut pages = self.table.pages(Query::prefix(pk, "at/", PAGE).descending());
        while let Some(items) = pages.next().await.map_err(port)? {
            for item in items {
                seen += 1;
                if seen <= most {
                    continue;
                }
                let place = item.key.sk.clone();
                let mut writes = vec![Write::delete(item.key, Expect::Any)];
                // The place has the key, also where the item cannot be read: `at/<time>/<key>`.
                let Some(key) = place.splitn(3, '/').nth(2) else { continue };
                let pointer = Key::new(pk, format!("key/{key}"));
                let points = self.table.get(&pointer).await.map_err(port)?;
                let points =
                    points.filter(|points| serde_json::from_str(&points.body).is_ok_and(|at: String| at == place));
                writes.extend(points.map(|points| Write::delete(pointer, Expect::Rev(points.rev))));
                match self.table.commit(writes).await {
                    Ok(()) | Err(ports::Error::Conflict { .. }) => {}
                    Err(error) => return Err(port(error)),
                }
            }
        }
        Ok(())
    }

    /// The item under a key of a store.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when the table does not answer; `INTERNAL` when the item cannot be read.
    pub async fn recall(&self, scope: &Scope, store: StoreKind, key: &str) -> Result<Option<ContextItem>, Error> {
        let pk = partition(scope, store);
        let Some(pointer) = self.table.get(&Key::new(&pk, format!("key/{key}"))).await.map_err(port)? else {
            return Ok(None);
        };
        let place: String = parse(&pointer.body)?;
        let item = self.table.get(&Key::new(&pk, place)).await.map_err(port)?;
        Ok(item.map(|item| parse::<StoredItem>(&item.body)).transpose()?.map(|kept| kept.into_item(store)))
    }

    /// The newest items of a store, at most `limit` of them and `bytes` of their bodies. One that cannot be read is left out.
    pub(super) async fn newest(
        &self,
        scope: &Scope,
        store: StoreKind,
        limit: usize,
        bytes: usize,
    ) -> Result<Newest, Error> {
        let mut newest = Newest::default();
        let mut room = bytes;
        let query = Query::prefix(partition(scope, store), "at/", PAGE.min(limit.max(1))).descending();
        let mut pages = self.table.pages(query);
        while !newest.more
            && let Some(items) = pages.next().await.map_err(port)?
        {
            for (item, kept) in ports::readable(&items) {
                if newest.items.len() == limit || item.body.len() > room {
                    newest.more = true;
                    break;
                }
                room -= item.body.len();
                newest.items.push(kept);
            }
        }
        newest.items.sort_by(|one, other| other.at.cmp(&one.at).then_with(|| one.key.cmp(&other.key)));
        Ok(newest)
    }
}

pub(super) fn parse<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, Error> {
    serde_json::from_str(body).map_err(|error| port(ports::Error::Damaged(error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_memories_are_read_for_ever() {
        let kept = StoredItem {
            key: "style".into(),
            content: serde_json::json!({ "tone": "dry" }),
            tags: vec!["review".into()],
            at: Timestamp::from_millis(1_767_225_600_042),
            by: Some(Writer { root: TaskId(uuid::Uuid::from_u128(1)), rank: 2, node: "style".into(), place: vec![3] }),
        };
        testkit::golden::check(env!("CARGO_MANIFEST_DIR"), "memory", &kept);
    }
}
