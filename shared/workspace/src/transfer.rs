//! Contents that a client sends to or gets from the archive by an address, past this process, or that come into it as a stream. A long content may
//! not fit through the process: a Lambda takes and gives 6 MB, and no process holds 5 GB in memory.

use crate::{FileKind, Given, Result, Workspace, archive, error};
use access::Action;
use bytes::Bytes;
use domain::{Code, Error, FilePath, Sha256};
use ports::{Incoming, LARGEST, Presigned, Transfer};
use std::time::Duration;

/// By which way a content comes and goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
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
    pub async fn address_of(&self, path: &FilePath, valid_for: Duration) -> Result<(Way, Option<(Sha256, u64)>)> {
        let info = self.stat(path).await?;
        self.demand(Action::Read, path)?;
        match (info.kind, info.sha256) {
            (FileKind::File, Some(digest)) => {
                let way = self.way(digest, info.size, Transfer::Read, valid_for).await?;
                Ok((way, Some((digest, info.size))))
            }
            (FileKind::Projection, _) => Ok((Way::Inside, None)),
            _ => Err(error::wrong_kind(path, "a folder", "list it instead")),
        }
    }

    /// How the content with this digest and length is brought into the archive, which takes nothing else for it.
    /// [`Workspace::uploaded`] has it afterwards.
    ///
    /// # Errors
    /// `PAYLOAD_TOO_LARGE` over 5 GB; `INVALID_ARGUMENT` when the store signs for no such time; else those of [`Workspace`].
    pub async fn address_for(&self, digest: Sha256, length: u64, valid_for: Duration) -> Result<Way> {
        if length > LARGEST {
            let message = format!("the upload has {length} bytes; the limit is {LARGEST}");
            return Err(Error::new(Code::PayloadTooLarge, message).hint("split it into several files"));
        }
        self.way(digest, length, Transfer::Write { length }, valid_for).await
    }

    /// A content of this workspace that is in the archive, from any upload. A large one is not read.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not.
    pub async fn uploaded(&self, digest: Sha256) -> Result<Given> {
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
            None => Err(Error::new(Code::NotFound, "contents do not come through this server")
                .hint("ask for an address by POST …/uploads")),
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

    async fn way(&self, digest: Sha256, length: u64, to: Transfer, valid_for: Duration) -> Result<Way> {
        if !archive::is_blob(length) {
            return Ok(Way::Inside);
        }
        let space = self.0.id.to_string();
        let presigned = self.0.archive.blobs.presigned(&space, digest, to, valid_for).await.map_err(error::port)?;
        Ok(presigned.map_or(Way::Through, Way::Past))
    }
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
        if let Err(gone) = workspace.existing().await {
            if gone.code == Code::NotFound {
                let space = workspace.0.id.to_string();
                workspace.0.archive.blobs.delete_space(&space).await.map_err(error::port)?;
            }
            return Err(gone);
        }
        workspace.0.archive.is_good_again(digest).await
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
