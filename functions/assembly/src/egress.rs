//! The addresses that providers of flows, servers of tools, the web as a tool and calendars elsewhere may reach from this host.

use sinks::address;
use std::time::Duration;

/// How long a connection to a server of tools may take.
const CONNECT: Duration = Duration::from_secs(10);

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

impl mcp::Egress for HostEgress {
    fn client(&self, url: &str, allow_private: bool) -> Result<reqwest::Client, String> {
        self.without_redirects(url, allow_private)
    }
}

impl web::Egress for HostEgress {
    fn client(&self, url: &str, allow_private: bool) -> Result<reqwest::Client, String> {
        self.without_redirects(url, allow_private)
    }
}

impl calendars::Egress for HostEgress {
    fn client(&self, url: &str, allow_private: bool) -> Result<reqwest::Client, String> {
        self.without_redirects(url, allow_private)
    }
}

impl HostEgress {
    fn without_redirects(&self, url: &str, allow_private: bool) -> Result<reqwest::Client, String> {
        let allow_private = allow_private || self.allow_private;
        address::check(url, allow_private).map_err(|error| error.message)?;
        // The second time it is there already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).connect_timeout(CONNECT);
        let builder = if allow_private { builder } else { address::public_only(builder) };
        builder.build().map_err(|error| format!("there is no HTTP client: {error}"))
    }
}
