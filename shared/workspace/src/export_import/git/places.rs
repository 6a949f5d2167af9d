//! The places of files in the past, by the records of changes: pure. From the files of now back to those before the first record, and from there forth again
//! with the edits that each change is for Git.

use crate::{Change, FileKind, Op};
use domain::{FileId, FilePath};
use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
};

/// An edit of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// The file has the content of this version.
    Put { path: String, file: FileId, v: u64 },
    /// The file has another path.
    Move { from: String, to: String },
    /// The file is gone.
    Remove { path: String },
}

impl Edit {
    /// Whether it is about a path that Git takes for its own.
    pub fn is_gits(&self) -> bool {
        let (Self::Put { path, .. } | Self::Remove { path } | Self::Move { to: path, .. }) = self;
        is_gits(path)
    }
}

fn is_gits(path: &str) -> bool {
    path.split('/').any(|name| name.eq_ignore_ascii_case(".git"))
}

/// The files at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Places {
    /// Files by their paths.
    tree: BTreeMap<String, FileId>,
    /// Entries of the trash, with the files at and below each: the rest of a path, which is empty for a file.
    trash: HashMap<FileId, Vec<(String, FileId)>>,
    /// The last version of each file that came.
    last: HashMap<FileId, u64>,
}

impl Places {
    pub fn put(&mut self, path: &FilePath, file: FileId) {
        self.tree.insert(path.as_str().to_owned(), file);
    }

    /// A file at or below an entry of the trash.
    pub fn in_trash(&mut self, entry: FileId, rest: &str, file: FileId) {
        self.trash.entry(entry).or_default().push((rest.to_owned(), file));
    }

    pub fn paths(&self) -> impl Iterator<Item = (&str, FileId)> {
        self.tree.iter().map(|(path, file)| (path.as_str(), *file))
    }

    /// The files in the trash.
    pub fn trashed(&self) -> Vec<FileId> {
        self.trash.values().flatten().map(|(_, file)| *file).collect()
    }

    /// Takes a change back.
    pub fn back(&mut self, change: &Change) {
        let (path, is_file) = (change.path.as_str(), change.kind == FileKind::File);
        match change.op {
            // Its first version, or it came from out of sight.
            Op::Written | Op::Made if is_file && (change.op == Op::Made || change.v == 1) => {
                if self.tree.get(path) == Some(&change.file_id) {
                    self.tree.remove(path);
                }
            }
            Op::Moved => {
                if let Some(from) = &change.from {
                    let moved = self.take(path, is_file.then_some(change.file_id));
                    self.bring(from.as_str(), moved);
                }
            }
            Op::Removed => {
                let back = self.trash.remove(&change.file_id).unwrap_or_default();
                self.bring(path, back);
            }
            Op::Restored => {
                let restored = self.take(path, is_file.then_some(change.file_id));
                self.trash.insert(change.file_id, restored);
            }
            Op::Written | Op::Made | Op::Purged | Op::Converted | Op::Marked => {}
        }
    }

    /// A version of a file that was written before the first record.
    pub fn written(&mut self, file: FileId, v: u64) {
        let last = self.last.entry(file).or_default();
        *last = v.max(*last);
    }

    /// Makes a change, and tells what it is for Git. A record that comes twice is nothing the second time.
    pub fn forth(&mut self, change: &Change) -> Vec<Edit> {
        let (path, file, is_file) = (change.path.as_str(), change.file_id, change.kind == FileKind::File);
        match change.op {
            Op::Written | Op::Made if is_file => {
                let last = self.last.insert(file, change.v.max(self.last.get(&file).copied().unwrap_or_default()));
                if last.is_some_and(|last| last >= change.v) && self.tree.get(path) == Some(&file) {
                    return Vec::new();
                }
                self.tree.insert(path.to_owned(), file);
                vec![Edit::Put { path: path.to_owned(), file, v: change.v }]
            }
            Op::Moved => {
                let Some(from) = change.from.as_ref().map(FilePath::as_str) else { return Vec::new() };
                let moved = self.take(from, is_file.then_some(file));
                let edit = |(rest, file): &(String, FileId)| {
                    let (from, to, file) = (format!("{from}{rest}"), format!("{path}{rest}"), *file);
                    match (is_gits(&from), is_gits(&to)) {
                        (false, false) => Some(Edit::Move { from, to }),
                        (false, true) => Some(Edit::Remove { path: from }),
                        // It was left out where it was.
                        (true, false) => self.last.get(&file).map(|v| Edit::Put { path: to, file, v: *v }),
                        (true, true) => None,
                    }
                };
                let edits = moved.iter().filter_map(edit).collect();
                self.bring(path, moved);
                edits
            }
            Op::Removed => {
                let gone = self.take(path, is_file.then_some(file));
                let edits = gone.iter().map(|(rest, _)| Edit::Remove { path: format!("{path}{rest}") }).collect();
                self.trash.insert(file, gone);
                edits
            }
            Op::Restored => {
                let back = self.trash.remove(&file).unwrap_or_default();
                let edit = |(rest, file): &(String, FileId)| {
                    let v = *self.last.get(file)?;
                    Some(Edit::Put { path: format!("{path}{rest}"), file: *file, v })
                };
                let edits = back.iter().filter_map(edit).collect();
                self.bring(path, back);
                edits
            }
            Op::Written | Op::Made | Op::Purged | Op::Converted | Op::Marked => Vec::new(),
        }
    }

    /// The edits that lead to the tree of today. There are some only where records are missing.
    pub fn towards(&self, now: &Self, versions: impl Fn(FileId) -> Option<u64>) -> Vec<Edit> {
        let gone = self.tree.keys().filter(|path| !now.tree.contains_key(*path));
        let gone = gone.map(|path| Edit::Remove { path: path.clone() });
        let other = now.tree.iter().filter_map(|(path, file)| {
            let v = versions(*file)?;
            let is_there = self.tree.get(path) == Some(file) && self.last.get(file) == Some(&v);
            (!is_there).then(|| Edit::Put { path: path.clone(), file: *file, v })
        });
        gone.chain(other).collect()
    }

    /// Takes the files at and below a path, or this one file.
    fn take(&mut self, path: &str, only: Option<FileId>) -> Vec<(String, FileId)> {
        if let Some(file) = only {
            let is_it = self.tree.get(path) == Some(&file);
            return if is_it {
                self.tree.remove(path).map(|file| (String::new(), file)).into_iter().collect()
            } else {
                Vec::new()
            };
        }
        let inside = format!("{path}/");
        let range = (Bound::Included(inside.clone()), Bound::Unbounded);
        let below = self.tree.range::<String, _>(range).take_while(|(path, _)| path.starts_with(&inside));
        let below: Vec<(String, FileId)> = below.map(|(path, file)| (path.clone(), *file)).collect();
        below
            .into_iter()
            .map(|(found, file)| {
                self.tree.remove(&found);
                (found.strip_prefix(path).unwrap_or_default().to_owned(), file)
            })
            .collect()
    }

    fn bring(&mut self, path: &str, files: Vec<(String, FileId)>) {
        self.tree.extend(files.into_iter().map(|(rest, file)| (format!("{path}{rest}"), file)));
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::Timestamp;
    use uuid::Uuid;

    fn path(text: &str) -> FilePath {
        FilePath::parse(text).unwrap()
    }

    fn change(op: Op, kind: FileKind, id: u128, at: &str, from: Option<&str>, v: u64) -> Change {
        Change {
            op,
            path: path(at),
            from: from.map(path),
            file_id: FileId(Uuid::from_u128(id)),
            kind,
            v,
            sha256: None,
            size: 0,
            author: "user:1".into(),
            at: Timestamp::from_millis(1),
            conversion: None,
            mark: None,
            rewind: None,
        }
    }

    #[test]
    fn a_history_goes_back_to_its_beginning_and_forth_to_now() {
        use FileKind::{File, Folder};
        let (a, b) = (FileId(Uuid::from_u128(1)), FileId(Uuid::from_u128(2)));
        let changes = [
            change(Op::Written, File, 1, "/x/a", None, 2),
            change(Op::Written, File, 2, "/x/y/b", None, 1),
            change(Op::Written, File, 2, "/x/y/b", None, 1),
            change(Op::Moved, Folder, 9, "/z", Some("/x"), 0),
            change(Op::Removed, Folder, 8, "/z/y", None, 0),
            change(Op::Moved, File, 1, "/a", Some("/z/a"), 2),
            change(Op::Restored, Folder, 8, "/y", None, 0),
            change(Op::Removed, File, 1, "/a", None, 0),
        ];
        let mut now = Places::default();
        now.put(&path("/y/b"), b);
        now.in_trash(a, "", a);
        let mut places = now.clone();
        for change in changes.iter().rev() {
            places.back(change);
        }
        assert_eq!(places.paths().collect::<Vec<_>>(), [("/x/a", a)], "one file was there before the first record");
        places.written(a, 1);
        let edits: Vec<Vec<Edit>> = changes.iter().map(|change| places.forth(change)).collect();
        let moved = |from: &str, to: &str| Edit::Move { from: from.into(), to: to.into() };
        let gone = |path: &str| Edit::Remove { path: path.into() };
        let put = |path: &str, file, v| Edit::Put { path: path.into(), file, v };
        assert_eq!(
            edits,
            [
                vec![put("/x/a", a, 2)],
                vec![put("/x/y/b", b, 1)],
                vec![],
                vec![moved("/x/a", "/z/a"), moved("/x/y/b", "/z/y/b")],
                vec![gone("/z/y/b")],
                vec![moved("/z/a", "/a")],
                vec![put("/y/b", b, 1)],
                vec![gone("/a")],
            ]
        );
        assert_eq!(places.towards(&now, |_| Some(1)), []);
        assert_eq!(places.towards(&Places::default(), |_| Some(1)), [gone("/y/b")]);
        assert_eq!(Places::default().towards(&now, |_| Some(3)), [put("/y/b", b, 3)]);
    }
}
