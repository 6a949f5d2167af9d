//! The client under test of the conformance suite: it connects to the URL in its last argument, lists the tools, and calls one.
//!
//!     conformance client --command target/debug/examples/conformance_client --scenario tools_call

use async_trait::async_trait;
use buildscale_mcp::{Egress, Parts, ServerConfig, Servers};
use domain::WorkspaceId;
use ports::{Recipient, Secret, SecretRef, Secrets, ServersOf, ToolServers};
use serde_json::{Map, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

struct Anywhere;

impl Egress for Anywhere {
    fn client(&self, _: &str, _: bool) -> Result<reqwest::Client, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder().no_proxy().build().map_err(|error| error.to_string())
    }
}

struct Nothing;

#[async_trait]
impl Secrets for Nothing {
    async fn get(&self, _: &SecretRef, _: Recipient<'_>) -> ports::Result<Option<Secret>> {
        Ok(None)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), String> {
    let url = std::env::args().next_back().unwrap_or_default();
    let config = ServerConfig { url: Some(url), allow_private: true, ..ServerConfig::default() };
    let secrets = Arc::new(Nothing);
    let parts = Parts {
        confined: None,
        children: None,
        egress: Arc::new(Anywhere),
        secrets: secrets.clone(),
        host_secrets: secrets,
    };
    let servers = Servers::new(&BTreeMap::from([("suite".to_owned(), config)]), parts)?;
    let of = ServersOf { workspace: WorkspaceId::from_key("conformance", "suite"), declared: None, tools: [].into() };
    let served = servers.tools(&of, Duration::from_secs(30)).await;
    if let Some((_, why)) = served.missing.first() {
        return Err(why.clone());
    }
    if served.tools.iter().any(|tool| tool.name == "mcp__suite__add_numbers") {
        let args = Map::from_iter([("a".to_owned(), json!(5)), ("b".to_owned(), json!(3))]);
        servers.call(&of, "mcp__suite__add_numbers", args).await.map_err(|error| error.message)?;
    }
    Ok(())
}
