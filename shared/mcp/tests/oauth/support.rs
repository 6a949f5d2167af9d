//! The network and the secrets of the tests of accounts.

use buildscale_mcp::Egress;
use ports::{Recipient, Secret, SecretRef, Secrets};
use std::time::Duration;

pub const PATIENCE: Duration = Duration::from_secs(60);
pub const REDIRECT: &str = "http://127.0.0.1:8686/api/v1/mcp/callback";

/// A network in which every address may be called.
pub struct Anywhere;

impl Egress for Anywhere {
    fn client(&self, _: &str, _: bool) -> Result<reqwest::Client, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        builder.build().map_err(|error| error.to_string())
    }
}

/// A store without a secret.
pub struct Nothing;

#[async_trait::async_trait]
impl Secrets for Nothing {
    async fn get(&self, _: &SecretRef, _: Recipient<'_>) -> ports::Result<Option<Secret>> {
        Ok(None)
    }
}
