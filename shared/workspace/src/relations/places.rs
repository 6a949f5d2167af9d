//! From identities to places and back, for many files at once: each folder on the way is looked up once per request. A place that is hidden from the
//! party, one that is in the trash, and one whose row cannot be read is none.

use super::readable;
use crate::{
    FileKind, Info, Result, Workspace,
    index::MAX_DEPTH,
    model::{Entry, Node},
};
use domain::{FileId, FilePath};
use parking_lot::Mutex;
use std::collections::HashMap;

/// Places that were looked up. They are those of the moment of the look-up.
pub(crate) struct Places<'a> {
    workspace: &'a Workspace,
    /// The path of an identity with its folder.
    by_id: Mutex<HashMap<FileId, Option<(FileId, FilePath)>>>,
    by_path: Mutex<HashMap<FilePath, Option<Entry>>>,
}

impl<'a> Places<'a> {
    pub fn of(workspace: &'a Workspace) -> Self {
        Self { workspace, by_id: Mutex::default(), by_path: Mutex::default() }
    }

    /// The file or folder with this identity, if it exists for the party.
    pub async fn file(&self, id: FileId) -> Result<Option<Info>> {
        let Some((folder, path)) = self.place(id).await? else { return Ok(None) };
        if !self.workspace.shows(&path) {
            return Ok(None);
        }
        let entry = self.entry(folder, &path).await?.filter(|entry| entry.file_id == id);
        Ok(entry.map(|entry| self.workspace.as_seen(entry.info(path))))
    }

    /// The file or folder at a path, if it exists for the party.
    pub async fn at(&self, path: &FilePath) -> Result<Option<Info>> {
        if path.is_root() || !self.workspace.shows(path) || path.names().count() > MAX_DEPTH {
            return Ok(None);
        }
        let (mut folder, mut at) = (self.workspace.0.keys.root(), FilePath::root());
        for name in path.names() {
            at = at.join(name)?;
            let Some(entry) = self.entry(folder, &at).await? else { return Ok(None) };
            if at == *path {
                return Ok(Some(self.workspace.as_seen(entry.info(at))));
            }
            if entry.kind != FileKind::Folder {
                return Ok(None);
            }
            folder = entry.file_id;
        }
        Ok(None)
    }

    async fn entry(&self, folder: FileId, path: &FilePath) -> Result<Option<Entry>> {
        if let Some(known) = self.by_path.lock().get(path) {
            return Ok(known.clone());
        }
        let inner = &self.workspace.0;
        let entry: Option<Entry> = readable(inner.table.get(&inner.keys.entry(folder, path.name())).await)?;
        self.by_path.lock().insert(path.clone(), entry.clone());
        Ok(entry)
    }

    async fn place(&self, id: FileId) -> Result<Option<(FileId, FilePath)>> {
        let inner = &self.workspace.0;
        let (mut way, mut at) = (Vec::new(), id);
        let mut base = loop {
            if at == inner.keys.root() {
                break Some(FilePath::root());
            }
            if let Some(known) = self.by_id.lock().get(&at) {
                break known.clone().map(|(_, path)| path);
            }
            let node: Option<Node> = readable(inner.table.get(&inner.keys.node(at)).await)?;
            let above = node.and_then(|node| node.folder.map(|folder| (folder, node.name)));
            let Some((folder, name)) = above.filter(|_| way.len() < MAX_DEPTH) else {
                self.by_id.lock().insert(at, None);
                break None;
            };
            way.push((at, folder, name));
            at = folder;
        };
        let mut place = None;
        for (id, folder, name) in way.into_iter().rev() {
            base = base.map(|base| base.join(&name)).transpose()?;
            place = base.clone().map(|path| (folder, path));
            self.by_id.lock().insert(id, place.clone());
        }
        match place {
            Some(place) => Ok(Some(place)),
            None => Ok(self.by_id.lock().get(&id).cloned().flatten()),
        }
    }
}
