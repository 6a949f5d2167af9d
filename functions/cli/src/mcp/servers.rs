//! `buildscale mcp servers`, `login` and `logout`: the MCP servers of a workspace, and sign-ins at them. The hub has the account; nothing of it comes here.

use crate::{
    client::{Client, until},
    failure::CliError,
    output::{Look, Output, one_line},
    table::Table,
    value::{number, text},
};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a sign-in is waited for: as long as the hub waits.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often it is looked for.
const LOOKED_EVERY: Duration = Duration::from_secs(1);

async fn listed(client: &Client, workspace: &str) -> Result<Vec<Value>, CliError> {
    let listed = client.get(&["workspaces", workspace, "mcp", "servers"], &[]).await?;
    Ok(listed.get("servers").and_then(Value::as_array).cloned().unwrap_or_default())
}

/// Shows the servers.
pub(super) async fn show(client: &Client, workspace: &str, out: &mut Output) -> Result<(), CliError> {
    let servers = listed(client, workspace).await?;
    if out.is_json() {
        return out.json(&json!({ "servers": servers }));
    }
    if servers.is_empty() {
        return out.notice("there are no MCP servers: /system/mcp.json declares those of a workspace");
    }
    let mut table = Table::with_whole_sentences(&["name", "state", "tools", "signed in", "reason"]);
    for server in &servers {
        let signed_in = if server["signed_in"] == true { "yes" } else { "" };
        table.row(vec![
            (one_line(text(server, "name"), 24), Some(Look::Bold)),
            (text(server, "state").replace('_', " "), None),
            (number(server, "tools").to_string(), None),
            (signed_in.to_owned(), None),
            (one_line(text(server, "reason"), 200), Some(Look::Dim)),
        ]);
    }
    table.print(out)
}

/// Shows the address for the person, and waits until the workspace has its account.
pub(super) async fn login(client: &Client, workspace: &str, server: &str, out: &mut Output) -> Result<(), CliError> {
    let begun = client.post(&["workspaces", workspace, "mcp", server, "authorize"], &json!({})).await?;
    let url = one_line(text(&begun, "authorize_url"), 4_096);
    if out.is_json() {
        return out.json(&begun);
    }
    let has_account = async || {
        let servers = listed(client, workspace).await?;
        Ok::<_, CliError>(servers.iter().any(|one| text(one, "name") == server && one["signed_in"] == true))
    };
    let had_account = has_account().await?;
    out.notice("open this address in a browser, and sign in there:")?;
    out.line(&url)?;
    out.flush()?;
    if begun["confirm"] == true {
        let server = one_line(server, 64);
        return out.notice(format_args!(
            "then give the code that the browser shows: buildscale mcp login {server} --code CODE"
        ));
    }
    if had_account {
        return out.notice("the account before is used until then");
    }
    let look = async || Ok::<_, CliError>(has_account().await?.then_some(()));
    if until(PATIENCE, LOOKED_EVERY, look).await?.is_none() {
        let reason = format!("nobody signed in at {} within 10 minutes", one_line(server, 64));
        return Err(CliError::Login { reason, hint: Some("run the command again") });
    }
    out.notice(format_args!("signed in at {}", one_line(server, 64)))
}

/// Confirms a sign-in by the code that the browser has shown.
pub(super) async fn confirm(
    client: &Client,
    workspace: &str,
    server: &str,
    code: &str,
    out: &mut Output,
) -> Result<(), CliError> {
    client.post(&["workspaces", workspace, "mcp", server, "authorize", "confirm"], &json!({ "code": code })).await?;
    match out.is_json() {
        true => out.json(&json!({ "server": server })),
        false => out.notice(format_args!("signed in at {}", one_line(server, 64))),
    }
}

/// Forgets the account.
pub(super) async fn logout(client: &Client, workspace: &str, server: &str, out: &mut Output) -> Result<(), CliError> {
    client.remove(&["workspaces", workspace, "mcp", server, "authorize"], &[]).await?;
    match out.is_json() {
        true => out.json(&json!({ "server": server })),
        false => out.notice("the account is forgotten"),
    }
}
