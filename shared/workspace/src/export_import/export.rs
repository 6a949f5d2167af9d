//! Writes an archive.

use super::{
    blocks,
    layout::{Count, END, FORMAT, MANIFEST, Manifest, ROWS_LENGTH, Row, content_name, rows_name},
    relations::RelationWalk,
    rows::{Step, Walk},
};
use crate::{Result, Workspace, WorkspaceInfo, contents::is_large, damages, error};
use bytes::Bytes;
use domain::{Error, FileId, FilePath, Sha256, Timestamp};
use futures::{Stream, StreamExt as _, stream};
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
    /// # Errors
    /// Items are those of [`Workspace`], `CONTENT_MISSING` and `CONTENT_DAMAGED` for a content without a good copy,
    /// and `CONFLICT` when files were moved meanwhile. The first error ends the stream, which lacks its end then: no import takes it.
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
        if !is_large(size) {
            return self.send(workspace.0.archive.get(digest, size).await?).await;
        }
        let mut pieces = Box::pin(workspace.pieces(digest, size, 0..size));
        while let Some(piece) = pieces.next().await {
            self.send(piece?).await?;
        }
        Ok(())
    }
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
            };
            self.count.files += 1;
            self.paths.insert(file.entry.file_id, file.path.clone());
            self.row(&file.row()).await?;
            let mut last = 0;
            loop {
                let versions = file.versions(&self.workspace, last).await?;
                let Some(newest) = versions.last() else { break };
                last = newest.v;
                for version in versions {
                    self.count.versions += 1;
                    let of = ContentToCome { size: version.size, file: file.entry.file_id, v: version.v };
                    self.contents.entry(version.sha256).or_insert(Some(of));
                    self.row(&Row::Version(version)).await?;
                }
            }
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
                self.count.relations += 1;
                self.row(&row).await?;
            }
        }
        self.flush().await?;
        self.count.left_out = walk.left_out;
        let contents = std::mem::take(&mut self.contents);
        for (digest, of) in contents.into_iter().filter_map(|(digest, of)| Some((digest, of?))) {
            let ContentToCome { size, file, v } = of;
            self.count.content(size);
            self.sink.send(blocks::head(&content_name(digest), size, self.at)?).await?;
            let sent = self.sink.content(&self.workspace, digest, size).await;
            sent.map_err(|error| damages::at(error, self.paths.get(&file), file, v))?;
            self.sink.send(blocks::padding(size)).await?;
        }
        self.file(END, error::json(&self.count)?.into_bytes()).await?;
        self.sink.send(blocks::end()).await
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
