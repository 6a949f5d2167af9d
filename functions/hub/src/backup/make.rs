//! Makes a backup, or brings the one in a folder up to date.

use super::{
    BackupError, Progress, SECRETS, Summary, at,
    copy::{Copier, files_below, sync},
    manifest::{FORMAT, LOCK, Listed, MANIFEST, Manifest, Part},
};
use crate::layout::{STORE, WORKSPACES};
use domain::{Timestamp, WorkspaceId};
use embedded::{Hold, LocalBlobs, StoredContent};
use ports::{Blobs, Clock, Spilling, SystemClock};
use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, Permissions, TryLockError},
    io::{self, BufWriter, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::time::Instant;
use workspace::{Access, FileKind, Workspaces};

/// The folder that observers of tasks write to.
const OBSERVERS: &str = "observers";

/// The source and the destination of a backup.
#[derive(Clone, Copy, Debug)]
pub struct BackupJob<'a> {
    /// The hub's data folder.
    pub data: &'a Path,
    /// The folder of the backup: none yet, an empty one, or one with an earlier backup of this hub.
    pub into: &'a Path,
    /// Whether the configuration and the secrets of the data folder go with it.
    pub with_secrets: bool,
}

/// Makes a backup of a data folder, whether a hub runs on it or not. Until it is complete, an earlier one in the folder stays valid.
/// Reads and writes on the thread of the caller.
///
/// # Errors
/// See [`BackupError`]. Copied files stay, and the next backup into the folder goes on with them.
pub async fn make(making: BackupJob<'_>, tell: &mut dyn FnMut(Progress)) -> Result<Summary, BackupError> {
    let BackupJob { data, into, with_secrets } = making;
    let (began, made_at) = (Instant::now(), SystemClock.now());
    let store = data.join(STORE);
    if !store.is_file() {
        return Err(BackupError::NoData(data.to_owned()));
    }
    let _lock = claim(data, into)?;
    let previous = Manifest::read(into)?;
    tidy(into, previous.as_ref())?;
    let names = Names::new(into, made_at);

    let root = data.join(WORKSPACES);
    // This comes first: contents that are deleted from now on stay until all is copied.
    let hold = Hold::take(&root).map_err(at(&root))?;
    let mut copied = Work { copier: Copier::new(), tell, progress: Progress::default(), damaged: Vec::new() };
    copied.begin("store");
    let store_copy = into.join(&names.store);
    // SQLite takes a file that is empty, and would make one that everybody may read.
    private_file(&store_copy)?;
    let schema = embedded::copy_store(&store, &store_copy, |bytes| copied.tell(0, bytes))?;
    let store = copied.part(into, &names.store)?;
    copied.add(store.bytes);

    let index = index(&store_copy, &into.join(WORKSPACES));
    let (workspaces, trashed) = look(&index).await?;
    let is_ours = |earlier: &Manifest| earlier.workspaces.iter().any(|id| workspaces.contains(id));
    if previous.as_ref().is_some_and(|earlier| !earlier.workspaces.is_empty() && !is_ours(earlier)) {
        fs::remove_file(&store_copy).map_err(at(&store_copy))?;
        return Err(BackupError::OfAnother(into.to_owned()));
    }

    copied.begin("contents");
    keep_private(&into.join(WORKSPACES))?;
    let spaces = copied.contents(&hold, &into.join(WORKSPACES))?;
    let (list, contents, content_bytes) = list(into, &names.list, &spaces)?;

    copied.begin("files");
    keep_private(&into.join(&names.files))?;
    let (chosen, left_out) = others(data, trashed, with_secrets)?;
    let files = copied.files(data, &into.join(&names.files), chosen)?;

    sync(into).map_err(at(into))?;
    let program = env!("CARGO_PKG_VERSION").to_owned();
    let workspaces = workspaces.into_iter().collect();
    let files_in = names.files;
    let manifest = Manifest {
        format: FORMAT,
        program,
        made_at,
        schema,
        workspaces,
        store,
        list,
        contents,
        content_bytes,
        files,
        files_in,
    };
    manifest.write(into)?;
    // Only now: the manifest before this one referred to it.
    tidy(into, Some(&manifest))?;
    let kept = into.join(WORKSPACES);
    for gone in embedded::spaces(&kept)?.into_iter().filter(|space| !spaces.contains(space)) {
        let gone = kept.join(gone);
        fs::remove_dir_all(&gone).map_err(at(&gone))?;
    }
    Ok(Summary {
        made_at,
        files: manifest.count(),
        bytes: manifest.bytes(),
        copied_files: copied.progress.files,
        copied_bytes: copied.progress.bytes,
        damaged: copied.damaged,
        left_out,
        moved_to: None,
        took: began.elapsed(),
    })
}

/// Makes the folder of the backup if it is not there, and locks it for as long as the file is open.
fn claim(data: &Path, into: &Path) -> Result<File, BackupError> {
    DirBuilder::new().recursive(true).mode(0o700).create(into).map_err(at(into))?;
    let (real, inside) = (data.canonicalize().map_err(at(data))?, into.canonicalize().map_err(at(into))?);
    if inside.starts_with(real) {
        // Nothing is left of one that was made for this; another one is not empty.
        drop(fs::remove_dir(into));
        return Err(BackupError::Inside(into.to_owned()));
    }
    let lock = into.join(LOCK);
    let is_empty =
        fs::read_dir(into).map_err(at(into))?.all(|entry| entry.is_ok_and(|entry| entry.file_name() == "lost+found"));
    if !is_empty && !lock.exists() && !into.join(MANIFEST).exists() {
        return Err(BackupError::NotABackup(into.to_owned()));
    }
    let file = File::options().create(true).truncate(false).write(true).open(&lock).map_err(at(&lock))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BackupError::Busy(into.to_owned())),
        Err(TryLockError::Error(source)) => Err(BackupError::Io { path: lock, source }),
    }
}

/// Makes a folder that other users cannot look into, also where the operator made that of the backup for everybody.
fn keep_private(folder: &Path) -> Result<(), BackupError> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(at(folder))?;
    // An earlier version made it for everybody. A disk without modes refuses the change.
    drop(fs::set_permissions(folder, Permissions::from_mode(0o700)));
    Ok(())
}

/// Makes an empty file that other users cannot read.
fn private_file(path: &Path) -> Result<File, BackupError> {
    File::options().create(true).truncate(true).write(true).mode(0o600).open(path).map_err(at(path))
}

/// The names of this backup's own files; they differ from those of earlier backups.
struct Names {
    store: String,
    list: String,
    files: String,
}

impl Names {
    fn new(into: &Path, made_at: Timestamp) -> Self {
        let mut number = made_at.as_millis();
        loop {
            let (store, list) = (format!("store-{number}.sqlite3"), format!("contents-{number}.txt"));
            let files = format!("files-{number}");
            if [&store, &list, &files].iter().all(|name| !into.join(name).exists()) {
                return Self { store, list, files };
            }
            number += 1;
        }
    }
}

/// The files of a copy of the store: itself, and those that SQLite leaves beside one that broke off.
const STORE_ENDS: [&str; 4] = [".sqlite3", ".sqlite3-journal", ".sqlite3-wal", ".sqlite3-shm"];
/// The fewest digits of the number in a name, which is a time in milliseconds: `files-2024` is a folder of somebody else.
const LEAST_DIGITS: usize = 13;

/// Removes files of earlier backups that this manifest does not name. Anything else in the folder stays.
fn tidy(into: &Path, manifest: Option<&Manifest>) -> Result<(), BackupError> {
    for entry in fs::read_dir(into).map_err(at(into))? {
        let entry = entry.map_err(at(into))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if manifest.is_some_and(|kept| [&kept.store.path, &kept.list.path, &kept.files_in].contains(&&name)) {
            continue;
        }
        let (path, kind) = (entry.path(), entry.file_type().map_err(at(into))?);
        if kind.is_dir() && is_numbered(&name, "files-", &[""]) {
            fs::remove_dir_all(&path).map_err(at(&path))?;
        } else if kind.is_file()
            && (is_numbered(&name, "store-", &STORE_ENDS) || is_numbered(&name, "contents-", &[".txt"]))
        {
            fs::remove_file(&path).map_err(at(&path))?;
        }
    }
    Ok(())
}

/// Whether a name is one that [`Names::new`] gives: `begin`, a time, and one of these ends.
fn is_numbered(name: &str, begin: &str, ends: &[&str]) -> bool {
    let Some(rest) = name.strip_prefix(begin) else { return false };
    let is_time = |number: &str| number.len() >= LEAST_DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
    ends.iter().any(|end| rest.strip_suffix(end).is_some_and(is_time))
}

/// The index as the copy of the store has it.
fn index(store: &Path, contents: &Path) -> Workspaces {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let blobs: Arc<dyn Blobs> = Arc::new(LocalBlobs::new(contents));
    let table = Arc::new(Spilling::new(embedded::frozen_table(store, clock.clone()), blobs.clone()));
    Workspaces::new(table, blobs, clock, contents.to_owned())
}

/// All workspaces, and where in the data folder is what neither the store nor the archive has of them: projections in the trash. Those in
/// `latest/` are made again from their logs.
async fn look(index: &Workspaces) -> Result<(BTreeSet<WorkspaceId>, Vec<PathBuf>), BackupError> {
    const PAGE: usize = 200;
    let (mut workspaces, mut trashed, mut cursor) = (BTreeSet::new(), Vec::new(), None);
    loop {
        let page = index.list(PAGE, cursor).await.map_err(BackupError::Index)?;
        for workspace in page.workspaces {
            let id = workspace.workspace_id;
            workspaces.insert(id);
            let (files, mut cursor) =
                (index.open(id, Access::platform("a backup has everything")).await.map_err(BackupError::Index)?, None);
            loop {
                let page = files.trash(PAGE, cursor).await.map_err(BackupError::Index)?;
                let projections = page.files.iter().filter(|file| file.info.kind == FileKind::Projection);
                let place = |file: &workspace::Trashed| format!("{WORKSPACES}/{id}/trash/{}", file.info.file_id).into();
                trashed.extend(projections.map(place));
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok((workspaces, trashed));
        }
    }
}

/// The other files of the data folder to copy, and the files that are left out.
fn others(
    data: &Path,
    mut chosen: Vec<PathBuf>,
    with_secrets: bool,
) -> Result<(Vec<PathBuf>, Vec<String>), BackupError> {
    let mut left_out = Vec::new();
    let mut below = |name: &str| {
        let place = data.join(name);
        let found = if place.is_file() { vec![PathBuf::new()] } else { files_below(&place).map_err(at(&place))? };
        chosen.extend(
            found
                .into_iter()
                .map(|path| if path.as_os_str().is_empty() { name.into() } else { Path::new(name).join(path) }),
        );
        Ok::<_, BackupError>(())
    };
    below(OBSERVERS)?;
    for name in SECRETS {
        match data.join(name).exists() {
            true if with_secrets => below(name)?,
            true => left_out.push(name.to_owned()),
            false => {}
        }
    }
    Ok((chosen, left_out))
}

/// Writes the list of all contents of these spaces that the backup has; how many there are, and their bytes.
fn list(into: &Path, name: &str, spaces: &BTreeSet<String>) -> Result<(Part, u64, u64), BackupError> {
    let path = into.join(name);
    let mut out = BufWriter::new(private_file(&path)?);
    let (mut count, mut bytes) = (0, 0);
    let mut write = |StoredContent { space, digest, path: content }: StoredContent| {
        if spaces.contains(&space) {
            let listed = Listed { digest, bytes: fs::metadata(&content).map_err(at(&content))?.len(), space };
            (count, bytes) = (count + 1, bytes + listed.bytes);
            listed.write(&mut out).map_err(at(&path))?;
        }
        Ok::<_, BackupError>(())
    };
    embedded::contents(&into.join(WORKSPACES), &mut write)?;
    out.flush().map_err(at(&path))?;
    let read = Copier::new().read(&path).map_err(at(&path))?;
    Ok((Part { path: name.to_owned(), bytes: read.bytes, sha256: read.digest }, count, bytes))
}

/// The state of a backup under way.
struct Work<'a> {
    copier: Copier,
    tell: &'a mut dyn FnMut(Progress),
    progress: Progress,
    damaged: Vec<String>,
}

impl Work<'_> {
    fn begin(&mut self, part: &'static str) {
        self.progress.part = part;
        self.tell(0, 0);
    }

    /// Tells how far it has come, with this more.
    fn tell(&mut self, files: u64, bytes: u64) {
        let Progress { part, files: before, bytes: copied } = self.progress;
        (self.tell)(Progress { part, files: before + files, bytes: copied + bytes });
    }

    fn add(&mut self, bytes: u64) {
        self.progress.files += 1;
        self.progress.bytes += bytes;
        self.tell(0, 0);
    }

    /// A file that is in the backup already.
    fn part(&mut self, folder: &Path, name: &str) -> Result<Part, BackupError> {
        let path = folder.join(name);
        let read = self.copier.read(&path).map_err(at(&path))?;
        Ok(Part { path: name.to_owned(), bytes: read.bytes, sha256: read.digest })
    }

    /// Copies the contents that the backup does not have. Gives the spaces that there are.
    fn contents(&mut self, hold: &Hold, into: &Path) -> Result<BTreeSet<String>, BackupError> {
        let mut spaces: BTreeSet<String> = hold.spaces()?.into_iter().collect();
        hold.contents(|stored| {
            let StoredContent { space, digest, path } = &stored;
            let to = into.join(embedded::place_of(space, *digest));
            if !spaces.contains(space) {
                spaces.insert(space.clone());
            }
            let Some(length) = absent(fs::metadata(path)).map_err(at(path))?.map(|file| file.len()) else {
                // Moved aside meanwhile: it comes again, from there.
                return Ok(());
            };
            // A file has its name only when it is whole, so its length tells.
            if absent(fs::metadata(&to)).map_err(at(&to))?.is_some_and(|there| there.len() == length) {
                return Ok(());
            }
            match absent(self.copier.copy(path, &to, |read| read.digest == *digest)).map_err(at(path))? {
                Some(read) if read.digest == *digest => self.add(read.bytes),
                Some(_) => self.damaged.push(format!("{space}/{digest}")),
                None => return Ok(()),
            }
            let list = stored.list();
            absent(self.copier.copy(&list, &to.with_extension("chunks"), |_| true)).map_err(at(&list))?;
            Ok(())
        })
        .map(|()| spaces)
    }

    /// Copies other files of the data folder. One that has gone meanwhile is left out.
    fn files(&mut self, data: &Path, into: &Path, chosen: Vec<PathBuf>) -> Result<Vec<Part>, BackupError> {
        let mut parts = Vec::new();
        for path in chosen {
            let Some(name) = path.to_str().map(str::to_owned) else { continue };
            let from = data.join(&path);
            if let Some(read) = absent(self.copier.copy(&from, &into.join(&path), |_| true)).map_err(at(&from))? {
                self.add(read.bytes);
                parts.push(Part { path: name, bytes: read.bytes, sha256: read.digest });
            }
        }
        Ok(parts)
    }
}

fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_no_backup_made_stay_in_the_folder() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let into = folder.path();
        let names = Names::new(into, Timestamp::from_millis(1_764_460_800_000));
        let ours = [names.store.clone(), format!("{}-journal", names.store), names.list.clone()];
        let theirs =
            ["files-2024.txt", "store-2024.sqlite3", "contents-of-the-cellar.txt", "store-keys.sqlite3", "lock"];
        for name in ours.iter().map(String::as_str).chain(theirs) {
            fs::write(into.join(name), name)?;
        }
        // A file where a backup has a folder, and a folder where it has a file.
        fs::write(into.join("files-1764460800001"), "")?;
        for name in [names.files.as_str(), "files-2024", "files-old", "files-", "store-1764460800001.sqlite3"] {
            fs::create_dir(into.join(name))?;
            fs::write(into.join(name).join("within"), name)?;
        }
        tidy(into, None)?;
        for name in ours.iter().chain([&names.files]) {
            assert!(!into.join(name).exists(), "{name} is left of an earlier backup");
        }
        let folders = ["files-2024", "files-old", "files-", "store-1764460800001.sqlite3"];
        for name in theirs.into_iter().chain(["files-1764460800001"]).chain(folders) {
            assert!(into.join(name).exists(), "{name} is gone, and no backup made it");
        }
        Ok(())
    }
}
