//! Moves entries: one commit, for a folder of any size.

use crate::{
    Change, FileKind, Op, Result, Workspace, Writer,
    commit::{ATTEMPTS, whole},
    error,
    index::{HeldEntry, MAX_DEPTH},
    mirror::Area,
    model::{Entry, Node},
    policies::Touches,
    taxonomy,
    write::taken,
};
use access::Action;
use domain::{Code, Error, FileId, FilePath, Timestamp};
use ports::{Expect, Write};

fn depth(path: &FilePath) -> usize {
    path.names().count()
}

impl Workspace {
    /// Gives a file or a folder another path; folders above the new one are made. Identity and versions stay.
    ///
    /// # Errors
    /// `NOT_FOUND`, with similar names, when nothing is at `from`; `UNPROCESSABLE` for the root; `FORBIDDEN` for a folder that every workspace
    /// has, for the file of a chat unless [`Writer::may_take_projections`], and for an agent to the place of one; `CONFLICT` when `to` is taken
    /// or inside of `from`, a file is on the way, or others were faster again and again; `INVALID_ARGUMENT` for over 40 names in `to` or in a
    /// path below it, for one that is too long, or a new name that people could not tell from another; else those of [`Workspace`].
    pub async fn mv(&self, from: &FilePath, to: &FilePath, writer: &Writer) -> Result<Change> {
        self.mv_expecting(from, to, crate::Expect::Any, writer).await
    }

    /// The same if the precondition holds for the entry at `from`.
    ///
    /// # Errors
    /// `STALE_VERSION` and `CONFLICT` as [`Expect`](crate::Expect) says; else those of [`Workspace::mv`].
    pub async fn mv_expecting(
        &self,
        from: &FilePath,
        to: &FilePath,
        expect: crate::Expect,
        writer: &Writer,
    ) -> Result<Change> {
        let (this, from, to, writer) = (self.clone(), from.clone(), to.clone(), writer.clone());
        whole(async move { this.move_whole(&from, &to, expect, &writer).await }).await
    }

    async fn move_whole(
        &self,
        from: &FilePath,
        to: &FilePath,
        expect: crate::Expect,
        writer: &Writer,
    ) -> Result<Change> {
        let _tree = self.lock_tree().await;
        for _ in 0..ATTEMPTS {
            if let Some(done) = self.applied(writer).await? {
                return Ok(done);
            }
            let found = self.found(from).await?;
            let Some(HeldEntry { found, node }) = self.hold(found).await? else { continue };
            self.check(from, Some(&found), expect).await?;
            taxonomy::may_take_away(from, found.entry.kind, writer)?;
            self.demand_tree(Action::Move, from, &found.entry).await?;
            // Other policies hold at the new path: a file that may not be read here could be read there.
            if !self.policies_in_force().reads_what_it_lists() {
                self.demand_tree(Action::Read, from, &found.entry).await?;
            }
            self.demand_tree(Action::Write, to, &found.entry).await?;
            let had: Vec<&str> = from.names().collect();
            taxonomy::check_new_names(to.names().filter(|name| !had.contains(name)))?;
            let at = self.0.clock.now();
            let entry = self.moved_document(&found.entry, from, to, writer);
            let change = Change { from: Some(from.clone()), ..Change::of(Op::Moved, &entry, to.clone(), writer, at) };
            if from == to {
                return Ok(change);
            }
            if to.is_within(from) {
                let message = format!("{from} cannot be moved into itself, to {to}");
                return Err(Error::new(Code::Conflict, message).hint("name a place outside of it"));
            }
            let is_longer = |of: fn(&FilePath) -> usize| of(to) > of(from);
            if found.entry.kind == FileKind::Folder && (is_longer(depth) || is_longer(|path| path.as_str().len())) {
                self.check_below(found.entry.file_id, to).await?;
            }
            let mut writes = vec![Write::delete(self.0.keys.entry(found.folder, &found.name), Expect::Rev(found.rev))];
            writes.extend(self.put_at(to, &entry, node, writer, at).await?);
            writes.extend(self.policies_after(&[Touches::Takes(from), Touches::Puts(to, &entry)]).await?);
            let unconverted = self.moved_item(&entry, (from, to), writer, at).await?;
            writes.extend(unconverted.clone());
            if self.commit(writes, &change, writer).await? {
                self.tell_converter(&change, unconverted.is_some()).await;
                let (from, to, id) = (from.clone(), to.clone(), self.0.clock.id());
                let work =
                    move |mirror: &crate::mirror::Mirror| mirror.rename((Area::Latest, &from), (Area::Latest, &to), id);
                self.flush("to move a file", work).await;
                return Ok(change);
            }
        }
        Err(error::busy())
    }

    /// Whether all that is inside this folder has a path that may be, once the folder is at `to`.
    async fn check_below(&self, folder: FileId, to: &FilePath) -> Result<()> {
        let mut folders = vec![(folder, to.clone())];
        while let Some((id, above)) = folders.pop() {
            for (name, entry) in self.all_entries(id).await? {
                let inside = above.join(&name)?;
                if depth(&inside) > MAX_DEPTH {
                    let message =
                        format!("{name} would have {} names in its path; the limit is {MAX_DEPTH}", depth(&inside));
                    return Err(Error::invalid("path", message).hint("move it below fewer folders"));
                }
                if entry.kind == FileKind::Folder {
                    folders.push((entry.file_id, inside));
                }
            }
        }
        Ok(())
    }

    /// The writes that put an entry at a free path. Its node is expected to exist (it is moved) or not (it comes back).
    ///
    /// Every folder above must stay where it is until then: two moves at once could otherwise put two folders into each
    /// other, where no path leads to them.
    pub(crate) async fn put_at(
        &self,
        to: &FilePath,
        entry: &Entry,
        node_is: Expect,
        writer: &Writer,
        at: Timestamp,
    ) -> Result<Vec<Write>> {
        let walk = self.walk_to_make(to).await?;
        if walk.found.is_some() || to.is_root() {
            return Err(taken(to));
        }
        taxonomy::may_write(to, None, writer)?;
        let above = walk.missing.len().saturating_sub(1);
        let missing = walk.missing.get(..above).unwrap_or_default();
        let (mut writes, folder) = self.new_folders(walk.deepest(), missing, writer, at)?;
        // The deepest one is checked by `new_folders`, by its existence alone; here its place counts, too.
        writes.retain(|write| !matches!(write, Write::Check { .. }));
        let held = if walk.above.contains(&entry.file_id) { None } else { self.hold_folders(to, &walk.above).await? };
        writes.extend(held.ok_or_else(error::busy)?);
        let node = Node { folder: Some(folder), name: to.name().into() };
        writes.push(Write::put(self.0.keys.entry(folder, to.name()), error::json(entry)?, Expect::Absent));
        writes.push(Write::put(self.0.keys.node(entry.file_id), error::json(&node)?, node_is));
        Ok(writes)
    }
}
