//! The order of a plan's steps. Each step is simulated, so that the next one starts from the places that it leaves.
//!
//! Files and empty folders that did not exist go first, since others may go back to their paths. Then everything takes its place, folders before the
//! entries inside of them, and old versions become current. Folders that were in the trash, and those that are empty by then, go last.
//!
//! Folders that writes have made on their way have no record, so the plan does not know whether they exist. It follows the places where they may be
//! through its steps, since they travel with the folders that they are in. The index is asked about the place from before the first step.

use super::{
    place::EntryPlace,
    track::{Goal, RewindConflict, RewindLoss, Track, Tracks},
};
use crate::FileKind;
use domain::{FileId, FilePath, Sha256, Timestamp};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

/// The result of planning. The steps still have to be compared with the index.
#[derive(Debug, Default)]
pub(crate) struct PlanDraft {
    pub steps: Vec<Draft>,
    pub conflicts: Vec<RewindConflict>,
    pub unavailable: Vec<RewindLoss>,
    /// The time of the first selected change.
    pub first: Option<Timestamp>,
}

/// The effect of a step, as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindOp {
    /// It comes back from the trash.
    Create,
    /// The content of an old version becomes the newest version.
    Update,
    /// It goes to the trash.
    Delete,
    /// It gets another path.
    Move,
    /// It gets or loses tags, or a link.
    Mark,
}

/// One step of a rewind: one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindStep {
    /// Its effect.
    pub op: RewindOp,
    /// The file or folder.
    pub file_id: FileId,
    /// Its kind.
    pub kind: FileKind,
    /// Its path after the step; of a deleted one the path before it.
    pub path: FilePath,
    /// The path before a move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    /// The version that the step expects, where the records tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v: Option<u64>,
    /// The version whose content an update makes current.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_v: Option<u64>,
    /// Whether a folder is deleted only if it is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub if_empty: bool,
    /// The tags or the link, of a change of marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<crate::Mark>,
}

/// A step before the index was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Draft {
    Step(RewindStep),
    /// An update, with the content that is current, so that an old version with the same content is no step.
    Update(RewindStep, Option<Sha256>),
    /// A folder goes if a write has made it on its way since, and it is empty.
    Tidy {
        /// Its path at this step.
        path: FilePath,
        /// Its place before the first step.
        start: EntryPlace,
    },
}

impl RewindStep {
    /// The step that removes a folder which a write has made on its way.
    pub(super) fn tidy(file_id: FileId, path: FilePath) -> Self {
        let (op, kind) = (RewindOp::Delete, FileKind::Folder);
        Self { op, file_id, kind, path, from: None, v: None, to_v: None, if_empty: true, mark: None }
    }
}

/// Adds the steps, and the conflicts that their order shows. `left` are places that selected changes left or took.
pub(super) fn draft(tracks: &Tracks, left: &BTreeSet<EntryPlace>, drafted: &mut PlanDraft) {
    let (now, at, aside) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let tracked: BTreeSet<&EntryPlace> = tracks.values().map(|track| &track.now).collect();
    let above = left.iter().flat_map(EntryPlace::above).filter(|place| !tracked.contains(place));
    let on_the_way = above.map(|place| (place.clone(), place)).collect();
    let mut order = Order { tracks, now, at, on_the_way, aside, drafted };
    for (id, track) in tracks {
        order.put(*id, track.now.clone());
    }
    order.remove_files();
    order.remove_folders(false);
    order.place();
    order.remove_files();
    order.update();
    order.remove_folders(true);
    order.take_back();
    order.tidy(&FilePath::root());
}

/// An entry that goes back to a path: the depth of the path, the path, the entry.
type Pending = BTreeSet<(usize, FilePath, FileId)>;

struct Order<'a> {
    tracks: &'a Tracks,
    now: BTreeMap<FileId, EntryPlace>,
    /// By the path with a `/` at its end, so that a folder and all inside of it are one range.
    at: BTreeMap<String, FileId>,
    /// Places where folders may be that writes have made on their way, each with the place before the first step.
    on_the_way: BTreeMap<EntryPlace, EntryPlace>,
    /// Entries that are out of the way of others for a while, with the places that they left.
    aside: BTreeMap<FileId, EntryPlace>,
    drafted: &'a mut PlanDraft,
}

impl Order<'_> {
    /// The entries that a step may touch.
    fn active(&self) -> Vec<FileId> {
        let active = self.tracks.iter().filter(|(_, track)| track.selected && track.theirs.is_none());
        active
            .map(|(id, _)| *id)
            .filter(|id| !self.drafted.conflicts.iter().any(|other| other.file_id == *id))
            .collect()
    }

    fn put(&mut self, id: FileId, place: EntryPlace) {
        if let Some(path) = place.path() {
            self.at.insert(slashed(path), id);
        }
        if let Some(EntryPlace::Latest(old)) = self.now.insert(id, place.clone())
            && EntryPlace::Latest(old.clone()) != place
            && self.at.get(&slashed(&old)) == Some(&id)
        {
            self.at.remove(&slashed(&old));
        }
    }

    /// Moves an entry, with all inside of a folder.
    fn relocate(&mut self, id: FileId, to: &EntryPlace) {
        let Some(from) = self.now.get(&id).cloned() else { return };
        if self.tracks.get(&id).is_some_and(|track| track.kind == FileKind::Folder) {
            let inside: Vec<(FileId, EntryPlace)> =
                self.now.iter().filter_map(|(id, place)| Some((*id, place.moved(&from, to)?))).collect();
            for (id, place) in inside {
                self.put(id, place);
            }
            let on_the_way = std::mem::take(&mut self.on_the_way).into_iter();
            self.on_the_way =
                on_the_way.map(|(place, start)| (place.moved(&from, to).unwrap_or(place), start)).collect();
            for place in self.aside.values_mut() {
                if let Some(moved) = place.moved(&from, to) {
                    *place = moved;
                }
            }
        }
        self.put(id, to.clone());
    }

    fn is_empty(&self, folder: &FilePath) -> bool {
        let inside = slashed(folder);
        self.at
            .range(inside.clone()..)
            .find(|(path, _)| **path != inside)
            .is_none_or(|(path, _)| !path.starts_with(&inside))
    }

    fn push(&mut self, op: RewindOp, id: FileId, path: FilePath, from: Option<FilePath>) {
        let Some(track) = self.tracks.get(&id) else { return };
        let if_empty = op == RewindOp::Delete && track.kind == FileKind::Folder && track.goal == Goal::Absent;
        let step =
            RewindStep { op, file_id: id, kind: track.kind, path, from, v: track.v, to_v: None, if_empty, mark: None };
        self.drafted.steps.push(Draft::Step(step));
    }

    fn delete(&mut self, id: FileId, path: FilePath) {
        self.push(RewindOp::Delete, id, path, None);
        self.relocate(id, &EntryPlace::trashed(id));
    }

    fn conflict(&mut self, id: FileId, path: FilePath, reason: &str) {
        let conflict = RewindConflict { path, file_id: id, by: None, at: None, reason: reason.into() };
        self.drafted.conflicts.push(conflict);
    }

    fn remove_files(&mut self) {
        for id in self.active() {
            let Some(track) = self.tracks.get(&id) else { continue };
            if track.kind == FileKind::File
                && matches!(track.goal, Goal::Absent | Goal::Trash)
                && let Some(EntryPlace::Latest(path)) = self.now.get(&id).cloned()
            {
                self.delete(id, path);
            }
        }
    }

    /// Removes folders at or below a path that are empty, the deepest first, if a write has made them on its way.
    fn tidy(&mut self, below: &FilePath) {
        let paths = self.on_the_way.keys().filter_map(EntryPlace::path).filter(|path| path.is_within(below));
        let folders: BTreeSet<(Reverse<usize>, FilePath)> =
            paths.map(|path| (Reverse(depth(path)), path.clone())).collect();
        for (_, path) in folders {
            if self.is_empty(&path)
                && let Some(start) = self.on_the_way.remove(&EntryPlace::Latest(path.clone()))
            {
                self.drafted.steps.push(Draft::Tidy { path, start });
            }
        }
    }

    /// Puts everything that has a place to go back to at that place.
    fn place(&mut self) {
        let goal = |id: FileId| match &self.tracks.get(&id)?.goal {
            Goal::At(path) => Some((depth(path), path.clone(), id)),
            Goal::Stay | Goal::Absent | Goal::Trash => None,
        };
        let mut pending: Pending = self.active().into_iter().filter_map(goal).collect();
        let mut wanted: HashMap<FilePath, usize> = HashMap::new();
        for (_, path, _) in &pending {
            *wanted.entry(path.clone()).or_default() += 1;
        }
        while !pending.is_empty() {
            let next = self.next(&pending, &wanted);
            let (done, key) = match next {
                Next::Free(key) => (self.take_place(&key), key),
                Next::Taken(key, by) => {
                    if self.make_room(by, &key.1, &pending, &wanted) {
                        continue;
                    }
                    (Err("another file or folder is at its path"), key)
                }
                Next::Stuck(key) => {
                    if self.unbury(&key, &pending) {
                        continue;
                    }
                    (Err("a folder above it is gone"), key)
                }
            };
            if let Err(reason) = done {
                self.conflict(key.2, key.1.clone(), reason);
            }
            if let Some(count) = wanted.get_mut(&key.1) {
                *count -= 1;
                if *count == 0 {
                    wanted.remove(&key.1);
                }
            }
            pending.remove(&key);
        }
    }

    fn next(&self, pending: &Pending, wanted: &HashMap<FilePath, usize>) -> Next {
        let mut taken = None;
        for key in pending {
            let (_, path, id) = key;
            let waits_for_a_folder =
                std::iter::successors(path.parent(), FilePath::parent).any(|above| wanted.contains_key(&above));
            let waits_for_its_own = matches!(self.now.get(id), Some(EntryPlace::Trash(_, rest)) if !rest.is_empty());
            if waits_for_a_folder || waits_for_its_own {
                continue;
            }
            match self.occupant(*id, path, pending) {
                Some(by) => {
                    taken.get_or_insert_with(|| Next::Taken(key.clone(), by));
                }
                None => return Next::Free(key.clone()),
            }
        }
        let first = || pending.first().cloned().map(Next::Stuck);
        taken.or_else(first).unwrap_or_else(|| Next::Stuck((0, FilePath::root(), FileId(uuid::Uuid::nil()))))
    }

    /// The entry that keeps `id` from its path: the one that is there, or one that is inside of a folder which a write has made there on its way.
    fn occupant(&self, id: FileId, path: &FilePath, pending: &Pending) -> Option<FileId> {
        let inside = slashed(path);
        if let Some(by) = self.at.get(&inside) {
            return (*by != id).then_some(*by);
        }
        let there: Vec<FileId> =
            self.at.range(inside.clone()..).take_while(|(at, _)| at.starts_with(&inside)).map(|(_, by)| *by).collect();
        let goes = there.iter().find(|by| **by != id && !self.aside.contains_key(by) && self.goes(**by, pending));
        goes.or_else(|| there.iter().find(|by| **by == id)).or_else(|| there.first()).copied()
    }

    /// Whether an entry leaves its place anyway.
    fn goes(&self, id: FileId, pending: &Pending) -> bool {
        pending.iter().any(|(_, _, other)| *other == id) || self.tracks.get(&id).is_some_and(Track::goes)
    }

    /// Brings the folder back from the trash that an entry goes back out of. Afterwards the folder takes its own place, or goes to the trash again.
    fn unbury(&mut self, (_, path, id): &(usize, FilePath, FileId), pending: &Pending) -> bool {
        let Some(EntryPlace::Trash(folder, _)) = self.now.get(id).cloned() else { return false };
        self.goes(folder, pending) && self.put_aside(folder, path)
    }

    /// Puts an entry next to a path for a while, so that nobody sees it there who does not see that path; whether it is not there yet.
    fn put_aside(&mut self, id: FileId, path: &FilePath) -> bool {
        let free = path.parent().and_then(|above| above.join(&format!(".rewind-{id}")).ok());
        let (Some(free), Some(from)) = (free, self.now.get(&id).cloned()) else { return false };
        if self.aside.contains_key(&id) {
            return false;
        }
        let op = if from.path().is_some() { RewindOp::Move } else { RewindOp::Create };
        self.push(op, id, free.clone(), from.path().cloned());
        self.relocate(id, &EntryPlace::Latest(free));
        self.aside.insert(id, from);
        true
    }

    /// Puts entries back that are still aside, since a conflict keeps them from their own places.
    fn take_back(&mut self) {
        while let Some((id, from)) = self.aside.pop_first() {
            let Some(EntryPlace::Latest(path)) = self.now.get(&id).cloned() else { continue };
            match &from {
                EntryPlace::Latest(old) if self.occupant(id, old, &Pending::new()).is_none() => {
                    self.tidy(old);
                    self.push(RewindOp::Move, id, old.clone(), Some(path));
                }
                EntryPlace::Trash(removed, _) if *removed == id => {
                    self.push(RewindOp::Delete, id, path, None);
                    if let Some(Draft::Step(step)) = self.drafted.steps.last_mut() {
                        step.if_empty = false;
                    }
                }
                EntryPlace::Latest(_) | EntryPlace::Trash(..) | EntryPlace::Gone => {
                    // That place is taken, too: the conflict says where the entry is.
                    for conflict in self.drafted.conflicts.iter_mut().filter(|conflict| conflict.file_id == id) {
                        conflict.path = path.clone();
                    }
                    continue;
                }
            }
            self.relocate(id, &from);
        }
    }

    fn take_place(&mut self, (_, path, id): &(usize, FilePath, FileId)) -> Result<(), &'static str> {
        let goal = EntryPlace::Latest(path.clone());
        if self.now.get(id) != Some(&goal) {
            self.tidy(path);
        }
        match self.now.get(id).cloned() {
            Some(now) if now == goal => return Ok(()),
            Some(EntryPlace::Latest(from)) if path.is_within(&from) => return Err("it is inside of its own path"),
            Some(EntryPlace::Latest(from)) => self.push(RewindOp::Move, *id, path.clone(), Some(from)),
            Some(EntryPlace::Trash(..)) => self.push(RewindOp::Create, *id, path.clone(), None),
            Some(EntryPlace::Gone) | None => return Err("it was purged from the trash"),
        }
        self.aside.remove(id);
        self.relocate(*id, &goal);
        Ok(())
    }

    /// Takes an entry out of the way of one that goes back to `path`; whether that is possible.
    fn make_room(&mut self, by: FileId, path: &FilePath, pending: &Pending, wanted: &HashMap<FilePath, usize>) -> bool {
        let (Some(track), Some(EntryPlace::Latest(from))) = (self.tracks.get(&by), self.now.get(&by).cloned()) else {
            return false;
        };
        if !self.goes(by, pending) || self.keeps_theirs(by) || self.is_stuck(by, pending, wanted) {
            return false;
        }
        if track.goal == Goal::Absent && self.is_empty(&from) {
            self.tidy(&from);
            self.delete(by, from);
            return true;
        }
        self.put_aside(by, path)
    }

    /// Whether an entry waits for a place that it never gets: the one that is there stays, or waits so itself. It stays where it is, since another one
    /// would take the place that it left. While a folder above is still to go or to come, nothing is certain.
    fn is_stuck(&self, id: FileId, pending: &Pending, wanted: &HashMap<FilePath, usize>) -> bool {
        let goals: HashMap<FileId, &FilePath> = pending.iter().map(|(_, path, id)| (*id, path)).collect();
        let goes = |id: FileId| goals.contains_key(&id) || self.tracks.get(&id).is_some_and(Track::goes);
        let (mut id, mut seen) = (id, BTreeSet::new());
        while seen.insert(id) {
            let Some(path) = goals.get(&id) else { return false };
            let Some(by) = self.occupant(id, path, pending) else { return false };
            let mut above = std::iter::successors(path.parent(), FilePath::parent);
            let is_open = above.any(|above| {
                wanted.contains_key(&above) || self.at.get(&slashed(&above)).is_some_and(|folder| goes(*folder))
            });
            if is_open {
                return false;
            }
            if !goes(by) || self.keeps_theirs(by) {
                return true;
            }
            id = by;
        }
        false
    }

    /// Whether an entry that goes is a folder in which others changed something.
    fn keeps_theirs(&self, id: FileId) -> bool {
        let path = self.now.get(&id).and_then(EntryPlace::path);
        let found = self.tracks.get(&id).filter(|track| track.goes()).zip(path);
        found.is_some_and(|(track, path)| self.has_theirs(track, path))
    }

    /// Whether others changed something inside of a folder since the first selected change of it.
    fn has_theirs(&self, folder: &Track, path: &FilePath) -> bool {
        self.tracks.iter().any(|(inside, track)| {
            let place = self.now.get(inside).and_then(EntryPlace::path);
            track.last_theirs > folder.placed && place.is_some_and(|place| place != path && place.is_within(path))
        })
    }

    /// Removes folders that did not exist if they are empty, and folders that were in the trash if nobody else changed anything inside.
    fn remove_folders(&mut self, last: bool) {
        let mut folders: Vec<(Reverse<usize>, FileId, FilePath)> = Vec::new();
        for id in self.active() {
            let Some(track) = self.tracks.get(&id) else { continue };
            if track.kind == FileKind::Folder
                && matches!(track.goal, Goal::Absent | Goal::Trash)
                && let Some(EntryPlace::Latest(path)) = self.now.get(&id)
            {
                folders.push((Reverse(depth(path)), id, path.clone()));
            }
        }
        folders.sort();
        for (_, id, path) in folders {
            let Some(track) = self.tracks.get(&id) else { continue };
            self.tidy(&path);
            let was_in_trash = track.goal == Goal::Trash;
            if self.is_empty(&path) && (last || !was_in_trash) {
                self.delete(id, path);
            } else if was_in_trash && last {
                if self.has_theirs(track, &path) {
                    self.conflict(id, path, "others changed files inside of it since");
                } else {
                    self.delete(id, path);
                }
            }
        }
    }

    fn update(&mut self) {
        for id in self.active() {
            let Some(track) = self.tracks.get(&id) else { continue };
            let Some(to_v) = track.back_to else { continue };
            if matches!(track.goal, Goal::Absent | Goal::Trash) || track.v == Some(to_v) {
                continue;
            }
            let (file_id, kind, v) = (id, track.kind, track.v);
            match self.now.get(&id).cloned() {
                Some(EntryPlace::Latest(path)) => {
                    let (op, from, to_v) = (RewindOp::Update, None, Some(to_v));
                    let step = RewindStep { op, file_id, kind, path, from, v, to_v, if_empty: false, mark: None };
                    self.drafted.steps.push(Draft::Update(step, track.sha256));
                }
                // Nobody sees its content there, as before; its newer versions stay, like those of a file that was removed itself.
                Some(EntryPlace::Trash(folder, _))
                    if track.is_again_in_trash && self.tracks.get(&folder).is_some_and(Track::goes) => {}
                _ => self.conflict(id, track.path.clone(), "a folder above it was removed since"),
            }
        }
    }
}

/// The entry that takes its place next.
enum Next {
    Free((usize, FilePath, FileId)),
    /// Its place is taken by this other entry.
    Taken((usize, FilePath, FileId), FileId),
    /// Nothing can move. The entry does not wait for a folder above its path, so it is in the trash inside of a folder.
    Stuck((usize, FilePath, FileId)),
}

fn depth(path: &FilePath) -> usize {
    path.names().count()
}

fn slashed(path: &FilePath) -> String {
    format!("{path}/")
}
