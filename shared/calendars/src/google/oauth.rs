//! OAuth 2 of installed programs (RFC 8252): a code for a proof key (PKCE, RFC 7636), a refresh token for the code, and access tokens for that.

use crate::http::{refused, send};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{Code, Error};
use reqwest::{
    Client, Method, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The right to read and write events.
pub const SCOPE: &str = "https://www.googleapis.com/auth/calendar.events";
/// Where people agree.
pub const AUTHORIZE: &str = "https://accounts.google.com/o/oauth2/v2/auth";

/// The client of an installation, as Google knows it.
#[derive(Clone, Copy, Debug)]
pub struct OauthClient<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its secret, where it has one.
    pub secret: Option<&'a str>,
    /// The address that gives tokens.
    pub token_url: &'a str,
}

/// A request for the agreement of a person.
#[derive(Clone, Debug)]
pub struct Request {
    /// The page that asks the person.
    pub url: String,
    /// The word that comes back with the code.
    pub state: String,
    /// The key that proves that the code was asked for here.
    pub verifier: String,
}

/// Asks a person for the right to their calendars. `verifier` and `state` are fresh secrets of 43 characters; the code comes to `redirect`, an address
/// on this machine.
///
/// # Errors
/// `INVALID_ARGUMENT` for an address that is none.
pub fn request(
    authorize: &str,
    client: &str,
    redirect: &str,
    (verifier, state): (String, String),
) -> Result<Request, Error> {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let mut url = Url::parse(authorize).map_err(|_| Error::invalid("url", "this is no URL"))?;
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", client)
        .append_pair("redirect_uri", redirect)
        .append_pair("scope", SCOPE)
        .append_pair("state", &state)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256")
        // Without these Google gives a refresh token the first time alone.
        .append_pair("access_type", "offline")
        .append_pair("prompt", "consent");
    Ok(Request { url: url.into(), state, verifier })
}

/// A value that comes back to the address of the request, such as `code`.
pub fn said(url: &str, name: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

/// The refresh token for a code.
///
/// # Errors
/// `FORBIDDEN` for a code that is not good; those of [`crate::remote::Remote`].
pub async fn redeem(
    http: &Client,
    client: OauthClient<'_>,
    (code, verifier, redirect): (&str, &str, &str),
) -> Result<String, Error> {
    let fields =
        [("grant_type", "authorization_code"), ("code", code), ("code_verifier", verifier), ("redirect_uri", redirect)];
    let answer = ask(http, client, &fields).await?;
    answer["refresh_token"].as_str().map(str::to_owned).ok_or_else(|| {
        Error::new(Code::Unprocessable, "Google gave no refresh token").hint("ask again with access_type=offline")
    })
}

/// An access token for a refresh token.
///
/// # Errors
/// `FORBIDDEN` for a token that was revoked or has expired; those of [`crate::remote::Remote`].
pub async fn refresh(http: &Client, client: OauthClient<'_>, token: &str) -> Result<String, Error> {
    let answer = ask(http, client, &[("grant_type", "refresh_token"), ("refresh_token", token)]).await?;
    answer["access_token"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::new(Code::Unprocessable, "Google gave no access token"))
}

async fn ask(http: &Client, client: OauthClient<'_>, fields: &[(&str, &str)]) -> Result<Value, Error> {
    let mut form = Url::parse("http://form.invalid/").map_err(|_| Error::invalid("url", "this is no URL"))?;
    {
        let mut pairs = form.query_pairs_mut();
        pairs.append_pair("client_id", client.id);
        for (name, value) in client.secret.map(|secret| ("client_secret", secret)).iter().chain(fields) {
            pairs.append_pair(name, value);
        }
    }
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind)]);
    let body = form.query().unwrap_or_default().to_owned();
    let reply = send(http, Method::POST, client.token_url, headers, Some(body)).await?;
    let answer = serde_json::from_str::<Value>(&reply.body).unwrap_or_default();
    match reply.status {
        StatusCode::OK => Ok(answer),
        // The words of the server may hold what was sent: only the code of the error is told (RFC 6749 §5.2).
        StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => {
            let known = ["invalid_grant", "invalid_client", "unauthorized_client", "invalid_request", "invalid_scope"];
            let word = answer["error"].as_str().filter(|word| known.contains(word)).unwrap_or("it is refused");
            Err(Error::new(Code::Forbidden, format!("Google gives no token: {word}"))
                .hint("authorize the calendar again: buildscale calendar login"))
        }
        _ => Err(refused(&reply)),
    }
}
