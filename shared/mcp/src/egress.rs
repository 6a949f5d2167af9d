//! The way out to addresses.

/// The addresses that servers may have.
pub trait Egress: Send + Sync {
    /// A client for requests to this address.
    ///
    /// # Errors
    /// The reason why it may not be reached, for people.
    fn client(&self, url: &str, allow_private: bool) -> Result<reqwest::Client, String>;
}
