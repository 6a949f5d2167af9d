//! `[web]` of the configuration.

use ports::Secret;
use reqwest::Url;
use serde::Deserialize;

/// `[web]`: the tools `web_fetch` and `web_search`, and the addresses that they and the HTTP tools of workspaces may reach.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebConfig {
    /// Whether agents have the tool `web_fetch`. A person is asked before it is called.
    pub fetch: bool,
    /// Whether `web_fetch` and HTTP tools of workspaces may reach private networks and this machine.
    pub allow_private: bool,
    /// The tool `web_search`; agents have it where a provider is named.
    pub search: SearchConfig,
}

impl Default for WebConfig {
    fn default() -> Self {
        Self { fetch: true, allow_private: false, search: SearchConfig::default() }
    }
}

/// `[web.search]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchConfig {
    /// The provider: `brave`, `tavily` or `searxng`.
    pub provider: Option<Provider>,
    /// Its address, where it is not the usual one; of `searxng` that of your server, which may be in a private network.
    pub url: Option<String>,
    /// Its key; `searxng` is asked without one.
    pub api_key: Option<Secret>,
}

/// A provider of searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// <https://api-dashboard.search.brave.com/app/documentation/web-search>
    Brave,
    /// <https://docs.tavily.com/documentation/api-reference/endpoint/search>
    Tavily,
    /// <https://docs.searxng.org/dev/search_api.html>, with the format `json` switched on.
    Searxng,
}

impl WebConfig {
    /// Why no tools can be made of this, if so.
    ///
    /// # Errors
    /// The key at fault with the reason, for people, such as `web.search.url: …`.
    pub fn check(&self) -> Result<(), String> {
        self.search.checked().map(drop)
    }
}

impl SearchConfig {
    /// Whether its provider, if one is named, is asked with a key.
    pub fn needs_key(&self) -> bool {
        self.provider != Some(Provider::Searxng)
    }

    /// The provider with its address and its key, if one is named.
    ///
    /// # Errors
    /// The key at fault with the reason, for people: the address is missing or none of HTTP, or the key is missing.
    pub(crate) fn checked(&self) -> Result<Option<(Provider, String, Option<Secret>)>, String> {
        let Some(provider) = self.provider else { return Ok(None) };
        let usual = match provider {
            Provider::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            Provider::Tavily => Some("https://api.tavily.com/search"),
            Provider::Searxng => None,
        };
        let given = self.url.as_deref().map(str::trim).filter(|url| !url.is_empty());
        let url = given.or(usual).ok_or("web.search.url: it is missing, and searxng has no usual address")?;
        let is_http = |url: &Url| ["http", "https"].contains(&url.scheme()) && url.has_host();
        if !url.parse::<Url>().is_ok_and(|url| is_http(&url)) {
            return Err("web.search.url: this is no address such as http://127.0.0.1:8888".into());
        }
        let has_key = self.api_key.as_ref().is_some_and(|key| !key.expose().trim().is_empty());
        if self.needs_key() && !has_key {
            return Err("web.search.api_key: it is missing, and the provider answers nobody without one".into());
        }
        Ok(Some((provider, url.trim_end_matches('/').to_owned(), self.api_key.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_has_an_address_and_a_key() {
        let config = |provider, url: Option<&str>, key: Option<&str>| {
            let (url, api_key) = (url.map(str::to_owned), key.map(Secret::new));
            SearchConfig { provider, url, api_key }.checked()
        };
        assert_eq!(config(None, None, None), Ok(None));
        for (provider, url, key, at) in [
            (Provider::Brave, None, None, "web.search.api_key: "),
            (Provider::Tavily, None, Some(" "), "web.search.api_key: "),
            (Provider::Searxng, None, None, "web.search.url: "),
            (Provider::Searxng, Some(""), None, "web.search.url: "),
            (Provider::Searxng, Some("127.0.0.1:8888"), None, "web.search.url: "),
            (Provider::Brave, Some("ftp://a.example"), Some("k"), "web.search.url: "),
        ] {
            let fault = config(Some(provider), url, key).err().unwrap_or_default();
            assert!(fault.starts_with(at), "{provider:?} {url:?}: {fault}");
        }
        let found = config(Some(Provider::Searxng), Some("http://127.0.0.1:8888/"), None);
        assert_eq!(found, Ok(Some((Provider::Searxng, "http://127.0.0.1:8888".into(), None))));
    }
}
