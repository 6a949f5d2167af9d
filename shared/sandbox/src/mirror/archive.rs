//! The archive as a mirror reaches it: by requests that somebody with a right to the contents has signed. It has no credentials of its own.

use crate::http;
use bytes::{Bytes, BytesMut};
use domain::{Hasher, Sha256};
use ports::{Error, Presigned, Result};
use reqwest::{Client, Response, StatusCode};
use std::{io, path::Path, time::Duration};
use tokio::{
    fs::{self, File},
    io::AsyncWriteExt as _,
};

const WHAT: &str = "the archive";
/// How long the archive may be silent. A large content may take its time.
const SILENCE: Duration = Duration::from_secs(10);

/// Reads contents by their addresses, each once: a failure is told, and the sender of the manifest decides how the content comes then.
pub(super) struct Archive(Client);

impl Archive {
    /// Sends no request.
    ///
    /// # Errors
    /// When the client of HTTP cannot be set up.
    pub fn new() -> io::Result<Self> {
        http::client().read_timeout(SILENCE).build().map(Self).map_err(io::Error::other)
    }

    /// The bytes at an address; none when nothing is there, or they are not `size`.
    ///
    /// # Errors
    /// `Unavailable` when the archive refuses, or does not answer to the end.
    pub async fn content(&self, at: &Presigned, size: u64) -> Result<Option<Bytes>> {
        let Some(mut response) = self.open(at, size).await? else { return Ok(None) };
        let mut content = BytesMut::with_capacity(usize::try_from(size).unwrap_or(0));
        while let Some(piece) = response.chunk().await.map_err(broken)? {
            if (content.len() + piece.len()) as u64 > size {
                return Ok(None);
            }
            content.extend_from_slice(&piece);
        }
        Ok((content.len() as u64 == size).then(|| content.freeze()))
    }

    /// Puts a content at the free path `to`. False when its address has another one; `to` is then still free.
    ///
    /// # Errors
    /// Those of [`Archive::content`], and those of the disk.
    pub async fn bring(&self, at: &Presigned, digest: Sha256, size: u64, to: &Path) -> Result<bool> {
        let brought = self.stream(at, digest, size, to).await;
        if !matches!(brought, Ok(true)) {
            drop(fs::remove_file(to).await);
        }
        brought
    }

    async fn stream(&self, at: &Presigned, digest: Sha256, size: u64, to: &Path) -> Result<bool> {
        let Some(mut response) = self.open(at, size).await? else { return Ok(false) };
        let mut file = File::create_new(to).await.map_err(of_disk)?;
        let (mut hasher, mut length) = (Hasher::default(), 0);
        while let Some(piece) = response.chunk().await.map_err(broken)? {
            length += piece.len() as u64;
            if length > size {
                return Ok(false);
            }
            hasher.update(&piece);
            file.write_all(&piece).await.map_err(of_disk)?;
        }
        file.flush().await.map_err(of_disk)?;
        Ok(hasher.finish() == digest)
    }

    /// The answer with the content; none when nothing is there, or its announced length is not `size`.
    async fn open(&self, at: &Presigned, size: u64) -> Result<Option<Response>> {
        let signed = at.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host"));
        let request = signed.fold(self.0.get(&at.url), |request, (name, value)| request.header(name, value));
        let response = request.send().await.map_err(broken)?;
        match response.status() {
            StatusCode::OK if response.content_length().is_none_or(|length| length == size) => Ok(Some(response)),
            StatusCode::OK | StatusCode::NOT_FOUND => Ok(None),
            status => Err(Error::unavailable(WHAT, format!("it answered {status}"))),
        }
    }
}

/// It did not answer to the end. The address has a signature, so no message shows it.
fn broken(error: reqwest::Error) -> Error {
    Error::unavailable(WHAT, error.without_url())
}

fn of_disk(error: io::Error) -> Error {
    Error::unavailable(super::DISK, error)
}
