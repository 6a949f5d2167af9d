//! A connection to one server.

use crate::{
    bounded_reader::Bounded,
    bounds::{self, MAX_MESSAGE},
    declarations::{DeclaredServer, DeclaredTransport},
    dependencies::{Program, ServerDependencies},
    http_calls, http_failures,
    last_words::{LastWords, in_short},
    oauth::{accounts::Holder, authorized_client::AuthorizedClient, metadata::Challenge},
    server_files::ServerFile,
    server_requests::{Asker, Asks, Parked, Running, ServerRequest, page_question, question},
};
use domain::{CallId, Code, Error, FilePath, WorkspaceId};
use futures::{FutureExt, future::BoxFuture};
use ports::{Address, Listener, Probe, Recipient, RunningProgram, Secret, ServedStep, ServedTool, all_filled};
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
        ElicitationCapability, ErrorCode, FormElicitationCapability, Implementation, PaginatedRequestParams,
        ProgressNotificationParam, ProtocolVersion, SamplingCapability, UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext, RunningService, ServiceError, serve_client},
    transport::{
        StreamableHttpClientTransport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// The time of a start: programs of package managers may have to be unpacked.
const START: Duration = Duration::from_secs(60);
/// How often a call is made again because its server wanted a page opened first.
const ROUNDS: usize = 3;
/// The time of a list.
pub(crate) const LIST: Duration = Duration::from_secs(30);
/// The most pages of a list.
pub(crate) const MAX_PAGES: usize = 16;

/// A tool, and the server's own name of it.
#[derive(Clone)]
pub(crate) struct KnownTool {
    pub tool: ServedTool,
    own: String,
}

/// Our side as the server sees it: it may ask the person for whom a call runs, by a form or a page that they open, and the model of their chat.
pub(crate) struct Client {
    is_stale: Arc<AtomicBool>,
    files_are_stale: Arc<AtomicBool>,
    asks: Arc<Asks>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("buildscale", env!("CARGO_PKG_VERSION"));
        let mut able = ClientCapabilities::default();
        able.elicitation = Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::new())
                .with_url(UrlElicitationCapability::new()),
        );
        able.sampling = Some(SamplingCapability::default());
        ClientConfig::new(able, us).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let form = serde_json::to_value(requested_schema).unwrap_or_default();
                Ok(self.asks.ask(message, form).await)
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => Ok(self.asks.open(&message, &url).await),
            // Modes that later versions of the protocol may have.
            _ => Err(ErrorData::invalid_params("elicitation in another mode than form and url is not supported", None)),
        }
    }

    #[expect(deprecated, reason = "servers of the versions that are spoken here sample so")]
    async fn create_message(
        &self,
        params: rmcp::model::CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::CreateMessageResult, ErrorData> {
        let refused = || ErrorData::new(ErrorCode(-1), "the request to the model was refused", None);
        let params = serde_json::to_value(params).map_err(|_| refused())?;
        let (text, model) = self.asks.sample(&params).await.ok_or_else(refused)?;
        let content = json!({ "type": "text", "text": text });
        let message = json!({ "role": "assistant", "content": content, "model": model, "stopReason": "endTurn" });
        serde_json::from_value(message).map_err(|_| refused())
    }

    async fn on_progress(&self, at: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.asks.tell(&progress(&at));
    }

    #[expect(deprecated, reason = "servers of the versions that are spoken here log so")]
    async fn on_logging_message(
        &self,
        said: rmcp::model::LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let words = said.data.as_str().map_or_else(|| said.data.to_string(), str::to_owned);
        self.asks.tell(&words);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.is_stale.store(true, Ordering::Release);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.files_are_stale.store(true, Ordering::Release);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.files_are_stale.store(true, Ordering::Release);
    }
}

/// How far a call is, in words.
fn progress(at: &ProgressNotificationParam) -> String {
    let count = match at.total {
        Some(total) => format!("{} of {total}", at.progress),
        None => at.progress.to_string(),
    };
    at.message.as_ref().map_or_else(|| count.clone(), |message| format!("{count}: {message}"))
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct ConnectError {
    /// The reason, for people.
    pub why: String,
    /// The sign-in that the server asks for.
    pub challenge: Option<Challenge>,
}

impl From<String> for ConnectError {
    fn from(why: String) -> Self {
        Self { why, challenge: None }
    }
}

impl From<&str> for ConnectError {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// A connection. Its program ends with it.
pub(crate) struct Connection {
    pub server: String,
    pub service: RunningService<RoleClient, Client>,
    pub files: tokio::sync::Mutex<Option<Arc<[ServerFile]>>>,
    pub files_are_stale: Arc<AtomicBool>,
    asks: Arc<Asks>,
    /// The calls that wait for people.
    pub parked: Parked,
    is_stale: Arc<AtomicBool>,
    tools: tokio::sync::Mutex<Option<Arc<[KnownTool]>>>,
    errors: LastWords,
    is_outdated: Box<dyn Fn() -> bool + Send + Sync>,
    is_there: Option<Probe>,
    timeout: Duration,
    held: Option<Box<dyn Send + Sync>>,
    /// Its client, where it is reached over HTTP.
    bearing: Option<AuthorizedClient>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The end of a sandbox waits for its processes.
        let held = self.held.take();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || drop(held));
        }
    }
}

impl Connection {
    /// Connects to a server. These files do not exist for its program in the sandbox.
    ///
    /// # Errors
    /// The reason, for people.
    pub async fn start(
        parts: &ServerDependencies,
        workspace: WorkspaceId,
        name: &str,
        declared: &DeclaredServer,
        hidden: &[FilePath],
    ) -> Result<Self, ConnectError> {
        let (is_stale, files_are_stale, asks) =
            (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default(), Arc::default());
        let client = Client {
            is_stale: Arc::clone(&is_stale),
            files_are_stale: Arc::clone(&files_are_stale),
            asks: Arc::clone(&asks),
        };
        let (mut bearing, mut is_there) = (None, None);
        let known = parts.accounts.as_ref().map(|accounts| accounts.known.clone());
        let secrets = if declared.is_own { &*parts.host_secrets } else { &*parts.secrets };
        let to = |address| Recipient { workspace, address: Address::Url(address) };
        let mut is_outdated: Box<dyn Fn() -> bool + Send + Sync> = Box::new(|| false);
        let (service, held, errors) = match &declared.how {
            DeclaredTransport::Program { words, env, folder, confined, network } => {
                let address = format!("mcp://{name}.stdio");
                let filled = all_filled(secrets, to(&address), env).await?;
                let given = given(env, &filled);
                let programs = if *confined { parts.confined.as_ref() } else { parts.children.as_ref() };
                let programs = programs.ok_or("programs of servers run in a sandbox, and there is none here")?;
                let (words, folder, hidden) = (words.clone(), folder.clone(), hidden.to_vec());
                let program = Program { words, env: filled, folder, hidden, network: *network };
                let running = programs.start(workspace, program).await?;
                let RunningProgram { input, output, errors: told, is_outdated: aged, is_there: asked, end } = running;
                let errors = LastWords::read(told, &given, known);
                (is_outdated, is_there) = (aged, asked);
                let output = crate::exact_numbers::ExactLines::new(Bounded::new(output), MAX_MESSAGE);
                let transport = AsyncRwTransport::new(output, input).with_max_line_length(MAX_MESSAGE);
                let service = timeout(START, serve_client(client, transport).boxed()).await;
                (service.map(|service| service.map_err(|error| error.to_string())), Some(end), errors)
            }
            DeclaredTransport::Http { url, headers, allow_private, oauth: _ } => {
                let allow_private = *allow_private && declared.is_own;
                let http = parts.egress.client(url, allow_private)?;
                // A declared credential goes before an account.
                let signs_in = !headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
                let holder = Holder { workspace, server: name.to_owned(), url: url.clone(), allow_private };
                let account = parts.accounts.clone().filter(|_| signs_in);
                let account = account.map(|account| (account, parts.egress.clone(), holder));
                let are_stale = [Arc::clone(&is_stale), Arc::clone(&files_are_stale)];
                let client_of = AuthorizedClient::new(http, account, are_stale);
                bearing = Some(client_of.clone());
                let filled = all_filled(secrets, to(url), headers).await?;
                let errors = LastWords::none(&given(headers, &filled), known);
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.custom_headers = http_calls::as_headers(filled)?;
                config.max_sse_event_size = MAX_MESSAGE;
                config.max_json_response_size = MAX_MESSAGE;
                let transport = StreamableHttpClientTransport::with_client(client_of, config);
                let service = timeout(START, serve_client(client, transport).boxed()).await;
                (service.map(|service| service.map_err(|error| error.to_string())), None, errors)
            }
        };
        let challenge = || bearing.as_ref().and_then(AuthorizedClient::challenge);
        let service = match service {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(ConnectError { why: errors.explain(&error).await, challenge: challenge() }),
            Err(_) => {
                let why = format!("it does not answer within {} s", START.as_secs());
                return Err(ConnectError { why: errors.explain(&why).await, challenge: challenge() });
            }
        };
        let (server, timeout, tools) = (name.to_owned(), declared.timeout, tokio::sync::Mutex::default());
        let (files, parked) = (tokio::sync::Mutex::default(), Parked::default());
        Ok(Self {
            server,
            service,
            files,
            files_are_stale,
            asks,
            parked,
            is_stale,
            tools,
            errors,
            is_outdated,
            is_there,
            timeout,
            held,
            bearing,
        })
    }

    /// The sign-in that the server has asked for since the connection was made.
    pub fn challenge(&self) -> Option<Challenge> {
        self.bearing.as_ref()?.challenge()
    }

    pub fn is_over(&self) -> bool {
        self.service.is_closed() || self.service.is_transport_closed()
    }

    /// Whether its program is still there. One on another machine is asked: its end may not have reached this process yet.
    pub async fn is_there(&self) -> bool {
        match &self.is_there {
            Some(is_there) => is_there().await,
            None => !self.is_over(),
        }
    }

    /// Whether its program has to be started again to see the present files.
    pub fn is_outdated(&self) -> bool {
        (self.is_outdated)()
    }

    /// Its tools; asked again when the server has said that they have changed.
    ///
    /// # Errors
    /// The reason, for people.
    pub async fn tools(&self) -> Result<Arc<[KnownTool]>, String> {
        let mut kept = self.tools.lock().await;
        // Before they are asked for: a change meanwhile is another one.
        if self.is_stale.swap(false, Ordering::AcqRel) {
            // Gone also where the list fails now: the next use asks again.
            *kept = None;
        }
        if let Some(tools) = kept.as_ref() {
            return Ok(tools.clone());
        }
        let tools: Arc<[KnownTool]> = match timeout(LIST, self.list()).await {
            Ok(Ok(tools)) => tools.into(),
            Ok(Err(error)) => {
                let why = self.errors.without_secrets(&error.to_string());
                return Err(format!("it lists no tools: {}", in_short(&why)));
            }
            Err(_) => return Err(format!("it lists no tools within {} s", LIST.as_secs())),
        };
        *kept = Some(tools.clone());
        Ok(tools)
    }

    async fn list(&self) -> Result<Vec<KnownTool>, ServiceError> {
        let (peer, mut found, mut cursor) = (self.service.peer().clone(), BTreeMap::new(), None);
        for _ in 0..MAX_PAGES {
            let asked = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let page = peer.list_tools(asked).boxed().await?;
            for tool in &page.tools {
                if found.len() < bounds::MAX_TOOLS
                    && let Some(served) = bounds::tool(&self.server, tool)
                {
                    // Of two with the same name the first counts.
                    let known = KnownTool { own: tool.name.to_string(), tool: served };
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

    /// Begins a call of a tool. One that the server refuses until a person has opened a page is made again then: a refused call had no effect.
    pub fn begin(&self, tool: &KnownTool, args: Map<String, Value>) -> Running {
        let params = CallToolRequestParams::new(tool.own.clone()).with_arguments(args);
        let peer = self.service.peer().clone();
        let call = |asker: Asker| async move {
            let mut answer = peer.call_tool(params.clone()).await;
            for _ in 0..ROUNDS {
                match &answer {
                    Err(ServiceError::McpError(refusal)) if asker.opens(refusal).await => {}
                    _ => break,
                }
                answer = peer.call_tool(params.clone()).await;
            }
            answer
        };
        self.asks.running(|asker| call(asker).boxed())
    }

    /// Has a call listen to what the server says from now on.
    pub fn listen(&self, running: &Running, told: Option<Listener>) {
        self.asks.listen(running, told);
    }

    /// Follows a call until it is answered or its server asks a person; then it waits under its id. Without an id there is nobody to ask.
    ///
    /// # Errors
    /// Those of [`ports::ToolServers::call`].
    pub async fn follow(&self, mut running: Running, id: Option<CallId>) -> Result<ServedStep, Error> {
        let is_up = sleep(self.timeout);
        tokio::pin!(is_up);
        loop {
            let ask = tokio::select! {
                biased;
                result = &mut running.answer => {
                    return match result {
                        Ok(result) => Ok(ServedStep::Answered(bounds::answer(result))),
                        Err(error) => Err(self.failed(error).await),
                    };
                }
                Some(ask) = running.asks.recv() => ask,
                () = &mut is_up => return Err(self.is_late()),
            };
            let asked = match &ask.wanted {
                ServerRequest::Form { message, form } => ServedStep::Asks(question(&self.server, message, form)),
                ServerRequest::Page { message, url } => ServedStep::Asks(page_question(&self.server, message, url)),
                ServerRequest::Sample(request) => ServedStep::Samples(request.clone()),
            };
            let Some(id) = id else {
                let _ = ask.reply.send(Value::Null);
                continue;
            };
            self.parked.park(id, running, ask.reply);
            return Ok(asked);
        }
    }

    /// The answer to a request that asks nobody.
    ///
    /// # Errors
    /// Those of [`ports::ToolServers::call`].
    pub async fn in_time<T>(&self, request: BoxFuture<'_, Result<T, ServiceError>>) -> Result<T, Error> {
        match timeout(self.timeout, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.failed(error).await),
            Err(_) => Err(self.is_late()),
        }
    }

    async fn failed(&self, error: ServiceError) -> Error {
        let server = &self.server;
        if let ServiceError::McpError(refusal) = error {
            let code =
                if refusal.code == ErrorCode::INVALID_PARAMS { Code::InvalidArgument } else { Code::Unprocessable };
            let words = bounds::printable(&refusal.message, 2_000);
            return Error::new(code, format!("the MCP server {server} refuses the call: {words}"));
        }
        if let Some(told) = http_failures::explain(server, &error) {
            return told;
        }
        let why = self.errors.explain(&error.to_string()).await;
        Error::new(Code::UpstreamUnavailable, format!("the MCP server {server} is gone: {why}"))
            .hint("the call may have taken effect or not: look before you make it again")
    }

    fn is_late(&self) -> Error {
        let (server, seconds) = (&self.server, self.timeout.as_secs());
        Error::new(Code::Timeout, format!("the MCP server {server} does not answer within {seconds} s"))
            .hint("the call may have taken effect or not: look before you make it again")
    }
}

/// The values that have secrets in them: those that their declaration does not have so.
fn given(declared: &BTreeMap<String, String>, filled: &BTreeMap<String, String>) -> Vec<Secret> {
    let other = filled.iter().filter(|(name, value)| declared.get(*name) != Some(*value));
    other.map(|(_, value)| Secret::new(value.as_str())).collect()
}
