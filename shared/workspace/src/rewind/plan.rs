//! The plan of a rewind: a pure function from the records of changes to the steps that take some of them back.
//!
//! A record that is *selected* is to be taken back; the others stay. The plan never looks at files: it replays the records to find the place and the
//! version of each file now, and derives from the first selected record of a file the place and the version that it goes back to. An entry that has
//! a record which is not selected after its first selected one is a conflict, and no step touches it; unless it is again as the last selected one left
//! it: the changes of others since then were taken back.

use super::{
    place::EntryPlace,
    steps::{self, PlanDraft},
    track::{Goal, RewindConflict, RewindLoss, Track, Tracks},
};
use crate::{Change, FileKind, Op};
use domain::{FileId, Timestamp};
use std::collections::{BTreeSet, HashSet};

/// A record of a change.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub change: Change,
    /// Whether the rewind takes it back.
    pub selected: bool,
}

/// A move of a folder, of which no entry inside has a record.
struct FolderMove {
    position: usize,
    from: EntryPlace,
    to: EntryPlace,
    selected: bool,
}

/// The result of a replay of the records.
struct Replayed {
    tracks: Tracks,
    moves: Vec<FolderMove>,
    /// Places that selected changes left or took, as they are after all later moves of folders. Their writes may have made the folders above.
    left: BTreeSet<EntryPlace>,
}

/// The plan that takes back the selected records, which are in the order of their commits.
pub(crate) fn plan(records: &[Record]) -> PlanDraft {
    let mut drafted = PlanDraft {
        first: records.iter().filter(|record| record.selected).map(|record| record.change.at).min(),
        ..PlanDraft::default()
    };
    if drafted.first.is_none() {
        return drafted;
    }
    let Replayed { mut tracks, moves, left } = replay(records);
    made_on_the_way(records, &mut tracks);
    for (id, track) in &mut tracks {
        if track.kind == FileKind::Projection && track.selected {
            if matches!(track.goal, Goal::At(_)) && track.now.path().is_none() {
                drafted.unavailable.push(loss(*id, track, "the file of a chat goes with its chat"));
            }
            track.goal = Goal::Stay;
            track.selected = false;
        }
        if let (Some((position, path)), None) = (&track.written, track.now.path()) {
            let since = moves.partition_point(|other| Some(other.position) < track.last_theirs);
            let moves = moves.get(since..).unwrap_or_default();
            let before = goal_after(EntryPlace::Latest(path.clone()), *position, moves);
            track.is_again_in_trash = matches!(before, Some(EntryPlace::Trash(..)));
        }
        let (Goal::At(path), Some(position)) = (&track.goal, track.placed) else { continue };
        track.goal = match goal_after(EntryPlace::Latest(path.clone()), position, &moves) {
            Some(EntryPlace::Latest(path)) => Goal::At(path),
            Some(EntryPlace::Trash(..) | EntryPlace::Gone) => Goal::Trash,
            None => {
                track.theirs.get_or_insert_with(|| ("others".into(), Timestamp::default()));
                Goal::Stay
            }
        };
    }
    for (id, track) in &mut tracks {
        if !track.selected {
            continue;
        }
        if let Some((by, at)) = track.theirs.clone() {
            drafted.conflicts.push(RewindConflict {
                path: track.now.path().unwrap_or(&track.path).clone(),
                file_id: *id,
                at: (at != Timestamp::default()).then_some(at),
                reason: format!("changed since by {by}"),
                by: Some(by),
            });
        } else if track.now == EntryPlace::Gone && track.goal != Goal::Absent {
            drafted.unavailable.push(loss(*id, track, "purged from the trash"));
            track.selected = false;
        }
    }
    steps::draft(&tracks, &left, &mut drafted);
    drafted
}

fn loss(id: FileId, track: &Track, reason: &str) -> RewindLoss {
    RewindLoss { path: track.path.clone(), file_id: Some(id), reason: reason.into() }
}

/// Follows every named entry from its first record to its place and version now.
fn replay(records: &[Record]) -> Replayed {
    let (mut tracks, mut moves, mut left) = (Tracks::new(), Vec::new(), BTreeSet::<EntryPlace>::new());
    let mut seen = HashSet::new();
    for (position, Record { change, selected }) in records.iter().enumerate() {
        // A commit that took long wrote its record twice; a version that was current already has a record of its own.
        let at = if change.op == Op::Written { Timestamp::default() } else { change.at };
        if !seen.insert((change.op as u8, change.file_id, change.v, at)) {
            continue;
        }
        let (before, after) = places(change);
        let track = tracks.entry(change.file_id).or_insert_with(|| Track {
            kind: change.kind,
            now: before.clone().unwrap_or_else(|| after.clone()),
            goal: Goal::Stay,
            path: change.path.clone(),
            v: None,
            sha256: None,
            back_to: None,
            written: None,
            is_again_in_trash: false,
            selected: false,
            theirs: None,
            mine: None,
            is_mixed: false,
            last_theirs: None,
            placed: None,
        });
        if *selected {
            track.select(position, change, before.as_ref());
        } else {
            track.last_theirs = Some(position);
            track.is_mixed |= change.op == Op::Marked;
            if track.selected && track.theirs.is_none() {
                track.theirs = Some((change.author.clone(), change.at));
            }
        }
        track.path = change.path.clone();
        if change.v > 0 {
            track.v = Some(change.v);
            track.sha256 = change.sha256;
        }
        let is_path = |place: &&EntryPlace| *selected && place.path().is_some();
        let places: Vec<EntryPlace> = before.iter().chain([&after]).filter(is_path).cloned().collect();
        let Some(before) = before.filter(|before| *before != after) else {
            track.now = after;
            track.note(*selected);
            left.extend(places);
            continue;
        };
        if change.kind == FileKind::Folder {
            for (id, track) in &mut tracks {
                if let Some(moved) = track.now.moved(&before, &after) {
                    track.now = moved;
                }
                // A move of the folder itself by others is a change of theirs.
                if *id != change.file_id
                    && let Some((mine, _)) = &mut track.mine
                    && let Some(moved) = mine.moved(&before, &after)
                {
                    *mine = moved;
                }
            }
            left = left.into_iter().map(|place| place.moved(&before, &after).unwrap_or(place)).collect();
            moves.push(FolderMove { position, from: before, to: after.clone(), selected: *selected });
        }
        if let Some(track) = tracks.get_mut(&change.file_id) {
            track.now = after;
            track.note(*selected);
        }
        left.extend(places);
    }
    for track in tracks.values_mut() {
        let is_as_mine =
            track.mine.as_ref().is_some_and(|(place, sha256)| (place, sha256) == (&track.now, &track.sha256));
        if is_as_mine && !track.is_mixed {
            (track.theirs, track.last_theirs) = (None, None);
        }
    }
    Replayed { tracks, moves, left }
}

/// The places of an entry before and after a change; none before for one that is made.
fn places(change: &Change) -> (Option<EntryPlace>, EntryPlace) {
    let (path, trashed) = (EntryPlace::Latest(change.path.clone()), EntryPlace::trashed(change.file_id));
    match change.op {
        Op::Made => (None, path),
        Op::Written => ((change.v > 1).then(|| path.clone()), path),
        Op::Moved => (Some(change.from.clone().map_or_else(|| path.clone(), EntryPlace::Latest)), path),
        Op::Converted | Op::Marked => (Some(path.clone()), path),
        Op::Removed => (Some(path), trashed),
        Op::Restored => (Some(trashed), path),
        Op::Purged => (Some(trashed), EntryPlace::Gone),
    }
}

impl Track {
    /// Whether a rewind removes it.
    pub fn goes(&self) -> bool {
        self.selected && self.theirs.is_none() && matches!(self.goal, Goal::Absent | Goal::Trash)
    }

    /// Notes how a record left it.
    fn note(&mut self, selected: bool) {
        if selected {
            self.mine = Some((self.now.clone(), self.sha256));
        }
    }

    /// Notes a selected record.
    fn select(&mut self, position: usize, change: &Change, before: Option<&EntryPlace>) {
        self.is_mixed |= self.theirs.is_some();
        let is_first = !self.selected;
        self.selected = true;
        if before.is_none() {
            if is_first {
                (self.goal, self.placed) = (Goal::Absent, Some(position));
            }
            return;
        }
        if change.op == Op::Written {
            if self.goal != Goal::Absent && self.back_to.is_none() {
                self.back_to = Some(change.v - 1);
                self.written = Some((position, change.path.clone()));
            }
            return;
        }
        if self.goal != Goal::Stay {
            return;
        }
        self.placed = Some(position);
        self.goal = match (change.op, before) {
            (Op::Restored, _) => Goal::Trash,
            (Op::Purged, _) | (_, None | Some(EntryPlace::Trash(..) | EntryPlace::Gone)) => Goal::Stay,
            (_, Some(EntryPlace::Latest(path))) => Goal::At(path.clone()),
        };
    }
}

/// Finds folders that a selected change made on its way. They have no record of their own, but their ids tell when they were made.
fn made_on_the_way(records: &[Record], tracks: &mut Tracks) {
    let mut times: Vec<(Timestamp, bool)> = records.iter().map(|record| (record.change.at, record.selected)).collect();
    times.sort_unstable();
    for (id, track) in tracks {
        if track.kind != FileKind::Folder || !matches!(track.goal, Goal::At(_)) {
            continue;
        }
        let Some(made) = Timestamp::of_any_id(id.0) else { continue };
        let after = times.partition_point(|(at, _)| *at <= made);
        if after.checked_sub(1).and_then(|last| times.get(last)).is_some_and(|(_, selected)| *selected) {
            track.goal = Goal::Absent;
        }
    }
}

/// The place before the record at `position`, as it is when the selected moves of folders are taken back and the others stay; none when somebody
/// else removed a folder above it.
fn goal_after(mut place: EntryPlace, position: usize, moves: &[FolderMove]) -> Option<EntryPlace> {
    let (before, after): (Vec<_>, Vec<_>) = moves.iter().partition(|other| other.position < position);
    for other in before.into_iter().rev().filter(|other| other.selected) {
        place = place.moved(&other.to, &other.from).unwrap_or(place);
    }
    for other in after.into_iter().filter(|other| other.position > position && !other.selected) {
        if let Some(moved) = place.moved(&other.from, &other.to) {
            if matches!(moved, EntryPlace::Trash(..) | EntryPlace::Gone) {
                return None;
            }
            place = moved;
        }
    }
    Some(place)
}

#[cfg(test)]
mod tests;
