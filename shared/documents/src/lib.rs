//! The driver of documents: takes them off the queue, has them converted, and writes their Markdown beside them (spec 001 §2 B;
//! docs/architecture/documents.md).
//!
//! ```text
//!   a commit under /data ── item and message ──▶ the driver ── the content ──▶ a converter, in a process of its own
//!                                                    │◀──────── Markdown ─────────┘
//!                                                    └── <name>.md, the attachments of a message, and the status of the document
//! ```
//!
//! A document has messages as an actor has, and no log: its entry in the index says how far it is, and an item beside it says that something is left to
//! do. Two groups of a workspace are driven at once, so its documents leave places for its chats. Each step can be repeated: a worker that takes over
//! after a crash writes the same Markdown, which makes no second version.
//!
//! This crate parses nothing.

mod attachments;
mod describe;
mod front_matter;
mod left;
mod names;

use actor::{ActorDriver, Settlement};
use async_trait::async_trait;
use bytes::Bytes;
use describe::Undescribed;
use domain::{Code, Conversion, ConversionStatus, Error, FileId, FilePath, Principal, WorkspaceId};
use front_matter::{Source, render, with_source};
use futures::FutureExt;
use left::Left;
use ports::{Converter, Delivery, Describer, NotConverted};
use std::{collections::HashSet, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use workspace::{
    Access, Expect, FileKind, Info, Workspace, Workspaces, Writer,
    documents::{ConversionOutcome, ConvertDocument, ConvertedAttachment, KIND, attachments_path, markdown_path},
};

/// When a document comes again that could not be dealt with: twice this after the first attempt, then each time twice as late, up to 51 s.
const AGAIN: Duration = Duration::from_millis(100);
const LONGEST: u32 = 9;
/// A document that is found running after so many attempts counts as one that ends workers.
const ATTEMPTS: u32 = 12;
/// The reasons for failures that say nothing about the content as it was written: its conversion ended workers; the archive has lost it.
const INTERRUPTED: &str = "interrupted";
const CONTENT_LOST: &str = "content_lost";

/// Drives the documents of all workspaces. Cheap to clone.
#[derive(Clone)]
pub struct Documents {
    workspaces: Workspaces,
    converter: Arc<dyn Converter>,
    describer: Option<Arc<dyn Describer>>,
    /// The conversions that run at once in this process: each may take half a GiB.
    places: Arc<Semaphore>,
}

/// The parts of a converted document.
struct Parts {
    /// The Markdown without the list of attachments.
    text: String,
    /// Why it lacks a description.
    undescribed: Option<Undescribed>,
    /// Names as the message has them, and contents.
    attachments: Vec<(String, Bytes)>,
}

/// The parts of a document; or the status and the reason of one that has none.
type ConversionResult = Result<Parts, (ConversionStatus, String, String)>;

impl Documents {
    /// With this converter, and so many conversions at once.
    pub fn new(workspaces: Workspaces, converter: Arc<dyn Converter>, at_once: usize) -> Self {
        Self { workspaces, converter, describer: None, places: Arc::new(Semaphore::new(at_once.max(1))) }
    }

    /// The same, with a model that describes pictures, sound and film.
    #[must_use]
    pub fn describing(self, describer: Option<Arc<dyn Describer>>) -> Self {
        Self { describer, ..self }
    }

    /// Does what is left to do for a document.
    async fn settle(&self, workspace: WorkspaceId, file: FileId, attempt: u32) -> Result<(), Left> {
        let workspace = match self
            .workspaces
            .open(workspace, Access::platform("the Markdown of a document lies beside it"))
            .await
        {
            Err(error) if error.code == Code::NotFound => return Ok(()),
            workspace => workspace?,
        };
        let Some((task, rev)) = workspace.unconverted(file).await? else { return Ok(()) };
        let info = found(workspace.by_id(file).await)?;
        let by = Writer { may_run: !task.may_not_run, ..writer(file) };
        if info.as_ref().is_some_and(|info| info.kind == FileKind::Folder) {
            workspace.convert_below(file, &by).await?;
            return Ok(workspace.settle_document(file, rev).await?);
        }
        let elsewhere = info.clone().filter(|info| !info.is_document());
        let info = info.filter(Info::is_document);
        if let (Some(folder), Some(from)) = (task.attachments, &task.from)
            && info.as_ref().is_none_or(|info| info.path != *from)
        {
            attachments::leave(&workspace, file, folder, from).await?;
        }
        let Some(info) = info else {
            // In the trash, or elsewhere: its files go with it.
            if let Some(markdown) = task.markdown {
                remove(&workspace, file, markdown).await?;
            }
            if let Some(folder) = task.attachments {
                let place = workspace.trashed_path(file).await?.and_then(|path| attachments_path(&path).ok());
                attachments::remove(&workspace, file, folder, place.as_ref()).await?;
            }
            if let Some(elsewhere) = elsewhere.filter(|info| info.conversion.is_some()) {
                return match found(workspace.end_conversion(&elsewhere, rev).await)? {
                    Some(true) => Ok(()),
                    // The next look tells. In a folder that came back it is a document again, without its files and without another task.
                    Some(false) | None => Err(Error::new(Code::Conflict, "it changed meanwhile").into()),
                };
            }
            return Ok(workspace.settle_document(file, rev).await?);
        };
        match workspace.unconverted(file).await? {
            Some((_, now)) if now == rev => {}
            // A sweep gives the same task another revision, and this may be the message that it sent before.
            Some((now, _)) if now == task => {
                return Err(Error::new(Code::Conflict, "its task was written anew meanwhile").into());
            }
            // The right of the task is that of this version's writer. A change in between has a message of its own.
            Some(_) | None => return Ok(()),
        }
        match &info.conversion {
            Some(conversion) if conversion.is_open() => self.convert(&workspace, &info, rev, attempt, &by).await,
            Some(Conversion { status: ConversionStatus::Skipped, reason, message, .. }) => {
                // The files are those of another version.
                clear(&workspace, &info).await?;
                let (reason, message) = (reason.clone(), message.clone());
                let skipped = Conversion { reason, message, ..Conversion::new(ConversionStatus::Skipped, None) };
                workspace.note_conversion(&info, skipped, Some(rev)).await?;
                Ok(())
            }
            Some(conversion) if conversion.has_files() => {
                // It was moved or restored: its files follow, or are made again.
                if follow(&workspace, &info, &by).await? {
                    Ok(workspace.settle_document(file, rev).await?)
                } else {
                    self.convert(&workspace, &info, rev, attempt, &by).await
                }
            }
            Some(_) | None => Ok(workspace.settle_document(file, rev).await?),
        }
    }

    async fn convert(
        &self,
        workspace: &Workspace,
        info: &Info,
        rev: u64,
        attempt: u32,
        by: &Writer,
    ) -> Result<(), Left> {
        let Some(sha256) = info.sha256 else { return Ok(workspace.settle_document(info.file_id, rev).await?) };
        let known = workspace.converted(sha256, &info.name).await?;
        let outcome = match known {
            Some(ConversionOutcome::Done { file_id, v, attachments }) => {
                match self.again(workspace, info, (file_id, v), attachments).await? {
                    Some(parts) => Ok(parts),
                    // A version is gone for good.
                    None => self.converted(workspace, info, attempt).await?,
                }
            }
            Some(ConversionOutcome::Failed { reason, message }) => Err((ConversionStatus::Failed, reason, message)),
            Some(ConversionOutcome::Skipped { reason, message }) => Err((ConversionStatus::Skipped, reason, message)),
            None => self.converted(workspace, info, attempt).await?,
        };
        // The conversion took its time, and a folder above may have moved meanwhile.
        let Some(now) = still(workspace, info).await? else { return Ok(()) };
        let info = &now;
        let before = info.conversion.as_ref().and_then(|conversion| conversion.markdown);
        let conversion = match outcome {
            Ok(Parts { text, undescribed, attachments }) => {
                let text = with_source(&Source::of(info), &text).unwrap_or(text);
                let Some(placed) = attachments::put(workspace, info, &attachments, by).await? else {
                    // A change that came meanwhile has a task of its own.
                    return Ok(());
                };
                let conversion = match put(workspace, info, before, text + &placed.list, by).await? {
                    Ok((file_id, v)) => {
                        // The same message elsewhere may have room for what has none here.
                        if placed.is_whole {
                            let done = ConversionOutcome::Done { file_id, v, attachments: placed.files };
                            workspace.remember_conversion(sha256, &info.name, &done).await?;
                        }
                        let done = Conversion::new(ConversionStatus::Done, Some(file_id));
                        match undescribed {
                            Some(Undescribed { reason, message }) => done.because(reason, message),
                            None => done,
                        }
                    }
                    Err(taken) => Conversion::new(ConversionStatus::Failed, None).because("name_taken", taken),
                };
                conversion.with_attachments(placed.folder)
            }
            Err((status, reason, message)) => {
                // The same content of another file is converted.
                if ![INTERRUPTED, CONTENT_LOST].contains(&reason.as_str()) {
                    let (reason, message) = (reason.clone(), message.clone());
                    let outcome = match status {
                        ConversionStatus::Skipped => ConversionOutcome::Skipped { reason, message },
                        _ => ConversionOutcome::Failed { reason, message },
                    };
                    workspace.remember_conversion(sha256, &info.name, &outcome).await?;
                }
                // The files are those of another version.
                clear(workspace, info).await?;
                Conversion::new(status, None).because(reason, message)
            }
        };
        let (markdown, attachments) = (conversion.markdown, conversion.attachments);
        // A later version has a task of its own, with a message of its own.
        if found(workspace.note_conversion(info, conversion, Some(rev)).await)?.is_none() {
            // The document went meanwhile, with a task that may not know its files.
            if let Some(markdown) = markdown {
                remove(workspace, info.file_id, markdown).await?;
            }
            if let Some(folder) = attachments {
                let place = attachments_path(&info.path).ok();
                attachments::remove(workspace, info.file_id, folder, place.as_ref()).await?;
            }
        }
        Ok(())
    }

    /// The parts that the converter makes, or the reason for which there are none.
    async fn converted(&self, workspace: &Workspace, info: &Info, attempt: u32) -> Result<ConversionResult, Left> {
        let is_running = info.conversion.as_ref().is_some_and(|it| it.status == ConversionStatus::Running);
        if is_running && attempt > ATTEMPTS {
            let message = format!("its conversion was interrupted {ATTEMPTS} times");
            return Ok(Err((ConversionStatus::Failed, INTERRUPTED.into(), message)));
        }
        let _place = self.places.acquire().await;
        let (markdown, attachments) =
            info.conversion.as_ref().map_or((None, None), |before| (before.markdown, before.attachments));
        let running = Conversion::new(ConversionStatus::Running, markdown).with_attachments(attachments);
        workspace.note_conversion(info, running, None).await?;
        // This version, whatever is at the path by now.
        let version = workspace.version(info.file_id, info.v).await;
        if let Err(error) = &version
            && matches!(error.code, Code::ContentMissing | Code::ContentDamaged)
        {
            let message = format!("its content cannot be read: {}; write the document again", error.message);
            return Ok(Err((ConversionStatus::Failed, CONTENT_LOST.into(), message)));
        }
        let (_, content) = version?;
        let converted = self.converter.convert(&info.name, content.clone()).await;
        Ok(match converted {
            Ok(mut converted) => {
                let undescribed = self.describe(workspace, info, content, attempt, &mut converted).await?;
                let text = render(&Source::of(info), &converted);
                let attachments = converted.attachments.into_iter().map(|it| (it.name, it.content.into())).collect();
                Ok(Parts { text, undescribed, attachments })
            }
            Err(NotConverted::Skipped { reason, message }) => Err((ConversionStatus::Skipped, reason, message)),
            Err(NotConverted::Failed { reason, message }) => Err((ConversionStatus::Failed, reason, message)),
            Err(NotConverted::Unavailable(why)) => return Err(Left::Unavailable(why)),
        })
    }

    /// The parts that an earlier conversion of the same content made, for this document; none when one cannot be read any more.
    async fn again(
        &self,
        workspace: &Workspace,
        info: &Info,
        (made, v): (FileId, u64),
        attachments: Vec<ConvertedAttachment>,
    ) -> Result<Option<Parts>, Left> {
        let Some(bytes) = kept(workspace, made, v).await? else { return Ok(None) };
        let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(None) };
        let text = if attachments.is_empty() { text } else { attachments::without_list(text) };
        let Some(text) = with_source(&Source::of(info), text) else { return Ok(None) };
        let mut contents = Vec::new();
        for ConvertedAttachment { name, file_id, v } in attachments {
            let Some(content) = kept(workspace, file_id, v).await? else { return Ok(None) };
            contents.push((name, content));
        }
        let undescribed = Undescribed::from_markdown(&text);
        Ok(Some(Parts { text, undescribed, attachments: contents }))
    }

    async fn drive(&self, delivery: &Delivery, attempt: u32) -> Result<(), Left> {
        let workspace = delivery.group.split('/').nth(1).and_then(|id| id.parse().ok());
        let document = serde_json::from_str::<ConvertDocument>(&delivery.body);
        let (Some(workspace), Ok(ConvertDocument { file_id })) = (workspace, document) else {
            tracing::error!(group = delivery.group, "a message is for no document");
            return Ok(());
        };
        self.settle(workspace, file_id, attempt).await
    }
}

fn writer(document: FileId) -> Writer {
    Writer { derived_from: Some(document), ..Writer::new(Principal::System) }
}

/// The result; none for `NOT_FOUND`.
fn found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The document at its present place. None when it has gone, or has another version: a later task is for that.
async fn still(workspace: &Workspace, info: &Info) -> Result<Option<Info>, Error> {
    let now = found(workspace.by_id(info.file_id).await)?;
    Ok(now.filter(|now| now.v == info.v && now.is_document()))
}

/// The content of a version; none when it is gone for good.
async fn kept(workspace: &Workspace, file: FileId, v: u64) -> Result<Option<Bytes>, Error> {
    match workspace.version(file, v).await {
        Ok((_, content)) => Ok(Some(content)),
        Err(error) if matches!(error.code, Code::NotFound | Code::ContentMissing | Code::ContentDamaged) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the Markdown beside its document; or says why its name is taken.
async fn put(
    workspace: &Workspace,
    info: &Info,
    before: Option<FileId>,
    text: String,
    by: &Writer,
) -> Result<Result<(FileId, u64), String>, Error> {
    let path = match markdown_path(&info.path) {
        Ok(path) => path,
        Err(error) => return Ok(Err(error.message)),
    };
    if let Some(markdown) = before {
        bring(workspace, info.file_id, markdown, &path).await?;
    }
    let expect = match found(workspace.stat(&path).await)? {
        Some(there) if there.derived_from == Some(info.file_id) => Expect::Exactly(there.file_id, there.v),
        Some(_) => return Ok(Err(taken(&path))),
        None => Expect::Absent,
    };
    let change = workspace.write(&path, text, expect, by).await?;
    Ok(Ok((change.file_id, change.v)))
}

fn taken(path: &FilePath) -> String {
    format!("{path} is there already, and is not its Markdown: move it, then write the document again")
}

/// Has the Markdown of a document that was moved or restored follow it. False when there is none to follow, and for a message with attachments: its
/// parts are put to their places as those of a new one.
async fn follow(workspace: &Workspace, info: &Info, by: &Writer) -> Result<bool, Error> {
    let Some(conversion) = &info.conversion else { return Ok(false) };
    if let Some(markdown) = conversion.markdown {
        restore(workspace, markdown, by).await?;
    }
    if let Some(folder) = conversion.attachments {
        restore(workspace, folder, by).await?;
        return Ok(false);
    }
    let Some(markdown) = conversion.markdown else { return Ok(false) };
    let Ok(path) = markdown_path(&info.path) else { return Ok(true) };
    bring(workspace, info.file_id, markdown, &path).await?;
    let there = match found(workspace.read(&path, None).await)? {
        Some(there) if there.info.derived_from == Some(info.file_id) => there,
        Some(_) | None => return Ok(false),
    };
    let Some(text) = std::str::from_utf8(&there.bytes).ok().and_then(|text| with_source(&Source::of(info), text))
    else {
        return Ok(false);
    };
    workspace.write(&path, text, Expect::Exactly(there.info.file_id, there.info.v), by).await?;
    Ok(true)
}

/// Brings something that was made from a document back from the trash, if it is there.
async fn restore(workspace: &Workspace, made: FileId, by: &Writer) -> Result<(), Error> {
    match workspace.restore(made, by).await {
        Ok(_) => Ok(()),
        // It was not in the trash, or its old place is taken.
        Err(error) if matches!(error.code, Code::NotFound | Code::Conflict) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Moves the Markdown of a document to its place, if it is elsewhere and the place is free.
async fn bring(workspace: &Workspace, document: FileId, markdown: FileId, to: &FilePath) -> Result<(), Error> {
    let Some(there) = own(workspace, document, markdown).await? else { return Ok(()) };
    if there.path == *to {
        return Ok(());
    }
    match workspace.mv_expecting(&there.path, to, Expect::Exactly(there.file_id, there.v), &writer(document)).await {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.code, Code::Conflict | Code::NotFound | Code::StaleVersion) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Puts all files that were made from a document into the trash, also those of a conversion that was interrupted.
async fn clear(workspace: &Workspace, info: &Info) -> Result<(), Error> {
    if let Some(markdown) = info.conversion.as_ref().and_then(|conversion| conversion.markdown) {
        remove(workspace, info.file_id, markdown).await?;
    }
    if let Ok(path) = markdown_path(&info.path)
        && let Some(there) = found(workspace.stat(&path).await)?
        && there.derived_from == Some(info.file_id)
    {
        remove_made(workspace, info.file_id, &there).await?;
    }
    attachments::clear(workspace, info).await
}

/// Puts the Markdown of a document into the trash.
async fn remove(workspace: &Workspace, document: FileId, markdown: FileId) -> Result<(), Error> {
    match own(workspace, document, markdown).await? {
        Some(there) => remove_made(workspace, document, &there).await,
        None => Ok(()),
    }
}

/// Puts something that was made from a document into the trash, unless somebody else has changed, moved or removed it meanwhile.
async fn remove_made(workspace: &Workspace, document: FileId, made: &Info) -> Result<(), Error> {
    let expect = Expect::Exactly(made.file_id, made.v);
    match workspace.rm_expecting(&made.path, expect, &writer(document)).await {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.code, Code::NotFound | Code::StaleVersion) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The Markdown of a document, while nobody has made it their own.
async fn own(workspace: &Workspace, document: FileId, markdown: FileId) -> Result<Option<Info>, Error> {
    Ok(found(workspace.by_id(markdown).await)?.filter(|info| info.derived_from == Some(document)))
}

#[async_trait]
impl ActorDriver for Documents {
    fn name(&self) -> &'static str {
        KIND
    }

    async fn deliver(&self, deliveries: &[Delivery], cut: &CancellationToken) -> Settlement {
        let (mut done, mut dealt) = (0, HashSet::new());
        for delivery in deliveries {
            if dealt.insert(&delivery.body) {
                let attempt = if done == 0 { delivery.attempt } else { 1 };
                let driven = AssertUnwindSafe(self.drive(delivery, attempt)).catch_unwind();
                let driven = tokio::select! {
                    biased;
                    // The process ends: the document comes again, in another one.
                    () = cut.cancelled() => return Settlement { done, again: Duration::ZERO },
                    driven = driven => driven,
                };
                let again = AGAIN * 2_u32.pow(attempt.min(LONGEST));
                match driven {
                    Ok(Ok(())) => {}
                    // Its task stays, and a sweep sends another message; those behind it go on.
                    Ok(Err(left)) if left.is_of_damaged_row() => left.tell(&delivery.group),
                    Ok(Err(left)) => {
                        left.tell(&delivery.group);
                        return Settlement { done, again };
                    }
                    Err(_) => {
                        tracing::error!(group = delivery.group, "the driver of documents panicked");
                        return Settlement { done, again };
                    }
                }
            }
            done += 1;
        }
        Settlement { done, again: Duration::ZERO }
    }
}
