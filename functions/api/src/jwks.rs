//! The keys of an issuer, over HTTPS.

use async_trait::async_trait;
use futures::StreamExt;
use identity::{FetchError, KeySource};
use std::time::Duration;

/// How long an issuer may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest set, in bytes.
const LONGEST: usize = 256 * 1024;

/// A JWK set at an address, such as `https://issuer.example/.well-known/jwks.json`.
pub struct PublishedKeys {
    url: reqwest::Url,
    http: reqwest::Client,
}

impl PublishedKeys {
    /// At `url`: `https`, or `http` on this machine.
    ///
    /// # Errors
    /// The reason, in words: it is no URL, or not `https`, or there is no client for HTTP.
    pub fn at(url: &str) -> Result<Self, String> {
        let url: reqwest::Url = url.parse().map_err(|error| format!("{url:?} is no URL: {error}"))?;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let here = host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
        if !(url.scheme() == "https" || url.scheme() == "http" && here) {
            return Err(format!("{url} is not https: anybody on the way could put their own keys in"));
        }
        // A redirect could lead away from https, and no issuer needs one here.
        let http = reqwest::Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none()).build();
        Ok(Self { url, http: http.map_err(|error| error.to_string())? })
    }
}

#[async_trait]
impl KeySource for PublishedKeys {
    async fn fetch(&self) -> Result<String, FetchError> {
        let failed = |error: reqwest::Error| FetchError(error.without_url().to_string());
        let response = self.http.get(self.url.clone()).send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(FetchError(format!("it answers {}", response.status())));
        }
        let (mut body, mut pieces) = (Vec::new(), response.bytes_stream());
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece.map_err(failed)?);
            if body.len() > LONGEST {
                return Err(FetchError("it is too long".into()));
            }
        }
        String::from_utf8(body).map_err(|_| FetchError("it is not UTF-8".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_over_https_or_from_this_machine() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        for good in ["https://a.example/jwks", "http://127.0.0.1:1/jwks", "http://[::1]:1/", "http://localhost/x"] {
            assert!(PublishedKeys::at(good).is_ok(), "{good}");
        }
        for bad in ["http://a.example/jwks", "http://localhost.example/", "file:///etc/passwd", "x", ""] {
            assert!(PublishedKeys::at(bad).is_err(), "{bad}");
        }
    }
}
