//! A connection to one server.

use crate::{
    bounds,
    declared::{Declared, How},
    flood::Bounded,
    parts::{Parts, Program, Talk},
};
use domain::{Code, Error, FilePath, WorkspaceId};
use futures::FutureExt;
use ports::{Address, Recipient, ServedAnswer, ServedTool, all_filled};
use rmcp::{
    ClientHandler, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ErrorCode, Implementation, PaginatedRequestParams,
        ProtocolVersion,
    },
    service::{NotificationContext, RunningService, ServiceError, serve_client},
    transport::{
        StreamableHttpClientTransport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::watch,
    time::timeout,
};

/// The time of a start: programs of package managers may have to be unpacked.
const START: Duration = Duration::from_secs(60);
/// The time of a list of tools.
const LIST: Duration = Duration::from_secs(30);
/// The longest message.
const MAX_MESSAGE: usize = 4 << 20;
/// The most pages of a list.
const MAX_PAGES: usize = 16;
/// How much of the error output is kept, for the reason of a failure.
const ERRORS: usize = 1_024;
/// How long the last of it is waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A tool, and the server's own name of it.
#[derive(Clone)]
pub(crate) struct Known {
    pub tool: ServedTool,
    own: String,
}

/// Our side as the server sees it: no capability, so no question comes from there.
struct Client {
    is_stale: Arc<AtomicBool>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("buildscale", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.is_stale.store(true, Ordering::Release);
    }
}

/// A connection. Its program ends with it.
pub(crate) struct Link {
    server: String,
    service: RunningService<RoleClient, Client>,
    is_stale: Arc<AtomicBool>,
    tools: tokio::sync::Mutex<Option<Arc<[Known]>>>,
    errors: Errors,
    sees: Option<FilePath>,
    timeout: Duration,
    held: Option<Box<dyn Send + Sync>>,
}

impl Drop for Link {
    fn drop(&mut self) {
        // The end of a sandbox waits for its processes.
        let held = self.held.take();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || drop(held));
        }
    }
}

impl Link {
    /// Connects to a server.
    ///
    /// # Errors
    /// The reason, for people.
    pub async fn start(parts: &Parts, workspace: WorkspaceId, name: &str, declared: &Declared) -> Result<Self, String> {
        let is_stale = Arc::new(AtomicBool::new(false));
        let client = Client { is_stale: is_stale.clone() };
        let mut errors = Errors::none();
        let secrets = if declared.is_own { &*parts.host_secrets } else { &*parts.secrets };
        let to = |address| Recipient { workspace, address: Address::Url(address) };
        let (service, sees, held) = match &declared.how {
            How::Program { words, env, folder, confined, network } => {
                let address = format!("mcp://{name}.stdio");
                let env = all_filled(secrets, to(&address), env).await?;
                let programs = if *confined { parts.confined.as_ref() } else { parts.children.as_ref() };
                let programs = programs.ok_or("programs of servers run in a sandbox, and there is none here")?;
                let env = env.into_iter().collect();
                let program = Program { words: words.clone(), env, folder: folder.clone(), network: *network };
                let Talk { input, output, errors: told, held } = programs.start(workspace, program).await?;
                errors = Errors::read(told);
                let transport = AsyncRwTransport::new(Bounded::new(output), input).with_max_line_length(MAX_MESSAGE);
                let service = timeout(START, serve_client(client, transport).boxed()).await;
                (
                    service.map(|service| service.map_err(|error| error.to_string())),
                    confined.then(|| folder.clone()),
                    Some(held),
                )
            }
            How::Http { url, headers, allow_private } => {
                let http = parts.egress.client(url, *allow_private && declared.is_own)?;
                let headers = all_filled(secrets, to(url), headers).await?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.custom_headers = as_headers(headers)?;
                config.max_sse_event_size = MAX_MESSAGE;
                config.max_json_response_size = MAX_MESSAGE;
                let transport = StreamableHttpClientTransport::with_client(http, config);
                let service = timeout(START, serve_client(client, transport).boxed()).await;
                (service.map(|service| service.map_err(|error| error.to_string())), None, None)
            }
        };
        let service = match service {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(errors.told_with(&error).await),
            Err(_) => {
                let why = format!("it does not answer within {} s", START.as_secs());
                return Err(errors.told_with(&why).await);
            }
        };
        let (server, timeout, tools) = (name.to_owned(), declared.timeout, tokio::sync::Mutex::default());
        Ok(Self { server, service, is_stale, tools, errors, sees, timeout, held })
    }

    pub fn is_over(&self) -> bool {
        self.service.is_closed() || self.service.is_transport_closed()
    }

    /// Its tools; asked again when the server has said that they have changed.
    ///
    /// # Errors
    /// The reason, for people.
    pub async fn tools(&self) -> Result<Arc<[Known]>, String> {
        let mut kept = self.tools.lock().await;
        // Before they are asked for: a change meanwhile is another one.
        let is_stale = self.is_stale.swap(false, Ordering::AcqRel);
        if let (Some(tools), false) = (kept.as_ref(), is_stale) {
            return Ok(tools.clone());
        }
        let tools: Arc<[Known]> = match timeout(LIST, self.list()).await {
            Ok(Ok(tools)) => tools.into(),
            Ok(Err(error)) => return Err(format!("it lists no tools: {}", in_short(&error.to_string()))),
            Err(_) => return Err(format!("it lists no tools within {} s", LIST.as_secs())),
        };
        *kept = Some(tools.clone());
        Ok(tools)
    }

    async fn list(&self) -> Result<Vec<Known>, ServiceError> {
        let (peer, mut found, mut cursor) = (self.service.peer().clone(), BTreeMap::new(), None);
        for _ in 0..MAX_PAGES {
            let asked = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let page = peer.list_tools(asked).boxed().await?;
            for tool in &page.tools {
                if found.len() < bounds::MAX_TOOLS
                    && let Some(served) = bounds::tool(&self.server, tool, self.sees.as_ref())
                {
                    // Of two with the same name the first counts.
                    let known = Known { own: tool.name.to_string(), tool: served };
                    found.entry(known.tool.name.clone()).or_insert(known);
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(found.into_values().collect())
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// Those of [`ports::ToolServers::call`].
    pub async fn call(&self, tool: &Known, args: Map<String, Value>) -> Result<ServedAnswer, Error> {
        let params = CallToolRequestParams::new(tool.own.clone()).with_arguments(args);
        let server = &self.server;
        let peer = self.service.peer().clone();
        match timeout(self.timeout, peer.call_tool(params).boxed()).await {
            Ok(Ok(result)) => Ok(bounds::answer(result)),
            Ok(Err(ServiceError::McpError(refusal))) => {
                let code =
                    if refusal.code == ErrorCode::INVALID_PARAMS { Code::InvalidArgument } else { Code::Unprocessable };
                let words = bounds::printable(&refusal.message, 2_000);
                Err(Error::new(code, format!("the MCP server {server} refuses the call: {words}")))
            }
            Ok(Err(error)) => {
                let why = self.errors.told_with(&error.to_string()).await;
                Err(Error::new(Code::UpstreamUnavailable, format!("the MCP server {server} is gone: {why}"))
                    .hint("the call may have taken effect or not: look before you make it again"))
            }
            Err(_) => {
                let seconds = self.timeout.as_secs();
                Err(Error::new(Code::Timeout, format!("the MCP server {server} does not answer within {seconds} s"))
                    .hint("the call may have taken effect or not: look before you make it again"))
            }
        }
    }
}

/// The end of a program's error output.
#[derive(Clone)]
struct Errors {
    kept: Arc<Mutex<String>>,
    /// Holds true once there is no more.
    over: watch::Receiver<bool>,
}

impl Errors {
    /// Of a server that has none.
    fn none() -> Self {
        Self { kept: Arc::default(), over: watch::channel(true).1 }
    }

    /// Reads them.
    fn read(mut told: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        let (ends, over) = watch::channel(false);
        let kept = Arc::<Mutex<String>>::default();
        let into = kept.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 4_096];
            while let Ok(length @ 1..) = told.read(&mut buffer).await {
                let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_str(&String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()));
                let from = kept.len().saturating_sub(ERRORS);
                let from = kept.ceil_char_boundary(from);
                kept.drain(..from);
            }
            ends.send_replace(true);
        });
        Self { kept, over }
    }

    /// The reason, with the last words of a program that ends.
    async fn told_with(&self, why: &str) -> String {
        let _ = timeout(LAST_WORDS, self.over.clone().wait_for(|over| *over)).await;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (why, words) = (in_short(why), bounds::printable(kept.trim(), ERRORS));
        if words.is_empty() { why } else { format!("{why}; it said: {words}") }
    }
}

/// An error of the protocol's library without the names of its types.
fn in_short(error: &str) -> String {
    let rest = error.rsplit_once("] error: ").map_or(error, |(_, rest)| rest);
    bounds::printable(rest, 500)
}

fn as_headers(
    values: BTreeMap<String, String>,
) -> Result<HashMap<reqwest::header::HeaderName, reqwest::header::HeaderValue>, String> {
    let one = |(name, value): (String, String)| {
        let header = name.parse().map_err(|_| format!("{name:?} is no header"))?;
        let mut value: reqwest::header::HeaderValue =
            value.parse().map_err(|_| format!("the value of {name} is none of a header"))?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    values.into_iter().map(one).collect()
}
