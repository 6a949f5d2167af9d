//! Puts a backup into a data folder, or only compares it with its digests.

use super::{
    BackupError, Progress, SECRETS, Summary, at,
    copy::{Copied, Copier, sync},
    manifest::{LOCK, Listed, Manifest, Part},
};
use crate::{
    host,
    layout::{STORE, WORKSPACES},
};
use embedded::Lock;
use ports::{Clock, LARGE, SystemClock};
use std::{
    fs::{self, File, Permissions},
    io::{self, BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};
use tokio::time::Instant;

/// The source and the destination of a restore.
#[derive(Clone, Copy, Debug)]
pub struct RestoreJob<'a> {
    /// The folder of the backup.
    pub from: &'a Path,
    /// The data folder, on which no hub runs.
    pub data: &'a Path,
    /// Whether the content of the data folder is moved aside.
    pub replace: bool,
    /// Whether a backup of which some files are damaged is restored without them.
    pub keep_going: bool,
}

/// The store, until everything else is there: a hub that starts before finds workspaces without a store, and refuses.
const PENDING: &str = "buildscale.sqlite3.restoring";
/// Entries that do not count as data: a restore leaves them in place.
const NO_DATA: [&str; 2] = ["buildscale.lock", "lost+found"];
/// How the folders begin into which things were moved.
const REPLACED: &str = "replaced-";

/// Compares every file of a backup with its digest. Writes nothing.
///
/// # Errors
/// [`BackupError::Damaged`] with the files that are not what was written.
pub fn check(from: &Path, tell: &mut dyn FnMut(Progress)) -> Result<Summary, BackupError> {
    let began = Instant::now();
    let (manifest, _lock) = open(from)?;
    let mut work = Work::new(from, tell);
    work.store(&manifest, None)?;
    work.contents(&manifest, None)?;
    work.files(&manifest, None)?;
    work.all_is_whole()?;
    Ok(work.summary(&manifest, None, began))
}

/// Puts a backup into a data folder. Every file is compared with its digest on the way, and the store gets its name last.
///
/// # Errors
/// See [`BackupError`]. After one the data folder has no store; another attempt begins anew.
pub fn restore(restoring: RestoreJob<'_>, tell: &mut dyn FnMut(Progress)) -> Result<Summary, BackupError> {
    let RestoreJob { from, data, replace, keep_going } = restoring;
    let began = Instant::now();
    let (manifest, _reading) = open(from)?;
    let store = data.join(STORE);
    // It would be moved aside with the earlier content, or stand in the way of the restored one. A folder that is not there has nothing in it.
    if let (Ok(inside), Ok(real)) = (from.canonicalize(), data.canonicalize())
        && inside.starts_with(real)
    {
        return Err(BackupError::Inside(from.to_owned()));
    }
    host::keep_private(data).map_err(at(data))?;
    let _lock = Lock::take(&store)?;
    let moved_to = make_way(data, &manifest, replace)?;

    let mut work = Work::new(from, tell);
    let pending = data.join(PENDING);
    work.store(&manifest, Some(&pending))?;
    // Nothing helps against a store that is not what was written.
    work.all_is_whole()?;
    work.contents(&manifest, Some(&data.join(WORKSPACES)))?;
    work.files(&manifest, Some(data))?;
    if !keep_going {
        work.all_is_whole()?;
    }
    sync(data).map_err(at(data))?;
    fs::rename(&pending, &store).map_err(at(&store))?;
    File::open(data).and_then(|folder| folder.sync_all()).map_err(at(data))?;
    Ok(work.summary(&manifest, moved_to, began))
}

/// The manifest, and a lock that keeps the backup as it is.
fn open(from: &Path) -> Result<(Manifest, Option<File>), BackupError> {
    // From a disk that cannot be written to it is read all the same.
    let lock = File::open(from.join(LOCK)).ok();
    if let Some(Err(fs::TryLockError::WouldBlock)) = lock.as_ref().map(File::try_lock_shared) {
        return Err(BackupError::Busy(from.to_owned()));
    }
    match Manifest::read(from)? {
        Some(manifest) => Ok((manifest, lock)),
        None if lock.is_some() => Err(BackupError::NotWhole(from.to_owned())),
        None => Err(BackupError::NotABackup(from.to_owned())),
    }
}

/// Moves the content of the data folder aside, or refuses. An operator may have put a configuration there already: it stays
/// unless the backup has one.
fn make_way(data: &Path, manifest: &Manifest, replace: bool) -> Result<Option<PathBuf>, BackupError> {
    let brings = |name: &str| manifest.files.iter().any(|file| Path::new(&file.path).starts_with(name));
    let mut found = Vec::new();
    for entry in fs::read_dir(data).map_err(at(data))? {
        let name = entry.map_err(at(data))?.file_name().to_string_lossy().into_owned();
        let stays = NO_DATA.contains(&name.as_str())
            || name.starts_with(REPLACED)
            || (SECRETS.contains(&name.as_str()) && !brings(&name));
        if !stays {
            found.push(name);
        }
    }
    found.sort_unstable();
    let has = |wanted: &str| found.iter().any(|name| name == wanted);
    if has(PENDING) && !has(STORE) {
        // An interrupted restore left these. It began only after the earlier content was gone, so they are its own.
        for name in found.drain(..).filter(|name| name == PENDING || name == WORKSPACES || brings(name)) {
            let path = data.join(name);
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(at(&path))?;
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    if !replace {
        let has = found.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(BackupError::NotEmpty { path: data.to_owned(), has });
    }
    let aside = data.join(format!("{REPLACED}{}", SystemClock.now().as_millis()));
    fs::create_dir(&aside).map_err(at(&aside))?;
    // The store goes first: from then on no hub would start on the rest.
    found.sort_by_key(|name| name != STORE);
    for name in found {
        let path = data.join(&name);
        fs::rename(&path, aside.join(&name)).map_err(at(&path))?;
    }
    Ok(Some(aside))
}

/// The state of a restore under way.
struct Work<'a> {
    from: &'a Path,
    copier: Copier,
    tell: &'a mut dyn FnMut(Progress),
    progress: Progress,
    wrong: Vec<String>,
}

impl<'a> Work<'a> {
    fn new(from: &'a Path, tell: &'a mut dyn FnMut(Progress)) -> Self {
        Self { from, copier: Copier::new(), tell, progress: Progress::default(), wrong: Vec::new() }
    }

    fn begin(&mut self, part: &'static str) {
        self.progress.part = part;
        (self.tell)(self.progress);
    }

    /// Compares a file of the backup with what was written, and copies it if it is that.
    fn take(&mut self, file: &str, is: Copied, to: Option<&Path>) -> Result<(), BackupError> {
        let from = self.from.join(file);
        let read = match to {
            Some(to) => self.copier.copy(&from, to, |read| read == is),
            None => self.copier.read(&from),
        };
        let is_unreadable = |error: &io::Error| {
            // A disk that cannot read a part of a file says so. Anything else may be the fault of where it is copied to.
            !from.exists() || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
        };
        match read {
            Ok(read) if read == is => {
                self.progress.files += 1;
                self.progress.bytes += read.bytes;
                (self.tell)(self.progress);
            }
            Ok(_) => self.wrong.push(file.to_owned()),
            Err(error) if is_unreadable(&error) => self.wrong.push(file.to_owned()),
            Err(source) => return Err(BackupError::Io { path: to.unwrap_or(&from).to_owned(), source }),
        }
        Ok(())
    }

    fn store(&mut self, manifest: &Manifest, to: Option<&Path>) -> Result<(), BackupError> {
        self.begin("store");
        self.take(&manifest.store.path, manifest.store.expected(), to)
    }

    fn contents(&mut self, manifest: &Manifest, into: Option<&Path>) -> Result<(), BackupError> {
        self.begin("contents");
        let list = self.from.join(&manifest.list.path);
        if self.copier.read(&list).ok() != Some(manifest.list.expected()) {
            return Err(BackupError::Damaged { path: self.from.to_owned(), files: vec![manifest.list.path.clone()] });
        }
        for line in BufReader::new(File::open(&list).map_err(at(&list))?).lines() {
            let line = line.map_err(at(&list))?;
            let Some(listed) = Listed::read(&line) else {
                return Err(BackupError::Damaged {
                    path: self.from.to_owned(),
                    files: vec![manifest.list.path.clone()],
                });
            };
            let place = Path::new(WORKSPACES).join(listed.place());
            let to = into.map(|into| into.join(listed.place()));
            let before = self.wrong.len();
            let is = Copied { bytes: listed.bytes, digest: listed.digest };
            self.take(&place.display().to_string(), is, to.as_deref())?;
            if let (Some(to), true) = (to, self.wrong.len() == before) {
                self.finish(&place, &to, listed.bytes)?;
            }
        }
        Ok(())
    }

    /// Gives a content the mode that a hub gives it, under any umask: commands of a workspace read links to large ones. The list
    /// of its chunks goes along; one that is damaged is made again.
    fn finish(&mut self, place: &Path, to: &Path, bytes: u64) -> Result<(), BackupError> {
        let mode = if bytes > LARGE { 0o444 } else { 0o644 };
        fs::set_permissions(to, Permissions::from_mode(mode)).map_err(at(to))?;
        if bytes > LARGE {
            let list = self.from.join(place).with_extension("chunks");
            match self.copier.copy(&list, &to.with_extension("chunks"), |_| true) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(BackupError::Io { path: list, source: error });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn files(&mut self, manifest: &Manifest, into: Option<&Path>) -> Result<(), BackupError> {
        self.begin("files");
        for part in &manifest.files {
            let to = into.map(|into| into.join(&part.path));
            let before = self.wrong.len();
            self.take(&format!("{}/{}", manifest.files_in, part.path), part.expected(), to.as_deref())?;
            let is_secret = SECRETS.iter().any(|name| Path::new(&part.path).starts_with(name));
            if let (Some(to), true, true) = (to, is_secret, self.wrong.len() == before) {
                fs::set_permissions(&to, Permissions::from_mode(0o600)).map_err(at(&to))?;
            }
        }
        Ok(())
    }

    fn all_is_whole(&mut self) -> Result<(), BackupError> {
        match std::mem::take(&mut self.wrong) {
            wrong if wrong.is_empty() => Ok(()),
            files => Err(BackupError::Damaged { path: self.from.to_owned(), files }),
        }
    }

    fn summary(self, manifest: &Manifest, moved_to: Option<PathBuf>, began: Instant) -> Summary {
        Summary {
            made_at: manifest.made_at,
            files: manifest.count(),
            bytes: manifest.bytes(),
            copied_files: self.progress.files,
            copied_bytes: self.progress.bytes,
            damaged: self.wrong,
            left_out: Vec::new(),
            moved_to,
            took: began.elapsed(),
        }
    }
}

impl Part {
    fn expected(&self) -> Copied {
        Copied { bytes: self.bytes, digest: self.sha256 }
    }
}
