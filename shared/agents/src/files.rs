//! Files that an agent reads and writes through us: inside the allowed roots alone, and with a bound.
//!
//! The agent may change its folders at any moment, and walls that hold it do not hold this process. So a path that was found to be inside is opened
//! name by name from its root, and through no link: one that the agent puts there meanwhile leads nowhere.

use crate::roots::Roots;
use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdirat, open, openat, renameat, statat, unlinkat},
    io::Errno,
};
use serde_json::{Value, json};
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::OwnedFd,
    path::Path,
};

/// The longest file that is read or written through us, in bytes.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// By `PATH` a folder needs to be passed only, and not to be listed.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Without `NONBLOCK` a pipe in the place of a file would be waited for.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const MADE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The modes of what is made here, which the umask narrows, and the bits of a file that its next content keeps.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const KEPT_MODE: Mode = Mode::from_raw_mode(0o777);

/// Answers `fs/read_text_file`.
pub(crate) fn read(roots: &Roots, params: &Value) -> io::Result<Value> {
    let path = roots.file(params["path"].as_str().unwrap_or_default())?;
    let mut text = String::new();
    let read = opened(roots, &path)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_FILE {
        return Err(too_long());
    }
    let from = params["line"].as_u64().unwrap_or(1).max(1) - 1;
    let most = params["limit"].as_u64().unwrap_or(u64::MAX);
    if from > 0 || most < u64::MAX {
        let (from, most) = (usize::try_from(from).unwrap_or(usize::MAX), usize::try_from(most).unwrap_or(usize::MAX));
        text = text.split_inclusive('\n').skip(from).take(most).collect();
    }
    Ok(json!({ "content": text }))
}

/// Answers `fs/write_text_file`. The file is whole or as it was before: it is written beside its place and renamed.
pub(crate) fn write(roots: &Roots, params: &Value) -> io::Result<Value> {
    let path = roots.target(params["path"].as_str().unwrap_or_default())?;
    let content = params["content"].as_str().unwrap_or_default();
    if content.len() as u64 > MAX_FILE {
        return Err(too_long());
    }
    put(roots, &path, content).map(|()| json!({}))
}

/// Opens a file by its resolved path.
fn opened(roots: &Roots, path: &Path) -> io::Result<File> {
    let (folder, name) = placed(roots, path, false)?;
    let file = openat(&folder, name, READ, Mode::empty())?;
    if !FileType::from_raw_mode(fstat(&file)?.st_mode).is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    Ok(File::from(file))
}

/// Puts a content at a resolved path. Folders on the way are made.
fn put(roots: &Roots, path: &Path, content: &str) -> io::Result<()> {
    let (folder, name) = placed(roots, path, true)?;
    let beside = format!(".buildscale-{}", uuid::Uuid::now_v7().simple());
    let old = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|old| old.st_mode);
    let old = old.filter(|mode| FileType::from_raw_mode(*mode).is_file());
    let mode = old.map(|mode| Mode::from_raw_mode(mode) & KEPT_MODE);
    let mut file = File::from(openat(&folder, &beside, MADE, FILE_MODE)?);
    let written = file
        .write_all(content.as_bytes())
        .and_then(|()| Ok(mode.map_or(Ok(()), |mode| fchmod(&file, mode))?))
        .and_then(|()| Ok(renameat(&folder, &beside, &folder, name)?));
    if written.is_err()
        && let Err(error) = unlinkat(&folder, &beside, AtFlags::empty())
    {
        tracing::debug!(%error, "a file that was not put in its place stays");
    }
    written
}

/// The folder that has the file of a resolved path, and its name there. With `make`, missing folders are made.
fn placed<'a>(roots: &Roots, path: &'a Path, make: bool) -> io::Result<(OwnedFd, &'a OsStr)> {
    let outside = || io::Error::from(io::ErrorKind::PermissionDenied);
    let (above, name) = path.parent().zip(path.file_name()).ok_or_else(outside)?;
    // The outermost one: an agent may move another one that is in it.
    let around = roots.all().iter().filter(|root| above.starts_with(root));
    let root = around.min_by_key(|root| root.as_os_str().len()).ok_or_else(outside)?;
    let mut folder = open(root, FOLDER, Mode::empty())?;
    for name in above.strip_prefix(root).map_err(io::Error::other)? {
        folder = match openat(&folder, name, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) if make => {
                match mkdirat(&folder, name, FOLDER_MODE) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                openat(&folder, name, FOLDER, Mode::empty())?
            }
            next => next?,
        };
    }
    Ok((folder, name))
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("files of more than {} MiB are not passed on", MAX_FILE >> 20))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
        path::PathBuf,
        process::Command,
    };

    /// A root with a folder, which the agent replaces by a link to another folder after its path was found to be inside.
    fn replaced() -> (tempfile::TempDir, Roots, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::create_dir_all(at("in/deep")).unwrap();
        fs::create_dir_all(at("out")).unwrap();
        fs::write(at("in/deep/a"), "mine").unwrap();
        fs::write(at("out/a"), "secret").unwrap();
        let roots = Roots::new([at("in"), at("in/deep")]);
        let path = roots.file(at("in/deep/a").to_str().unwrap()).unwrap();
        fs::rename(at("in/deep"), at("in/moved")).unwrap();
        symlink(at("out"), at("in/deep")).unwrap();
        (home, roots, path)
    }

    #[test]
    fn a_link_that_is_put_into_the_way_meanwhile_leads_nowhere() {
        let (home, roots, path) = replaced();
        assert!(opened(&roots, &path).is_err());
        assert!(put(&roots, &path, "mine").is_err());
        assert!(put(&roots, &path.with_file_name("new"), "mine").is_err());
        assert_eq!(fs::read_to_string(home.path().join("out/a")).unwrap(), "secret");
        assert_eq!(fs::read_dir(home.path().join("out")).unwrap().count(), 1);
    }

    #[test]
    fn a_link_in_the_place_of_a_file_is_replaced_and_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        fs::create_dir(root.join("in")).unwrap();
        fs::write(root.join("secret"), "secret").unwrap();
        let (roots, path) = (Roots::new([root.join("in")]), root.join("in/a"));
        symlink(root.join("secret"), &path).unwrap();
        assert!(opened(&roots, &path).is_err());
        put(&roots, &path, "mine").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert_eq!(fs::read_to_string(root.join("secret")).unwrap(), "secret");
    }

    #[test]
    fn files_are_read_and_written_and_keep_their_mode() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let roots = Roots::new([root.clone()]);
        let path = root.join("new/deep/run.sh");
        let params = |content: &str| json!({ "path": path, "content": content });
        write(&roots, &params("one\ntwo\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        write(&roots, &params("one\ntwo\nthree\n")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
        let read = read(&roots, &json!({ "path": path, "line": 2, "limit": 1 })).unwrap();
        assert_eq!(read, json!({ "content": "two\n" }));
        assert_eq!(fs::read_dir(root.join("new/deep")).unwrap().count(), 1, "nothing stays beside it");
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let (roots, path) = (Roots::new([root.clone()]), root.join("pipe"));
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(read(&roots, &json!({ "path": path })).is_err());
    }
}
