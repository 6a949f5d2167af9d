//! Addresses that let somebody without credentials read or write one content, for a while.

use super::{S3Blobs, WHAT, checksum, key};
use crate::fault::unavailable;
use aws_sdk_s3::presigning::{PresignedRequest, PresigningConfig};
use domain::Sha256;
use ports::{Error, Presigned, Result, validate};
use std::time::Duration;

impl S3Blobs {
    /// A request that reads a content, good for at most seven days.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a `space` that is no name of one, and for more than seven days; [`Error::Unavailable`] when there are no
    /// credentials to sign with.
    pub async fn presigned_get(&self, space: &str, digest: Sha256, valid_for: Duration) -> Result<Presigned> {
        validate::space(space)?;
        let request = self.client.get_object().bucket(&self.bucket).key(key(space, digest));
        let signed = request.presigned(validity(valid_for)?).await;
        signed.map(presigned).map_err(|error| unavailable(WHAT, &error))
    }

    /// A request that writes the content with this digest and length in bytes, and no other: S3 refuses other contents, and one that is
    /// there already (412), which is as good.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a `space` that is no name of one, for a length that S3 cannot be told, and for more than seven days;
    /// [`Error::Unavailable`] when there are no credentials to sign with.
    pub async fn presigned_put(
        &self,
        space: &str,
        digest: Sha256,
        length: u64,
        valid_for: Duration,
    ) -> Result<Presigned> {
        validate::space(space)?;
        let length = i64::try_from(length).map_err(|_| Error::Invalid("a content of that length".into()))?;
        let request = self.client.put_object().bucket(&self.bucket).key(key(space, digest)).if_none_match("*");
        let request = request.content_length(length).checksum_sha256(checksum(digest));
        let signed = request.presigned(validity(valid_for)?).await;
        signed.map(presigned).map_err(|error| unavailable(WHAT, &error))
    }
}

pub(super) fn presigned(request: PresignedRequest) -> Presigned {
    Presigned {
        method: request.method().to_owned(),
        url: request.uri().to_owned(),
        headers: request.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    }
}

pub(super) fn validity(valid_for: Duration) -> Result<PresigningConfig> {
    PresigningConfig::expires_in(valid_for).map_err(|error| Error::Invalid(error.to_string()))
}
