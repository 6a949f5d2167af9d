//! `[auth]`: the issuers whose tokens are accepted, their secrets, and the limits per person.
//!
//! | world | configured |
//! |---|---|
//! | a hub for one, on loopback | nothing |
//! | a hub for one, elsewhere | `server.auth_token` |
//! | a hub for several | `secret`: it signs tokens itself (`buildscale token make`); or an issuer, as below |
//! | the cloud | `jwks_url`, `issuer`, `audience`, and a `ticket_secret` that the functions share |

use crate::SetupError;
use api::Login;
use identity::{Allowance, KeySet, Tickets, TrustedIssuer, Verifier};
use ports::{Clock, Secret};
use serde::Deserialize;
use std::sync::Arc;

/// The issuer and the audience of a hub's own tokens, unless configured.
const OURSELVES: &str = "buildscale";
/// An identity, and a token that gets further ones (OpenID Connect Core §3.1.2.1 and §11).
const LOGIN_SCOPES: [&str; 2] = ["openid", "offline_access"];

/// `[auth]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// The issuer of tokens, exactly as their `iss` spells it.
    pub issuer: Option<String>,
    /// The audience that tokens must be for, their `aud`.
    pub audience: Option<String>,
    /// The address at which the issuer publishes its keys: tokens are signed with RS256 or ES256.
    pub jwks_url: Option<String>,
    /// A secret that the issuer shares with this server, of at least 32 bytes: tokens are signed with HS256.
    pub secret: Option<Secret>,
    /// The secret that signs tickets to event streams, of at least 32 bytes; without it the process draws one at its start.
    pub ticket_secret: Option<Secret>,
    /// A token that opens `/metrics` and nothing else, for a server whose callers have accounts.
    pub metrics_token: Option<Secret>,
    /// The URL under which clients reach this server, which they are told as the resource that tokens are for (RFC 9728); without it, the
    /// address that each request names.
    pub resource: Option<String>,
    /// The public client id of the command line at the issuer, for `buildscale auth login` (RFC 8628).
    pub cli_client_id: Option<String>,
    /// The public client id of the console at the issuer, for signing in from the page: the authorization code flow with PKCE (RFC 7636), back
    /// to the address of the page.
    pub console_client_id: Option<String>,
    /// Further origins that the console may ask while it signs in: those of the issuer's endpoints, where they are not the issuer's own. The hub's
    /// alone: on AWS the parameter `ConsoleOrigins` has them.
    pub console_origins: Vec<String>,
    /// The scopes that the command line and the console ask the issuer for; `openid` and `offline_access` when none are listed.
    pub cli_scopes: Vec<String>,
    /// How many requests per minute may put agents to work, per person; 1 or more. 20 where there are accounts, else any number.
    pub requests_per_minute: Option<u32>,
    /// How many tokens per minute turns may use, per person; 1 or more. 30,000 where there are accounts, else any number.
    pub tokens_per_minute: Option<u64>,
}

/// An empty value counts as absent: templates pass empty values for parameters that were left out.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty())
}

fn given_secret(secret: Option<&Secret>) -> Option<Secret> {
    secret.map(|secret| secret.expose().trim()).filter(|text| !text.is_empty()).map(Secret::new)
}

impl Auth {
    /// Whether people sign in with tokens of their own.
    pub fn has_accounts(&self) -> bool {
        given_secret(self.secret.as_ref()).is_some() || given(self.jwks_url.as_ref()).is_some()
    }

    /// Whether every caller needs a credential: people sign in, or there is a `token`. An empty token counts as none.
    pub fn is_guarded(&self, token: Option<&Secret>) -> bool {
        self.has_accounts() || given_secret(token).is_some()
    }

    /// The issuer whose tokens are accepted.
    pub fn trust(&self) -> TrustedIssuer {
        let or_ours = |text: Option<&String>| given(text).unwrap_or(OURSELVES).to_owned();
        TrustedIssuer { issuer: or_ours(self.issuer.as_ref()), audience: or_ours(self.audience.as_ref()) }
    }

    /// The door of a hub: for its people, for callers with its `token`, or, with neither, for callers that reach a loopback address.
    ///
    /// # Errors
    /// [`SetupError::Config`] with the key: `secret` and `jwks_url` are both set; `secret` or `ticket_secret` has a key of less than 32
    /// bytes; `jwks_url` is neither HTTPS nor on this machine, or comes without `issuer` or `audience`; `resource` is no URL.
    pub fn door(&self, token: Option<&Secret>, clock: Arc<dyn Clock>) -> Result<api::Auth, SetupError> {
        let token = given_secret(token);
        let door = match (self.verifier(clock)?, &token) {
            (Some(verifier), Some(token)) => api::Auth::accounts(verifier).or_token(token.expose()),
            (Some(verifier), None) => api::Auth::accounts(verifier),
            (None, Some(token)) => api::Auth::token(token.expose()),
            (None, None) => api::Auth::loopback(),
        };
        let door = match self.allowance() {
            Some(allowance) => door.limited(allowance),
            None => door,
        };
        let door = match given_secret(self.metrics_token.as_ref()) {
            Some(token) => door.metrics_for(token.expose()),
            None => door,
        };
        let door = door.announcing(self.login()?);
        match given_secret(self.ticket_secret.as_ref()) {
            Some(secret) => {
                Ok(door.tickets(Tickets::new(&secret).map_err(|error| wrong("ticket_secret", &error.message))?))
            }
            None => Ok(door),
        }
    }

    /// The door of a function in the cloud: for people with tokens, and with tickets that all functions know. Never an open one.
    ///
    /// # Errors
    /// [`SetupError::Config`] when there is neither `secret` nor `jwks_url`, or no `ticket_secret`; those of [`Auth::door`].
    pub fn guarded_door(&self, clock: Arc<dyn Clock>) -> Result<api::Auth, SetupError> {
        if !self.has_accounts() {
            return Err(wrong("jwks_url", "no token would be accepted: set it, or auth.secret"));
        }
        if given_secret(self.ticket_secret.as_ref()).is_none() {
            return Err(wrong("ticket_secret", "the functions need one secret for all, for tickets"));
        }
        self.door(None, clock)
    }

    /// The limits of each person per minute; none for no limit.
    pub fn allowance(&self) -> Option<Allowance> {
        let usual = match self.has_accounts() {
            true => Allowance::default(),
            false if self.requests_per_minute.is_none() && self.tokens_per_minute.is_none() => return None,
            // The limit that is not set is none.
            false => Allowance { requests: u32::MAX, tokens: u64::MAX },
        };
        let requests = self.requests_per_minute.unwrap_or(usual.requests);
        Some(Allowance { requests, tokens: self.tokens_per_minute.unwrap_or(usual.tokens) })
    }

    /// The origins that the console may ask, beside its own: those of the issuer, where people sign in from the page.
    ///
    /// # Errors
    /// [`SetupError::Config`] for a value of `console_origins` that is no origin.
    pub fn console_origins(&self) -> Result<Vec<String>, SetupError> {
        let issuer = given(self.console_client_id.as_ref()).and(self.login()?.issuer);
        let mut origins: Vec<String> = issuer.as_deref().and_then(origin_of).into_iter().collect();
        for text in self.console_origins.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
            match origin_of(text).filter(|origin| origin == text) {
                Some(origin) => origins.push(origin),
                None => {
                    return Err(wrong(
                        "console_origins",
                        &format!("{text:?} is no origin such as https://issuer.example"),
                    ));
                }
            }
        }
        Ok(origins)
    }

    /// The way to a token, as clients are told. Only an issuer that publishes its keys can be asked for one.
    fn login(&self) -> Result<Login, SetupError> {
        let is_url =
            |text: &str| text.parse::<http::Uri>().is_ok_and(|url| url.scheme().is_some() && url.query().is_none());
        if let Some(resource) = given(self.resource.as_ref()).filter(|resource| !is_url(resource)) {
            return Err(wrong("resource", &format!("{resource:?} is no URL such as https://buildscale.example")));
        }
        let text = |text: Option<&String>| given(text).map(str::to_owned);
        let scopes = match self.cli_scopes.is_empty() {
            true => LOGIN_SCOPES.map(str::to_owned).to_vec(),
            false => self.cli_scopes.clone(),
        };
        Ok(Login {
            resource: text(self.resource.as_ref()),
            issuer: text(self.issuer.as_ref())
                .filter(|issuer| given(self.jwks_url.as_ref()).is_some() && is_url(issuer)),
            audience: text(self.audience.as_ref()),
            client_id: text(self.cli_client_id.as_ref()),
            console_client_id: text(self.console_client_id.as_ref()),
            scopes,
        })
    }

    fn verifier(&self, clock: Arc<dyn Clock>) -> Result<Option<Verifier>, SetupError> {
        let trust = self.trust();
        match (given_secret(self.secret.as_ref()), given(self.jwks_url.as_ref())) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(wrong("secret", "either this or jwks_url: tokens have one issuer")),
            (Some(secret), None) => match Verifier::shared(&secret, trust, clock) {
                Ok(verifier) => Ok(Some(verifier)),
                Err(error) => Err(wrong("secret", &error.message)),
            },
            (None, Some(url)) => {
                for (key, value) in [("issuer", &self.issuer), ("audience", &self.audience)] {
                    if given(value.as_ref()).is_none() {
                        return Err(wrong(key, "with jwks_url it must be set: else any token of that issuer would do"));
                    }
                }
                let keys = api::PublishedKeys::at(url).map_err(|reason| wrong("jwks_url", &reason))?;
                Ok(Some(Verifier::published(KeySet::new(Arc::new(keys)), trust, clock)))
            }
        }
    }
}

/// The scheme, the host and the port of a URL.
fn origin_of(url: &str) -> Option<String> {
    let url: http::Uri = url.parse().ok()?;
    let authority = url.authority().filter(|authority| !authority.as_str().contains('@'))?;
    Some(format!("{}://{authority}", url.scheme()?))
}

fn wrong(key: &str, reason: &str) -> SetupError {
    SetupError::Config(format!("auth.{key}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::SystemClock;

    const LONG: &str = "a secret of at least thirty-two bytes";

    fn door(text: &str, token: Option<&str>) -> Result<String, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let auth: Auth = toml::from_str(text).map_err(|error| error.to_string())?;
        let token = token.map(Secret::new);
        let door = auth.door(token.as_ref(), Arc::new(SystemClock)).map_err(|error| error.to_string())?;
        let told = format!("{door:?} {:?}", auth.allowance().map(|allowance| (allowance.requests, allowance.tokens)));
        assert_eq!(auth.is_guarded(token.as_ref()), !told.starts_with("Auth::loopback"), "{text}: {told}");
        Ok(told)
    }

    #[test]
    fn a_door_is_as_open_as_it_is_configured() {
        let check =
            |text: &str, token, expected: &str| assert_eq!(door(text, token).as_deref(), Ok(expected), "{text}");
        check("", None, "Auth::loopback None");
        check("secret = \"\"\njwks_url = \" \"\n", Some(" "), "Auth::loopback None");
        check("", Some("t"), "Auth::token None");
        check("requests_per_minute = 5", None, &format!("Auth::loopback Some((5, {}))", u64::MAX));
        check("tokens_per_minute = 7", Some("t"), &format!("Auth::token Some(({}, 7))", u32::MAX));
        check(&format!("secret = {LONG:?}"), Some("t"), "Auth::accounts Some((20, 30000))");
        let keys = "jwks_url = \"https://a.example/jwks\"\nissuer = \"https://a.example\"\naudience = \"me\"\ntokens_per_minute = 7\n";
        check(keys, None, "Auth::accounts Some((20, 7))");
    }

    #[test]
    fn settings_that_would_open_the_door_are_refused_and_no_secret_is_told() {
        for (text, key) in [
            ("secret = \"short-secret\"", "auth.secret"),
            ("ticket_secret = \"short-secret\"", "auth.ticket_secret"),
            ("jwks_url = \"https://a.example/jwks\"", "auth.issuer"),
            ("jwks_url = \"https://a.example/jwks\"\nissuer = \"a\"", "auth.audience"),
            ("jwks_url = \"http://a.example/jwks\"\nissuer = \"a\"\naudience = \"b\"", "auth.jwks_url"),
            (&format!("secret = {LONG:?}\njwks_url = \"https://a.example/jwks\""), "auth.secret"),
            ("resource = \"buildscale.example\"", "auth.resource"),
            ("requests_per_minute = -1", "invalid value"),
            ("secrets = \"x\"", "unknown field"),
        ] {
            let refused = door(text, None).err().unwrap_or_default();
            assert!(refused.contains(key), "{text}: {refused}");
            assert!(!refused.contains("short-secret") && !refused.contains(LONG), "{refused}");
        }
    }

    #[test]
    fn clients_are_told_of_an_issuer_that_they_can_ask() {
        let login = |text: &str| toml::from_str::<Auth>(text).ok().and_then(|auth| auth.login().ok());
        let issuer = "issuer = \"https://a.example\"\naudience = \"me\"\ncli_client_id = \"cli\"\n";
        let own = login(issuer).unwrap_or_default();
        assert_eq!(own.issuer, None, "tokens of a shared secret are made by `buildscale token make`");
        let told = login(&format!("{issuer}jwks_url = \"https://a.example/jwks\"")).unwrap_or_default();
        assert_eq!(told.issuer.as_deref(), Some("https://a.example"));
        assert_eq!(
            (told.client_id.as_deref(), told.scopes),
            (Some("cli"), vec!["openid".into(), "offline_access".into()])
        );
        let console = "console_client_id = \"page\"\njwks_url = \"https://a.example/jwks\"\nconsole_origins = [\"https://login.a.example\"]\n";
        let origins = |text: &str| toml::from_str::<Auth>(text).ok().and_then(|auth| auth.console_origins().ok());
        let expected = ["https://a.example".to_owned(), "https://login.a.example".to_owned()];
        assert_eq!(origins(&format!("{issuer}{console}")), Some(expected.to_vec()));
        assert_eq!(origins(issuer), Some(vec![]), "without the console's client nobody signs in from the page");
        for wrong in ["https://a.example/path", "*", "https://a@b.example", "'unsafe-inline'"] {
            assert_eq!(origins(&format!("console_origins = [\"{wrong}\"]")), None, "{wrong}");
        }
        let reached = login("resource = \"https://hub.example\"\nconsole_client_id = \"page\"").unwrap_or_default();
        assert_eq!(
            (reached.resource.as_deref(), reached.console_client_id.as_deref()),
            (Some("https://hub.example"), Some("page"))
        );
        let scopes = login("cli_scopes = [\"api://me/.default\"]").unwrap_or_default().scopes;
        assert_eq!(scopes, ["api://me/.default"]);
    }

    #[test]
    fn in_the_cloud_there_is_no_open_door() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let refused = |text: &str| {
            let auth: Auth = toml::from_str(text).unwrap_or_default();
            auth.guarded_door(Arc::new(SystemClock)).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(refused("").contains("jwks_url"));
        assert!(refused(&format!("secret = {LONG:?}")).contains("ticket_secret"));
        assert_eq!(refused(&format!("secret = {LONG:?}\nticket_secret = {LONG:?}")), "");
    }
}
