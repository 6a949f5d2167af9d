//! Uploads in parts, by an upload of S3 under the content's own key. S3 keeps the parts that came, each with its SHA-256, so a client asks for the state and
//! goes on. Parts that nobody completes are removed by the bucket's lifecycle rule.
//!
//! Of an object that came in parts S3 keeps the digest of their digests, which says nothing about the content. So the object is copied onto itself: then S3
//! computes the SHA-256 of the whole, and that decides. Until then the object counts as unknown, and nobody reads it unseen.

use super::{Outcome, S3Blobs, Stored, TRIES, WHAT, checksum, key, outcome, pause, presign, status};
use crate::{
    fault::{AwsFault, unavailable},
    sdk::timeouts,
};
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart, MetadataDirective};
use domain::Sha256;
use ports::{Error, Part, Progress, Result, ResumableUpload, validate};
use std::{collections::HashMap, time::Duration};

/// How long S3 may take to copy a content of the largest size, and be silent meanwhile. An attempt that ends earlier would be repeated from the
/// beginning, while S3 still works on the one before. On AWS the function has more time than that (`infra/edge.yaml`).
const COPIES_WITHIN: Duration = Duration::from_secs(170);

/// A part, as S3 lists it.
struct KeptPart {
    etag: Option<String>,
    checksum: Option<String>,
    length: i64,
}

impl S3Blobs {
    pub(super) async fn resumed(&self, space: &str, upload: &ResumableUpload, valid_for: Duration) -> Result<Progress> {
        validate::space(space)?;
        let key = key(space, upload.digest());
        let replace = match self.stored(&key, upload.digest(), None).await?.0 {
            Stored::Intact => return Ok(Progress::Whole),
            Stored::Absent => false,
            Stored::Other => true,
            // It came in parts, and the request that completed it did not see the end.
            Stored::Unknown if self.is_content(&key, upload.digest()).await? => return Ok(Progress::Whole),
            Stored::Unknown => true,
        };
        let id = match self.upload_of(&key).await? {
            Some(id) => id,
            None => self.begin(&key).await?,
        };
        let there = self.parts_of(&key, &id).await?;
        let is_missing = |part: &Part| !there.get(&part.number).is_some_and(|kept| kept.is(part));
        let received = upload.parts().filter(|part| !is_missing(part)).map(|part| part.length).sum();
        if let Some(part) = upload.parts().find(is_missing) {
            let request = Some(self.presigned_part(&key, &id, part, valid_for).await?);
            return Ok(Progress::Missing { received, part, request });
        }
        // Something else may lie there that came in parts, too, and then the second attempt takes its place.
        for replace in [replace, true] {
            let is_ours = self.complete(&key, &id, upload, &there, replace).await?;
            if self.is_content(&key, upload.digest()).await? {
                return Ok(Progress::Whole);
            }
            if is_ours {
                break;
            }
        }
        self.delete_object(&key).await?;
        let digest = upload.digest();
        Err(Error::Invalid(format!("the parts that came are not the content {digest}: send it from the beginning")))
    }

    /// The upload under a key, if one began: the first, where several did at once.
    async fn upload_of(&self, key: &str) -> Result<Option<String>> {
        let list = self.client.list_multipart_uploads().bucket(&self.bucket).prefix(key);
        let page = list.send().await.map_err(|error| unavailable(WHAT, &error))?;
        let of_key = page.uploads().iter().filter(|upload| upload.key() == Some(key));
        let first = of_key.min_by_key(|upload| (upload.initiated().copied(), upload.upload_id().map(str::to_owned)));
        Ok(first.and_then(|upload| upload.upload_id().map(str::to_owned)))
    }

    async fn begin(&self, key: &str) -> Result<String> {
        let begin = self.client.create_multipart_upload().bucket(&self.bucket).key(key);
        let begun = begin.checksum_algorithm(ChecksumAlgorithm::Sha256).send().await;
        let id = begun.map_err(|error| unavailable(WHAT, &error))?.upload_id;
        id.ok_or_else(|| Error::Damaged("S3 began an upload without a name".into()))
    }

    /// The parts that are there, by their numbers from 0 on. S3 lists 1,000 at once, and no content has so many.
    async fn parts_of(&self, key: &str, id: &str) -> Result<HashMap<usize, KeptPart>> {
        let list = self.client.list_parts().bucket(&self.bucket).key(key).upload_id(id).send().await;
        let list = match list {
            // Another request completed it.
            Err(error) if status(&error) == Some(404) => return Err(Error::Conflict { write: 0 }),
            list => list.map_err(|error| unavailable(WHAT, &error))?,
        };
        let kept = list.parts().iter().filter_map(|part| {
            let number = usize::try_from(part.part_number()?).ok()?.checked_sub(1)?;
            let (etag, checksum) = (part.e_tag().map(str::to_owned), part.checksum_sha256().map(str::to_owned));
            Some((number, KeptPart { etag, checksum, length: part.size().unwrap_or(0) }))
        });
        Ok(kept.collect())
    }

    /// A request that brings this part and no other: S3 refuses another length and other bytes.
    async fn presigned_part(&self, key: &str, id: &str, part: Part, valid_for: Duration) -> Result<ports::Presigned> {
        let wrong = || Error::Invalid("a content with too many parts".into());
        let number = i32::try_from(part.number + 1).map_err(|_| wrong())?;
        let length = i64::try_from(part.length).map_err(|_| wrong())?;
        let request = self.client.upload_part().bucket(&self.bucket).key(key).upload_id(id).part_number(number);
        let request = request.content_length(length).checksum_sha256(checksum(part.digest));
        let signed = request.presigned(presign::validity(valid_for)?).await;
        signed.map(presign::presigned).map_err(|error| unavailable(WHAT, &error))
    }

    /// Makes an object of the parts, if there is none, or with `replace` in any case. False when another object is there, which stays.
    async fn complete(
        &self,
        key: &str,
        id: &str,
        upload: &ResumableUpload,
        there: &HashMap<usize, KeptPart>,
        replace: bool,
    ) -> Result<bool> {
        let parts = upload.parts().filter_map(|part| {
            let (kept, number) = (there.get(&part.number)?, i32::try_from(part.number + 1).ok()?);
            let part = CompletedPart::builder().part_number(number).set_e_tag(kept.etag.clone());
            Some(part.set_checksum_sha256(kept.checksum.clone()).build())
        });
        let whole = CompletedMultipartUpload::builder().set_parts(Some(parts.collect())).build();
        let mut last = AwsFault::unknown("nothing was tried");
        for round in 0..TRIES {
            let complete = self.client.complete_multipart_upload().bucket(&self.bucket).key(key).upload_id(id);
            let complete = complete.set_if_none_match((!replace).then(|| "*".into())).multipart_upload(whole.clone());
            let Err(error) = complete.send().await else { return Ok(true) };
            match outcome(&error) {
                Outcome::Exists => return Ok(false),
                Outcome::Racing => last = AwsFault::of(&error),
                // Another request completed this upload, or an attempt whose answer was lost.
                Outcome::Failed if status(&error) == Some(404) => return Ok(true),
                Outcome::Failed => return Err(unavailable(WHAT, &error)),
            }
            pause(round).await;
        }
        Err(Error::unavailable(WHAT, last))
    }

    /// Whether an object that came in parts is the content, by the SHA-256 of the whole that S3 computes for a copy.
    async fn is_content(&self, key: &str, digest: Sha256) -> Result<bool> {
        let (found, head) = self.stored(key, digest, None).await?;
        if found == Stored::Unknown {
            let copy =
                self.client.copy_object().bucket(&self.bucket).key(key).copy_source(format!("{}/{key}", self.bucket));
            let copy =
                copy.checksum_algorithm(ChecksumAlgorithm::Sha256).metadata_directive(MetadataDirective::Replace);
            let patient = timeouts(COPIES_WITHIN, COPIES_WITHIN).to_builder().read_timeout(COPIES_WITHIN).build();
            let patient = aws_sdk_s3::config::Builder::new().timeout_config(patient);
            let copy = copy.set_copy_source_if_match(head.etag).customize().config_override(patient);
            match copy.send().await {
                // Another request made the copy, or removed the object.
                Err(error) if matches!(status(&error), Some(404 | 409 | 412)) => {}
                copied => drop(copied.map_err(|error| unavailable(WHAT, &error))?),
            }
        }
        // A store that computes nothing for a copy is read.
        Ok(self.is_intact(key, digest, None).await? == Stored::Intact)
    }

    pub(super) async fn delete_object(&self, key: &str) -> Result<()> {
        let delete = self.client.delete_object().bucket(&self.bucket).key(key);
        delete.send().await.map(drop).map_err(|error| unavailable(WHAT, &error))
    }
}

impl KeptPart {
    fn is(&self, part: &Part) -> bool {
        let length = u64::try_from(self.length).ok();
        self.checksum.as_deref() == Some(checksum(part.digest).as_str()) && length == Some(part.length)
    }
}
