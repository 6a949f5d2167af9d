//! The way to a token of a hub: which issuer it trusts (RFC 9728), and where that issuer answers (OpenID Connect Discovery 1.0).

use super::http::{Http, endpoint, url_text};
use crate::{
    failure::CliError,
    output::one_line,
    value::{list, text},
};
use ::client::Error;
use reqwest::Url;
use serde_json::Value;

/// All that a login needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// The issuer, exactly as it calls itself.
    pub(crate) issuer: String,
    pub(crate) device_endpoint: Url,
    pub(crate) token_endpoint: Url,
    pub(crate) revocation_endpoint: Option<Url>,
    pub(crate) client_id: String,
    /// Words with blanks between.
    pub(crate) scope: String,
    pub(crate) audience: Option<String>,
}

/// The way in at this hub.
pub(crate) async fn of(hub: &Url) -> Result<Offer, CliError> {
    let http = Http::new()?;
    let resource = resource(&http, hub).await?;
    let Some(issuer) = list(&resource, "authorization_servers").first().and_then(Value::as_str) else {
        return Err(no_issuer(&http, hub).await);
    };
    let client_id = text(&resource, "cli_client_id").to_owned();
    if client_id.is_empty() {
        return Err(CliError::Login {
            reason: format!("{} does not name the command line's client at {}", url_text(hub), one_line(issuer, 200)),
            hint: Some("its operator sets auth.cli_client_id; until then, set BUILDSCALE_TOKEN"),
        });
    }
    let scopes: Vec<&str> = list(&resource, "scopes_supported").iter().filter_map(Value::as_str).collect();
    let audience = resource.get("audience").and_then(Value::as_str).map(str::to_owned);
    let about = discovered(&http, issuer).await?;
    let url = |key: &str| endpoint(text(&about, key));
    let Some(device_endpoint) = url("device_authorization_endpoint") else {
        return Err(CliError::Login {
            reason: format!("{} offers no login for devices (RFC 8628)", one_line(issuer, 200)),
            hint: Some("switch it on there, or set BUILDSCALE_TOKEN to a token of it"),
        });
    };
    let Some(token_endpoint) = url("token_endpoint") else {
        return Err(CliError::Issuer { url: one_line(issuer, 200), reason: "it names no token endpoint".into() });
    };
    let (issuer, scope) = (issuer.to_owned(), scopes.join(" "));
    let revocation_endpoint = url("revocation_endpoint");
    Ok(Offer { issuer, device_endpoint, token_endpoint, revocation_endpoint, client_id, scope, audience })
}

/// The metadata of the hub. It is below the hub's own address, which may have a path.
async fn resource(http: &Http, hub: &Url) -> Result<Value, CliError> {
    let at = below(hub, &[".well-known", "oauth-protected-resource"]);
    let answer = http.get(&at).await.map_err(|failure| match failure {
        CliError::Issuer { reason, .. } => Error::Unreachable { url: url_text(hub), reason }.into(),
        other => other,
    })?;
    if !answer.status.is_success() || !answer.body.is_object() {
        let reason = format!("{} answers {}", at.path(), answer.status);
        return Err(Error::Foreign { url: url_text(hub), reason, status: Some(answer.status.as_u16()) }.into());
    }
    // RFC 9728 §3.3: metadata of another resource must not be used.
    let named = text(&answer.body, "resource");
    if named.trim_end_matches('/') != url_text(hub) {
        return Err(CliError::Login {
            reason: format!("{} says that its address is {}", url_text(hub), one_line(named, 200)),
            hint: Some("give that address with --url; if it is wrong, its operator sets auth.resource"),
        });
    }
    Ok(answer.body)
}

/// Why there is no login: the hub wants no token, or one that it signs itself.
async fn no_issuer(http: &Http, hub: &Url) -> CliError {
    let models = http.get(&below(hub, &["api", "v1", "models"])).await;
    let is_open = models.is_ok_and(|answer| answer.status.is_success());
    let (why, hint) = match is_open {
        true => ("wants no token: there is nothing to log in to", "just use it"),
        false => (
            "has no issuer to log in at",
            "set BUILDSCALE_TOKEN to a token or an API key; its operator makes one with `buildscale token make`",
        ),
    };
    CliError::Login { reason: format!("{} {why}", url_text(hub)), hint: Some(hint) }
}

/// The configuration that an issuer publishes about itself.
async fn discovered(http: &Http, issuer: &str) -> Result<Value, CliError> {
    let wrong = |reason: String| CliError::Issuer { url: one_line(issuer, 200), reason };
    let base = endpoint(issuer).ok_or_else(|| wrong("it is no https URL".into()))?;
    let answer = http.get(&below(&base, &[".well-known", "openid-configuration"])).await?;
    if !answer.status.is_success() {
        return Err(wrong(format!("its OpenID configuration answers {}", answer.status)));
    }
    // OpenID Connect Discovery §4.3: to the letter.
    match text(&answer.body, "issuer") {
        named if named == issuer => Ok(answer.body),
        named => Err(wrong(format!("its OpenID configuration is that of {:?}", one_line(named, 200)))),
    }
}

fn below(base: &Url, path: &[&str]) -> Url {
    let mut url = base.clone();
    url.set_query(None);
    url.set_fragment(None);
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_below_an_address_with_or_without_a_slash() {
        let check = |base: &str, expected: &str| {
            let url =
                base.parse::<Url>().map(|base| below(&base, &[".well-known", "openid-configuration"]).to_string());
            assert_eq!(url.ok().as_deref(), Some(expected));
        };
        check("https://a.example", "https://a.example/.well-known/openid-configuration");
        check("https://a.example/realms/x", "https://a.example/realms/x/.well-known/openid-configuration");
        check("https://a.example/x/?y", "https://a.example/x/.well-known/openid-configuration");
    }
}
