//! The way to a token, for programs that have none: the metadata of a protected resource (RFC 9728), and the challenge that names it.

use crate::{Context, error::Answer, schema};
use axum::{Json, extract::State};
use domain::Error;
use http::{HeaderMap, HeaderValue, header, uri::Authority};
use std::sync::Arc;

/// The place of the metadata (RFC 9728 §3).
pub(crate) const METADATA: &str = "/.well-known/oauth-protected-resource";

/// The things that a program needs to know before it asks an issuer for a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The URL under which clients reach this server; without one, the address that a request names.
    pub resource: Option<String>,
    /// The issuer of tokens, if it is one that can be asked over HTTP.
    pub issuer: Option<String>,
    /// The audience that tokens must be for.
    pub audience: Option<String>,
    /// The public client id of the command line at the issuer.
    pub client_id: Option<String>,
    /// The public client id of the console at the issuer.
    pub console_client_id: Option<String>,
    /// The scopes to ask the issuer for.
    pub scopes: Vec<String>,
}

/// The headers of a request that the way to a token depends on. Taking them copies no text.
pub(crate) struct LoginHeaders {
    host: Option<HeaderValue>,
    is_forwarded_https: bool,
    has_credential: bool,
}

impl LoginHeaders {
    /// Of a request with these headers.
    pub(crate) fn by(headers: &HeaderMap) -> Self {
        Self {
            host: headers.get(header::HOST).cloned(),
            is_forwarded_https: headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https"),
            has_credential: headers.contains_key(header::AUTHORIZATION),
        }
    }
}

impl Login {
    /// The URL of this server, for the client that asked so; none when its request names no address.
    pub(crate) fn resource(&self, asked: &LoginHeaders) -> Option<String> {
        if let Some(resource) = &self.resource {
            return Some(resource.trim_end_matches('/').to_owned());
        }
        let host = asked.host.as_ref()?.to_str().ok()?;
        let host = host.parse::<Authority>().ok().filter(|host| !host.as_str().contains('@'))?;
        Some(format!("{}://{host}", if asked.is_forwarded_https { "https" } else { "http" }))
    }

    /// The value of `WWW-Authenticate` for a request without a valid credential (RFC 6750 §3, RFC 9728 §5.1).
    pub(crate) fn challenge(&self, asked: &LoginHeaders) -> HeaderValue {
        let mut parts = Vec::new();
        if asked.has_credential {
            parts.push("error=\"invalid_token\"".to_owned());
        }
        if let Some(resource) = self.resource(asked) {
            parts.push(format!("resource_metadata=\"{resource}{METADATA}\""));
        }
        let challenge = format!("Bearer {}", parts.join(", "));
        HeaderValue::try_from(challenge.trim_end()).unwrap_or(HeaderValue::from_static("Bearer"))
    }
}

/// How to get a token for this server (RFC 9728): the issuer to ask, the scopes, and the client ids of the command line and of the
/// console there. A server without an issuer names none.
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource", tag = "login",
    responses((status = 200, description = "The metadata of this server as a protected resource.", body = schema::ResourceMetadata)))]
pub(crate) async fn resource_metadata(
    State(context): State<Arc<Context>>,
    headers: HeaderMap,
) -> Answer<Json<schema::ResourceMetadata>> {
    let login = context.base.auth.login();
    let Some(resource) = login.resource(&LoginHeaders::by(&headers)) else {
        return Err(Error::invalid("host", "the request does not name the address of this server").into());
    };
    let with_issuer = login.issuer.is_some();
    Ok(Json(schema::ResourceMetadata {
        resource,
        authorization_servers: login.issuer.iter().cloned().collect(),
        scopes_supported: if with_issuer { login.scopes.clone() } else { Vec::new() },
        bearer_methods_supported: vec!["header".into()],
        audience: login.audience.clone().filter(|_| with_issuer),
        cli_client_id: login.client_id.clone().filter(|_| with_issuer),
        console_client_id: login.console_client_id.clone().filter(|_| with_issuer),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(pairs: &[(&'static str, &'static str)]) -> LoginHeaders {
        let named = |name: &'static str| header::HeaderName::from_static(name);
        let headers = pairs.iter().map(|(name, value)| (named(name), HeaderValue::from_static(value)));
        LoginHeaders::by(&headers.collect())
    }

    #[test]
    fn a_server_is_where_it_is_configured_or_else_where_a_request_found_it() {
        let check = |resource: Option<&str>, pairs: &[(&'static str, &'static str)], expected: Option<&str>| {
            let login = Login { resource: resource.map(str::to_owned), ..Login::default() };
            assert_eq!(login.resource(&asked(pairs)).as_deref(), expected, "{pairs:?}");
        };
        check(Some("https://a.example/hub/"), &[("host", "127.0.0.1:8686")], Some("https://a.example/hub"));
        check(None, &[("host", "127.0.0.1:8686")], Some("http://127.0.0.1:8686"));
        check(None, &[("host", "a.example"), ("x-forwarded-proto", "https")], Some("https://a.example"));
        check(None, &[("host", "a.example"), ("x-forwarded-proto", "gopher")], Some("http://a.example"));
        check(None, &[], None);
        for odd in ["a.example/\"x", "user@a.example", "a b", ""] {
            check(None, &[("host", odd)], None);
        }
    }

    #[test]
    fn a_challenge_names_the_metadata_and_whether_a_token_was_wrong() {
        let (login, host) = (Login::default(), ("host", "a.example"));
        let metadata = "resource_metadata=\"http://a.example/.well-known/oauth-protected-resource\"";
        assert_eq!(login.challenge(&asked(&[host])), format!("Bearer {metadata}"));
        let wrong = asked(&[host, ("authorization", "Bearer x")]);
        assert_eq!(login.challenge(&wrong), format!("Bearer error=\"invalid_token\", {metadata}"));
        assert_eq!(login.challenge(&asked(&[])), "Bearer");
    }
}
