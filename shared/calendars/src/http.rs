//! Requests to calendars elsewhere: bounded answers, no redirects, and errors without addresses.

use domain::{Code, Error, text};
use reqwest::{Client, Method, Response, StatusCode, header::HeaderMap};
use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest answer, in bytes.
const MOST: usize = 16 * 1024 * 1024;
/// The most that the answers of one sync have together, in bytes. All events of a sync are in memory at once.
const MOST_OF_ALL: usize = 128 * 1024 * 1024;

/// The addresses that may be reached.
pub trait Egress: Send + Sync {
    /// A client for requests to this address. It follows no redirect.
    ///
    /// # Errors
    /// The reason why it may not be reached, for people.
    fn client(&self, url: &str, allow_private: bool) -> Result<Client, String>;
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The way to a calendar for one sync.
#[derive(Debug)]
pub(crate) struct Channel {
    client: Client,
    most: usize,
    taken: AtomicUsize,
}

impl Channel {
    /// Over this client.
    pub fn new(client: Client) -> Self {
        Self { client, most: MOST_OF_ALL, taken: AtomicUsize::new(0) }
    }

    /// Sends a request as [`send`] does.
    ///
    /// # Errors
    /// Those of [`send`]; `UNPROCESSABLE` where the answers have become too long together.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Option<String>,
    ) -> Result<Reply, Error> {
        let reply = send(&self.client, method, url, headers, body).await?;
        let before = self.taken.fetch_add(reply.body.len(), Relaxed);
        if before.saturating_add(reply.body.len()) > self.most {
            return Err(too_long(self.most, "in one sync"));
        }
        Ok(reply)
    }
}

fn too_long(most: usize, by: &str) -> Error {
    Error::new(Code::Unprocessable, format!("the calendar server answers with more than {} MiB {by}", most >> 20))
}

/// Sends a request, and reads the whole answer, whatever its status is.
///
/// # Errors
/// `UPSTREAM_UNAVAILABLE` and `TIMEOUT` where there is none, `UNPROCESSABLE` for one that is too long.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    url: &str,
    headers: HeaderMap,
    body: Option<String>,
) -> Result<Reply, Error> {
    let request = client.request(method, url).timeout(TIMEOUT).headers(headers);
    let request = match body {
        Some(body) => request.body(body),
        None => request,
    };
    let mut response = request.send().await.map_err(|error| unreachable(&error))?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = read(&mut response).await?;
    Ok(Reply { status, headers, body })
}

async fn read(response: &mut Response) -> Result<String, Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&error))? {
        if bytes.len() + chunk.len() > MOST {
            return Err(too_long(MOST, "at once"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unreachable(error: &reqwest::Error) -> Error {
    let code = if error.is_timeout() { Code::Timeout } else { Code::UpstreamUnavailable };
    Error::new(code, format!("no answer of the calendar server: {}", text::unreachable(error, error.is_timeout())))
}

/// The error of an answer that is no success.
pub(crate) fn refused(reply: &Reply) -> Error {
    let status = reply.status.as_u16();
    match status {
        401 => {
            Error::new(Code::Forbidden, "the calendar server refuses the user name, the password or the token (401)")
                .hint("correct the secret or the declaration of the calendar")
        }
        403 => Error::new(Code::UpstreamRefused, "the calendar server does not allow this (403)")
            .hint("ask for the right to write to the calendar, or set new_events: false"),
        404 | 410 => {
            Error::new(Code::NotFound, format!("the calendar server has no such calendar or event ({status})"))
        }
        429 => Error::new(Code::RateLimited, "the calendar server asks for fewer requests (429)"),
        300..=399 => Error::new(Code::Unprocessable, format!("the calendar server redirects elsewhere ({status})"))
            .hint("write the address that it redirects to into the declaration"),
        500..=599 => Error::new(Code::UpstreamUnavailable, format!("the calendar server fails ({status})")),
        _ => Error::new(Code::Unprocessable, format!("the calendar server answers {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;

    #[tokio::test]
    async fn the_answers_of_a_sync_have_a_bound_together() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let router = Router::new().fallback(|| async { "x".repeat(600) });
        tokio::spawn(async move { axum::serve(listener, router).await });
        let _ = rustls::crypto::ring::default_provider().install_default();
        let channel = Channel { most: 1_500, ..Channel::new(Client::new()) };
        let ask = async || channel.send(Method::GET, &url, HeaderMap::new(), None).await;
        for _ in 0..2 {
            assert!(ask().await.is_ok_and(|reply| reply.body.len() == 600));
        }
        let refused = ask().await.map(|reply| reply.body.len());
        assert!(refused.is_err_and(|error| error.message.ends_with("in one sync")), "the third is over the bound");
    }
}
