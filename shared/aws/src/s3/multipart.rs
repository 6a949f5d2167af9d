//! Large contents, in parts that travel at the same time.

use super::{Outcome, S3Blobs, Stored, TRIES, WHAT, checksum, outcome, pause};
use crate::fault::{AwsFault, unavailable};
use aws_sdk_s3::{
    primitives::ByteStream,
    types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart},
};
use bytes::Bytes;
use domain::Sha256;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use ports::{Error, Result};

/// At least 5 MiB, says S3; a content of 5 TiB would be cut into more parts than S3 takes, and none is that long.
const PART: usize = 8 * 1024 * 1024;
/// How many of them travel at the same time.
const TOGETHER: usize = 4;

/// The digest that S3 keeps of a content sent in parts: the digest of their digests, and how many there are.
pub(super) fn checksum_of_parts(content: &[u8]) -> String {
    let digests: Vec<u8> = content.chunks(PART).flat_map(|part| *Sha256::of(part).as_bytes()).collect();
    format!("{}-{}", checksum(Sha256::of(&digests)), content.len().div_ceil(PART))
}

impl S3Blobs {
    /// Writes a content in parts: if it is absent, or with `replace` in any case. The parts of a failed upload are removed, or by the
    /// bucket's lifecycle rule when this process dies. Says whether an object was there, which stays.
    pub(super) async fn put_parts(&self, key: &str, content: &Bytes, replace: bool) -> Result<bool> {
        let begin = self.client.create_multipart_upload().bucket(&self.bucket).key(key);
        let begun = begin.checksum_algorithm(ChecksumAlgorithm::Sha256).send().await;
        let begun = begun.map_err(|error| unavailable(WHAT, &error))?;
        let upload = begun.upload_id().ok_or_else(|| Error::Damaged("S3 began an upload without a name".into()))?;
        let outcome = self.send_parts(key, upload, content, replace).await;
        if !matches!(outcome, Ok(true)) {
            let abort = self.client.abort_multipart_upload().bucket(&self.bucket).key(key).upload_id(upload);
            if let Err(error) = abort.send().await {
                tracing::debug!(error = %AwsFault::of(&error), "an upload in parts stays until its rule removes it");
            }
        }
        outcome.map(|done| !done)
    }

    /// False when the content is there already, so that the upload is not needed.
    async fn send_parts(&self, key: &str, upload: &str, content: &Bytes, replace: bool) -> Result<bool> {
        let count = content.len().div_ceil(PART);
        let parts = stream::iter(0..count).map(|position| {
            let part = content.slice(position * PART..content.len().min((position + 1) * PART));
            self.send_part(key, upload, position, part)
        });
        let parts: Vec<CompletedPart> = parts.buffered(TOGETHER).try_collect().await?;
        let whole = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
        let mut last = AwsFault::unknown("nothing was tried");
        for round in 0..TRIES {
            let complete = self.client.complete_multipart_upload().bucket(&self.bucket).key(key).upload_id(upload);
            let complete = complete.set_if_none_match((!replace).then(|| "*".into())).multipart_upload(whole.clone());
            let Err(error) = complete.send().await else { return Ok(true) };
            match outcome(&error) {
                Outcome::Exists => return Ok(false),
                Outcome::Racing => last = AwsFault::of(&error),
                // An attempt whose answer was lost has ended the upload, and made the content.
                Outcome::Failed
                    if self.stored(key, Sha256::of(content), Some(&checksum_of_parts(content))).await?.0
                        == Stored::Intact =>
                {
                    return Ok(true);
                }
                Outcome::Failed => return Err(unavailable(WHAT, &error)),
            }
            pause(round).await;
        }
        Err(Error::unavailable(WHAT, last))
    }

    async fn send_part(&self, key: &str, upload: &str, position: usize, part: Bytes) -> Result<CompletedPart> {
        let number = i32::try_from(position + 1).map_err(|_| Error::Invalid("a content with too many parts".into()))?;
        let send = self.client.upload_part().bucket(&self.bucket).key(key).upload_id(upload).part_number(number);
        let send = send.checksum_algorithm(ChecksumAlgorithm::Sha256).body(ByteStream::from(part));
        let sent = send.send().await.map_err(|error| unavailable(WHAT, &error))?;
        let part = CompletedPart::builder().part_number(number).set_e_tag(sent.e_tag);
        Ok(part.set_checksum_sha256(sent.checksum_sha256).build())
    }
}
