//! Requests to issuers: JSON and forms, over HTTPS or to this machine, without redirects, and bounded.

use crate::failure::CliError;
use futures::StreamExt;
use reqwest::{RequestBuilder, StatusCode, Url, header};
use serde_json::Value;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest answer, in bytes.
const LONGEST: usize = 256 * 1024;

/// A client of issuers.
#[derive(Clone)]
pub(crate) struct Http {
    /// For servers elsewhere.
    away: reqwest::Client,
    /// For servers on this machine: no proxy would find them.
    here: reqwest::Client,
}

/// An answer, with the body where that is JSON.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Http {
    pub(crate) fn new() -> Result<Self, CliError> {
        let build = |here: bool| {
            let mut builder = reqwest::Client::builder()
                .user_agent(concat!("buildscale/", env!("CARGO_PKG_VERSION")))
                .timeout(PATIENCE)
                // A redirect would carry a token to another address.
                .redirect(reqwest::redirect::Policy::none());
            if here {
                builder = builder.no_proxy().tls_certs_only([]);
            }
            let unusable = |error: reqwest::Error| ::client::Error::Unusable(format!("HTTP cannot be used: {error}"));
            builder.build().map_err(unusable)
        };
        Ok(Self { away: build(false)?, here: build(true)? })
    }

    /// The client for `url`.
    fn to(&self, url: &Url) -> &reqwest::Client {
        if url.scheme() == "http" && is_private(url) { &self.here } else { &self.away }
    }

    /// Reads `url`.
    pub(crate) async fn get(&self, url: &Url) -> Result<Answer, CliError> {
        self.send(url, self.to(url).get(url.clone())).await
    }

    /// Sends a form to `url`.
    pub(crate) async fn post(&self, url: &Url, fields: &[(&str, &str)]) -> Result<Answer, CliError> {
        // As a query has it, which is as a form has it.
        let mut form = url.clone();
        form.query_pairs_mut().clear().extend_pairs(fields);
        let body = form.query().unwrap_or_default().to_owned();
        let request = self.to(url).post(url.clone()).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.send(url, request.body(body)).await
    }

    async fn send(&self, url: &Url, request: RequestBuilder) -> Result<Answer, CliError> {
        let lost = |error: reqwest::Error| CliError::Issuer { url: url_text(url), reason: ::client::causes(&error) };
        let response = request.header(header::ACCEPT, "application/json").send().await.map_err(lost)?;
        let status = response.status();
        let (mut body, mut pieces) = (Vec::new(), response.bytes_stream());
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece.map_err(lost)?);
            if body.len() > LONGEST {
                return Err(CliError::Issuer { url: url_text(url), reason: "its answer is too long".into() });
            }
        }
        Ok(Answer { status, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
    }
}

/// An address as people read it; a query may hold a secret.
pub(crate) fn url_text(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.as_str().trim_end_matches('/').to_owned()
}

/// Whether the connection is private: HTTPS, or this machine.
pub(crate) fn is_private(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
    url.scheme() == "https" || url.scheme() == "http" && is_here
}

/// The URL that an issuer or a hub names, if a token may be sent there.
pub(crate) fn endpoint(text: &str) -> Option<Url> {
    text.parse().ok().filter(|url: &Url| is_private(url) && url.has_host())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_over_https_or_to_this_machine() {
        for good in ["https://a.example/token", "http://127.0.0.1:1/token", "http://[::1]/", "http://localhost/x"] {
            assert!(endpoint(good).is_some(), "{good}");
        }
        for bad in ["http://a.example/token", "http://localhost.example/", "file:///etc/passwd", "/token", ""] {
            assert!(endpoint(bad).is_none(), "{bad}");
        }
    }
}
