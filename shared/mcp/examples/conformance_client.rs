//! The client under test of the conformance suite: it connects to the URL in its last argument, signs in where it has to as a person's browser does,
//! lists the tools, and calls each.
//!
//!     conformance client --command target/debug/examples/conformance_client --scenario tools_call

use async_trait::async_trait;
use buildscale_mcp::{AccountDependencies, Egress, OauthConfig, ServerConfig, ServerDependencies, Servers};
use domain::{CallId, Code, Error, WorkspaceId};
use ports::{
    KnownSecrets, Recipient, Secret, SecretRef, Secrets, ServedCall, ServedStep, ServerAccounts, ServersOf,
    SignInAnswer, SystemClock, ToolServers,
};
use reqwest::Url;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use testkit::fakes::{FakeTable, Faults};

const REDIRECT: &str = "http://127.0.0.1:8686/api/v1/mcp/callback";
/// The most sign-ins for one thing.
const SIGN_INS: usize = 3;

struct Anywhere;

impl Egress for Anywhere {
    fn client(&self, _: &str, _: bool) -> Result<reqwest::Client, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        builder.build().map_err(|error| error.to_string())
    }
}

struct Nothing;

#[async_trait]
impl Secrets for Nothing {
    async fn get(&self, _: &SecretRef, _: Recipient<'_>) -> ports::Result<Option<Secret>> {
        Ok(None)
    }
}

fn servers(url: String) -> Result<Servers, String> {
    // The scenario of a client that is registered beforehand tells its credentials.
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let named = |name: &str| context[name].as_str().map(str::to_owned);
    let oauth =
        OauthConfig { client_id: named("client_id"), client_secret: named("client_secret"), ..OauthConfig::default() };
    let config = ServerConfig { url: Some(url), allow_private: true, oauth, ..ServerConfig::default() };
    let clock = Arc::new(SystemClock);
    let accounts = AccountDependencies {
        table: Arc::new(FakeTable::new(clock.clone(), 1, Faults::none())),
        key: Arc::new(|| Ok(Secret::new("a key for the time of one scenario"))),
        clock,
        known: KnownSecrets::default(),
    };
    let (secrets, egress) = (Arc::new(Nothing), Arc::new(Anywhere));
    let host_secrets = secrets.clone();
    let parts =
        ServerDependencies { confined: None, children: None, egress, secrets, host_secrets, accounts: Some(accounts) };
    Servers::new(&BTreeMap::from([("suite".to_owned(), config)]), parts)
}

/// Follows a sign-in as a person does with a browser.
async fn sign_in(servers: &Servers, of: &ServersOf) -> Result<(), String> {
    let asked = servers.sign_in(of, "suite", REDIRECT, false).await.map_err(|error| error.message)?;
    let http = Anywhere.client(&asked.url, true)?;
    let answer = http.get(&asked.url).send().await.map_err(|error| error.to_string())?;
    let location = answer.headers().get("location").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let back = Url::parse(location).map_err(|error| error.to_string())?;
    let named = |name: &str| back.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    let answer = SignInAnswer {
        state: named("state").unwrap_or_default(),
        code: named("code"),
        error: named("error"),
        iss: named("iss"),
    };
    servers.complete(&answer).await.map(drop).map_err(|error| error.message)
}

/// Calls a tool, and agrees to all that its server asks.
async fn call(servers: &Servers, of: &ServersOf, tool: &str, args: Map<String, Value>) -> Result<(), Error> {
    let (id, mut reply) = (CallId::from_key("conformance", tool), None);
    loop {
        let call = ServedCall { id, tool: tool.to_owned(), args: args.clone(), reply, told: None };
        match servers.follow(of, call).await? {
            ServedStep::Answered(_) => return Ok(()),
            ServedStep::Samples(_) => reply = Some(Value::Null),
            ServedStep::Asks(_) => reply = Some(json!({ "action": "accept", "content": {} })),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), String> {
    let servers = servers(std::env::args().next_back().unwrap_or_default())?;
    let of = ServersOf::new(WorkspaceId::from_key("conformance", "suite"));
    let mut sign_ins = 0;
    let served = loop {
        let served = servers.tools(&of, Duration::from_secs(30)).await;
        match served.missing.first() {
            None => break served,
            Some((_, why)) if why.contains("sign in") && sign_ins < SIGN_INS => {
                sign_ins += 1;
                sign_in(&servers, &of).await?;
            }
            Some((_, why)) => return Err(why.clone()),
        }
    };
    for tool in served.tools {
        let args = match tool.name.as_str() {
            "mcp__suite__add_numbers" => Map::from_iter([("a".to_owned(), json!(5)), ("b".to_owned(), json!(3))]),
            _ => Map::new(),
        };
        while let Err(error) = call(&servers, &of, &tool.name, args.clone()).await {
            if error.code != Code::UpstreamRefused || sign_ins >= SIGN_INS {
                return Err(error.message);
            }
            sign_ins += 1;
            sign_in(&servers, &of).await?;
        }
    }
    Ok(())
}
