//! Large objects: known by the digest that S3 keeps, or read once as a stream, and read in parts under their ETag from then on.

use super::{Fetched, S3Blobs, Stored, WHAT, header, sent_as_another, status};
use crate::fault::{AwsFault, unavailable};
use bytes::Bytes;
use domain::{Hasher, Sha256};
use ports::{Error, Result};
use std::ops::Range;

impl S3Blobs {
    /// Reads a large object as a stream, and compares it.
    pub(super) async fn streamed(&self, key: &str, digest: Sha256) -> Result<Stored> {
        let get = self.client.get_object().bucket(&self.bucket).key(key);
        let mut answer = match get.send().await {
            Ok(answer) => answer,
            Err(error) if status(&error) == Some(404) => return Ok(Stored::Absent),
            Err(error) => return Err(unavailable(WHAT, &error)),
        };
        let mut hasher = Hasher::default();
        while let Some(piece) = answer.body.next().await {
            let piece = piece.map_err(|error| Error::unavailable(WHAT, error))?;
            hasher.update(&piece);
        }
        if hasher.finish() != digest {
            return Ok(Stored::Other);
        }
        self.found_intact(key, answer.e_tag());
        Ok(Stored::Intact)
    }

    /// A part of a large object that came with this ETag, when S3 says that the object is the content.
    pub(super) async fn part_of_large(
        &self,
        key: &str,
        digest: Sha256,
        range: Range<u64>,
        (part, etag): (Bytes, Option<String>),
    ) -> Result<Option<Bytes>> {
        match self.length_of(key, digest).await? {
            None => Ok(None),
            // The one that was looked at.
            Some(_) if etag.is_some() && self.known(key) == etag => Ok(Some(part)),
            Some(_) => self.part_again(key, &range).await,
        }
    }

    /// A part of an object whose ETag is known by now.
    pub(super) async fn part_again(&self, key: &str, range: &Range<u64>) -> Result<Option<Bytes>> {
        match self.fetch(key, Some(&header(range)), self.known(key).as_deref()).await? {
            Fetched::Absent => Ok(None),
            Fetched::Nothing => Ok(Some(Bytes::new())),
            Fetched::Content(part, _) => Ok(Some(part)),
            Fetched::Replaced => Err(Error::unavailable(WHAT, AwsFault::unknown("the content was replaced meanwhile"))),
        }
    }

    /// How long an intact content is; from then on its object is known by its ETag. None when it is absent.
    pub(super) async fn length_of(&self, key: &str, digest: Sha256) -> Result<Option<u64>> {
        match self.looked_at(key, digest, None).await? {
            (Stored::Absent, _) => Ok(None),
            (Stored::Intact, head) => {
                self.found_intact(key, head.etag.as_deref());
                Ok(Some(head.length))
            }
            (Stored::Other | Stored::Unknown, _) => Err(sent_as_another(key)),
        }
    }
}
