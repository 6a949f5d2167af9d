//! Secrets of flows (spec 002 §10.11): manifests say where a key is; the value is looked up when a provider is bound, given to
//! the one place that sends it, and taken out of everything that is written.

use domain::{Code, Error};
use flow::manifest::{Credential, SecretReference};
pub use ports::{Address, Recipient, Redactor, Secret, SecretRef, Secrets};
use std::collections::BTreeMap;

/// A reference of a manifest as hosts look it up.
pub fn reference(of: SecretReference) -> SecretRef {
    match of {
        SecretReference::Env(name) => SecretRef::Env(name),
        SecretReference::File(path) => SecretRef::File(path),
        SecretReference::Secret(name) => SecretRef::Named(name),
    }
}

/// The secrets of one flow, by the ids of its credentials.
#[derive(Clone, Debug, Default)]
pub struct FlowSecrets {
    secrets: BTreeMap<String, Secret>,
    missing: BTreeMap<String, SecretRef>,
    redactor: Redactor,
}

impl FlowSecrets {
    /// Looks up every credential, for this recipient. One that is not there is noted, not refused: a flow may name a provider
    /// that it does not use.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a credential that does not say where its key is, `FORBIDDEN` for one that the host refuses,
    /// `UPSTREAM_UNAVAILABLE` when the host's secrets do not answer.
    pub async fn open(credentials: &[Credential], to: Recipient<'_>, secrets: &dyn Secrets) -> Result<Self, Error> {
        let mut vault = Self::default();
        for credential in credentials {
            let reference = credential.reference().map(self::reference).ok_or_else(|| {
                Error::invalid("provider_credentials", format!("{} does not say where its key is", credential.id))
            })?;
            let id = credential.id.clone();
            match secrets.get(&reference, to).await {
                Ok(Some(secret)) => drop(vault.secrets.insert(id, secret)),
                Ok(None) => drop(vault.missing.insert(id, reference)),
                Err(error) if error.kind() == ports::ErrorKind::Reject => {
                    return Err(Error::new(Code::Forbidden, error.to_string()).detail("credential", id));
                }
                Err(error) => {
                    tracing::warn!(credential = id, error = %error.with_causes(), "a secret cannot be looked up");
                    let message = format!("the secret of {id} cannot be looked up now");
                    return Err(Error::new(Code::UpstreamUnavailable, message));
                }
            }
        }
        vault.redactor = Redactor::new(vault.secrets.values());
        Ok(vault)
    }

    /// The secret of a credential.
    pub fn get(&self, credential: &str) -> Option<&Secret> {
        self.secrets.get(credential)
    }

    /// The place in which a credential was looked for and not found.
    pub fn missing(&self, credential: &str) -> Option<&SecretRef> {
        self.missing.get(credential)
    }

    /// The redactor that takes these secrets out of everything that is written.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use async_trait::async_trait;

    const TO: Recipient<'static> = Recipient {
        workspace: domain::WorkspaceId(uuid::Uuid::nil()),
        address: Address::Url("https://models.example"),
    };

    struct Host;

    #[async_trait]
    impl Secrets for Host {
        async fn get(&self, reference: &SecretRef, _: Recipient<'_>) -> ports::Result<Option<Secret>> {
            match reference {
                SecretRef::Env(name) if name == "A_KEY" => Ok(Some(Secret::new("planted-secret"))),
                SecretRef::File(_) => Err(ports::Error::Invalid(format!("{reference} cannot be used"))),
                SecretRef::Named(_) => Err(ports::Error::unavailable("secrets", std::io::Error::other("down"))),
                SecretRef::Env(_) => Ok(None),
            }
        }
    }

    fn credential(id: &str, env: Option<&str>, file: Option<&str>, secret: Option<&str>) -> Credential {
        let text = |text: Option<&str>| text.map(str::to_owned);
        Credential { id: id.into(), env: text(env), file: text(file), secret: text(secret), ..Credential::default() }
    }

    #[tokio::test]
    async fn s10_11_references_become_values_only_here_and_values_are_never_shown() {
        let credentials = [credential("a", Some("A_KEY"), None, None), credential("b", Some("B_KEY"), None, None)];
        let vault = FlowSecrets::open(&credentials, TO, &Host).await.unwrap();
        assert_eq!(vault.get("a").unwrap().expose(), "planted-secret");
        assert_eq!((vault.get("b"), vault.missing("b")), (None, Some(&SecretRef::Env("B_KEY".into()))));
        assert_eq!(vault.redactor().text("it is planted-secret"), "it is [redacted]");
        assert!(!format!("{vault:?}").contains("planted-secret"));
    }

    #[tokio::test]
    async fn s10_11_a_refusal_or_failure_of_the_host_is_an_error() {
        let code = async |credential: Credential| FlowSecrets::open(&[credential], TO, &Host).await.unwrap_err().code;
        assert_eq!(code(credential("a", None, Some("/etc/shadow"), None)).await, Code::Forbidden);
        assert_eq!(code(credential("a", None, None, Some("x"))).await, Code::UpstreamUnavailable);
        assert_eq!(code(credential("a", None, None, None)).await, Code::InvalidArgument);
        assert_eq!(code(credential("a", Some("A"), None, Some("x"))).await, Code::InvalidArgument);
    }
}
