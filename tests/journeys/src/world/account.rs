//! The deployment in a real account, by `scripts/deploy`. It is talked to, and left as it was.

use super::Other;
use crate::{Client, Result};
use reqwest::Method;
use serde_json::Value;
use std::env;
use tokio::sync::watch;

/// A deployment, and the people who may use it.
#[derive(Clone)]
pub struct Account {
    client: Client,
    other: Option<(String, String)>,
}

impl Account {
    /// `BUILDSCALE_URL` and `BUILDSCALE_TOKEN`; and for journeys of two people `BUILDSCALE_OTHER_TOKEN` and `BUILDSCALE_OTHER_SUBJECT`.
    pub(super) fn of_environment() -> Result<Self> {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let needed = |name| set(name).ok_or_else(|| format!("BUILDSCALE_WORLD=account: set {name}"));
        let (url, token) = (needed("BUILDSCALE_URL")?, needed("BUILDSCALE_TOKEN")?);
        let (_, url) = watch::channel(url.parse()?);
        let other = set("BUILDSCALE_OTHER_TOKEN").zip(set("BUILDSCALE_OTHER_SUBJECT"));
        Ok(Self { client: Client::new(url, Some(&token)).guest(), other })
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(super) fn other(&self) -> Option<Other> {
        let (token, subject) = self.other.clone()?;
        Some(Other { client: self.client.with_token(Some(&token)), subject })
    }

    /// Removes the workspaces that were made.
    pub(super) async fn tidy(&self) {
        for workspace in self.client.made() {
            // Some are gone already, and others have another owner by now.
            drop(self.client.ask(Method::DELETE, &format!("/api/v1/workspaces/{workspace}"), Value::Null).await);
        }
    }
}
