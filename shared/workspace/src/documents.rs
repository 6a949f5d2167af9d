//! Documents: files under `/data` and those that are attached to a chat, which are converted to Markdown in the background (spec 001 §2 B).
//!
//! The commit of a document's version also writes an item that says that a converter has something to do, and a message of the queue follows it.
//! So a process that dies in between loses nothing: a sweep finds the item in the index by its time. The item goes in the very commit that writes
//! down the end of the conversion, and only while no later change has written it anew.
//!
//! The Markdown is an ordinary file beside the document, `<name>.md`, which says from which document it is derived. A write by anybody else makes it
//! that person's, and no conversion overwrites it. So are the attachments of a message, in the folder `<name>.attachments`; they are documents, too. The
//! folder itself names the message until somebody else moves it.

mod status;

use crate::{
    Change, Info, Op, Result, Workspace, Workspaces, Writer,
    commit::{ATTEMPTS, whole},
    error,
    growing_pauses::moved,
    model::Entry,
};
use domain::{Code, Conversion, ConversionStatus, Error, FileId, FilePath, Principal, Sha256, Timestamp, WorkspaceId};
use ports::{Expect, Key, Query, QueueMessage, QueueSender, Write};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The kind of the queue's groups, as the first part of their names.
pub const KIND: &str = "document";
/// The number of groups of a workspace: so many of its documents are converted at once.
const GROUPS: u8 = 2;
/// The number of parts in which the index has documents that wait.
pub const SHARDS: u8 = 4;
/// The form of the files that a conversion makes: outcomes of another form do not count.
const FORM: u8 = 2;
/// The longest end of a name that tells contents apart, in bytes.
const ENDING: usize = 16;

/// That a converter has something to do for a document: to convert it, or to have its Markdown follow it. For a folder that came under `/data` or back from
/// the trash: to give the documents in it such tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// Since when.
    pub at: Timestamp,
    /// Its Markdown, as far as there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub markdown: Option<FileId>,
    /// The folder with its attachments, as far as there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<FileId>,
    /// The path that a message with attachments left, until its converter has dealt with the move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    /// Whether its last writer may not run flows: then no file that is made from it starts one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_not_run: bool,
}

/// The part of a [`Pending`] that its sweep reads: it writes the rest back as it is, also that of a later version.
#[derive(Deserialize)]
struct Since {
    at: Timestamp,
}

/// An attachment that a conversion made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvertedAttachment {
    /// The name that the converter gave it.
    pub name: String,
    /// The file.
    pub file_id: FileId,
    /// The version that has its content.
    pub v: u64,
}

/// The message to a converter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvertDocument {
    /// The document.
    pub file_id: FileId,
}

/// The outcome of the conversion of a content, which is the same for each file that has this content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", deny_unknown_fields)]
pub enum ConversionOutcome {
    /// A version has the Markdown.
    Done {
        /// Its file.
        file_id: FileId,
        /// The version.
        v: u64,
        /// The attachments of a message, in their order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<ConvertedAttachment>,
    },
    /// It cannot be converted.
    Failed {
        /// For programs.
        reason: String,
        /// For people.
        message: String,
    },
    /// There is nothing to convert.
    Skipped {
        /// For programs.
        reason: String,
        /// For people.
        message: String,
    },
}

/// Whether a file at this path is a document wherever it comes from. One that is attached to a chat is a document elsewhere, too: [`Info::is_document`].
pub fn is_document(path: &FilePath) -> bool {
    path.names().next() == Some("data") && path.names().nth(1).is_some()
}

/// The path of a document's Markdown.
///
/// # Errors
/// `INVALID_ARGUMENT` when the name would be too long.
pub fn markdown_path(path: &FilePath) -> Result<FilePath> {
    Ok(FilePath::parse(&format!("{path}.md"))?)
}

/// The end of the names of folders with attachments.
pub const ATTACHMENTS: &str = ".attachments";

/// The folder with the attachments of a message at this path.
///
/// # Errors
/// `INVALID_ARGUMENT` when the name would be too long.
pub fn attachments_path(path: &FilePath) -> Result<FilePath> {
    Ok(FilePath::parse(&format!("{path}{ATTACHMENTS}"))?)
}

/// The end of a name, in lower case: by it contents that have no mark of their own are told apart, such as CSV.
fn ending(name: &str) -> String {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    let is_plain = ending.len() <= ENDING && ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain { ending } else { String::new() }
}

fn last_byte(file: FileId) -> u8 {
    file.0.as_bytes().last().copied().unwrap_or_default()
}

fn partition(shard: u8) -> String {
    format!("unconverted/{shard:x}")
}

fn due(workspace: WorkspaceId, file: FileId, at: Timestamp) -> Key {
    Key::new(partition(last_byte(file) % SHARDS), format!("{at}/{workspace}/{file}"))
}

fn message(workspace: WorkspaceId, file: FileId, id: String) -> Result<QueueMessage> {
    let group = format!("{KIND}/{workspace}/{}", last_byte(file) % GROUPS);
    let body = error::json(&ConvertDocument { file_id: file })?;
    Ok(QueueMessage { group, id, body, ..QueueMessage::default() })
}

impl Workspaces {
    /// Has documents converted from now on: by the receiver of this queue. The first queue counts.
    #[must_use]
    pub fn converting(self, queue: Arc<dyn QueueSender>) -> Self {
        drop(self.0.converter.set(queue));
        self
    }

    /// Sends the messages for documents of one shard again that have waited since before `before`, at most `limit` of them. Returns their count, and
    /// the cursor when there is more.
    ///
    /// For a document that still waits, the pause before the next message doubles each time, up to 7 days: the earlier messages may be in the queue,
    /// which would grow with each call. For that, each task gets its next time in the index after its message is sent.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another range; else those of [`Workspaces`].
    pub async fn convert_forgotten(
        &self,
        before: Timestamp,
        shard: u8,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<(u64, Option<String>)> {
        let Some(queue) = self.0.converter.get() else { return Ok((0, None)) };
        let range = Query { to: Some(before.to_string()), ..Query::all(partition(shard), limit) };
        let page = self.table().query_index(&range.after(cursor)).await.map_err(error::port)?;
        let (mut messages, mut moves) = (Vec::new(), Vec::new());
        // No converter can read one that is damaged either.
        for (item, Since { at }) in ports::readable(&page.items) {
            let workspace = item.key.pk.split('/').next().and_then(|id| id.parse::<WorkspaceId>().ok());
            let (Some(workspace), Ok(file)) = (workspace, item.key.sk.parse::<FileId>()) else { continue };
            messages.push(message(workspace, file, format!("{file}/again/{}", self.0.clock.id()))?);
            moves.push(moved(item, due(workspace, file, self.next_due(before, at))));
        }
        let count = messages.len() as u64;
        if count > 0 {
            queue.send(messages).await.map_err(error::port)?;
        }
        self.postpone(moves).await?;
        Ok((count, page.next))
    }
}

impl Workspace {
    fn converter(&self) -> Option<Arc<dyn QueueSender>> {
        self.0.shared.upgrade().and_then(|shared| shared.converter.get().cloned())
    }

    /// The item that says that a converter has something to do for this entry, which leaves the path `from`; none when it has not.
    pub(crate) async fn unconverted_item(
        &self,
        entry: &Entry,
        from: Option<&FilePath>,
        writer: &Writer,
        at: Timestamp,
    ) -> Result<Option<Write>> {
        let Some(conversion) = entry.conversion.as_ref().filter(|it| it.is_open() || it.has_files()) else {
            return Ok(None);
        };
        if self.converter().is_none() {
            return Ok(None);
        }
        let (markdown, attachments) = (conversion.markdown, conversion.attachments);
        let from = match attachments {
            // The attachments are still where an earlier change left them if nobody has dealt with it.
            Some(_) => self.unconverted(entry.file_id).await?.and_then(|(task, _)| task.from).or(from.cloned()),
            None => None,
        };
        let pending = Pending { at, markdown, attachments, from, may_not_run: !writer.may_run };
        self.task(entry.file_id, &pending).map(Some)
    }

    /// The same for an entry that moves from the first path to the second. In a folder that comes under `/data` all files become documents.
    pub(crate) async fn moved_item(
        &self,
        entry: &Entry,
        (from, to): (&FilePath, &FilePath),
        writer: &Writer,
        at: Timestamp,
    ) -> Result<Option<Write>> {
        if entry.kind == crate::FileKind::Folder && (is_document(from) || !is_document(to)) {
            return Ok(None);
        }
        self.restored_item(entry, from, writer, at).await
    }

    /// The same for an entry that was at this path before it went to the trash, and comes back. In a folder there may be documents that still have to be
    /// converted: a converter that could not find them has ended their tasks.
    pub(crate) async fn restored_item(
        &self,
        entry: &Entry,
        from: &FilePath,
        writer: &Writer,
        at: Timestamp,
    ) -> Result<Option<Write>> {
        if entry.kind != crate::FileKind::Folder {
            return self.unconverted_item(entry, Some(from), writer, at).await;
        }
        if self.converter().is_none() {
            return Ok(None);
        }
        let pending = Pending { at, markdown: None, attachments: None, from: None, may_not_run: !writer.may_run };
        self.task(entry.file_id, &pending).map(Some)
    }

    fn task(&self, file: FileId, pending: &Pending) -> Result<Write> {
        let item = Write::put(self.0.keys.unconverted(file), error::json(pending)?, Expect::Any);
        Ok(item.indexed(due(self.0.id, file, pending.at)))
    }

    /// Has each document in a folder, at any depth, converted that still has to be; files that came under `/data` with the folder become documents. Its
    /// task gets the right of `writer` to run flows.
    ///
    /// # Errors
    /// `NOT_FOUND` when the folder is gone; else those of [`Workspace`]. Some of the documents may have their tasks then; a repetition gives all of them
    /// one.
    pub async fn convert_below(&self, folder: FileId, writer: &Writer) -> Result<()> {
        let Some(queue) = self.converter() else { return Ok(()) };
        let (mut folders, at) = (vec![(folder, self.path_of(folder).await?)], self.0.clock.now());
        while let Some((folder, above)) = folders.pop() {
            let (mut writes, mut messages) = (Vec::new(), Vec::new());
            for (name, entry) in self.readable_entries(folder).await?.0 {
                let path = above.join(&name)?;
                if entry.kind == crate::FileKind::Folder {
                    folders.push((entry.file_id, path));
                    continue;
                }
                let entry = self.as_document(entry, path, writer).await?;
                if entry.conversion.as_ref().is_some_and(Conversion::is_open) {
                    // Also of one that has a task: a converter that did not find the document may be about to end that one.
                    writes.extend(self.unconverted_item(&entry, None, writer, at).await?);
                    let id = format!("{}/{}", entry.file_id, self.0.clock.id());
                    messages.push(message(self.0.id, entry.file_id, id)?);
                }
            }
            for some in writes.chunks(ports::MAX_WRITES) {
                self.0.table.commit(some.to_vec()).await.map_err(error::port)?;
            }
            if !messages.is_empty() {
                queue.send(messages).await.map_err(error::port)?;
            }
        }
        Ok(())
    }

    /// The entry of a file in a folder that came under `/data`: a document from now on, if it was none.
    async fn as_document(&self, entry: Entry, path: FilePath, writer: &Writer) -> Result<Entry> {
        let is_plain =
            entry.kind == crate::FileKind::File && entry.conversion.is_none() && entry.derived_from.is_none();
        let writer = Writer { derived_from: None, ..writer.clone() };
        let Some(conversion) = self.conversion_of(&path, (entry.size, None), None, &writer).filter(|_| is_plain) else {
            return Ok(entry);
        };
        match self.note_conversion(&entry.info(path), conversion.clone(), None).await {
            Ok(true) => Ok(Entry { conversion: Some(conversion), ..entry }),
            // A version that came meanwhile has a task of its own.
            Ok(false) => Ok(entry),
            // It went meanwhile.
            Err(error) if error.code == Code::NotFound => Ok(entry),
            Err(error) => Err(error),
        }
    }

    /// Tells the converter of a change that was committed with such an item. A message that is lost is sent again by a sweep.
    pub(crate) async fn tell_converter(&self, change: &Change, is_unconverted: bool) {
        let Some(queue) = self.converter().filter(|_| is_unconverted) else { return };
        let id = format!("{}/{}", change.file_id, self.0.clock.id());
        let sent = match message(self.0.id, change.file_id, id) {
            Ok(message) => queue.send(vec![message]).await.map_err(error::port),
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            tracing::warn!(workspace = %self.0.id, file = %change.file_id, %error, "a document waits for a sweep to be converted");
        }
    }

    /// The task of a converter for this document, with its revision; none when there is none.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn unconverted(&self, file: FileId) -> Result<Option<(Pending, u64)>> {
        let item = self.0.table.get(&self.0.keys.unconverted(file)).await.map_err(error::port)?;
        item.map(|item| Ok((error::parse(&item.body)?, item.rev))).transpose()
    }

    /// Says that nothing is left to do for a document, unless there is a later task than that of `rev`.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn settle_document(&self, file: FileId, rev: u64) -> Result<()> {
        let done = vec![Write::delete(self.0.keys.unconverted(file), Expect::Rev(rev))];
        match self.0.table.commit(done).await {
            Ok(()) | Err(ports::Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error::port(error)),
        }
    }

    /// Writes down how far the conversion of a version has come; with the revision of its task, also that the task is done. False when the document
    /// has changed meanwhile: nothing is written then.
    ///
    /// # Errors
    /// `NOT_FOUND` when the document is gone; `CONFLICT` when others were faster again and again, and when a folder above the document has moved since
    /// `of` was read: the progress is written then, and the task stays, as files may have to follow. Else those of [`Workspace`].
    pub async fn note_conversion(&self, of: &Info, conversion: Conversion, task: Option<u64>) -> Result<bool> {
        let (this, of) = (self.clone(), of.clone());
        whole(async move { this.note_conversion_whole(&of, Some(conversion), task).await }).await
    }

    /// The same for a file that is no document any more: it has no conversion from then on, and is searched as any other file. False also when it is a
    /// document again.
    ///
    /// # Errors
    /// Those of [`Self::note_conversion`].
    pub async fn end_conversion(&self, of: &Info, task: u64) -> Result<bool> {
        let (this, of) = (self.clone(), of.clone());
        whole(async move { this.note_conversion_whole(&of, None, Some(task)).await }).await
    }

    async fn note_conversion_whole(
        &self,
        of: &Info,
        conversion: Option<Conversion>,
        task: Option<u64>,
    ) -> Result<bool> {
        let _tree = self.0.tree.read().await;
        let writer = Writer::new(Principal::System);
        for _ in 0..ATTEMPTS {
            let path = self.path_of(of.file_id).await?;
            let found = self.found(&path).await?;
            if found.entry.file_id != of.file_id {
                // It was moved since, and another one came into its place.
                continue;
            }
            let Some(held) = self.hold(found).await? else { continue };
            let (stays, found) = (held.check(self.0.keys), held.found);
            let attached = found.entry.conversion.as_ref().is_some_and(|before| before.attached);
            if found.entry.v != of.v || (conversion.is_none() && (attached || is_document(&path))) {
                return Ok(false);
            }
            let conversion = conversion.clone().map(|noted| Conversion { attached, ..noted });
            let entry = Entry { conversion, ..found.entry };
            let key = self.0.keys.entry(found.folder, &found.name);
            let mut writes = vec![Write::put(key, error::json(&entry)?, Expect::Rev(found.rev))];
            writes.extend(stays);
            let mut is_left_behind = false;
            if let Some(rev) = task {
                // A later task, such as that of a move, stays.
                match self.unconverted(of.file_id).await? {
                    // The move of a folder gives no tasks to the documents in it.
                    Some((_, now)) if now == rev && path != of.path => is_left_behind = true,
                    Some((_, now)) if now == rev => {
                        writes.push(Write::delete(self.0.keys.unconverted(of.file_id), Expect::Rev(rev)));
                    }
                    Some(_) | None => {}
                }
            }
            let change = Change::of(Op::Converted, &entry, path, &writer, self.0.clock.now());
            if self.commit(writes, &change, &writer).await? {
                if is_left_behind {
                    let message = format!("{} moved during its conversion, to {}", of.path, change.path);
                    return Err(Error::new(Code::Conflict, message));
                }
                return Ok(true);
            }
        }
        Err(error::busy())
    }

    /// The outcome of an earlier conversion of a content under a name that ends like this one.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn converted(&self, digest: Sha256, name: &str) -> Result<Option<ConversionOutcome>> {
        let key = self.0.keys.conversion(digest, &ending(name), FORM);
        let item = self.0.table.get(&key).await.map_err(error::port)?;
        item.map(|item| error::parse(&item.body)).transpose()
    }

    /// Remembers the outcome of a conversion, so that the same content is never converted again.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn remember_conversion(&self, digest: Sha256, name: &str, outcome: &ConversionOutcome) -> Result<()> {
        let key = self.0.keys.conversion(digest, &ending(name), FORM);
        let write = Write::put(key, error::json(outcome)?, Expect::Any);
        self.0.table.commit(vec![write]).await.map_err(error::port)
    }

    /// The Markdown of a document, for its readers: none when the file at the path is no document, or its current version has none.
    ///
    /// # Errors
    /// Those of [`Workspace::read`], for the Markdown.
    pub async fn markdown_of(&self, info: &Info) -> Result<Option<crate::Content>> {
        let Some(Conversion { status: ConversionStatus::Done, markdown: Some(markdown), .. }) = &info.conversion else {
            return Ok(None);
        };
        let read = async { self.read(&self.path_of(*markdown).await?, None).await };
        match read.await {
            Ok(content) if content.info.derived_from == Some(info.file_id) => Ok(Some(content)),
            // Somebody made it their own, or removed it.
            Ok(_) => Ok(None),
            Err(error) if error.code == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn files_below_data_are_documents() {
        let is = |path: &str| is_document(&FilePath::parse(path).unwrap());
        assert!(is("/data/a.pdf") && is("/data/sales/2026/a.csv"));
        assert!(!is("/data") && !is("/projects/data/a.pdf") && !is("/database/a.pdf"));
    }

    #[test]
    fn the_end_of_a_name_is_plain_and_short() {
        let ends = [("a.CSV", "csv"), ("a", ""), ("a.tar.gz", "gz"), ("a.b c", ""), ("a.seventeen17letters", "")];
        for (name, end) in ends {
            assert_eq!(ending(name), end, "{name}");
        }
    }
}
