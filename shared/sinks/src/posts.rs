//! The way out of webhooks of workspaces: a POST signed by Standard Webhooks, to addresses that people may name.

use crate::{address, webhook};
use async_trait::async_trait;
use domain::{Code, Error, text};
use ports::Secret;
use reqwest::{
    Client, Response,
    header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT},
};
use std::time::Duration;
use webhooks::{Post, PostAnswer, Posts};

/// How long a receiver may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Posts over HTTP. It follows no redirect, and connects to public addresses only, after name resolution, unless private ones are allowed.
pub struct HttpPosts {
    http: Client,
    allow_private: bool,
}

impl HttpPosts {
    /// With a client of its own.
    ///
    /// # Errors
    /// `INTERNAL` when there can be no HTTP client.
    pub fn new(allow_private: bool) -> Result<Self, Error> {
        Ok(Self { http: address::client(allow_private)?, allow_private })
    }
}

#[async_trait]
impl Posts for HttpPosts {
    fn check(&self, url: &str) -> Result<(), Error> {
        let checked = address::check(url, self.allow_private).map(drop);
        checked.map_err(|error| match error.code {
            Code::Forbidden => error.hint("the operator allows private networks with webhooks.allow_private"),
            _ => error,
        })
    }

    async fn post(&self, post: Post) -> Result<PostAnswer, String> {
        // The rule may have changed since the address was taken.
        let url = address::check(&post.url, self.allow_private).map_err(|error| error.message)?;
        let seconds = post.at.as_millis() / 1000;
        let sign = |secret: &Secret| webhook::signature(secret.expose(), &post.id, seconds, &post.body);
        let signatures: Vec<String> = post.secrets.iter().map(sign).collect();
        let request = self
            .http
            .post(url)
            .timeout(TIMEOUT)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, "BuildScale-Webhooks")
            .header("webhook-id", &post.id)
            .header("webhook-timestamp", seconds.to_string())
            .header("webhook-signature", signatures.join(" "))
            .body(post.body);
        let request = match &post.token {
            Some(token) => request.header("x-a2a-notification-token", token),
            None => request,
        };
        let response = request.send().await.map_err(|error| text::unreachable(&error, error.is_timeout()))?;
        // The body is not read: it is the receiver's, and may have no end.
        Ok(PostAnswer { status: response.status().as_u16(), retry_after: retry_after(&response) })
    }
}

/// The pause that an answer asks for, in seconds (RFC 9110 §10.2.3). A date there is not read.
fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}
