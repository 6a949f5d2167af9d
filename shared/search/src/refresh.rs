//! Brings an index up to date before it is asked: by the records of the changes since the last time, or from the listing of all files.
//!
//! A record only says which file to look at: its present state is read from the workspace. So records may come twice and in any order.
//! Contents follow in small batches, the newest first, as far as the bounds of one search allow. The next search goes on there.

use crate::{
    HitKind,
    chunk::{self, Form, MAX_TEXT},
    is_gone,
};
use domain::{Code, Error, FileId, FileKind, FileOp, FilePath, Timestamp, WorkspaceEvent};
use futures::{StreamExt, stream};
use ports::{Clock, IndexEdit, IndexedFile, SearchIndex, ShownFile};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};
use tokio::time::Instant;
use uuid::Uuid;
use workspace::{CHANGES_KEPT, Content, Decoded, Info, LATE, Workspace, is_damage_of_index};

/// The form of [`Progress`] and of the words of an index. With another one, all files are listed and read again; a passage that has not changed keeps
/// its vector.
const FORMAT: u32 = 3;
/// How long after rows were left out that could not be read all files are listed again: they may have been repaired.
const LISTED_AGAIN: Duration = Duration::from_secs(3600);
/// How long before records expire an index is made anew instead of brought up to date.
const MARGIN: Duration = Duration::from_secs(24 * 3600);
/// How many files are looked at or read at once.
const AT_ONCE: usize = 16;
/// How many contents one edit of the index has.
const BATCH: usize = 64;
/// How many bytes of contents one edit of the index has, about. In memory their passages take several times as much.
const BATCH_BYTES: u64 = 2 * MAX_TEXT;
/// The most chats that are compared with the index.
const MOST_CHATS: usize = 20_000;
/// The folder of the chats, whose logs grow without records of changes.
const CHATS: &str = "/chats";

/// The bounds of the work that one search does for the index.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The time.
    pub time: Duration,
    /// The bytes of contents.
    pub bytes: u64,
    /// The files of a workspace.
    pub files: usize,
    /// The time that a search by meaning waits for vectors.
    pub embedding: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(5),
            bytes: 128 * 1024 * 1024,
            files: 200_000,
            embedding: Duration::from_secs(2),
        }
    }
}

/// Why an index was not brought up to date.
#[derive(Debug)]
pub(crate) enum RefreshFault {
    Index(ports::Error),
    Files(Error),
}

impl From<ports::Error> for RefreshFault {
    fn from(error: ports::Error) -> Self {
        Self::Index(error)
    }
}
impl From<Error> for RefreshFault {
    fn from(error: Error) -> Self {
        Self::Files(error)
    }
}

type Result<T> = std::result::Result<T, RefreshFault>;

/// An error of the index as clients read it.
pub(crate) fn of_index(error: ports::Error) -> Error {
    tracing::warn!(error = %error.with_causes(), "the index of a workspace failed");
    if error.is_full() {
        return Error::storage_full();
    }
    Error::new(Code::UpstreamUnavailable, "the index of the workspace cannot be used now")
        .hint("try again, or use grep, which needs no index")
}

/// How far an index is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    /// Whether it knows every committed change.
    pub current: bool,
    /// Whether it has every content, too.
    pub complete: bool,
    /// The time up to which it knows the changes, in milliseconds.
    pub age: i64,
}

/// The note in the index: the changes that it knows.
#[derive(Debug, Serialize, Deserialize)]
struct Progress {
    format: u32,
    /// All records from before are known, but for late ones.
    read_from: Timestamp,
    /// The known records that a next look finds again.
    recent: Vec<Uuid>,
    /// Whether the listing had room for all files.
    whole: bool,
    /// When a row was left out that could not be read; none when there was no such row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left_out_at: Option<Timestamp>,
}

impl Progress {
    /// Whether the index knows of all files.
    fn is_of_all(&self) -> bool {
        self.whole && self.left_out_at.is_none()
    }
}

pub(crate) struct Refresh<'a> {
    pub index: &'a dyn SearchIndex,
    /// All files.
    pub files: &'a Workspace,
    pub clock: &'a dyn Clock,
    pub bounds: Bounds,
    pub until: Instant,
}

impl Refresh<'_> {
    /// Brings the index up to date for a search at or below `path`.
    pub async fn run(&self, path: &FilePath) -> Result<State> {
        let progress = self.index.progress().await?;
        let progress = progress.and_then(|note| serde_json::from_str::<Progress>(&note).ok());
        let oldest = self.clock.now() - (CHANGES_KEPT - MARGIN);
        let started = self.clock.now();
        let (current, mut progress, age) = match progress {
            // With progress ahead of the clock, the clock was set back: records since then have times that a look from there on passes over.
            Some(mut progress)
                if progress.format == FORMAT
                    && progress.read_from >= oldest
                    && progress.read_from <= started + LATE
                    && progress.left_out_at.is_none_or(|at| started.is_within(LISTED_AGAIN, at)) =>
            {
                let known = progress.read_from;
                let current = self.follow(&mut progress).await?;
                (current, progress, if current { started } else { known })
            }
            _ => (true, self.list().await?, started),
        };
        let chats = self.chats(path).await?;
        let (contents, has_left_out) = self.contents().await?;
        if has_left_out && progress.left_out_at.is_none() {
            progress.left_out_at = Some(started);
            self.apply(Vec::new(), &progress).await?;
        }
        let complete = current && progress.is_of_all() && chats && contents;
        Ok(State { current, complete, age: age.as_millis() })
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Makes the index know all files there are, as far as it has room for them and their rows can be read.
    async fn list(&self) -> Result<Progress> {
        let started = self.clock.now();
        let tree = self.files.list_readable(&FilePath::root(), self.bounds.files).await?;
        let (listed, whole, left_out_at) = (tree.entries, tree.is_whole, (tree.left_out > 0).then_some(started));
        let mut edits: Vec<IndexEdit> = listed.iter().filter_map(edit).collect();
        let there: BTreeSet<FileId> = listed.iter().map(|info| info.file_id).collect();
        let known = self.index.below(&FilePath::root()).await?;
        edits.extend(
            known.iter().filter(|file| !there.contains(&file.file_id)).map(|file| IndexEdit::Gone(file.file_id)),
        );
        let progress = Progress { format: FORMAT, read_from: started, recent: Vec::new(), whole, left_out_at };
        self.apply(edits, &progress).await?;
        Ok(progress)
    }

    async fn apply(&self, edits: Vec<IndexEdit>, progress: &Progress) -> Result<()> {
        let note = serde_json::to_string(progress).map_err(|error| ports::Error::Invalid(error.to_string()))?;
        Ok(self.index.apply(edits, Some(note)).await?)
    }

    /// Reads the records since the last time, page by page; whether that were all.
    async fn follow(&self, progress: &mut Progress) -> Result<bool> {
        let started = self.clock.now();
        let from = progress.read_from - LATE;
        let mut cursor = None;
        loop {
            let page = self.files.changes_from(from, cursor).await?;
            let has_records = !page.changes.is_empty();
            let known: BTreeSet<Uuid> = progress.recent.iter().copied().collect();
            let new: Vec<(Uuid, WorkspaceEvent)> =
                page.changes.into_iter().filter(|(id, _)| !known.contains(id)).collect();
            let last = new.last().map(|(id, _)| Timestamp::of_id(*id));
            progress.recent.extend(new.iter().map(|(id, _)| *id));
            progress.read_from = match page.next {
                None => started.max(progress.read_from),
                Some(_) => {
                    last.unwrap_or(progress.read_from).clamp(progress.read_from, started.max(progress.read_from))
                }
            };
            let settled = progress.read_from - LATE;
            progress.recent.retain(|id| *id >= settled.first_id());
            let (edits, has_left_out) = self.edits(&new).await?;
            if has_left_out {
                progress.left_out_at = progress.left_out_at.or(Some(started));
            }
            // Else each search would read the records of a burst again, as long as nothing else is written.
            if has_records || page.next.is_some() {
                self.apply(edits, progress).await?;
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(true);
            }
            if self.is_late() {
                return Ok(false);
            }
        }
    }

    /// The edits that changes lead to, by the present state of the files; and whether rows were left out that cannot be read.
    async fn edits(&self, changes: &[(Uuid, WorkspaceEvent)]) -> Result<(Vec<IndexEdit>, bool)> {
        let (mut files, mut folders) = (BTreeSet::new(), HashMap::<FileId, BTreeSet<&FilePath>>::new());
        for (_, change) in changes {
            let WorkspaceEvent::FileUpdated { path, from, file_id, kind, op, .. } = change else { continue };
            match (kind, op) {
                (FileKind::Folder, FileOp::Made) | (_, FileOp::Marked) => {}
                (FileKind::Folder, _) => folders.entry(*file_id).or_default().extend(std::iter::once(path).chain(from)),
                _ => drop(files.insert(*file_id)),
            }
        }
        let (mut edits, mut has_left_out) = (Vec::new(), false);
        for (folder, paths) in folders {
            for path in paths {
                files.extend(self.index.below(path).await?.iter().map(|file| file.file_id));
            }
            let inside = match self.files.by_id(folder).await {
                Ok(info) => self.files.list_readable(&info.path, self.bounds.files).await,
                Err(error) => Err(error),
            };
            match inside {
                Ok(tree) => {
                    for info in &tree.entries {
                        files.remove(&info.file_id);
                    }
                    edits.extend(tree.entries.iter().filter_map(edit));
                    has_left_out |= tree.left_out > 0;
                }
                Err(error) if is_gone(&error) => {}
                Err(error) if is_damage_of_index(&error) => has_left_out = true,
                Err(error) => return Err(error.into()),
            }
        }
        let look = |file: FileId| async move { (file, self.files.by_id(file).await) };
        let mut looked = stream::iter(files).map(look).buffer_unordered(AT_ONCE);
        while let Some((file, found)) = looked.next().await {
            match found {
                Ok(info) => edits.extend(edit(&info)),
                Err(error) if is_gone(&error) => edits.push(IndexEdit::Gone(file)),
                Err(error) if is_damage_of_index(&error) => {
                    edits.push(IndexEdit::Gone(file));
                    has_left_out = true;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok((edits, has_left_out))
    }

    /// Notes the chats that went on since the last time: their logs grow without records of changes. Whether all of them were looked at.
    async fn chats(&self, path: &FilePath) -> Result<bool> {
        let chats = FilePath::parse(CHATS).map_err(Error::from)?;
        if !path.is_within(&chats) && !chats.is_within(path) {
            return Ok(true);
        }
        match self.files.hydrate(&chats).await {
            Ok(_) => {}
            Err(error) if error.code == Code::PayloadTooLarge || is_damage_of_index(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let listed = match self.files.list_readable(&chats, MOST_CHATS).await {
            Err(error) if is_damage_of_index(&error) => return Ok(false),
            listed => listed?,
        };
        let is_of_all = listed.is_whole && listed.left_out == 0;
        let known = self.index.below(&chats).await?;
        let known: HashMap<FileId, &Option<String>> = known.iter().map(|file| (file.file_id, &file.seal)).collect();
        let grown = listed.entries.iter().filter(|info| info.kind == FileKind::Projection);
        let grown = grown.filter(|info| known.get(&info.file_id) != Some(&&seal(info)));
        let edits: Vec<IndexEdit> = grown.filter_map(edit).collect();
        if !edits.is_empty() {
            self.index.apply(edits, None).await?;
        }
        Ok(is_of_all)
    }

    /// Reads contents that wait, as far as the bounds allow; whether none waits any longer, and whether a file was left out whose row cannot be read.
    async fn contents(&self) -> Result<(bool, bool)> {
        let (mut bytes, mut has_left_out) = (0_u64, false);
        loop {
            let waiting = self.index.waiting(BATCH).await?;
            if waiting.is_empty() {
                return Ok((true, has_left_out));
            }
            if self.is_late() || bytes >= self.bounds.bytes {
                return Ok((false, has_left_out));
            }
            let waiting = that_fit(waiting);
            bytes += waiting.iter().map(|file| file.size).sum::<u64>();
            let read = |file: IndexedFile| async move { (file.file_id, self.content(file).await) };
            let mut read = stream::iter(waiting).map(read).buffer_unordered(AT_ONCE);
            let (mut edits, mut failed) = (Vec::new(), None);
            while let Some((file, content)) = read.next().await {
                match content {
                    Ok(content) => edits.extend(content),
                    Err(error) if is_damage_of_index(&error) => {
                        edits.push(IndexEdit::Gone(file));
                        has_left_out = true;
                    }
                    Err(error) => failed = Some(error),
                }
            }
            self.index.apply(edits, None).await?;
            if let Some(error) = failed {
                tracing::warn!(workspace = %self.files.id(), %error, "the index stays behind: a content cannot be read now");
                return Ok((false, has_left_out));
            }
        }
    }

    async fn content(&self, file: IndexedFile) -> std::result::Result<Vec<IndexEdit>, Error> {
        let IndexedFile { file_id, path, seal: known, .. } = file;
        let content = match self.files.read(&path, None).await {
            Ok(content) if content.info.file_id == file_id => content,
            // It was moved or removed meanwhile: the next search reads the record of that.
            Ok(_) => return Ok(vec![IndexEdit::Gone(file_id)]),
            Err(error) if is_gone(&error) => return Ok(vec![IndexEdit::Gone(file_id)]),
            Err(error) => match error.code {
                Code::ContentDamaged | Code::ContentMissing | Code::PayloadTooLarge | Code::Quarantined => {
                    tracing::debug!(%path, %error, "a file is found by its name alone");
                    let seal = known.unwrap_or_default();
                    return Ok(vec![IndexEdit::Content { file_id, seal, passages: Vec::new() }]);
                }
                _ => return Err(error),
            },
        };
        // It may be a later version than the one that waits.
        let Some(seal) = seal(&content.info) else { return Ok(edit(&content.info).into_iter().collect()) };
        let known = edit(&content.info);
        let passages = workspace::blocking::run(move || cut(&content)).await;
        let passages = passages.map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        Ok(known.into_iter().chain([IndexEdit::Content { file_id, seal, passages }]).collect())
    }
}

/// The first of these files whose contents are read at once; at least one.
fn that_fit(mut waiting: Vec<IndexedFile>) -> Vec<IndexedFile> {
    let mut bytes = 0_u64;
    let fit = waiting.iter().take_while(|file| {
        bytes = bytes.saturating_add(file.size);
        bytes <= BATCH_BYTES
    });
    let fit = fit.count().max(1);
    waiting.truncate(fit);
    waiting
}

fn cut(content: &Content) -> Vec<ports::Passage> {
    let form = Form::of(&content.info.name);
    Decoded::of(&content.bytes).map_or_else(Vec::new, |decoded| chunk::passages(&decoded.text, form))
}

/// The name of the content to index, in the form of its words; none for a file that is found by its name alone: a folder, a long one, and a document that
/// has Markdown.
fn seal(info: &Info) -> Option<String> {
    let has_markdown = info.conversion.as_ref().is_some_and(|conversion| conversion.markdown.is_some());
    match info.kind {
        _ if info.size > MAX_TEXT => None,
        FileKind::Folder => None,
        FileKind::Projection => Some(format!("{FORMAT}:size:{}", info.size)),
        FileKind::File if has_markdown => None,
        FileKind::File => info.sha256.map(|digest| format!("{FORMAT}:{digest}")),
    }
}

fn edit(info: &Info) -> Option<IndexEdit> {
    if info.kind == FileKind::Folder {
        return None;
    }
    let file = IndexedFile {
        file_id: info.file_id,
        path: info.path.clone(),
        v: info.v,
        author: info.author.clone(),
        updated_at: info.updated_at,
        size: info.size,
        derived_from: info.document(),
        seal: seal(info),
    };
    Some(IndexEdit::File(file, chunk::name(info.path.as_str()).words))
}

/// The kind of a file as it is shown.
pub(crate) fn kind(file: &ShownFile<'_>) -> HitKind {
    let is_chat = file.v == 0 && file.path.as_str().starts_with("/chats/");
    match (is_chat, file.is_document) {
        (true, _) => HitKind::Chat,
        (_, true) => HitKind::Document,
        _ => HitKind::File,
    }
}
