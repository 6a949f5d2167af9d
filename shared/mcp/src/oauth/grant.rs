//! The exchanges with an issuer: its discovery, a client there, a code for tokens, and a refresh.

use super::{
    fetch::{Answered, Fetch},
    metadata::{Challenge, Issuer, Resource, issuer_places, resource_places},
};
use ports::Secret;
use reqwest::Url;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// The longest token, in bytes.
const MAX_TOKEN: usize = 16 * 1024;
/// The errors of an issuer that may pass (RFC 6749 §4.1.2.1, RFC 8628 §3.5).
const PASSING: [&str; 3] = ["temporarily_unavailable", "server_error", "slow_down"];

/// The things that are known before a person is asked.
pub(crate) struct FoundIssuer {
    /// The resource that tokens are for.
    pub resource: String,
    pub scope: Option<String>,
    pub issuer: Issuer,
}

/// A client at an issuer.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Client {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exposed")]
    pub secret: Option<Secret>,
    /// `none`, `client_secret_basic` or `client_secret_post`.
    pub method: String,
}

/// A secret as it is: only for what is sealed at once.
pub(crate) fn exposed<S: serde::Serializer>(secret: &Option<Secret>, into: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(into)
}

/// The same of one that is always there.
pub(crate) fn exposed_token<S: serde::Serializer>(secret: &Secret, into: S) -> Result<S::Ok, S::Error> {
    secret.expose().serialize(into)
}

/// The tokens of an issuer.
#[derive(Deserialize)]
pub(crate) struct Tokens {
    pub access_token: Secret,
    #[serde(default)]
    pub refresh_token: Option<Secret>,
    /// In seconds.
    #[serde(default, deserialize_with = "seconds")]
    pub expires_in: Option<u64>,
    #[serde(default)]
    token_type: String,
}

/// A number of seconds, which some issuers give as a text or as a double; none for any other value: the server says when the time is up.
fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let told = Value::deserialize(from)?;
    let as_double = || Some(Duration::try_from_secs_f64(told.as_f64()?).ok()?.as_secs());
    Ok(told.as_u64().or_else(|| told.as_str()?.trim().parse().ok()).or_else(as_double))
}

/// Finds the issuer of a server and the resource that its tokens are for.
///
/// # Errors
/// The reason, for people.
pub(crate) async fn find(fetch: Fetch<'_>, server: &Url, challenge: &Challenge) -> Result<FoundIssuer, String> {
    let named = challenge.metadata.as_deref().and_then(|url| Url::parse(url).ok());
    let mut places = named.map_or_else(|| resource_places(server), |named| vec![named]).into_iter();
    let described = loop {
        let Some(place) = places.next() else { break None };
        if let Some(document) = fetch.document(&place).await? {
            let described: Resource = serde_json::from_value(document)
                .map_err(|_| format!("the metadata at {place} is none of a protected resource"))?;
            break Some(described);
        }
    };
    let Some(described) = described else { return undescribed(fetch, server, challenge).await };
    let resource = described.of(server).ok_or("the metadata of the server is about another resource")?.to_owned();
    let issuer = described.authorization_servers.first().and_then(|issuer| Url::parse(issuer).ok());
    let issuer = issuer.ok_or("the metadata of the server names no issuer of tokens")?;
    let issuer =
        issuer_of(fetch, &issuer, false).await?.ok_or_else(|| format!("the issuer {issuer} has no metadata"))?;
    Ok(FoundIssuer { resource, scope: challenge.scope.clone().or_else(|| described.scope()), issuer })
}

/// A server without metadata is its own issuer (the protocol's version of 2025-03-26).
async fn undescribed(fetch: Fetch<'_>, server: &Url, challenge: &Challenge) -> Result<FoundIssuer, String> {
    let mut origin = server.clone();
    origin.set_path("/");
    origin.set_query(None);
    let issuer = match issuer_of(fetch, &origin, true).await? {
        Some(issuer) => issuer,
        None => Issuer::without_metadata(&origin).ok_or("the address of the server has no origin")?,
    };
    let mut resource = server.clone();
    resource.set_query(None);
    resource.set_fragment(None);
    Ok(FoundIssuer { resource: resource.to_string(), scope: challenge.scope.clone(), issuer })
}

async fn issuer_of(fetch: Fetch<'_>, named: &Url, is_own: bool) -> Result<Option<Issuer>, String> {
    for place in issuer_places(named) {
        if let Some(document) = fetch.document(&place).await? {
            let issuer: Issuer = serde_json::from_value(document)
                .map_err(|_| format!("the metadata at {place} is none of an issuer"))?;
            issuer.check(named, is_own)?;
            return Ok(Some(issuer));
        }
    }
    Ok(None)
}

/// Makes a client at the issuer (RFC 7591).
///
/// # Errors
/// The reason, for people.
pub(crate) async fn register(fetch: Fetch<'_>, issuer: &Issuer, redirect: &str) -> Result<Client, String> {
    let Some(endpoint) = &issuer.registration_endpoint else {
        return Err("its issuer registers no clients by itself: declare oauth.client_id, and oauth.client_secret if there is one".into());
    };
    let asked = json!({
        "client_name": "BuildScale",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": issuer.method(),
    });
    let request =
        fetch.client(endpoint)?.post(endpoint).header("content-type", "application/json").body(asked.to_string());
    let answered = fetch.send(request).await?;
    let id = answered.body["client_id"].as_str().filter(|id| !id.is_empty() && id.len() <= 1_024);
    let Some(id) = id.filter(|_| answered.status.is_success()) else {
        return Err(format!("its issuer registers no client: {}", answered.refusal()));
    };
    let secret = answered.body["client_secret"].as_str().filter(|secret| !secret.is_empty()).map(Secret::new);
    let method = match (&secret, answered.body["token_endpoint_auth_method"].as_str()) {
        (None, _) => "none",
        (Some(_), Some("client_secret_post")) => "client_secret_post",
        (Some(_), Some("none")) => "none",
        (Some(_), Some(_)) => "client_secret_basic",
        (Some(_), None) => issuer.method(),
    };
    Ok(Client { id: id.to_owned(), secret, method: method.to_owned() })
}

/// The address at which a person signs in: `pairs` beside the client.
///
/// # Errors
/// The reason, for people.
pub(crate) fn authorize_url(issuer: &Issuer, client: &Client, pairs: &[(&str, &str)]) -> Result<Url, String> {
    let endpoint =
        Url::parse(&issuer.authorization_endpoint).ok().filter(|url| matches!(url.scheme(), "https" | "http"));
    let mut url = endpoint.ok_or("the address for people at its issuer is none of the web")?;
    url.query_pairs_mut().append_pair("response_type", "code").append_pair("client_id", &client.id).extend_pairs(pairs);
    Ok(url)
}

/// The answer of an issuer that gives no tokens.
#[derive(Debug)]
pub(crate) enum NoTokens {
    /// It refuses this grant: a person has to sign in again.
    Refused(String),
    /// It cannot be asked now.
    Failed(String),
}

/// Asks for tokens.
///
/// # Errors
/// [`NoTokens`].
pub(crate) async fn tokens(
    fetch: Fetch<'_>,
    issuer: &Issuer,
    client: &Client,
    pairs: &[(&str, &str)],
) -> Result<Tokens, NoTokens> {
    let http = fetch.client(&issuer.token_endpoint).map_err(NoTokens::Failed)?;
    let mut form: Vec<(&str, &str)> = pairs.to_vec();
    let mut request = http.post(&issuer.token_endpoint).header("accept", "application/json");
    let secret = client.secret.as_ref().map(Secret::expose);
    match (&*client.method, secret) {
        ("client_secret_basic", Some(secret)) => {
            request = request.basic_auth(escaped(&client.id), Some(escaped(secret)));
        }
        ("client_secret_post", Some(secret)) => form.extend([("client_id", &*client.id), ("client_secret", secret)]),
        _ => form.push(("client_id", &client.id)),
    }
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(encoded(&form));
    let answered = fetch.send(request).await.map_err(NoTokens::Failed)?;
    let refusal = answered.refusal();
    let Answered { status, body } = answered;
    if status.is_server_error() || status.as_u16() == 429 {
        return Err(NoTokens::Failed(format!("its issuer gives no token now: {refusal}")));
    }
    // An answer without an error of the protocol is that of something else, such as a gateway: the grant is as good as before.
    let is_refused = body["error"].as_str().is_some_and(|error| !PASSING.contains(&error));
    let tokens = serde_json::from_value::<Tokens>(body).ok().filter(|_| status.is_success());
    let tokens = tokens.filter(|tokens| {
        let token = tokens.access_token.expose();
        let fits = !token.is_empty() && token.len() <= MAX_TOKEN && token.chars().all(|c| c.is_ascii_graphic());
        fits && tokens.token_type.eq_ignore_ascii_case("bearer")
    });
    let why = || format!("its issuer gives no token: {refusal}");
    tokens.ok_or_else(|| if is_refused { NoTokens::Refused(why()) } else { NoTokens::Failed(why()) })
}

fn encoded(pairs: &[(&str, &str)]) -> String {
    let Ok(mut url) = Url::parse("http://form/") else { return String::new() };
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

/// A name as RFC 6749 §2.3.1 has it in a header.
fn escaped(text: &str) -> String {
    encoded(&[("", text)]).trim_start_matches('=').to_owned()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn forms_and_addresses_are_escaped() {
        assert_eq!(encoded(&[("a", "b c&d"), ("e", "é")]), "a=b+c%26d&e=%C3%A9");
        assert_eq!(escaped("a:b=c"), "a%3Ab%3Dc");
        let issuer = Issuer::without_metadata(&Url::parse("https://id.example").unwrap()).unwrap();
        let client = Client { id: "x&y".into(), secret: None, method: "none".into() };
        let url = authorize_url(&issuer, &client, &[("state", "s t")]).unwrap();
        assert_eq!(url.as_str(), "https://id.example/authorize?response_type=code&client_id=x%26y&state=s+t");
        let issuer = Issuer { authorization_endpoint: "javascript:alert(1)".into(), ..issuer };
        assert!(authorize_url(&issuer, &client, &[]).is_err());
    }

    #[test]
    fn the_time_of_a_token_is_read_in_each_form_and_another_one_costs_no_sign_in() {
        let of = |time: Value| {
            let told = json!({ "access_token": "a", "token_type": "bearer", "expires_in": time });
            serde_json::from_value::<Tokens>(told).unwrap().expires_in
        };
        for (time, seconds) in [
            (json!(3600), Some(3600)),
            (json!("3599"), Some(3599)),
            (json!(3600.0), Some(3600)),
            (json!(null), None),
            (json!("soon"), None),
            (json!(-1), None),
            (json!([3600]), None),
        ] {
            assert_eq!(of(time.clone()), seconds, "{time}");
        }
    }

    #[test]
    fn a_client_keeps_its_secret_for_the_seal_and_shows_it_nowhere() {
        let client = Client { id: "a".into(), secret: Some(Secret::new("s3cret")), method: "none".into() };
        let text = serde_json::to_string(&client).unwrap();
        let again: Client = serde_json::from_str(&text).unwrap();
        assert_eq!(again.secret.as_ref().map(Secret::expose), Some("s3cret"));
        assert!(!format!("{:?}", again.secret).contains("s3cret"));
    }
}
