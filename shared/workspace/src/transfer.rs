//! Contents that a client sends to or gets from the archive by an address, past this process, or that come into it as a stream. A long content may
//! not fit through the process: a Lambda takes and gives 6 MB, and no process holds 5 GB in memory.

use crate::{FileContent, FileKind, Result, Workspace, contents::is_blob, error};
use access::Action;
use bytes::Bytes;
use domain::{Code, Error, FilePath, Sha256};
use ports::{Incoming, LARGEST, Part, Presigned, Progress, ResumableUpload, Transfer};
use std::time::Duration;

/// The route by which a content comes or goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferRoute {
    /// It is short: with the request or the answer.
    Inside,
    /// By a request to the store itself.
    Past(Presigned),
    /// As a stream, by [`Workspace::receive`] and [`Workspace::pieces`].
    Through,
}

impl Workspace {
    /// How to read the content at a path as it is now, with its digest and length.
    ///
    /// # Errors
    /// `NOT_FOUND`, with similar names, when there is no such path; `UNPROCESSABLE` for a folder; `INVALID_ARGUMENT` when the store signs for
    /// no such time; else those of [`Workspace`].
    pub async fn address_of(
        &self,
        path: &FilePath,
        valid_for: Duration,
    ) -> Result<(TransferRoute, Option<(Sha256, u64)>)> {
        let info = self.stat(path).await?;
        self.demand(Action::Read, path)?;
        match (info.kind, info.sha256) {
            (FileKind::File, Some(digest)) => {
                let way = self.way(digest, info.size, Transfer::Read, valid_for).await?;
                Ok((way, Some((digest, info.size))))
            }
            (FileKind::Projection, _) => Ok((TransferRoute::Inside, None)),
            _ => Err(error::wrong_kind(path, "a folder", "list it instead")),
        }
    }

    /// How the content with this digest and length is brought into the archive, which takes nothing else for it.
    /// [`Workspace::uploaded`] has it afterwards.
    ///
    /// # Errors
    /// `PAYLOAD_TOO_LARGE` over 5 GB; `INVALID_ARGUMENT` when the store signs for no such time; else those of [`Workspace`].
    pub async fn address_for(&self, digest: Sha256, length: u64, valid_for: Duration) -> Result<TransferRoute> {
        if length > LARGEST {
            let message = format!("the upload has {length} bytes; the limit is {LARGEST}");
            return Err(Error::new(Code::PayloadTooLarge, message).hint("split it into several files"));
        }
        self.way(digest, length, Transfer::Write { length }, valid_for).await
    }

    /// How far an upload in parts has come; one that is new begins. [`Workspace::uploaded`] has the content when all parts are there. None if the store takes
    /// this content whole: it is short, or the store knows no parts.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the parts that came are not the content, and for too many unfinished uploads; `CONFLICT` when another request completed it at
    /// this moment; `STORAGE_FULL`; `NOT_FOUND` when the workspace was deleted meanwhile; else those of [`Workspace`].
    pub async fn resume(&self, upload: &ResumableUpload, valid_for: Duration) -> Result<Option<Progress>> {
        if !is_blob(upload.length()) {
            return Ok(None);
        }
        let space = self.0.id.to_string();
        let progress = self.0.archive.blobs.resume(&space, upload, valid_for).await.map_err(error::port)?;
        match &progress {
            Some(Progress::Whole) => self.brought(upload.digest()).await?,
            Some(Progress::Missing { .. }) | None => {}
        }
        Ok(progress)
    }

    /// Begins to take a part of an upload as a stream.
    ///
    /// # Errors
    /// `CONFLICT` when the upload did not begin, or ended since; `NOT_FOUND` when the store takes parts by itself.
    pub async fn receive_part(&self, digest: Sha256, part: Part) -> Result<IncomingPart> {
        let incoming = self.0.archive.blobs.incoming_part(&self.0.id.to_string(), digest, part).await;
        incoming.map_err(error::port)?.map(IncomingPart).ok_or_else(elsewhere)
    }

    /// That the workspace was not deleted since contents came into its archive. After a deletion they go, too.
    ///
    /// # Errors
    /// `NOT_FOUND` when it was; else those of [`Workspace`].
    pub(crate) async fn demand_existence(&self) -> Result<()> {
        let Err(gone) = self.existing().await else { return Ok(()) };
        if gone.code == Code::NotFound {
            self.0.archive.blobs.delete_space(&self.0.id.to_string()).await.map_err(error::port)?;
        }
        Err(gone)
    }

    /// A content came.
    async fn brought(&self, digest: Sha256) -> Result<()> {
        self.demand_existence().await?;
        self.0.archive.is_good_again(digest).await
    }

    /// A content of this workspace that is in the archive, from any upload. A large one is not read.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not.
    pub async fn uploaded(&self, digest: Sha256) -> Result<FileContent> {
        self.0.archive.find(digest).await?.ok_or_else(|| absent(digest))
    }

    /// Begins to take a content of `length` bytes as a stream.
    ///
    /// # Errors
    /// `STORAGE_FULL` when there is no room for that many bytes; `NOT_FOUND` when the store takes contents by itself.
    pub async fn receive(&self, digest: Sha256, length: u64) -> Result<Upload> {
        let incoming = self.0.archive.blobs.incoming(&self.0.id.to_string(), digest, length).await;
        match incoming.map_err(error::port)? {
            Some(incoming) => Ok(Upload { workspace: self.clone(), digest, incoming }),
            None => Err(elsewhere()),
        }
    }

    /// The length of a content of this workspace.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not in the archive as a blob.
    pub async fn length_of(&self, digest: Sha256) -> Result<u64> {
        let length = self.0.archive.blobs.length(&self.0.id.to_string(), digest).await;
        length.map_err(error::port)?.ok_or_else(|| absent(digest))
    }

    async fn way(&self, digest: Sha256, length: u64, to: Transfer, valid_for: Duration) -> Result<TransferRoute> {
        if !is_blob(length) {
            return Ok(TransferRoute::Inside);
        }
        let space = self.0.id.to_string();
        let presigned = self.0.archive.blobs.presigned(&space, digest, to, valid_for).await.map_err(error::port)?;
        Ok(presigned.map_or(TransferRoute::Through, TransferRoute::Past))
    }
}

fn elsewhere() -> Error {
    Error::new(Code::NotFound, "contents do not come through this server").hint("ask for an address by POST …/uploads")
}

fn absent(digest: Sha256) -> Error {
    Error::new(Code::NotFound, format!("no content with the SHA-256 {digest} was uploaded here"))
        .hint("ask for its address by POST …/uploads, and send it there first")
}

/// A content that is coming in. Nothing is left of one that is dropped.
pub struct Upload {
    workspace: Workspace,
    digest: Sha256,
    incoming: Box<dyn Incoming>,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Upload({})", self.digest)
    }
}

impl Upload {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when they are too many; `STORAGE_FULL`.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.incoming.write(bytes).await.map_err(refused)
    }

    /// Makes it durable. A damaged content of that digest is replaced.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it is not the announced one; `NOT_FOUND` when its workspace was deleted meanwhile.
    pub async fn finish(self) -> Result<()> {
        let Self { workspace, digest, incoming } = self;
        incoming.finish().await.map_err(refused)?;
        workspace.brought(digest).await
    }
}

/// A part of an upload that is coming in. The part counts as missing until it is finished.
pub struct IncomingPart(Box<dyn Incoming>);

impl std::fmt::Debug for IncomingPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IncomingPart")
    }
}

impl IncomingPart {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when they are too many; `CONFLICT` when the upload ended meanwhile; `STORAGE_FULL`.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.0.write(bytes).await.map_err(refused)
    }

    /// Makes the part durable.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it is not the announced one; `CONFLICT` when the upload ended meanwhile.
    pub async fn finish(self) -> Result<()> {
        self.0.finish().await.map_err(refused)
    }
}

fn refused(error: ports::Error) -> Error {
    match error {
        ports::Error::Invalid(what) => {
            Error::invalid("body", what).hint("send the content that the address was asked for, whole and as it is")
        }
        error => error::port(error),
    }
}
