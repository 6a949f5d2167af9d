//! Indexes of due items, and the sweeps that only go through one of them.

use super::{Sweep, SweepStep};
use async_trait::async_trait;
use domain::{Error, Timestamp};
use ports::Clock;
use std::{sync::Arc, time::Duration};
use workspace::{TRASH_SHARDS, Workspaces, documents};

/// Workspaces of one step of [`DueIndex::Deletions`]: each may have many files.
const DELETIONS_AT_ONCE: usize = 5;
/// Workspaces of one step of [`DueIndex::Remains`]: each may have many chats and tasks.
const REMAINS_AT_ONCE: usize = 1;
/// Documents of one step.
const DOCUMENTS_AT_ONCE: usize = 50;
/// Files of one step of [`DueIndex::Trash`].
const TRASHED_AT_ONCE: usize = 25;

/// An index of due items of all workspaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueIndex {
    /// Deletions of workspaces that broke off, because the process died or a store did not answer. They are completed.
    Deletions,
    /// Documents that wait for their conversion for a long time, because the process that wrote them died before it sent the message. The message is
    /// sent again. A second message for a document that is only slow has no effect.
    Documents,
    /// Files that have been in the trash for longer than the retention. They are removed for good (spec 001 §3A (6)).
    Trash,
    /// Deleted workspaces in which nothing works any more. The logs of their chats and tasks, their memory and all that came late are removed. Within a
    /// workspace that takes longer, the next step goes on with the rows that are left.
    Remains,
}

/// Deals with the items of an index that have been due for some time.
pub struct DueItems {
    /// The index.
    pub index: DueIndex,
    /// The workspaces.
    pub workspaces: Workspaces,
    /// How long an item stays in the index before it is dealt with.
    pub patience: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Sweep for DueItems {
    fn name(&self) -> &'static str {
        match self.index {
            DueIndex::Deletions => "deletions",
            DueIndex::Documents => "documents",
            DueIndex::Trash => "trash",
            DueIndex::Remains => "remains",
        }
    }

    /// The cursor is the place in the index: an item that cannot be dealt with now is passed by.
    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let mut place = DuePlace::read(from, self.clock.now() - self.patience);
        let (workspaces, before, cursor) = (&self.workspaces, place.before, place.cursor.take());
        let (count, failed, next, shards) = match self.index {
            DueIndex::Deletions => {
                let (gone, failed, next) = workspaces.complete_deletions(before, DELETIONS_AT_ONCE, cursor).await?;
                (gone.len() as u64, failed, next, 1)
            }
            DueIndex::Documents => {
                let found = workspaces.convert_forgotten(before, place.shard, DOCUMENTS_AT_ONCE, cursor).await?;
                (found.0, 0, found.1, documents::SHARDS)
            }
            DueIndex::Trash => {
                let found = workspaces.purge_trashed_before(before, place.shard, TRASHED_AT_ONCE, cursor).await?;
                (found.0, 0, found.1, TRASH_SHARDS)
            }
            DueIndex::Remains => {
                let (gone, failed, next) = workspaces.remove_remains_before(before, REMAINS_AT_ONCE, cursor).await?;
                (gone.len() as u64, failed, next, 1)
            }
        };
        let next = place.next(next, shards);
        Ok(SweepStep { count, failed, more: next.is_some(), next })
    }
}

/// The place from which a step goes through an index of due items.
///
/// A cursor is good for one range alone, and the table keeps it between the steps, also for a later sweep. So the place has the end of its range, and
/// each step of a round asks for the items before the same time.
#[derive(Debug, PartialEq)]
pub(super) struct DuePlace {
    /// The shard of the index; 0 where it has none.
    pub shard: u8,
    /// The range has the items before this time.
    pub before: Timestamp,
    /// The cursor in this range; none at its beginning.
    pub cursor: Option<String>,
}

impl DuePlace {
    /// The place that the last step has left. Without a cursor, the items before `due` are due. A place of an earlier version has no time, so its shard
    /// begins anew.
    pub fn read(from: Option<&str>, due: Timestamp) -> Self {
        let from = from.unwrap_or_default();
        let (shard, rest) = from.split_once(' ').unwrap_or((from, ""));
        let (before, cursor) = rest.split_once(' ').unwrap_or_default();
        let kept: Option<Timestamp> = before.parse().ok().filter(|_| !cursor.is_empty());
        Self {
            shard: shard.parse().unwrap_or(0),
            before: kept.unwrap_or(due),
            cursor: kept.is_some().then(|| cursor.to_owned()),
        }
    }

    /// The place behind a step that ended at this cursor, as [`Self::read`] takes it; none after the last one of `shards`.
    pub fn next(&self, cursor: Option<String>, shards: u8) -> Option<String> {
        let following = self.shard.saturating_add(1);
        match cursor {
            Some(cursor) => Some(format!("{} {} {cursor}", self.shard, self.before)),
            None => (following < shards).then(|| following.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_the_end_of_its_range_and_one_of_an_earlier_version_begins_its_shard_anew() {
        let [due, later] = [1_000, 2_000].map(Timestamp::from_millis);
        let place = |shard, before, cursor: Option<&str>| DuePlace { shard, before, cursor: cursor.map(str::to_owned) };
        let first = DuePlace::read(None, due);
        assert_eq!(first, place(0, due, None));
        let next = first.next(Some("a b".to_owned()), 2);
        assert_eq!(DuePlace::read(next.as_deref(), later), place(0, due, Some("a b")));
        let next = first.next(None, 2);
        assert_eq!(DuePlace::read(next.as_deref(), later), place(1, later, None));
        assert_eq!(place(1, due, None).next(None, 2), None);
        for (earlier, shard) in [("3", 3), ("3 ", 3), ("3 00ff", 3), ("00ff00ff", 0), ("[\"a\", 1] b", 0)] {
            assert_eq!(DuePlace::read(Some(earlier), later), place(shard, later, None), "{earlier}");
        }
    }
}
