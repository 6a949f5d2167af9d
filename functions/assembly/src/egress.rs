//! The addresses that providers of flows may reach from this host.

use sinks::address;

/// Public addresses only, unless the configuration allows private ones.
pub struct HostEgress {
    /// Whether private ones are allowed.
    pub allow_private: bool,
}

impl models::EgressPolicy for HostEgress {
    fn check(&self, url: &str) -> Result<(), String> {
        match address::check(url, self.allow_private) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.message),
        }
    }

    fn client(&self, builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
        if self.allow_private { builder } else { address::public_only(builder) }
    }
}
