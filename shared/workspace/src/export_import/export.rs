//! Writes an archive.

use super::{
    blocks,
    layout::{Count, END, FORMAT, MANIFEST, Manifest, Missing, ROWS_LENGTH, Row, Written, content_name, rows_name},
    relations::RelationWalk,
    rows::{Exported, Step, Walk, is_unreadable, unreadable},
};
use crate::{Result, Workspace, WorkspaceInfo, contents::is_large, damages, error};
use bytes::Bytes;
use domain::{Error, FileId, FilePath, Sha256, Timestamp};
use futures::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use std::collections::HashMap;
use tokio::sync::mpsc;

/// The forms of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A tar archive of version 1, which can be imported.
    Tar,
    /// A stream for `git fast-import`: one commit for each change.
    Git,
}

impl Workspace {
    /// Everything that exists for the party of this handle, as a stream. It goes on when its reader does, and ends when that is gone.
    ///
    /// A tar archive has all that is whole: it names each damaged row and each content without a good copy, and its `end.json` counts them. A
    /// stream for Git, whose commits build on each other, ends at the first of them.
    ///
    /// # Errors
    /// Items are those of [`Workspace`], `CONTENT_MISSING` and `CONTENT_DAMAGED` for a content without a good copy (in a stream for Git, and
    /// for a large content of which a part was sent), and `CONFLICT` when files were moved meanwhile. The first error ends the stream, which lacks
    /// its end then: no import takes it.
    pub fn export(&self, info: WorkspaceInfo, format: Format) -> impl Stream<Item = Result<Bytes>> + Send + use<> {
        let (out, pieces) = mpsc::channel(2);
        let (this, sink) = (self.clone(), Sink(out.clone()));
        tokio::spawn(async move {
            let written = match format {
                Format::Tar => Archive::new(this, sink).write(info).await,
                Format::Git => super::git::export::write(this, sink, &info).await,
            };
            if let Err(error) = written {
                // A reader that is gone needs no error.
                drop(out.send(Err(error)).await);
            }
        });
        stream::unfold(pieces, |mut pieces| async move { pieces.recv().await.map(|piece| (piece, pieces)) })
    }
}

/// The way to the reader.
#[derive(Clone)]
pub(super) struct Sink(mpsc::Sender<Result<Bytes>>);

impl Sink {
    /// # Errors
    /// When the reader is gone.
    pub async fn send(&self, bytes: impl Into<Bytes>) -> Result<()> {
        let sent = self.0.send(Ok(bytes.into())).await;
        sent.map_err(|_| Error::new(domain::Code::Internal, "the reader of an export is gone"))
    }

    /// The content of a version.
    pub async fn content(&self, workspace: &Workspace, digest: Sha256, size: u64) -> Result<()> {
        let mut pieces = pieces_of(workspace, digest, size);
        while let Some(piece) = pieces.next().await {
            self.send(piece?).await?;
        }
        Ok(())
    }
}

/// The content of a version: one piece, or several of a large one.
fn pieces_of(workspace: &Workspace, digest: Sha256, size: u64) -> BoxStream<'static, Result<Bytes>> {
    if is_large(size) {
        return workspace.pieces(digest, size, 0..size).boxed();
    }
    let workspace = workspace.clone();
    stream::once(async move { workspace.0.archive.get(digest, size).await }).boxed()
}

/// A content, and the first version that has it.
struct ContentToCome {
    size: u64,
    file: FileId,
    v: u64,
}

/// An archive on its way.
struct Archive {
    workspace: Workspace,
    sink: Sink,
    at: Timestamp,
    rows: Vec<u8>,
    files: u64,
    count: Count,
    /// The contents that are still to come. One that is in the archive has none.
    contents: HashMap<Sha256, Option<ContentToCome>>,
    /// The files and folders in the archive.
    paths: HashMap<FileId, FilePath>,
}

impl Archive {
    fn new(workspace: Workspace, sink: Sink) -> Self {
        let at = workspace.0.clock.now();
        Self {
            workspace,
            sink,
            at,
            rows: Vec::new(),
            files: 0,
            count: Count::default(),
            contents: HashMap::new(),
            paths: HashMap::new(),
        }
    }

    async fn write(mut self, info: WorkspaceInfo) -> Result<()> {
        let manifest = Manifest {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").into(),
            name: info.name,
            workspace_id: info.workspace_id,
            made_at: self.at,
        };
        self.file(MANIFEST, error::json(&manifest)?.into_bytes()).await?;
        let mut walk = Walk::new(self.workspace.clone());
        while let Some(step) = walk.next().await? {
            let file = match step {
                Step::Folder(id, row) => {
                    if let Row::Folder { path, .. } = &row {
                        self.paths.insert(id, path.clone());
                    }
                    self.count.folders += 1;
                    self.row(&row).await?;
                    continue;
                }
                Step::File(file) => file,
                Step::Unreadable(path) => {
                    self.missing(Missing { path, v: None, sha256: None }).await?;
                    continue;
                }
            };
            self.count.files += 1;
            self.paths.insert(file.entry.file_id, file.path.clone());
            self.row(&file.row()).await?;
            self.versions(&file).await?;
            if let (Some(content), Some(digest)) = (&file.projection, file.entry.sha256) {
                self.flush().await?;
                if let Some(ContentToCome { size, .. }) = self.contents.insert(digest, None).flatten() {
                    self.count.content(size);
                    self.file(&content_name(digest), content.clone()).await?;
                }
            }
        }
        let workspace = self.workspace.clone();
        let mut related = RelationWalk::of(&workspace);
        while let Some(rows) = related.next(&self.paths).await? {
            for row in rows {
                if let Row::Missing(missing) = row {
                    self.missing(missing).await?;
                    continue;
                }
                self.count.relations += 1;
                self.row(&row).await?;
            }
        }
        self.flush().await?;
        self.count.left_out = walk.left_out;
        let contents = std::mem::take(&mut self.contents);
        for (digest, of) in contents.into_iter().filter_map(|(digest, of)| Some((digest, of?))) {
            self.content(digest, of).await?;
        }
        self.flush().await?;
        if self.count.missing > 0 {
            tracing::error!(workspace = %self.workspace.0.id, missing = self.count.missing, "an export lacks damaged data");
        }
        self.file(END, error::json(&self.count)?.into_bytes()).await?;
        self.sink.send(blocks::end()).await
    }

    /// The versions of a file, in their order. The entry of the file tells the newest one where its own row does not.
    async fn versions(&mut self, file: &Exported) -> Result<()> {
        let (mut read, mut last) = (0, 0);
        loop {
            let versions = file.readable_versions(&self.workspace, read).await?;
            let Some((newest, _)) = versions.last() else { break };
            read = *newest;
            for version in versions.into_iter().filter_map(|(_, version)| version) {
                self.version(file, &mut last, version).await?;
            }
        }
        if last == file.entry.v {
            return Ok(());
        }
        // The walk gives no file without a content.
        let newest = file.newest().ok_or_else(|| unreadable(&file.path, None))?;
        self.version(file, &mut last, newest).await
    }

    /// A version; `last` is the one before it in the archive.
    async fn version(&mut self, file: &Exported, last: &mut u64, version: Written) -> Result<()> {
        if version.v > *last + 1 {
            self.missing(Missing { path: file.path.clone(), v: Some(version.v - 1), sha256: None }).await?;
        }
        *last = version.v;
        self.count.versions += 1;
        let of = ContentToCome { size: version.size, file: file.entry.file_id, v: version.v };
        self.contents.entry(version.sha256).or_insert(Some(of));
        self.row(&Row::Version(version)).await
    }

    /// A content, or a row that says that it is missing. Only a large one can turn out to be damaged when a part of it was sent.
    async fn content(&mut self, digest: Sha256, of: ContentToCome) -> Result<()> {
        let ContentToCome { size, file, v } = of;
        let mut pieces = pieces_of(&self.workspace, digest, size);
        let mut next = pieces.next().await;
        if let Some(Err(error)) = &next
            && is_unreadable(error)
            && let Some(path) = self.paths.get(&file).cloned()
        {
            return self.missing(Missing { path, v: Some(v), sha256: Some(digest) }).await;
        }
        self.count.content(size);
        self.sink.send(blocks::head(&content_name(digest), size, self.at)?).await?;
        while let Some(piece) = next {
            let piece = piece.map_err(|error| damages::at(error, self.paths.get(&file), file, v))?;
            self.sink.send(piece).await?;
            next = pieces.next().await;
        }
        self.sink.send(blocks::padding(size)).await
    }

    async fn missing(&mut self, missing: Missing) -> Result<()> {
        self.count.missing += 1;
        self.row(&Row::Missing(missing)).await
    }

    async fn file(&self, name: &str, content: impl Into<Bytes>) -> Result<()> {
        let content = content.into();
        let size = content.len() as u64;
        self.sink.send(blocks::head(name, size, self.at)?).await?;
        self.sink.send(content).await?;
        self.sink.send(blocks::padding(size)).await
    }

    async fn row(&mut self, row: &Row) -> Result<()> {
        self.rows.extend_from_slice(error::json(row)?.as_bytes());
        self.rows.push(b'\n');
        if self.rows.len() >= ROWS_LENGTH { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.files += 1;
        let rows = std::mem::take(&mut self.rows);
        self.file(&rows_name(self.files), rows).await
    }
}
