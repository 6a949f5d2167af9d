//! From a history of commits to files: pure, from commands in the order of the stream to files with their versions.

use super::{
    DOMAIN,
    stream::{Commit, Edit, Mark},
};
use crate::export_import::workspace_builder::MOST;
use domain::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Bound,
    sync::Arc,
};

/// The most characters of an author's name.
const LONGEST_AUTHOR: usize = 300;
/// The most bytes of all paths that moves and copies make. One line can copy a folder into itself, so a few lines could make files without end.
const MOST_MOVED: usize = 256 << 20;

/// The commits of a stream.
#[derive(Default)]
pub(super) struct History {
    commits: Vec<KeptCommit>,
    by_mark: HashMap<Mark, usize>,
    branches: BTreeMap<String, Option<usize>>,
    /// The same text for all commits of an author.
    authors: HashSet<Arc<str>>,
    changes: usize,
}

struct KeptCommit {
    author: Arc<str>,
    at: Timestamp,
    parent: Option<usize>,
    changes: Vec<Edit>,
}

/// A version of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Version {
    pub content: Mark,
    pub author: Arc<str>,
    pub at: Timestamp,
}

/// The files of the last commit, by their paths without a slash at the beginning.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Files {
    /// Their versions from the first one on, at least one.
    pub files: BTreeMap<String, Vec<Version>>,
    /// Symbolic links and submodules.
    pub left_out: BTreeSet<String>,
}

/// Why a history has no files.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NoFiles {
    /// The stream has no commit.
    Empty,
    /// It has several branches, none of them `main` or `master`.
    Several(Vec<String>),
    /// It has too many at one of its commits, or its moves and copies make too many paths.
    TooMany,
}

impl History {
    /// How many changes all commits have.
    pub fn changes(&self) -> usize {
        self.changes
    }

    /// Takes a branch that is at this commit now. False for a commit that did not come.
    pub fn reset(&mut self, branch: String, at: Option<Mark>) -> bool {
        let Ok(at) = at.map(|mark| self.by_mark.get(&mark).copied().ok_or(())).transpose() else { return false };
        self.branches.insert(branch, at);
        true
    }

    /// Takes the next commit. False when its parent did not come.
    pub fn commit(&mut self, commit: Commit) -> bool {
        let Commit { branch, mark, author, at, parent, changes } = commit;
        let parent = match parent {
            Some(mark) => match self.by_mark.get(&mark) {
                Some(parent) => Some(*parent),
                None => return false,
            },
            None => self.branches.get(&branch).copied().flatten(),
        };
        let author = self.author(&author);
        let number = self.commits.len();
        self.changes += changes.len();
        self.commits.push(KeptCommit { author, at, parent, changes });
        self.by_mark.extend(mark.map(|mark| (mark, number)));
        self.branches.insert(branch, Some(number));
        true
    }

    fn author(&mut self, text: &str) -> Arc<str> {
        let author = author(text);
        if let Some(known) = self.authors.get(author.as_str()) {
            return Arc::clone(known);
        }
        let author: Arc<str> = author.into();
        self.authors.insert(Arc::clone(&author));
        author
    }

    /// The files of the only branch, else of `main` or `master`. A version is a change of the content by a commit on the way from the last one back by
    /// first parents, so the work of a merged branch is one version, by the author of the merge. A move keeps the versions.
    pub fn files(&self) -> Result<Files, NoFiles> {
        self.files_within(MOST, MOST_MOVED)
    }

    /// The same, with at most so many files at any commit, and moves and copies that make paths of so many bytes.
    fn files_within(&self, most: usize, mut room: usize) -> Result<Files, NoFiles> {
        let mut files = Files::default();
        let mut way = Vec::new();
        let mut at = Some(self.last()?);
        while let Some(commit) = at.and_then(|number| self.commits.get(number)) {
            way.push(commit);
            at = commit.parent;
        }
        for commit in way.into_iter().rev() {
            for edit in &commit.changes {
                room = room.checked_sub(files.moved_by(edit)).ok_or(NoFiles::TooMany)?;
                files.apply(edit, commit);
                if files.files.len() + files.left_out.len() > most {
                    return Err(NoFiles::TooMany);
                }
            }
        }
        Ok(files)
    }

    fn last(&self) -> Result<usize, NoFiles> {
        let there: Vec<_> = self.branches.iter().filter_map(|(name, at)| Some((name.as_str(), (*at)?))).collect();
        let named = |name: &str| there.iter().find(|(branch, _)| *branch == name);
        match there.as_slice() {
            [] => Err(NoFiles::Empty),
            [(_, only)] => Ok(*only),
            several => match named("refs/heads/main").or_else(|| named("refs/heads/master")) {
                Some((_, at)) => Ok(*at),
                None => Err(NoFiles::Several(several.iter().map(|(name, _)| (*name).to_owned()).collect())),
            },
        }
    }
}

impl Files {
    /// How many bytes the paths have that an edit makes of others.
    fn moved_by(&self, edit: &Edit) -> usize {
        let (Edit::Move { from, to } | Edit::Copy { from, to }) = edit else { return 0 };
        let below = self.below(from).into_iter().map(|path| path.len() - from.len() + to.len());
        below.fold(0, usize::saturating_add)
    }

    fn apply(&mut self, edit: &Edit, by: &KeptCommit) {
        let version = |content| Version { content, author: Arc::clone(&by.author), at: by.at };
        match edit {
            Edit::Put { path, mark } => {
                self.make_room(path);
                let versions = self.files.entry(path.clone()).or_default();
                // A change of the mode alone changes no content.
                if versions.last().is_none_or(|last| last.content != *mark) {
                    versions.push(version(*mark));
                }
            }
            Edit::Other { path } => {
                self.take(path);
                self.make_room(path);
                self.left_out.insert(path.clone());
            }
            Edit::Remove { path } => drop(self.take(path)),
            Edit::RemoveAll => *self = Self::default(),
            Edit::Move { from, to } => {
                let moved = self.take(from);
                self.take(to);
                for (path, entry) in moved {
                    self.put(format!("{to}{path}"), entry);
                }
            }
            Edit::Copy { from, to } => {
                let copied: Vec<_> = self.below(from).into_iter().map(|path| (self.content(&path), path)).collect();
                self.take(to);
                for (content, path) in copied {
                    let below = path.strip_prefix(from.as_str()).unwrap_or_default();
                    self.put(format!("{to}{below}"), content.map(|content| vec![version(content)]));
                }
            }
        }
    }

    /// The last content of a file; none for what is left out.
    fn content(&self, path: &str) -> Option<Mark> {
        self.files.get(path).and_then(|versions| versions.last()).map(|last| last.content)
    }

    fn put(&mut self, path: String, entry: Option<Vec<Version>>) {
        self.make_room(&path);
        match entry {
            Some(versions) => drop(self.files.insert(path, versions)),
            None => drop(self.left_out.insert(path)),
        }
    }

    /// A file takes the place of a folder, and the other way round.
    fn make_room(&mut self, path: &str) {
        for below in self.below(path).into_iter().filter(|below| below != path) {
            self.files.remove(&below);
            self.left_out.remove(&below);
        }
        self.left_out.remove(path);
        for (at, _) in path.match_indices('/') {
            let above = path.get(..at).unwrap_or_default();
            self.files.remove(above);
            self.left_out.remove(above);
        }
    }

    /// This path, if it is there, and all below it.
    fn below(&self, path: &str) -> Vec<String> {
        let of = |path: &str| (Bound::Included(path.to_owned()), Bound::Unbounded);
        let inside = format!("{path}/");
        let mut found = Vec::new();
        if self.files.contains_key(path) || self.left_out.contains(path) {
            found.push(path.to_owned());
        }
        let files = self.files.range(of(&inside)).map(|(path, _)| path);
        found.extend(files.take_while(|path| path.starts_with(&inside)).cloned());
        found.extend(self.left_out.range(of(&inside)).take_while(|path| path.starts_with(&inside)).cloned());
        found
    }

    /// Takes away what is at this path and below it, with the rest of each path.
    fn take(&mut self, path: &str) -> Vec<(String, Option<Vec<Version>>)> {
        let below = self.below(path);
        let mut taken = Vec::with_capacity(below.len());
        for found in below {
            self.left_out.remove(&found);
            let versions = self.files.remove(&found);
            taken.push((found.strip_prefix(path).unwrap_or_default().to_owned(), versions));
        }
        taken
    }
}

/// The author of a version. That of an export from here has its name again.
fn author(text: &str) -> String {
    let invented = |address: &str| address.strip_suffix('>').is_some_and(|address| address.ends_with(DOMAIN));
    let text = match text.rsplit_once(" <") {
        Some((name, address)) if invented(address) && !name.is_empty() => name,
        _ => text,
    };
    let known: String = text.chars().filter(|c| !c.is_control()).take(LONGEST_AUTHOR).collect();
    if known.trim().is_empty() { "unknown".into() } else { known }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    fn commit(mark: Mark, parent: Option<Mark>, changes: Vec<Edit>) -> Commit {
        let at = Timestamp::from_millis(i64::try_from(mark).unwrap_or(0));
        let (branch, author) = ("refs/heads/main".to_owned(), format!("A{mark} <a@example.org>"));
        Commit { branch, mark: Some(mark), author, at, parent, changes }
    }

    fn put(path: &str, mark: Mark) -> Edit {
        Edit::Put { path: path.into(), mark }
    }

    fn of(commits: Vec<Commit>) -> Files {
        let mut history = History::default();
        assert!(commits.into_iter().all(|commit| history.commit(commit)));
        history.files().unwrap()
    }

    fn contents<'a>(files: &'a Files, path: &str) -> Vec<(Mark, &'a str)> {
        let versions = files.files.get(path).map_or(&[][..], Vec::as_slice);
        versions.iter().map(|version| (version.content, version.author.as_ref())).collect()
    }

    #[test]
    fn a_move_keeps_versions_and_a_removal_ends_them() {
        let files = of(vec![
            commit(1, None, vec![put("a/x", 10), put("a/y", 11), put("z", 12)]),
            commit(2, Some(1), vec![put("a/x", 20), put("z", 12)]),
            commit(3, Some(2), vec![Edit::Move { from: "a".into(), to: "b".into() }, put("b/x", 30)]),
            commit(4, Some(3), vec![Edit::Remove { path: "z".into() }]),
            commit(5, Some(4), vec![put("z", 50), Edit::Copy { from: "b".into(), to: "c".into() }]),
        ]);
        let a = |n: u32| format!("A{n} <a@example.org>");
        assert_eq!(contents(&files, "b/x"), [(10, a(1).as_str()), (20, &a(2)), (30, &a(3))]);
        assert_eq!(contents(&files, "b/y"), [(11, a(1).as_str())]);
        assert_eq!(contents(&files, "c/x"), [(30, a(5).as_str())]);
        assert_eq!(contents(&files, "z"), [(50, a(5).as_str())]);
        assert_eq!(files.files.len(), 5);
    }

    #[test]
    fn a_merge_is_one_version_by_its_author() {
        let files = of(vec![
            commit(1, None, vec![put("x", 10)]),
            commit(2, Some(1), vec![put("x", 20)]),
            commit(3, Some(1), vec![put("y", 30)]),
            commit(4, Some(3), vec![put("x", 20)]),
        ]);
        assert_eq!(contents(&files, "x"), [(10, "A1 <a@example.org>"), (20, "A4 <a@example.org>")]);
        assert_eq!(contents(&files, "y"), [(30, "A3 <a@example.org>")]);
    }

    #[test]
    fn links_are_left_out_and_files_and_folders_take_each_others_place() {
        let link = |path: &str| Edit::Other { path: path.into() };
        let files = of(vec![
            commit(1, None, vec![put("x", 10), put("d/e/f", 11), link("l"), link("d/m"), put("k", 12)]),
            commit(2, Some(1), vec![put("x/y", 20), put("d", 21), link("k")]),
        ]);
        assert_eq!(files.files.keys().collect::<Vec<_>>(), ["d", "x/y"]);
        assert_eq!(files.left_out.iter().collect::<Vec<_>>(), ["k", "l"]);
    }

    #[test]
    fn the_branch_is_the_only_one_or_main_or_must_be_chosen() {
        let mut history = History::default();
        assert_eq!(history.files(), Err(NoFiles::Empty));
        assert!(history.commit(Commit { branch: "refs/heads/a".into(), ..commit(1, None, vec![put("x", 1)]) }));
        assert_eq!(history.files().unwrap().files.len(), 1);
        assert!(history.reset("refs/heads/b".into(), Some(1)));
        assert_eq!(history.files(), Err(NoFiles::Several(vec!["refs/heads/a".into(), "refs/heads/b".into()])));
        assert!(history.commit(commit(2, Some(1), vec![put("y", 2)])));
        assert_eq!(history.files().unwrap().files.len(), 2);
        assert!(!history.commit(commit(3, Some(9), Vec::new())) && !history.reset("refs/heads/c".into(), Some(9)));
    }

    #[test]
    fn copies_and_moves_make_no_files_and_paths_without_end() {
        let files = |changes: Vec<Edit>, most: usize, room: usize| {
            let mut history = History::default();
            assert!(history.commit(commit(1, None, changes)));
            history.files_within(most, room).map(|files| files.files.len())
        };
        // Each copy of a folder into itself makes twice as many files.
        let copies = |count: u32| {
            let copy = |n: u32| Edit::Copy { from: "a".into(), to: format!("a/{n}") };
            std::iter::once(put("a/x", 10)).chain((0..count).map(copy)).collect::<Vec<_>>()
        };
        assert_eq!(files(copies(5), 100, MOST_MOVED), Ok(32));
        assert_eq!(files(copies(64), 100, MOST_MOVED), Err(NoFiles::TooMany));
        assert_eq!(files(copies(64), usize::MAX, 10_000), Err(NoFiles::TooMany));
        let moved = |from: &str, to: &str| Edit::Move { from: from.into(), to: to.into() };
        let to_and_fro = (0..50).flat_map(|_| [moved("a", "b"), moved("b", "a")]);
        let moves: Vec<Edit> = (0..10).map(|n| put(&format!("a/{n}"), 1)).chain(to_and_fro).collect();
        assert_eq!(files(moves.clone(), 100, 10_000), Ok(10));
        assert_eq!(files(moves, 100, 1_000), Err(NoFiles::TooMany));
    }

    #[test]
    fn authors_of_an_export_have_their_names_again() {
        assert_eq!(author("agent:coder <agent-coder@buildscale.invalid>"), "agent:coder");
        assert_eq!(author("Ada Lovelace <ada@example.org>"), "Ada Lovelace <ada@example.org>");
        assert_eq!((author(" \u{7}"), author(&"é".repeat(400)).chars().count()), ("unknown".into(), 300));
    }

    fn any_edit() -> impl Strategy<Value = Edit> {
        let path = || proptest::sample::select(vec!["a", "b", "a/b", "a/c", "b/a/c", "c"]).prop_map(str::to_owned);
        prop_oneof![
            4 => (path(), 0..5_u64).prop_map(|(path, mark)| Edit::Put { path, mark }),
            1 => path().prop_map(|path| Edit::Other { path }),
            2 => path().prop_map(|path| Edit::Remove { path }),
            2 => (path(), path()).prop_map(|(from, to)| Edit::Move { from, to }),
            2 => (path(), path()).prop_map(|(from, to)| Edit::Copy { from, to }),
            1 => Just(Edit::RemoveAll),
        ]
    }

    proptest! {
        /// No path is that of a file and of a folder, whatever the changes are, and each file has a version.
        #[test]
        fn paths_can_always_be_made(changes in proptest::collection::vec(any_edit(), 0..60)) {
            let files = of(vec![commit(1, None, changes)]);
            let all: Vec<&String> = files.files.keys().chain(&files.left_out).collect();
            for path in &all {
                prop_assert!(!all.iter().any(|other| other.starts_with(&format!("{path}/"))), "{path} in {all:?}");
                prop_assert_eq!(all.iter().filter(|other| other == &path).count(), 1);
            }
            prop_assert!(files.files.values().all(|versions| !versions.is_empty()));
        }
    }
}
