//! A mirror in a folder, which reads from no archive: each content has to be given to it.

use super::{Search, gone};
use async_trait::async_trait;
use bytes::Bytes;
use domain::{FilePath, Sha256};
use parking_lot::{Mutex, MutexGuard};
use ports::{Error, Manifest, ManifestEntry, Mirrored, Result};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// A mirror in a folder.
pub struct FakeMirror {
    folder: PathBuf,
    search: Search,
    inner: Mutex<Has>,
}

#[derive(Default)]
struct Has {
    gone: bool,
    mark: Option<String>,
    contents: BTreeMap<Sha256, Bytes>,
    files: BTreeMap<FilePath, Sha256>,
    applied: Vec<Manifest>,
    provided: Vec<Sha256>,
    asks_for: Option<Sha256>,
}

impl FakeMirror {
    pub(super) fn new(folder: PathBuf, search: Search) -> Self {
        Self { folder, search, inner: Mutex::default() }
    }

    /// Its files, a copy of `latest/`.
    pub fn latest(&self) -> &Path {
        &self.folder
    }

    /// The manifests that it was sent, in order.
    pub fn applied(&self) -> Vec<Manifest> {
        self.inner().applied.clone()
    }

    /// The contents that it was given, in order.
    pub fn provided(&self) -> Vec<Sha256> {
        self.inner().provided.clone()
    }

    /// Calls this content missing from now on, whatever its manifests name.
    pub fn asks_for(&self, digest: Sha256) {
        self.inner().asks_for = Some(digest);
    }

    /// Its machine is gone.
    pub(super) fn vanish(&self) {
        self.inner().gone = true;
    }

    fn inner(&self) -> MutexGuard<'_, Has> {
        self.inner.lock()
    }

    fn has(&self) -> Result<MutexGuard<'_, Has>> {
        let has = self.inner();
        if has.gone { Err(gone()) } else { Ok(has) }
    }

    fn put(&self, has: &mut Has, path: &FilePath, entry: &ManifestEntry) -> std::io::Result<()> {
        let at = self.folder.join(path.relative());
        let remove = |has: &mut Has| {
            has.files.retain(|known, _| !known.is_within(path));
            if at.is_dir() { fs::remove_dir_all(&at) } else { fs::remove_file(&at) }
        };
        match entry {
            ManifestEntry::Absent if at.exists() => remove(has),
            ManifestEntry::Absent => Ok(()),
            ManifestEntry::Folder => {
                if at.is_file() {
                    remove(has)?;
                }
                fs::create_dir_all(&at)
            }
            ManifestEntry::File { sha256, .. } => {
                if at.is_dir() {
                    remove(has)?;
                }
                if let Some(folder) = at.parent() {
                    fs::create_dir_all(folder)?;
                }
                has.files.insert(path.clone(), *sha256);
                match has.contents.get(sha256) {
                    Some(content) => fs::write(&at, content),
                    None => Ok(()),
                }
            }
        }
    }
}

fn io(error: std::io::Error) -> Error {
    Error::unavailable("the mirror's disk", error)
}

#[async_trait]
impl Mirrored for FakeMirror {
    async fn mark(&self) -> Result<Option<String>> {
        Ok(self.has()?.mark.clone())
    }

    async fn apply(&self, manifest: Manifest) -> Result<Vec<Sha256>> {
        let mut has = self.has()?;
        has.applied.push(manifest.clone());
        fs::create_dir_all(&self.folder).map_err(io)?;
        if manifest.whole {
            let kept: BTreeSet<&FilePath> = manifest.entries.keys().collect();
            let gone: Vec<FilePath> = has.files.keys().filter(|path| !kept.contains(path)).cloned().collect();
            for path in gone {
                self.put(&mut has, &path, &ManifestEntry::Absent).map_err(io)?;
            }
        }
        let mut missing: BTreeSet<Sha256> = has.asks_for.into_iter().collect();
        for (path, entry) in &manifest.entries {
            if let ManifestEntry::File { sha256, .. } = entry
                && !has.contents.contains_key(sha256)
            {
                missing.insert(*sha256);
                continue;
            }
            self.put(&mut has, path, entry).map_err(io)?;
        }
        if missing.is_empty() {
            has.mark = Some(manifest.mark);
        }
        Ok(missing.into_iter().collect())
    }

    async fn provide(&self, contents: Vec<Bytes>) -> Result<()> {
        let mut has = self.has()?;
        let contents: Vec<(Sha256, Bytes)> =
            contents.into_iter().map(|content| (Sha256::of(&content), content)).collect();
        has.provided.extend(contents.iter().map(|(digest, _)| *digest));
        has.contents.extend(contents);
        Ok(())
    }

    async fn content(&self, digest: Sha256) -> Result<Option<Bytes>> {
        let has = self.has()?;
        let current = has.files.values().any(|found| *found == digest);
        Ok(has.contents.get(&digest).filter(|_| current).cloned())
    }

    async fn search(&self, tool: &str, args: &str) -> Result<String> {
        drop(self.has()?);
        Ok((self.search)(self.folder.clone(), tool.into(), args.into()).await)
    }
}
