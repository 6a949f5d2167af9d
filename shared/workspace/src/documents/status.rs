//! Which files are documents, and the conversion that a file begins with: by its path, or by a chat that it is attached to.

use super::is_document;
use crate::{
    Change, FileKind, Info, Op, Result, Workspace, Writer,
    commit::{ATTEMPTS, whole},
    contents::is_large,
    error,
    model::Entry,
};
use access::Action;
use domain::{Conversion, ConversionStatus, FileId, FilePath, Principal};
use ports::{Expect, Write, is_plain_text};

impl Info {
    /// Whether it is a document: a file under `/data`, or one that is attached to a chat.
    pub fn is_document(&self) -> bool {
        self.kind == FileKind::File && (is_document(&self.path) || is_attached(self.conversion.as_ref()))
    }
}

fn is_attached(conversion: Option<&Conversion>) -> bool {
    conversion.is_some_and(|conversion| conversion.attached)
}

/// The conversion of a version of this size, which comes after one with the conversion `before`; the content is a text already, or is not looked at.
fn begun(size: u64, is_text: bool, before: Option<&Conversion>) -> Conversion {
    let (markdown, attachments) = before.map_or((None, None), |before| (before.markdown, before.attachments));
    let now = |status| Conversion::new(status, markdown).with_attachments(attachments);
    if is_large(size) {
        now(ConversionStatus::Skipped).because("too_large", "documents of up to 32 MiB are converted")
    } else if size == 0 {
        now(ConversionStatus::Skipped).because("empty", "it has no content")
    } else if is_text {
        let (reason, message) = ports::IS_TEXT;
        now(ConversionStatus::Skipped).because(reason, message)
    } else {
        now(ConversionStatus::Queued)
    }
}

impl Workspace {
    /// The conversion of a new version. Where its content is at hand and is a text already, no converter is asked.
    pub(crate) fn conversion_of(
        &self,
        path: &FilePath,
        (size, content): (u64, Option<&[u8]>),
        before: Option<&Conversion>,
        writer: &Writer,
    ) -> Option<Conversion> {
        let is_derived = writer.derived_from.is_some() && !writer.attaches;
        // The attachments of a message are documents wherever it lies.
        let attached = is_attached(before) || (writer.attaches && !is_document(path));
        if is_derived || !(attached || is_document(path)) || self.converter().is_none() {
            return None;
        }
        let is_text = content.is_some_and(|content| is_plain_text(path.name(), content));
        Some(Conversion { attached, ..begun(size, is_text, before) })
    }

    /// The entry of a file at its new path: one that becomes a document is to be converted.
    /// Markdown, an attachment or a folder with attachments that somebody moves is theirs.
    pub(crate) fn moved_document(&self, entry: &Entry, from: &FilePath, to: &FilePath, writer: &Writer) -> Entry {
        let mut entry = entry.clone();
        if writer.derived_from.is_none() {
            entry.derived_from = None;
        }
        let was_document = is_document(from) || is_attached(entry.conversion.as_ref());
        if entry.kind == FileKind::File && entry.derived_from.is_none() && !was_document {
            entry.conversion = self.conversion_of(to, (entry.size, None), entry.conversion.as_ref(), writer);
        }
        entry
    }

    /// Has a file converted because it is attached to a chat: from now on it is a document wherever it lies, and its Markdown is beside it. Returns its
    /// conversion. There is none for a folder or the file of a chat, for a file that was made from a document, and where nothing is converted. No file that is
    /// made from it starts a flow, since to attach a file is to read it.
    ///
    /// # Errors
    /// `NOT_FOUND` when the file is gone or hidden; `FORBIDDEN` when it may not be read; `CONFLICT` when others were faster again and again; else those of
    /// [`Workspace`].
    pub async fn attach(&self, file: &Info) -> Result<Option<Conversion>> {
        self.demand(Action::Read, &file.path)?;
        // One that left `/data` has the conversion that it had there until the converter looks at it.
        if (file.conversion.is_some() && file.is_document()) || self.converter().is_none() {
            return Ok(file.conversion.clone());
        }
        let (this, file_id) = (self.clone(), file.file_id);
        whole(async move { this.attach_whole(file_id).await }).await
    }

    async fn attach_whole(&self, file_id: FileId) -> Result<Option<Conversion>> {
        let _tree = self.0.tree.read().await;
        let writer = Writer { may_run: false, ..Writer::new(Principal::System) };
        for _ in 0..ATTEMPTS {
            let path = self.path_of(file_id).await?;
            let found = self.found(&path).await?;
            if found.entry.file_id != file_id {
                // It was moved since, and another one came into its place.
                continue;
            }
            let Some(held) = self.hold(found).await? else { continue };
            let (stays, found) = (held.check(self.0.keys), held.found);
            let is_plain = found.entry.kind == FileKind::File && found.entry.derived_from.is_none();
            let before = found.entry.conversion.as_ref();
            let is_known = before.is_some() && (is_document(&path) || is_attached(before));
            if is_known || !is_plain {
                return Ok(found.entry.conversion);
            }
            let conversion = Conversion { attached: true, ..begun(found.entry.size, false, before) };
            let (entry, at) = (Entry { conversion: Some(conversion), ..found.entry }, self.0.clock.now());
            let key = self.0.keys.entry(found.folder, &found.name);
            let mut writes = vec![Write::put(key, error::json(&entry)?, Expect::Rev(found.rev))];
            writes.extend(stays);
            let unconverted = self.unconverted_item(&entry, None, &writer, at).await?;
            writes.extend(unconverted.clone());
            let change = Change::of(Op::Converted, &entry, path, &writer, at);
            if self.commit(writes, &change, &writer).await? {
                self.tell_converter(&change, unconverted.is_some()).await;
                return Ok(entry.conversion);
            }
        }
        Err(error::busy())
    }
}
