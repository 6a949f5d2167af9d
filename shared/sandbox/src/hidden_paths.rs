//! The paths of a workspace that do not exist for a command: the folders around them are masked in its namespaces.

use domain::FilePath;
use ports::OTHER_HOMES;
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The mask of a folder: which of the folder's entries it shows.
#[derive(Default)]
pub(crate) struct FolderMask<'a> {
    without: BTreeSet<&'a str>,
    /// The only ones that it may have; none where it may have all others.
    only: Option<BTreeSet<&'a str>>,
}

impl FolderMask<'_> {
    /// Whether it has the entry of this name.
    pub fn shows(&self, name: &OsStr) -> bool {
        let is_one_of = |names: &BTreeSet<&str>| name.to_str().is_some_and(|name| names.contains(name));
        !is_one_of(&self.without) && self.only.as_ref().is_none_or(is_one_of)
    }
}

/// The folders in `root` to mask, outer ones first. Where the folder around something hidden is not there yet, the nearest one above it is masked: a
/// mask shows nothing that comes later. A folder in one that is hidden itself is not among them.
pub(crate) fn folder_masks<'a>(root: &Path, hidden: &'a [FilePath]) -> BTreeMap<PathBuf, FolderMask<'a>> {
    let others = root.join(OTHER_HOMES.trim_start_matches('/'));
    let mut masks = BTreeMap::<PathBuf, FolderMask<'a>>::new();
    for path in hidden {
        let (mut folder, mut names) = (root.to_owned(), path.names().peekable());
        while let Some(name) = names.next() {
            let inside = folder.join(name);
            if inside == others {
                masks.entry(folder).or_default().only.get_or_insert_default().extend(names.next());
                break;
            }
            // Links are not followed: the workspace has none.
            let found = fs::symlink_metadata(&inside);
            if names.peek().is_some() && found.as_ref().is_ok_and(fs::Metadata::is_dir) {
                folder = inside;
                continue;
            }
            let mask = masks.entry(folder).or_default();
            // A file has nothing in it, and is not hidden itself.
            if names.peek().is_none() || found.is_err() {
                mask.without.insert(name);
            }
            break;
        }
    }
    let is_hidden = |folder: &Path| {
        folder.ancestors().any(|at| match (at.parent(), at.file_name()) {
            (Some(around), Some(name)) => masks.get(around).is_some_and(|mask| !mask.shows(name)),
            _ => false,
        })
    };
    let gone: BTreeSet<PathBuf> = masks.keys().filter(|folder| is_hidden(folder)).cloned().collect();
    masks.retain(|folder, _| !gone.contains(folder));
    masks
}

/// Folders that are masked for a program, as they were. A mask has the entries of its beginning: a file that is made or replaced later is not in it.
pub(crate) struct MaskedFolders(Vec<(PathBuf, Option<Mark>)>);

/// The number of a folder, its links, and when an entry of it was last made, replaced or removed, in seconds and nanoseconds. On most file systems a
/// folder has a link for each folder in it, so one that is made within the same tick of the clock is seen, too.
type Mark = (u64, u64, i64, i64);

impl MaskedFolders {
    /// Those of the files at `root`, where `hidden` does not exist.
    pub fn new(root: &Path, hidden: &[FilePath]) -> Self {
        let marked = |folder: PathBuf| {
            let was = mark(&folder);
            (folder, was)
        };
        Self(folder_masks(root, hidden).into_keys().map(marked).collect())
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
    fn the_nearest_folder_that_is_there_is_masked() {
        let files = tempfile::tempdir().unwrap();
        fs::create_dir_all(files.path().join("users/me")).unwrap();
        fs::write(files.path().join("note"), "a file").unwrap();
        let masks = |paths: &[&str]| {
            let hidden = hidden(paths);
            let masks = folder_masks(files.path(), &hidden).into_iter();
            let shown = masks.map(|(folder, mask)| {
                let folder = folder.strip_prefix(files.path()).unwrap().display().to_string();
                (folder, mask.without.into_iter().map(str::to_owned).collect::<Vec<_>>())
            });
            shown.collect::<Vec<_>>()
        };
        let one = |folder: &str, names: &[&str]| {
            vec![(folder.to_owned(), names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())]
        };
        assert_eq!(masks(&["/users/gone", "/users/other"]), one("users", &["gone", "other"]));
        assert_eq!(masks(&["/vault"]), one("", &["vault"]));
        assert_eq!(masks(&["/data/deep/key"]), one("", &["data"]), "nothing of it is there yet");
        assert_eq!(masks(&["/note/key"]), one("", &[]), "a file stays");
        assert_eq!(masks(&["/users/me/a/key"]), one("users/me", &["a"]));
    }

    #[test]
    fn of_the_homes_only_that_of_the_caller_is_shown_whatever_else_is_there() {
        let files = tempfile::tempdir().unwrap();
        for at in ["me", "other", "joined", "-"] {
            fs::create_dir_all(files.path().join("users").join(at)).unwrap();
        }
        let shown = |paths: &[&str]| {
            let hidden = hidden(paths);
            let masks = folder_masks(files.path(), &hidden);
            assert_eq!(masks.keys().collect::<Vec<_>>(), [&files.path().join("users")], "{paths:?}");
            let mask = &masks[&files.path().join("users")];
            let all = fs::read_dir(files.path().join("users")).unwrap().map(|entry| entry.unwrap().file_name());
            all.filter(|name| mask.shows(name)).collect::<Vec<_>>()
        };
        assert_eq!(shown(&["/users/-/me", "/users/other"]), ["me"]);
        assert_eq!(shown(&["/users/-/me", "/users/joined/key"]), ["me"], "a folder that is not there needs no mask");
        assert!(shown(&["/users/-"]).is_empty());
        assert!(shown(&["/users/-/me", "/users/me"]).is_empty(), "policies keep it from its person");
    }

    #[test]
    fn a_masked_folder_has_changed_with_its_entries() {
        let files = tempfile::tempdir().unwrap();
        fs::create_dir_all(files.path().join("users/me")).unwrap();
        let masked = MaskedFolders::new(files.path(), &hidden(&["/users/-"]));
        fs::write(files.path().join("users/me/draft"), "in the home").unwrap();
        fs::write(files.path().join("note"), "beside the homes").unwrap();
        assert!(!masked.have_changed());
        fs::rename(files.path().join("users"), files.path().join("before")).unwrap();
        assert!(masked.have_changed(), "it is gone");
        fs::create_dir_all(files.path().join("users/me")).unwrap();
        assert!(masked.have_changed(), "another folder has its name");
    }
}
