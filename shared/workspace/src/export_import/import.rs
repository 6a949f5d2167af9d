//! Reads an archive into a new workspace.
//!
//! Nothing of an archive is a path on a disk: names of its entries are compared with the layout. A note in the table says that an import is under way,
//! until the last commit makes the workspace and takes the note away. An import that fails removes all that it wrote; of one that dies, `fsck --repair` does.

use super::{
    blocks::{Head, Reader, refused},
    git,
    layout::{BARE, CONTENTS, Count, END, FORMAT, MANIFEST, MOST_ROWS, Manifest, ROWS, Row, content_name, rows_name},
    workspace_builder::{Imported, WorkspaceBuilder},
};
use crate::{
    Result, Workspaces,
    commit::whole,
    contents::{self, is_large},
    error,
    workspaces::valid_name,
};
use bytes::Bytes;
use domain::{Code, Error, FilePath, Principal, Sha256, WorkspaceId, text::counted};
use futures::Stream;
use ports::{Expect, Write};

/// The longest manifest or count, in bytes.
const MOST_TEXT: u64 = 64 * 1024;

/// The forms of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// An archive as [`Workspace::export`](crate::Workspace::export) writes it.
    #[default]
    Archive,
    /// A stream of `git fast-export`.
    Git {
        /// The folder that gets the files of the repository.
        folder: FilePath,
    },
}

impl Workspaces {
    /// Makes a new workspace, with files, their versions, authors and times; `name` goes before the archive's. Files get new ids. An archive that names
    /// missing data is imported without it, and [`Imported::left_out`] names it, too.
    /// The same id by the same person again, once it is there, is the same workspace.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, with the `entry`, for a stream that has not the form of its source, ends early, or has a path or an author that cannot
    /// be, and for a policy that the archive lacks; `UNPROCESSABLE` for policies with a fault; `PAYLOAD_TOO_LARGE` for over a million files;
    /// `CONFLICT` when the id is taken or another import of it is under way; those of the stream, and those of [`Workspaces`]. Nothing is left then.
    pub async fn import(
        &self,
        id: WorkspaceId,
        name: Option<&str>,
        by: &Principal,
        source: Source,
        stream: impl Stream<Item = Result<Bytes>> + Send + Unpin + 'static,
    ) -> Result<Imported> {
        self.import_with(id, name, by, source, stream, Vec::new()).await
    }

    /// The same, with further writes in the commit that makes the workspace; at most twenty. They are not made where it is there already.
    ///
    /// # Errors
    /// Those of [`Workspaces::import`]; `CONFLICT` when the precondition of one of these writes does not hold, too.
    pub async fn import_with(
        &self,
        id: WorkspaceId,
        name: Option<&str>,
        by: &Principal,
        source: Source,
        stream: impl Stream<Item = Result<Bytes>> + Send + Unpin + 'static,
        beside: Vec<Write>,
    ) -> Result<Imported> {
        let name = name.map(valid_name).transpose()?;
        let workspace = crate::handle::Shared::handle(&self.0, id);
        let by = by.clone();
        whole(async move {
            let _tree = workspace.lock_tree().await;
            if let Some((found, _)) = workspace.record().await? {
                let same = found.owner == by.user();
                let workspace = found.info();
                // It was imported by the same request before.
                return if same { Ok(Imported { workspace, files: 0, versions: 0, left_out: Vec::new() }) } else { Err(taken()) };
            }
            workspace.remove_remains().await?;
            let note = Write::put(workspace.0.keys.deletion(), "{}", Expect::Absent);
            let nothing_remains = Write::check(workspace.0.keys.tombstone(), Expect::Absent);
            match workspace.0.table.commit(vec![note, nothing_remains]).await {
                Ok(()) => {}
                Err(ports::Error::Conflict { .. }) => return Err(taken()),
                Err(error) => return Err(error::port(error)),
            }
            let mut builder = WorkspaceBuilder::new(&workspace);
            builder.beside = beside;
            let imported = match source {
                Source::Archive => Import { builder, reader: Reader::new(stream) }.run(name, &by).await,
                Source::Git { folder } => git::import::run(builder, stream, name, &folder, &by).await,
            };
            match imported {
                Ok(imported) => Ok(imported),
                Err(error) => {
                    if let Err(left) = workspace.remove_rest().await {
                        tracing::error!(workspace = %workspace.0.id, error = %left, "a part of a failed import is left: fsck --repair removes it");
                    }
                    Err(error)
                }
            }
        })
        .await
    }
}

fn taken() -> Error {
    Error::new(Code::Conflict, "this id is taken, or another import with it is under way")
        .hint("use another Idempotency-Key")
}

/// An archive on its way into a workspace.
struct Import<'a, S> {
    builder: WorkspaceBuilder<'a>,
    reader: Reader<S>,
}

impl<S: Stream<Item = Result<Bytes>> + Unpin + Send> Import<'_, S> {
    async fn run(mut self, name: Option<String>, by: &Principal) -> Result<Imported> {
        let manifest = self.manifest().await?;
        let name = match name {
            Some(name) => name,
            None => {
                // A workspace that is there may have characters in its name that new names may not have, and its archive can be imported. None has control
                // characters.
                let is_damaged = manifest.name.chars().any(char::is_control);
                let name = if is_damaged { manifest.name.clone() } else { domain::nearest_name(&manifest.name) };
                valid_name(&name).map_err(|error| refused(MANIFEST, error.message))?
            }
        };
        self.builder.derives = manifest.format == BARE;
        self.builder.begin().await?;
        let (mut last, mut files) = (MANIFEST.to_owned(), 0);
        let told: Count = loop {
            let Some(head) = self.reader.next(&last).await? else {
                return Err(refused(&last, "the archive ends after it, without end.json"));
            };
            if head.name == END {
                self.builder.finish_file().await?;
                break self.text(&head).await?;
            }
            if head.name == rows_name(files + 1) {
                files += 1;
                self.rows(&head).await?;
            } else if head.name.starts_with(ROWS) {
                return Err(refused(&head.name, format!("{} is next", rows_name(files + 1))));
            } else if head.name.starts_with(CONTENTS) {
                self.builder.finish_file().await?;
                self.content(&head).await?;
            } else {
                return Err(refused(&head.name, "an archive of a workspace has no such entry"));
            }
            last = head.name;
        };
        if let Some(more) = self.reader.next(END).await? {
            return Err(refused(&more.name, "it comes after end.json"));
        }
        if self.builder.missing > 0 {
            let missing = self.builder.contents.iter().find(|(_, needed)| !needed.is_there).map(|(digest, _)| *digest);
            let name = missing.map(content_name).unwrap_or_default();
            return Err(refused(&name, format!("it is missing, and {} others", self.builder.missing - 1)));
        }
        if (Count { left_out: told.left_out, ..self.builder.count }) != told {
            return Err(refused(END, "it does not count what is in the archive"));
        }
        self.builder.complete(name, by).await
    }

    async fn manifest(&mut self) -> Result<Manifest> {
        let first = self.reader.next("the beginning").await?;
        let Some(head) = first.filter(|head| head.name == MANIFEST) else {
            return Err(refused("the first entry", format!("it is not {MANIFEST}: this is no archive of a workspace")));
        };
        let manifest: serde_json::Value = self.text(&head).await?;
        let format = manifest.get("format").and_then(serde_json::Value::as_u64);
        if !format.is_some_and(|format| [BARE, FORMAT].contains(&format)) {
            let program = manifest.get("program").and_then(serde_json::Value::as_str).unwrap_or("another version");
            return Err(refused(MANIFEST, format!("{program} wrote a format that this version does not know")));
        }
        serde_json::from_value(manifest).map_err(|error| refused(MANIFEST, error))
    }

    async fn text<T: serde::de::DeserializeOwned>(&mut self, head: &Head) -> Result<T> {
        if head.size > MOST_TEXT {
            return Err(refused(&head.name, "it is too long"));
        }
        let content = self.reader.content(head).await?;
        serde_json::from_slice(&content).map_err(|error| refused(&head.name, error))
    }

    async fn rows(&mut self, head: &Head) -> Result<()> {
        if head.size > MOST_ROWS {
            return Err(refused(&head.name, "it is too long"));
        }
        let content = self.reader.content(head).await?;
        for (number, line) in content.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
            let place = format!("{} line {}", head.name, number + 1);
            let row: Row = serde_json::from_slice(line).map_err(|error| refused(&place, error))?;
            self.builder.row(&place, row).await?;
        }
        Ok(())
    }

    async fn content(&mut self, head: &Head) -> Result<()> {
        let digest = head.name.rsplit('/').next().and_then(|name| name.parse::<Sha256>().ok());
        // One name for one content: no other spelling of the digest, and no other folder.
        let Some(digest) = digest.filter(|digest| content_name(*digest) == head.name) else {
            return Err(refused(&head.name, "its name is not that of a content"));
        };
        let needed = self.builder.contents.get_mut(&digest).filter(|needed| !needed.is_there);
        let Some(needed) = needed else {
            return Err(refused(&head.name, "no version needs it, or it came before"));
        };
        if needed.size != head.size {
            return Err(refused(
                &head.name,
                format!("it has {}, and its version says {}", counted(head.size, "byte"), needed.size),
            ));
        }
        needed.is_there = true;
        self.builder.missing -= 1;
        self.builder.count.content(head.size);
        if is_large(head.size) {
            return self.large(head, digest).await;
        }
        let content = self.reader.content(head).await?;
        if contents::digest(&content).await? != digest {
            return Err(refused(&head.name, "its content has another digest"));
        }
        match self.builder.workspace.0.archive.put(digest, &content).await? {
            Some(write) => self.builder.put(write).await,
            None => Ok(()),
        }
    }

    async fn large(&mut self, head: &Head, digest: Sha256) -> Result<()> {
        let space = self.builder.workspace.0.id.to_string();
        let incoming = self.builder.workspace.0.archive.blobs.incoming(&space, digest, head.size).await;
        let incoming = incoming.map_err(error::port)?;
        let Some(mut incoming) = incoming else {
            let message = format!("{}: contents over 32 MiB do not come through this server", head.name);
            return Err(Error::new(Code::PayloadTooLarge, message).hint("import the archive into a hub"));
        };
        let mut left = head.size;
        while left > 0 {
            let piece = self.reader.some(left).await?;
            if piece.is_empty() {
                return Err(refused(&head.name, "the archive ends in the middle of it"));
            }
            left -= piece.len() as u64;
            incoming.write(piece).await.map_err(error::port)?;
        }
        match incoming.finish().await {
            Ok(()) => self.reader.skip_padding(head).await,
            Err(ports::Error::Invalid(_)) => Err(refused(&head.name, "its content has another digest")),
            Err(error) => Err(error::port(error)),
        }
    }
}
