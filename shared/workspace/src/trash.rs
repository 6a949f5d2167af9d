//! Removing, in two steps: into the trash, from where it can come back, and for good.

use crate::{
    Change, FileKind, Op, Result, TrashPage, Trashed, Workspace, Writer,
    commit::{ATTEMPTS, whole},
    error,
    index::HeldEntry,
    mirror::Area,
    model::{Entry, Node},
    policies::Touches,
    retention, taxonomy,
    trash_entry::{Item, place},
};
use access::Action;
use domain::{Code, Error, FileId, FilePath, Timestamp};
use futures::FutureExt;
use ports::{Expect, Query, Write};

impl Workspace {
    /// Puts a file, or a folder with all in it, into the trash.
    ///
    /// # Errors
    /// `NOT_FOUND`, with similar names, when there is no such path; `UNPROCESSABLE` for the root; `FORBIDDEN` for a folder that every
    /// workspace has, and for the file of a chat unless [`Writer::may_take_projections`]; `CONFLICT` when others were faster again and again;
    /// else those of [`Workspace`].
    pub async fn rm(&self, path: &FilePath, writer: &Writer) -> Result<Change> {
        self.rm_expecting(path, crate::Expect::Any, writer).await
    }

    /// The same if the precondition holds.
    ///
    /// # Errors
    /// `STALE_VERSION` and `CONFLICT` as [`Expect`](crate::Expect) says; else those of [`Workspace::rm`].
    pub async fn rm_expecting(&self, path: &FilePath, expect: crate::Expect, writer: &Writer) -> Result<Change> {
        let (this, path, writer) = (self.clone(), path.clone(), writer.clone());
        whole(async move { this.remove_whole(&path, expect, &writer).await }).await.map(|change| self.as_told(change))
    }

    async fn remove_whole(&self, path: &FilePath, expect: crate::Expect, writer: &Writer) -> Result<Change> {
        let _tree = self.lock_tree().await;
        for _ in 0..ATTEMPTS {
            if let Some(done) = self.applied(writer).await? {
                return Ok(done);
            }
            let found = self.found(path).await?;
            let Some(HeldEntry { found, node }) = self.hold(found).await? else { continue };
            self.check(path, Some(&found), expect).await?;
            let (entry, keys, at) = (&found.entry, self.0.keys, self.0.clock.now());
            taxonomy::may_take_away(path, entry.kind, writer)?;
            self.demand_tree(Action::Delete, path, entry).await?;
            let by = writer.principal.to_string();
            let item = Item { path: path.clone(), entry: entry.clone(), by, at, is_going: false };
            let mut writes =
                vec![
                    Write::delete(keys.entry(found.folder, &found.name), Expect::Rev(found.rev)),
                    Write::delete(keys.node(entry.file_id), node),
                    Write::put(keys.trashed(entry.file_id), error::json(&item)?, Expect::Absent)
                        .indexed(retention::due(self.0.id, entry.file_id, at)),
                ];
            writes.extend(self.policies_after(&[Touches::Takes(path)]).await?);
            let change = Change { v: 0, ..Change::of(Op::Removed, entry, path.clone(), writer, at) };
            let unconverted = self.unconverted_item(entry, None, writer, at).await?;
            writes.extend(unconverted.clone());
            if self.commit(writes, &change, writer).await? {
                self.tell_converter(&change, unconverted.is_some()).await;
                let (path, to, id) = (path.clone(), place(entry.file_id)?, self.0.clock.id());
                let work =
                    move |mirror: &crate::mirror::Mirror| mirror.rename((Area::Latest, &path), (Area::Trash, &to), id);
                self.flush("to remove a file", work).await;
                return Ok(change);
            }
        }
        Err(error::busy())
    }

    /// The entries of the trash; `limit` is cut to 1 to 1,000.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another range; else those of [`Workspace`].
    pub async fn trash(&self, limit: usize, cursor: Option<String>) -> Result<TrashPage> {
        let read = |limit, cursor| {
            let read = async move {
                let query = Query::all(self.0.keys.trash(), limit).after(cursor);
                let page = self.0.table.query(&query).await.map_err(ports::validate::of_page(&query, error::port))?;
                let items = ports::readable::<Item>(&page.items).map(|(_, item)| item);
                let shown =
                    items.filter(|item| self.shows(&item.path)).map(|item| self.trashed(item)).collect::<Vec<_>>();
                Ok((shown, page.next))
            };
            read.boxed()
        };
        let (files, next_cursor) = self.page(limit.clamp(1, 1000), cursor, None, read).await?;
        Ok(TrashPage { files, next_cursor })
    }

    /// An entry of the trash as this party sees it.
    fn trashed(&self, item: Item) -> Trashed {
        let trashed = item.trashed();
        Trashed { info: self.as_seen(trashed.info), ..trashed }
    }

    /// Brings an entry back from the trash to its last path; missing folders above it are made again.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not in the trash, or its purge has begun; `CONFLICT` when its path is taken, a file is on the way, or others were faster again and
    /// again; `FORBIDDEN` for an agent that brings back the file of a chat; else those of [`Workspace`], which may come after the index has
    /// it back.
    pub async fn restore(&self, file_id: FileId, writer: &Writer) -> Result<Change> {
        let (this, writer) = (self.clone(), writer.clone());
        whole(async move { this.restore_whole(file_id, None, &writer).await }).await.map(|change| self.as_told(change))
    }

    /// The same, to this path.
    pub(crate) async fn restore_at(&self, file_id: FileId, path: &FilePath, writer: &Writer) -> Result<Change> {
        let (this, path, writer) = (self.clone(), path.clone(), writer.clone());
        whole(async move { this.restore_whole(file_id, Some(path), &writer).await }).await
    }

    async fn restore_whole(&self, file_id: FileId, to: Option<FilePath>, writer: &Writer) -> Result<Change> {
        let _tree = self.lock_tree().await;
        for _ in 0..ATTEMPTS {
            if let Some(done) = self.applied(writer).await? {
                return Ok(done);
            }
            let (Item { path: was, entry, is_going, .. }, rev) = match self.trashed_item(file_id).await {
                // A file that went to the trash with a folder comes back with that folder, and the error of its path names it.
                Err(error) if error.code == Code::NotFound => {
                    let with_folder = self.path_of(file_id).await.err();
                    return Err(with_folder.filter(|told| told.details.contains_key("folder_id")).unwrap_or(error));
                }
                found => found?,
            };
            self.demand_tree(Action::Restore, &was, &entry).await?;
            if is_going {
                let error = Error::not_found("file in the trash", file_id);
                return Err(error.hint("it is being removed for good, and some of it is gone: purge it once more"));
            }
            let path = match to.clone() {
                None => was.clone(),
                Some(to) => {
                    // As for a move.
                    if to != was && !self.policies_in_force().reads_what_it_lists() {
                        self.demand_tree(Action::Read, &was, &entry).await?;
                    }
                    self.demand_tree(Action::Write, &to, &entry).await?;
                    to
                }
            };
            let at = self.0.clock.now();
            let mut writes = vec![Write::delete(self.0.keys.trashed(file_id), Expect::Rev(rev))];
            writes.extend(self.policies_after(&[Touches::Puts(&path, &entry)]).await?);
            let put = self.put_at(&path, &entry, Expect::Absent, writer, at).await;
            writes.extend(put.map_err(|error| match error.code {
                Code::Conflict => error.hint("move what is there now, then restore again"),
                _ => error,
            })?);
            let change = Change::of(Op::Restored, &entry, path.clone(), writer, at);
            let unconverted = self.restored_item(&entry, &was, writer, at).await?;
            writes.extend(unconverted.clone());
            if self.commit(writes, &change, writer).await? {
                self.tell_converter(&change, unconverted.is_some()).await;
                let (from, to, id) = (place(file_id)?, path.clone(), self.0.clock.id());
                let work =
                    move |mirror: &crate::mirror::Mirror| mirror.rename((Area::Trash, &from), (Area::Latest, &to), id);
                self.flush("to restore a file", work).await;
                // If the disk's trash has lost the content, the archive has it.
                if let Err(error) = self.settle(&path, true).await {
                    self.falls_behind(&error);
                }
                return Ok(change);
            }
        }
        Err(error::busy())
    }

    /// Removes something in the trash for good, with all versions. Its contents stay in the archive until the workspace is
    /// deleted, as other files may have the same ones.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not in the trash; `CONFLICT` when it was restored meanwhile; else those of [`Workspace`]. Some of it may be
    /// gone then; it stays in the trash and can be purged again.
    pub async fn purge(&self, file_id: FileId, writer: &Writer) -> Result<Change> {
        let (this, writer) = (self.clone(), writer.clone());
        whole(async move { this.purge_whole(file_id, None, &writer).await }).await.map(|change| self.as_told(change))
    }

    /// The same if it has been in the trash since before this time; else it is `NOT_FOUND`.
    pub(crate) async fn purge_older(&self, file_id: FileId, than: Timestamp, writer: &Writer) -> Result<Change> {
        let (this, writer) = (self.clone(), writer.clone());
        whole(async move { this.purge_whole(file_id, Some(than), &writer).await }).await
    }

    async fn purge_whole(&self, file_id: FileId, older: Option<Timestamp>, writer: &Writer) -> Result<Change> {
        let tree = self.lock_tree().await;
        if let Some(done) = self.applied(writer).await? {
            return Ok(done);
        }
        let (item, mut rev) = self.trashed_item(file_id).await?;
        self.demand_tree(Action::Purge, &item.path, &item.entry).await?;
        if older.is_some_and(|than| item.at >= than) {
            return Err(Error::not_found("file of that age in the trash", file_id));
        }
        let key = self.0.keys.trashed(file_id);
        if !item.is_going {
            // From here on nothing restores it: neither another process meanwhile, nor anybody after a crash that leaves a part of it.
            let going = Item { is_going: true, ..item.clone() };
            let note = Write::put(key.clone(), error::json(&going)?, Expect::Rev(rev));
            let note = note.indexed(retention::due(self.0.id, file_id, item.at));
            match self.0.table.commit(vec![note]).await {
                Ok(()) => rev += 1,
                Err(ports::Error::Conflict { .. }) => return Err(error::busy()),
                Err(error) => return Err(error::port(error)),
            }
        }
        // No path leads to it and nothing restores it, so other changes do not wait while a large folder goes.
        drop(tree);
        let Item { path, entry, .. } = item;
        // From the leaves up and the item of the trash last: a crash in between leaves something to purge again.
        let mut folders = vec![(file_id, entry.kind)];
        let mut inside = Vec::new();
        while let Some((id, kind)) = folders.pop() {
            inside.push(id);
            if kind == FileKind::Folder {
                folders.extend(self.entries_to_purge(id).await?);
            }
        }
        for id in inside.into_iter().rev() {
            self.clear(&self.0.keys.versions(id)).await?;
            self.clear(&self.0.keys.folder(id)).await?;
            let node = Write::delete(self.0.keys.node(id), Expect::Any);
            self.0.table.commit(vec![node]).await.map_err(error::port)?;
            // After the node, which a new tag or link needs.
            self.forget_relations(id).await?;
        }
        let change = Change { v: 0, ..Change::of(Op::Purged, &entry, path, writer, self.0.clock.now()) };
        let writes = vec![Write::delete(key, Expect::Rev(rev))];
        let _tree = self.lock_tree().await;
        if !self.commit(writes, &change, writer).await? {
            // Another purge was faster: of the same call, or of another one.
            if let Some(done) = self.applied(writer).await? {
                return Ok(done);
            }
            self.trashed_item(file_id).await?;
            return Err(error::busy());
        }
        let (at, id) = (place(file_id)?, self.0.clock.id());
        self.flush("to purge a file", move |mirror| mirror.remove(Area::Trash, &at, id)).await;
        Ok(change)
    }

    /// The entries of a folder, with their kinds. The identity of an entry that cannot be read is that of the node at its place. It is taken for a folder:
    /// a file has no entries, and the versions of both are removed.
    async fn entries_to_purge(&self, folder: FileId) -> Result<Vec<(FileId, FileKind)>> {
        let (entries, unreadable) = self.readable_entries(folder).await?;
        let mut found: Vec<_> = entries.into_iter().map(|(_, entry)| (entry.file_id, entry.kind)).collect();
        if unreadable.is_empty() {
            return Ok(found);
        }
        let mut pages = self.0.table.pages(Query::all(self.0.keys.nodes(), 500));
        while let Some(items) = pages.next().await.map_err(error::port)? {
            let is_here = |node: &Node| node.folder == Some(folder) && unreadable.contains(&node.name);
            let here = ports::readable::<Node>(&items).filter(|(_, node)| is_here(node));
            found.extend(here.filter_map(|(item, _)| Some((item.key.sk.parse::<FileId>().ok()?, FileKind::Folder))));
        }
        Ok(found)
    }

    /// The entry of something in the trash; none when it has left it.
    pub(crate) async fn trashed_entry(&self, file_id: FileId) -> Result<Option<Entry>> {
        Ok(self.in_trash(file_id).await?.map(|item| item.entry))
    }

    /// The path from which something went to the trash; none when it is not there by itself.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn trashed_path(&self, file_id: FileId) -> Result<Option<FilePath>> {
        Ok(self.in_trash(file_id).await?.map(|item| item.path))
    }

    async fn in_trash(&self, file_id: FileId) -> Result<Option<Item>> {
        match self.trashed_item(file_id).await {
            Ok((item, _)) => Ok(Some(item)),
            Err(error) if error.code == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn trashed_item(&self, file_id: FileId) -> Result<(Item, u64)> {
        let item = self.0.table.get(&self.0.keys.trashed(file_id)).await.map_err(error::port)?;
        let nothing = || Error::not_found("file in the trash", file_id);
        let (item, rev) = item
            .map(|item| Ok::<_, Error>((error::parse::<Item>(&item.body)?, item.rev)))
            .transpose()?
            .ok_or_else(nothing)?;
        if self.shows(&item.path) { Ok((item, rev)) } else { Err(nothing()) }
    }

    /// Removes a partition.
    pub(crate) async fn clear(&self, partition: &str) -> Result<()> {
        self.0.table.clear(partition).await.map_err(error::port)
    }

    /// Removes all that the index has of this workspace.
    pub(crate) async fn clear_index(&self) -> Result<()> {
        let keys = self.0.keys;
        for partition in [keys.nodes(), keys.trash()] {
            let mut pages = self.0.table.pages(Query::all(&partition, 500));
            while let Some(items) = pages.next().await.map_err(error::port)? {
                for item in &items {
                    if let Ok(id) = item.key.sk.parse::<FileId>() {
                        self.clear(&keys.versions(id)).await?;
                        self.clear(&keys.folder(id)).await?;
                    }
                }
            }
        }
        let own = [
            keys.texts(),
            keys.calls(),
            keys.all_begun(),
            keys.changes(),
            keys.causes(),
            keys.rewinds(),
            keys.search(),
            keys.all_spent(),
            keys.parent().pk,
        ];
        let others = [keys.nodes(), keys.trash(), keys.handoffs(), keys.all_unconverted(), keys.conversions()];
        let relations = [keys.all_marks(), keys.all_mentions(), keys.tagged(), keys.linked(), keys.named()];
        for partition in others.into_iter().chain(own).chain(relations) {
            self.clear(&partition).await?;
        }
        Ok(())
    }
}
