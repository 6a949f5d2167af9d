//! The folders of a workspace that are covered in a world, so that files and folders in them do not exist there.

use domain::FilePath;
use ports::OTHER_HOMES;
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The cover of a folder: which of the folder's entries it has.
#[derive(Default)]
pub(crate) struct Cover<'a> {
    without: BTreeSet<&'a str>,
    /// The only ones that it may have; none where it may have all others.
    only: Option<BTreeSet<&'a str>>,
}

impl Cover<'_> {
    /// Whether it has the entry of this name.
    pub fn shows(&self, name: &OsStr) -> bool {
        let is_one_of = |names: &BTreeSet<&str>| name.to_str().is_some_and(|name| names.contains(name));
        !is_one_of(&self.without) && self.only.as_ref().is_none_or(is_one_of)
    }
}

/// The folders in `root` to cover, outer ones first. Where the folder around something hidden is not there yet, the nearest one above it is covered: a
/// cover shows nothing that comes later. A folder in one that is hidden itself is not among them.
pub(crate) fn covered<'a>(root: &Path, hidden: &'a [FilePath]) -> BTreeMap<PathBuf, Cover<'a>> {
    let others = root.join(OTHER_HOMES.trim_start_matches('/'));
    let mut covered = BTreeMap::<PathBuf, Cover<'a>>::new();
    for path in hidden {
        let (mut folder, mut names) = (root.to_owned(), path.names().peekable());
        while let Some(name) = names.next() {
            let inside = folder.join(name);
            if inside == others {
                covered.entry(folder).or_default().only.get_or_insert_default().extend(names.next());
                break;
            }
            // Links are not followed: the workspace has none.
            let found = fs::symlink_metadata(&inside);
            if names.peek().is_some() && found.as_ref().is_ok_and(fs::Metadata::is_dir) {
                folder = inside;
                continue;
            }
            let cover = covered.entry(folder).or_default();
            // A file has nothing in it, and is not hidden itself.
            if names.peek().is_none() || found.is_err() {
                cover.without.insert(name);
            }
            break;
        }
    }
    let is_hidden = |folder: &Path| {
        folder.ancestors().any(|at| match (at.parent(), at.file_name()) {
            (Some(around), Some(name)) => covered.get(around).is_some_and(|cover| !cover.shows(name)),
            _ => false,
        })
    };
    let gone: BTreeSet<PathBuf> = covered.keys().filter(|folder| is_hidden(folder)).cloned().collect();
    covered.retain(|folder, _| !gone.contains(folder));
    covered
}

/// Folders that are covered in a world, as they were. A cover has the entries of its beginning: a file that is made or replaced later is not in it.
pub(crate) struct Covers(Vec<(PathBuf, Option<Mark>)>);

/// The number of a folder, its links, and when an entry of it was last made, replaced or removed, in seconds and nanoseconds. On most file systems a
/// folder has a link for each folder in it, so one that is made within the same tick of the clock is seen, too.
type Mark = (u64, u64, i64, i64);

impl Covers {
    /// Those of the files at `root`, where `hidden` does not exist.
    pub fn new(root: &Path, hidden: &[FilePath]) -> Self {
        let marked = |folder: PathBuf| {
            let was = mark(&folder);
            (folder, was)
        };
        Self(covered(root, hidden).into_keys().map(marked).collect())
    }

    /// Whether one of the folders has other entries now.
    pub fn have_changed(&self) -> bool {
        self.0.iter().any(|(folder, was)| mark(folder) != *was)
    }
}

fn mark(folder: &Path) -> Option<Mark> {
    let found = fs::symlink_metadata(folder).ok()?;
    Some((found.ino(), found.nlink(), found.mtime(), found.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn hidden(paths: &[&str]) -> Vec<FilePath> {
        paths.iter().map(|path| path.parse().unwrap()).collect()
    }

    #[test]
    fn the_nearest_folder_that_is_there_is_covered() {
        let files = tempfile::tempdir().unwrap();
        fs::create_dir_all(files.path().join("users/me")).unwrap();
        fs::write(files.path().join("note"), "a file").unwrap();
        let covers = |paths: &[&str]| {
            let hidden = hidden(paths);
            let covered = covered(files.path(), &hidden).into_iter();
            let shown = covered.map(|(folder, cover)| {
                let folder = folder.strip_prefix(files.path()).unwrap().display().to_string();
                (folder, cover.without.into_iter().map(str::to_owned).collect::<Vec<_>>())
            });
            shown.collect::<Vec<_>>()
        };
        let one = |folder: &str, names: &[&str]| {
            vec![(folder.to_owned(), names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())]
        };
        assert_eq!(covers(&["/users/gone", "/users/other"]), one("users", &["gone", "other"]));
        assert_eq!(covers(&["/vault"]), one("", &["vault"]));
        assert_eq!(covers(&["/data/deep/key"]), one("", &["data"]), "nothing of it is there yet");
        assert_eq!(covers(&["/note/key"]), one("", &[]), "a file stays");
        assert_eq!(covers(&["/users/me/a/key"]), one("users/me", &["a"]));
    }

    #[test]
    fn of_the_homes_only_that_of_the_caller_is_shown_whatever_else_is_there() {
        let files = tempfile::tempdir().unwrap();
        for at in ["me", "other", "joined", "-"] {
            fs::create_dir_all(files.path().join("users").join(at)).unwrap();
        }
        let shown = |paths: &[&str]| {
            let hidden = hidden(paths);
            let covered = covered(files.path(), &hidden);
            assert_eq!(covered.keys().collect::<Vec<_>>(), [&files.path().join("users")], "{paths:?}");
            let cover = &covered[&files.path().join("users")];
            let all = fs::read_dir(files.path().join("users")).unwrap().map(|entry| entry.unwrap().file_name());
            all.filter(|name| cover.shows(name)).collect::<Vec<_>>()
        };
        assert_eq!(shown(&["/users/-/me", "/users/other"]), ["me"]);
        assert_eq!(shown(&["/users/-/me", "/users/joined/key"]), ["me"], "a folder that is not there needs no cover");
        assert!(shown(&["/users/-"]).is_empty());
        assert!(shown(&["/users/-/me", "/users/me"]).is_empty(), "policies keep it from its person");
    }

    #[test]
    fn a_cover_has_changed_with_the_entries_of_its_folder() {
        let files = tempfile::tempdir().unwrap();
        fs::create_dir_all(files.path().join("users/me")).unwrap();
        let covers = Covers::new(files.path(), &hidden(&["/users/-"]));
        fs::write(files.path().join("users/me/draft"), "in the home").unwrap();
        fs::write(files.path().join("note"), "beside the homes").unwrap();
        assert!(!covers.have_changed());
        fs::rename(files.path().join("users"), files.path().join("before")).unwrap();
        assert!(covers.have_changed(), "it is gone");
        fs::create_dir_all(files.path().join("users/me")).unwrap();
        assert!(covers.have_changed(), "another folder has its name");
    }
}
