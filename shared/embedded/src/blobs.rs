//! Contents on the local disk: `{root}/{space}/archive/ab/cd/abcd…`, as spec 001 §3A lays the archive out.
//!
//! A disk may return other bytes than were written, and people and programs may write to the wrong place. So every read compares a content
//! with its digest: a whole one each time, which costs less than reading it. A part of one cannot be compared by itself; so the file is
//! read and compared whole once, and recognized afterwards by its inode, length and times ([`Identity`]). Files are written once under
//! another name and renamed, so any later write to one changes that identity: the kernel sets the time of the last change, and no program
//! can set it back. A change below the file system, without a write, shows in the next whole read: the scrub makes such reads.
//!
//! A large content ([`LARGE`]) is too long for that. It has a list of the digests of its chunks beside it, and every read of a part is
//! compared with that ([`chunks`]).

mod chunks;
mod durable;
mod hold;
mod incoming;
mod large;
mod unfinished;

use async_trait::async_trait;
use bytes::Bytes;
use chunks::place;
use domain::{Sha256, Timestamp};
pub use durable::WRITTEN_BACK;
pub use hold::{Hold, StoredContent, contents, spaces};
use parking_lot::Mutex;
use ports::{Blobs, Clock as _, Error, LARGE, Part, Progress, Result, ResumableUpload, SystemClock, validate};
use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    ops::Range,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// How many intact files are known again; beyond, all are forgotten, and read whole once more.
const KNOWN: usize = 16 * 1024;
/// A file that was changed within this time is not known again: file systems count time in steps of up to two seconds, and two
/// changes within one step look the same.
const SETTLED: Duration = Duration::from_secs(3);
/// The folder of a space that has its contents.
const ARCHIVE: &str = "archive";

/// A folder of contents under their digests.
///
/// A content is written to a temporary file, synced, renamed to its name, and the folder is synced: no reader ever sees a part of it, and
/// it is durable when `put` returns. Syncing blocks for as long as the disk takes, so the work runs on the runtime's threads for blocking
/// work.
///
/// One process at a time: the temporary files of an earlier one are removed when this one begins.
#[derive(Clone)]
pub struct LocalBlobs(Arc<Archive>);

struct Archive {
    root: PathBuf,
    temporary: AtomicU64,
    /// Files and folders that exist but are not durable yet, with the number of their writers. A writer that finds one of them must not
    /// take it for durable and syncs it too.
    pending: Mutex<HashMap<PathBuf, usize>>,
    /// Files and folders whose sync failed. The system reports such a failure once, so that the next sync says nothing about them: they are not taken
    /// for durable until they are made anew.
    unsynced: Mutex<HashSet<PathBuf>>,
    /// When this process began.
    begun: Timestamp,
    /// Files of an earlier process that this one has synced.
    resynced: Mutex<HashSet<PathBuf>>,
    /// Syncs a folder.
    sync: fn(&Path) -> io::Result<()>,
    /// Files that were read whole and found intact.
    intact: Mutex<HashMap<PathBuf, Identity>>,
    /// Contents above this many bytes have a list of their chunks.
    large_above: u64,
    /// Locked while a list is made anew: one large file at a time is read whole.
    listing: Mutex<()>,
    /// Held while the contents of deleted spaces are removed.
    clearing: Mutex<()>,
    /// Held while a file of an unfinished upload is opened, written, or given another name.
    uploading: Mutex<()>,
}

/// The attributes that a file is recognized by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    fn of(file: &File) -> io::Result<Self> {
        let is = file.metadata()?;
        Ok(Self {
            device: is.dev(),
            inode: is.ino(),
            length: is.len(),
            modified: (is.mtime(), is.mtime_nsec()),
            changed: (is.ctime(), is.ctime_nsec()),
        })
    }

    /// Whether a further change would be seen.
    fn is_settled(&self) -> bool {
        let changed_ms = self.changed.0.max(self.modified.0).saturating_mul(1000);
        SystemClock.now().since(Timestamp::from_millis(changed_ms)) > SETTLED
    }
}

impl LocalBlobs {
    /// Over the folder `root`, which is made when the first content is.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::with_large_above(root, LARGE)
    }

    /// The same, but contents above `large_above` bytes have a list of their chunks.
    pub fn with_large_above(root: impl Into<PathBuf>, large_above: u64) -> Self {
        let mut archive = Archive {
            root: root.into(),
            temporary: AtomicU64::new(0),
            pending: Mutex::default(),
            unsynced: Mutex::default(),
            begun: Timestamp::default(),
            resynced: Mutex::default(),
            sync: durable::sync_folder,
            intact: Mutex::default(),
            large_above,
            listing: Mutex::default(),
            clearing: Mutex::default(),
            uploading: Mutex::default(),
        };
        if let Err(error) = fs::remove_dir_all(archive.temporary_folder())
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "temporary files of an earlier run stay");
        }
        if let Err(error) = archive.clear_deleted() {
            tracing::warn!(%error, "contents of deleted workspaces stay");
        }
        // Now, because these removals change the folders, too.
        archive.begun = SystemClock.now();
        Self(Arc::new(archive))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Archive) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let archive = self.0.clone();
        blocking(move || work(&archive)).await
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(failed),
        Err(error) => Err(Error::unavailable("the archive", error)),
    }
}

fn failed(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData => Error::Damaged(error.to_string()),
        _ => Error::unavailable("the archive", error),
    }
}

#[async_trait]
impl Blobs for LocalBlobs {
    async fn put(&self, space: &str, content: Bytes) -> Result<Sha256> {
        validate::space(space)?;
        let space = space.to_owned();
        self.blocking(move |archive| archive.put(&space, &content)).await
    }

    async fn put_as(&self, space: &str, digest: Sha256, content: Bytes) -> Result<()> {
        validate::space(space)?;
        let space = space.to_owned();
        self.blocking(move |archive| archive.put_as(&space, digest, &content)).await
    }

    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<Option<Bytes>> {
        validate::space(space)?;
        let space = space.to_owned();
        self.blocking(move |archive| absent_as_none(archive.read(&space, digest, range))).await
    }

    /// Reads a large content a chunk at a time, and any other whole.
    async fn verify(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<bool> {
        validate::space(space)?;
        let space = space.to_owned();
        let checked = self.blocking(move |archive| absent_as_none(archive.check(&space, digest, range))).await?;
        Ok(checked.is_some())
    }

    async fn length(&self, space: &str, digest: Sha256) -> Result<Option<u64>> {
        validate::space(space)?;
        let space = space.to_owned();
        let found = self.blocking(move |archive| absent_as_none(fs::metadata(archive.path(&space, digest)))).await?;
        Ok(found.map(|found| found.len()))
    }

    async fn incoming(&self, space: &str, digest: Sha256, length: u64) -> Result<Option<Box<dyn ports::Incoming>>> {
        validate::space(space)?;
        let incoming = incoming::Incoming::begin(self.0.clone(), space, digest, length).await?;
        Ok(Some(Box::new(incoming)))
    }

    async fn resume(&self, space: &str, upload: &ResumableUpload, _valid_for: Duration) -> Result<Option<Progress>> {
        validate::space(space)?;
        let (archive, space, upload) = (self.0.clone(), space.to_owned(), upload.clone());
        let resumed = tokio::task::spawn_blocking(move || archive.resume(&space, &upload)).await;
        resumed.map_err(|error| Error::unavailable("the archive", error))?.map(Some)
    }

    async fn incoming_part(&self, space: &str, digest: Sha256, part: Part) -> Result<Option<Box<dyn ports::Incoming>>> {
        validate::space(space)?;
        let incoming = unfinished::IncomingPart::begin(self.0.clone(), space, digest, part).await?;
        Ok(Some(Box::new(incoming)))
    }

    async fn forget_unfinished(&self, before: Timestamp) -> Result<u64> {
        self.blocking(move |archive| archive.forget_unfinished(before)).await
    }

    async fn link(&self, space: &str, digest: Sha256, path: &Path) -> Result<bool> {
        use io::ErrorKind::{CrossesDevices, NotFound, PermissionDenied, TooManyLinks, Unsupported};
        validate::space(space)?;
        let (space, path) = (space.to_owned(), path.to_owned());
        self.blocking(move |archive| match fs::hard_link(archive.path(&space, digest), path) {
            Ok(()) => Ok(true),
            // Another file system, one without links, a file with all the links that it can have, or no such content.
            Err(error)
                if matches!(
                    error.kind(),
                    CrossesDevices | NotFound | PermissionDenied | TooManyLinks | Unsupported
                ) =>
            {
                tracing::debug!(%error, "a content has no link");
                Ok(false)
            }
            Err(error) => Err(error),
        })
        .await
    }

    async fn delete(&self, space: &str, digest: Sha256) -> Result<()> {
        validate::space(space)?;
        let space = space.to_owned();
        self.blocking(move |archive| archive.delete_content(&space, digest)).await
    }

    async fn delete_space(&self, space: &str) -> Result<()> {
        validate::space(space)?;
        let space = space.to_owned();
        self.blocking(move |archive| archive.delete_space(&space)).await
    }
}

impl Archive {
    fn path(&self, space: &str, digest: Sha256) -> PathBuf {
        self.root.join(place_of(space, digest))
    }

    fn folder(&self, space: &str) -> PathBuf {
        self.root.join(space).join(ARCHIVE)
    }

    /// Beside the spaces, so that a rename moves within one file system; no space has a dot in its name.
    fn temporary_folder(&self) -> PathBuf {
        self.root.join(".temporary")
    }

    fn put(&self, space: &str, content: &[u8]) -> io::Result<Sha256> {
        let digest = Sha256::of(content);
        self.put_as(space, digest, content).map(|()| digest)
    }

    fn put_as(&self, space: &str, digest: Sha256, content: &[u8]) -> io::Result<()> {
        let path = self.path(space, digest);
        if let Some(found) = absent_as_none(File::open(&path))?
            && self.is_durable(&path)?
        {
            if self.holds(&path, found, content)? {
                return Ok(());
            }
            tracing::warn!(space, %digest, "a damaged content of the archive is replaced by the one that was written again");
        }
        let temporary = self.write_temporary(content)?;
        self.place(&temporary, &path).inspect_err(|_| drop(fs::remove_file(&temporary)))
    }

    /// Whether a file has this very content.
    fn holds(&self, path: &Path, mut file: File, content: &[u8]) -> io::Result<bool> {
        let identity = Identity::of(&file)?;
        if identity.length != content.len() as u64 {
            return Ok(false);
        }
        if self.is_intact(path, identity) {
            return Ok(true);
        }
        let (mut piece, mut rest) = (vec![0; 64 * 1024], content);
        while !rest.is_empty() {
            let read = file.read(&mut piece)?;
            let Some((expected, further)) = rest.split_at_checked(read).filter(|_| read > 0) else { return Ok(false) };
            if piece.get(..read) != Some(expected) {
                return Ok(false);
            }
            rest = further;
        }
        self.found_intact(path, &file, identity)?;
        Ok(true)
    }

    /// A content, or a part of it; `InvalidData` when it differs from its digest.
    fn read(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> io::Result<Bytes> {
        let path = self.path(space, digest);
        let mut file = File::open(&path)?;
        let identity = Identity::of(&file)?;
        if self.is_large(identity.length) {
            return self.read_large(&path, &file, digest, identity.length, range);
        }
        if range.is_some() && self.is_intact(&path, identity) {
            let part = cut(range.clone(), identity.length);
            let length = part.end - part.start;
            let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
            file.seek(SeekFrom::Start(part.start))?;
            (&file).take(length).read_to_end(&mut content)?;
            // The file did not change while it was read.
            if Identity::of(&file)? == identity {
                return Ok(content.into());
            }
            file.seek(SeekFrom::Start(0))?;
        }
        let mut content = Vec::with_capacity(usize::try_from(identity.length).unwrap_or(0));
        file.read_to_end(&mut content)?;
        let found = Sha256::of(&content);
        if found != digest {
            return Err(damaged(digest, content.len() as u64, found));
        }
        if range.is_some() {
            self.found_intact(&path, &file, identity)?;
        }
        let part = cut(range, content.len() as u64);
        Ok(Bytes::from(content).slice(place(part.start)..place(part.end)))
    }

    fn is_intact(&self, path: &Path, identity: Identity) -> bool {
        self.intact.lock().get(path) == Some(&identity)
    }

    /// Remembers a file that was read whole, if it did not change meanwhile.
    fn found_intact(&self, path: &Path, file: &File, before: Identity) -> io::Result<()> {
        if before.is_settled() && Identity::of(file)? == before {
            let mut intact = self.intact.lock();
            if intact.len() >= KNOWN {
                intact.clear();
            }
            intact.insert(path.to_owned(), before);
        }
        Ok(())
    }

    fn write_temporary(&self, content: &[u8]) -> io::Result<PathBuf> {
        let temporary = self.new_temporary();
        let mut file = self.create_temporary(&temporary)?;
        let written = file.write_all(content).and_then(|()| file.sync_data());
        if let Err(error) = written {
            drop(fs::remove_file(&temporary));
            return Err(error);
        }
        Ok(temporary)
    }

    /// A name that nothing has.
    fn new_temporary(&self) -> PathBuf {
        self.temporary_folder().join(self.temporary.fetch_add(1, Relaxed).to_string())
    }

    fn create_temporary(&self, temporary: &Path) -> io::Result<File> {
        match File::create(temporary) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(self.temporary_folder())?;
                File::create(temporary)
            }
            created => created,
        }
    }
}

/// The path of a content below the folder of all contents.
pub fn place_of(space: &str, digest: Sha256) -> PathBuf {
    let name = digest.to_string();
    [space, ARCHIVE, &name[..2], &name[2..4], &name].iter().collect()
}

/// A range of a content of this length; all of it when none.
fn cut(range: Option<Range<u64>>, length: u64) -> Range<u64> {
    let range = range.unwrap_or(0..u64::MAX);
    let end = range.end.min(length);
    range.start.min(end)..end
}

fn damaged(digest: Sha256, length: u64, found: Sha256) -> io::Error {
    let what = format!("the content {digest} has {length} bytes with the digest {found}");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn absent_as_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests;
