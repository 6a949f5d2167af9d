//! The addresses that providers may have.

/// Limits the addresses that providers of flows may reach. The author of a flow must not make the host connect to services that only the
/// host can reach.
pub trait EgressPolicy: Send + Sync {
    /// Checks whether a provider may have this address.
    ///
    /// # Errors
    /// The reason why not, in words and without the address.
    fn check(&self, url: &str) -> Result<(), String>;
    /// The builder of a client that cannot reach forbidden addresses, after name resolution.
    fn client(&self, builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder;
}
