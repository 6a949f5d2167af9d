//! Contents that come in parts, so that an upload goes on where a connection or a process ended it.

use crate::{Error, LARGEST, Presigned, Result};
use domain::Sha256;
use std::ops::Range;

/// The length of a part in bytes; the last one may be shorter. S3 takes parts from 5 MiB on, and at most 10,000 of them.
pub const PART: u64 = 16 * 1024 * 1024;

/// A content whose parts are announced before they come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumableUpload {
    digest: Sha256,
    length: u64,
    parts: Vec<Sha256>,
}

impl ResumableUpload {
    /// A content of `length` bytes with this digest, and the digests of its parts in their order.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another number of parts than the length has, and for a content above [`LARGEST`] bytes.
    pub fn new(digest: Sha256, length: u64, parts: Vec<Sha256>) -> Result<Self> {
        let expected = length.div_ceil(PART);
        if length > LARGEST {
            return Err(Error::Invalid(format!("a content has at most {LARGEST} bytes")));
        }
        if parts.len() as u64 != expected {
            let count = parts.len();
            return Err(Error::Invalid(format!(
                "{length} bytes have {expected} parts of {PART} bytes, and {count} are announced"
            )));
        }
        Ok(Self { digest, length, parts })
    }

    /// The digest of the whole.
    pub fn digest(&self) -> Sha256 {
        self.digest
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The parts in their order.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = Part> + '_ {
        let of = move |(number, digest): (usize, &Sha256)| {
            let from = number as u64 * PART;
            Part { number, from, length: PART.min(self.length - from), digest: *digest }
        };
        self.parts.iter().enumerate().map(of)
    }
}

/// A part of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 0 on.
    pub number: usize,
    /// Where it begins in the content, in bytes.
    pub from: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Its own digest.
    pub digest: Sha256,
}

impl Part {
    /// Its bytes in the content.
    pub fn range(&self) -> Range<u64> {
        self.from..self.from + self.length
    }
}

/// How far an upload in parts has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The content is durable under its digest.
    Whole,
    /// Parts are missing.
    Missing {
        /// How many bytes of other parts are there.
        received: u64,
        /// The first one that is missing.
        part: Part,
        /// The request with which a client brings it; none when it comes as a stream, by
        /// [`Blobs::incoming_part`](crate::Blobs::incoming_part).
        request: Option<Presigned>,
    },
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn parts_cover_a_content_and_their_number_follows_from_its_length() {
        let digest = Sha256::of(b"x");
        for (length, count) in [(0, 0), (1, 1), (PART, 1), (PART + 1, 2), (LARGEST, 299)] {
            let announced = ResumableUpload::new(digest, length, vec![digest; count]).unwrap();
            let ends: u64 = announced.parts().map(|part| part.length).sum();
            assert_eq!((announced.parts().len(), ends), (count, length));
            assert!(ResumableUpload::new(digest, length, vec![digest; count + 1]).is_err());
        }
        let announced = ResumableUpload::new(digest, PART + 5, vec![digest; 2]).unwrap();
        assert_eq!(announced.parts().last().unwrap().range(), PART..PART + 5);
        assert!(ResumableUpload::new(digest, LARGEST + 1, vec![digest; 299]).is_err());
    }
}
