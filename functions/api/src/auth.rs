//! Authentication. On a laptop: every caller that reaches the loopback address is accepted. Else: callers with the hub's token, a signed
//! token, an API key, or, for one event stream, a ticket.
//!
//! The result is a [`Caller`] in the request's extensions and, where the path names a workspace, their [`CallerRole`] there;
//! handlers know no credentials.

use crate::{
    StreamContext,
    access::CallerRole,
    error::ApiError,
    login,
    login::Login,
    mcp_servers,
    membership_watch::{Looks, StreamRight},
};
use axum::{
    extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State},
    middleware::Next,
    response::Response,
};
use domain::{Code, Error, WorkspaceId};
use http::{HeaderMap, HeaderName, header, request::Parts};
use identity::{
    Action, Allowance, ApiKeys, Caller, CredentialKind, Role, Scopes, Stream, Tickets, TransferRight, Verifier,
    equal_in_constant_time,
};
use sha2::{Digest, Sha256};
use std::{
    cell::Cell,
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

/// Open to all: they tell the state and the abilities of the process, and nothing about anybody.
const OPEN: [&str; 9] = [
    "/",
    "/health",
    "/healthz",
    "/langgraph/ok",
    "/ready",
    "/openapi.json",
    "/.well-known/agent-card.json",
    login::METADATA,
    // The answer of an issuer, which only the browser of the person who signs in can bring.
    mcp_servers::CALLBACK,
];
/// The one route that the token of metrics opens.
const METRICS: &str = "/metrics";
/// Below it are the routes of LangGraph's protocol: `x-api-key` has a token there.
const LANGGRAPH: &str = "/langgraph/";
/// Whether a request is of a page of the same origin, the same site, or another site (W3C Fetch Metadata §2.4).
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// How a browser makes a request (W3C Fetch Metadata §2.2).
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// The streams that a ticket can open.
const WORKSPACE_EVENTS: &str = "/api/v1/workspaces/{workspace_id}/events";
const CHAT_EVENTS: &str = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/events";
const TASK_EVENTS: &str = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/events";
/// The contents that one can.
const CONTENTS: &str = "/api/v1/workspaces/{workspace_id}/contents/{sha256}";

/// The accepted credentials, and the limits of requests.
#[derive(Clone)]
pub struct Auth {
    door: Door,
    tickets: Tickets,
    allowance: Option<Allowance>,
    /// The limits of messages to the planner chat where requests have none.
    sessions: Option<Allowance>,
    /// The digest of the token for `/metrics`.
    metrics: Option<[u8; 32]>,
    login: Login,
    /// The looks at the memberships of people with open event streams.
    looks: Looks,
}

#[derive(Clone)]
enum Door {
    Loopback,
    Guarded {
        /// The digest of the machine's own token: two digests take the same time to compare, wherever they differ.
        token: Option<[u8; 32]>,
        verifier: Option<Arc<Verifier>>,
    },
}

/// Never shows a token.
impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.door {
            Door::Loopback => "Auth::loopback",
            Door::Guarded { verifier: None, .. } => "Auth::token",
            Door::Guarded { .. } => "Auth::accounts",
        })
    }
}

impl Auth {
    /// Every caller that reaches the address is the machine's one person; for a listener on loopback.
    ///
    /// A web page in that person's browser reaches it, too. So requests that a page of another origin makes, and those under
    /// a name that somebody else's DNS may have pointed here, are refused.
    pub fn loopback() -> Self {
        Self::with(Door::Loopback)
    }

    /// A caller that sends `Authorization: Bearer <token>` is the machine's one person. Their API keys work, too.
    pub fn token(token: &str) -> Self {
        Self::with(Door::Guarded { token: Some(digest(token)), verifier: None })
    }

    /// People with signed tokens, each in the workspaces that they are members of; and their API keys.
    pub fn accounts(verifier: Verifier) -> Self {
        Self::with(Door::Guarded { token: None, verifier: Some(Arc::new(verifier)) })
    }

    fn with(door: Door) -> Self {
        let (allowance, sessions, metrics, login, looks) = Default::default();
        Self { door, tickets: Tickets::of_this_process(), allowance, sessions, metrics, login, looks }
    }

    /// The same, and a caller with this token is the machine's one person.
    #[must_use]
    pub fn or_token(mut self, token: &str) -> Self {
        if let Door::Guarded { token: known, .. } = &mut self.door {
            *known = Some(digest(token));
        }
        self
    }

    /// The same with tickets that other processes sign and check, too.
    #[must_use]
    pub fn tickets(mut self, tickets: Tickets) -> Self {
        self.tickets = tickets;
        self
    }

    /// The same with limits for each person.
    #[must_use]
    pub fn limited(mut self, allowance: Allowance) -> Self {
        self.allowance = Some(allowance);
        self
    }

    /// The same with limits for each person's messages to the planner chat. [`Auth::limited`] comes before it, since it counts these messages
    /// among all requests that put agents to work.
    #[must_use]
    pub fn limiting_sessions(mut self, allowance: Allowance) -> Self {
        self.sessions = Some(allowance);
        self
    }

    /// The same, and a caller with this token sees the metrics of the process: for servers without a machine's own person.
    #[must_use]
    pub fn metrics_for(mut self, token: &str) -> Self {
        self.metrics = Some(digest(token));
        self
    }

    /// The same, and clients are told how to get a token.
    #[must_use]
    pub fn announcing(mut self, login: Login) -> Self {
        self.login = login;
        self
    }

    /// The same, and the membership of the person of an event stream is looked up this often while the stream lasts, where the bus tells of no end.
    #[must_use]
    pub fn looking_at_members_every(mut self, time: Duration) -> Self {
        self.looks = Looks::every(time);
        self
    }

    pub(crate) fn login(&self) -> &Login {
        &self.login
    }

    pub(crate) fn allowance(&self) -> Option<Allowance> {
        self.allowance
    }

    pub(crate) fn session_allowance(&self) -> Option<Allowance> {
        self.sessions
    }

    pub(crate) fn ticket_office(&self) -> &Tickets {
        &self.tickets
    }

    /// Whether callers need a credential.
    pub(crate) fn is_guarded(&self) -> bool {
        matches!(self.door, Door::Guarded { .. })
    }

    /// The issuer whose signed tokens are accepted.
    pub(crate) fn issuer(&self) -> Option<&str> {
        match &self.door {
            Door::Guarded { verifier: Some(verifier), .. } => Some(&verifier.trust().issuer),
            Door::Guarded { .. } | Door::Loopback => None,
        }
    }

    async fn caller(
        &self,
        context: &StreamContext,
        parts: &Parts,
        sought: Option<(WorkspaceId, Sought)>,
    ) -> Result<Caller, Error> {
        let (token, verifier) = match &self.door {
            Door::Loopback => return from_this_machine(&parts.headers, &context.origins),
            Door::Guarded { token, verifier } => (*token, verifier),
        };
        let Some(given) = bearer(&parts.headers).or_else(|| api_key(parts)) else {
            return match (ticket(parts), sought) {
                (Some(ticket), Some((workspace, sought))) => {
                    self.ticket_holder(context, ticket, workspace, sought).await
                }
                _ => Err(Error::new(Code::Unauthorized, "a token is needed")
                    .hint("send the header Authorization: Bearer <token>, with your token or API key")),
            };
        };
        let watches = self.metrics.filter(|_| parts.uri.path() == METRICS);
        if token.into_iter().chain(watches).any(|token| equal_in_constant_time(&token, &digest(given))) {
            return Ok(Caller::machine());
        }
        if ApiKeys::looks_like_one(given) {
            return context.api_keys().verify(given).await;
        }
        match verifier {
            Some(verifier) => {
                let subject = verifier.verify(given).await?;
                Ok(Caller::account(subject.user, subject.name))
            }
            None => Err(Error::new(Code::Unauthorized, "the token is not valid")
                .hint("use the token that the server was started with, or an API key")),
        }
    }

    async fn ticket_holder(
        &self,
        context: &StreamContext,
        ticket: &str,
        workspace: WorkspaceId,
        sought: Sought,
    ) -> Result<Caller, Error> {
        let now = context.clock.now();
        let (user, key, action) = match sought {
            Sought::Stream(stream) => {
                let (user, key) = self.tickets.verify(ticket, workspace, stream, now)?;
                (user, key, Action::Read)
            }
            Sought::Content(digest) => {
                let leave = self.tickets.verify_transfer(ticket, workspace, digest, now)?;
                (leave.user, None, if leave.right == TransferRight::Read { Action::Read } else { Action::Write })
            }
        };
        if let Some(key) = key
            && !context.api_keys().is_valid(key).await?
        {
            let error = Error::new(Code::Unauthorized, "the API key that asked for the ticket is not valid");
            return Err(error.hint("ask for a ticket with another credential"));
        }
        let (scopes, workspaces) = (Scopes::of([action]), Some([workspace].into()));
        Ok(Caller { user, subject: None, means: CredentialKind::Ticket(key), scopes, workspaces })
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// The token of `Bearer <token>`; the scheme in any case (RFC 9110 §11.1).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

/// The token of `x-api-key`, where clients of LangGraph send it.
fn api_key(parts: &Parts) -> Option<&str> {
    let given = parts.headers.get("x-api-key").filter(|_| parts.uri.path().starts_with(LANGGRAPH))?;
    given.to_str().ok().map(str::trim).filter(|token| !token.is_empty())
}

/// The value of `?ticket=`; no character of a ticket is ever escaped.
pub(crate) fn ticket(parts: &Parts) -> Option<&str> {
    parts.uri.query()?.split('&').find_map(|pair| pair.strip_prefix("ticket="))
}

fn from_this_machine(headers: &HeaderMap, origins: &[String]) -> Result<Caller, Error> {
    let text = |name| headers.get(name).map(|value: &http::HeaderValue| value.to_str().unwrap_or("?"));
    let host = text(header::HOST);
    if host.is_some_and(|host| !is_own_name(host)) {
        return Err(Error::new(Code::Forbidden, "this server is not known under that name")
            .hint("use its address or localhost, or start it with --auth-token"));
    }
    match text(header::ORIGIN) {
        // A browser sends no origin with an image or a form of GET, but says that another site asks (W3C Fetch Metadata).
        // A person who follows a link comes from another site, too.
        None if text(SITE) == Some("cross-site") && text(MODE) != Some("navigate") => {
            Err(Error::new(Code::Forbidden, "web pages of other sites may not call this server")
                .hint("allow the origin where the server is configured"))
        }
        None => Ok(Caller::machine()),
        Some(origin) if origins.iter().any(|allowed| allowed == origin) => Ok(Caller::machine()),
        Some(origin) if is_own_origin(origin, host) => Ok(Caller::machine()),
        Some(_) => Err(Error::new(Code::Forbidden, "web pages of other origins may not call this server")
            .hint("allow the origin where the server is configured")),
    }
}

/// Whether a `Host` is an address or `localhost`: no DNS of others has a say in those.
fn is_own_name(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if address.parse::<Ipv6Addr>().is_ok() => {
                ("localhost", port.strip_prefix(':').or((!port.is_empty()).then_some("?")))
            }
            _ => return false,
        },
        None => host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    let plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    port.is_none_or(|port| port.parse::<u16>().is_ok())
        && plain(name)
        && (name == "localhost" || name.ends_with(".localhost") || name.parse::<Ipv4Addr>().is_ok())
}

/// Whether an `Origin` is the page that this server itself would serve, directly or behind a proxy that speaks TLS.
fn is_own_origin(origin: &str, host: Option<&str>) -> bool {
    let of = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    of.is_some() && of == host
}

/// The ids in the path of a request that decide about access.
#[derive(Default)]
struct Named {
    workspace: Option<WorkspaceId>,
    sought: Option<Sought>,
}

/// The routes that a ticket opens.
#[derive(Clone, Copy)]
enum Sought {
    Stream(Stream),
    Content(domain::Sha256),
}

impl Named {
    async fn by(parts: &mut Parts) -> Self {
        let route = parts.extensions.get::<MatchedPath>().cloned();
        // A path that leads nowhere has no parameters.
        let Ok(parameters) = RawPathParams::from_request_parts(parts, &()).await else { return Self::default() };
        let value = |name| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
        let sought = match route.as_ref().map(MatchedPath::as_str) {
            Some(WORKSPACE_EVENTS) => Some(Sought::Stream(Stream::Workspace)),
            Some(CHAT_EVENTS) => value("chat_id").and_then(|id| id.parse().ok()).map(Stream::Chat).map(Sought::Stream),
            Some(TASK_EVENTS) => value("task_id").and_then(|id| id.parse().ok()).map(Stream::Task).map(Sought::Stream),
            Some(CONTENTS) => value("sha256").and_then(|digest| digest.parse().ok()).map(Sought::Content),
            _ => None,
        };
        // A text that is no id names no workspace: no caller has a role there, and the handler names the fault.
        Self { workspace: value("workspace_id").and_then(|id| id.parse().ok()), sought }
    }
}

/// The caller's role in a workspace.
pub(crate) async fn role(
    context: &StreamContext,
    caller: &Caller,
    workspace: WorkspaceId,
) -> Result<Option<Role>, Error> {
    let role = context.members().role(caller, workspace).await?;
    if role.is_some() || !caller.reaches(workspace) {
        return Ok(role);
    }
    // No member. The workspaces of an evaluation's cases have none: the person who began it may look into them, as long as they are a member where the flow is.
    let found = match context.workspaces.get(workspace).await {
        Ok(found) => found,
        Err(error) if error.code == Code::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if found.owner != caller.user || context.members().has_owners(workspace).await? {
        return Ok(None);
    }
    match context.workspaces.parent(workspace).await? {
        Some(parent) => {
            // A credential for this workspace alone says nothing about the other one.
            let person = Caller { workspaces: None, ..caller.clone() };
            if Box::pin(self::role(context, &person, parent)).await?.is_some() {
                return Ok(Some(Role::Owner));
            }
            // With the flow's workspace gone, nobody else could remove this one.
            match context.workspaces.get(parent).await {
                Err(error) if error.code == Code::NotFound => Ok(Some(Role::Owner)),
                Err(error) => Err(error),
                Ok(_) => Ok(None),
            }
        }
        // An earlier version made it.
        None => Ok(Some(Role::Owner)),
    }
}

tokio::task_local! {
    /// The workspace of the request that this task answers.
    static FOUND: Cell<Option<WorkspaceId>>;
}

/// Tells the middleware the workspace of a request whose path names none, so that its stream ends with the membership, too.
pub(crate) fn found(workspace: WorkspaceId) {
    // Outside of a request nothing streams.
    let _ = FOUND.try_with(|found| found.set(Some(workspace)));
}

/// The middleware.
pub(crate) async fn authorise(
    State(context): State<Arc<StreamContext>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if OPEN.contains(&request.uri().path()) {
        return Ok(next.run(request).await);
    }
    let (mut parts, body) = request.into_parts();
    // RFC 9112 §3.2: proxies in front may have gone by the other one.
    if parts.headers.get_all(header::HOST).iter().count() > 1 {
        return Err(Error::invalid("host", "a request has one Host header").into());
    }
    let named = Named::by(&mut parts).await;
    let caller = context.auth.caller(&context, &parts, named.workspace.zip(named.sought)).await?;
    if let Some(workspace) = named.workspace {
        let role = role(&context, &caller, workspace).await?;
        // The same error as for a workspace that does not exist.
        let role = role.ok_or_else(|| Error::not_found("workspace", workspace))?;
        parts.extensions.insert(CallerRole(role));
    }
    parts.extensions.insert(caller.clone());
    let handled = next.run(Request::from_parts(parts, body));
    let answered = FOUND.scope(Cell::new(named.workspace), async { (handled.await, FOUND.with(Cell::get)) });
    let (response, workspace) = answered.await;
    // The machine's own person is no member, and loses no workspace.
    let Some(workspace) = workspace.filter(|_| caller.means != CredentialKind::Machine) else { return Ok(response) };
    let (looks, bus) = (context.auth.looks.clone(), context.bus.clone());
    let right = StreamRight { user: caller.user, workspace, key: caller.means.key() };
    let is_allowed = move || {
        let (context, caller) = (context.clone(), caller.clone());
        // A table that does not answer takes nobody's right away.
        async move {
            let is_void = match right.key {
                Some(key) => matches!(context.api_keys().is_valid(key).await, Ok(false)),
                None => false,
            };
            !is_void && !matches!(self::role(&context, &caller, workspace).await, Ok(None))
        }
    };
    Ok(looks.while_allowed(response, right, bus, is_allowed))
}

#[cfg(test)]
mod tests;
