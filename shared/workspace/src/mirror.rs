//! The mirror: a workspace's folder on disk, `{root}/{workspace_id}`, with `latest/`, `trash/`, `tmp/` and the mark.
//!
//! Nothing here follows a symbolic link below the workspace's folder: paths are walked one name at a time with `O_NOFOLLOW`, relative to
//! the folder opened before, so that a link planted in `latest/` (by a tool with a shell, say) leads nowhere, not even when it is planted
//! during the walk. If the index has a folder, a link in its place is replaced.
//!
//! Nothing here is synced but by [`Mirror::sync`]: see [`crate::Workspace::repair`].

mod swap;
mod trash;

use self::swap::swap;
use crate::removal::remove_all;
use domain::{FilePath, Timestamp};
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, fstat, linkat, mkdirat, open, openat, renameat, statat, unlinkat},
    io::Errno,
};
use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};
use uuid::Uuid;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o755);
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
/// Of a script that names its interpreter: it runs by its path.
const SCRIPT_MODE: Mode = Mode::from_raw_mode(0o755);

/// For a person who finds the folder.
const README: &str = "\
latest/ is a copy of the current files of this workspace, for reading. Changes that are made in it by hand are put
back, and files that are added there are not shown. To change files:

    buildscale files put FILE /projects/
    buildscale files sync FOLDER /projects/app

archive/ has the content of each version under its SHA-256. A file that is changed there is damaged.
";

/// The parts of a workspace's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Current files, under their paths.
    Latest,
    /// Removed files, under their file ids.
    Trash,
}

impl Area {
    fn name(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Trash => "trash",
        }
    }
}

/// The kinds of entries on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDisk {
    /// Nothing.
    Nothing,
    /// A folder.
    Folder,
    /// A file with this many bytes.
    File(u64),
    /// A link, a socket, a device: never one of ours.
    Stray,
}

/// A workspace's folder. Every method does blocking I/O.
///
/// # Errors
/// Every method returns the disk's error: when there is no room, no right or no such folder, or the device fails.
#[derive(Clone, Debug)]
pub struct Mirror {
    home: PathBuf,
}

impl Mirror {
    /// In `home`, which [`Mirror::lay_out`] makes.
    pub fn new(home: PathBuf) -> Self {
        Self { home }
    }

    /// The folder of current files.
    pub fn latest(&self) -> PathBuf {
        self.home.join(Area::Latest.name())
    }

    /// Makes the parts of the workspace's folder.
    ///
    /// # Errors
    /// Those of [`Mirror`].
    pub fn lay_out(&self) -> io::Result<()> {
        for part in ["latest", "archive", "trash", "tmp"] {
            fs::create_dir_all(self.home.join(part))?;
        }
        // Beside `latest/`: in it everything is a file of the workspace.
        match fs::File::create_new(self.home.join("README.txt")) {
            Ok(mut file) => file.write_all(README.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes all of it.
    ///
    /// # Errors
    /// Those of [`Mirror`]; a folder that is not there is fine. Some of it may be gone then.
    pub fn delete(&self) -> io::Result<()> {
        absent_is_fine(remove_all(&self.home))
    }

    /// Removes temporary files of interrupted writes.
    ///
    /// # Errors
    /// Those of [`Mirror`].
    pub fn clear_tmp(&self) -> io::Result<()> {
        let tmp = self.home.join("tmp");
        if fs::read_dir(&tmp).is_ok_and(|mut entries| entries.next().is_none()) {
            return Ok(());
        }
        absent_is_fine(remove_all(&tmp))?;
        fs::create_dir_all(&tmp)
    }

    /// Opens the folder that `path` is in. With `make`, missing folders on the way are made and non-folders in their place are removed;
    /// without, the error is `NotFound` for both.
    fn folder_of(&self, area: Area, path: &FilePath, make: bool) -> io::Result<OwnedFd> {
        let mut folder = self.part(area.name(), make)?;
        let names: Vec<&str> = path.names().collect();
        let Some((_, above)) = names.split_last() else { return Ok(folder) };
        for name in above {
            folder = match openat(&folder, *name, FOLDER, Mode::empty()) {
                Ok(next) => next,
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) if !make => return Err(Errno::NOENT.into()),
                Err(Errno::NOENT) => make_folder(&folder, name)?,
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    unlinkat(&folder, *name, AtFlags::empty())?;
                    make_folder(&folder, name)?
                }
                Err(error) => return Err(error.into()),
            };
        }
        Ok(folder)
    }

    /// Opens a part of the workspace's folder. With `make`, a missing folder is laid out: on a machine whose disk does not last, the first
    /// write finds none.
    fn part(&self, name: &str, make: bool) -> io::Result<OwnedFd> {
        match open(self.home.join(name), FOLDER, Mode::empty()) {
            Err(Errno::NOENT) if make => {
                self.lay_out()?;
                Ok(open(self.home.join(name), FOLDER, Mode::empty())?)
            }
            folder => Ok(folder?),
        }
    }

    /// Opens the folder of `latest/` that `path` is in.
    pub(crate) fn folder_of_latest(&self, path: &FilePath) -> io::Result<OwnedFd> {
        self.folder_of(Area::Latest, path, false)
    }

    /// The kind of entry at a path; links are not followed.
    ///
    /// # Errors
    /// Those of [`Mirror`]. A path that leads through a file or a link is [`OnDisk::Nothing`].
    pub fn look(&self, area: Area, path: &FilePath) -> io::Result<OnDisk> {
        if path.is_root() {
            return Ok(if self.home.join(area.name()).is_dir() { OnDisk::Folder } else { OnDisk::Nothing });
        }
        let folder = match self.folder_of(area, path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(OnDisk::Nothing),
            folder => folder?,
        };
        look_in(&folder, path.name())
    }

    /// Replaces the content of a file at once: a reader sees the old or the new one, whole.
    ///
    /// # Errors
    /// Those of [`Mirror`]. The path then has its old entry, or none if that was a folder.
    pub fn write(&self, path: &FilePath, content: &[u8], id: Uuid) -> io::Result<()> {
        let tmp = self.part("tmp", true)?;
        let temporary = id.simple().to_string();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = if content.starts_with(b"#!") { SCRIPT_MODE } else { FILE_MODE };
        let written = openat(&tmp, &temporary, flags, mode)
            .map_err(io::Error::from)
            .and_then(|file| File::from(file).write_all(content))
            .and_then(|()| self.place(&tmp, &temporary, path, id));
        if written.is_err() {
            let _ = unlinkat(&tmp, &temporary, AtFlags::empty());
        }
        written
    }

    /// Moves a temporary file to a path and replaces the entry there.
    fn place(&self, tmp: &OwnedFd, temporary: &str, path: &FilePath, id: Uuid) -> io::Result<()> {
        let folder = self.folder_of(Area::Latest, path, true)?;
        match look_in(&folder, path.name())? {
            OnDisk::File(_) => return swap(tmp, temporary, &folder, path.name()),
            OnDisk::Folder => drop(self.remove(Area::Latest, path, Uuid::from_u128(!id.as_u128()))?),
            OnDisk::Nothing | OnDisk::Stray => {}
        }
        Ok(renameat(tmp, temporary, &folder, path.name())?)
    }

    /// A free path for a new file that [`Mirror::adopt`] then takes.
    ///
    /// # Errors
    /// Those of [`Mirror`].
    pub fn temporary(&self, id: Uuid) -> io::Result<PathBuf> {
        self.part("tmp", true)?;
        Ok(self.home.join("tmp").join(id.simple().to_string()))
    }

    /// Moves the file that was made as [`Mirror::temporary`] to a path in one step and replaces the entry there. False when that is the
    /// same file already.
    ///
    /// # Errors
    /// `NotFound` when nothing was made as [`Mirror::temporary`]; else those of [`Mirror`].
    pub fn adopt(&self, path: &FilePath, id: Uuid) -> io::Result<bool> {
        let tmp = self.part("tmp", true)?;
        let temporary = id.simple().to_string();
        let made = statat(&tmp, &temporary, AtFlags::SYMLINK_NOFOLLOW)?;
        let there = self.folder_of(Area::Latest, path, false);
        let there = there.and_then(|folder| Ok(statat(&folder, path.name(), AtFlags::SYMLINK_NOFOLLOW)?));
        // A rename of a file over itself does nothing, and leaves both names.
        let is_same = there.is_ok_and(|there| (there.st_dev, there.st_ino) == (made.st_dev, made.st_ino));
        let placed = if is_same { Ok(()) } else { self.place(&tmp, &temporary, path, id) };
        if is_same || placed.is_err() {
            let _ = unlinkat(&tmp, &temporary, AtFlags::empty());
        }
        placed.map(|()| !is_same)
    }

    /// Puts a sparse file of this length at a path and replaces the entry there.
    ///
    /// # Errors
    /// `AlreadyExists` when `id` is in use; else those of [`Mirror`].
    pub fn stand_in(&self, path: &FilePath, length: u64, id: Uuid) -> io::Result<()> {
        let temporary = self.temporary(id)?;
        let file = File::create_new(&temporary)?;
        let placed = file.set_len(length).and_then(|()| self.adopt(path, id).map(drop));
        if placed.is_err() {
            let _ = fs::remove_file(temporary);
        }
        placed
    }

    /// Gives a file of `latest/` a second name at `to`. False when there is no such file, or when it can have no other name there: on
    /// another disk, on one without links, and when it has as many names as the disk allows.
    ///
    /// # Errors
    /// `AlreadyExists` when `to` is in use; else those of [`Mirror`].
    pub fn link(&self, path: &FilePath, to: &Path) -> io::Result<bool> {
        let folder = match self.folder_of(Area::Latest, path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            folder => folder?,
        };
        match linkat(&folder, path.name(), CWD, to, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::XDEV | Errno::PERM | Errno::NOTSUP | Errno::NOSYS | Errno::MLINK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file of `latest/` to be read.
    ///
    /// # Errors
    /// `NotFound` when there is no regular file at the path; else those of [`Mirror`].
    pub fn open(&self, path: &FilePath) -> io::Result<File> {
        self.open_file(Area::Latest, path, OFlags::RDONLY)
    }

    /// Makes a folder, and those above it. A non-folder in its place is removed.
    ///
    /// # Errors
    /// Those of [`Mirror`].
    pub fn make(&self, path: &FilePath) -> io::Result<()> {
        let folder = self.folder_of(Area::Latest, path, true)?;
        if path.is_root() || look_in(&folder, path.name())? == OnDisk::Folder {
            return Ok(());
        }
        absent_is_fine(unlinkat(&folder, path.name(), AtFlags::empty()).map_err(Into::into))?;
        make_folder(&folder, path.name()).map(drop)
    }

    /// Moves a file or folder to a free path. Says whether there was something to move.
    ///
    /// # Errors
    /// Those of [`Mirror`]. The entry that was at `to` may be gone then.
    pub fn rename(&self, from: (Area, &FilePath), to: (Area, &FilePath), id: Uuid) -> io::Result<bool> {
        if self.look(from.0, from.1)? == OnDisk::Nothing {
            return Ok(false);
        }
        self.remove(to.0, to.1, id)?;
        let source = self.folder_of(from.0, from.1, false)?;
        let target = self.folder_of(to.0, to.1, true)?;
        renameat(&source, from.1.name(), &target, to.1.name())?;
        Ok(true)
    }

    /// Removes a file, or a folder with all in it; at once as readers see it. Whether there was something.
    ///
    /// # Errors
    /// Those of [`Mirror`]. It may be hidden from readers then, and [`Mirror::clear_tmp`] removes the rest.
    pub fn remove(&self, area: Area, path: &FilePath, id: Uuid) -> io::Result<bool> {
        let found = self.look(area, path)?;
        if found == OnDisk::Nothing || path.is_root() {
            return Ok(false);
        }
        let folder = self.folder_of(area, path, false)?;
        if found == OnDisk::Folder {
            let tmp = self.part("tmp", true)?;
            let aside = id.simple().to_string();
            renameat(&folder, path.name(), &tmp, &aside)?;
            // The way there has no link in it, and the removal follows none below.
            remove_all(&self.home.join("tmp").join(aside))?;
        } else {
            unlinkat(&folder, path.name(), AtFlags::empty())?;
        }
        Ok(true)
    }

    /// Removes all that an area has.
    ///
    /// # Errors
    /// Those of [`Mirror`].
    pub fn empty(&self, area: Area, id: Uuid) -> io::Result<()> {
        let aside = self.home.join("tmp").join(id.simple().to_string());
        absent_is_fine(fs::rename(self.home.join(area.name()), &aside))?;
        absent_is_fine(remove_all(&aside))?;
        self.lay_out()
    }

    /// Opens a regular file.
    fn open_file(&self, area: Area, path: &FilePath, flags: OFlags) -> io::Result<File> {
        let folder = self.folder_of(area, path, false)?;
        // Without NONBLOCK, to open a planted FIFO would wait for ever.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match openat(&folder, path.name(), flags, FILE_MODE) {
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(Errno::NOENT.into()),
            file => file?,
        };
        let is_file = rustix::fs::FileType::from_raw_mode(fstat(&file)?.st_mode).is_file();
        if is_file { Ok(File::from(file)) } else { Err(Errno::NOENT.into()) }
    }

    /// A file's content, none when there is no such file, or when it is longer than `limit`.
    ///
    /// # Errors
    /// Those of [`Mirror`].
    pub fn read(&self, path: &FilePath, limit: u64) -> io::Result<Option<Vec<u8>>> {
        self.read_in(Area::Latest, path, limit)
    }

    /// The same in any area.
    ///
    /// # Errors
    /// Those of [`Mirror`].
    pub fn read_in(&self, area: Area, path: &FilePath, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match self.open_file(area, path, OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut content = Vec::with_capacity(usize::try_from(file.metadata()?.len().min(limit)).unwrap_or(0) + 1);
        file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
        Ok((content.len() as u64 <= limit).then_some(content))
    }

    /// Appends to a file that is there.
    ///
    /// # Errors
    /// `NotFound` when there is no regular file at the path; else those of [`Mirror`].
    pub fn append(&self, path: &FilePath, text: &[u8]) -> io::Result<u64> {
        let mut file = self.open_file(Area::Latest, path, OFlags::WRONLY | OFlags::APPEND)?;
        file.write_all(text)?;
        Ok(file.metadata()?.len())
    }

    /// The last `max` bytes of a file, and its length.
    ///
    /// # Errors
    /// `NotFound` when there is no regular file at the path; else those of [`Mirror`].
    pub fn tail(&self, path: &FilePath, max: u64) -> io::Result<(u64, Vec<u8>)> {
        let mut file = self.open_file(Area::Latest, path, OFlags::RDONLY)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(max)))?;
        let mut bytes = Vec::new();
        file.take(max).read_to_end(&mut bytes)?;
        Ok((length, bytes))
    }

    /// Cuts a file.
    ///
    /// # Errors
    /// `NotFound` when there is no regular file at the path; else those of [`Mirror`].
    pub fn truncate(&self, path: &FilePath, length: u64) -> io::Result<()> {
        self.open_file(Area::Latest, path, OFlags::WRONLY)?.set_len(length)
    }

    /// The names in a folder of `latest/`.
    ///
    /// # Errors
    /// `NotFound` when no folder is at the path; else those of [`Mirror`].
    pub fn names(&self, path: &FilePath) -> io::Result<Vec<String>> {
        let folder = match path.is_root() {
            true => open(self.latest(), FOLDER, Mode::empty()),
            false => openat(self.folder_of(Area::Latest, path, false)?, path.name(), FOLDER, Mode::empty()),
        };
        let folder = match folder {
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(Errno::NOENT.into()),
            folder => folder?,
        };
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy();
            if name != "." && name != ".." {
                names.push(name.into_owned());
            }
        }
        Ok(names)
    }

    /// Makes all that was written to the file system of this workspace durable.
    ///
    /// # Errors
    /// Those of [`Mirror`].
    pub fn sync(&self) -> io::Result<()> {
        let folder = open(&self.home, FOLDER, Mode::empty())?;
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(folder)?;
        #[cfg(not(target_os = "linux"))]
        {
            drop(folder);
            rustix::fs::sync();
        }
        Ok(())
    }

    /// Up to when everything that was committed is durable in `latest/`; none when that is not known.
    pub fn mark(&self) -> Option<Timestamp> {
        let text = fs::read_to_string(self.home.join("mark")).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    }

    /// Advances the mark. Not synced: an older or a broken one only makes the next repair look at more.
    ///
    /// # Errors
    /// Those of [`Mirror`]. The old mark stays then.
    pub fn set_mark(&self, at: Timestamp) -> io::Result<()> {
        let temporary = self.home.join("tmp").join("mark");
        fs::write(&temporary, format!("{at}\n"))?;
        fs::rename(temporary, self.home.join("mark"))
    }
}

fn look_in(folder: &OwnedFd, name: &str) -> io::Result<OnDisk> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(OnDisk::Nothing),
        Err(error) => Err(error.into()),
        Ok(stat) => Ok(kind_of(&stat)),
    }
}

pub(crate) fn kind_of(stat: &rustix::fs::Stat) -> OnDisk {
    match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::Directory => OnDisk::Folder,
        rustix::fs::FileType::RegularFile => OnDisk::File(u64::try_from(stat.st_size).unwrap_or(0)),
        _ => OnDisk::Stray,
    }
}

fn make_folder(inside: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    match mkdirat(inside, name, FOLDER_MODE) {
        // Another writer makes the same folder.
        Ok(()) | Err(Errno::EXIST) => Ok(openat(inside, name, FOLDER, Mode::empty())?),
        Err(error) => Err(error.into()),
    }
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
