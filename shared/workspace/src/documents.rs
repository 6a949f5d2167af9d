//! Documents: files under `/data`, which are converted to Markdown in the background (spec 001 §2 B).
//!
//! The commit of a document's version also writes an item that says that a converter has something to do, and a message of the queue follows it.
//! So a process that dies in between loses nothing: a sweep finds the item in the index by its time. The item goes in the very commit that writes
//! down the end of the conversion, and only while no later change has written it anew.
//!
//! The Markdown is an ordinary file beside the document, `<name>.md`, which says from which document it is derived. A write by anybody else makes it
//! that person's, and no conversion overwrites it.

use crate::{
    Change, Info, Op, Result, Workspace, Workspaces, Writer,
    commit::{ATTEMPTS, whole},
    contents::is_large,
    error,
    model::Entry,
};
use domain::{Code, Conversion, ConversionStatus, FileId, FilePath, Principal, Sha256, Timestamp, WorkspaceId};
use ports::{Expect, Key, Query, QueueMessage, QueueSender, Write};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The kind of the queue's groups, as the first part of their names.
pub const KIND: &str = "document";
/// The number of groups of a workspace: so many of its documents are converted at once.
const GROUPS: u8 = 2;
/// The number of parts in which the index has documents that wait.
pub const SHARDS: u8 = 4;
/// The longest end of a name that tells contents apart, in bytes.
const ENDING: usize = 16;

/// That a converter has something to do for a document: to convert it, or to have its Markdown follow it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// Since when.
    pub at: Timestamp,
    /// Its Markdown, as far as there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub markdown: Option<FileId>,
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
pub enum Outcome {
    /// A version has the Markdown.
    Done {
        /// Its file.
        file_id: FileId,
        /// The version.
        v: u64,
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

/// Whether a file at this path is a document.
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
        let mut messages = Vec::new();
        for item in &page.items {
            let workspace = item.key.pk.split('/').next().and_then(|id| id.parse::<WorkspaceId>().ok());
            let (Some(workspace), Ok(file)) = (workspace, item.key.sk.parse::<FileId>()) else { continue };
            messages.push(message(workspace, file, format!("{file}/again/{}", self.0.clock.id()))?);
        }
        let count = messages.len() as u64;
        if count > 0 {
            queue.send(messages).await.map_err(error::port)?;
        }
        Ok((count, page.next))
    }
}

impl Workspace {
    fn converter(&self) -> Option<Arc<dyn QueueSender>> {
        self.0.shared.upgrade().and_then(|shared| shared.converter.get().cloned())
    }

    /// The conversion of a new version.
    pub(crate) fn conversion_of(
        &self,
        path: &FilePath,
        size: u64,
        before: Option<&Conversion>,
        writer: &Writer,
    ) -> Option<Conversion> {
        if writer.derived_from.is_some() || !is_document(path) || self.converter().is_none() {
            return None;
        }
        let markdown = before.and_then(|before| before.markdown);
        let skipped = Conversion::new(ConversionStatus::Skipped, markdown);
        Some(if is_large(size) {
            skipped.because("too_large", "documents of up to 32 MiB are converted")
        } else if size == 0 {
            skipped.because("empty", "it has no content")
        } else {
            Conversion::new(ConversionStatus::Queued, markdown)
        })
    }

    /// The entry of a file at its new path: one that becomes a document is to be converted.
    /// Markdown that somebody moves is theirs.
    pub(crate) fn moved_document(&self, entry: &Entry, from: &FilePath, to: &FilePath, writer: &Writer) -> Entry {
        let mut entry = entry.clone();
        if writer.derived_from.is_none() {
            entry.derived_from = None;
        }
        if entry.kind == crate::FileKind::File && entry.derived_from.is_none() && !is_document(from) {
            entry.conversion = self.conversion_of(to, entry.size, entry.conversion.as_ref(), writer);
        }
        entry
    }

    /// The item that says that a converter has something to do for this entry; none when it has not.
    pub(crate) fn unconverted_item(&self, entry: &Entry, at: Timestamp) -> Result<Option<Write>> {
        let Some(conversion) = &entry.conversion else { return Ok(None) };
        if self.converter().is_none() || !conversion.is_open() && conversion.markdown.is_none() {
            return Ok(None);
        }
        let pending = Pending { at, markdown: conversion.markdown };
        let item = Write::put(self.0.keys.unconverted(entry.file_id), error::json(&pending)?, Expect::Any);
        Ok(Some(item.indexed(due(self.0.id, entry.file_id, at))))
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
    /// `NOT_FOUND` when the document is gone; `CONFLICT` when others were faster again and again; else those of [`Workspace`].
    pub async fn note_conversion(&self, of: &Info, conversion: Conversion, task: Option<u64>) -> Result<bool> {
        let (this, of) = (self.clone(), of.clone());
        whole(async move { this.note_conversion_whole(&of, conversion, task).await }).await
    }

    async fn note_conversion_whole(&self, of: &Info, conversion: Conversion, task: Option<u64>) -> Result<bool> {
        let _tree = self.0.tree.read().await;
        let writer = Writer::new(Principal::System);
        for _ in 0..ATTEMPTS {
            let path = self.path_of(of.file_id).await?;
            let found = self.found(&path).await?;
            if found.entry.v != of.v {
                return Ok(false);
            }
            let entry = Entry { conversion: Some(conversion.clone()), ..found.entry };
            let key = self.0.keys.entry(found.folder, &found.name);
            let mut writes = vec![Write::put(key, error::json(&entry)?, Expect::Rev(found.rev))];
            if let Some(rev) = task {
                // A later task, such as that of a move, stays.
                match self.unconverted(of.file_id).await? {
                    Some((_, now)) if now == rev => {
                        writes.push(Write::delete(self.0.keys.unconverted(of.file_id), Expect::Rev(rev)));
                    }
                    Some(_) | None => {}
                }
            }
            let change = Change::of(Op::Converted, &entry, path, &writer, self.0.clock.now());
            if self.commit(writes, &change, &writer).await? {
                return Ok(true);
            }
        }
        Err(error::busy())
    }

    /// The outcome of an earlier conversion of a content under a name that ends like this one.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn converted(&self, digest: Sha256, name: &str) -> Result<Option<Outcome>> {
        let key = self.0.keys.conversion(digest, &ending(name));
        let item = self.0.table.get(&key).await.map_err(error::port)?;
        item.map(|item| error::parse(&item.body)).transpose()
    }

    /// Remembers the outcome of a conversion, so that the same content is never converted again.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn remember_conversion(&self, digest: Sha256, name: &str, outcome: &Outcome) -> Result<()> {
        let key = self.0.keys.conversion(digest, &ending(name));
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
