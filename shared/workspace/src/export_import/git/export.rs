//! Writes a stream for `git fast-import`: a format of plain text that Git itself reads, so that no library of Git is needed here.
//!
//! Each change is a commit, in its order, with its author and time: a version, a move, a removal, a return from the trash. The changes of one rewind are
//! one commit. Records of changes are kept for 30 days, and versions for ever: so a version from before has a commit, too, at the path that its file had
//! when the records begin. Purged files and empty folders are not in it.

use super::{
    DOMAIN, is_of_git,
    places::{Edit, Places},
};
use crate::{
    Change, FileKind, Op, Result, Workspace, WorkspaceInfo, error,
    export_import::{
        export::Sink,
        layout::Written,
        rows::{Exported, Step, Walk, at, unreadable},
    },
};
use domain::{FileId, FilePath, Timestamp};
use ports::Query;
use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};
use uuid::Uuid;

/// Records and entries of the trash read at once.
const PAGE: usize = 500;

pub(crate) async fn write(workspace: Workspace, sink: Sink, info: &WorkspaceInfo) -> Result<()> {
    sink.send("feature done\n").await?;
    let began = workspace.0.clock.now();
    let mut history =
        History { workspace, sink, info, files: HashMap::new(), projections: Vec::new(), now: Places::default() };
    history.read_files(began).await?;
    history.read_trash(began).await?;
    let changes = history.changes(began).await?;
    let mut places = history.now.clone();
    for (_, change) in changes.iter().rev() {
        places.back(change);
    }
    history.older(&mut places, &changes).await?;
    let mut changes = changes.into_iter().peekable();
    while let Some((id, change)) = changes.next() {
        let group = change.rewind;
        let mut edits = places.forth(&change);
        while let Some((_, next)) = changes.next_if(|(_, next)| group.is_some() && next.rewind == group) {
            edits.extend(places.forth(&next));
        }
        history.commit(Some(group.unwrap_or(id)), &change.author, change.at, edits).await?;
    }
    let versions = |file: FileId| Some(history.files.get(&file)?.entry.v);
    let rest = places.towards(&history.now, versions);
    history.commit(None, "system", began, rest).await?;
    history.projections().await?;
    history.sink.send("done\n").await
}

/// All that a stream is made of.
struct History<'a> {
    workspace: Workspace,
    sink: Sink,
    info: &'a WorkspaceInfo,
    /// Files that are there, or in the trash.
    files: HashMap<FileId, Exported>,
    projections: Vec<Exported>,
    now: Places,
}

impl History<'_> {
    async fn read_files(&mut self, began: Timestamp) -> Result<()> {
        let mut walk = Walk::new(self.workspace.clone());
        while let Some(step) = walk.next().await? {
            let file = match step {
                Step::File(file) => file,
                Step::Folder(..) => continue,
                Step::Unreadable(path) => return Err(unreadable(&path, None)),
            };
            if is_of_git(&file.path) {
                self.left_out(&file.path).await?;
            } else if file.projection.is_some() {
                self.projections.push(file);
            } else if file.entry.created_at <= began {
                self.now.put(&file.path, file.entry.file_id);
                self.files.insert(file.entry.file_id, file);
            }
        }
        Ok(())
    }

    async fn left_out(&self, path: &FilePath) -> Result<()> {
        self.sink.send(format!("progress left out, as Git keeps its own files there: {path}\n")).await
    }

    /// The files in the trash, and in folders that are there. One that was removed after the beginning is still at its place.
    async fn read_trash(&mut self, began: Timestamp) -> Result<()> {
        let mut cursor = None;
        loop {
            let page = self.workspace.trash(PAGE, cursor).await?;
            for trashed in page.files {
                let (root, entry) = (trashed.info.path.clone(), trashed.info.file_id);
                let was_there = trashed.at > began;
                let mut open = Vec::new();
                match trashed.info.kind {
                    FileKind::Folder => open.push((root.clone(), entry)),
                    _ => {
                        let node = self.workspace.trashed_entry(entry).await?;
                        self.removed(&root, &root, entry, node, was_there).await?;
                    }
                }
                while let Some((folder, id)) = open.pop() {
                    for (name, found) in self.workspace.all_entries(id).await? {
                        let path = folder.join(&name)?;
                        match found.kind {
                            FileKind::Folder => open.push((path, found.file_id)),
                            _ => self.removed(&root, &path, entry, Some(found), was_there).await?,
                        }
                    }
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// Takes a file at or below an entry of the trash.
    async fn removed(
        &mut self,
        root: &FilePath,
        path: &FilePath,
        of: FileId,
        entry: Option<crate::model::Entry>,
        was_there: bool,
    ) -> Result<()> {
        let is_file = |entry: &crate::model::Entry| entry.kind == FileKind::File && entry.derived_from.is_none();
        let Some(entry) = entry.filter(is_file) else { return Ok(()) };
        if !self.workspace.shows(path) || !self.workspace.may_read(path) || is_of_git(path) {
            return Ok(());
        }
        let rest = path.as_str().strip_prefix(root.as_str()).unwrap_or_default();
        match was_there {
            true => self.now.put(path, entry.file_id),
            false => self.now.in_trash(of, rest, entry.file_id),
        }
        let file = Exported { path: path.clone(), entry, projection: None };
        self.files.entry(file.entry.file_id).or_insert(file);
        Ok(())
    }

    /// The changes that this party sees, in their order, up to the beginning of the export.
    async fn changes(&self, began: Timestamp) -> Result<Vec<(Uuid, Change)>> {
        let mut changes = Vec::new();
        let mut pages = self.workspace.0.table.pages(Query::all(self.workspace.0.keys.changes(), PAGE));
        while let Some(items) = pages.next().await.map_err(error::port)? {
            // Where a record cannot be read, the last commit leads to the files of now, as after records that are not kept any more.
            for (item, change) in ports::readable::<Change>(&items) {
                let Ok(id) = item.key.sk.parse::<Uuid>() else { continue };
                let tells = change.at <= began && !matches!(change.op, Op::Converted | Op::Marked | Op::Purged);
                let known = change.kind == FileKind::Folder || self.files.contains_key(&change.file_id);
                changes
                    .extend(self.workspace.seen_change(change).filter(|_| tells && known).map(|change| (id, change)));
            }
        }
        Ok(changes)
    }

    /// The versions from before the first record.
    async fn older(&self, places: &mut Places, changes: &[(Uuid, Change)]) -> Result<()> {
        let writes = |change: &Change| change.kind == FileKind::File && matches!(change.op, Op::Written | Op::Made);
        let written = changes.iter().filter(|(_, change)| writes(change));
        let recorded: HashSet<(FileId, u64)> = written.map(|(_, change)| (change.file_id, change.v)).collect();
        let mut order = Vec::new();
        for (path, id) in places.paths() {
            let Some(file) = self.files.get(&id) else { continue };
            let mut last = 0;
            loop {
                let versions = file.versions(&self.workspace, last).await?;
                let Some(newest) = versions.last() else { break };
                last = newest.v;
                let older = versions.iter().filter(|version| !recorded.contains(&(id, version.v)));
                order.extend(older.map(|version| (version.at, id, version.v, path.to_owned())));
            }
        }
        let mut first = HashMap::new();
        for (_, change) in changes.iter().filter(|(_, change)| change.op == Op::Written) {
            first.entry(change.file_id).or_insert(change.v);
        }
        for id in places.trashed() {
            // They come back later.
            let Some(file) = self.files.get(&id) else { continue };
            places.written(id, first.get(&id).map_or(file.entry.v, |v| v.saturating_sub(1)));
        }
        order.sort_unstable();
        for (at, file, v, path) in order {
            places.written(file, v);
            // Versions never change, and stay until their file is purged.
            let Some(version) = self.version(file, v).await? else { continue };
            let (author, edits) = (version.author, vec![Edit::Put { path, file, v }]);
            self.commit(None, &author, at, edits).await?;
        }
        Ok(())
    }

    async fn version(&self, file: FileId, v: u64) -> Result<Option<Written>> {
        let Some(file) = self.files.get(&file) else { return Ok(None) };
        file.version(&self.workspace, v).await
    }

    /// A commit of these edits; none for a change that is nothing to Git.
    async fn commit(&self, change: Option<Uuid>, author: &str, when: Timestamp, edits: Vec<Edit>) -> Result<()> {
        let mut known = Vec::with_capacity(edits.len());
        for edit in edits.into_iter().filter(|edit| !edit.is_gits()) {
            let version = match &edit {
                Edit::Put { file, v, .. } => match self.version(*file, *v).await? {
                    Some(version) => Some((*file, version)),
                    None => continue,
                },
                Edit::Move { .. } | Edit::Remove { .. } => None,
            };
            known.push((edit, version));
        }
        let Some((first, version)) = known.first() else { return Ok(()) };
        let mut message = subject(first);
        if known.len() > 1 {
            let _ = write!(message, " and {} more", known.len() - 1);
        }
        let _ = write!(message, "\n\nWorkspace: {}\n", self.info.workspace_id);
        if let Some(id) = change {
            let _ = writeln!(message, "Change: {id}");
        }
        if let Some((file, Written { v, call_id, .. })) = version.as_ref().filter(|_| known.len() == 1) {
            let _ = write!(message, "File: {file}\nVersion: {v}\n");
            if let Some(call) = call_id {
                // A text takes what is written to it.
                let _ = writeln!(message, "Call: {call}");
            }
        }
        self.sink.send(head(author, when, &message)).await?;
        for (edit, version) in known {
            match (edit, version) {
                (Edit::Put { path, file, v }, Some((_, Written { sha256, size, .. }))) => {
                    self.sink.send(format!("M 100644 inline {}\ndata {size}\n", quoted(&path))).await?;
                    let sent = self.sink.content(&self.workspace, sha256, size).await;
                    match self.files.get(&file) {
                        Some(file) => sent.map_err(|error| at(error, file, v))?,
                        None => sent?,
                    }
                    self.sink.send("\n").await?;
                }
                (Edit::Move { from, to }, _) => {
                    self.sink.send(format!("R {} {}\n", quoted(&from), quoted(&to))).await?;
                }
                (Edit::Remove { path }, _) => self.sink.send(format!("D {}\n", quoted(&path))).await?,
                (Edit::Put { .. }, None) => {}
            }
        }
        self.sink.send("\n").await
    }

    /// Files that are made of something else, as they are now.
    async fn projections(&self) -> Result<()> {
        for file in &self.projections {
            let (Some(content), path) = (&file.projection, file.path.as_str()) else { continue };
            let message = format!("Make {path}\n\nWorkspace: {}\n", self.info.workspace_id);
            self.sink.send(head(&file.entry.author, file.entry.updated_at, &message)).await?;
            self.sink.send(format!("M 100644 inline {}\ndata {}\n", quoted(path), content.len())).await?;
            self.sink.send(content.clone()).await?;
            self.sink.send("\n\n").await?;
        }
        Ok(())
    }
}

fn subject(edit: &Edit) -> String {
    match edit {
        Edit::Put { path, v: 1, .. } => format!("Make {path}"),
        Edit::Put { path, .. } => format!("Change {path}"),
        Edit::Move { from, to } => format!("Move {from} to {to}"),
        Edit::Remove { path } => format!("Remove {path}"),
    }
}

fn head(author: &str, when: Timestamp, message: &str) -> String {
    let (who, when) = (person(author), seconds(when));
    let length = message.len();
    format!(
        "commit refs/heads/main\nauthor {who} {when} +0000\ncommitter {who} {when} +0000\ndata {length}\n{message}\n"
    )
}

/// An author as Git has one: a name, and an address that is made of it.
fn person(author: &str) -> String {
    let name: String = author.chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>')).collect();
    let address: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{name} <{address}@{DOMAIN}>")
}

/// Seconds since 1970. Git takes none before.
fn seconds(at: Timestamp) -> i64 {
    (at.as_millis() / 1000).max(0)
}

/// A path in quotes, as Git reads one. It has no control characters.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.trim_start_matches('/').replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_paths_and_times_are_as_git_reads_them() {
        assert_eq!(person("agent:a<b>\nc"), "agent:abc <agent-abc@buildscale.invalid>");
        assert_eq!(seconds(Timestamp::from_millis(-5)), 0);
        let path = FilePath::parse(r#"/a "b"\c/.GIT/x"#);
        assert_eq!(path.as_ref().map(|path| quoted(path.as_str())).ok(), Some(r#""a \"b\"\\c/.GIT/x""#.to_owned()));
        assert_eq!(path.as_ref().map(is_of_git).ok(), Some(true));
    }
}
