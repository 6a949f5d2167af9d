//! Reading the index: from a path to its entry, and from an identity to its path.

use crate::{
    FileKind, Info, Result, Workspace, error,
    keys::Keys,
    model::{Entry, Node},
};
use domain::{Code, Error, FileId, FilePath};
use ports::{Expect, Query, Write};

/// The most names in a path: making or moving one has to fit into one commit.
pub const MAX_DEPTH: usize = 40;
/// How many entries of a folder are read at once, where all are.
const ENTRIES_AT_ONCE: usize = 500;

/// An entry that is there.
#[derive(Clone, Debug)]
pub(crate) struct FoundEntry {
    /// The folder that it is in.
    pub folder: FileId,
    pub name: String,
    pub entry: Entry,
    pub rev: u64,
}

/// An entry that is there, and what its node has to be at the commit that builds on it.
#[derive(Clone, Debug)]
pub(crate) struct HeldEntry {
    pub found: FoundEntry,
    /// Its revision where other processes move and remove entries, too; else that it is there.
    pub node: Expect,
}

/// How far a path leads.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The folders on the way, from the root down; at least the root.
    pub above: Vec<FileId>,
    /// The entry at the path; none for the root, and when there is no entry.
    pub found: Option<FoundEntry>,
    /// The names that lead to nothing; the last one is the path's own. Empty when something was found.
    pub missing: Vec<String>,
}

impl Walk {
    /// The deepest folder that is there.
    pub fn deepest(&self) -> FileId {
        self.above.last().copied().unwrap_or(FileId(uuid::Uuid::nil()))
    }
}

impl HeldEntry {
    /// The check that the entry is at its place until the commit; none where that is sure.
    pub fn check(&self, keys: Keys) -> Option<Write> {
        matches!(self.node, Expect::Rev(_)).then(|| Write::check(keys.node(self.found.entry.file_id), self.node))
    }
}

impl Workspace {
    /// Follows a path. An error when there is a file where a folder is needed.
    pub(crate) async fn walk(&self, path: &FilePath) -> Result<Walk> {
        let names: Vec<&str> = path.names().collect();
        let shown = self.shown_names(path).unwrap_or(names.len());
        let mut walk = Walk { above: vec![self.0.keys.root()], found: None, missing: Vec::new() };
        for (depth, name) in names.iter().enumerate() {
            let folder = walk.deepest();
            let key = self.0.keys.entry(folder, name);
            let item = if depth < shown { self.0.table.get(&key).await.map_err(error::port)? } else { None };
            let Some(item) = item else {
                walk.missing = names.iter().skip(depth).map(|name| (*name).into()).collect();
                return Ok(walk);
            };
            let entry: Entry = error::parse(&item.body)?;
            if depth + 1 == names.len() {
                walk.found = Some(FoundEntry { folder, name: (*name).into(), entry, rev: item.rev });
            } else if entry.kind == FileKind::Folder {
                walk.above.push(entry.file_id);
            } else {
                let above: Vec<&str> = names.iter().take(depth + 1).copied().collect();
                let file = format!("/{}", above.join("/"));
                let message = format!("there is no {path}: {file} is a file, not a folder");
                return Err(Error::new(Code::NotFound, message).hint("name the file itself, or a path in a folder"));
            }
        }
        Ok(walk)
    }

    /// The entry at the path; `NOT_FOUND` with similar names when there is none.
    pub(crate) async fn found(&self, path: &FilePath) -> Result<FoundEntry> {
        let walk = self.walk(path).await?;
        match walk.found {
            Some(found) => Ok(found),
            None if path.is_root() => Err(error::wrong_kind(path, "the root folder", "name something inside of it")),
            None => Err(self.nothing_at(path, &walk).await),
        }
    }

    /// The entry that a walk found, for a commit that changes it; none when it has left its place since, so that the change is to be decided anew.
    ///
    /// The revision of an entry does not tell that by itself. One that comes into the place of another begins with the same revision, and another
    /// process may have put it there. So the commit expects the node of the entry as well, which each move and each removal changes. Where this process
    /// writes alone, the lock of the tree keeps entries at their places.
    pub(crate) async fn hold(&self, found: FoundEntry) -> Result<Option<HeldEntry>> {
        if self.writes_alone() {
            return Ok(Some(HeldEntry { found, node: Expect::Present }));
        }
        let FoundEntry { folder, name, entry, .. } = found;
        let node = self.0.table.get(&self.0.keys.node(entry.file_id)).await.map_err(error::port)?;
        let Some(node) = node else { return Ok(None) };
        let place: Node = error::parse(&node.body)?;
        if place.folder != Some(folder) || place.name != name {
            return Ok(None);
        }
        // It may have left its place and come back between the two reads: its entry is only as new as its node if it is read after it.
        let again = self.0.table.get(&self.0.keys.entry(folder, &name)).await.map_err(error::port)?;
        let Some(again) = again else { return Ok(None) };
        let now: Entry = error::parse(&again.body)?;
        let is_same = now.file_id == entry.file_id;
        let found = FoundEntry { folder, name, entry: now, rev: again.rev };
        Ok(is_same.then_some(HeldEntry { found, node: Expect::Rev(node.rev) }))
    }

    /// The checks that the folders of a walk to this path are at their places until the commit; none when one has left its place already, so that the
    /// path leads elsewhere by now.
    pub(crate) async fn hold_folders(&self, path: &FilePath, above: &[FileId]) -> Result<Option<Vec<Write>>> {
        let mut checks = Vec::with_capacity(above.len());
        let (mut inside, names) = (None, std::iter::once("").chain(path.names()));
        for (folder, name) in above.iter().zip(names) {
            let key = self.0.keys.node(*folder);
            let Some(item) = self.0.table.get(&key).await.map_err(error::port)? else { return Ok(None) };
            let place: Node = error::parse(&item.body)?;
            // A node with another revision than at the walk passes the check, as its revision is read here.
            if !self.writes_alone() && (place.folder != inside || place.name != name) {
                return Ok(None);
            }
            checks.push(Write::check(key, Expect::Rev(item.rev)));
            inside = Some(*folder);
        }
        Ok(Some(checks))
    }

    /// The error for a path without an entry, with the nearest existing names.
    async fn nothing_at(&self, path: &FilePath, walk: &Walk) -> Error {
        const LOOK_AT: usize = 500;
        let error = Error::not_found("file or folder", path);
        let Some(wrong) = walk.missing.first() else { return error };
        let there = self.0.table.query(&Query::all(self.0.keys.folder(walk.deepest()), LOOK_AT)).await;
        let there = there.unwrap_or_default();
        let above = path.names().count().saturating_sub(walk.missing.len());
        let folder = path.names().take(above).try_fold(FilePath::root(), |folder, name| folder.join(name));
        let is_shown = |name: &str| folder.as_ref().ok().and_then(|folder| folder.join(name).ok());
        let names = there.items.iter().map(|item| item.key.sk.as_str());
        let names: Vec<&str> = names.filter(|name| is_shown(name).is_some_and(|path| self.shows(&path))).collect();
        let near = similar::get_close_matches(wrong.as_str(), &names, 3, 0.6);
        if near.is_empty() {
            error.hint("list the folder to see what is there")
        } else {
            error.hint(format!("similar names there: {}", near.join(", ")))
        }
    }

    /// The path of an identity.
    ///
    /// # Errors
    /// `NOT_FOUND` when it does not exist or is in the trash, which the hint then says; `INTERNAL` when it lies under more than 40 names;
    /// else those of [`Workspace`].
    pub async fn path_of(&self, file_id: FileId) -> Result<FilePath> {
        let mut names: Vec<String> = Vec::new();
        let mut at = file_id;
        while at != self.0.keys.root() {
            let item = self.0.table.get(&self.0.keys.node(at)).await.map_err(error::port)?;
            let Some(item) = item else {
                let trashed = self.0.table.get(&self.0.keys.trashed(at)).await.map_err(error::port)?;
                let item = trashed.map(|item| error::parse::<crate::trash_entry::Item>(&item.body)).transpose()?;
                let error = Error::not_found("file", file_id);
                let Some(item) = item else { return Err(error) };
                // Its own path counts, too, as it was in the folder that went.
                let was = names.iter().rev().try_fold(item.path.clone(), |path, name| path.join(name));
                let is_seen = self.shows(&item.path) && was.is_ok_and(|was| self.shows(&was));
                return Err(match (is_seen, at == file_id) {
                    (false, _) => error,
                    (true, true) => error.hint("it is in the trash: restore it first"),
                    (true, false) => error
                        .hint(format!("it is in the trash with the folder {}: restore that first", item.path))
                        .detail("folder_id", at.to_string()),
                });
            };
            let node: Node = error::parse(&item.body)?;
            names.push(node.name);
            // More than could be made: a cycle, which conditional moves rule out.
            let Some(folder) = node.folder.filter(|_| names.len() <= MAX_DEPTH) else {
                return Err(error::port(ports::Error::Damaged(format!("the node {file_id} leads nowhere"))));
            };
            at = folder;
        }
        names.reverse();
        let path = FilePath::parse(&format!("/{}", names.join("/")))?;
        if self.shows(&path) { Ok(path) } else { Err(Error::not_found("file", file_id)) }
    }

    /// A page of a folder.
    ///
    /// # Errors
    /// `INTERNAL` for an entry that cannot be read, too: its reader decides by all that is there.
    pub(crate) async fn entries(&self, folder: FileId, limit: usize, cursor: Option<String>) -> Result<Page> {
        let query = Query::all(self.0.keys.folder(folder), limit).after(cursor);
        let page = self.0.table.query(&query).await.map_err(ports::validate::of_page(&query, error::port))?;
        let entries = page.items.into_iter().map(|item| Ok((item.key.sk, error::parse(&item.body)?)));
        Ok(Page { entries: entries.collect::<Result<_>>()?, left_out: Vec::new(), next: page.next })
    }

    /// All entries of a folder.
    pub(crate) async fn all_entries(&self, folder: FileId) -> Result<Vec<(String, Entry)>> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.entries(folder, ENTRIES_AT_ONCE, cursor).await?;
            all.extend(page.entries);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    /// A page of a folder without the entries that cannot be read: for lists. Each of these is logged and counted.
    pub(crate) async fn readable_page(&self, folder: FileId, limit: usize, cursor: Option<String>) -> Result<Page> {
        let query = Query::all(self.0.keys.folder(folder), limit).after(cursor);
        let page = self.0.table.query(&query).await.map_err(ports::validate::of_page(&query, error::port))?;
        let (mut entries, mut left_out) = (Vec::new(), Vec::new());
        for item in page.items {
            match ports::readable_content::<Entry>(&item) {
                Some(entry) => entries.push((item.key.sk, entry)),
                None => left_out.push(item.key.sk),
            }
        }
        Ok(Page { entries, left_out, next: page.next })
    }

    /// All entries of a folder that can be read, and the names of the others.
    pub(crate) async fn readable_entries(&self, folder: FileId) -> Result<(Vec<(String, Entry)>, Vec<String>)> {
        let (mut all, mut left_out, mut cursor) = (Vec::new(), Vec::new(), None);
        loop {
            let page = self.readable_page(folder, ENTRIES_AT_ONCE, cursor).await?;
            all.extend(page.entries);
            left_out.extend(page.left_out);
            cursor = page.next;
            if cursor.is_none() {
                return Ok((all, left_out));
            }
        }
    }

    /// The root folder, which has no entry.
    pub(crate) fn root_info(&self) -> Info {
        Info {
            file_id: self.0.keys.root(),
            path: FilePath::root(),
            name: String::new(),
            kind: FileKind::Folder,
            v: 0,
            sha256: None,
            size: 0,
            author: domain::Principal::System.to_string(),
            created_at: domain::Timestamp::default(),
            updated_at: domain::Timestamp::default(),
            conversion: None,
            derived_from: None,
        }
    }
}

/// A page of a folder, as the index has it.
pub(crate) struct Page {
    pub entries: Vec<(String, Entry)>,
    /// The names of the entries that were left out because they cannot be read.
    pub left_out: Vec<String>,
    pub next: Option<String>,
}
