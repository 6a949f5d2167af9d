//! The servers of tools of a workspace, and sign-ins at those that OAuth 2.1 protects (spec 004 §11). Admins sign in: all agents of the workspace then act
//! under that account.

use crate::{
    Context,
    access::{Access, Administer, Read},
    error::Answer,
    extract::{Json, Query},
    keys::NO_STORE,
    login::LoginHeaders,
    schema,
    workspaces::InWorkspace,
};
use axum::{extract::State, response::IntoResponse};
use domain::{Code, Error, WorkspaceId};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use identity::CredentialKind;
use ports::{ServerAccounts, ServersOf, SignInAnswer, SignedIn};
use serde::Deserialize;
use std::{sync::Arc, time::Duration};
use utoipa::{IntoParams, ToSchema};

/// The place that issuers send browsers back to (RFC 6749 §3.1.2).
pub(crate) const CALLBACK: &str = "/api/v1/mcp/callback";
/// How long servers are waited for that are not connected yet.
const PATIENCE: Duration = Duration::from_secs(10);
/// A page of plain words: nothing of an answer is ever part of a document that a browser runs.
const PLAIN: (header::HeaderName, HeaderValue) =
    (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));

/// The server of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InServer {
    /// The workspace.
    #[param(value_type = uuid::Uuid)]
    workspace_id: WorkspaceId,
    /// The server, by the name that it is declared with.
    server: String,
}

/// The answer of an issuer.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Answered {
    /// The sign-in that it answers.
    state: String,
    /// The code for tokens.
    code: Option<String>,
    /// Why there is none.
    error: Option<String>,
    /// The issuer.
    iss: Option<String>,
}

fn accounts(context: &Context) -> Result<&dyn ServerAccounts, Error> {
    context
        .accounts
        .as_deref()
        .ok_or_else(|| Error::new(Code::Unprocessable, "this installation reaches no MCP servers").hint("a hub does"))
}

async fn servers_of(context: &Context, workspace: WorkspaceId, files: workspace::Access) -> Result<ServersOf, Error> {
    Ok(tools::servers_of(&context.base.workspaces.open(workspace, files).await?).await)
}

/// The MCP servers that a workspace can use, by name, and whether each answers. It connects to those that are not connected, and waits 10 seconds at most.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/mcp/servers", tag = "tools", params(InWorkspace),
    responses((status = 200, description = "All of them.", body = schema::McpServerList)))]
pub(crate) async fn list_mcp_servers(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
) -> Answer<impl IntoResponse> {
    let of = servers_of(&context, at.workspace_id, files).await?;
    let servers = accounts(&context)?.servers(&of, PATIENCE).await;
    Ok(axum::Json(schema::McpServerList { servers: servers.into_iter().map(Into::into).collect() }))
}

/// Begins a sign-in at an MCP server (OAuth 2.1). A person opens `authorize_url` in a browser; the server's issuer sends the browser back here, and the
/// workspace has its account then. Where people have accounts, `confirm` is true: the browser shows a code, and the account is the workspace's once the code is
/// sent to `…/authorize/confirm`. So nobody gives an account away who was made to open the address.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/mcp/{server}/authorize", tag = "tools", params(InServer),
    responses((status = 200, description = "The address for the person.", body = schema::McpSignIn)))]
pub(crate) async fn authorize_mcp_server(
    State(context): State<Arc<Context>>,
    Access { at, files, caller, .. }: Access<Administer, InServer>,
    headers: HeaderMap,
) -> Answer<impl IntoResponse> {
    let accounts = accounts(&context)?;
    let of = servers_of(&context, at.workspace_id, files).await?;
    let own = context.base.auth.login().resource(&LoginHeaders::by(&headers));
    let own = own.ok_or_else(|| Error::invalid("host", "the request does not name the address of this server"))?;
    // The machine's one person is the person of every browser that gets here.
    let confirm = caller.means != CredentialKind::Machine;
    let sign_in = accounts.sign_in(&of, &at.server, &format!("{own}{CALLBACK}"), confirm).await?;
    let answer = schema::McpSignIn { authorize_url: sign_in.url, expires_at: sign_in.expires_at, confirm };
    Ok(([NO_STORE], axum::Json(answer)))
}

/// The code of a completed sign-in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = McpSignInCode)]
pub(crate) struct SignInCode {
    /// The eight digits that the browser shows; blanks and lines between them have no meaning.
    #[schema(max_length = 32, example = "1234 5678")]
    code: String,
}

/// Confirms a sign-in at an MCP server by the code that the browser shows at its end. Five wrong codes end the sign-in.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/mcp/{server}/authorize/confirm", tag = "tools", params(InServer),
    request_body = SignInCode, responses((status = 204, description = "The workspace has its account.")))]
pub(crate) async fn confirm_mcp_sign_in(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Administer, InServer>,
    Json(SignInCode { code }): Json<SignInCode>,
) -> Answer<impl IntoResponse> {
    let accounts = accounts(&context)?;
    accounts.confirm(&servers_of(&context, at.workspace_id, files).await?, &at.server, &code).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Forgets the account at an MCP server. The tokens are deleted here; the server's issuer is not asked to revoke them.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/mcp/{server}/authorize", tag = "tools", params(InServer),
    responses((status = 204, description = "There is no account.")))]
pub(crate) async fn sign_out_of_mcp_server(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Administer, InServer>,
) -> Answer<impl IntoResponse> {
    let accounts = accounts(&context)?;
    accounts.sign_out(&servers_of(&context, at.workspace_id, files).await?, &at.server).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Completes a sign-in at an MCP server: the server's issuer sends the person's browser here. It needs no credential: `state` names a sign-in that an admin
/// has begun, once. Where that has to be confirmed, the answer shows the code.
#[utoipa::path(get, path = "/api/v1/mcp/callback", tag = "tools", params(Answered),
    responses((status = 200, description = "The workspace has its account, or the code is shown.", content_type = "text/plain", body = String)))]
pub(crate) async fn complete_mcp_sign_in(
    State(context): State<Arc<Context>>,
    Query(answered): Query<Answered>,
) -> Answer<impl IntoResponse> {
    let Answered { state, code, error, iss } = answered;
    let SignedIn { server, code, .. } = accounts(&context)?.complete(&SignInAnswer { state, code, error, iss }).await?;
    let said = match code {
        None => format!("Signed in at the MCP server {server}. You can close this page.\n"),
        Some(code) => {
            let (first, second) = code.split_at(code.len().min(4));
            format!(
                "Signed in at the MCP server {server}. The code is {first} {second}.\n\nGive it where you began this sign-in. Did you not begin one? Then \
                 close this page, and tell nobody the code: whoever has it acts under your account.\n"
            )
        }
    };
    Ok(([PLAIN, NO_STORE], said))
}
