//! Who asks. On a laptop: whoever reaches the loopback address. With a token: whoever has it.
//!
//! The result is a [`Principal`] in the request's extensions; handlers know no credentials. Signed tokens with accounts
//! become one more [`Auth`], and nothing else changes.

use crate::{Context, error::Failure};
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use domain::{Code, Error, Principal};
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use std::{net::IpAddr, sync::Arc};

/// Open to all: they say whether the process lives and what it can do, and nothing about anybody.
const OPEN: [&str; 3] = ["/health", "/ready", "/openapi.json"];

/// Who may come in.
#[derive(Clone)]
pub struct Auth(Kind);

#[derive(Clone)]
enum Kind {
    Loopback,
    /// The digest of the token: two digests take the same time to compare, wherever they differ.
    Token([u8; 32]),
}

/// Never shows a token.
impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Kind::Loopback => "Auth::loopback",
            Kind::Token(_) => "Auth::token",
        })
    }
}

impl Auth {
    /// Everybody who reaches the address is the machine's one person; for a listener on loopback.
    ///
    /// A web page in that person's browser reaches it, too. So requests that a page of another origin makes, and those under
    /// a name that somebody else's DNS may have pointed here, are refused.
    pub fn loopback() -> Self {
        Self(Kind::Loopback)
    }

    /// Whoever sends `Authorization: Bearer <token>`.
    pub fn token(token: &str) -> Self {
        Self(Kind::Token(Sha256::digest(token).into()))
    }

    fn principal(&self, headers: &HeaderMap, origins: &[String]) -> Result<Principal, Error> {
        match &self.0 {
            Kind::Loopback => from_this_machine(headers, origins),
            Kind::Token(expected) => {
                let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
                let Some(given) = given.and_then(bearer) else {
                    return Err(Error::new(Code::Unauthorized, "a token is needed")
                        .hint("send the header Authorization: Bearer <token>, with the token of --auth-token"));
                };
                let given: [u8; 32] = Sha256::digest(given).into();
                if given.iter().zip(expected).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0 {
                    return Ok(Principal::local());
                }
                Err(Error::new(Code::Unauthorized, "the token is not valid")
                    .hint("use the token that the server was started with"))
            }
        }
    }
}

/// The token of `Bearer <token>`; the scheme in any case (RFC 9110 §11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

fn from_this_machine(headers: &HeaderMap, origins: &[String]) -> Result<Principal, Error> {
    let text = |name| headers.get(name).map(|value: &http::HeaderValue| value.to_str().unwrap_or("?"));
    let host = text(header::HOST);
    if host.is_some_and(|host| !is_own_name(host)) {
        return Err(Error::new(Code::Forbidden, "this server is not known under that name")
            .hint("use its address or localhost, or start it with --auth-token"));
    }
    match text(header::ORIGIN) {
        None => Ok(Principal::local()),
        Some(origin) if origins.iter().any(|allowed| allowed == origin) => Ok(Principal::local()),
        Some(origin) if origin.split_once("://").is_some_and(|(_, of)| Some(of) == host) => Ok(Principal::local()),
        Some(_) => Err(Error::new(Code::Forbidden, "web pages of other origins may not call this server")
            .hint("allow the origin where the server is configured")),
    }
}

/// Whether a `Host` is an address or `localhost`: no DNS of others has a say in those.
fn is_own_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

/// The middleware.
pub(crate) async fn authorise(
    State(context): State<Arc<Context>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Failure> {
    if !OPEN.contains(&request.uri().path()) {
        let principal = context.auth.principal(request.headers(), &context.origins)?;
        request.extensions_mut().insert(principal);
    }
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_token_is_asked_for_and_compared() {
        let auth = Auth::token("s3cret");
        let check = |value: &'static str| auth.principal(&headers(&[(header::AUTHORIZATION, value)]), &[]).is_ok();
        assert!(check("Bearer s3cret") && check("bearer  s3cret"));
        assert!(!check("Bearer s3cre") && !check("Bearer s3cret2") && !check("Basic s3cret") && !check("s3cret"));
        assert!(auth.principal(&HeaderMap::new(), &[]).is_err());
        assert!(!format!("{auth:?}").contains("s3cret"));
    }

    #[test]
    fn pages_of_others_and_names_of_others_are_kept_out() {
        let origins = ["http://localhost:5173".to_owned()];
        let check =
            |pairs: &[(HeaderName, &'static str)]| Auth::loopback().principal(&headers(pairs), &origins).is_ok();
        let (host, origin) = (header::HOST, header::ORIGIN);
        assert!(check(&[]));
        for own in ["127.0.0.1:8686", "localhost:8686", "[::1]:8686", "a.localhost"] {
            assert!(check(&[(host.clone(), own)]), "{own}");
        }
        assert!(!check(&[(host.clone(), "rebound.example:8686")]));
        let local = (host, "localhost:8686");
        assert!(check(&[local.clone(), (origin.clone(), "http://localhost:8686")]));
        assert!(check(&[local.clone(), (origin.clone(), "http://localhost:5173")]));
        assert!(!check(&[local.clone(), (origin.clone(), "https://evil.example")]));
        assert!(!check(&[local, (origin, "null")]));
    }
}
