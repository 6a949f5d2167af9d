//! What every change has in common: its locks, its one commit, and how it runs to its end.

use crate::{
    Change, Result, Workspace, Writer, error,
    model::{Entry, Node},
};
use domain::{CallId, FileId, FilePath, Timestamp};
use ports::{Expect, Write};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::atomic::Ordering,
    time::Duration,
};

/// How long the result of a tool call is remembered.
const CALLS_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long the repair can make up for: with an older mark it compares everything.
pub(crate) const CHANGES_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often a change is decided anew after another writer was faster.
pub(crate) const ATTEMPTS: u32 = 16;

/// Runs `task` to its end even if the caller goes away, so that a commit is always followed by its flush.
pub(crate) async fn whole<T: Send + 'static>(task: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    tokio::spawn(task).await.map_err(error::task)?
}

impl Workspace {
    /// What the tool call did when it was run before.
    pub async fn applied(&self, writer: &Writer) -> Result<Option<Change>> {
        let Some(call) = writer.call else { return Ok(None) };
        let item = self.0.table.get(&self.0.keys.call(call)).await.map_err(error::port)?;
        item.map(|item| error::parse(&item.body)).transpose()
    }

    /// Whether a call has [begun](Self::begin).
    pub async fn has_begun(&self, call: CallId) -> Result<bool> {
        Ok(self.0.table.get(&self.0.keys.begun(call)).await.map_err(error::port)?.is_some())
    }

    /// Notes that a call begins which must not be repeated, such as a command; false when it had begun before. To be told before
    /// anything is done for it: then whoever comes after a crash knows that something may have been.
    pub async fn begin(&self, call: CallId) -> Result<bool> {
        let key = self.0.keys.begun(call);
        // Who began: when the table does not say whether the note was taken, it says whose it is.
        let (own, at) = (self.0.clock.id().to_string(), self.0.clock.now());
        let note = Write::put(key.clone(), error::json(&own)?, Expect::Absent).expiring(at + CALLS_KEPT);
        for _ in 0..ATTEMPTS {
            match self.0.table.commit(vec![note.clone()]).await {
                Ok(()) => return Ok(true),
                Err(ports::Error::Conflict { .. }) => {
                    let item = self.0.table.get(&key).await.map_err(error::port)?;
                    return Ok(item.is_some_and(|item| error::parse::<String>(&item.body).is_ok_and(|by| by == own)));
                }
                Err(ports::Error::Unavailable { .. }) => {}
                Err(error) => return Err(error::port(error)),
            }
        }
        Err(error::busy())
    }

    /// Commits a change; false when others were faster (or ran the same call), so that it is to be decided anew.
    pub(crate) async fn commit(&self, mut writes: Vec<Write>, change: &Change, writer: &Writer) -> Result<bool> {
        let body = error::json(change)?;
        if let Some(call) = writer.call {
            let record = Write::put(self.0.keys.call(call), body.clone(), Expect::Absent);
            writes.push(record.expiring(change.at + CALLS_KEPT));
        }
        let record = Write::put(self.0.keys.change(self.0.clock.id()), body, Expect::Absent);
        writes.push(record.expiring(change.at + CHANGES_KEPT));
        self.touched();
        match self.0.table.commit(writes).await {
            Ok(()) => Ok(true),
            Err(ports::Error::Conflict { .. }) => Ok(false),
            Err(error) => {
                // It may have taken effect, and nobody flushes it: the mark must not pass it.
                self.0.behind.store(true, Ordering::Relaxed);
                Err(error::port(error))
            }
        }
    }

    /// The lock under which one file is committed and flushed.
    pub(crate) async fn lock_file(&self, path: &FilePath) -> tokio::sync::MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let stripe = hasher.finish() as usize % self.0.files.len();
        #[expect(clippy::indexing_slicing, reason = "the index is taken modulo the length")]
        self.0.files[stripe].lock().await
    }

    /// The commit is what counts: when the disk does not follow, the next read or the next start puts it right.
    pub(crate) async fn flush<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&crate::mirror::Mirror) -> std::io::Result<T> + Send + 'static,
    ) {
        if let Err(error) = self.disk(what, work).await {
            self.0.behind.store(true, Ordering::Relaxed);
            tracing::warn!(workspace = %self.0.id, %error, "latest/ is behind its index until it is repaired");
        }
    }

    /// The writes that make a new entry with its node.
    pub(crate) fn new_entry(&self, folder: FileId, name: &str, entry: &Entry) -> Result<[Write; 2]> {
        let node = Node { folder: Some(folder), name: name.into() };
        Ok([
            Write::put(self.0.keys.entry(folder, name), error::json(entry)?, Expect::Absent),
            Write::put(self.0.keys.node(entry.file_id), error::json(&node)?, Expect::Absent),
        ])
    }

    /// The writes that make `names` as folders inside each other, beginning in `folder`, which must go on existing; and
    /// the innermost one.
    pub(crate) fn new_folders(
        &self,
        folder: FileId,
        names: &[String],
        writer: &Writer,
        at: Timestamp,
    ) -> Result<(Vec<Write>, FileId)> {
        let mut writes = vec![Write::check(self.0.keys.node(folder), Expect::Present)];
        let mut inside = folder;
        for name in names {
            let entry = Entry::folder(FileId(self.0.clock.id()), writer, at);
            writes.extend(self.new_entry(inside, name, &entry)?);
            inside = entry.file_id;
        }
        Ok((writes, inside))
    }
}

impl Entry {
    pub(crate) fn folder(file_id: FileId, writer: &Writer, at: Timestamp) -> Self {
        Self {
            file_id,
            kind: crate::Kind::Folder,
            v: 0,
            sha256: None,
            size: 0,
            author: writer.principal.to_string(),
            created_at: at,
            updated_at: at,
        }
    }
}
