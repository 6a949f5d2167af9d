//! The way out: one POST to a receiver.

use async_trait::async_trait;
use domain::{Error, Timestamp};
use ports::Secret;
use std::time::Duration;

/// A POST to a receiver.
#[derive(Clone, Debug)]
pub struct Post {
    /// The address.
    pub url: String,
    /// `webhook-id`.
    pub id: String,
    /// `webhook-timestamp`.
    pub at: Timestamp,
    /// The body.
    pub body: Vec<u8>,
    /// The secrets that sign it, the newest first.
    pub secrets: Vec<Secret>,
    /// A text of the receiver's own, `X-A2A-Notification-Token`.
    pub token: Option<String>,
}

/// The answer of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostAnswer {
    /// The status of HTTP.
    pub status: u16,
    /// The pause that it asks for.
    pub retry_after: Option<Duration>,
}

/// Posts to receivers. The addresses come from people, so it refuses those that only the host can reach.
#[async_trait]
pub trait Posts: Send + Sync {
    /// Whether this address may be posted to.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what is no address of HTTP, `FORBIDDEN` for one in a private network.
    fn check(&self, url: &str) -> Result<(), Error>;

    /// Posts once, and follows no redirect.
    ///
    /// # Errors
    /// The reason, without the address, where nothing was answered in time.
    async fn post(&self, post: Post) -> Result<PostAnswer, String>;
}
