//! Contents on the local disk: `{root}/{space}/archive/ab/cd/abcd…`, as seed 001 lays the archive out.

use async_trait::async_trait;
use bytes::Bytes;
use domain::Sha256;
use ports::{Blobs, Error, Result, validate};
use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

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
}

impl LocalBlobs {
    /// Over the folder `root`, which is made when the first content is.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let archive = Archive { root: root.into(), temporary: AtomicU64::new(0), in_the_making: Mutex::default() };
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
            Ok(done) => done.map_err(|error| Error::unavailable("the archive", error)),
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
        self.blocking(move |archive| absent_as_none(read(&archive.path(&space, digest), range))).await
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
        if path.exists() && !self.is_in_the_making(&path) {
            return Ok(digest);
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

fn read(path: &Path, range: Option<Range<u64>>) -> io::Result<Bytes> {
    let Some(range) = range else { return fs::read(path).map(Bytes::from) };
    let mut file = File::open(path)?;
    let end = range.end.min(file.metadata()?.len());
    let length = end.saturating_sub(range.start);
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    file.seek(SeekFrom::Start(range.start.min(end)))?;
    file.take(length).read_to_end(&mut content)?;
    Ok(content.into())
}

fn absent_as_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}
