//! Requests that a store of blobs accepts from any holder.

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presigned {
    /// `GET` or `PUT`.
    pub method: String,
    /// The URL; a secret until it expires.
    pub url: String,
    /// The headers that must be sent as they are.
    pub headers: Vec<(String, String)>,
}
