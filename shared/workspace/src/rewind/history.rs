//! Reads the records that a rewind takes back, and completes its plan by the index.

use super::{
    RewindConflict, RewindLoss, RewindOp, RewindStep, Selection, Target, marks,
    place::EntryPlace,
    plan::{Record, plan},
    steps::{Draft, PlanDraft},
};
use crate::{
    Change, FileKind, LATE, Op, Result, Workspace,
    commit::{CHANGES_KEPT, Cause},
    error,
    keys::Keys,
    model::Entry,
    taxonomy,
};
use domain::{Code, Error, FileId, FilePath, Sha256, Timestamp};
use futures::{StreamExt, TryStreamExt, stream};
use ports::Query;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use uuid::Uuid;

/// The most steps of one rewind.
const MAX_STEPS: usize = 10_000;
/// The most records that one plan reads.
const MAX_RECORDS: usize = 200_000;
/// Records read at once.
const PAGE: usize = 500;
/// Versions looked up at once.
const AT_ONCE: usize = 16;

/// A plan that can be carried out; kept in the archive while it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The newest record that it has seen.
    pub as_of: Uuid,
    pub steps: Vec<RewindStep>,
    pub conflicts: Vec<RewindConflict>,
    pub unavailable: Vec<RewindLoss>,
}

/// The selected records.
enum Chosen<'a> {
    /// Changes at or below a path after a time.
    Below(&'a FilePath, Timestamp),
    /// Those with these ids.
    Ids(HashSet<Uuid>),
}

impl Workspace {
    /// The plan of a rewind. Changes whose records are newer than `as_of` count as made by others.
    pub(super) async fn plan_rewind(&self, target: &Target, as_of: Option<Uuid>) -> Result<Plan> {
        let now = self.0.clock.now();
        let oldest = now - CHANGES_KEPT;
        let lost = |path: FilePath| RewindLoss {
            path,
            file_id: None,
            reason: format!("changes before {oldest} are not kept: only versions of files are"),
        };
        let mut drafted = PlanDraft::default();
        let mut seen = as_of.unwrap_or_else(|| now.first_id());
        match &target.selection {
            Selection::Version { file_id, v } => drafted.steps.extend(self.to_version(*file_id, *v).await?),
            Selection::Below { path, since } if *since < oldest => drafted.unavailable.push(lost(path.clone())),
            Selection::Below { path, since } => {
                let records = self.records(*since, &Chosen::Below(path, *since), &mut seen, as_of).await?;
                drafted = planned(records);
            }
            Selection::By { actors, calls, since } => {
                let mut ids = HashSet::new();
                for actor in actors {
                    self.caused_by(*actor, |id, cause| {
                        let is_chosen =
                            calls.as_ref().is_none_or(|calls| cause.call_id.is_some_and(|call| calls.contains(&call)));
                        if is_chosen {
                            ids.insert(id);
                        }
                    })
                    .await?;
                }
                if let Some(first) = ids.iter().min() {
                    let from = Timestamp::of_id(*first) - 2 * LATE;
                    let records = self.records(from, &Chosen::Ids(ids), &mut seen, as_of).await?;
                    drafted = planned(records);
                }
                if since.is_some_and(|since| since < oldest) {
                    drafted.unavailable.push(lost(FilePath::root()));
                }
            }
        }
        let (steps, left) = (drafted.steps.len(), drafted.conflicts.len() + drafted.unavailable.len());
        for (what, found) in [("steps", steps), ("conflicts", left)] {
            if found > MAX_STEPS {
                return Err(too_much(what, found, MAX_STEPS));
            }
        }
        let PlanDraft { steps, conflicts, unavailable, first } = drafted;
        let mut plan = Plan { as_of: seen, steps: Vec::with_capacity(steps.len()), conflicts, unavailable };
        let checked = stream::iter(steps).map(|draft| self.check_draft(draft, first)).buffered(AT_ONCE);
        let checked: Vec<_> = checked.try_collect().await?;
        for checked in checked {
            match checked {
                Checked::Needed(step) => plan.steps.push(step),
                Checked::Lost(loss) => plan.unavailable.push(loss),
                Checked::Needless => {}
            }
        }
        Ok(plan)
    }

    /// The step that makes an old version of a file current; none when it is.
    async fn to_version(&self, file_id: FileId, v: u64) -> Result<Option<Draft>> {
        let info = self.by_id(file_id).await?;
        self.version_info(file_id, v).await?;
        if info.v == v {
            return Ok(None);
        }
        let (op, kind, path, from) = (RewindOp::Update, info.kind, info.path, None);
        let step =
            RewindStep { op, file_id, kind, path, from, v: Some(info.v), to_v: Some(v), if_empty: false, mark: None };
        Ok(Some(Draft::Update(step, info.sha256)))
    }

    async fn records(
        &self,
        from: Timestamp,
        chosen: &Chosen<'_>,
        seen: &mut Uuid,
        as_of: Option<Uuid>,
    ) -> Result<Vec<Record>> {
        let range = Query { from: Some(Keys::changes_from(from)), ..Query::all(self.0.keys.changes(), PAGE) };
        let (mut records, mut pages) = (Vec::new(), self.0.table.pages(range));
        while let Some(items) = pages.next().await.map_err(error::port)? {
            for item in &items {
                let Ok(id) = item.key.sk.parse::<Uuid>() else { continue };
                let change: Change = error::parse(&item.body)?;
                let selected = match chosen {
                    Chosen::Below(_, since) if change.at <= *since => continue,
                    Chosen::Below(path, _) => {
                        change.path.is_within(path) || change.from.as_ref().is_some_and(|from| from.is_within(path))
                    }
                    Chosen::Ids(ids) => ids.contains(&id),
                };
                *seen = id.max(*seen);
                // A conversion changes no content, and follows the content by itself.
                let Some(change) = self.seen_change(change).filter(|change| change.op != Op::Converted) else {
                    continue;
                };
                records.push(Record { change, selected: selected && as_of.is_none_or(|as_of| id <= as_of) });
            }
            if records.len() > MAX_RECORDS {
                return Err(too_much("changes", records.len(), MAX_RECORDS));
            }
        }
        Ok(records)
    }

    /// A record as it looks from here: none when it happened out of sight. An entry that came from out of sight was made, and one that went there was
    /// removed.
    pub(crate) fn seen_change(&self, change: Change) -> Option<Change> {
        let from = change.from.clone().filter(|from| self.shows(from));
        match (self.shows(&change.path), from) {
            (true, None) if change.op == Op::Moved => Some(Change { op: Op::Made, from: None, ..change }),
            (true, from) => Some(Change { from, ..change }),
            (false, Some(path)) => Some(Change { op: Op::Removed, path, from: None, v: 0, ..change }),
            (false, None) => None,
        }
    }

    /// Goes through the records of the changes that a chat, a task or a rewind made.
    async fn caused_by(&self, actor: Uuid, mut see: impl FnMut(Uuid, Cause)) -> Result<()> {
        let prefix = Keys::caused_by(actor);
        let mut pages = self.0.table.pages(Query::prefix(self.0.keys.causes(), &prefix, PAGE));
        while let Some(items) = pages.next().await.map_err(error::port)? {
            for item in &items {
                let Some(Ok(id)) = item.key.sk.strip_prefix(&prefix).map(str::parse) else { continue };
                see(id, error::parse(&item.body)?);
            }
        }
        Ok(())
    }

    async fn check_draft(&self, draft: Draft, first: Option<Timestamp>) -> Result<Checked> {
        Ok(match draft {
            Draft::Step(step) => Checked::Needed(step),
            Draft::Update(step, current) => self.check_update(step, current).await?,
            Draft::Tidy { path, start } => {
                self.check_tidy(path, &start, first).await?.map_or(Checked::Needless, Checked::Needed)
            }
        })
    }

    async fn check_update(&self, step: RewindStep, current: Option<Sha256>) -> Result<Checked> {
        match self.version_info(step.file_id, step.to_v.unwrap_or_default()).await {
            Ok(version) if Some(version.sha256) == current => Ok(Checked::Needless),
            Ok(_) => Ok(Checked::Needed(step)),
            Err(error) if error.code == Code::NotFound => {
                let reason = format!("its version {} is not kept", step.to_v.unwrap_or_default());
                Ok(Checked::Lost(RewindLoss { path: step.path, file_id: Some(step.file_id), reason }))
            }
            Err(error) => Err(error),
        }
    }

    /// The step that removes a folder which a write has made on its way since; none for any other folder.
    async fn check_tidy(
        &self,
        path: FilePath,
        start: &EntryPlace,
        first: Option<Timestamp>,
    ) -> Result<Option<RewindStep>> {
        let is_shown = self.shows(&path) && start.path().is_none_or(|start| self.shows(start));
        let found = if is_shown { self.entry_at(start).await? } else { None };
        let made = found.filter(|entry| {
            let is_new = first.is_some_and(|first| entry.created_at >= first);
            let may = taxonomy::may_take_away(&path, entry.kind, &domain::Principal::System.into()).is_ok();
            entry.kind == FileKind::Folder && is_new && may
        });
        Ok(made.map(|entry| RewindStep::tidy(entry.file_id, path)))
    }

    /// The entry at a place: a folder that was removed keeps its entries.
    async fn entry_at(&self, place: &EntryPlace) -> Result<Option<Entry>> {
        let (mut folder, names) = match place {
            EntryPlace::Latest(path) => (self.0.keys.root(), path.as_str()),
            EntryPlace::Trash(removed, rest) => (*removed, rest.as_str()),
            EntryPlace::Gone => return Ok(None),
        };
        let mut found = None;
        for name in names.split('/').filter(|name| !name.is_empty()) {
            let key = self.0.keys.entry(folder, name);
            let Some(item) = self.0.table.get(&key).await.map_err(error::port)? else { return Ok(None) };
            let entry: Entry = error::parse(&item.body)?;
            folder = entry.file_id;
            found = Some(entry);
        }
        Ok(found)
    }
}

/// The plan of records: that of files, and after it that of their tags and links.
fn planned(records: Vec<Record>) -> PlanDraft {
    let (marked, records): (Vec<Record>, Vec<Record>) =
        records.into_iter().partition(|record| record.change.op == Op::Marked);
    let mut drafted = plan(&records);
    let gone = drafted.steps.iter().filter_map(|draft| match draft {
        Draft::Step(step) if step.op == RewindOp::Delete => Some(step.file_id),
        Draft::Step(_) | Draft::Update(..) | Draft::Tidy { .. } => None,
    });
    let (steps, conflicts) = marks::plan(&marked, &gone.collect());
    drafted.steps.extend(steps.into_iter().map(Draft::Step));
    drafted.conflicts.extend(conflicts);
    drafted
}

/// A step after the index was asked.
enum Checked {
    Needed(RewindStep),
    Needless,
    Lost(RewindLoss),
}

fn too_much(what: &str, found: usize, most: usize) -> Error {
    Error::new(Code::Unprocessable, format!("the rewind has {found} {what}; the limit is {most}"))
        .hint("rewind a folder, a later point, a chat or a turn, one after the other")
        .detail("field", "scope")
        .detail("limit", most)
}
