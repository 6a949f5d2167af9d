//! The servers of a workspace as people see them, and their sign-ins.

use crate::{
    Servers,
    bounds::printable,
    declarations::{DeclaredTransport, OauthConfig},
    oauth::{
        accounts::{AccountDependencies, Holder, Registered, find},
        metadata::Issuer,
    },
    servers::{Answers, NOT_YET},
    workspace_server::WorkspaceServer,
};
use async_trait::async_trait;
use domain::{Code, Error, WorkspaceId};
use ports::{
    Address, Recipient, Secret, ServerAccounts, ServerState, ServerTransport, ServerView, ServersOf, SignIn,
    SignInAnswer, SignedIn, filled,
};
use reqwest::Url;
use std::{sync::Arc, time::Duration};

/// The longest address of a stranger that is shown, in characters.
const MAX_SHOWN: usize = 200;

impl Servers {
    fn accounts(&self) -> Result<&AccountDependencies, Error> {
        self.0.parts.accounts.as_ref().ok_or_else(|| {
            Error::new(Code::Unprocessable, "this installation keeps no accounts at MCP servers").hint(
                "declare a header with a token by reference instead: \"Authorization\": \"Bearer ${secret:NAME}\"",
            )
        })
    }

    /// A server that can be signed in at, and its account's place.
    async fn account_of(&self, of: &ServersOf, server: &str) -> Result<(Arc<WorkspaceServer>, Holder), Error> {
        let (workspace_servers, faults) = self.0.workspace_servers(of).await;
        let Some(workspace_server) =
            workspace_servers.into_iter().find(|workspace_server| workspace_server.name == server)
        else {
            let shown: String = server.chars().take(64).collect();
            let fault = faults.into_iter().find(|(name, _)| name == server);
            let error = Error::not_found("MCP server", format!("{shown:?} here"));
            return Err(match fault {
                Some((_, why)) => error.hint(why),
                None => error.hint("/system/mcp.json declares the servers of a workspace"),
            });
        };
        match workspace_server.holder() {
            Some(holder) => Ok((workspace_server, holder)),
            None => Err(Error::new(
                Code::Unprocessable,
                format!("the MCP server {server} is a program: it gets its credentials in its variables"),
            )),
        }
    }

    /// The client of a server at its issuer.
    async fn registered(&self, workspace_server: &WorkspaceServer, issuer: &Issuer) -> Result<Registered, Error> {
        let DeclaredTransport::Http { url, oauth, .. } = &workspace_server.declared.how else {
            return Ok(Registered::default());
        };
        check_issuer(oauth, url, issuer)?;
        let parts = &self.0.parts;
        let secrets = if workspace_server.declared.is_own { &*parts.host_secrets } else { &*parts.secrets };
        // The server names the issuer, and may be granted less than the issuer.
        let to = Recipient { workspace: workspace_server.workspace, address: Address::Url(&issuer.token_endpoint) };
        let client_secret = match &oauth.client_secret {
            Some(text) => {
                let secret = filled(secrets, to, "oauth.client_secret", text).await;
                Some(Secret::new(secret.map_err(|why| Error::new(Code::Unprocessable, why))?))
            }
            None => None,
        };
        Ok(Registered { client_id: oauth.client_id.clone(), client_secret, scope: oauth.scope.clone() })
    }
}

#[async_trait]
impl ServerAccounts for Servers {
    async fn servers(&self, of: &ServersOf, wait: Duration) -> Vec<ServerView> {
        let (workspace_servers, _) = self.0.workspace_servers(of).await;
        let Answers { found, mut missing } = self.0.all(of, None, wait).await;
        let mut views = Vec::new();
        for workspace_server in workspace_servers {
            let tools = found
                .iter()
                .find(|found| found.workspace_server.name == workspace_server.name)
                .map(|found| found.tools.len());
            let at = missing.iter().position(|(name, _)| *name == workspace_server.name);
            let reason = at.map(|at| missing.swap_remove(at).1);
            let state = match (tools, &reason) {
                (Some(_), _) => ServerState::Connected,
                (None, _) if workspace_server.challenge().is_some() => ServerState::NeedsSignIn,
                (None, Some(why)) if why == NOT_YET => ServerState::Connecting,
                (None, _) => ServerState::Failed,
            };
            let signed_in = match (workspace_server.holder(), &self.0.parts.accounts) {
                (Some(holder), Some(accounts)) => accounts.has(&holder).await.unwrap_or(false),
                _ => false,
            };
            let transport = match workspace_server.declared.how {
                DeclaredTransport::Program { .. } => ServerTransport::Stdio,
                DeclaredTransport::Http { .. } => ServerTransport::Http,
            };
            let (name, tools) = (workspace_server.name.clone(), tools.unwrap_or(0));
            views.push(ServerView { name, transport, state, reason, signed_in, tools });
        }
        let faults = missing.into_iter().map(|(name, why)| {
            let (transport, state) = (ServerTransport::None, ServerState::Failed);
            ServerView { name, transport, state, reason: Some(why), signed_in: false, tools: 0 }
        });
        views.extend(faults);
        views.sort_by(|a, b| a.name.cmp(&b.name));
        views
    }

    async fn sign_in(&self, of: &ServersOf, server: &str, redirect: &str, confirms: bool) -> Result<SignIn, Error> {
        let accounts = self.accounts()?;
        let (workspace_server, holder) = self.account_of(of, server).await?;
        workspace_server.look_for_account(&self.0.parts).await;
        if workspace_server.challenge().is_none()
            && !accounts.has(&holder).await?
            && workspace_server.tools(&self.0.parts).await.is_ok()
        {
            let message = format!("the MCP server {server} needs no sign-in: it answers without one");
            return Err(Error::new(Code::Unprocessable, message));
        }
        let (egress, challenge) = (&*self.0.parts.egress, workspace_server.challenge().unwrap_or_default());
        let found = find(egress, &holder, &challenge).await?;
        let registered = self.registered(&workspace_server, &found.issuer).await?;
        accounts.begin(egress, holder, found, registered, (redirect, confirms)).await
    }

    async fn complete(&self, answer: &SignInAnswer) -> Result<SignedIn, Error> {
        let (Holder { workspace, server, .. }, code) = self.accounts()?.complete(&*self.0.parts.egress, answer).await?;
        if code.is_none()
            && let Some(workspace_server) = self.0.workspace_server(workspace, &server)
        {
            workspace_server.begin_anew().await;
        }
        Ok(SignedIn { workspace, server, code })
    }

    async fn confirm(&self, of: &ServersOf, server: &str, code: &str) -> Result<(), Error> {
        let accounts = self.accounts()?;
        let (workspace_server, holder) = self.account_of(of, server).await?;
        accounts.confirm(&holder, code).await?;
        workspace_server.begin_anew().await;
        Ok(())
    }

    async fn sign_out(&self, of: &ServersOf, server: &str) -> Result<(), Error> {
        let accounts = self.accounts()?;
        let (workspace_server, holder) = self.account_of(of, server).await?;
        accounts.forget(&holder).await?;
        workspace_server.begin_anew().await;
        Ok(())
    }

    async fn forget(&self, workspace: WorkspaceId) -> Result<(), Error> {
        self.0.disconnect(workspace);
        match &self.0.parts.accounts {
            Some(accounts) => accounts.forget_all(workspace).await,
            None => Ok(()),
        }
    }
}

/// Refuses a client at an issuer where it is not registered. A server says by itself which issuer it has, and a hostile one would say its own.
fn check_issuer(oauth: &OauthConfig, server: &str, issuer: &Issuer) -> Result<(), Error> {
    let refused = |message: String, hint: &str| Err(Error::new(Code::Unprocessable, message).hint(hint));
    let url = |text: &str| Url::parse(text).ok();
    if let Some(declared) = &oauth.issuer {
        let named = url(&issuer.issuer);
        return match named.is_some() && named == url(declared) {
            true => Ok(()),
            false => refused(
                format!(
                    "the MCP server names the issuer {}, and not the one of its declaration",
                    shown(&issuer.issuer)
                ),
                "correct oauth.issuer if the server has another issuer now",
            ),
        };
    }
    let host = |text: &str| url(text).and_then(|url| url.host_str().map(str::to_owned));
    let gives = host(&issuer.token_endpoint);
    match oauth.client_secret.is_none() || (gives.is_some() && gives == host(server)) {
        true => Ok(()),
        false => refused(
            format!("oauth.client_secret would go to {}, which the MCP server names", shown(&issuer.token_endpoint)),
            "name the issuer where the client is registered in oauth.issuer",
        ),
    }
}

/// An address of a stranger, for people.
fn shown(address: &str) -> String {
    printable(address, MAX_SHOWN)
}
