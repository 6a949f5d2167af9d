//! The walk of an export: folders and files of a party in the order of an archive, with their histories.

use super::layout::{Count, Row, Written};
use crate::{
    FileKind, Op, Result, Version, Workspace, damages::is_damage, documents::is_document, error, keys::Keys,
    model::Entry,
};
use bytes::Bytes;
use domain::{Code, Error, FileId, FilePath, Timestamp};
use ports::{Item, Query, readable_content};

const PAGE: usize = 500;

/// A file that an export has.
pub(super) struct Exported {
    pub path: FilePath,
    pub entry: Entry,
    /// The content of a projection, which is in no archive.
    pub projection: Option<Bytes>,
}

/// One step of the walk.
pub(super) enum Step {
    Folder(FileId, Row),
    File(Exported),
    /// The path of something that cannot be read.
    Unreadable(FilePath),
}

/// A walk from the root down.
pub(super) struct Walk {
    workspace: Workspace,
    began: Timestamp,
    folders: Vec<(FilePath, FileId)>,
    page: std::vec::IntoIter<(String, Option<Entry>)>,
    at: Option<(FilePath, FileId)>,
    cursor: Option<String>,
    pub left_out: u64,
}

impl Walk {
    pub fn new(workspace: Workspace) -> Self {
        let began = workspace.0.clock.now();
        let folders = vec![(FilePath::root(), workspace.0.keys.root())];
        Self { workspace, began, folders, page: Vec::new().into_iter(), at: None, cursor: None, left_out: 0 }
    }

    /// The next folder or file; none at the end.
    ///
    /// # Errors
    /// `CONFLICT` at the end when something was moved meanwhile, since the walk may have passed it by; else those of [`Workspace`].
    pub async fn next(&mut self) -> Result<Option<Step>> {
        loop {
            let Some((name, entry)) = self.page.next() else {
                if !self.turn().await? {
                    self.nothing_was_moved().await?;
                    return Ok(None);
                }
                continue;
            };
            let Some((folder, _)) = &self.at else { continue };
            let path = folder.join(&name)?;
            if !self.workspace.shows(&path) {
                continue;
            }
            let Some(entry) = entry else { return Ok(Some(Step::Unreadable(path))) };
            let is_made_again = self.is_made_again(&entry, &path).await?;
            match entry.kind {
                FileKind::Folder => {
                    self.folders.push((path.clone(), entry.file_id));
                    let (id, author, created_at) = (entry.file_id, entry.author, entry.created_at);
                    return Ok(Some(Step::Folder(id, Row::Folder { path, author, created_at })));
                }
                FileKind::File if is_made_again => {}
                _ if !self.workspace.may_read(&path) => self.left_out += 1,
                FileKind::File if entry.sha256.is_none() => return Ok(Some(Step::Unreadable(path))),
                FileKind::File => return Ok(Some(Step::File(Exported { path, entry, projection: None }))),
                FileKind::Projection => {
                    let content = match self.workspace.read(&path, None).await {
                        Ok(content) => content,
                        // The log of a chat may be damaged.
                        Err(error) if is_unreadable(&error) || error.code == Code::Internal => {
                            tracing::error!(%path, %error, "an export lacks this file");
                            return Ok(Some(Step::Unreadable(path)));
                        }
                        Err(error) => return Err(error),
                    };
                    let (size, sha256) = (content.bytes.len() as u64, content.info.sha256);
                    let entry = Entry { v: 1, size, sha256, updated_at: self.began, ..entry };
                    return Ok(Some(Step::File(Exported { path, entry, projection: Some(content.bytes) })));
                }
            }
        }
    }

    /// Whether a file was made from a document and will be so again: from one under `/data` by the import, from one that is attached to a chat when it is
    /// attached again. Elsewhere it is in a folder that somebody moved there.
    async fn is_made_again(&self, entry: &Entry, path: &FilePath) -> Result<bool> {
        let Some(document) = entry.derived_from.filter(|_| entry.kind == FileKind::File) else { return Ok(false) };
        if is_document(path) {
            return Ok(true);
        }
        match self.workspace.by_id(document).await {
            Ok(document) => Ok(document.is_document()),
            // The document is damaged or gone, so nothing makes the file again.
            Err(error) if error.code == Code::NotFound || error::is_damage_of_index(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Goes on to the next page with entries, or to the next folder; false at the end.
    async fn turn(&mut self) -> Result<bool> {
        if self.at.is_none() || self.cursor.is_none() {
            self.at = self.folders.pop();
            self.cursor = None;
        }
        let Some((_, folder)) = &self.at else { return Ok(false) };
        let query = Query::all(self.workspace.0.keys.folder(*folder), PAGE).after(self.cursor.take());
        let page = self.workspace.0.table.query(&query).await.map_err(error::port)?;
        self.cursor = page.next;
        let entries: Vec<_> = page.items.iter().map(|item| (item.key.sk.clone(), readable_content(item))).collect();
        self.page = entries.into_iter();
        Ok(true)
    }

    async fn nothing_was_moved(&self) -> Result<()> {
        let keys = self.workspace.0.keys;
        let range = Query { from: Some(Keys::changes_from(self.began)), ..Query::all(keys.changes(), PAGE) };
        let mut pages = self.workspace.0.table.pages(range);
        while let Some(items) = pages.next().await.map_err(error::port)? {
            for item in &items {
                // A change out of sight of the party is in no export of it, and is not told either.
                let Some(change) = self.workspace.seen_change(error::parse(&item.body)?) else { continue };
                if matches!(change.op, Op::Moved | Op::Restored) {
                    return Err(Error::new(Code::Conflict, format!("{} was moved during the export", change.path))
                        .hint("export again"));
                }
            }
        }
        Ok(())
    }
}

impl Exported {
    /// Its versions from the one after `v` on, at most a page of them.
    ///
    /// # Errors
    /// `INTERNAL` for a version that cannot be read; else those of [`Workspace`].
    pub async fn versions(&self, workspace: &Workspace, v: u64) -> Result<Vec<Written>> {
        let versions = self.readable_versions(workspace, v).await?;
        versions.into_iter().map(|(v, written)| written.ok_or_else(|| unreadable(&self.path, Some(v)))).collect()
    }

    /// The same, with none in the place of a version that cannot be read.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn readable_versions(&self, workspace: &Workspace, v: u64) -> Result<Vec<(u64, Option<Written>)>> {
        if self.projection.is_some() {
            let only = self.newest().filter(|_| v == 0);
            return Ok(only.into_iter().map(|written| (written.v, Some(written))).collect());
        }
        let (keys, file) = (workspace.0.keys, self.entry.file_id);
        // Versions that come during the walk are of the next export.
        let (from, to) = (Some(keys.version(file, v + 1).sk), Some(keys.version(file, self.entry.v + 1).sk));
        let range = Query { from, to, ..Query::all(keys.versions(file), PAGE) };
        let page = workspace.0.table.query(&range).await.map_err(error::port)?;
        let version = |item: &Item| Some((item.key.sk.parse::<u64>().ok()?, readable_content(item).map(Written::of)));
        Ok(page.items.iter().filter_map(version).collect())
    }

    /// The newest version as the entry of the file tells it; none for an entry without a content.
    pub fn newest(&self) -> Option<Written> {
        let Entry { v, sha256, size, author, updated_at: at, .. } = &self.entry;
        let author = author.clone();
        sha256.map(|sha256| Written { v: *v, sha256, size: *size, author, at: *at, call_id: None })
    }

    /// One of its versions; none where that is not there.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn version(&self, workspace: &Workspace, v: u64) -> Result<Option<Written>> {
        // Versions that come during the walk are of the next export.
        if v > self.entry.v {
            return Ok(None);
        }
        let key = workspace.0.keys.version(self.entry.file_id, v);
        let item = workspace.0.table.get(&key).await.map_err(error::port)?;
        item.map(|item| error::parse(&item.body).map(Written::of)).transpose()
    }

    /// Its row.
    pub fn row(&self) -> Row {
        Row::File { path: self.path.clone(), file_id: self.entry.file_id, created_at: self.entry.created_at }
    }
}

impl Written {
    fn of(Version { v, sha256, size, author, at, call_id }: Version) -> Self {
        Self { v, sha256, size, author, at, call_id }
    }
}

/// Whether an error says that data is damaged, and not that a store or a disk did not answer.
pub(super) fn is_unreadable(error: &Error) -> bool {
    is_damage(error) || error::is_damage_of_index(error)
}

/// The error about something that cannot be read, with its place.
pub(super) fn unreadable(path: &FilePath, v: Option<u64>) -> Error {
    let error = error::port(ports::Error::Damaged(format!("a row of {path}"))).detail("path", path.to_string());
    match v {
        Some(v) => error.detail("v", v),
        None => error,
    }
}

impl Count {
    pub fn content(&mut self, size: u64) {
        self.contents += 1;
        self.bytes += size;
    }
}

/// The error of a content with its place.
pub(super) fn at(error: Error, of: &Exported, v: u64) -> Error {
    crate::damages::at(error, Some(&of.path), of.entry.file_id, v)
}
