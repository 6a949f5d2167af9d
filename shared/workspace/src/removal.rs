//! Removes a folder with all below it, however deep and however locked.
//!
//! A program can nest folders until neither a stack nor a table of descriptors would hold the way down, and a path would be too
//! long for the kernel. So nothing here goes down: the folders in a child are moved up beside it, until the child has none and is
//! removed. Each folder moves once, and two descriptors are open at a time.

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat},
    io::Errno,
    path::Arg,
};
use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes the entry at `path`, a folder with all below it. Links are removed and not followed; a folder that its owner may not read is
/// made readable first.
///
/// # Errors
/// When there is nothing, and when the disk refuses; some of it may be gone then.
pub fn remove_all(path: &Path) -> io::Result<()> {
    match folder(CWD, path) {
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(unlinkat(CWD, path, AtFlags::empty())?),
        opened => empty(Dir::new(opened?)?)?,
    }
    Ok(unlinkat(CWD, path, AtFlags::REMOVEDIR)?)
}

/// Opens a folder, through no link, and for its owner also if its mode forbids it.
///
/// # Errors
/// `NOTDIR` or `LOOP` when it is not a folder; else the disk's error.
pub fn folder<P: Arg + Copy>(above: BorrowedFd<'_>, name: P) -> rustix::io::Result<OwnedFd> {
    match openat(above, name, FOLDER, Mode::empty()) {
        Err(Errno::ACCESS) => {
            unlock(above, name)?;
            openat(above, name, FOLDER, Mode::empty())
        }
        opened => opened,
    }
}

/// Gives a folder to its owner.
fn unlock<P: Arg + Copy>(above: BorrowedFd<'_>, name: P) -> rustix::io::Result<()> {
    // `chmodat` would follow a link.
    let found = statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => chmodat(above, name, Mode::RWXU, AtFlags::empty()),
        _ => Err(Errno::NOTDIR),
    }
}

fn empty(mut top: Dir) -> rustix::io::Result<()> {
    let mut moved = MovedFolders(0);
    loop {
        let mut found = false;
        while let Some(entry) = top.read() {
            let entry = entry?;
            let name = entry.file_name();
            if is_own(name) {
                continue;
            }
            found = true;
            let above = top.fd()?;
            if remove(above, name)? == Left::Folder {
                let child = Dir::new(folder(above, name)?)?;
                moved.up(child, above)?;
                remove(above, name)?;
            }
        }
        // Entries that were moved up may be behind the position of the reader, so the folder is read again.
        if !found {
            return Ok(());
        }
        top.rewind();
    }
}

#[derive(PartialEq, Eq)]
enum Left {
    Nothing,
    /// A folder with something in it.
    Folder,
}

/// Removes a file, a link or an empty folder.
fn remove(above: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<Left> {
    match unlinkat(above, name, AtFlags::empty()) {
        // POSIX has PERM for folders, Linux ISDIR.
        Err(Errno::ISDIR | Errno::PERM) => match unlinkat(above, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Left::Folder),
            Err(Errno::NOENT) | Ok(()) => Ok(Left::Nothing),
            Err(error) => Err(error),
        },
        Err(Errno::NOENT) | Ok(()) => Ok(Left::Nothing),
        Err(error) => Err(error),
    }
}

/// How many folders were moved up so far: their new names.
struct MovedFolders(u64);

impl MovedFolders {
    /// Empties a folder: its folders go into the one above.
    fn up(&mut self, mut child: Dir, above: BorrowedFd<'_>) -> rustix::io::Result<()> {
        loop {
            let mut found = false;
            while let Some(entry) = child.read() {
                let entry = entry?;
                let name = entry.file_name();
                if is_own(name) {
                    continue;
                }
                found = true;
                if remove(child.fd()?, name)? == Left::Folder {
                    self.one_up(child.fd()?, name, above)?;
                }
            }
            if !found {
                return Ok(());
            }
            child.rewind();
        }
    }

    fn one_up(&mut self, from: BorrowedFd<'_>, name: &CStr, above: BorrowedFd<'_>) -> rustix::io::Result<()> {
        loop {
            self.0 += 1;
            let free = CString::new(format!("\u{1}{}", self.0)).unwrap_or_default();
            match renameat(from, name, above, free.as_c_str()) {
                // Somebody has that name.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                // To move a folder is to write its `..`.
                Err(Errno::ACCESS) => {
                    unlock(from, name)?;
                    return renameat(from, name, above, free.as_c_str());
                }
                moved => return moved,
            }
        }
    }
}

fn is_own(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use rustix::fs::mkdirat;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
        sync::mpsc,
        thread,
    };

    fn nest(at: &Path, depth: usize) {
        fs::create_dir(at).unwrap();
        let mut at = openat(CWD, at, FOLDER, Mode::empty()).unwrap();
        for _ in 0..depth {
            mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = openat(&at, "d", FOLDER, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn folders_are_removed_however_deep_they_are() {
        let home = tempfile::tempdir().unwrap();
        let at = home.path().join("deep");
        nest(&at, 15_000);
        let (done, waits) = mpsc::channel();
        // A stack that holds no descent.
        let small = thread::Builder::new().stack_size(64 << 10);
        let removing = small.spawn(move || done.send(remove_all(&at).is_ok() && !at.exists()).unwrap()).unwrap();
        assert!(waits.recv().unwrap());
        removing.join().unwrap();
    }

    #[test]
    fn links_locks_and_odd_names_do_not_stop_a_removal() {
        let home = tempfile::tempdir().unwrap();
        let (kept, at) = (home.path().join("kept"), home.path().join("at"));
        fs::create_dir_all(at.join("a/b/c/d")).unwrap();
        fs::create_dir_all(at.join("\u{1}1/x")).unwrap();
        fs::write(at.join("\u{1}2"), "a file with the name of a folder that moves").unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "kept").unwrap();
        symlink(&kept, at.join("a/b/link")).unwrap();
        symlink(&kept, at.join("link")).unwrap();
        for locked in ["a/b/c", "a/b", "a"] {
            fs::set_permissions(at.join(locked), fs::Permissions::from_mode(0o300)).unwrap();
        }
        remove_all(&at).unwrap();
        assert!(!at.exists());
        assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "kept");
        let link = home.path().join("link");
        symlink(&kept, &link).unwrap();
        remove_all(&link).unwrap();
        assert!(fs::symlink_metadata(&link).is_err() && kept.exists());
        assert_eq!(remove_all(&at).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
