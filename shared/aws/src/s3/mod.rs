//! Blobs on S3: `{space}/archive/ab/cd/abcd…`, as seed 001 lays the archive out.
//!
//! S3 itself checks each content against its digest before it takes it, and writes it only if it is absent.

mod multipart;
mod presign;

use crate::fault::{Fault, unavailable};
use async_trait::async_trait;
use aws_sdk_s3::{
    Client,
    error::SdkError,
    primitives::ByteStream,
    types::{Delete, ObjectIdentifier},
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use bytes::Bytes;
use domain::Sha256;
use ports::{Blobs, Error, Result, validate};
use std::{ops::Range, time::Duration};

pub use presign::Presigned;

const WHAT: &str = "the archive";
/// From this size on it is asked whether a content is there before it is sent.
const WORTH_ASKING: usize = 256 * 1024;
/// Above this size a content is sent in parts.
const MULTIPART_ABOVE: usize = 16 * 1024 * 1024;
/// How often a content is sent or read again after what the SDK does not repeat: two writers at once, and a break in the middle.
const TRIES: u32 = 5;

/// Blobs in one bucket of S3.
pub struct S3Blobs {
    client: Client,
    bucket: String,
    multipart_above: usize,
}

impl S3Blobs {
    /// In `bucket`.
    pub fn new(client: Client, bucket: impl Into<String>) -> Self {
        Self { client, bucket: bucket.into(), multipart_above: MULTIPART_ABOVE }
    }

    /// The same, with contents above `bytes` sent in parts.
    #[must_use]
    pub fn multipart_above(self, bytes: usize) -> Self {
        Self { multipart_above: bytes, ..self }
    }

    async fn is_there(&self, key: &str) -> Result<bool> {
        match self.client.head_object().bucket(&self.bucket).key(key).send().await {
            Ok(_) => Ok(true),
            Err(error) if status(&error) == Some(404) => Ok(false),
            Err(error) => Err(unavailable(WHAT, &error)),
        }
    }

    /// Writes a content if it is absent. It does not matter who does: the bytes are the same.
    async fn put_whole(&self, key: &str, digest: Sha256, content: &Bytes) -> Result<()> {
        let mut last = Fault::unknown("nothing was tried");
        for round in 0..TRIES {
            let put = self.client.put_object().bucket(&self.bucket).key(key).if_none_match("*");
            let put = put.checksum_sha256(checksum(digest)).body(ByteStream::from(content.clone()));
            let Err(error) = put.send().await else { return Ok(()) };
            match outcome(&error) {
                Outcome::Exists => return Ok(()),
                Outcome::Racing => last = Fault::of(&error),
                Outcome::Failed => return Err(unavailable(WHAT, &error)),
            }
            pause(round).await;
        }
        Err(Error::unavailable(WHAT, last))
    }

    async fn read(&self, key: &str, range: Option<&str>) -> Result<Option<Bytes>> {
        let mut last = Fault::unknown("nothing was tried");
        for round in 0..TRIES {
            let get = self.client.get_object().bucket(&self.bucket).key(key).set_range(range.map(str::to_owned));
            let answer = match get.send().await {
                Ok(answer) => answer,
                Err(error) if status(&error) == Some(404) => return Ok(None),
                // It begins behind the end of the content.
                Err(error) if status(&error) == Some(416) => return Ok(Some(Bytes::new())),
                Err(error) => return Err(unavailable(WHAT, &error)),
            };
            match answer.body.collect().await {
                Ok(content) => return Ok(Some(content.into_bytes())),
                Err(error) => last = Fault::unknown(error.to_string()),
            }
            pause(round).await;
        }
        Err(Error::unavailable(WHAT, last))
    }
}

#[async_trait]
impl Blobs for S3Blobs {
    async fn put(&self, space: &str, content: Bytes) -> Result<Sha256> {
        validate::space(space)?;
        let digest = Sha256::of(&content);
        let key = key(space, digest);
        if content.len() >= WORTH_ASKING && self.is_there(&key).await? {
            return Ok(digest);
        }
        match content.len() > self.multipart_above {
            true => self.put_parts(&key, &content).await?,
            false => self.put_whole(&key, digest, &content).await?,
        }
        Ok(digest)
    }

    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<Option<Bytes>> {
        validate::space(space)?;
        let key = key(space, digest);
        match range {
            None => self.read(&key, None).await,
            // HTTP has no empty ranges.
            Some(range) if range.is_empty() => Ok(self.is_there(&key).await?.then(Bytes::new)),
            Some(range) => self.read(&key, Some(&header(&range))).await,
        }
    }

    async fn delete(&self, space: &str, digest: Sha256) -> Result<()> {
        validate::space(space)?;
        let delete = self.client.delete_object().bucket(&self.bucket).key(key(space, digest));
        delete.send().await.map(drop).map_err(|error| unavailable(WHAT, &error))
    }

    async fn delete_space(&self, space: &str) -> Result<()> {
        validate::space(space)?;
        loop {
            // Always the first page: what was on it is gone.
            let list = self.client.list_objects_v2().bucket(&self.bucket).prefix(format!("{space}/"));
            let page = list.send().await.map_err(|error| unavailable(WHAT, &error))?;
            let keys = page.contents().iter().filter_map(|object| object.key());
            let objects = keys.map(|key| ObjectIdentifier::builder().key(key).build());
            let objects = objects.collect::<std::result::Result<Vec<_>, _>>();
            let objects = objects.map_err(|error| Error::Invalid(error.to_string()))?;
            if objects.is_empty() {
                return Ok(());
            }
            let all = Delete::builder().set_objects(Some(objects)).quiet(true).build();
            let all = all.map_err(|error| Error::Invalid(error.to_string()))?;
            let delete = self.client.delete_objects().bucket(&self.bucket).delete(all);
            let answer = delete.send().await.map_err(|error| unavailable(WHAT, &error))?;
            if let Some(failed) = answer.errors().first() {
                let message = failed.message().unwrap_or_default();
                return Err(Fault::coded(failed.code().unwrap_or_default(), message, false).into_error(WHAT));
            }
        }
    }
}

fn key(space: &str, digest: Sha256) -> String {
    let name = digest.to_string();
    let (first, rest) = name.split_at(2);
    let (second, _) = rest.split_at(2);
    format!("{space}/archive/{first}/{second}/{name}")
}

/// As S3 wants to have it: in Base64.
fn checksum(digest: Sha256) -> String {
    aws_smithy_types::base64::encode(digest.as_bytes())
}

/// The last byte is included here, and a content has at most 2^43.
fn header(range: &Range<u64>) -> String {
    format!("bytes={}-{}", range.start.min(1 << 62), range.end.min(1 << 62).saturating_sub(1))
}

fn status<E>(error: &SdkError<E, HttpResponse>) -> Option<u16> {
    error.raw_response().map(|answer| answer.status().as_u16())
}

/// What became of a conditional write.
enum Outcome {
    /// The content is there: somebody was first, or an earlier attempt of ours whose answer was lost.
    Exists,
    /// Somebody is writing it right now.
    Racing,
    Failed,
}

fn outcome<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Outcome {
    match status(error) {
        Some(412) => Outcome::Exists,
        Some(409) => Outcome::Racing,
        _ => Outcome::Failed,
    }
}

async fn pause(round: u32) {
    tokio::time::sleep(Duration::from_millis(50 << round.min(5))).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_header_whose_end_is_included() {
        assert_eq!(header(&(0..10)), "bytes=0-9");
        assert_eq!(header(&(7..u64::MAX)), format!("bytes=7-{}", (1_u64 << 62) - 1));
    }

    #[test]
    fn a_content_is_found_under_its_space_and_digest() {
        let digest = Sha256::of(b"");
        assert!(key("w", digest).starts_with("w/archive/e3/b0/e3b0c44298fc"));
        assert_eq!(checksum(digest), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
