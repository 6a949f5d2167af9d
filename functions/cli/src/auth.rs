//! `buildscale auth`: logging in at the issuer of a hub, the login that is there, and its end.

mod status;

use crate::{
    args::{AuthArgs, AuthCommand, Connection},
    client::Client,
    failure::CliError,
    login::{Grant, Http, Store, is_private, offer_of, revoke},
    output::{Output, one_line},
};
use ::client::Error;
use serde_json::json;

/// `buildscale auth`.
pub(crate) async fn run(args: AuthArgs, out: &mut Output) -> Result<(), CliError> {
    match args.command {
        AuthCommand::Login => login(&args.connection, out).await,
        AuthCommand::Status => status::show(&args.connection, out).await,
        AuthCommand::Logout => logout(&args.connection, out).await,
    }
}

async fn login(connection: &Connection, out: &mut Output) -> Result<(), CliError> {
    let hub = ::client::parse_url(&connection.url)?;
    let store = Store::of(&hub)?;
    let offer = offer_of(&hub).await?;
    let shown = one_line(hub.as_str().trim_end_matches('/'), 200);
    if !is_private(&hub) {
        out.problem(&format!("{shown} is not encrypted: anybody on the way can read your token"), Some("use https"))?;
    }
    let grant = Grant::begin(Http::new()?, offer).await?;
    grant.tell(out)?;
    let saved = grant.wait(&hub, out).await?;
    let token = Some(saved.access_token.expose().to_owned());
    let accepted = Client::new(&Connection { token, ..connection.clone() })?;
    accepted.get(&["workspaces"], &[("limit", "1")]).await.map_err(|failure| refused(failure, &saved.issuer))?;
    store.locked(async |store| store.save(&saved)).await?;
    if out.is_json() {
        return out.json(&json!({ "url": shown, "issuer": saved.issuer, "refreshes": saved.refresh_token.is_some() }));
    }
    out.line(format_args!("logged in at {shown}"))?;
    match saved.refresh_token {
        Some(_) => Ok(()),
        None => out.notice("the issuer gave no refresh token: log in again when this one has expired"),
    }
}

/// The hub refuses a token that the issuer has just given: the two are not configured for each other.
fn refused(failure: CliError, issuer: &str) -> CliError {
    match failure {
        CliError::Client(Error::Refused(refusal)) if refusal.status == 401 => CliError::Login {
            reason: format!("{} gave a token that the hub does not accept: {}", one_line(issuer, 200), refusal.message),
            hint: Some("its operator checks auth.audience and auth.cli_scopes, and the client at the issuer"),
        },
        other => other,
    }
}

async fn logout(connection: &Connection, out: &mut Output) -> Result<(), CliError> {
    let hub = ::client::parse_url(&connection.url)?;
    let store = Store::of(&hub)?;
    let saved = store.locked(async |store| store.take()).await?;
    let shown = one_line(hub.as_str().trim_end_matches('/'), 200);
    let revoked = match &saved {
        Some(saved) => revoke(saved).await,
        None => Ok(false),
    };
    if out.is_json() {
        return out.json(
            &json!({ "url": shown, "was_logged_in": saved.is_some(), "revoked": *revoked.as_ref().unwrap_or(&false) }),
        );
    }
    if saved.is_none() {
        return out.line(format_args!("there is no login at {shown}"));
    }
    out.line(format_args!("logged out at {shown}"))?;
    match revoked {
        Ok(_) => Ok(()),
        // The tokens are gone here all the same.
        Err(failure) => out.problem(&format!("the issuer did not revoke the token: {failure}"), None),
    }
}
