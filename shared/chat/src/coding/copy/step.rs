//! The comparison of one path: the version in common, the file of the copy, and that of the workspace.

use domain::Sha256;
use ports::Common;
use workspace::Expect;

/// The next step that brings both in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// They are in line.
    Nothing,
    /// Both have the same content: it is the version in common.
    Agree(Common),
    /// Neither has the file any more.
    Forget,
    /// The copy gets the file of the workspace.
    Take,
    /// The copy loses its file.
    Drop,
    /// The workspace gets the file of the copy.
    Write(Expect),
    /// The workspace loses its file.
    Remove(Expect),
    /// Both have changed: the file of the copy goes beside that of the workspace.
    Aside,
}

/// The step for the version in common, the content on disk, and the version of the workspace; none of each where there is no file.
pub(super) fn step(common: Option<Common>, on_disk: Option<Sha256>, now: Option<Common>) -> Step {
    let (was, theirs) = (common.map(|common| common.digest), now.map(|now| now.digest));
    match (on_disk, now) {
        (None, None) if common.is_none() => Step::Nothing,
        (None, None) => Step::Forget,
        (Some(digest), Some(now)) if digest == now.digest && common == Some(now) => Step::Nothing,
        (Some(digest), Some(now)) if digest == now.digest => Step::Agree(now),
        (_, None) if on_disk == was => Step::Drop,
        (_, Some(_)) if on_disk == was => Step::Take,
        // The agent alone has changed it.
        (Some(_), Some(now)) if theirs == was => Step::Write(Expect::Exactly(now.file, now.v)),
        (None, Some(now)) if theirs == was => Step::Remove(Expect::Exactly(now.file, now.v)),
        // An edit outlives a removal, on either side.
        (Some(_), None) => Step::Write(Expect::Absent),
        (None, Some(_)) => Step::Take,
        (Some(_), Some(_)) => Step::Aside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::FileId;
    use uuid::Uuid;

    fn version(content: u8, v: u64) -> Common {
        Common { file: FileId(Uuid::from_u128(1)), v, digest: Sha256::of(&[content]) }
    }

    /// All states of a path with three contents and two versions of each.
    fn states() -> impl Iterator<Item = (Option<Common>, Option<Sha256>, Option<Common>)> {
        let versions = || [None].into_iter().chain((0..3).flat_map(|c| (1..3).map(move |v| Some(version(c, v)))));
        let contents = || [None].into_iter().chain((0..3).map(|c| Some(Sha256::of(&[c]))));
        versions()
            .flat_map(move |common| contents().flat_map(move |disk| versions().map(move |now| (common, disk, now))))
    }

    #[test]
    fn section_14_no_content_of_either_side_is_lost_that_the_other_side_has_not_seen() {
        for (common, disk, now) in states() {
            let was = common.map(|common| common.digest);
            let (ours, theirs) = (disk.filter(|_| disk != was), now.map(|now| now.digest).filter(|d| Some(*d) != was));
            let step = step(common, disk, now);
            let state = format!("{common:?} {disk:?} {now:?}: {step:?}");
            match step {
                Step::Take | Step::Drop => assert_eq!(ours, None, "a change of the agent is lost: {state}"),
                Step::Write(Expect::Exactly(..)) | Step::Remove(_) => {
                    assert_eq!(theirs, None, "a change of others is lost: {state}");
                }
                Step::Write(Expect::Absent) => assert_eq!(now, None, "{state}"),
                Step::Write(other) => panic!("{other:?} looks at nothing: {state}"),
                Step::Aside => assert!(ours.is_some() && theirs.is_some() && ours != theirs, "{state}"),
                Step::Agree(_) | Step::Nothing => assert_eq!(disk, now.map(|now| now.digest), "{state}"),
                Step::Forget => assert!(disk.is_none() && now.is_none(), "{state}"),
            }
        }
    }

    #[test]
    fn section_14_after_its_step_a_path_is_in_line() {
        for (common, disk, now) in states() {
            let written = |v| disk.map(|digest| Common { digest, ..version(0, v) });
            let (common, disk, now) = match step(common, disk, now) {
                Step::Nothing => (common, disk, now),
                Step::Agree(agreed) => (Some(agreed), disk, now),
                Step::Forget => (None, disk, now),
                // The file beside it has its own path.
                Step::Take | Step::Drop | Step::Aside => (now, now.map(|now| now.digest), now),
                Step::Write(_) => (written(9), disk, written(9)),
                Step::Remove(_) => (None, disk, None),
            };
            assert_eq!(step(common, disk, now), Step::Nothing, "{common:?} {disk:?} {now:?}");
        }
    }
}
