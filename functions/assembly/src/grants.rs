//! The secrets of the host that flows may use: the one rule for providers and observers, in the hub and in the cloud.
//!
//! The author of a flow names a secret and the address that it goes to. The operator of the host owns the secrets, so a name is
//! given only where the operator granted it to that workspace for that address.

use async_trait::async_trait;
use domain::WorkspaceId;
use ports::{Address, Error, Recipient, Result, Secret, SecretRef, Secrets};
use serde::Deserialize;
use std::sync::Arc;

/// The beginning of variables of BuildScale itself: the hub's keys and tokens, and those of its command line.
const OURS: &str = "BUILDSCALE_";

/// `[[grants]]`: names that flows of some workspaces may send to some hosts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Variables of the environment such as `HOUSE_KEY`, named secrets such as `secret:stripe`, files such as `file:stripe.key`. A
    /// name that ends in `*` stands for all that begin so. Variables that begin with `BUILDSCALE_` are the hub's own: they cannot be granted.
    pub names: Vec<String>,
    /// The ids of the workspaces; `*` for all.
    pub workspaces: Vec<String>,
    /// The hosts that the secret may be sent to, such as `api.stripe.com`; `*.example.com` for all below one; `provider:openai` for
    /// a provider's own address; `*` for all.
    pub hosts: Vec<String>,
}

/// The rule of a host.
#[derive(Clone, Debug)]
pub struct Grants {
    listed: Vec<Grant>,
    /// Whether the environment and the flows belong to one person.
    is_of_one_person: bool,
}

impl Grants {
    /// The grants of the configuration. With accounts there are no others. On a hub for one person, the secrets of its folder go to every
    /// address that a flow names, and the usual variable of a provider goes to that provider.
    pub fn new(listed: &[Grant], has_accounts: bool) -> Self {
        Self { listed: listed.to_vec(), is_of_one_person: !has_accounts }
    }

    /// Whether a flow of this workspace may send the secret to this address. No grant covers what is the hub's own, not even one of `*`.
    pub fn allow(&self, reference: &SecretRef, to: Recipient<'_>) -> bool {
        !is_of_the_hub(reference)
            && (self.listed.iter().any(|grant| grant.allows(reference, to))
                || (self.is_of_one_person && goes_without_saying(reference, to.address)))
    }
}

impl Grant {
    /// The first item that grants nothing: the list that it is in, its place there, and why.
    pub(crate) fn fault(&self) -> Option<(&'static str, usize, String)> {
        fn first(list: &[String], is_fault: impl Fn(&str) -> bool) -> Option<(usize, &str)> {
            list.iter().map(String::as_str).enumerate().find(|(_, item)| is_fault(item))
        }
        if let Some((at, name)) = first(&self.names, |name| name.starts_with(OURS)) {
            let why = "belongs to the hub itself and is granted to no workspace: use a variable of another name";
            return Some(("names", at, format!("{name} {why}")));
        }
        if let Some((at, id)) = first(&self.workspaces, |id| !is_of_workspaces(id)) {
            return Some(("workspaces", at, format!("{id:?} is no id of a workspace; write one, or * for all")));
        }
        let (at, host) = first(&self.hosts, |host| !is_of_hosts(host))?;
        let how = "write it without scheme, port and path, such as api.stripe.com, *.example.com or provider:openai";
        Some(("hosts", at, format!("{host:?} is no host; {how}")))
    }

    fn allows(&self, reference: &SecretRef, to: Recipient<'_>) -> bool {
        let name = match reference {
            SecretRef::Env(name) => name.clone(),
            SecretRef::Named(name) => format!("secret:{name}"),
            SecretRef::File(path) => format!("file:{path}"),
        };
        let workspace = to.workspace.to_string();
        self.names.iter().any(|pattern| begins(pattern, &name))
            && self.workspaces.iter().any(|id| id == "*" || id.eq_ignore_ascii_case(&workspace))
            && self.hosts.iter().any(|pattern| is_host(pattern, to.address))
    }
}

/// Whether a pattern stands for a workspace, or for all.
fn is_of_workspaces(pattern: &str) -> bool {
    // It is compared with the id as that is written.
    let is_id = |id: WorkspaceId| id.to_string().eq_ignore_ascii_case(pattern);
    pattern == "*" || pattern.parse::<WorkspaceId>().is_ok_and(is_id)
}

/// Whether a pattern can be the host of an address, or a provider.
fn is_of_hosts(pattern: &str) -> bool {
    if let Some(provider) = pattern.strip_prefix("provider:") {
        return !provider.trim().is_empty();
    }
    let host = pattern.strip_prefix("*.").unwrap_or(pattern);
    let is_host = |found: String| found.eq_ignore_ascii_case(host);
    // A URL may have a star in its host, and no address that is reached has one.
    pattern == "*" || (!host.contains('*') && sinks::host_of(&format!("https://{host}/")).is_some_and(is_host))
}

fn is_of_the_hub(reference: &SecretRef) -> bool {
    matches!(reference, SecretRef::Env(name) if name.starts_with(OURS))
}

fn begins(pattern: &str, name: &str) -> bool {
    // A pattern without a kind stands for variables alone.
    let same_kind = pattern.contains(':') == name.contains(':');
    same_kind && pattern.strip_suffix('*').map_or(pattern == name, |beginning| name.starts_with(beginning))
}

fn is_host(pattern: &str, address: Address<'_>) -> bool {
    match (address, pattern.strip_prefix("provider:")) {
        (_, None) if pattern == "*" => true,
        (Address::Provider(adapter), Some(wanted)) => adapter == wanted,
        (Address::Url(url), None) => sinks::host_of(url).is_some_and(|host| {
            let (host, pattern) = (host.to_ascii_lowercase(), pattern.to_ascii_lowercase());
            match pattern.strip_prefix("*.") {
                Some(parent) => host.strip_suffix(parent).is_some_and(|below| below.len() > 1 && below.ends_with('.')),
                None => host == pattern,
            }
        }),
        _ => false,
    }
}

/// Whether a flow on a hub for one person may use it without a grant.
fn goes_without_saying(reference: &SecretRef, address: Address<'_>) -> bool {
    match (reference, address) {
        (SecretRef::Named(_) | SecretRef::File(_), _) => true,
        (SecretRef::Env(name), Address::Provider(adapter)) => usual(adapter) == Some(name),
        (SecretRef::Env(_), Address::Url(_)) => false,
    }
}

/// The variable that usually holds the key of a provider, by its adapter.
fn usual(adapter: &str) -> Option<&'static str> {
    Some(match adapter {
        "openai" | "openai-responses" => "OPENAI_API_KEY",
        "anthropic" => "ANTHROPIC_API_KEY",
        "gemini" => "GEMINI_API_KEY",
        "openrouter" => "OPENROUTER_API_KEY",
        _ => return None,
    })
}

/// Secrets behind the rule.
pub struct Granted {
    secrets: Arc<dyn Secrets>,
    grants: Grants,
}

impl Granted {
    /// These secrets, as far as they are granted.
    pub fn new(secrets: Arc<dyn Secrets>, grants: Grants) -> Self {
        Self { secrets, grants }
    }
}

#[async_trait]
impl Secrets for Granted {
    async fn get(&self, reference: &SecretRef, to: Recipient<'_>) -> Result<Option<Secret>> {
        if !self.grants.allow(reference, to) {
            let why = match is_of_the_hub(reference) {
                true => "it belongs to the hub itself",
                false => {
                    "it is not granted to flows of this workspace for this address; the operator can do so with [[grants]]"
                }
            };
            return Err(Error::Invalid(format!("{reference} cannot be used: {why}")));
        }
        self.secrets.get(reference, to).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ann() -> WorkspaceId {
        WorkspaceId::from_key("people", "ann")
    }

    fn bob() -> WorkspaceId {
        WorkspaceId::from_key("people", "bob")
    }

    fn grant(names: &[&str], workspaces: &[&str], hosts: &[&str]) -> Grant {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        Grant { names: owned(names), workspaces: owned(workspaces), hosts: owned(hosts) }
    }

    fn env(name: &str) -> SecretRef {
        SecretRef::Env(name.into())
    }

    fn url(workspace: WorkspaceId, url: &str) -> Recipient<'_> {
        Recipient { workspace, address: Address::Url(url) }
    }

    #[test]
    fn an_item_that_grants_nothing_is_named() {
        let house = ["HOUSE_KEY"];
        let fault = |workspaces: &[&str], hosts: &[&str]| {
            grant(&house, workspaces, hosts).fault().map(|(list, at, _)| format!("{list}.{at}"))
        };
        let ann = ann().to_string();
        let hosts = ["*", "api.stripe.com", "*.Example.com", "127.0.0.1", "[::1]", "my_tools.stdio", "provider:openai"];
        assert_eq!(fault(&["*", &ann, &ann.to_uppercase()], &hosts), None);
        assert_eq!(fault(&["*", "house"], &hosts).as_deref(), Some("workspaces.1"));
        let with_stars = ["*.", "*stripe.com", "api.*.com", "*.*.com"];
        for wrong in ["https://api.stripe.com", "api.stripe.com:443", "api.stripe.com/v1", "", "provider:", "a b"]
            .into_iter()
            .chain(with_stars)
        {
            assert_eq!(fault(&["*"], &["*", wrong]).as_deref(), Some("hosts.1"), "{wrong}");
            let grants = Grants::new(&[grant(&house, &["*"], &[wrong])], true);
            for address in ["https://api.stripe.com/v1", "https://api.stripe.com:443"] {
                let to = Recipient { workspace: bob(), address: Address::Url(address) };
                assert!(!grants.allow(&env("HOUSE_KEY"), to), "{wrong} is refused, and would have granted something");
            }
        }
    }

    #[test]
    fn s10_11_a_secret_goes_where_it_was_granted_to_go() {
        let listed = [
            grant(&["HOUSE_*", "secret:stripe"], &[&ann().to_string()], &["api.stripe.com", "*.example.com"]),
            grant(&["OPENAI_API_KEY"], &["*"], &["provider:openai"]),
        ];
        for has_accounts in [true, false] {
            let grants = Grants::new(&listed, has_accounts);
            for address in ["https://api.stripe.com/v1", "https://API.Stripe.com:443", "https://a.b.example.com"] {
                assert!(grants.allow(&env("HOUSE_KEY"), url(ann(), address)), "{address}");
                assert!(grants.allow(&SecretRef::Named("stripe".into()), url(ann(), address)), "{address}");
                assert!(!grants.allow(&env("HOUSE_KEY"), url(bob(), address)), "{address}");
                assert!(!grants.allow(&env("OTHER"), url(ann(), address)), "{address}");
                assert!(!grants.allow(&env("OPENAI_API_KEY"), url(ann(), address)), "{address}");
            }
            for address in [
                "https://api.stripe.com.evil.example",
                "https://evil.example/api.stripe.com",
                "https://api.stripe.com@evil.example/",
                r"https://evil.example\@api.stripe.com/",
                "https://example.com",
                "https://evilexample.com",
                "https://evil-example.com",
                "no address",
            ] {
                assert!(!grants.allow(&env("HOUSE_KEY"), url(ann(), address)), "{address}");
            }
            let own = |adapter| Recipient { workspace: bob(), address: Address::Provider(adapter) };
            assert!(grants.allow(&env("OPENAI_API_KEY"), own("openai")));
            assert!(!grants.allow(&env("OPENAI_API_KEY"), own("gemini")));
        }
    }

    #[test]
    fn secrets_of_the_hub_go_nowhere_whatever_is_granted() {
        let listed = [grant(&["*", "BUILDSCALE*", "BUILDSCALE_TOKEN", "secret:*"], &["*"], &["*", "provider:openai"])];
        let own = Recipient { workspace: ann(), address: Address::Provider("openai") };
        for has_accounts in [true, false] {
            let grants = Grants::new(&listed, has_accounts);
            for to in [url(ann(), "https://a.example"), own] {
                for name in ["BUILDSCALE_TOKEN", "BUILDSCALE__SERVER__AUTH_TOKEN", "BUILDSCALE__AUTH__SECRET"] {
                    assert!(!grants.allow(&env(name), to), "{name} to {to:?}");
                }
                // Others of the same environment, and a secret of the folder that is only called so.
                assert!(grants.allow(&env("HOUSE_KEY"), to) && grants.allow(&env("BUILDSCALER_KEY"), to));
                assert!(grants.allow(&SecretRef::Named("BUILDSCALE_TOKEN".into()), to));
            }
        }
    }

    #[test]
    fn a_grant_that_names_what_is_the_hubs_own_is_faulty() {
        let fault = |names: &[&str]| grant(names, &["*"], &["*"]).fault().map(|(_, place, _)| place);
        assert_eq!(fault(&["A", "BUILDSCALE_TOKEN"]), Some(1));
        assert_eq!(fault(&["BUILDSCALE__SERVER__*"]), Some(0));
        assert_eq!(fault(&["*", "BUILDSCALER_KEY", "secret:BUILDSCALE_TOKEN"]), None);
    }

    #[test]
    fn s10_11_without_a_grant_accounts_have_nothing_and_one_person_has_their_own_secrets() {
        let (alone, many) = (Grants::new(&[], false), Grants::new(&[], true));
        let own = |adapter| Recipient { workspace: ann(), address: Address::Provider(adapter) };
        let anywhere = url(ann(), "https://a.example");
        assert!(alone.allow(&env("OPENAI_API_KEY"), own("openai-responses")));
        assert!(alone.allow(&SecretRef::Named("stripe".into()), anywhere));
        for (name, to) in [("OPENAI_API_KEY", own("gemini")), ("OPENAI_API_KEY", anywhere), ("PATH", own("openai"))] {
            assert!(!alone.allow(&env(name), to), "{name} to {to:?}");
        }
        for reference in [env("OPENAI_API_KEY"), SecretRef::Named("stripe".into()), SecretRef::File("stripe".into())] {
            assert!(!many.allow(&reference, own("openai")) && !many.allow(&reference, anywhere), "{reference}");
        }
    }
}
