//! The token of the login at a hub, which is refreshed before it expires.

use super::{
    device::reason,
    http::{Http, endpoint, url_text},
    now,
    store::{Saved, Store},
};
use crate::{args::Connection, failure::CliError, output::one_line};
use ::client::{Error, TokenSource};
use futures::future::BoxFuture;
use ports::Secret;
use reqwest::Url;
use tokio::sync::Mutex;

/// The login at a hub, read when the first request needs it: commands that need no hub touch nothing.
pub(crate) struct Login {
    store: Store,
    saved: Mutex<Option<Saved>>,
}

impl Login {
    /// At this hub; none without a home, where no login can be kept.
    pub(crate) fn at(hub: &Url) -> Option<Self> {
        Store::of(hub).ok().map(|store| Self { store, saved: Mutex::default() })
    }

    /// The token for a request that is sent now; none when nobody is logged in.
    ///
    /// # Errors
    /// [`CliError::Login`] when the login is over, or its file cannot be read; [`CliError::Issuer`] when the issuer does not answer and the
    /// token has expired.
    pub(crate) async fn token(&self) -> Result<Option<Secret>, CliError> {
        let mut known = self.saved.lock().await;
        if known.is_none() {
            *known = self.store.load()?;
        }
        let Some(saved) = known.as_ref() else { return Ok(None) };
        if saved.is_due(now()) {
            match refresh(&self.store).await {
                Ok(fresh) => *known = fresh,
                // The old one is good for some moments yet.
                Err(CliError::Issuer { .. }) if !saved.is_over(now()) => {}
                Err(failure) => return Err(failure),
            }
        } else if saved.is_over(now()) {
            return Err(ended(saved, "it has expired"));
        }
        Ok(known.as_ref().map(|saved| saved.access_token.clone()))
    }
}

impl TokenSource for Login {
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async {
            let token = Self::token(self).await.map_err(|failure| Error::NoToken {
                is_passing: matches!(failure, CliError::Issuer { .. }),
                reason: failure.to_string(),
            })?;
            Ok(token.map(|token| token.expose().to_owned()))
        })
    }
}

/// Whether a token is given.
pub(crate) fn has_token(connection: &Connection) -> bool {
    connection.token.as_deref().is_some_and(|token| !token.trim().is_empty())
}

/// Gets another token, unless another process has just done so; none when the person has logged out.
async fn refresh(store: &Store) -> Result<Option<Saved>, CliError> {
    store
        .locked(async |store| {
            let Some(mut saved) = store.load()? else { return Ok(None) };
            if !saved.is_due(now()) {
                return Ok(Some(saved));
            }
            let Some((url, token)) = endpoint(&saved.token_endpoint).zip(saved.refresh_token.clone()) else {
                return Err(ended(&saved, "it cannot be refreshed"));
            };
            let fields = [
                ("grant_type", "refresh_token"),
                ("refresh_token", token.expose()),
                ("client_id", saved.client_id.as_str()),
            ];
            let answer = Http::new()?.post(&url, &fields).await?;
            if answer.status.is_server_error() || answer.status.as_u16() == 429 {
                return Err(CliError::Issuer { url: url_text(&url), reason: format!("it answers {}", answer.status) });
            }
            if !answer.status.is_success() {
                return Err(ended(&saved, &reason(&answer.body)));
            }
            if let Err(why) = saved.take_in(&answer.body, now()) {
                return Err(ended(&saved, why));
            }
            store.save(&saved)?;
            Ok(Some(saved))
        })
        .await
}

fn ended(saved: &Saved, why: &str) -> CliError {
    CliError::Login {
        reason: format!("the login at {} is over: {}", one_line(&saved.issuer, 200), one_line(why, 200)),
        hint: Some("log in again with: buildscale auth login"),
    }
}

/// Has the issuer forget the login (RFC 7009); false when it offers no such thing.
///
/// # Errors
/// [`CliError::Issuer`] when it does not answer, or refuses.
pub(crate) async fn revoke(saved: &Saved) -> Result<bool, CliError> {
    let Some(url) = saved.revocation_endpoint.as_deref().and_then(endpoint) else { return Ok(false) };
    let (token, kind) = match &saved.refresh_token {
        Some(token) => (token, "refresh_token"),
        None => (&saved.access_token, "access_token"),
    };
    let fields = [("token", token.expose()), ("token_type_hint", kind), ("client_id", saved.client_id.as_str())];
    let answer = Http::new()?.post(&url, &fields).await?;
    match answer.status.is_success() {
        true => Ok(true),
        false => Err(CliError::Issuer { url: url_text(&url), reason: format!("it answers {}", answer.status) }),
    }
}
