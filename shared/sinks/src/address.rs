//! Checks the addresses that sinks, and providers of flows, may reach. Any author of files can write a manifest; it must not make the host
//! connect to services that only the host can reach.

use domain::{Code, Error, is_public};
use futures::FutureExt;
use reqwest::{
    Client, ClientBuilder, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A client that follows no redirect, and without `allow_private` connects to public addresses only, after name resolution.
pub(crate) fn client(allow_private: bool) -> Result<Client, Error> {
    // The second time it is there already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = Client::builder().redirect(Policy::none()).timeout(TIMEOUT).connect_timeout(TIMEOUT / 4);
    let http = if allow_private { http } else { public_only(http) };
    http.build().map_err(|error| Error::new(Code::Internal, format!("no HTTP client: {error}")))
}

/// A builder of a client that connects to public addresses only, after name resolution.
pub fn public_only(client: ClientBuilder) -> ClientBuilder {
    // A proxy would resolve names without this check.
    client.no_proxy().dns_resolver(Arc::new(PublicOnly))
}

/// The address, if a manifest may name it. It looks at the address only: the client refuses names that resolve to private addresses
/// ([`public_only`]).
///
/// # Errors
/// It is none of HTTP, it has a password in it, or it is private.
pub fn check(text: &str, allow_private: bool) -> Result<Url, Error> {
    let url: Url = text.parse().map_err(|_| Error::invalid("url", "this is no URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::invalid("url", "only http and https are spoken"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::invalid("url", "a URL holds no password").hint("use a secret by reference"));
    }
    let host = url.host_str().ok_or_else(|| Error::invalid("url", "it names no host"))?;
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_local = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    if !allow_private && (is_local || literal.is_ok_and(|address| !is_public(address))) {
        return Err(private());
    }
    Ok(url)
}

/// The host of a URL, as the client that sends to it reads it; none for a text that is no URL with a host.
pub fn host_of(url: &str) -> Option<String> {
    url.parse::<Url>().ok()?.host_str().map(str::to_owned)
}

fn private() -> Error {
    Error::new(Code::Forbidden, "addresses in private networks are not allowed here")
        .hint("the operator allows those of observers with observe.allow_private")
}

/// Resolves names as usual, and keeps public addresses.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let public: Vec<SocketAddr> = found.into_iter().filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(private().into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_to_public_addresses_unless_allowed() {
        let refused = [
            "ftp://example.com/",
            "file:///etc/passwd",
            "nonsense",
            "http://user:word@example.com/",
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://localhost:9/",
            "http://a.localhost/",
            "http://10.1.2.3/",
            "http://169.254.169.254/latest/meta-data",
            "http://100.64.0.1/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[fd00::1]/",
            "http://[fe80::1]/",
            "http://[64:ff9b::a00:1]/",
        ];
        for url in refused {
            assert!(check(url, false).is_err(), "{url}");
        }
        for url in ["https://example.com/hook", "http://93.184.216.34/", "http://[2606:4700::1]/"] {
            assert!(check(url, false).is_ok(), "{url}");
        }
        assert!(check("http://127.0.0.1:4318", true).is_ok());
        assert!(check("file:///etc/passwd", true).is_err());
    }

    #[tokio::test]
    async fn a_name_that_leads_to_a_private_address_is_refused() {
        let http = client(false).expect("a client");
        let error = http.get("http://localhost:1/").send().await.expect_err("it is private");
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        assert!(cause.to_string().contains("private networks"), "{cause}");
    }
}
