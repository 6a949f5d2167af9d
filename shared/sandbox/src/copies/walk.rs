//! The files of a working copy that may be the workspace's, too.
//!
//! The agent owns all that is read here, the `.gitignore` files among it. So each folder is opened name by name and through no link, a
//! `.gitignore` counts only as a regular file, and all of them together have a bound: one may be a pipe without a writer, a link to an endless
//! device, or a file of any length.

use crate::plan::{FILE, FOLDER, open_below};
use domain::FilePath;
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use ports::MOST_COPIED;
use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, fstat, open, openat, statat},
    io::Errno,
};
use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::OwnedFd,
    path::Path,
    sync::Arc,
};

/// Folders that programs fill, at any depth: they are never of the workspace.
const FILLED: [&str; 6] = [".git", "node_modules", "target", ".venv", "__pycache__", ".buildscale"];
/// The most folders that are looked into.
const MOST_FOLDERS: usize = 200_000;
/// The most bytes of all `.gitignore` files together: each pattern takes some kilobytes of memory.
const MOST_RULES: u64 = 512 << 10;
/// The longest line of one that counts, in bytes, and the most braces in it: the library recurses into them.
const LONGEST_RULE: usize = 1024;
const MOST_BRACES: usize = 16;

/// The result of a walk.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Walked {
    Files(Vec<FilePath>),
    /// There is more than a working copy may have: of this.
    TooMuch(String),
}

/// The rules of a folder's `.gitignore`, and of those above it.
struct Rules {
    own: Gitignore,
    above: Option<Arc<Self>>,
}

impl Rules {
    /// Whether they name a path. The nearest rule decides.
    fn name(rules: Option<&Arc<Self>>, path: &Path, is_folder: bool) -> bool {
        let mut next = rules;
        while let Some(rules) = next {
            match rules.own.matched(path, is_folder) {
                Match::None => next = rules.above.as_ref(),
                found => return found.is_ignore(),
            }
        }
        false
    }
}

/// The files at and below a folder that are not left out.
///
/// # Errors
/// Those of the disk. Entries that go away meanwhile, and those that the agent has closed even for itself, are passed over.
pub(super) fn walked(root: &Path, folder: &FilePath) -> io::Result<Walked> {
    let (mut found, mut looked_into, mut room) = (Vec::new(), 0, MOST_RULES);
    let mut folders: Vec<(FilePath, Option<Arc<Rules>>)> = vec![(folder.clone(), None)];
    while let Some((at, above)) = folders.pop() {
        let here = match opened(root, &at) {
            Err(error) if passed_over(error.kind()) => continue,
            here => here?,
        };
        looked_into += 1;
        let Some(text) = ignored_in(&here, room)? else {
            return Ok(Walked::TooMuch(format!("more than {} KiB of .gitignore files", MOST_RULES >> 10)));
        };
        room -= text.len() as u64;
        let rules =
            if text.is_empty() { above } else { Some(Arc::new(rules_of(&root.join(at.relative()), &text, above))) };
        // It opens the folder anew, by its own `.`: one that may be read and not entered is closed, too.
        let entries = match Dir::read_from(&here).map_err(io::Error::from) {
            Err(error) if passed_over(error.kind()) => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = match entry.map_err(io::Error::from) {
                Err(error) if passed_over(error.kind()) => break,
                entry => entry?,
            };
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || FILLED.contains(&name) {
                continue;
            }
            // A name that no path of a workspace has stays in the copy.
            let Ok(path) = at.join(name) else { continue };
            let kind = match entry.file_type() {
                FileType::Unknown => match statat(&here, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => continue,
                    stat => FileType::from_raw_mode(stat?.st_mode),
                },
                kind => kind,
            };
            if !(kind.is_dir() || kind.is_file())
                || Rules::name(rules.as_ref(), &root.join(path.relative()), kind.is_dir())
            {
                continue;
            }
            if kind.is_dir() {
                folders.push((path, rules.clone()));
                if looked_into + folders.len() > MOST_FOLDERS {
                    return Ok(Walked::TooMuch(format!("more than {MOST_FOLDERS} folders")));
                }
                continue;
            }
            found.push(path);
            if found.len() > MOST_COPIED {
                return Ok(Walked::TooMuch(format!("more than {MOST_COPIED} files")));
            }
        }
    }
    Ok(Walked::Files(found))
}

/// The errors of a walk over files that their owner changes or closes meanwhile.
fn passed_over(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory)
}

/// Opens a folder of the copy.
fn opened(root: &Path, at: &FilePath) -> io::Result<OwnedFd> {
    let root = open(root, FOLDER, Mode::empty())?;
    open_below(root, at).map_err(|error| match error {
        // A link has taken the place of the folder.
        Errno::LOOP => io::ErrorKind::NotFound.into(),
        error => error.into(),
    })
}

/// The text of a folder's `.gitignore`, empty where there is none; none where it is longer than `room` in bytes.
fn ignored_in(folder: &OwnedFd, room: u64) -> io::Result<Option<String>> {
    let file = match openat(folder, ".gitignore", FILE, Mode::empty()) {
        // There is none, or it is a link, a socket, or closed.
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::ACCESS) => return Ok(Some(String::new())),
        file => file?,
    };
    if !FileType::from_raw_mode(fstat(&file)?.st_mode).is_file() {
        return Ok(Some(String::new()));
    }
    let mut text = Vec::new();
    File::from(file).take(room + 1).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok((text.len() as u64 <= room).then_some(text))
}

fn rules_of(folder: &Path, text: &str, above: Option<Arc<Rules>>) -> Rules {
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{feff}').lines() {
        if line.len() > LONGEST_RULE || line.matches('{').count() > MOST_BRACES {
            continue;
        }
        if let Err(error) = builder.add_line(None, line) {
            tracing::debug!(%error, "a line of a .gitignore is no pattern, and names nothing");
        }
    }
    Rules { own: builder.build().unwrap_or_else(|_| Gitignore::empty()), above }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
        process::Command,
    };

    fn files(root: &Path) -> Vec<String> {
        let Walked::Files(found) = walked(root, &FilePath::root()).unwrap() else { panic!("it is too much") };
        let mut found: Vec<String> = found.into_iter().map(|path| path.as_str().to_owned()).collect();
        found.sort();
        found
    }

    fn put(root: &Path, name: &str, content: &str) {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), content).unwrap();
    }

    #[test]
    fn the_nearest_rule_decides_and_folders_that_are_named_are_not_looked_into() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), ".gitignore", "\u{feff}*.log\n# a remark\n/out\nbuild/\n");
        put(root.path(), "deep/.gitignore", "!kept.log\r\n[\n/own\n");
        for name in ["a.log", "deep/a.log", "deep/kept.log", "deep/own/x", "own/x", "out/x", "deep/out", "deep/build/x"]
        {
            put(root.path(), name, "x");
        }
        put(root.path(), "deep/node_modules/m", "x");
        assert_eq!(files(root.path()), ["/.gitignore", "/deep/.gitignore", "/deep/kept.log", "/deep/out", "/own/x"]);
    }

    #[test]
    fn a_gitignore_that_is_no_plain_file_is_neither_waited_for_nor_followed() {
        let root = tempfile::tempdir().unwrap();
        for name in ["pipe/a", "endless/a", "folder/.gitignore/a", "gone/a"] {
            put(root.path(), name, "x");
        }
        assert!(Command::new("mkfifo").arg(root.path().join("pipe/.gitignore")).status().unwrap().success());
        symlink("/dev/zero", root.path().join("endless/.gitignore")).unwrap();
        symlink("/nowhere", root.path().join("gone/.gitignore")).unwrap();
        assert_eq!(files(root.path()), ["/endless/a", "/folder/.gitignore/a", "/gone/a", "/pipe/a"]);
    }

    #[test]
    fn a_rule_with_braces_in_braces_without_end_names_nothing() {
        let root = tempfile::tempdir().unwrap();
        let (open, close) = ("{".repeat(100_000), "}".repeat(100_000));
        put(root.path(), ".gitignore", &format!("{open}a{close}\n*.log\n"));
        for name in ["a", "b.log"] {
            put(root.path(), name, "x");
        }
        assert_eq!(files(root.path()), ["/.gitignore", "/a"]);
    }

    #[test]
    fn rules_without_end_are_refused_and_not_read() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "a", "x");
        // It has holes: a terabyte that takes no room.
        File::create(root.path().join(".gitignore")).unwrap().set_len(1 << 40).unwrap();
        let refused = Walked::TooMuch("more than 512 KiB of .gitignore files".into());
        assert_eq!(walked(root.path(), &FilePath::root()).unwrap(), refused);
    }

    #[test]
    fn what_the_agent_has_closed_or_has_as_a_link_is_passed_over() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(root.path(), "a", "x");
        put(root.path(), "closed/b", "x");
        put(outside.path(), "secret", "x");
        symlink(outside.path(), root.path().join("link")).unwrap();
        // One may be read and not entered, the other neither.
        for closed in [0o600, 0o000] {
            fs::set_permissions(root.path().join("closed"), fs::Permissions::from_mode(closed)).unwrap();
            let found = files(root.path());
            fs::set_permissions(root.path().join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
            // To root nothing is closed.
            assert!(found == ["/a"] || found == ["/a", "/closed/b"], "{closed:o}: {found:?}");
        }
        assert_eq!(walked(root.path(), &"/link".parse().unwrap()).unwrap(), Walked::Files(Vec::new()));
        assert_eq!(walked(root.path(), &"/nowhere".parse().unwrap()).unwrap(), Walked::Files(Vec::new()));
    }
}
