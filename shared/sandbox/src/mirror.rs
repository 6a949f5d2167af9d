//! A copy of a workspace's files, brought up to date by manifests.
//!
//! Every content is compared with its digest before it is put in place, and put there by a rename: a reader sees the old file or the new
//! one, and never a mix. The disk changes before the mark does, and the mark only when all of a manifest holds. So a mirror that was left
//! in the middle is ahead of its mark in some files, and the next manifest covers all changes since the mark.
//!
//! A mirror reads from the archive what it was given an address of, and has no other right there.
//!
//! The mirror knows its files from its own changes. After a restart it reads all of them once, and trusts its mark only when they are the
//! very files that the mark was set for.

mod archive;
mod index;

use archive::Archive;
use bytes::Bytes;
use domain::{FilePath, Sha256};
use futures::{StreamExt, TryStreamExt, stream};
use index::{Entry, Index};
use parking_lot::Mutex;
use ports::{Error, LARGE, Manifest, Presigned, Result};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::task::spawn_blocking;
use uuid::Uuid;
use workspace::mirror::{Area, Mirror as Folder, OnDisk};

/// How many contents are fetched at once.
const AT_ONCE: usize = 8;
const DISK: &str = "the disk of the mirror";

/// How much a mirror may hold.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Bytes in all files.
    pub bytes: u64,
    /// Bytes in one file.
    pub file: u64,
    /// Files and folders.
    pub entries: usize,
    /// Bytes of contents that were provided and wait for their manifest, in memory.
    pub waiting: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: 20 << 30, file: ports::LARGEST, entries: 500_000, waiting: 256 << 20 }
    }
}

/// A mirror: `latest/` in a folder of its own.
#[derive(Clone)]
pub struct Mirror(Arc<Inner>);

struct Inner {
    folder: Folder,
    home: PathBuf,
    archive: Archive,
    budget: Budget,
    state: Mutex<State>,
    waiting: Mutex<HashMap<Sha256, Bytes>>,
    /// Locked while a manifest is applied: they come one after the other.
    applying: tokio::sync::Mutex<()>,
    names: AtomicU64,
}

struct State {
    index: Index,
    mark: Option<String>,
}

/// The mark on disk.
#[derive(Serialize, Deserialize)]
struct KeptMark {
    mark: String,
    /// Of all that the mirror had then.
    index: Sha256,
}

impl Mirror {
    /// The mirror in `home`, as it was left there; an empty one if there is none.
    ///
    /// # Errors
    /// When the disk does not let it.
    pub async fn open(home: impl Into<PathBuf>, budget: Budget) -> io::Result<Self> {
        let (home, archive) = (home.into(), Archive::new()?);
        let folder = Folder::new(home.clone());
        let (at, within) = (folder.clone(), home.clone());
        let state = spawn_blocking(move || {
            at.lay_out()?;
            at.clear_tmp()?;
            let index = Index::read(&at, budget.file)?;
            let kept =
                fs::read(within.join("manifest")).ok().and_then(|text| serde_json::from_slice::<KeptMark>(&text).ok());
            let mark = kept.filter(|kept| kept.index == index.digest()).map(|kept| kept.mark);
            Ok::<_, io::Error>(State { index, mark })
        });
        let state = Mutex::new(state.await.map_err(io::Error::other)??);
        let (waiting, applying, names) = (Mutex::default(), tokio::sync::Mutex::default(), AtomicU64::new(1));
        Ok(Self(Arc::new(Inner { folder, home, archive, budget, state, waiting, applying, names })))
    }

    /// The folder with the files.
    pub fn latest(&self) -> PathBuf {
        self.0.folder.latest()
    }

    /// As [`ports::Mirrored::mark`].
    pub fn mark(&self) -> Option<String> {
        self.0.state.lock().mark.clone()
    }

    /// As [`ports::Mirrored::apply`].
    ///
    /// # Errors
    /// `Invalid` for a manifest that contradicts itself, or is over the budget; `Unavailable` when the disk fails.
    pub async fn apply(&self, manifest: Manifest) -> Result<Vec<Sha256>> {
        let inner = &self.0;
        let _alone = inner.applying.lock().await;
        let Changes { folders, files, removed } = inner.state.lock().index.changes(&manifest, &inner.budget)?;
        for path in folders {
            inner
                .disk({
                    let path = path.clone();
                    move |folder, _| folder.make(&path)
                })
                .await?;
            inner.state.lock().index.put(path, Entry::Folder);
        }
        let missing: Vec<Option<Sha256>> = stream::iter(files)
            .map(|(wanted, paths)| inner.settle(wanted, paths, manifest.addresses.get(&wanted.digest)))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut missing: Vec<Sha256> = missing.into_iter().flatten().collect();
        // Last, so that a moved file can be copied from its old path.
        for path in removed {
            inner
                .disk({
                    let path = path.clone();
                    move |folder, name| folder.remove(Area::Latest, &path, name)
                })
                .await?;
            inner.state.lock().index.remove(&path);
        }
        if missing.is_empty() {
            inner.keep(manifest.mark).await?;
            inner.waiting.lock().clear();
        }
        missing.sort();
        missing.dedup();
        Ok(missing)
    }

    /// As [`ports::Mirrored::provide`].
    ///
    /// # Errors
    /// `Invalid` when more is waiting for its manifest than the budget allows.
    pub async fn provide(&self, contents: Vec<Bytes>) -> Result<()> {
        let hashed = spawn_blocking(move || -> Vec<(Sha256, Bytes)> {
            // Each in memory of its own: a slice would hold on to all that it came with.
            contents.into_iter().map(|content| (Sha256::of(&content), Bytes::copy_from_slice(&content))).collect()
        });
        let hashed = hashed.await.map_err(|error| Error::unavailable("the mirror", error))?;
        let mut waiting = self.0.waiting.lock();
        let mut bytes: usize = waiting.values().map(Bytes::len).sum();
        for (digest, content) in hashed {
            if waiting.contains_key(&digest) {
                continue;
            }
            bytes += content.len();
            if bytes > self.0.budget.waiting {
                return Err(Error::Invalid(format!(
                    "over {} bytes of contents wait for a manifest",
                    self.0.budget.waiting
                )));
            }
            waiting.insert(digest, content);
        }
        Ok(())
    }

    /// As [`ports::Mirrored::content`].
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    pub async fn content(&self, digest: Sha256) -> Result<Option<Bytes>> {
        let found = self.0.state.lock().index.find(digest);
        match found {
            // A large content is read from the archive, in parts.
            Some((_, size)) if size > LARGE => Ok(None),
            Some((path, size)) => self.0.read(path, digest, size).await,
            None => Ok(None),
        }
    }
}

/// The changes that a manifest asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    /// To make, those above first.
    folders: Vec<FilePath>,
    /// The target paths of each content.
    files: BTreeMap<WantedContent, Vec<FilePath>>,
    /// To remove, with all below.
    removed: Vec<FilePath>,
}

/// A content that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WantedContent {
    digest: Sha256,
    size: u64,
}

impl Inner {
    /// Works on the disk, with a name that nothing else has.
    async fn disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder, Uuid) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (folder, name) = (self.folder.clone(), Uuid::from_u128(self.names.fetch_add(1, Ordering::Relaxed).into()));
        let done = spawn_blocking(move || work(&folder, name)).await.map_err(io::Error::other).flatten();
        done.map_err(|error| Error::unavailable(DISK, error))
    }

    /// Puts a content at its paths; returns its digest when no source has it.
    async fn settle(
        &self,
        wanted: WantedContent,
        paths: Vec<FilePath>,
        address: Option<&Presigned>,
    ) -> Result<Option<Sha256>> {
        let digest = wanted.digest;
        if wanted.size > LARGE {
            return self.settle_large(wanted, paths, address).await;
        }
        let Some(content) = self.fetch(wanted, address).await? else { return Ok(Some(digest)) };
        for path in paths {
            let (at, content) = (path.clone(), content.clone());
            self.disk(move |folder, name| folder.write(&at, &content, name)).await?;
            self.state.lock().index.put(path, Entry::File { digest, size: wanted.size });
        }
        Ok(None)
    }

    /// Puts a large content at its paths, as a stream: from another file that has it, else from its address.
    async fn settle_large(
        &self,
        WantedContent { digest, size }: WantedContent,
        paths: Vec<FilePath>,
        address: Option<&Presigned>,
    ) -> Result<Option<Sha256>> {
        for path in paths {
            let here = self.state.lock().index.find(digest);
            let (temporary, name) = self.disk(|folder, name| Ok((folder.temporary(name)?, name))).await?;
            let copied = match here {
                Some((from, length)) if length == size => {
                    let to = temporary.clone();
                    // Files of a mirror are never written to: so two names can share one file.
                    self.disk(move |folder, _| folder.link(&from, &to)).await?
                }
                _ => false,
            };
            if !copied {
                let Some(address) = address else { return Ok(Some(digest)) };
                let brought = self.archive.bring(address, digest, size, &temporary).await;
                if or_missing(digest, brought.map(|is_right| is_right.then_some(())))?.is_none() {
                    return Ok(Some(digest));
                }
            }
            let at = path.clone();
            self.disk(move |folder, _| folder.adopt(&at, name)).await?;
            self.state.lock().index.put(path, Entry::File { digest, size });
        }
        Ok(None)
    }

    /// A content: one that was provided, one that another file has, or one from the archive by its address.
    async fn fetch(
        &self,
        WantedContent { digest, size }: WantedContent,
        address: Option<&Presigned>,
    ) -> Result<Option<Bytes>> {
        let provided = self.waiting.lock().get(&digest).cloned();
        if let Some(content) = provided {
            if content.len() as u64 != size {
                let length = content.len();
                return Err(Error::Invalid(format!(
                    "the manifest says that {digest} has {size} bytes; it has {length}"
                )));
            }
            return Ok(Some(content));
        }
        let here = self.state.lock().index.find(digest);
        if let Some((path, length)) = here
            && length == size
            && let Some(content) = self.read(path, digest, size).await?
        {
            return Ok(Some(content));
        }
        let Some(address) = address else { return Ok(None) };
        let content = match self.archive.content(address, size).await {
            Ok(Some(content)) => Ok(checked(content, digest).await),
            other => other,
        };
        or_missing(digest, content)
    }

    /// A file's content, if it has this digest and size.
    async fn read(&self, path: FilePath, digest: Sha256, size: u64) -> Result<Option<Bytes>> {
        match self.disk(move |folder, _| folder.read(&path, size)).await? {
            Some(content) => Ok(checked(content.into(), digest).await),
            None => Ok(None),
        }
    }

    /// Remembers that all of a manifest holds.
    async fn keep(&self, mark: String) -> Result<()> {
        let index = self.state.lock().index.clone();
        let (home, kept) = (self.home.clone(), mark.clone());
        self.disk(move |_, _| {
            let text = serde_json::to_vec(&KeptMark { mark: kept, index: index.digest() })?;
            replace(&home, "manifest", &text)
        })
        .await?;
        self.state.lock().mark = Some(mark);
        Ok(())
    }
}

/// Replaces a file of ours beside the files of a mirror, whole.
pub(crate) fn replace(home: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    let temporary = home.join("tmp").join(name);
    fs::write(&temporary, text)?;
    fs::rename(temporary, home.join(name))
}

/// The content that the archive gave, or none when it is to be named as missing. Only a fault of this disk ends the whole manifest.
fn or_missing<T>(digest: Sha256, brought: Result<Option<T>>) -> Result<Option<T>> {
    match brought {
        Ok(Some(content)) => Ok(Some(content)),
        Ok(None) => {
            tracing::warn!(%digest, "the archive has another content than its digest and its size say");
            Ok(None)
        }
        Err(error @ Error::Unavailable { what: DISK, .. }) => Err(error),
        Err(error) => {
            tracing::warn!(error = %error.with_causes(), %digest, "a content could not be read");
            Ok(None)
        }
    }
}

/// A content, when it has this digest.
async fn checked(content: Bytes, digest: Sha256) -> Option<Bytes> {
    spawn_blocking(move || (Sha256::of(&content) == digest).then_some(content)).await.unwrap_or_default()
}
