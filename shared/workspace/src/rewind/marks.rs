//! The tags and explicit links that a rewind takes back: a pure function from the records of their changes.
//!
//! Each tag and each link of a file is looked at by itself. It goes back to how it was before the first selected change of it, unless somebody else was the
//! last to change it: then it is a conflict and stays.

use super::{RewindConflict, RewindOp, RewindStep, plan::Record};
use crate::{FileKind, Mark};
use domain::{FileId, FilePath, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// One tag, or one link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    Tag(String),
    Link(FileId, String),
}

/// A tag or link of a file over the records.
struct Course {
    /// Whether it was there before the first selected change.
    before: Option<bool>,
    now: bool,
    /// The author of the last change, if that one stays.
    theirs: Option<(String, Timestamp)>,
}

/// A file that the records name.
struct Track {
    path: FilePath,
    kind: FileKind,
    pieces: BTreeMap<Piece, Course>,
}

/// The steps that take tags and links back, and the conflicts. `gone` are files that the rewind removes: their tags and links go with them.
pub(crate) fn plan(records: &[Record], gone: &BTreeSet<FileId>) -> (Vec<RewindStep>, Vec<RewindConflict>) {
    let mut tracks = BTreeMap::<FileId, Track>::new();
    for Record { change, selected } in records {
        let Some(mark) = &change.mark else { continue };
        let track = tracks.entry(change.file_id).or_insert_with(|| Track {
            path: change.path.clone(),
            kind: change.kind,
            pieces: BTreeMap::new(),
        });
        track.path = change.path.clone();
        let (pieces, added): (Vec<Piece>, bool) = match mark {
            Mark::Tag(tags) => (tags.iter().cloned().map(Piece::Tag).collect(), true),
            Mark::Untag(tags) => (tags.iter().cloned().map(Piece::Tag).collect(), false),
            Mark::Link(to, kind) => (vec![Piece::Link(*to, kind.clone())], true),
            Mark::Unlink(to, kind) => (vec![Piece::Link(*to, kind.clone())], false),
        };
        for piece in pieces {
            let course = track.pieces.entry(piece).or_insert(Course { before: None, now: !added, theirs: None });
            if *selected && course.before.is_none() {
                course.before = Some(!added);
            }
            course.now = added;
            course.theirs = (!selected).then(|| (change.author.clone(), change.at));
        }
    }
    let (mut steps, mut conflicts) = (Vec::new(), Vec::new());
    for (file_id, track) in tracks.into_iter().filter(|(file_id, _)| !gone.contains(file_id)) {
        let (mut added, mut removed, mut marks) = (Vec::new(), Vec::new(), Vec::new());
        let mut theirs = None;
        for (piece, course) in track.pieces {
            match (course.before, course.theirs) {
                (None, _) => {}
                (Some(before), _) if before == course.now => {}
                (Some(_), Some(other)) => theirs = Some(other),
                (Some(before), None) => match (piece, before) {
                    (Piece::Tag(tag), true) => added.push(tag),
                    (Piece::Tag(tag), false) => removed.push(tag),
                    (Piece::Link(to, kind), true) => marks.push(Mark::Link(to, kind)),
                    (Piece::Link(to, kind), false) => marks.push(Mark::Unlink(to, kind)),
                },
            }
        }
        // Those that go first, so that a file that is full has room.
        marks.extend((!added.is_empty()).then_some(Mark::Tag(added)));
        marks.extend((!removed.is_empty()).then_some(Mark::Untag(removed)));
        marks.sort_by_key(|mark| matches!(mark, Mark::Tag(_) | Mark::Link(..)));
        steps.extend(marks.into_iter().map(|mark| RewindStep {
            op: RewindOp::Mark,
            file_id,
            kind: track.kind,
            path: track.path.clone(),
            from: None,
            v: None,
            to_v: None,
            if_empty: false,
            mark: Some(mark),
        }));
        if let Some((by, at)) = theirs {
            let reason = format!("its tags or links were changed since by {by}");
            conflicts.push(RewindConflict { path: track.path, file_id, by: Some(by), at: Some(at), reason });
        }
    }
    (steps, conflicts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Op};
    use uuid::Uuid;

    fn record(mark: Mark, selected: bool) -> Record {
        let change = Change {
            op: Op::Marked,
            path: FilePath::parse("/a.md").unwrap_or_else(|_| FilePath::root()),
            from: None,
            file_id: FileId(Uuid::from_u128(1)),
            kind: FileKind::File,
            v: 1,
            sha256: None,
            size: 0,
            author: "user:ann".into(),
            at: Timestamp::from_millis(1),
            conversion: None,
            mark: Some(mark),
            rewind: None,
        };
        Record { change, selected }
    }

    fn tag(names: &[&str]) -> Mark {
        Mark::Tag(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn untag(names: &[&str]) -> Mark {
        Mark::Untag(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn check(records: &[Record], marks: &[Mark], conflicts: usize) {
        let (steps, found) = plan(records, &BTreeSet::new());
        let steps: Vec<Mark> = steps.into_iter().filter_map(|step| step.mark).collect();
        assert_eq!((steps.as_slice(), found.len()), (marks, conflicts), "{records:?}");
    }

    #[test]
    fn a_tag_goes_back_unless_somebody_else_was_the_last_to_change_it() {
        check(&[record(tag(&["a", "b"]), true)], &[untag(&["a", "b"])], 0);
        check(&[record(tag(&["a"]), true), record(untag(&["a"]), true)], &[], 0);
        check(&[record(tag(&["a"]), true), record(untag(&["a"]), false)], &[], 0);
        check(&[record(untag(&["a"]), false), record(tag(&["a"]), true)], &[untag(&["a"])], 0);
        let theirs = [record(tag(&["a"]), true), record(untag(&["a"]), false), record(tag(&["a"]), false)];
        check(&theirs, &[], 1);
        let two = [record(untag(&["a"]), true), record(tag(&["b"]), true), record(tag(&["c"]), false)];
        check(&two, &[untag(&["b"]), tag(&["a"])], 0);
    }

    #[test]
    fn links_go_back_and_those_of_files_that_go_are_left() {
        let to = FileId(Uuid::from_u128(2));
        let records = [record(Mark::Link(to, "answers".into()), true)];
        check(&records, &[Mark::Unlink(to, "answers".into())], 0);
        let gone = BTreeSet::from([FileId(Uuid::from_u128(1))]);
        assert_eq!(plan(&records, &gone), (vec![], vec![]));
    }
}
