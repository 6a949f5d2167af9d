//! Contents on the local disk: `{root}/{space}/archive/ab/cd/abcd…`, as spec 001 §3A lays the archive out.
//!
//! A disk may give back other bytes than it was given, and people and programs may write where they should not. So a content is
//! compared with its digest whenever it is read: a whole one each time, which costs less than reading it. A part of one cannot be
//! compared by itself; so the file is read and compared whole once, and known again by its inode, length and times
//! ([`Identity`]). Files are written once under another name and renamed, so any later write to one changes that identity: the
//! kernel sets the time of the last change, and no program can set it back. What changes below the file system, with nobody
//! writing, shows in the next whole read: that is what the scrub is for.

use async_trait::async_trait;
use bytes::Bytes;
use domain::{Sha256, Timestamp};
use ports::{Blobs, Clock as _, Error, Result, SystemClock, validate};
use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    ops::Range,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// How many intact files are known again; beyond, all are forgotten, and read whole once more.
const KNOWN: usize = 16 * 1024;
/// A file that was changed within this time is not known again: file systems count time in steps of up to two seconds, and two
/// changes within one step look the same.
const SETTLED: Duration = Duration::from_secs(3);

/// A folder of contents under their digests.
///
/// A content is written to a temporary file, synced, renamed to its name, and the folder is synced: nobody ever sees a
/// part of it, and it is durable when `put` returns. Syncing blocks for as long as the disk takes, so the work runs on the
/// runtime's threads for blocking work.
///
/// One process at a time: the temporary files of an earlier one are removed when this one begins.
#[derive(Clone)]
pub struct LocalBlobs(Arc<Archive>);

struct Archive {
    root: PathBuf,
    temporary: AtomicU64,
    /// Files and folders that are there but not durable yet, with how many make them. Whoever finds one of them may not
    /// take it for durable and syncs it too.
    in_the_making: Mutex<HashMap<PathBuf, usize>>,
    /// Files that were read whole and found intact.
    intact: Mutex<HashMap<PathBuf, Identity>>,
}

/// What a file is known again by.
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
        let archive = Archive {
            root: root.into(),
            temporary: AtomicU64::new(0),
            in_the_making: Mutex::default(),
            intact: Mutex::default(),
        };
        if let Err(error) = fs::remove_dir_all(archive.temporary_folder())
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "temporary files of an earlier run stay");
        }
        Self(Arc::new(archive))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Archive) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let archive = self.0.clone();
        match tokio::task::spawn_blocking(move || work(&archive)).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => Err(Error::Damaged(error.to_string())),
            Ok(Err(error)) => Err(Error::unavailable("the archive", error)),
            Err(error) => Err(Error::unavailable("the archive", error)),
        }
    }
}

#[async_trait]
impl Blobs for LocalBlobs {
    async fn put(&self, space: &str, content: Bytes) -> Result<Sha256> {
        validate::space(space)?;
        let space = space.to_owned();
        self.blocking(move |archive| archive.put(&space, &content)).await
    }

    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<Option<Bytes>> {
        validate::space(space)?;
        let space = space.to_owned();
        self.blocking(move |archive| absent_as_none(archive.read(&space, digest, range))).await
    }

    async fn delete(&self, space: &str, digest: Sha256) -> Result<()> {
        validate::space(space)?;
        let space = space.to_owned();
        self.blocking(move |archive| absent_as_none(fs::remove_file(archive.path(&space, digest))).map(drop)).await
    }

    async fn delete_space(&self, space: &str) -> Result<()> {
        validate::space(space)?;
        let space = space.to_owned();
        self.blocking(move |archive| archive.delete_space(&space)).await
    }
}

impl Archive {
    fn path(&self, space: &str, digest: Sha256) -> PathBuf {
        let name = digest.to_string();
        let mut path = self.folder(space);
        path.extend([&name[..2], &name[2..4], &name]);
        path
    }

    fn folder(&self, space: &str) -> PathBuf {
        self.root.join(space).join("archive")
    }

    /// Beside the spaces, so that a rename moves within one file system; no space has a dot in its name.
    fn temporary_folder(&self) -> PathBuf {
        self.root.join(".temporary")
    }

    fn put(&self, space: &str, content: &[u8]) -> io::Result<Sha256> {
        let digest = Sha256::of(content);
        let path = self.path(space, digest);
        // In this order: what was there and is in nobody's making afterwards is durable.
        if let Some(found) = absent_as_none(File::open(&path))?
            && !self.is_in_the_making(&path)
        {
            if self.holds(&path, found, content)? {
                return Ok(digest);
            }
            tracing::warn!(space, %digest, "a damaged content of the archive is replaced by the one that was written again");
        }
        let folder = path.parent().unwrap_or(&self.root);
        let made = self.make_folder(folder)?;
        let temporary = self.write_temporary(content)?;
        let _making = self.making(&path);
        fs::rename(&temporary, &path).inspect_err(|_| drop(fs::remove_file(&temporary)))?;
        sync(folder)?;
        // Last, because a file system with a journal has by now written them with the rest, and little is left to do.
        made.iter().rev().filter_map(|(folder, _)| folder.parent()).try_for_each(sync)?;
        Ok(digest)
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

    /// A content, or a part of it; `InvalidData` when it is not what was written.
    fn read(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> io::Result<Bytes> {
        let path = self.path(space, digest);
        let mut file = File::open(&path)?;
        let identity = Identity::of(&file)?;
        let cut = |length: u64| {
            let range = range.clone().unwrap_or(0..u64::MAX);
            let end = range.end.min(length);
            range.start.min(end)..end
        };
        if range.is_some() && self.is_intact(&path, identity) {
            let part = cut(identity.length);
            let length = part.end - part.start;
            let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
            file.seek(SeekFrom::Start(part.start))?;
            (&file).take(length).read_to_end(&mut content)?;
            // Nobody wrote to it while it was read.
            if Identity::of(&file)? == identity {
                return Ok(content.into());
            }
            file.seek(SeekFrom::Start(0))?;
        }
        let mut content = Vec::with_capacity(usize::try_from(identity.length).unwrap_or(0));
        file.read_to_end(&mut content)?;
        let found = Sha256::of(&content);
        if found != digest {
            let length = content.len();
            let what = format!("the content {digest} of {space} has {length} bytes with the digest {found}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if range.is_some() {
            self.found_intact(&path, &file, identity)?;
        }
        let part = cut(content.len() as u64);
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        Ok(Bytes::from(content).slice(place(part.start)..place(part.end)))
    }

    fn is_intact(&self, path: &Path, identity: Identity) -> bool {
        self.intact.lock().unwrap_or_else(PoisonError::into_inner).get(path) == Some(&identity)
    }

    /// Knows a file again that was read whole, if nobody wrote to it meanwhile.
    fn found_intact(&self, path: &Path, file: &File, before: Identity) -> io::Result<()> {
        if before.is_settled() && Identity::of(file)? == before {
            let mut intact = self.intact.lock().unwrap_or_else(PoisonError::into_inner);
            if intact.len() >= KNOWN {
                intact.clear();
            }
            intact.insert(path.to_owned(), before);
        }
        Ok(())
    }

    fn write_temporary(&self, content: &[u8]) -> io::Result<PathBuf> {
        let temporary = self.temporary_folder().join(self.temporary.fetch_add(1, Relaxed).to_string());
        let mut file = match File::create(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(self.temporary_folder())?;
                File::create(&temporary)?
            }
            created => created?,
        };
        let written = file.write_all(content).and_then(|()| file.sync_data());
        if let Err(error) = written {
            drop(fs::remove_file(&temporary));
            return Err(error);
        }
        Ok(temporary)
    }

    /// Makes a folder and those above it. Returns those whose entry in the folder above is not durable yet: each is in the
    /// making until its guard is dropped.
    fn make_folder<'a>(&'a self, folder: &Path) -> io::Result<Vec<(PathBuf, Making<'a>)>> {
        let mut made = Vec::new();
        let mut missing = vec![folder.to_owned()];
        while let Some(next) = missing.pop() {
            if next.is_dir() && !self.is_in_the_making(&next) {
                continue;
            }
            let making = self.making(&next);
            match fs::create_dir(&next) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let Some(parent) = next.parent().map(Path::to_owned) else { return Err(error) };
                    missing.extend([next, parent]);
                    continue;
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => made.push((next, making)),
            }
        }
        Ok(made)
    }

    fn delete_space(&self, space: &str) -> io::Result<()> {
        fs::create_dir_all(self.temporary_folder())?;
        // Moved away first: it is gone at once, and what a crash leaves is removed at the next start.
        let trash = self.temporary_folder().join(format!("{}-trash", self.temporary.fetch_add(1, Relaxed)));
        match absent_as_none(fs::rename(self.folder(space), &trash))? {
            Some(()) => fs::remove_dir_all(trash),
            None => Ok(()),
        }
    }

    fn making(&self, path: &Path) -> Making<'_> {
        *self.in_the_making.lock().unwrap_or_else(PoisonError::into_inner).entry(path.to_owned()).or_default() += 1;
        Making { archive: self, path: path.to_owned() }
    }

    fn is_in_the_making(&self, path: &Path) -> bool {
        self.in_the_making.lock().unwrap_or_else(PoisonError::into_inner).contains_key(path)
    }
}

/// Something that is not durable yet.
struct Making<'a> {
    archive: &'a Archive,
    path: PathBuf,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let mut all = self.archive.in_the_making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(makers) = all.get_mut(&self.path) {
            *makers -= 1;
            if *makers == 0 {
                all.remove(&self.path);
            }
        }
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn absent_as_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Tested = std::result::Result<(), Box<dyn std::error::Error>>;

    fn set_times(path: &Path, at: std::time::SystemTime) -> io::Result<()> {
        File::options().write(true).open(path)?.set_times(fs::FileTimes::new().set_modified(at).set_accessed(at))
    }

    fn stored(content: &[u8]) -> std::result::Result<(tempfile::TempDir, LocalBlobs, Sha256, PathBuf), io::Error> {
        let root = tempfile::tempdir()?;
        let blobs = LocalBlobs::new(root.path());
        let digest = blobs.0.put("w", content)?;
        let path = blobs.0.path("w", digest);
        Ok((root, blobs, digest, path))
    }

    /// Everything that a bad disk, a crash or a stray program does to a file of `content`.
    fn damages(content: &[u8]) -> Vec<Vec<u8>> {
        let mut flipped = content.to_vec();
        if let Some(byte) = flipped.get_mut(content.len() / 2) {
            *byte ^= 1;
        }
        let cut = content.get(..content.len() / 2).unwrap_or_default().to_vec();
        vec![flipped, cut, Vec::new(), [content, b"more"].concat(), vec![0; content.len()]]
    }

    #[tokio::test]
    async fn a_damaged_content_is_an_error_whole_and_in_parts_until_it_is_written_again() -> Tested {
        let content = Bytes::from(b"0123456789".repeat(10_000));
        for damage in damages(&content) {
            let (_root, blobs, digest, path) = stored(&content)?;
            fs::write(&path, &damage)?;
            for range in [None, Some(0..10), Some(99_990..u64::MAX), Some(3..3)] {
                let read = blobs.get("w", digest, range.clone()).await;
                assert!(matches!(read, Err(Error::Damaged(_))), "{range:?} of {} bytes", damage.len());
            }
            assert!(matches!(blobs.verify("w", digest).await, Err(Error::Damaged(_))));
            assert_eq!(blobs.put("w", content.clone()).await?, digest);
            assert_eq!(blobs.get("w", digest, None).await?, Some(content.clone()), "written again");
            assert_eq!(fs::read(&path)?, content);
        }
        Ok(())
    }

    #[tokio::test]
    async fn an_absent_content_is_no_damaged_one() -> Tested {
        let (_root, blobs, digest, path) = stored(b"x")?;
        fs::remove_file(path)?;
        assert_eq!(blobs.get("w", digest, None).await?, None);
        assert_eq!(blobs.get("w", digest, Some(0..1)).await?, None);
        assert!(!blobs.verify("w", digest).await?);
        Ok(())
    }

    #[tokio::test]
    async fn a_file_that_was_found_intact_is_not_believed_once_somebody_wrote_to_it() -> Tested {
        let content = b"0123456789".repeat(1000);
        let (_root, blobs, digest, path) = stored(&content)?;
        assert_eq!(blobs.get("w", digest, Some(0..4)).await?.as_deref(), Some(&b"0123"[..]));
        assert!(!blobs.0.is_intact(&path, Identity::of(&File::open(&path)?)?), "it has just been written");
        // As if it had been found intact long after it was written.
        let before = Identity::of(&File::open(&path)?)?;
        blobs.0.intact.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone(), before);
        assert_eq!(blobs.get("w", digest, Some(4..8)).await?.as_deref(), Some(&b"4567"[..]));
        let mut other = content.clone();
        other.swap(5, 6);
        // In place, with the length kept and the time of the last write set back.
        let modified = fs::metadata(&path)?.modified()?;
        File::options().write(true).open(&path)?.write_all(&other)?;
        set_times(&path, modified)?;
        assert!(matches!(blobs.get("w", digest, Some(4..8)).await, Err(Error::Damaged(_))));
        assert_eq!(blobs.put("w", content.clone().into()).await?, digest);
        assert_eq!(blobs.get("w", digest, Some(4..8)).await?.as_deref(), Some(&b"4567"[..]));
        Ok(())
    }
}
