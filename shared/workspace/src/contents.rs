//! Contents by their length and digest.

use crate::{Result, error};
use bytes::Bytes;
use domain::{Code, Error, Hasher, Sha256};
use ports::LARGE;
use std::{
    fs::File,
    io::{self, Read as _},
};

/// Texts up to this length, in bytes, are kept in the table. Most source files, plans and notes are below; a DynamoDB item
/// of this size costs about what two requests to S3 do.
const SMALL: u64 = 16 * 1024;
/// Contents over this length, in bytes, are hashed off the executor's threads.
pub(crate) const LONG_TO_HASH: usize = 256 * 1024;

/// Whether a content of this length is always a blob; a shorter one is a blob only when it is not text.
pub(crate) fn is_blob(size: u64) -> bool {
    size > SMALL
}

/// Whether no process holds a content of this length whole.
pub(crate) fn is_large(size: u64) -> bool {
    size > LARGE
}

/// The refusal to read so much at once.
pub(crate) fn too_large(size: u64) -> Error {
    let message = format!("{size} bytes are too many to be read at once: the limit is {} MiB", LARGE / (1024 * 1024));
    Error::new(Code::PayloadTooLarge, message)
        .hint("read a range of it, or ask for its address by GET …/files/:fid/address")
        .detail("size", size)
}

/// A content for a new version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// These bytes.
    Bytes(Bytes),
    /// A large one, which the archive has.
    Large {
        /// Its digest.
        sha256: Sha256,
        /// Its length in bytes.
        size: u64,
    },
}

/// The digest of a content of any length.
pub(crate) async fn digest(content: &Bytes) -> Result<Sha256> {
    if content.len() <= LONG_TO_HASH {
        return Ok(Sha256::of(content));
    }
    let content = content.clone();
    crate::blocking::run(move || Sha256::of(&content)).await.map_err(error::task)
}

/// The digest of a file of any length.
///
/// # Errors
/// The disk's error.
pub fn digest_of(mut file: File) -> io::Result<Sha256> {
    let (mut hasher, mut piece) = (Hasher::default(), vec![0; 1024 * 1024]);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(piece.get(..read).unwrap_or_default());
    }
}
