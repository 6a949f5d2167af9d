//! The changes of a workspace's files as a list for audits: from the records that every commit writes, newest first, and with filters.

use crate::{Change, FileKind, Op, Result, Workspace, changes::LATE, commit::CHANGES_KEPT, error, keys::Keys};
use domain::{Error, FileId, FilePath, Timestamp};
use ports::Query;
use serde::Serialize;
use uuid::Uuid;

/// Records read at once.
const PAGE: usize = 500;
/// Records that one page of a list looks at; after them it ends at the next whole minute.
const LOOKED_AT: usize = 2_000;
const MINUTE_MS: i64 = 60_000;

/// The changes of a list; an empty filter means all.
#[derive(Clone, Debug, Default)]
pub struct ChangeFilter {
    /// Those at or below this path, and moves from there.
    pub path: Option<FilePath>,
    /// Those by this author, as it is shown: `user:<id>`, `agent:<persona>`, `task:<id>` or `system`.
    pub author: Option<String>,
    /// Those of this kind.
    pub op: Option<Op>,
    /// Those at this time or later.
    pub since: Option<Timestamp>,
    /// Those before this time.
    pub until: Option<Timestamp>,
}

impl ChangeFilter {
    fn takes(&self, change: &Change) -> bool {
        let is_at = |path: &FilePath| {
            change.path.is_within(path) || change.from.as_ref().is_some_and(|from| from.is_within(path))
        };
        self.path.as_ref().is_none_or(is_at)
            && self.author.as_ref().is_none_or(|author| *author == change.author)
            && self.op.is_none_or(|op| op == change.op)
            && self.since.is_none_or(|since| change.at >= since)
            && self.until.is_none_or(|until| change.at < until)
    }
}

/// A change in a list. The tags and links of a change, and the digest of its content, are at its file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedChange {
    /// The id of its record.
    pub id: Uuid,
    /// The kind of change.
    pub op: Op,
    /// Its path then, or its last one.
    pub path: FilePath,
    /// Its path before a move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    /// The file or folder.
    pub file_id: FileId,
    /// Its kind.
    pub kind: FileKind,
    /// Its version after the change; 0 for folders and for removed files.
    pub v: u64,
    /// The author of the change.
    pub author: String,
    /// The time of the change.
    pub at: Timestamp,
    /// The rewind that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewind: Option<Uuid>,
}

impl ListedChange {
    fn of(id: Uuid, change: Change) -> Self {
        let Change { op, path, from, file_id, kind, v, author, at, rewind, .. } = change;
        Self { id, op, path, from, file_id, kind, v, author, at, rewind }
    }
}

/// A page of a list of changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeList {
    /// The changes, newest first.
    pub changes: Vec<ListedChange>,
    /// The time since which all changes are kept. Versions of files are kept for longer.
    pub kept_since: Timestamp,
    /// The cursor of the next page; none at the end. A page may have fewer changes than were asked for, and a next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl Workspace {
    /// The changes of files, newest first, as this party sees them: those of paths that it may not list are not there. `limit` is cut to 1 to 1,000.
    /// A change whose commit took long may be there twice.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list; `UPSTREAM_UNAVAILABLE` when the table does not answer.
    pub async fn changes(&self, filter: &ChangeFilter, limit: usize, cursor: Option<String>) -> Result<ChangeList> {
        let before = match cursor.as_deref().map(str::parse::<Uuid>) {
            None => filter.until.map(|until| Keys::changes_from(until + 2 * LATE)),
            Some(Ok(id)) => Some(id.hyphenated().to_string()),
            Some(Err(_)) => {
                let error = Error::invalid("cursor", "this is no cursor of a list of changes");
                return Err(error.hint("take next_cursor of the page before, or leave it out"));
            }
        };
        let mut range = Query::all(self.0.keys.changes(), PAGE).descending();
        (range.from, range.to) = (filter.since.map(Keys::changes_from), before);
        let kept_since = self.0.clock.now() - CHANGES_KEPT;
        let mut list = ChangeList { changes: Vec::new(), kept_since, next_cursor: None };
        if range.to.is_some() && range.to <= range.from {
            return Ok(list);
        }
        let (mut looked_at, mut end, mut pages) = (0, None::<String>, self.0.table.pages(range));
        while let Some(items) = pages.next().await.map_err(error::port)? {
            for (item, change) in ports::readable::<Change>(&items) {
                // A whole minute, as the id of a record would tell of one that is hidden.
                if let Some(end) = end.take_if(|end| item.key.sk < *end) {
                    return Ok(ChangeList { next_cursor: Some(end), ..list });
                }
                let Ok(id) = item.key.sk.parse::<Uuid>() else { continue };
                looked_at += 1;
                if looked_at == LOOKED_AT {
                    end = Some(Keys::changes_from(minute_of(id)));
                }
                let seen = self.seen_change(change);
                let Some(change) = seen.filter(|change| filter.takes(change)) else { continue };
                if list.changes.len() == limit.clamp(1, 1_000) {
                    let last = list.changes.last().map(|last| last.id.hyphenated().to_string());
                    return Ok(ChangeList { next_cursor: last, ..list });
                }
                list.changes.push(ListedChange::of(id, change));
            }
        }
        Ok(list)
    }
}

/// The beginning of the minute in which an id was drawn.
fn minute_of(id: Uuid) -> Timestamp {
    let drawn = Timestamp::of_id(id).as_millis();
    Timestamp::from_millis(drawn - drawn.rem_euclid(MINUTE_MS))
}
