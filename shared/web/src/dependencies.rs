//! The ports and settings that the web is reached with.

use ports::{Clock, Converter, Secrets};
use std::sync::Arc;

/// The addresses that may be reached.
pub trait Egress: Send + Sync {
    /// A client for requests to this address. It follows no redirect.
    ///
    /// # Errors
    /// The reason why it may not be reached, for people.
    fn client(&self, url: &str, allow_private: bool) -> Result<reqwest::Client, String>;
}

/// The ports and settings that the web is reached with.
pub struct WebDependencies {
    /// Addresses.
    pub egress: Arc<dyn Egress>,
    /// The secrets that are granted to workspaces.
    pub secrets: Arc<dyn Secrets>,
    /// Pages and documents as Markdown.
    pub converter: Arc<dyn Converter>,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
    /// Gives the signature of a request in the form of Standard Webhooks; `timestamp` is in seconds since 1970.
    pub sign: fn(secret: &str, id: &str, timestamp: i64, body: &[u8]) -> String,
}
