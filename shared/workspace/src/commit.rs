//! Common parts of every change: its locks, its single commit, and running it to its end.

use crate::{
    Change, Result, Workspace, Writer,
    changes::LATE,
    error,
    model::{Entry, Node},
};
use domain::{CallId, Code, Error, FileId, FilePath, Principal, Timestamp};
use ports::{Expect, Grant, Write};
use serde::{Deserialize, Serialize};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::atomic::Ordering,
    time::Duration,
};
use uuid::Uuid;

/// How long the result of a tool call is remembered.
pub(crate) const CALLS_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long records of changes are kept. With an older mark, the repair compares everything.
pub const CHANGES_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often a change is decided anew after another writer was faster.
pub(crate) const ATTEMPTS: u32 = 16;

/// The beginning of a call that must not be repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beginning {
    /// The grant under which it begins.
    #[serde(flatten)]
    pub grant: Grant,
    /// A moment before it was given the files: it may not know later changes of them. The earliest one in a note of an earlier version.
    #[serde(default)]
    pub at: Timestamp,
}

/// That a call has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Note {
    /// Its beginning; none when it was taken back.
    Under(Option<Beginning>),
    /// The name of the principal that began it, as older versions wrote it. The machine that runs it is not known.
    By(String),
}

impl Note {
    fn beginning(self) -> Option<Beginning> {
        match self {
            Self::Under(beginning) => beginning,
            Self::By(_) => Some(Beginning::default()),
        }
    }
}

/// The note that a chat, a task or a rewind made a change: it is found under the id of that actor, and names the record of the change by its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cause {
    /// The tool call, which tells the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
}

/// The chat, task or rewind that a change is a part of; none for a change that a person makes by hand.
fn actor(writer: &Writer) -> Option<Uuid> {
    writer.rewind.or(match &writer.principal {
        Principal::Agent { chat, .. } => Some(chat.0),
        Principal::Task { task, .. } => Some(task.0),
        Principal::User { .. } | Principal::System => None,
    })
}

/// Runs `task` to its end even if the caller goes away, so that a commit is always followed by its flush.
pub(crate) async fn whole<T: Send + 'static>(task: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    tokio::spawn(task).await.map_err(error::task)?
}

impl Workspace {
    /// The change that this tool call committed in an earlier run; none when it has not run.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn applied(&self, writer: &Writer) -> Result<Option<Change>> {
        let Some(key) = writer.key else { return Ok(None) };
        let item = self.0.table.get(&self.0.keys.call(key)).await.map_err(error::port)?;
        item.map(|item| error::parse(&item.body)).transpose()
    }

    /// The beginning of a call that has [begun](Self::begin); none when it has not.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn begun(&self, call: CallId) -> Result<Option<Beginning>> {
        Ok(self.note(call).await?.and_then(|(_, beginning)| beginning))
    }

    /// Notes, before the call is handed over, that a call begins which must not be repeated, such as a command, and under which grant. So the worker
    /// that takes over after a crash knows that it may have run, on which machine, and since when. Returns the noted beginning: the other one when
    /// another caller was faster.
    ///
    /// # Errors
    /// `CONFLICT` when after 16 attempts the note is not known to be there: others were faster, or the table did not answer. `INTERNAL` for a
    /// damaged note. After an error the call may have been noted.
    pub async fn begin(&self, call: CallId, beginning: Beginning) -> Result<Beginning> {
        let body = error::json(&beginning)?;
        let (mut expect, mut failed) = (Expect::Absent, None);
        for _ in 0..ATTEMPTS {
            // A write without a known outcome is settled by reading the note on the next attempt.
            match self.put_note(call, body.clone(), expect).await? {
                None => return Ok(beginning),
                lost => failed = lost,
            }
            expect = match self.note(call).await {
                Ok(Some((_, Some(noted)))) => return Ok(noted),
                Ok(Some((rev, None))) => Expect::Rev(rev),
                Ok(None) => Expect::Absent,
                Err(error) if error.code == Code::UpstreamUnavailable => continue,
                Err(error) => return Err(error),
            };
        }
        Err(failed.map_or_else(error::busy, error::port))
    }

    /// Removes the note of a call that was not begun under this grant and never will be, so that another grant can begin it. The note of another
    /// grant stays.
    ///
    /// # Errors
    /// `CONFLICT` when 16 attempts lost a race or the table did not take them; else those of [`Workspace`]. The note may stay then.
    pub async fn not_begun(&self, call: CallId, grant: Grant) -> Result<()> {
        let mut failed = None;
        for _ in 0..ATTEMPTS {
            let Some((rev, Some(noted))) = self.note(call).await? else { return Ok(()) };
            if noted.grant != grant {
                return Ok(());
            }
            // It is not deleted: a new one would have the same revision, and could be taken for this one.
            match self.put_note(call, "null".into(), Expect::Rev(rev)).await? {
                None => return Ok(()),
                lost => failed = lost,
            }
        }
        Err(failed.map_or_else(error::busy, error::port))
    }

    /// Writes the note of a call; returns the error of a write that lost a race or has no known outcome, which may be tried again.
    async fn put_note(&self, call: CallId, body: String, expect: Expect) -> Result<Option<ports::Error>> {
        let note = Write::put(self.0.keys.begun(call), body, expect).expiring(self.0.clock.now() + CALLS_KEPT);
        match self.0.table.commit(vec![note]).await {
            Ok(()) => Ok(None),
            Err(error @ (ports::Error::Conflict { .. } | ports::Error::Unavailable { .. })) => Ok(Some(error)),
            Err(error) => Err(error::port(error)),
        }
    }

    /// The note of a call with its revision; no beginning when the note was removed.
    async fn note(&self, call: CallId) -> Result<Option<(u64, Option<Beginning>)>> {
        let item = self.0.table.get(&self.0.keys.begun(call)).await.map_err(error::port)?;
        item.map(|item| Ok((item.rev, error::parse::<Note>(&item.body)?.beginning()))).transpose()
    }

    /// Commits a change; false when others were faster (or ran the same call), so that it is to be decided anew.
    pub(crate) async fn commit(&self, writes: Vec<Write>, change: &Change, writer: &Writer) -> Result<bool> {
        self.commit_answering(writes, change, writer, error::json(change)?).await
    }

    /// The same with another answer for the call when it comes again.
    pub(crate) async fn commit_answering(
        &self,
        mut writes: Vec<Write>,
        change: &Change,
        writer: &Writer,
        answer: String,
    ) -> Result<bool> {
        let body = error::json(change)?;
        if let Some(key) = writer.key {
            let record = Write::put(self.0.keys.call(key), answer, Expect::Absent);
            writes.push(record.expiring(change.at + CALLS_KEPT));
        }
        let stamp = self.0.clock.stamp();
        let record =
            |id| Write::put(self.0.keys.change(id), body.clone(), Expect::Absent).expiring(change.at + CHANGES_KEPT);
        writes.push(record(stamp.id));
        if let Some(actor) = actor(writer) {
            let cause = error::json(&Cause { call_id: writer.call })?;
            let note = Write::put(self.0.keys.cause(actor, stamp.id), cause, Expect::Absent);
            writes.push(note.expiring(change.at + CHANGES_KEPT));
        }
        self.touched();
        let committed = self.0.table.commit(writes).await;
        // Also after an error: the commit may have taken effect.
        self.0.system.forget_after(change);
        match committed {
            Ok(()) => {
                self.announce(stamp.id, change).await;
                if self.0.clock.now().since(stamp.at) > LATE {
                    // Readers of changes have passed its id.
                    let again = record(self.0.clock.id());
                    if let Err(error) = self.0.table.commit(vec![again]).await {
                        tracing::warn!(workspace = %self.0.id, error = %error.with_causes(), "a change was committed late, and watchers may miss it");
                    }
                }
                Ok(true)
            }
            Err(ports::Error::Conflict { .. }) => Ok(false),
            Err(error) => {
                // It may have taken effect, and no flush follows: the mark must not pass it.
                self.0.behind.store(true, Ordering::Relaxed);
                Err(error::port(error))
            }
        }
    }

    /// The lock under which paths change: no operation on a single file runs meanwhile. From then on a [projection](crate::Projection) looks its path
    /// up again.
    pub(crate) async fn lock_tree(&self) -> tokio::sync::RwLockWriteGuard<'_, u64> {
        let mut changes = self.0.tree.write().await;
        *changes += 1;
        changes
    }

    /// The lock under which one file is committed and flushed.
    pub(crate) async fn lock_file(&self, path: &FilePath) -> tokio::sync::MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let stripe = hasher.finish() as usize % self.0.files.len();
        #[expect(clippy::indexing_slicing, reason = "the index is taken modulo the length")]
        self.0.files[stripe].lock().await
    }

    /// The commit alone decides: if the disk does not follow, the next read or the next start repairs it.
    pub(crate) async fn flush<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&crate::mirror::Mirror) -> std::io::Result<T> + Send + 'static,
    ) {
        if let Err(error) = self.disk(what, work).await {
            self.falls_behind(&error);
        }
    }

    /// Notes that `latest/` lacks something that was committed. The next checkpoint repairs it.
    pub(crate) fn falls_behind(&self, error: &Error) {
        self.0.behind.store(true, Ordering::Relaxed);
        tracing::warn!(workspace = %self.0.id, %error, "latest/ is behind its index until it is repaired");
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
            kind: crate::FileKind::Folder,
            v: 0,
            sha256: None,
            size: 0,
            author: writer.principal.to_string(),
            created_at: at,
            updated_at: at,
            conversion: None,
            derived_from: writer.derived_from.filter(|_| writer.attaches),
        }
    }
}
