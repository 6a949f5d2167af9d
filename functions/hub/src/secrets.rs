//! The secrets of this machine.

use async_trait::async_trait;
use embedded::LocalSecrets;
use ports::{Error, KnownSecrets, Noted, Recipient, Result, Secret, SecretRef, Secrets};
use std::{path::Path, sync::Arc};

/// Which variables of the environment flows may refer to.
#[derive(Clone, Debug)]
pub(crate) enum Variables {
    /// These names; one that ends in `*` stands for all that begin so. Wherever the flow sends them.
    Listed(Vec<String>),
    /// The usual variable of a well-known provider, for this provider at its own address: on a hub for one person.
    UsualOnly,
    /// None: on a hub with accounts, where the authors of flows are not the owners of the environment.
    None,
}

impl Variables {
    /// By `providers.variables`, and by whether people have accounts.
    pub(crate) fn of(listed: Option<&[String]>, has_accounts: bool) -> Self {
        match listed {
            Some(listed) => Self::Listed(listed.to_vec()),
            None if has_accounts => Self::None,
            None => Self::UsualOnly,
        }
    }

    /// Whether a flow may send this variable to this recipient: the one rule, of providers and of observers.
    fn may(&self, name: &str, to: Recipient<'_>) -> bool {
        match self {
            Self::None => false,
            Self::UsualOnly => matches!(to, Recipient::Provider(adapter) if usual(adapter) == Some(name)),
            Self::Listed(listed) => listed.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == pattern,
            }),
        }
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

/// The secrets of this machine, for flows to refer to: all files of its folder, and these `variables`. A secret that was looked
/// up is known from then on.
pub(crate) fn of_host(
    data: &Path,
    environment: &[(String, String)],
    variables: Variables,
    known: &KnownSecrets,
) -> Arc<dyn Secrets> {
    let host = OfHost { secrets: local(data, environment), variables };
    Arc::new(Noted::new(Arc::new(host), known.clone()))
}

/// Learns what the folder of secrets has by now.
pub(crate) fn learn_folder(data: &Path, known: &KnownSecrets) {
    known.learn(&local(data, &[]).of_folder());
}

fn local(data: &Path, environment: &[(String, String)]) -> LocalSecrets {
    let variables = environment.to_vec();
    let lookup = move |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    LocalSecrets::new(Some(data.join("secrets"))).with_variables(lookup)
}

struct OfHost {
    secrets: LocalSecrets,
    variables: Variables,
}

#[async_trait]
impl Secrets for OfHost {
    async fn get(&self, reference: &SecretRef, to: Recipient<'_>) -> Result<Option<Secret>> {
        if let SecretRef::Env(name) = reference
            && !self.variables.may(name, to)
        {
            let why = "flows may not send it there; the operator of this hub can list it in `providers.variables`";
            return Err(Error::Invalid(format!("{reference} cannot be used: {why}")));
        }
        self.secrets.get(reference, to).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a variable is given; the refusal when it is not.
    async fn given(variables: Variables, name: &str, to: Recipient<'_>) -> std::result::Result<bool, String> {
        let environment = ["HOUSE_KEY", "OTHER_KEY", "ONE", "OPENAI_API_KEY", "GEMINI_API_KEY", "PATH"]
            .map(|name| (name.to_owned(), format!("value-of-{name}")));
        let secrets = of_host(Path::new("no-such-folder"), &environment, variables, &KnownSecrets::default());
        let found = secrets.get(&SecretRef::Env(name.into()), to).await;
        found.map(|found| found.is_some()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn s10_11_flows_refer_to_the_variables_that_they_may() {
        let listed = Variables::of(Some(&["HOUSE_*".to_owned(), "ONE".to_owned()]), true);
        for name in ["HOUSE_KEY", "ONE"] {
            assert_eq!(given(listed.clone(), name, Recipient::Address).await, Ok(true), "{name}");
        }
        for name in ["OTHER_KEY", "ONE_MORE", "OPENAI_API_KEY"] {
            let refused = given(listed.clone(), name, Recipient::Provider("openai")).await;
            assert!(refused.is_err_and(|why| why.contains(name) && !why.contains("value-of")), "{name}");
        }
        assert!(given(Variables::of(Some(&[]), false), "HOUSE_KEY", Recipient::Address).await.is_err());
    }

    #[tokio::test]
    async fn s10_11_by_default_a_flow_sends_no_variable_but_the_usual_one_to_its_own_provider() {
        let alone = || Variables::of(None, false);
        assert_eq!(given(alone(), "OPENAI_API_KEY", Recipient::Provider("openai")).await, Ok(true));
        assert_eq!(given(alone(), "OPENAI_API_KEY", Recipient::Provider("openai-responses")).await, Ok(true));
        for (name, to) in [
            ("OPENAI_API_KEY", Recipient::Address),
            ("OPENAI_API_KEY", Recipient::Provider("gemini")),
            ("PATH", Recipient::Provider("openai")),
            ("HOUSE_KEY", Recipient::Address),
        ] {
            let refused = given(alone(), name, to).await;
            assert!(refused.is_err_and(|why| why.contains("providers.variables")), "{name} to {to:?}");
        }
        for to in [Recipient::Provider("openai"), Recipient::Address] {
            assert!(given(Variables::of(None, true), "OPENAI_API_KEY", to).await.is_err(), "{to:?}");
        }
    }
}
