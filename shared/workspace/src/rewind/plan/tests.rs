#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use super::*;
use crate::rewind::{RewindOp, RewindStep, steps::Draft};
use domain::{FilePath, Sha256};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// A workspace in memory that keeps the records which the real one would.
#[derive(Clone, Default)]
struct Model {
    ms: i64,
    ids: u128,
    live: BTreeMap<FilePath, (FileId, FileKind)>,
    /// By the removed entry: its path, and everything that went with it, by the rest of the path.
    trash: BTreeMap<FileId, (FilePath, Inside)>,
    contents: BTreeMap<FileId, Vec<u8>>,
    records: Vec<(Change, Author)>,
}

/// Entries by their paths below a removed one.
type Inside = Vec<(String, (FileId, FileKind))>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Author {
    Me,
    Other,
    Rewind(usize),
}

#[derive(Clone, Debug)]
enum Act {
    Write(FilePath, u8),
    Mkdir(FilePath),
    Mv(FilePath, FilePath),
    Rm(FilePath),
    Restore(usize),
}

impl Model {
    fn id(&mut self) -> FileId {
        (self.ms, self.ids) = (self.ms + 1, self.ids + 1);
        let timed = (u128::try_from(self.ms).unwrap() << 80) | (0x7 << 76) | (0b10 << 62);
        FileId(Uuid::from_u128(timed | self.ids))
    }

    fn free(&self, path: &FilePath) -> bool {
        let mut above = std::iter::successors(path.parent(), FilePath::parent).filter(|above| !above.is_root());
        let is_free = !self.live.contains_key(path);
        is_free && above.all(|above| self.live.get(&above).is_none_or(|(_, kind)| *kind == FileKind::Folder))
    }

    fn folders(&mut self, path: &FilePath) {
        let above: Vec<FilePath> = std::iter::successors(path.parent(), FilePath::parent).collect();
        for folder in above.into_iter().rev().filter(|folder| !folder.is_root()) {
            if !self.live.contains_key(&folder) {
                let id = self.id();
                self.live.insert(folder, (id, FileKind::Folder));
            }
        }
    }

    fn record(&mut self, op: Op, id: FileId, kind: FileKind, path: &FilePath, from: Option<&FilePath>, by: Author) {
        let current = self.contents.get(&id);
        let v = if op == Op::Removed { 0 } else { current.map_or(0, Vec::len) as u64 };
        let sha256 = current.and_then(|versions| versions.last()).map(|content| Sha256::of(&[*content]));
        let at = Timestamp::from_millis(self.ms);
        let (path, from, author) = (path.clone(), from.cloned(), format!("{by:?}"));
        self.records.push((
            Change {
                op,
                path,
                from,
                file_id: id,
                kind,
                v,
                sha256,
                size: 1,
                author,
                at,
                conversion: None,
                mark: None,
                rewind: None,
            },
            by,
        ));
        self.ms += 1;
    }

    /// The entries at and below a path, taken out.
    fn take(&mut self, path: &FilePath) -> Inside {
        let inside: Vec<FilePath> = self.live.keys().filter(|other| other.is_within(path)).cloned().collect();
        let rest = |other: &FilePath| other.as_str()[path.as_str().len()..].to_owned();
        inside.iter().map(|other| (rest(other), self.live.remove(other).unwrap())).collect()
    }

    fn put(&mut self, path: &FilePath, inside: Inside) {
        for (rest, entry) in inside {
            self.live.insert(FilePath::parse(&format!("{path}{rest}")).unwrap(), entry);
        }
    }

    fn write(&mut self, path: &FilePath, content: u8, by: Author) {
        match self.live.get(path) {
            Some((_, FileKind::Folder)) => (),
            Some((id, _)) if self.contents[id].last() == Some(&content) => (),
            Some((id, _)) => {
                let id = *id;
                self.contents.get_mut(&id).unwrap().push(content);
                self.record(Op::Written, id, FileKind::File, path, None, by);
            }
            None if self.free(path) => {
                let at = self.ms;
                self.folders(path);
                let id = self.id();
                self.live.insert(path.clone(), (id, FileKind::File));
                self.contents.insert(id, vec![content]);
                self.record(Op::Written, id, FileKind::File, path, None, by);
                // The time of a change is taken before the ids of what it makes.
                self.records.last_mut().unwrap().0.at = Timestamp::from_millis(at);
            }
            None => {}
        }
    }

    fn mv(&mut self, from: &FilePath, to: &FilePath, by: Author) -> bool {
        let Some((id, kind)) = self.live.get(from).copied() else { return false };
        if to.is_within(from) || !self.free(to) {
            return false;
        }
        let at = self.ms;
        self.folders(to);
        let inside = self.take(from);
        self.put(to, inside);
        self.record(Op::Moved, id, kind, to, Some(from), by);
        self.records.last_mut().unwrap().0.at = Timestamp::from_millis(at);
        true
    }

    fn rm(&mut self, path: &FilePath, by: Author) -> bool {
        let Some((id, kind)) = self.live.get(path).copied() else { return false };
        let inside = self.take(path);
        self.trash.insert(id, (path.clone(), inside));
        self.record(Op::Removed, id, kind, path, None, by);
        true
    }

    fn restore(&mut self, id: FileId, to: Option<&FilePath>, by: Author) -> bool {
        let Some((path, inside)) = self.trash.get(&id).cloned() else { return false };
        let path = to.cloned().unwrap_or(path);
        if !self.free(&path) {
            return false;
        }
        let at = self.ms;
        self.folders(&path);
        self.trash.remove(&id);
        let kind = inside[0].1.1;
        self.put(&path, inside);
        self.record(Op::Restored, id, kind, &path, None, by);
        self.records.last_mut().unwrap().0.at = Timestamp::from_millis(at);
        true
    }

    fn act(&mut self, act: &Act, by: Author) {
        match act {
            Act::Write(path, content) => self.write(path, *content, by),
            Act::Mkdir(path) if self.free(path) => {
                let at = self.ms;
                self.folders(path);
                let id = self.id();
                self.live.insert(path.clone(), (id, FileKind::Folder));
                self.record(Op::Made, id, FileKind::Folder, path, None, by);
                self.records.last_mut().unwrap().0.at = Timestamp::from_millis(at);
            }
            Act::Mkdir(_) => {}
            Act::Mv(from, to) => {
                self.mv(from, to, by);
            }
            Act::Rm(path) => {
                self.rm(path, by);
            }
            Act::Restore(n) => {
                let ids: Vec<FileId> = self.trash.keys().copied().collect();
                if let Some(id) = ids.get(n % ids.len().max(1)) {
                    self.restore(*id, None, by);
                }
            }
        }
    }

    /// Does a step as the executor does: only if the entry is as the plan saw it.
    fn step(&mut self, step: &RewindStep, by: Author) -> bool {
        let is_at = |model: &Self, path: &FilePath| model.live.get(path).is_some_and(|(id, _)| *id == step.file_id);
        let is_current = |model: &Self| {
            step.kind != FileKind::File || step.v.is_none_or(|v| model.contents[&step.file_id].len() as u64 == v)
        };
        match (step.op, &step.from, step.to_v) {
            (RewindOp::Create, ..) => self.restore(step.file_id, Some(&step.path), by),
            (RewindOp::Move, Some(from), _) => is_at(self, from) && is_current(self) && self.mv(from, &step.path, by),
            (RewindOp::Delete, ..) => {
                let inside = self.live.keys().filter(|path| path.is_within(&step.path)).count();
                is_at(self, &step.path)
                    && is_current(self)
                    && (!step.if_empty || inside == 1)
                    && self.rm(&step.path, by)
            }
            (RewindOp::Update, _, Some(v)) if is_at(self, &step.path) && is_current(self) => {
                let old = self.contents[&step.file_id][usize::try_from(v).unwrap() - 1];
                self.write(&step.path, old, by);
                true
            }
            _ => false,
        }
    }

    /// Takes back the selected records; the plan, and the steps that were refused.
    fn rewind(&mut self, n: usize, select: impl Fn(usize, Author) -> bool) -> (PlanDraft, Vec<RewindStep>) {
        let records: Vec<Record> = self
            .records
            .iter()
            .enumerate()
            .map(|(position, (change, by))| Record { change: change.clone(), selected: select(position, *by) })
            .collect();
        let drafted = plan(&records);
        let checked: Vec<RewindStep> =
            drafted.steps.iter().filter_map(|draft| self.checked(draft, drafted.first)).collect();
        // A folder that is in use stays.
        let by = Author::Rewind(n);
        let refused = checked.into_iter().filter(|step| !self.step(step, by) && !step.if_empty).collect();
        (drafted, refused)
    }

    /// A step after the index was asked, which happens before the first step.
    fn checked(&self, draft: &Draft, first: Option<Timestamp>) -> Option<RewindStep> {
        let (path, start) = match draft {
            Draft::Step(step) | Draft::Update(step, _) => return Some(step.clone()),
            Draft::Tidy { path, start } => (path, start),
        };
        let (id, kind) = match start {
            EntryPlace::Latest(path) => *self.live.get(path)?,
            EntryPlace::Trash(removed, rest) => self.trash.get(removed)?.1.iter().find(|(at, _)| at == rest)?.1,
            EntryPlace::Gone => return None,
        };
        (kind == FileKind::Folder && Timestamp::of_any_id(id.0) >= first).then(|| RewindStep::tidy(id, path.clone()))
    }

    /// The contents of all files by path, and the folders.
    fn state(&self) -> BTreeMap<FilePath, Option<u8>> {
        let content = |id: &FileId| self.contents.get(id).and_then(|versions| versions.last().copied());
        self.live.iter().map(|(path, (id, _))| (path.clone(), content(id))).collect()
    }

    fn files(&self) -> BTreeMap<FilePath, Option<u8>> {
        self.state().into_iter().filter(|(_, content)| content.is_some()).collect()
    }
}

fn paths() -> impl Strategy<Value = FilePath> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4)
        .prop_map(|names| FilePath::parse(&format!("/{}", names.join("/"))).unwrap())
}

fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (paths(), 0..4_u8).prop_map(|(path, content)| Act::Write(path, content)),
        1 => paths().prop_map(Act::Mkdir),
        3 => (paths(), paths()).prop_map(|(from, to)| Act::Mv(from, to)),
        2 => paths().prop_map(Act::Rm),
        1 => (0..8_usize).prop_map(Act::Restore),
    ];
    prop::collection::vec(act, 0..most)
}

fn after(first: &[Act]) -> Model {
    let mut model = Model { ms: 1_000, ..Model::default() };
    first.iter().for_each(|act| model.act(act, Author::Other));
    model
}

/// The files that I changed, and of these the ones that others changed since.
fn touched(records: &[(Change, Author)]) -> (BTreeSet<FileId>, BTreeSet<FileId>) {
    let (mut mine, mut theirs) = (BTreeSet::new(), BTreeSet::new());
    for (change, by) in records {
        if *by == Author::Me {
            mine.insert(change.file_id);
        } else if mine.contains(&change.file_id) {
            theirs.insert(change.file_id);
        }
    }
    (mine, theirs)
}

/// The files that others changed and that have again the content of my last change, between which there is none of theirs.
fn as_i_left_them(records: &[(Change, Author)]) -> BTreeSet<FileId> {
    let mut courses: BTreeMap<FileId, Vec<(Author, Option<Sha256>)>> = BTreeMap::new();
    for (change, by) in records {
        let course = courses.entry(change.file_id).or_default();
        let sha256 = if change.v > 0 { change.sha256 } else { course.last().and_then(|(_, sha256)| *sha256) };
        course.push((*by, sha256));
    }
    let is_again = |course: &Vec<(Author, Option<Sha256>)>| {
        let since: Vec<_> = course.iter().skip_while(|(by, _)| *by != Author::Me).collect();
        let mine = since.iter().take_while(|(by, _)| *by == Author::Me).count();
        let last_of_mine = mine.checked_sub(1).and_then(|at| since.get(at));
        since[mine..].iter().all(|(by, _)| *by != Author::Me)
            && last_of_mine.is_some_and(|(_, sha256)| since.last().is_some_and(|(_, now)| now == sha256))
    };
    courses.into_iter().filter(|(_, course)| is_again(course)).map(|(id, _)| id).collect()
}

/// Checks that files and folders go back to how they were before `then`, and returns the number of changes that were taken back.
fn goes_back(first: &[Act], then: &[Act]) -> usize {
    let mut model = after(first);
    let (wanted, point) = (model.state(), model.records.len());
    model.ms += 1_000;
    then.iter().for_each(|act| model.act(act, Author::Me));
    let changes = model.records.len() - point;
    let (drafted, refused) = model.rewind(0, |position, _| position >= point);
    assert_eq!((drafted.conflicts, refused, model.state()), (Vec::new(), Vec::new(), wanted), "{first:?} {then:?}");
    changes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_rewind_to_a_time_brings_back_the_files_of_that_time(first in acts(12), then in acts(12)) {
        goes_back(&first, &then);
    }

    #[test]
    fn a_rewind_of_a_rewind_restores_what_it_took_back(first in acts(12), then in acts(12)) {
        let mut model = after(&first);
        let point = model.records.len();
        model.ms += 1_000;
        then.iter().for_each(|act| model.act(act, Author::Me));
        let wanted = model.state();
        model.ms += 1_000;
        model.rewind(0, |position, _| position >= point);
        model.ms += 1_000;
        let (drafted, refused) = model.rewind(1, |_, by| by == Author::Rewind(0));
        prop_assert_eq!((drafted.conflicts, refused, model.state()), (Vec::new(), Vec::new(), wanted));
    }

    #[test]
    fn a_rewind_to_now_has_no_steps(first in acts(20)) {
        let mut model = after(&first);
        let before = model.state();
        let (drafted, _) = model.rewind(0, |_, _| false);
        prop_assert!(drafted.steps.is_empty(), "{:?}", drafted.steps);
        prop_assert_eq!(model.state(), before);
    }

    #[test]
    fn conflicts_are_the_files_with_a_version_by_another_author_after_the_point(
        first in acts(8),
        then in prop::collection::vec((prop::bool::ANY, paths(), 0..4_u8), 0..16),
    ) {
        let mut model = after(&first);
        let point = model.records.len();
        model.ms += 1_000;
        let mut before_mine = BTreeMap::new();
        for (mine, path, content) in &then {
            let (was, count) = (model.files().get(path).cloned(), model.records.len());
            model.write(path, *content, if *mine { Author::Me } else { Author::Other });
            if *mine && model.records.len() > count {
                before_mine.entry(path.clone()).or_insert(was);
            }
        }
        let (mine, mut wanted) = touched(&model.records[point..]);
        let again = as_i_left_them(&model.records);
        wanted.retain(|id| !again.contains(id));
        let (written, paths) = (model.files(), model.live.clone());
        let (drafted, refused) = model.rewind(0, |_, by| by == Author::Me);
        let conflicts: BTreeSet<FileId> = drafted.conflicts.iter().map(|conflict| conflict.file_id).collect();
        prop_assert_eq!((&conflicts, refused), (&wanted, Vec::new()));
        let now = model.files();
        for (path, (id, _)) in paths.iter().filter(|(_, (_, kind))| *kind == FileKind::File) {
            let is_taken_back = mine.contains(id) && !wanted.contains(id);
            let goal = if is_taken_back { before_mine[path].as_ref() } else { written.get(path) };
            prop_assert_eq!(now.get(path), goal, "{}", path);
        }
    }

    #[test]
    fn changes_of_others_are_never_touched(first in acts(8), then in prop::collection::vec((prop::bool::ANY, acts(4)), 0..6)) {
        let mut model = after(&first);
        let point = model.records.len();
        model.ms += 1_000;
        for (mine, acts) in &then {
            acts.iter().for_each(|act| model.act(act, if *mine { Author::Me } else { Author::Other }));
        }
        let (selected, mut theirs) = touched(&model.records[point..]);
        let again = as_i_left_them(&model.records);
        theirs.retain(|id| !again.contains(id));
        let (drafted, _) = model.rewind(0, |position, by| position >= point && by == Author::Me);
        for draft in &drafted.steps {
            if let Draft::Step(step) | Draft::Update(step, _) = draft {
                prop_assert!(selected.contains(&step.file_id) && !theirs.contains(&step.file_id), "{:?}", step);
            }
        }
        prop_assert!(theirs.iter().all(|id| drafted.conflicts.iter().any(|conflict| conflict.file_id == *id)));
    }
}

fn at(path: &str) -> FilePath {
    FilePath::parse(path).unwrap()
}

fn write(path: &str, content: u8) -> Act {
    Act::Write(at(path), content)
}

fn mv(from: &str, to: &str) -> Act {
    Act::Mv(at(from), at(to))
}

fn rm(path: &str) -> Act {
    Act::Rm(at(path))
}

#[test]
fn two_files_that_changed_places_change_them_back() {
    assert_eq!(goes_back(&[write("/a", 1), write("/b", 2)], &[mv("/a", "/c"), mv("/b", "/a"), mv("/c", "/b")]), 3);
}

#[test]
fn a_new_folder_with_folders_made_on_the_way_leaves_the_path_of_an_old_file() {
    assert_eq!(goes_back(&[write("/a", 1), write("/b", 2)], &[rm("/b"), Act::Mkdir(at("/b")), mv("/a", "/b/b/a")]), 3);
}

#[test]
fn folders_made_on_the_way_are_followed_through_moves_and_the_trash() {
    let then = [mv("/c", "/b"), mv("/b/c", "/a/a/c"), write("/b/c/c", 1), write("/c/c/c", 3)];
    assert_eq!(goes_back(&[write("/c/c/a", 0)], &then), 4, "the new /b/c travels with /b to /c/c");
    let then = [write("/a/c/c", 0), rm("/a"), write("/a/c/b", 1)];
    assert_eq!(goes_back(&[write("/a/b", 2)], &then), 3, "the first new /a/c comes back from the trash");
    assert_eq!(goes_back(&[write("/a/b/b", 3)], &[mv("/a", "/b/c/b"), rm("/b")]), 2, "/b/c was in the trash with /b");
}

#[test]
fn a_folder_that_was_removed_inside_of_its_own_subfolder_goes_back_above_it() {
    assert_eq!(goes_back(&[write("/a/b/b", 2)], &[mv("/a/b", "/c"), mv("/a", "/c/a"), rm("/c")]), 3);
    let then = [mv("/a/b/c", "/c"), mv("/a/b", "/c/b"), mv("/a", "/c/b/a"), rm("/c")];
    assert_eq!(goes_back(&[write("/a/b/c/a", 2)], &then), 4);
}

#[test]
fn a_file_that_is_again_in_the_trash_with_its_folder_is_no_conflict() {
    let first = [write("/c/b/c", 0), rm("/c")];
    assert_eq!(goes_back(&first, &[Act::Restore(0), write("/c/b/c", 1), rm("/c")]), 3);
    assert_eq!(goes_back(&first, &[Act::Restore(0), mv("/c", "/d/c"), write("/d/c/b/c", 1), rm("/d")]), 4);
}

#[test]
fn a_conflict_leaves_nothing_aside_and_files_of_others_where_they_are() {
    let (me, other) = (Author::Me, Author::Other);
    for (first, then) in [
        (write("/a", 3), vec![(me, mv("/a", "/b/a/c")), (other, write("/a", 1)), (me, rm("/b/a"))]),
        (write("/a/b/c", 2), vec![(me, rm("/a")), (me, Act::Mkdir(at("/a"))), (other, write("/a/b", 3))]),
        (write("/b/b", 1), vec![(me, mv("/b/b", "/a/c")), (other, mv("/a", "/b/b/b"))]),
    ] {
        let mut model = after(&[first]);
        model.ms += 1_000;
        then.iter().for_each(|(by, act)| model.act(act, *by));
        let before = model.files();
        let (drafted, refused) = model.rewind(0, |_, by| by == me);
        assert_eq!((drafted.conflicts.len(), refused, model.files()), (1, Vec::new(), before), "{then:?}");
    }
}

#[test]
fn a_folder_that_others_moved_or_removed_since_is_a_conflict_with_the_files_inside_of_it() {
    for (theirs, wanted) in [(rm("/c"), vec!["/c", "/c/b/c"]), (mv("/c", "/d"), vec!["/d"])] {
        let mut model = after(&[write("/c/b/c", 0), rm("/c")]);
        model.ms += 1_000;
        [Act::Restore(0), write("/c/b/c", 1)].iter().for_each(|act| model.act(act, Author::Me));
        model.act(&theirs, Author::Other);
        let (drafted, _) = model.rewind(0, |_, by| by == Author::Me);
        let found: Vec<FilePath> = drafted.conflicts.into_iter().map(|conflict| conflict.path).collect();
        assert_eq!(found, wanted.into_iter().map(at).collect::<Vec<_>>(), "{theirs:?}");
    }
}

#[test]
fn a_purged_file_is_unavailable_and_the_rest_comes_back() {
    let [a, b] = ["/a", "/b"].map(at);
    let mut model = after(&[write("/a", 1), write("/b", 2)]);
    let point = model.records.len();
    let (gone, _) = model.live[&a];
    model.rm(&a, Author::Me);
    model.rm(&b, Author::Me);
    model.trash.remove(&gone);
    model.record(Op::Purged, gone, FileKind::File, &a, None, Author::Other);
    let (drafted, refused) = model.rewind(0, |position, _| position >= point);
    assert_eq!(drafted.unavailable.iter().map(|loss| loss.path.clone()).collect::<Vec<_>>(), [a]);
    assert_eq!((refused, model.files().into_keys().collect::<Vec<_>>()), (Vec::new(), vec![b]));
}
