//! The driver of documents: takes them off the queue, has them converted, and writes their Markdown beside them (spec 001 §2 B; ARCHITECTURE.md,
//! "Documents").
//!
//! ```text
//!   a commit under /data ── item and message ──▶ the driver ── the content ──▶ a converter, in a process of its own
//!                                                    │◀──────── Markdown ─────────┘
//!                                                    └── <name>.md, and the status of the document
//! ```
//!
//! A document has messages as an actor has, and no log: its entry in the index says how far it is, and an item beside it says that something is left to
//! do. Two groups of a workspace are driven at once, so its documents leave places for its chats. Each step can be repeated: a worker that takes over
//! after a crash writes the same Markdown, which makes no second version.
//!
//! This crate parses nothing.

mod describe;
mod front_matter;

use actor::{ActorDriver, Verdict};
use async_trait::async_trait;
use describe::Undescribed;
use domain::{Code, Conversion, ConversionStatus, Error, FileId, FilePath, Principal, WorkspaceId};
use front_matter::{Source, render, with_source};
use futures::FutureExt;
use ports::{Converter, Delivery, Describer, NotConverted};
use std::{collections::HashSet, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, time::Instant};
use tokio_util::sync::CancellationToken;
use workspace::{
    Access, Expect, FileKind, Info, Workspace, Workspaces, Writer,
    documents::{ConvertDocument, KIND, Outcome, is_document, markdown_path},
};

/// When a document comes again that could not be dealt with: twice this after the first attempt, then each time twice as late, up to 51 s.
const AGAIN: Duration = Duration::from_millis(100);
const LONGEST: u32 = 9;
/// A document that is found running after so many attempts counts as one that ends workers.
const ATTEMPTS: u32 = 12;

/// Drives the documents of all workspaces. Cheap to clone.
#[derive(Clone)]
pub struct Documents {
    workspaces: Workspaces,
    converter: Arc<dyn Converter>,
    describer: Option<Arc<dyn Describer>>,
    /// The conversions that run at once in this process: each may take half a GiB.
    places: Arc<Semaphore>,
}

/// The text of a Markdown, and why it lacks a description; or the status and the reason of a document that has none.
type Made = Result<(String, Option<Undescribed>), (ConversionStatus, String, String)>;

/// The reason for which a document cannot be dealt with now.
enum Left {
    /// A store does not answer, or the like.
    Error(Error),
    /// The converter cannot be started.
    Unavailable(String),
    /// The model that describes documents does not answer.
    Undescribed(String),
}

impl From<Error> for Left {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

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
        let info = match workspace.by_id(file).await {
            Ok(info) => Some(info).filter(|info| info.kind == FileKind::File && is_document(&info.path)),
            Err(error) if error.code == Code::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let Some(info) = info else {
            // In the trash, or elsewhere: the Markdown goes with it.
            if let Some(markdown) = task.markdown {
                remove(&workspace, file, markdown).await?;
            }
            return Ok(workspace.settle_document(file, rev).await?);
        };
        match &info.conversion {
            Some(conversion) if conversion.is_open() => self.convert(&workspace, &info, rev, attempt).await,
            Some(Conversion { status: ConversionStatus::Done, .. }) => {
                // It was moved or restored: its Markdown follows, or is made again.
                if follow(&workspace, &info).await? {
                    Ok(workspace.settle_document(file, rev).await?)
                } else {
                    self.convert(&workspace, &info, rev, attempt).await
                }
            }
            Some(_) | None => Ok(workspace.settle_document(file, rev).await?),
        }
    }

    async fn convert(&self, workspace: &Workspace, info: &Info, rev: u64, attempt: u32) -> Result<(), Left> {
        let before = info.conversion.as_ref().and_then(|conversion| conversion.markdown);
        let Some(sha256) = info.sha256 else { return Ok(workspace.settle_document(info.file_id, rev).await?) };
        let known = workspace.converted(sha256, &info.name).await?;
        let outcome = match known {
            Some(Outcome::Done { file_id, v }) => match self.again(workspace, info, file_id, v).await? {
                Some(text) => {
                    let undescribed = Undescribed::told(&text);
                    Ok((text, undescribed))
                }
                // That version is gone for good.
                None => self.converted(workspace, info, before, attempt).await?,
            },
            Some(Outcome::Failed { reason, message }) => Err((ConversionStatus::Failed, reason, message)),
            Some(Outcome::Skipped { reason, message }) => Err((ConversionStatus::Skipped, reason, message)),
            None => self.converted(workspace, info, before, attempt).await?,
        };
        let conversion = match outcome {
            Ok((text, undescribed)) => match put(workspace, info, before, text).await? {
                Ok((file_id, v)) => {
                    workspace.remember_conversion(sha256, &info.name, &Outcome::Done { file_id, v }).await?;
                    let done = Conversion::new(ConversionStatus::Done, Some(file_id));
                    match undescribed {
                        Some(Undescribed { reason, message }) => done.because(reason, message),
                        None => done,
                    }
                }
                Err(taken) => Conversion::new(ConversionStatus::Failed, None).because("name_taken", taken),
            },
            Err((status, reason, message)) => {
                // An interruption says nothing about the content.
                if reason != "interrupted" {
                    let (reason, message) = (reason.clone(), message.clone());
                    let outcome = match status {
                        ConversionStatus::Skipped => Outcome::Skipped { reason, message },
                        _ => Outcome::Failed { reason, message },
                    };
                    workspace.remember_conversion(sha256, &info.name, &outcome).await?;
                }
                if let Some(markdown) = before {
                    // It is that of another version.
                    remove(workspace, info.file_id, markdown).await?;
                }
                Conversion::new(status, None).because(reason, message)
            }
        };
        // A later version has a task of its own, with a message of its own.
        workspace.note_conversion(info, conversion, Some(rev)).await?;
        Ok(())
    }

    /// The text of the Markdown that the converter makes, or the reason for which there is none.
    async fn converted(
        &self,
        workspace: &Workspace,
        info: &Info,
        before: Option<FileId>,
        attempt: u32,
    ) -> Result<Made, Left> {
        let is_running = info.conversion.as_ref().is_some_and(|it| it.status == ConversionStatus::Running);
        if is_running && attempt > ATTEMPTS {
            let message = format!("its conversion was interrupted {ATTEMPTS} times");
            return Ok(Err((ConversionStatus::Failed, "interrupted".into(), message)));
        }
        let _place = self.places.acquire().await;
        workspace.note_conversion(info, Conversion::new(ConversionStatus::Running, before), None).await?;
        // This version, whatever is at the path by now.
        let (_, content) = workspace.version(info.file_id, info.v).await?;
        let converted = self.converter.convert(&info.name, content.clone()).await;
        Ok(match converted {
            Ok(mut converted) => {
                let undescribed = self.describe(workspace, info, content, attempt, &mut converted).await?;
                Ok((render(&Source::of(info), &converted), undescribed))
            }
            Err(NotConverted::Skipped { reason, message }) => Err((ConversionStatus::Skipped, reason, message)),
            Err(NotConverted::Failed { reason, message }) => Err((ConversionStatus::Failed, reason, message)),
            Err(NotConverted::Unavailable(why)) => return Err(Left::Unavailable(why)),
        })
    }

    /// The Markdown that an earlier conversion of the same content made, for this document; none when it cannot be read any more.
    async fn again(&self, workspace: &Workspace, info: &Info, made: FileId, v: u64) -> Result<Option<String>, Left> {
        match workspace.version(made, v).await {
            Ok((_, bytes)) => {
                Ok(std::str::from_utf8(&bytes).ok().and_then(|text| with_source(&Source::of(info), text)))
            }
            Err(error) if matches!(error.code, Code::NotFound | Code::ContentMissing | Code::ContentDamaged) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
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

/// Writes the Markdown beside its document; or says why its name is taken.
async fn put(
    workspace: &Workspace,
    info: &Info,
    before: Option<FileId>,
    text: String,
) -> Result<Result<(FileId, u64), String>, Error> {
    let path = match markdown_path(&info.path) {
        Ok(path) => path,
        Err(error) => return Ok(Err(error.message)),
    };
    if let Some(markdown) = before {
        bring(workspace, info.file_id, markdown, &path).await?;
    }
    let expect = match workspace.stat(&path).await {
        Ok(there) if there.derived_from == Some(info.file_id) => Expect::Version(there.v),
        Ok(_) => return Ok(Err(taken(&path))),
        Err(error) if error.code == Code::NotFound => Expect::Absent,
        Err(error) => return Err(error),
    };
    let change = workspace.write(&path, text, expect, &writer(info.file_id)).await?;
    Ok(Ok((change.file_id, change.v)))
}

fn taken(path: &FilePath) -> String {
    format!("{path} is there already, and is not its Markdown: move it, then write the document again")
}

/// Has the Markdown of a document that was moved or restored follow it. False when there is none to follow.
async fn follow(workspace: &Workspace, info: &Info) -> Result<bool, Error> {
    let Some(markdown) = info.conversion.as_ref().and_then(|conversion| conversion.markdown) else { return Ok(false) };
    let Ok(path) = markdown_path(&info.path) else { return Ok(true) };
    match workspace.restore(markdown, &writer(info.file_id)).await {
        Ok(_) => {}
        // It was not in the trash, or its old place is taken.
        Err(error) if matches!(error.code, Code::NotFound | Code::Conflict) => {}
        Err(error) => return Err(error),
    }
    bring(workspace, info.file_id, markdown, &path).await?;
    let there = match workspace.read(&path, None).await {
        Ok(there) if there.info.derived_from == Some(info.file_id) => there,
        Ok(_) => return Ok(false),
        Err(error) if error.code == Code::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let Some(text) = std::str::from_utf8(&there.bytes).ok().and_then(|text| with_source(&Source::of(info), text))
    else {
        return Ok(false);
    };
    workspace.write(&path, text, Expect::Version(there.info.v), &writer(info.file_id)).await?;
    Ok(true)
}

/// Moves the Markdown of a document to its place, if it is elsewhere and the place is free.
async fn bring(workspace: &Workspace, document: FileId, markdown: FileId, to: &FilePath) -> Result<(), Error> {
    let Some(there) = own(workspace, document, markdown).await? else { return Ok(()) };
    if there.path == *to {
        return Ok(());
    }
    match workspace.mv(&there.path, to, &writer(document)).await {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.code, Code::Conflict | Code::NotFound) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Puts the Markdown of a document into the trash.
async fn remove(workspace: &Workspace, document: FileId, markdown: FileId) -> Result<(), Error> {
    let Some(there) = own(workspace, document, markdown).await? else { return Ok(()) };
    match workspace.rm(&there.path, &writer(document)).await {
        Ok(_) => Ok(()),
        Err(error) if error.code == Code::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The Markdown of a document, while nobody has made it their own.
async fn own(workspace: &Workspace, document: FileId, markdown: FileId) -> Result<Option<Info>, Error> {
    match workspace.by_id(markdown).await {
        Ok(info) => Ok(Some(info).filter(|info| info.derived_from == Some(document))),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[async_trait]
impl ActorDriver for Documents {
    fn name(&self) -> &'static str {
        KIND
    }

    async fn deliver(&self, deliveries: &[Delivery], cut: &CancellationToken) -> Verdict {
        let (mut done, mut dealt) = (0, HashSet::new());
        for delivery in deliveries {
            if dealt.insert(&delivery.body) {
                let attempt = if done == 0 { delivery.attempt } else { 1 };
                let driven = AssertUnwindSafe(self.drive(delivery, attempt)).catch_unwind();
                let driven = tokio::select! {
                    biased;
                    // The process ends: the document comes again, in another one.
                    () = cut.cancelled() => return Verdict { done, again: Duration::ZERO },
                    driven = driven => driven,
                };
                let again = AGAIN * 2_u32.pow(attempt.min(LONGEST));
                match driven {
                    Ok(Ok(())) => {}
                    Ok(Err(Left::Error(error))) => {
                        tracing::warn!(group = delivery.group, %error, "a document could not be dealt with");
                        return Verdict { done, again };
                    }
                    Ok(Err(Left::Undescribed(why))) => {
                        tracing::warn!(group = delivery.group, why, "a document waits for the model that describes it");
                        return Verdict { done, again };
                    }
                    Ok(Err(Left::Unavailable(why))) => {
                        tracing::error!(group = delivery.group, why, "the converter of documents cannot be started");
                        return Verdict { done, again };
                    }
                    Err(_) => {
                        tracing::error!(group = delivery.group, "the driver of documents panicked");
                        return Verdict { done, again };
                    }
                }
            }
            done += 1;
        }
        Verdict { done, again: Duration::ZERO }
    }

    /// Nothing of them stays in memory.
    async fn flush_idle(&self) -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    async fn flush_all(&self) {}

    fn warm_actors(&self) -> usize {
        0
    }
}
