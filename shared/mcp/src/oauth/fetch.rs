//! Requests to issuers. Their addresses come from a server's own words, so each is checked as the server's address is, and each answer is bounded.

use crate::Egress;
use reqwest::{RequestBuilder, StatusCode, Url};
use serde_json::Value;
use std::time::Duration;

/// The time of a request.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The longest answer, in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// The way to issuers.
#[derive(Clone, Copy)]
pub(crate) struct Fetch<'a> {
    pub egress: &'a dyn Egress,
    /// Whether addresses may be private, and without TLS.
    pub allow_private: bool,
}

/// An answer: its status, and its body as far as that is JSON.
pub(crate) struct Answered {
    pub status: StatusCode,
    pub body: Value,
}

impl Answered {
    /// The error code of an issuer (RFC 6749 §5.2), for people.
    pub fn refusal(&self) -> String {
        let code: String = self.body["error"].as_str().unwrap_or_default().chars().take(64).collect();
        let is_plain = !code.is_empty() && code.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_plain { format!("{code} ({})", self.status.as_u16()) } else { format!("status {}", self.status.as_u16()) }
    }
}

impl Fetch<'_> {
    /// A client for an address, if it may be reached.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn client(&self, url: &str) -> Result<reqwest::Client, String> {
        let is_safe = Url::parse(url).is_ok_and(|url| url.scheme() == "https") || self.allow_private;
        if !is_safe {
            return Err("an address of its sign-in is not encrypted: it has to begin with https".into());
        }
        self.egress.client(url, self.allow_private)
    }

    /// A document; none where there is none.
    ///
    /// # Errors
    /// The reason, for people.
    pub async fn document(&self, url: &Url) -> Result<Option<Value>, String> {
        let request = self.client(url.as_str())?.get(url.clone()).header("accept", "application/json");
        let answered = self.send(request).await?;
        Ok((answered.status.is_success() && answered.body.is_object()).then_some(answered.body))
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The reason, for people. It names no address with its parameters.
    pub async fn send(&self, request: RequestBuilder) -> Result<Answered, String> {
        let failed =
            |error: reqwest::Error| format!("an address of its sign-in does not answer: {}", error.without_url());
        let mut response = request.timeout(TIMEOUT).send().await.map_err(failed)?;
        let (status, mut body) = (response.status(), Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err("an answer of its sign-in is too long".into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answered { status, body: serde_json::from_slice(&body).unwrap_or_default() })
    }
}
