//! `[web]` of the configuration.

use ports::Secret;
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
    /// Its key; `searxng` needs none.
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

impl SearchConfig {
    /// The provider with its address and its key, if one is named.
    ///
    /// # Errors
    /// The fault, for people: the address or the key is missing.
    pub(crate) fn checked(&self) -> Result<Option<(Provider, String, Option<Secret>)>, String> {
        let Some(provider) = self.provider else { return Ok(None) };
        let usual = match provider {
            Provider::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            Provider::Tavily => Some("https://api.tavily.com/search"),
            Provider::Searxng => None,
        };
        let url = self.url.as_deref().or(usual).ok_or("web.search.url is missing: searxng has no usual address")?;
        if provider != Provider::Searxng && self.api_key.is_none() {
            return Err("web.search.api_key is missing".into());
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
        assert!(config(Some(Provider::Brave), None, None).is_err());
        assert!(config(Some(Provider::Searxng), None, None).is_err());
        let found = config(Some(Provider::Searxng), Some("http://127.0.0.1:8888/"), None);
        assert_eq!(found, Ok(Some((Provider::Searxng, "http://127.0.0.1:8888".into(), None))));
    }
}
