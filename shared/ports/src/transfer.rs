//! Requests that a store of blobs accepts from any holder.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest content, in bytes: S3 takes no more in one request.
pub const LARGEST: u64 = 5_000_000_000;

/// The purpose of a presigned request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// It reads the content.
    Read,
    /// It writes the content, which has this many bytes.
    Write {
        /// The length in bytes.
        length: u64,
    },
}

/// A request that a store accepts from any holder, until it expires.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presigned {
    /// `GET` or `PUT`.
    pub method: String,
    /// The URL; a secret until it expires.
    pub url: String,
    /// The headers that must be sent as they are.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for Presigned {
    /// Without the query, which has the signature: a reader of it could make the request.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.url.split('?').next().unwrap_or_default();
        write!(f, "Presigned({} {address})", self.method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_not_shown() {
        let url = "https://archive.s3.amazonaws.com/w/archive/ab/cd/abcd?X-Amz-Signature=5ec4e7".to_owned();
        let request = Presigned { method: "GET".into(), url, headers: Vec::new() };
        assert_eq!(format!("{request:?}"), "Presigned(GET https://archive.s3.amazonaws.com/w/archive/ab/cd/abcd)");
    }
}
