//! The destinations of observers of tasks: files of JSON lines, webhooks, and OTLP over HTTP (spec 002 §6, `plugins.yaml`); and the
//! collector of the host, which has the turns of chats, too. Also the way out of webhooks of workspaces.
//!
//! The engine knows sinks as a trait ([`telemetry::Sink`]); this crate has those that need files and HTTP. Their facts are free of secrets
//! already; secrets of their own (a webhook's key, a header) are named in `plugins.yaml` by reference and looked up when they are needed.

pub mod address;
mod answer;
mod config;
mod json_lines;
mod otlp;
mod posts;
mod webhook;

pub use address::host_of;
pub use json_lines::JsonLines;
pub use otlp::{Otlp, OtlpOptions, TurnLog};
pub use posts::HttpPosts;
pub use webhook::{Webhook, signature};

use config::Config;
use domain::{Code, Error, WorkspaceId, task::FlowRef};
use flow::manifest::{Plugin, PluginKind};
use ports::{Address, Clock, Recipient, Secret, SecretRef, Secrets};
use reqwest::Url;
use std::{path::PathBuf, sync::Arc};
use telemetry::{Sink, SinkError, Sinks};

/// Opens the sinks that flows list in `plugins.yaml`.
pub struct PluginSinks {
    /// The folder of files of JSON lines, with one folder in it per workspace; none where no disk outlives the process.
    pub directory: Option<PathBuf>,
    /// Whether sinks may be reached in private networks and on this machine.
    pub allow_private: bool,
    /// Secrets of sinks.
    pub secrets: Arc<dyn Secrets>,
    /// The time, which signatures have in them.
    pub clock: Arc<dyn Clock>,
}

impl Sinks for PluginSinks {
    fn open(&self, workspace: WorkspaceId, flow: &FlowRef, plugin: &Plugin) -> Result<Arc<dyn Sink>, Error> {
        let config = Config { of: &plugin.id, values: &plugin.config };
        config.only(&plugin.kind.keys().iter().map(|(name, ..)| *name).collect::<Vec<_>>())?;
        Ok(match plugin.kind {
            PluginKind::JsonLines => {
                let folder = self.directory.as_ref().map(|directory| directory.join(workspace.to_string()));
                let folder = folder.ok_or_else(|| {
                    Error::new(Code::Unprocessable, "this server keeps no files of observers")
                        .hint("observe by webhook or otlp")
                })?;
                let path = config.text("path")?.unwrap_or_else(|| format!("{}.jsonl", flow.name));
                let sink = JsonLines::new(&folder, &path)?;
                Arc::new(match config.number("max_bytes")? {
                    Some(most) => sink.at_most(most),
                    None => sink,
                })
            }
            PluginKind::Webhook => {
                let http = address::client(self.allow_private)?;
                let url = address::check(&config.wanted("url")?, self.allow_private)?;
                let secret = config.secret("secret")?.map(|reference| self.named(workspace, &url, reference));
                Arc::new(Webhook::new(http, url, secret, self.clock.clone()))
            }
            PluginKind::Otlp => {
                let http = address::client(self.allow_private)?;
                let endpoint = address::check(&config.wanted("endpoint")?, self.allow_private)?;
                let mut headers = Vec::new();
                for (name, reference) in config.secrets("headers")? {
                    headers.push((name, self.named(workspace, &endpoint, reference)));
                }
                let options = OtlpOptions {
                    headers,
                    service_name: config.text("service_name")?.unwrap_or_else(|| OtlpOptions::default().service_name),
                    content: config.flag("content")?,
                };
                Arc::new(Otlp::new(http, &endpoint, options))
            }
        })
    }
}

/// A secret of a sink.
#[derive(Clone)]
pub enum Credential {
    /// It is looked up each time that it is needed, so that it can be changed.
    Named(Named),
    /// It was given.
    Given(Secret),
}

/// A secret of the host, for a flow of a workspace, on its way to an address.
#[derive(Clone)]
pub struct Named {
    secrets: Arc<dyn Secrets>,
    reference: SecretRef,
    workspace: WorkspaceId,
    url: Url,
}

impl Credential {
    async fn get(&self) -> Result<Secret, SinkError> {
        match self {
            Self::Given(secret) => Ok(secret.clone()),
            Self::Named(Named { secrets, reference, workspace, url }) => {
                let to = Recipient { workspace: *workspace, address: Address::Url(url.as_str()) };
                match secrets.get(reference, to).await {
                    Ok(Some(secret)) => Ok(secret),
                    Ok(None) => Err(SinkError::for_now(format!("{reference} is empty or missing"))),
                    Err(error) => Err(SinkError::for_now(format!("{reference} cannot be looked up: {error}"))),
                }
            }
        }
    }
}

impl PluginSinks {
    fn named(&self, workspace: WorkspaceId, url: &Url, reference: SecretRef) -> Credential {
        Credential::Named(Named { secrets: self.secrets.clone(), reference, workspace, url: url.clone() })
    }
}

/// A collector of OTLP over HTTP, as a configuration names it.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    /// Its address; none where nothing is sent.
    pub endpoint: Option<String>,
    /// Headers of requests to it, as `name=value,name=value`, with codes such as `%20` for what a header's list cannot have.
    pub headers: Option<Secret>,
    /// `service.name`.
    pub service_name: Option<String>,
    /// Whether the texts of people and agents are sent, too.
    pub content: bool,
}

/// The sink of a collector; none where there is no endpoint. The standard variables, `OTEL_EXPORTER_OTLP_ENDPOINT` and those that
/// go with it, go before what is `configured`. The operator, who sets either of them, may name any address.
///
/// # Errors
/// The endpoint is no address of HTTP.
pub fn collector(environment: &[(String, String)], configured: &Collector) -> Result<Option<Arc<Otlp>>, Error> {
    let get = |name: &str| {
        let found = environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
        found.filter(|value| !value.is_empty())
    };
    let Some(endpoint) = get("OTEL_EXPORTER_OTLP_ENDPOINT").or(configured.endpoint.as_deref()) else {
        return Ok(None);
    };
    let endpoint = address::check(endpoint, true)?;
    let mut options = OtlpOptions::default();
    if let Some(name) = get("OTEL_SERVICE_NAME").or(configured.service_name.as_deref()) {
        options.service_name = name.to_owned();
    }
    options.content = match get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT") {
        Some(wanted) => wanted == "true",
        None => configured.content,
    };
    let headers = get("OTEL_EXPORTER_OTLP_HEADERS").or(configured.headers.as_ref().map(Secret::expose));
    for pair in headers.unwrap_or_default().split(',') {
        if let Some((name, value)) = pair.split_once('=') {
            let value = Secret::new(config::percent_decoded(value.trim()));
            options.headers.push((name.trim().to_lowercase(), Credential::Given(value)));
        }
    }
    Ok(Some(Arc::new(Otlp::new(address::client(true)?, &endpoint, options))))
}
