//! Contents by address: long ones go past the routes of files, at an address that the hub gives and wherever that is.

use crate::{
    Client, Error, address,
    client::{ANSWER, pause},
};
use reqwest::{Method, Response, Url};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{future::Future, time::Duration};

/// The request by which one content is sent or fetched, as the hub gave it. It is good for some minutes, and needs no token.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Address {
    /// The HTTP method.
    pub method: String,
    /// The URL, or a path of the hub.
    pub url: String,
    /// The headers that belong to it.
    #[serde(default)]
    pub headers: Map<String, Value>,
}

/// The length of a part of an upload in bytes; the last one may be shorter.
pub const PART: u64 = 16 * 1024 * 1024;

/// The slowest disk of a hub, in bytes per second: it reads a content of parts as a whole before it says that all is there.
const SLOWEST_READ: u64 = 8 * 1024 * 1024;

/// How long the answer about an upload of `size` bytes may take, which may be its completion.
fn completed_within(size: u64) -> Duration {
    ANSWER + Duration::from_secs(size / SLOWEST_READ)
}

/// How far an upload in parts has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct UploadProgress {
    /// How many bytes of the content are there.
    pub received: u64,
    /// The part that comes next; none when the content is whole.
    pub next: Option<UploadPart>,
}

/// A part of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct UploadPart {
    /// Where it begins, in bytes.
    pub from: u64,
    /// Its length in bytes.
    pub size: u64,
}

/// Whether the state of the upload is to be asked for again: the failure passes, the address has expired or is that of a hub that was started again, or
/// another upload of the same content was faster.
fn may_go_on(error: &Error) -> bool {
    error.is_passing() || matches!(error.status(), Some(401 | 403 | 404 | 409))
}

impl Client {
    /// An address to which a content of `size` bytes with this SHA-256 is sent. Then make a file, or a version, with its `sha256`
    /// instead of its content. None when the content is short: it is sent with the file.
    ///
    /// # Errors
    /// When it is refused, or no hub answers.
    pub async fn address_for(&self, workspace: &str, sha256: &str, size: u64) -> Result<Option<Address>, Error> {
        let wanted = json!({ "sha256": sha256, "size": size });
        self.given(self.post(&["workspaces", workspace, "uploads"], &wanted).await?)
    }

    /// How far the upload in parts of a content has come, with the address of its next part. `parts` are the SHA-256 of each [`PART`] bytes. A short content
    /// has neither. The answer to the last part comes when the hub has read the whole content: it may take a minute, and a second for each 8 MiB.
    ///
    /// # Errors
    /// When it is refused, or no hub answers in that time.
    pub async fn progress_of(
        &self,
        workspace: &str,
        sha256: &str,
        size: u64,
        parts: &[String],
    ) -> Result<(Option<Address>, Option<UploadProgress>), Error> {
        let wanted = json!({ "sha256": sha256, "size": size, "parts": parts });
        let uploads = ["workspaces", workspace, "uploads"];
        let mut answer = self.post_within(&uploads, &wanted, completed_within(size)).await?;
        let progress = match answer.get_mut("parts").map(Value::take) {
            None | Some(Value::Null) => None,
            Some(progress) => Some(
                serde_json::from_value(progress)
                    .map_err(|_| self.foreign("its progress of an upload is none".into(), None))?,
            ),
        };
        Ok((self.given(answer)?, progress))
    }

    /// The address of a file's content; none when the content is short: it is read from the file's own route.
    ///
    /// # Errors
    /// When it is refused, or no hub answers.
    pub async fn address_of(&self, workspace: &str, file_id: &str) -> Result<Option<Address>, Error> {
        self.given(self.get(&["workspaces", workspace, "files", file_id, "address"], &[]).await?)
    }

    fn given(&self, mut answer: Value) -> Result<Option<Address>, Error> {
        match answer.get_mut("request").map(Value::take) {
            None | Some(Value::Null) => Ok(None),
            Some(request) => serde_json::from_value(request)
                .map(Some)
                .map_err(|_| self.foreign("its address of a content is none".into(), None)),
        }
    }

    /// Sends a content of `length` bytes to its address. One that is there already is as good.
    ///
    /// # Errors
    /// When it is refused there, or the connection fails. A body that is a stream can be sent once, so nothing is repeated.
    pub async fn upload(&self, to: &Address, content: impl Into<reqwest::Body>, length: u64) -> Result<(), Error> {
        let response = self.transfer(to, Some((content.into(), length))).await?;
        if response.status().as_u16() == 412 {
            return Ok(());
        }
        self.accepted(response).await.map(drop)
    }

    /// Sends a content part by part, from where an earlier attempt ended, and goes on after a connection broke or the hub was started again. `bytes` opens
    /// a part, and is told how many bytes of the content are there. Parts that came stay for two days, so the same call goes on after an error.
    ///
    /// Gives false, and sends nothing, where the content is short or the hub takes it whole.
    ///
    /// # Errors
    /// When it is refused, three attempts for a part in a row failed, or no hub answers; those of `bytes`.
    pub async fn upload_in_parts<B, E, F>(
        &self,
        workspace: &str,
        (sha256, size): (&str, u64),
        parts: &[String],
        bytes: impl Fn(u64, UploadPart) -> F,
    ) -> Result<bool, E>
    where
        B: Into<reqwest::Body>,
        E: From<Error>,
        F: Future<Output = Result<B, E>>,
    {
        let mut failures = 0;
        loop {
            let (address, progress) = self.progress_of(workspace, sha256, size, parts).await?;
            let Some(UploadProgress { received, next }) = progress else { return Ok(false) };
            let (Some(to), Some(part)) = (address, next) else { return Ok(true) };
            match self.upload(&to, bytes(received, part).await?, part.size).await {
                Ok(()) => failures = 0,
                Err(error) if failures < 2 && may_go_on(&error) => {
                    tokio::time::sleep(pause(failures, error.retry_after())).await;
                    failures += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes a workspace from an archive of `length` bytes, as `GET …/export` gave it; `name` goes before the archive's. Gives the workspace.
    ///
    /// # Errors
    /// When it is refused, or the connection fails. A body that is a stream can be sent once, so nothing is repeated.
    pub async fn import(
        &self,
        query: &[(&str, &str)],
        archive: impl Into<reqwest::Body>,
        length: u64,
    ) -> Result<Value, Error> {
        let url = address::of_resource(&self.base.borrow(), &["imports"], query);
        let request = self.signed(self.untimed.post(url));
        let request = request.header("content-type", "application/x-tar").header("content-length", length);
        self.json(self.success_of(self.answer(request.body(archive)).await?)?)
    }

    /// Begins to read the content of a file: from its address, or through the hub where it has none.
    ///
    /// # Errors
    /// When it is refused, or the connection fails.
    pub async fn download(&self, workspace: &str, file_id: &str) -> Result<Response, Error> {
        match self.address_of(workspace, file_id).await? {
            Some(from) => self.accepted(self.transfer(&from, None).await?).await,
            None => self.open(&["workspaces", workspace, "files", file_id, "content"], &[]).await,
        }
    }

    /// The raw layer of both: sends the request of an address, without the token and with this content of this length in bytes. The
    /// answer has any status.
    ///
    /// # Errors
    /// When the address is none, or there is no answer.
    pub async fn transfer(&self, at: &Address, content: Option<(reqwest::Body, u64)>) -> Result<Response, Error> {
        let is_path = at.url.starts_with('/');
        let url = if is_path { address::of_path(&self.base.borrow(), &at.url) } else { at.url.clone() };
        let (Ok(method), Ok(url)) = (at.method.parse::<Method>(), Url::parse(&url)) else {
            return Err(self.foreign("its address of a content is none".into(), None));
        };
        let mut request = match content {
            Some((body, length)) => self.untimed.request(method, url).header("content-length", length).body(body),
            None => self.http.request(method, url),
        };
        for (name, value) in &at.headers {
            // The length is there already, as a client sends it.
            if !name.eq_ignore_ascii_case("content-length") {
                request = request.header(name, value.as_str().unwrap_or_default());
            }
        }
        self.send(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_completion_of_a_long_upload_may_take_as_long_as_a_slow_disk_reads_it() {
        assert_eq!([0, PART, 320 * PART].map(completed_within).map(|within| within.as_secs()), [60, 62, 700]);
    }
}
