//! Scratch folders: a command may write to one for as long as it runs.

use domain::CallId;
use processes::ProcessStat;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Stat, fstat, statat};
use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::DirBuilderExt,
    },
    path::{Path, PathBuf},
};
use workspace::removal::{folder, remove_all};

/// How many entries a scratch folder may have, of any size.
const ENTRIES: u64 = 200_000;

/// A folder that goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one. It has this process in its name, so that a later process knows the leftovers.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn make(within: &Path, call: CallId) -> io::Result<Self> {
        let mut made = fs::DirBuilder::new();
        made.recursive(true).mode(0o700).create(within)?;
        let path = within.canonicalize()?.join(format!("{}-{call}", owner(std::process::id())));
        clear(&path)?;
        made.recursive(false).create(&path)?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it, also if the command has closed it.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn open(&self) -> io::Result<OwnedFd> {
        Ok(folder(CWD, self.path.as_path())?)
    }

    /// Removes it now.
    ///
    /// # Errors
    /// Those of the disk. Dropping it tries again.
    pub fn remove(&self) -> io::Result<()> {
        clear(&self.path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            tracing::warn!(%error, folder = %self.path.display(), "a scratch folder is left behind");
        }
    }
}

/// A process by its number and the moment of its start, in ticks since that of the machine: in a container each start of the host has the same number.
fn owner(process: u32) -> String {
    format!("{process}.{}", ProcessStat::of(process).map_or(0, |stat| stat.started))
}

/// Removes the folders of processes that are gone: a killed one could not.
pub(crate) fn sweep(within: &Path) {
    for entry in fs::read_dir(within).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some((of, _)) = name.to_str().and_then(|name| name.split_once('-')) else { continue };
        // Folders of an older version have the number alone.
        let process = of.split_once('.').map_or(of, |(process, _)| process);
        let Ok(process) = process.parse::<u32>() else { continue };
        let is_gone = match of.contains('.') {
            true => owner(process) != of,
            false => process == std::process::id() || !Path::new("/proc").join(process.to_string()).exists(),
        };
        if is_gone && let Err(error) = clear(&entry.path()) {
            tracing::warn!(%error, folder = %entry.path().display(), "a scratch folder is left behind");
        }
    }
}

/// Whether the files below a folder take more than `limit` bytes, with `beside` bytes of unlinked ones. Entries that vanish
/// meanwhile count as nothing, and a look ends when the folder that it is in was moved. One folder is open at a time, and none by its path: a command
/// nests them as deep as it likes.
pub(crate) fn is_over(scratch: &Path, beside: u64, limit: u64) -> bool {
    let Ok(mut at) = folder(CWD, scratch) else { return false };
    let mut found = ScratchUse { bytes: beside, entries: 0 };
    let mut levels = vec![(fstat(&at).ok(), found.add(&at))];
    while found.bytes <= limit && found.entries <= ENTRIES {
        match levels.last_mut().map(|(_, names)| names.pop()) {
            Some(Some(name)) => {
                if let Ok(below) = folder(at.as_fd(), name.as_c_str()) {
                    levels.push((fstat(&below).ok(), found.add(&below)));
                    at = below;
                }
            }
            Some(None) => {
                levels.pop();
                let above = levels.last().and_then(|(above, _)| up(&at, above.as_ref()?));
                let Some(above) = above else { return false };
                at = above;
            }
            None => return false,
        }
    }
    true
}

/// The folder above, if it is this one. From a folder that the command has moved, the way up would lead out of the scratch folder.
fn up(from: &OwnedFd, to: &Stat) -> Option<OwnedFd> {
    let above = folder(from.as_fd(), c"..").ok()?;
    let found = fstat(&above).ok()?;
    ((found.st_dev, found.st_ino) == (to.st_dev, to.st_ino)).then_some(above)
}

struct ScratchUse {
    bytes: u64,
    entries: u64,
}

impl ScratchUse {
    /// Counts the entries of a folder; returns the folders among them.
    fn add(&mut self, folder: &OwnedFd) -> Vec<CString> {
        let mut folders = Vec::new();
        for entry in Dir::read_from(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.entries += 1;
            // Blocks and not lengths: a file with holes takes no room.
            self.bytes = self.bytes.saturating_add(stat.st_blocks.cast_unsigned().saturating_mul(512));
            if FileType::from_raw_mode(stat.st_mode).is_dir() {
                folders.push(name.to_owned());
            }
        }
        folders
    }
}

/// Removes a folder, if there is one.
fn clear(path: &Path) -> io::Result<()> {
    match remove_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    use std::{io::Write, os::unix::fs::PermissionsExt};
    use uuid::Uuid;

    #[test]
    fn a_folder_goes_with_all_that_is_in_it_also_what_was_locked() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let scratch = Scratch::make(&home.path().join("scratch"), CallId::from(Uuid::from_u128(7)))?;
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o700);
        fs::create_dir_all(path.join("a/b"))?;
        fs::write(path.join("a/b/c"), "x")?;
        std::os::unix::fs::symlink("/", path.join("a/link"))?;
        fs::set_permissions(path.join("a/b"), fs::Permissions::from_mode(0o000))?;
        fs::set_permissions(path.join("a"), fs::Permissions::from_mode(0o500))?;
        drop(scratch);
        assert!(!path.exists());
        Ok(())
    }

    #[test]
    fn folders_of_processes_that_are_no_more_are_swept() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let mine = Scratch::make(home.path(), CallId::from(Uuid::from_u128(1)))?;
        // No process has a number over 2^22, and this one did not start with the machine.
        let (own, other) = (std::process::id(), std::os::unix::process::parent_id());
        for left in ["4294967295-0", "4294967295.7-1", &format!("{own}.1-2"), &format!("{own}-3")] {
            fs::create_dir(home.path().join(left))?;
        }
        let theirs = home.path().canonicalize()?.join(format!("{other}-4"));
        fs::create_dir(&theirs)?;
        fs::create_dir(home.path().join("else"))?;
        sweep(home.path());
        let mut names: Vec<_> = fs::read_dir(home.path())?.flatten().map(|entry| entry.path()).collect();
        names.sort();
        let mut kept = [mine.path().canonicalize()?, theirs, home.path().canonicalize()?.join("else")];
        kept.sort();
        assert_eq!(names, kept);
        Ok(())
    }

    #[test]
    fn the_way_up_from_a_folder_that_was_moved_ends() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        fs::create_dir_all(home.path().join("a/b/c"))?;
        let open = |path: &str| folder(CWD, home.path().join(path).as_path());
        let (above, c) = (fstat(open("a/b")?)?, open("a/b/c")?);
        assert!(up(&c, &above).is_some());
        fs::rename(home.path().join("a/b/c"), home.path().join("c"))?;
        assert!(up(&c, &above).is_none());
        Ok(())
    }

    #[test]
    fn entries_that_take_room_are_counted() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        // Deeper than a path is long, and locked.
        let mut at = folder(CWD, home.path())?;
        for _ in 0..3000 {
            mkdirat(&at, "ab", Mode::RWXU)?;
            at = folder(at.as_fd(), "ab")?;
        }
        fs::write(home.path().join("ab/ab/file"), vec![1; 100_000])?;
        let last = openat(&at, "last", OFlags::WRONLY | OFlags::CREATE, Mode::RWXU)?;
        fs::File::from(last).write_all(&vec![1; 100_000])?;
        for (beside, limit, over) in [(0, 50_000, true), (0, 150_000, true), (0, 100_000_000, false), (1, 0, true)] {
            assert_eq!(is_over(home.path(), beside, limit), over, "{limit}");
        }
        fs::set_permissions(home.path().join("ab"), fs::Permissions::from_mode(0o300))?;
        assert!(is_over(home.path(), 0, 150_000));
        remove_all(home.path())?;
        Ok(())
    }
}
