//! `[webhooks]`: what workspaces tell receivers.

use super::Config;
use crate::SetupError;
use ::webhooks::{HookKeys, HookSetup, RetryPace};
use ports::Secret;
use serde::Deserialize;
use sinks::HttpPosts;
use std::{sync::Arc, time::Duration};

/// `[webhooks]`
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Webhooks {
    /// The key from which the secrets of webhooks are derived, of at least 32 bytes: one per line, of which the first is for new secrets and all are
    /// good. A hub without it makes one with its first webhook, in the file `webhooks-key` of its data folder; on AWS there are no webhooks without it.
    pub secret: Option<Secret>,
    /// Whether receivers may be in private networks and on this machine.
    pub allow_private: bool,
    /// The longest pause after the first failure of a delivery, in seconds; each further pause is three times as long, up to two hours. 1 to 7200.
    pub retry_seconds: u64,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self { secret: None, allow_private: false, retry_seconds: RetryPace::default().first.as_secs() }
    }
}

impl Config {
    /// The setup of webhooks, with the configured key, or else with these of the host; none without either.
    ///
    /// # Errors
    /// [`SetupError::Config`] for a key of less than 32 bytes, and where there can be no HTTP client.
    pub fn webhooks(&self, of_host: Option<HookKeys>) -> Result<Option<HookSetup>, SetupError> {
        let Webhooks { secret, allow_private, retry_seconds } = &self.webhooks;
        let wrong = |error: domain::Error| SetupError::Config(format!("webhooks.secret: {}", error.message));
        let configured = secret.as_ref().filter(|secret| !secret.expose().trim().is_empty());
        let Some(keys) = configured.map(HookKeys::new).transpose().map_err(wrong)?.or(of_host) else { return Ok(None) };
        let no_client = |error: domain::Error| SetupError::Config(format!("webhooks: {}", error.message));
        let posts = Arc::new(HttpPosts::new(*allow_private).map_err(no_client)?);
        let first = Duration::from_secs(*retry_seconds);
        Ok(Some(HookSetup { pace: RetryPace { first, ..RetryPace::default() }, ..HookSetup::new(keys, posts) }))
    }

    /// The key that seals accounts at MCP servers on a host without a disk for one of its own: the oldest key of webhooks, so that a new one in front of
    /// it voids no account. None without one.
    pub fn accounts_key(&self) -> Option<mcp::KeySource> {
        let keys = self.webhooks.secret.as_ref()?;
        let oldest = Secret::new(keys.expose().lines().map(str::trim).rfind(|line| !line.is_empty())?);
        Some(Arc::new(move || Ok(oldest.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weak_key_is_refused_and_none_means_no_webhooks() {
        let with = |secret: &str| Config {
            webhooks: Webhooks { secret: Some(Secret::new(secret)), ..Webhooks::default() },
            ..Config::default()
        };
        assert!(Config::default().webhooks(None).is_ok_and(|setup| setup.is_none()));
        assert!(with(" ").webhooks(None).is_ok_and(|setup| setup.is_none()));
        let weak = with("hunter2").webhooks(None).err().map(|error| error.to_string());
        assert!(weak.is_some_and(|words| words.contains("webhooks.secret: ")
            && words.contains("32 bytes")
            && !words.contains("hunter2")));
        assert!(with("a key of at least thirty-two bytes in all").webhooks(None).is_ok_and(|setup| setup.is_some()));
    }

    #[test]
    fn accounts_at_servers_are_sealed_with_the_oldest_key() {
        let with = |secret: &str| {
            let webhooks = Webhooks { secret: Some(Secret::new(secret)), ..Webhooks::default() };
            let key = Config { webhooks, ..Config::default() }.accounts_key()?;
            key().ok().map(|key| key.expose().to_owned())
        };
        assert_eq!(with("new\n old \n\n").as_deref(), Some("old"));
        assert_eq!(with(" \n"), None);
        assert!(Config::default().accounts_key().is_none());
    }
}
