//! `buildscale auth status`: the credential that is used, and its rights in each workspace.

use crate::{
    args::Connection,
    client::Client,
    failure::{CliError, Exit},
    login::{Saved, Store, has_token},
    output::{Look, Output, one_line},
    table::{Table, moment},
    value::{list, text},
};
use domain::Timestamp;
use serde_json::{Value, json};

/// More workspaces than anybody looks through.
const MOST: usize = 200;

/// Says which hub answers, by which credential, and the caller's role in each workspace.
pub(super) async fn show(connection: &Connection, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(connection)?;
    let workspaces = client.list(&["workspaces"], "workspaces", &[], MOST).await?;
    let mut roles = Vec::new();
    for workspace in &workspaces {
        let id = text(workspace, "workspace_id");
        // A hub for one person may have no members.
        let me = match client.get(&["workspaces", id, "members", "me"], &[]).await {
            Ok(me) => me,
            Err(failure) if failure.exit() == Exit::NotFound => Value::Null,
            Err(failure) => return Err(failure),
        };
        roles.push(json!({ "workspace_id": id, "name": text(workspace, "name"), "me": me }));
    }
    let with_token = has_token(connection);
    let login = if with_token {
        None
    } else {
        Store::of(&::client::parse_url(&connection.url)?).ok().and_then(|store| store.load().ok()?)
    };
    if out.is_json() {
        return out.json(&json!({
            "url": connection.url,
            "token": with_token,
            "login": login.as_ref().map(login_json),
            "workspaces": roles,
        }));
    }
    let with = match (with_token, &login) {
        (true, _) => "takes your token".to_owned(),
        (false, Some(login)) => format!("takes your login at {}", one_line(&login.issuer, 200)),
        (false, None) => "wants no token".to_owned(),
    };
    out.line(format_args!("{} {with}", one_line(&connection.url, 200)))?;
    if let Some(login) = &login {
        out.line(out.style().paint(Look::Dim, until(login)))?;
    }
    let mut table = Table::with_whole_sentences(&["workspace", "role", "user", "may"]);
    for role in &roles {
        let me = role.get("me").unwrap_or(&Value::Null);
        let may: Vec<&str> = list(me, "may").iter().filter_map(Value::as_str).collect();
        table.row(vec![
            (one_line(text(role, "name"), 40), Some(Look::Bold)),
            (text(me, "role").to_owned(), None),
            (text(me, "user_id").to_owned(), None),
            (may.join(", "), None),
        ]);
    }
    table.print(out)
}

/// A login for programs: all but its tokens.
fn login_json(login: &Saved) -> Value {
    json!({
        "issuer": login.issuer,
        "expires_at": login.expires_at.map(Timestamp::from_millis),
        "refreshes": login.refresh_token.is_some(),
    })
}

fn until(login: &Saved) -> String {
    match (&login.refresh_token, login.expires_at) {
        (Some(_), _) => "the login is refreshed by itself; end it with: buildscale auth logout".to_owned(),
        (None, Some(at)) => {
            let at = Timestamp::from_millis(at).to_string();
            format!("the login is good until {}; then log in again with: buildscale auth login", moment(&at))
        }
        (None, None) => "the issuer does not say how long the login is good".to_owned(),
    }
}
