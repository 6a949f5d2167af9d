//! Contents that travel past this process, between the archive and whoever has an address of it. What is long may not fit through
//! the process: a Lambda takes and gives 6 MB.

use crate::{Kind, Result, Workspace, archive, error, files};
use bytes::Bytes;
use domain::{Code, Error, FilePath, Sha256};
use ports::{Presigned, Transfer};
use std::time::Duration;

impl Workspace {
    /// A request that reads what is at a path now, as it is. None where the content is short enough to be in the table, or the archive
    /// has no addresses.
    pub async fn address_of(&self, path: &FilePath, valid_for: Duration) -> Result<Option<Presigned>> {
        let info = self.stat(path).await?;
        match (info.kind, info.sha256) {
            (Kind::File, Some(digest)) => self.presigned(digest, info.size, Transfer::Read, valid_for).await,
            (Kind::Projection, _) => Ok(None),
            _ => Err(error::wrong_kind(path, "a folder", "list it instead")),
        }
    }

    /// A request that brings the content with this digest and length into the archive, which takes nothing else for it. None as above.
    /// [`Workspace::uploaded`] has it afterwards.
    pub async fn address_for(&self, digest: Sha256, length: u64, valid_for: Duration) -> Result<Option<Presigned>> {
        files::fits("an upload", usize::try_from(length).unwrap_or(usize::MAX))?;
        self.presigned(digest, length, Transfer::Write { length }, valid_for).await
    }

    /// A content of this workspace that is in the archive, whoever brought it there.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not.
    pub async fn uploaded(&self, digest: Sha256) -> Result<Bytes> {
        let absent = || {
            Error::new(Code::NotFound, format!("no content with the SHA-256 {digest} was uploaded here"))
                .hint("ask for its address by POST …/uploads, and send it there first")
        };
        self.0.archive.find(digest).await?.ok_or_else(absent)
    }

    async fn presigned(
        &self,
        digest: Sha256,
        length: u64,
        to: Transfer,
        valid_for: Duration,
    ) -> Result<Option<Presigned>> {
        if !archive::is_blob(length) {
            return Ok(None);
        }
        let space = self.0.id.to_string();
        self.0.archive.blobs.presigned(&space, digest, to, valid_for).await.map_err(error::port)
    }
}
