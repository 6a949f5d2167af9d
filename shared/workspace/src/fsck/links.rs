//! The links between entries, nodes and versions: each of the three can be made again from the other two.

use super::{Check, FaultPlace, Folder, FsckPart, UNREADABLE, WalkedEntry};
use crate::{
    FileKind, Result, Version, Writer, error,
    mirror::OnDisk,
    model::{Entry, Node},
};
use domain::{FileId, FilePath, Principal};
use ports::{Expect, Key, Query, Write};

impl Check<'_> {
    /// Commits a repair; false when nothing is to be repaired.
    pub(super) async fn mend(&self, writes: Vec<Write>) -> Result<bool> {
        if self.repair {
            let committed = self.workspace.0.table.commit(writes).await;
            self.workspace.0.system.forget();
            committed.map_err(error::port)?;
        }
        Ok(self.repair)
    }

    /// The node of an entry names the entry.
    pub(super) async fn node(&mut self, found: &WalkedEntry) -> Result<()> {
        let inner = &self.workspace.0;
        let right = Node { folder: Some(found.folder), name: found.path.name().into() };
        let key = inner.keys.node(found.entry.file_id);
        let item = inner.table.get(&key).await.map_err(error::port)?;
        let node = item.as_ref().map(|item| error::parse::<Node>(&item.body));
        let (code, message) = match node {
            Some(Ok(node)) if node == right => return Ok(()),
            None => ("node_missing", "the file does not know its place"),
            Some(Ok(_)) => ("node_wrong", "the file names another place than the one that it has"),
            Some(Err(_)) => ("node_unreadable", "the place of the file cannot be read"),
        };
        let put = Write::put(key, error::json(&right)?, Expect::Any);
        let repaired = self.mend(vec![put]).await?;
        self.fault(FsckPart::Links, code, message, repaired);
        Ok(())
    }

    /// Checks the versions of the file at an entry with their contents; gives the entry as it is after repairs.
    pub(super) async fn versions(&mut self, found: &WalkedEntry) -> Result<Entry> {
        let key = self.workspace.0.keys.entry(found.folder, found.path.name());
        self.history(&found.entry, Some((key, found.rev))).await
    }

    /// The versions of a file count from 1 to the current one, which is the one that its entry has. `at` is the entry's key and revision.
    pub(super) async fn history(&mut self, entry: &Entry, at: Option<(Key, u64)>) -> Result<Entry> {
        let (keys, place) = (self.workspace.0.keys, self.at.clone());
        let (mut next, mut last): (_, Option<Version>) = (1, None);
        let mut pages = self.pages(keys.versions(entry.file_id));
        while let Some(items) = pages.next().await.map_err(error::port)? {
            for item in items {
                let number: u64 = item.key.sk.parse().unwrap_or_default();
                for missing in next..number {
                    self.at.v = Some(missing);
                    self.fault(FsckPart::Index, "version_missing", "the version is missing in the history", false);
                }
                next = number + 1;
                self.at.v = Some(number);
                self.done.versions += 1;
                let version = error::parse::<Version>(&item.body).ok().filter(|version| version.v == number);
                let Some(version) = version else {
                    self.fault(FsckPart::Index, "version_unreadable", "the version cannot be read", false);
                    continue;
                };
                self.content(version.sha256, version.size).await?;
                last = Some(version);
            }
        }
        let repaired = self.current(entry, last, at).await?;
        self.at = place;
        Ok(repaired)
    }

    async fn current(&mut self, entry: &Entry, last: Option<Version>, at: Option<(Key, u64)>) -> Result<Entry> {
        let keys = self.workspace.0.keys;
        self.at.v = Some(entry.v);
        let Some(sha256) = entry.sha256 else {
            self.fault(FsckPart::Index, "entry_wrong", "the file has no digest", false);
            return Ok(entry.clone());
        };
        match last {
            Some(last) if last.v == entry.v && last.sha256 == sha256 && last.size == entry.size => Ok(entry.clone()),
            // The entry is behind its history, or differs from it: versions never change, so the newest one is right.
            Some(last) if last.v >= entry.v => {
                let right = Entry {
                    v: last.v,
                    sha256: Some(last.sha256),
                    size: last.size,
                    author: last.author,
                    updated_at: last.at,
                    ..entry.clone()
                };
                let mut repaired = false;
                if let Some((key, rev)) = at {
                    let put = Write::put(key, error::json(&right)?, Expect::Rev(rev));
                    repaired = self.mend(vec![put]).await?;
                }
                self.fault(FsckPart::Links, "entry_wrong", "the file does not show its newest version", repaired);
                Ok(if repaired { right } else { entry.clone() })
            }
            _ => {
                let author = entry.author.clone();
                let (v, size, at) = (entry.v, entry.size, entry.updated_at);
                let version = Version { v, sha256, size, author, at, call_id: None };
                let put = Write::put(keys.version(entry.file_id, v), error::json(&version)?, Expect::Any);
                let repaired = self.mend(vec![put]).await?;
                self.fault(
                    FsckPart::Links,
                    "version_missing",
                    "the current version is missing in the history",
                    repaired,
                );
                self.content(sha256, size).await?;
                Ok(entry.clone())
            }
        }
    }

    /// Looks for nodes that the walk did not reach: files and folders whose entry got lost. A folder that comes back is walked through. `patient`: those in
    /// a folder that is lost itself wait for it; that some do is noted.
    pub(super) async fn lost(&mut self, patient: bool) -> Result<()> {
        let keys = self.workspace.0.keys;
        self.waits = false;
        let mut pages = self.pages(keys.nodes());
        while let Some(items) = pages.next().await.map_err(error::port)? {
            for item in items {
                let Ok(id) = item.key.sk.parse::<FileId>() else { continue };
                if self.reached.contains(&id) {
                    continue;
                }
                let node = error::parse::<Node>(&item.body);
                if let Ok(Node { folder: Some(folder), name }) = &node
                    && self.is_at(*folder, name, id).await?
                {
                    // Its folder is lost, and brings it along.
                    continue;
                }
                if let Ok(Node { folder: Some(folder), .. }) = &node
                    && patient
                    && !self.reached.contains(folder)
                    && self.workspace.0.table.get(&keys.node(*folder)).await.map_err(error::port)?.is_some()
                {
                    self.waits = true;
                    continue;
                }
                self.reached.insert(id);
                self.at = FaultPlace { file_id: Some(id), ..FaultPlace::default() };
                let Ok(Node { folder: Some(folder), name }) = node else {
                    self.fault(FsckPart::Links, "node_unreadable", "the place of the file cannot be read", false);
                    continue;
                };
                if let Some(back) = self.bring_back(id, folder, &name).await? {
                    self.walk(back).await?;
                }
            }
        }
        Ok(())
    }

    async fn is_at(&self, folder: FileId, name: &str, id: FileId) -> Result<bool> {
        let inner = &self.workspace.0;
        let item = inner.table.get(&inner.keys.entry(folder, name)).await.map_err(error::port)?;
        Ok(item.is_some_and(|item| error::parse::<Entry>(&item.body).is_ok_and(|entry| entry.file_id == id)))
    }

    /// Makes the lost entry of a node again. Gives the folder that it is.
    async fn bring_back(&mut self, id: FileId, folder: FileId, name: &str) -> Result<Option<Folder>> {
        let (inner, root) = (&self.workspace.0, FilePath::root());
        let above = if folder == inner.keys.root() { Ok(root) } else { self.workspace.path_of(folder).await };
        let path = above.ok().and_then(|above| above.join(name).ok());
        self.at.path = path.as_ref().map(ToString::to_string);
        let key = inner.keys.entry(folder, name);
        let there = inner.table.get(&key).await.map_err(error::port)?;
        let (is_free, expect) = match &there {
            None => (true, Expect::Absent),
            Some(item) => (error::parse::<Entry>(&item.body).is_err(), Expect::Rev(item.rev)),
        };
        let Some(path) = path.filter(|_| is_free) else {
            self.fault(
                FsckPart::Links,
                "entry_missing",
                "the file has no place, and its old one is taken or gone",
                false,
            );
            return Ok(None);
        };
        let entry = self.entry_of(id).await?;
        // The file of a chat has no history either: a file on the disk is no folder.
        let is_folder = entry.as_ref().is_some_and(|entry| entry.kind == FileKind::Folder);
        let is_file = is_folder && matches!(self.look(&path).await?, OnDisk::File(_));
        let Some(entry) = entry.filter(|_| !is_file) else {
            self.fault(
                FsckPart::Links,
                "entry_missing",
                "the file has no place, and its history cannot be read",
                false,
            );
            return Ok(None);
        };
        let put = Write::put(key, error::json(&entry)?, expect);
        let repaired = self.mend(vec![put]).await?;
        let (part, (code, message)) = match self.unreadable.remove(&(folder, name.to_owned())) {
            Some(_) => (FsckPart::Index, UNREADABLE),
            None => (FsckPart::Links, ("entry_missing", "the folder that the file is in does not list it")),
        };
        self.fault(part, code, message, repaired);
        match entry.kind {
            FileKind::Folder => Ok(Some(Folder { path, id, mirrored: self.has_mirror })),
            _ => {
                self.done.files += 1;
                self.history(&entry, None).await?;
                if repaired {
                    self.settles(&path).await?;
                }
                Ok(None)
            }
        }
    }

    /// The entry of a node, from its history; a file without one is a folder. None when the history cannot be read.
    async fn entry_of(&self, id: FileId) -> Result<Option<Entry>> {
        let inner = &self.workspace.0;
        let range = Query::all(inner.keys.versions(id), 1);
        let newest = inner.table.query(&range.clone().descending()).await.map_err(error::port)?;
        let oldest = inner.table.query(&range).await.map_err(error::port)?;
        let folder = Entry::folder(id, &Writer::new(Principal::System), inner.clock.now());
        let (Some(newest), Some(oldest)) = (newest.items.first(), oldest.items.first()) else {
            return Ok(Some(folder));
        };
        let (Ok(newest), Ok(oldest)) = (error::parse::<Version>(&newest.body), error::parse::<Version>(&oldest.body))
        else {
            return Ok(None);
        };
        let Version { v, sha256, size, author, at, .. } = newest;
        let (kind, sha256, created_at) = (FileKind::File, Some(sha256), oldest.at);
        Ok(Some(Entry { kind, v, sha256, size, author, created_at, updated_at: at, ..folder }))
    }
}
