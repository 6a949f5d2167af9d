//! Metadata of protected resources (RFC 9728) and of authorization servers (RFC 8414): where it is, and what of it is believed.

use reqwest::Url;
use serde::{Deserialize, Serialize};

/// The longest scope that is asked for, in bytes.
const MAX_SCOPE: usize = 1_024;

/// The parts of `WWW-Authenticate` about the sign-in that a server needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Challenge {
    /// The address of the metadata of the resource.
    pub metadata: Option<String>,
    /// The scope that the refused request needs.
    pub scope: Option<String>,
    /// Whether the server knows the account, which lacks the scope for this request. Other requests may go on.
    #[serde(default)]
    pub lacks_scope: bool,
}

impl Challenge {
    /// Of the value of the header.
    pub fn parse(header: &str) -> Self {
        let (metadata, scope) = (parameter(header, "resource_metadata"), parameter(header, "scope").and_then(scope));
        Self { metadata, scope, lacks_scope: false }
    }
}

/// The value of a parameter (RFC 9110 §11.2), as a token or a quoted text.
fn parameter(header: &str, name: &str) -> Option<String> {
    let mut from = 0;
    while let Some(at) = header.get(from..)?.find(name).map(|at| at + from) {
        from = at + name.len();
        let is_whole = header[..at].chars().next_back().is_none_or(|before| before == ' ' || before == ',');
        let Some(value) = header[from..].trim_start().strip_prefix('=').filter(|_| is_whole) else { continue };
        let value = value.trim_start();
        return Some(match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default().to_owned(),
            None => value.split([',', ' ']).next().unwrap_or_default().to_owned(),
        });
    }
    None
}

/// A scope that may be asked for (RFC 6749 §3.3).
fn scope(text: String) -> Option<String> {
    let fits = |c: char| c == ' ' || ('!'..='~').contains(&c) && c != '"' && c != '\\';
    Some(text).filter(|text| !text.trim().is_empty() && text.len() <= MAX_SCOPE && text.chars().all(fits))
}

/// The metadata of a protected resource.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Resource {
    pub resource: String,
    #[serde(default)]
    pub authorization_servers: Vec<String>,
    #[serde(default)]
    pub scopes_supported: Vec<String>,
}

impl Resource {
    /// The resource that a token is to be for, where this metadata is about the server (RFC 9728 §3.3).
    pub fn of(&self, server: &Url) -> Option<&str> {
        let named = Url::parse(&self.resource).ok()?;
        let (whole, part) = (segments(server), segments(&named));
        (named.origin() == server.origin() && whole.starts_with(&part)).then_some(&*self.resource)
    }

    /// All its scopes, as one text.
    pub fn scope(&self) -> Option<String> {
        scope(self.scopes_supported.join(" "))
    }
}

fn segments(url: &Url) -> Vec<&str> {
    url.path().split('/').filter(|segment| !segment.is_empty()).collect()
}

/// The metadata of an authorization server.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Issuer {
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

impl Issuer {
    /// Why it is not used, if so. A server that is its own issuer names any place at its origin (the protocol's version of 2025-03-26).
    ///
    /// # Errors
    /// The reason, for people.
    pub fn check(&self, named: &Url, is_own: bool) -> Result<(), String> {
        let issuer = Url::parse(&self.issuer).ok();
        let is_same = match is_own {
            true => issuer.is_some_and(|issuer| issuer.origin() == named.origin()),
            // RFC 8414 §3.3. A slash at the end of an origin is no difference between URLs.
            false => issuer.as_ref() == Some(named),
        };
        if !is_same {
            return Err(format!("the metadata of {named} is that of another issuer"));
        }
        if !self.code_challenge_methods_supported.iter().any(|method| method == "S256") {
            return Err(format!("the issuer {named} does not say that it takes PKCE with S256"));
        }
        Ok(())
    }

    /// Of an issuer without metadata, as the protocol had it in its version of 2025-03-26.
    pub fn without_metadata(origin: &Url) -> Option<Self> {
        let at = |path: &str| origin.join(path).ok().map(String::from);
        Some(Self {
            issuer: origin.to_string(),
            authorization_endpoint: at("/authorize")?,
            token_endpoint: at("/token")?,
            registration_endpoint: at("/register"),
            token_endpoint_auth_methods_supported: Vec::new(),
            code_challenge_methods_supported: vec!["S256".into()],
            authorization_response_iss_parameter_supported: false,
        })
    }

    /// How a client without credentials of its own is to authenticate: as a public one where that is taken.
    pub fn method(&self) -> &'static str {
        let takes = |method: &str| self.token_endpoint_auth_methods_supported.iter().any(|one| one == method);
        match () {
            () if takes("none") => "none",
            () if takes("client_secret_post") && !takes("client_secret_basic") => "client_secret_post",
            () => "client_secret_basic",
        }
    }
}

/// The places of the metadata of a resource (RFC 9728 §3.1): the nearest first.
pub(crate) fn resource_places(server: &Url) -> Vec<Url> {
    well_known(server, &["oauth-protected-resource"])
}

/// The places of the metadata of an issuer (RFC 8414 §3.1, OpenID Connect Discovery 1.0 §4): those with the path of the issuer, if it has one.
pub(crate) fn issuer_places(issuer: &Url) -> Vec<Url> {
    let names = ["oauth-authorization-server", "openid-configuration"];
    let path = issuer.path().trim_end_matches('/').to_owned();
    if path.is_empty() {
        return well_known(issuer, &names);
    }
    let mut places: Vec<Url> = names.iter().filter_map(|name| placed(issuer, name, &path)).collect();
    let mut appended = issuer.clone();
    appended.set_path(&format!("{path}/.well-known/openid-configuration"));
    appended.set_query(None);
    places.push(appended);
    places
}

fn well_known(of: &Url, names: &[&str]) -> Vec<Url> {
    let path = of.path().trim_end_matches('/');
    let with_path = names.iter().filter(|_| !path.is_empty()).filter_map(|name| placed(of, name, path));
    with_path.chain(names.iter().filter_map(|name| placed(of, name, ""))).collect()
}

fn placed(of: &Url, name: &str, path: &str) -> Option<Url> {
    of.join(&format!("/.well-known/{name}{path}")).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn texts(places: Vec<Url>) -> Vec<String> {
        places.into_iter().map(String::from).collect()
    }

    #[test]
    fn a_challenge_is_read_wherever_its_parameters_stand() {
        let whole = Challenge::parse(
            r#"Basic realm="x", Bearer error="insufficient_scope", scope="files:read files:write", resource_metadata="https://a.example/m""#,
        );
        assert_eq!(whole.metadata.as_deref(), Some("https://a.example/m"));
        assert_eq!(whole.scope.as_deref(), Some("files:read files:write"));
        assert_eq!(Challenge::parse("Bearer"), Challenge::default());
        assert_eq!(
            Challenge::parse("Bearer resource_metadata=https://a.example/m, x=1").metadata.as_deref(),
            Some("https://a.example/m")
        );
        assert_eq!(Challenge::parse("Bearer max_scope=\"a\"").scope, None, "the name is whole");
        assert_eq!(Challenge::parse("Bearer scope=\"a\u{1b}[2J\"").scope, None, "no signs that act on a terminal");
    }

    #[test]
    fn metadata_is_looked_for_where_the_rfcs_have_it() {
        let server = url("https://a.example/mcp/v1");
        let expected = [
            "https://a.example/.well-known/oauth-protected-resource/mcp/v1",
            "https://a.example/.well-known/oauth-protected-resource",
        ];
        assert_eq!(texts(resource_places(&server)), expected);
        let issuer = url("https://id.example/tenant");
        let expected = [
            "https://id.example/.well-known/oauth-authorization-server/tenant",
            "https://id.example/.well-known/openid-configuration/tenant",
            "https://id.example/tenant/.well-known/openid-configuration",
        ];
        assert_eq!(texts(issuer_places(&issuer)), expected);
        assert_eq!(texts(issuer_places(&url("https://id.example"))).len(), 2);
    }

    #[test]
    fn metadata_about_another_resource_is_not_believed() {
        let of = |resource: &str| Resource {
            resource: resource.into(),
            authorization_servers: vec![],
            scopes_supported: vec![],
        };
        let server = url("https://a.example/mcp/v1");
        for fits in ["https://a.example", "https://a.example/", "https://a.example/mcp", "https://a.example/mcp/v1"] {
            assert_eq!(of(fits).of(&server), Some(fits));
        }
        for other in
            ["https://b.example/mcp", "https://a.example/mc", "http://a.example/mcp", "https://a.example/mcp/v1/x", "x"]
        {
            assert_eq!(of(other).of(&server), None, "{other}");
        }
    }

    #[test]
    fn an_issuer_is_the_one_that_was_asked_and_takes_pkce() {
        let mut issuer = Issuer::without_metadata(&url("https://id.example")).unwrap();
        assert_eq!(issuer.check(&url("https://id.example/"), false), Ok(()));
        assert!(issuer.check(&url("https://other.example"), true).is_err_and(|why| why.contains("another issuer")));
        issuer.issuer = "https://id.example/oauth".into();
        assert_eq!(issuer.check(&url("https://id.example"), true), Ok(()));
        assert!(issuer.check(&url("https://id.example"), false).is_err());
        issuer.issuer = "https://id.example".into();
        issuer.code_challenge_methods_supported = vec!["plain".into()];
        assert!(issuer.check(&url("https://id.example"), false).is_err_and(|why| why.contains("PKCE")));
    }
}
