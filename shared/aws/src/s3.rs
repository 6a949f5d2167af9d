//! Blobs on S3: `{space}/archive/ab/cd/abcd…`, as spec 001 §3A lays the archive out.
//!
//! S3 itself checks each content against its digest before it takes it, and writes it only if it is absent. It keeps that digest beside the
//! content, so that a look without reading shows whether the object under a name was sent as that content: a foreign object has another
//! digest, or none. A content that is read whole is compared here, too. A part of one is read under the ETag of an object that was compared
//! whole: S3 gives every overwritten object another one.
//!
//! A large content ([`LARGE`]) is not read whole for that. Its parts are read under the ETag of an object for which S3 keeps the content's
//! own SHA-256, which it computed itself when it took the object; that its disks give back the same bytes is S3's promise. If S3 keeps no
//! such digest, the object is read once as a stream and compared.

mod large_objects;
mod multipart;
mod presign;
mod resume;

use crate::fault::{AwsFault, unavailable};
use async_trait::async_trait;
use aws_sdk_s3::{
    Client,
    error::SdkError,
    operation::get_object::GetObjectOutput,
    primitives::ByteStream,
    types::{ChecksumMode, Delete, ObjectIdentifier},
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use bytes::Bytes;
use domain::Sha256;
use parking_lot::Mutex;
use ports::{Blobs, Error, LARGE, Presigned, Progress, Result, ResumableUpload, Transfer, validate};
use std::{collections::HashMap, ops::Range, time::Duration};

const WHAT: &str = "the archive";
/// From this size on it is asked whether a content is there before it is sent.
const WORTH_ASKING: usize = 256 * 1024;
/// Above this size a content is sent in parts.
const MULTIPART_ABOVE: usize = 16 * 1024 * 1024;
/// How often a content is sent or read again after failures that the SDK does not repeat: two writers at once, and a break in the middle.
const TRIES: u32 = 5;
/// How many objects that were compared whole are known again by their ETag; beyond, all are forgotten.
const KNOWN: usize = 16 * 1024;

/// Blobs in one bucket of S3.
pub struct S3Blobs {
    client: Client,
    bucket: String,
    multipart_above: usize,
    large_above: u64,
    /// The ETags of objects that were read whole and found intact, by their keys.
    intact: Mutex<HashMap<String, String>>,
}

/// The state of a content by S3's metadata, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Absent,
    Intact,
    /// It was sent as something else.
    Other,
    /// S3 keeps no digest of it that can be compared.
    Unknown,
}

impl S3Blobs {
    /// In `bucket`.
    pub fn new(client: Client, bucket: impl Into<String>) -> Self {
        Self {
            client,
            bucket: bucket.into(),
            multipart_above: MULTIPART_ABOVE,
            large_above: LARGE,
            intact: Mutex::default(),
        }
    }

    /// The same, with contents above `bytes` sent in parts.
    #[must_use]
    pub fn multipart_above(self, bytes: usize) -> Self {
        Self { multipart_above: bytes, ..self }
    }

    /// The same, where contents above `bytes` are large.
    #[must_use]
    pub fn large_above(self, bytes: u64) -> Self {
        Self { large_above: bytes, ..self }
    }

    /// The state of the object under a content's key. `in_parts` is the digest that S3 has of it when it was sent in parts, if it is known.
    async fn stored(&self, key: &str, digest: Sha256, in_parts: Option<&str>) -> Result<(Stored, Head)> {
        let head = self.client.head_object().bucket(&self.bucket).key(key).checksum_mode(ChecksumMode::Enabled);
        match head.send().await {
            Ok(head) => {
                let stored = match head.checksum_sha256() {
                    Some(kept) if kept == checksum(digest) || in_parts == Some(kept) => Stored::Intact,
                    // Of the digests of parts, which may have been cut elsewhere.
                    Some(kept) if kept.contains('-') => Stored::Unknown,
                    Some(_) => Stored::Other,
                    None => Stored::Unknown,
                };
                let length = head.content_length().and_then(|length| u64::try_from(length).ok()).unwrap_or(0);
                Ok((stored, Head { length, etag: head.e_tag }))
            }
            Err(error) if status(&error) == Some(404) => Ok((Stored::Absent, Head::default())),
            Err(error) => Err(unavailable(WHAT, &error)),
        }
    }

    /// The same, and where S3 does not know, by reading it.
    async fn is_intact(&self, key: &str, digest: Sha256, in_parts: Option<&str>) -> Result<Stored> {
        self.looked_at(key, digest, in_parts).await.map(|(stored, _)| stored)
    }

    async fn looked_at(&self, key: &str, digest: Sha256, in_parts: Option<&str>) -> Result<(Stored, Head)> {
        let (stored, head) = self.stored(key, digest, in_parts).await?;
        if stored != Stored::Unknown {
            return Ok((stored, head));
        }
        // It may be known from an earlier look.
        if head.etag.is_some() && self.known(key) == head.etag {
            return Ok((Stored::Intact, head));
        }
        let found = match head.length > self.large_above {
            true => self.streamed(key, digest).await?,
            false => match self.whole(key, digest).await {
                Ok(Some(_)) => Stored::Intact,
                Ok(None) => Stored::Absent,
                Err(Error::Damaged(_)) => Stored::Other,
                Err(error) => return Err(error),
            },
        };
        Ok((found, head))
    }

    /// Writes a content: if it is absent, or with `replace` in any case. Concurrent writers do no harm: the bytes are the same. Says
    /// whether an object was there, which stays.
    async fn put_whole(&self, key: &str, digest: Sha256, content: &Bytes, replace: bool) -> Result<bool> {
        let mut last = AwsFault::unknown("nothing was tried");
        for round in 0..TRIES {
            let put = self.client.put_object().bucket(&self.bucket).key(key);
            let put = put.set_if_none_match((!replace).then(|| "*".into()));
            let put = put.checksum_sha256(checksum(digest)).body(ByteStream::from(content.clone()));
            let Err(error) = put.send().await else { return Ok(false) };
            match outcome(&error) {
                Outcome::Exists => return Ok(true),
                Outcome::Racing => last = AwsFault::of(&error),
                Outcome::Failed => return Err(unavailable(WHAT, &error)),
            }
            pause(round).await;
        }
        Err(Error::unavailable(WHAT, last))
    }

    /// Writes a content, in parts when it is long. Says whether something was there, which stays.
    async fn send(&self, key: &str, digest: Sha256, content: &Bytes, replace: bool) -> Result<bool> {
        match content.len() > self.multipart_above {
            true => self.put_parts(key, content, replace).await,
            false => self.put_whole(key, digest, content, replace).await,
        }
    }

    /// The object under a key, or a part of it, with the head of its answer; none when it is absent.
    async fn fetch(&self, key: &str, range: Option<&str>, etag: Option<&str>) -> Result<Fetched> {
        let mut last = AwsFault::unknown("nothing was tried");
        for round in 0..TRIES {
            let get = self.client.get_object().bucket(&self.bucket).key(key);
            let get = get.set_range(range.map(str::to_owned)).set_if_match(etag.map(str::to_owned));
            let mut answer = match get.send().await {
                Ok(answer) => answer,
                Err(error) if status(&error) == Some(404) => return Ok(Fetched::Absent),
                // It begins behind the end of the content.
                Err(error) if status(&error) == Some(416) => return Ok(Fetched::Nothing),
                Err(error) if status(&error) == Some(412) => return Ok(Fetched::Replaced),
                Err(error) => return Err(unavailable(WHAT, &error)),
            };
            match std::mem::take(&mut answer.body).collect().await {
                Ok(content) => return Ok(Fetched::Content(content.into_bytes(), Box::new(answer))),
                Err(error) => last = AwsFault::unknown(error.to_string()),
            }
            pause(round).await;
        }
        Err(Error::unavailable(WHAT, last))
    }

    /// A content, compared with its digest.
    async fn whole(&self, key: &str, digest: Sha256) -> Result<Option<Bytes>> {
        match self.fetch(key, None, None).await? {
            Fetched::Content(content, head) => {
                let content = compared(key, content, digest).await?;
                self.found_intact(key, head.e_tag());
                Ok(Some(content))
            }
            Fetched::Absent => Ok(None),
            Fetched::Nothing | Fetched::Replaced => {
                Err(Error::unavailable(WHAT, AwsFault::unknown("S3 answered a condition that was not asked")))
            }
        }
    }

    /// A part of a content. A part that is all of it is compared as it is; any other is only read of an object that was compared
    /// whole before.
    async fn part(&self, key: &str, digest: Sha256, range: Range<u64>) -> Result<Option<Bytes>> {
        let etag = self.known(key);
        match self.fetch(key, Some(&header(&range)), etag.as_deref()).await? {
            Fetched::Absent => return Ok(None),
            Fetched::Content(part, _) if etag.is_some() => return Ok(Some(part)),
            Fetched::Nothing if etag.is_some() => return Ok(Some(Bytes::new())),
            Fetched::Content(part, head) if is_all(&head, part.len()) => {
                let content = compared(key, part, digest).await?;
                self.found_intact(key, head.e_tag());
                return Ok(Some(content));
            }
            Fetched::Content(part, head) if total(&head).is_some_and(|total| total > self.large_above) => {
                return self.part_of_large(key, digest, range, (part, head.e_tag().map(str::to_owned))).await;
            }
            Fetched::Content(..) => {}
            Fetched::Nothing | Fetched::Replaced => {
                if self.length_of(key, digest).await?.is_some_and(|length| length > self.large_above) {
                    return self.part_again(key, &range).await;
                }
            }
        }
        let whole = self.whole(key, digest).await?;
        Ok(whole.map(|content| {
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(content.len());
            let (start, end) = (place(range.start), place(range.end));
            content.slice(start.min(end)..end)
        }))
    }

    fn known(&self, key: &str) -> Option<String> {
        self.intact.lock().get(key).cloned()
    }

    fn found_intact(&self, key: &str, etag: Option<&str>) {
        let Some(etag) = etag else { return };
        let mut intact = self.intact.lock();
        if intact.len() >= KNOWN {
            intact.clear();
        }
        intact.insert(key.to_owned(), etag.to_owned());
    }
}

/// The result of a request for a content.
enum Fetched {
    Absent,
    /// The range begins behind the end.
    Nothing,
    /// The object has another ETag by now.
    Replaced,
    Content(Bytes, Box<GetObjectOutput>),
}

/// The metadata of an object.
#[derive(Default)]
struct Head {
    length: u64,
    etag: Option<String>,
}

/// Whether a part of `length` bytes is the whole object: S3 may also give the whole at once, and name no range.
fn is_all(head: &GetObjectOutput, length: usize) -> bool {
    total(head).is_none_or(|total| total == length as u64)
}

/// The length of the object that a part is of, from a range such as `bytes 0-9/10`.
fn total(head: &GetObjectOutput) -> Option<u64> {
    head.content_range()?.rsplit_once('/')?.1.parse().ok()
}

/// A content whose digest is this one.
async fn compared(key: &str, content: Bytes, digest: Sha256) -> Result<Bytes> {
    let hashed = content.clone();
    let found = tokio::task::spawn_blocking(move || Sha256::of(&hashed)).await;
    let found = found.map_err(|error| Error::unavailable(WHAT, error))?;
    if found == digest {
        return Ok(content);
    }
    Err(Error::Damaged(format!("the object {key} has {} bytes with the digest {found}", content.len())))
}

#[async_trait]
impl Blobs for S3Blobs {
    async fn put(&self, space: &str, content: Bytes) -> Result<Sha256> {
        validate::space(space)?;
        let digest = Sha256::of(&content);
        let key = key(space, digest);
        let in_parts = (content.len() > self.multipart_above).then(|| multipart::checksum_of_parts(&content));
        let mut replace = false;
        if content.len() >= WORTH_ASKING {
            match self.is_intact(&key, digest, in_parts.as_deref()).await? {
                Stored::Intact => return Ok(digest),
                found => replace = found == Stored::Other,
            }
        }
        let is_there = self.send(&key, digest, &content, replace).await?;
        if is_there && self.is_intact(&key, digest, in_parts.as_deref()).await? != Stored::Intact {
            replace = true;
            self.send(&key, digest, &content, true).await?;
        }
        if replace {
            tracing::warn!(%key, "a damaged content of the archive was replaced by the one that was written again");
        }
        Ok(digest)
    }

    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<Option<Bytes>> {
        validate::space(space)?;
        let key = key(space, digest);
        match range {
            None => self.whole(&key, digest).await,
            // HTTP has no empty ranges.
            Some(range) if range.is_empty() => match self.is_intact(&key, digest, None).await? {
                Stored::Absent => Ok(None),
                Stored::Intact => Ok(Some(Bytes::new())),
                Stored::Other | Stored::Unknown => Err(sent_as_another(&key)),
            },
            Some(range) => self.part(&key, digest, range).await,
        }
    }

    /// One request without a body, where S3 has the digest beside the content.
    async fn verify(&self, space: &str, digest: Sha256, _range: Option<Range<u64>>) -> Result<bool> {
        validate::space(space)?;
        let key = key(space, digest);
        match self.is_intact(&key, digest, None).await? {
            Stored::Absent => Ok(false),
            Stored::Intact => Ok(true),
            Stored::Other | Stored::Unknown => Err(sent_as_another(&key)),
        }
    }

    async fn length(&self, space: &str, digest: Sha256) -> Result<Option<u64>> {
        validate::space(space)?;
        self.length_of(&key(space, digest), digest).await
    }

    async fn presigned(
        &self,
        space: &str,
        digest: Sha256,
        to: Transfer,
        valid_for: Duration,
    ) -> Result<Option<Presigned>> {
        let signed = match to {
            Transfer::Read => self.presigned_get(space, digest, valid_for).await,
            Transfer::Write { length } => self.presigned_put(space, digest, length, valid_for).await,
        };
        signed.map(Some)
    }

    async fn resume(&self, space: &str, upload: &ResumableUpload, valid_for: Duration) -> Result<Option<Progress>> {
        self.resumed(space, upload, valid_for).await.map(Some)
    }

    async fn delete(&self, space: &str, digest: Sha256) -> Result<()> {
        validate::space(space)?;
        self.delete_object(&key(space, digest)).await
    }

    async fn delete_space(&self, space: &str) -> Result<()> {
        validate::space(space)?;
        loop {
            // Always the first page: the objects on it are gone.
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
                return Err(AwsFault::coded(failed.code().unwrap_or_default(), message, false).into_error(WHAT));
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

fn sent_as_another(key: &str) -> Error {
    Error::Damaged(format!("the object {key} was sent as another content"))
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

/// The outcome of a conditional write.
enum Outcome {
    /// The content is there: another writer was first, or an earlier attempt of ours whose answer was lost.
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
