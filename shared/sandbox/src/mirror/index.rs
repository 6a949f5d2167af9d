//! The files of a mirror, and the changes of a manifest.

use super::{Budget, Changes, Folder, OnDisk, WantedContent};
use domain::{FilePath, Sha256};
use ports::{Error, Manifest, ManifestEntry, Result};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    ops::Bound,
};
use uuid::Uuid;
use workspace::{large_contents::digest_of, mirror::Area};

/// The entry at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Folder,
    File { digest: Sha256, size: u64 },
}

/// The entries by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index(BTreeMap<FilePath, Entry>);

impl Index {
    /// Reads all files on disk. Entries that no manifest can name are removed: links, devices, names that are no paths, and files over
    /// `limit`.
    ///
    /// # Errors
    /// Those of the disk; a stray entry that cannot be removed is one of them.
    pub fn read(folder: &Folder, limit: u64) -> io::Result<Self> {
        let mut index = Self::default();
        let (mut folders, mut strays) = (vec![FilePath::root()], 0_u128);
        while let Some(at) = folders.pop() {
            for name in folder.names(&at)? {
                let Ok(path) = at.join(&name) else {
                    tracing::warn!(folder = %at, "something in a mirror has a name that is no path");
                    continue;
                };
                match folder.look(Area::Latest, &path)? {
                    OnDisk::Nothing => {}
                    OnDisk::Folder => {
                        index.0.insert(path.clone(), Entry::Folder);
                        folders.push(path);
                    }
                    OnDisk::File(size) if size <= limit => {
                        let digest = digest_of(folder.open(&path)?)?;
                        index.0.insert(path, Entry::File { digest, size });
                    }
                    OnDisk::File(_) => drop(folder.remove(Area::Latest, &path, Uuid::nil())?),
                    OnDisk::Stray => {
                        strays += 1;
                        folder.remove(Area::Latest, &path, Uuid::from_u128(strays))?;
                    }
                }
            }
        }
        Ok(index)
    }

    /// One digest of all of it.
    pub fn digest(&self) -> Sha256 {
        let mut text = String::new();
        for (path, entry) in &self.0 {
            text.push_str(path.as_str());
            match entry {
                Entry::Folder => text.push_str("/\n"),
                Entry::File { digest, .. } => text.push_str(&format!("\t{digest}\n")),
            }
        }
        Sha256::of(text.as_bytes())
    }

    /// A file with this content, and its size.
    pub fn find(&self, wanted: Sha256) -> Option<(FilePath, u64)> {
        self.0.iter().find_map(|(path, entry)| match entry {
            Entry::File { digest, size } if *digest == wanted => Some((path.clone(), *size)),
            _ => None,
        })
    }

    /// Notes a new entry at a path: folders above it exist now, and below a file there is nothing.
    pub fn put(&mut self, path: FilePath, entry: Entry) {
        for above in ancestors(&path) {
            self.0.insert(above, Entry::Folder);
        }
        if entry != Entry::Folder {
            self.remove(&path);
        }
        if !path.is_root() {
            self.0.insert(path, entry);
        }
    }

    /// Notes that a path was removed with all below it.
    pub fn remove(&mut self, path: &FilePath) {
        let below: Vec<FilePath> = self.below(path).cloned().collect();
        for path in below {
            self.0.remove(&path);
        }
        self.0.remove(path);
    }

    fn below<'a>(&'a self, folder: &'a FilePath) -> impl Iterator<Item = &'a FilePath> {
        // Paths that begin with the folder's text are next to each other, neighbours such as `/a-b` of `/a` among them.
        let after = self.0.range((Bound::Excluded(folder.clone()), Bound::Unbounded)).map(|(path, _)| path);
        after.take_while(|path| path.as_str().starts_with(folder.as_str())).filter(|path| path.is_within(folder))
    }

    /// The changes that make a manifest hold.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a root that is no folder, an entry below something that is no folder, a file over the budget's length, and
    /// files that are together more than the budget.
    pub fn changes(&self, manifest: &Manifest, budget: &Budget) -> Result<Changes> {
        let invalid = |reason: String| Err(Error::Invalid(reason));
        let mut changes = Changes::default();
        let mut above = BTreeSet::new();
        for (path, entry) in &manifest.entries {
            if path.is_root() && *entry != ManifestEntry::Folder {
                return invalid("the root of a workspace is a folder".into());
            }
            if *entry == ManifestEntry::Absent {
                changes.removed.push(path.clone());
                continue;
            }
            for folder in ancestors(path) {
                if !matches!(manifest.entries.get(&folder), None | Some(ManifestEntry::Folder)) {
                    return invalid(format!("the manifest has {path}, and no folder at {folder}"));
                }
                above.insert(folder);
            }
            match (entry, self.0.get(path)) {
                (ManifestEntry::File { size, .. }, _) if *size > budget.file => {
                    return invalid(format!("{path} is over {} bytes long", budget.file));
                }
                (ManifestEntry::File { sha256, size }, found) => {
                    if found != Some(&Entry::File { digest: *sha256, size: *size }) {
                        let wanted = WantedContent { digest: *sha256, size: *size };
                        changes.files.entry(wanted).or_default().push(path.clone());
                    }
                }
                (_, Some(Entry::Folder)) => {}
                _ if path.is_root() => {}
                _ => changes.folders.push(path.clone()),
            }
        }
        if manifest.whole {
            let stays = |path: &FilePath| above.contains(path) || manifest.entries.contains_key(path);
            for path in self.0.keys().filter(|path| !stays(path)) {
                // A folder goes with all that is in it.
                if !changes.removed.last().is_some_and(|last| path.is_within(last)) {
                    changes.removed.push(path.clone());
                }
            }
        }
        self.fits(manifest, &changes, budget)?;
        Ok(changes)
    }

    /// Whether the result of the manifest is within the budget.
    fn fits(&self, manifest: &Manifest, changes: &Changes, budget: &Budget) -> Result<()> {
        let removed: BTreeSet<&FilePath> = changes.removed.iter().collect();
        let goes = |path: &FilePath| removed.contains(path) || ancestors(path).any(|above| removed.contains(&above));
        let (mut bytes, mut entries) = (0_u64, 0_usize);
        let mut count = |size: u64| (bytes, entries) = (bytes.saturating_add(size), entries + 1);
        for entry in manifest.entries.values() {
            match entry {
                ManifestEntry::File { size, .. } => count(*size),
                ManifestEntry::Folder => count(0),
                ManifestEntry::Absent => {}
            }
        }
        for (_, entry) in self.0.iter().filter(|(path, _)| !manifest.entries.contains_key(path) && !goes(path)) {
            count(if let Entry::File { size, .. } = entry { *size } else { 0 });
        }
        if bytes > budget.bytes || entries > budget.entries {
            return Err(Error::Invalid(format!(
                "the files are more than the sandbox has room for: {entries} with {bytes} bytes, of {} with {}",
                budget.entries, budget.bytes
            )));
        }
        Ok(())
    }
}

/// The folders above a path, but for the root.
fn ancestors(path: &FilePath) -> impl Iterator<Item = FilePath> {
    std::iter::successors(path.parent(), FilePath::parent).filter(|path| !path.is_root())
}
