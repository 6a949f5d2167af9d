//! Secrets: the sources of keys, and keeping keys out of everything that is read.

use crate::{Redactor, Result, Secret};
use async_trait::async_trait;
use domain::WorkspaceId;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use std::{collections::VecDeque, fmt, sync::Arc};

/// The place of a secret: manifests name it instead of the secret. It is not secret itself and may be shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretRef {
    /// In a variable of the environment.
    Env(String),
    /// In a file.
    File(String),
    /// Under this name in the host's secrets.
    Named(String),
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the environment variable {name}"),
            Self::File(path) => write!(f, "the file {path}"),
            Self::Named(name) => write!(f, "the secret {name}"),
        }
    }
}

/// The party that asks for a secret, and the address that it will be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipient<'a> {
    /// The workspace of the flow.
    pub workspace: WorkspaceId,
    /// The address that the secret is sent to.
    pub address: Address<'a>,
}

/// An address that a secret is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address<'a> {
    /// That of a well-known provider of models, by the name of its adapter, such as `openai`.
    Provider(&'a str),
    /// The URL that a flow names.
    Url(&'a str),
}

/// The secrets of the host.
///
/// Guarantees: a returned secret is never empty and has no white space around it; an error names the reference and never the secret. An
/// adapter may refuse a reference ([`crate::Error::Invalid`]): the author of a flow does not choose which secrets of the host it reads, nor
/// the addresses that get them.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The secret, for this recipient; none when there is none.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a reference that this host refuses to flows;
    /// [`Error::Unavailable`](crate::Error::Unavailable) when its secrets do not answer.
    async fn get(&self, reference: &SecretRef, to: Recipient<'_>) -> Result<Option<Secret>>;
}

/// Every secret that a process has come to know: from its configuration, its environment, its files, and by looking one up for a flow. Code
/// that writes something down takes these out of it first. Cheap to clone; clones share new secrets.
#[derive(Clone, Default)]
pub struct KnownSecrets(Arc<RwLock<LearnedSecrets>>);

/// The most secrets that are known for a time, and their bytes: others choose their number and their length.
const MOST_PASSING: usize = 512;
const MOST_PASSING_BYTES: usize = 256 << 10;

#[derive(Default)]
struct LearnedSecrets {
    secrets: Vec<Secret>,
    /// Those that pass, the last learned at the end.
    passing: VecDeque<Secret>,
    redactor: Redactor,
}

impl LearnedSecrets {
    fn learn_passing(&mut self, secret: Secret) {
        self.passing.retain(|known| *known != secret);
        self.passing.push_back(secret);
        forget_oldest(&mut self.passing, MOST_PASSING, MOST_PASSING_BYTES);
    }

    fn redact(&mut self) {
        self.redactor = Redactor::new(self.secrets.iter().chain(&self.passing));
    }
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KnownSecrets({:?})", self.redactor())
    }
}

/// Keeps the last secrets: so many, and of so many bytes together.
fn forget_oldest(passing: &mut VecDeque<Secret>, most: usize, most_bytes: usize) {
    let mut bytes: usize = passing.iter().map(|secret| secret.expose().len()).sum();
    while passing.len() > most || bytes > most_bytes {
        bytes -= passing.pop_front().map_or(bytes, |oldest| oldest.expose().len());
    }
}

impl KnownSecrets {
    /// Remembers these, for as long as the process lives: a key that was replaced may still be in somebody's text.
    pub fn learn<'a>(&self, secrets: impl IntoIterator<Item = &'a Secret>) {
        let known = self.0.read();
        let new: Vec<Secret> = secrets.into_iter().filter(|secret| !known.secrets.contains(secret)).cloned().collect();
        drop(known);
        if new.is_empty() {
            return;
        }
        let known = &mut *self.0.write();
        for secret in new {
            if !known.secrets.contains(&secret) {
                known.secrets.push(secret);
            }
        }
        known.redact();
    }

    /// Remembers secrets that an issuer gave for a time, such as tokens. The last 512 are known, up to 256 KiB: a token
    /// that was replaced so often has expired.
    pub fn learn_passing<'a>(&self, secrets: impl IntoIterator<Item = &'a Secret>) {
        let secrets: Vec<&Secret> = secrets.into_iter().collect();
        let is_last = |known: &LearnedSecrets| secrets.iter().all(|secret| known.passing.contains(secret));
        // Most are learned with each call, and are known.
        if is_last(&self.0.read()) {
            return;
        }
        let known = &mut *self.0.write();
        secrets.into_iter().cloned().for_each(|secret| known.learn_passing(secret));
        known.redact();
    }

    /// A redactor of all secrets that are known by now.
    pub fn redactor(&self) -> Redactor {
        self.0.read().redactor.clone()
    }
}

/// Looks up secrets and remembers each in [`KnownSecrets`] before it is returned, so that none can be written down before.
pub struct RememberedSecrets {
    inner: Arc<dyn Secrets>,
    known: KnownSecrets,
}

impl RememberedSecrets {
    /// Wraps `inner`, and notes each secret that it returns in `known`.
    pub fn new(inner: Arc<dyn Secrets>, known: KnownSecrets) -> Self {
        Self { inner, known }
    }
}

#[async_trait]
impl Secrets for RememberedSecrets {
    async fn get(&self, reference: &SecretRef, to: Recipient<'_>) -> Result<Option<Secret>> {
        let found = self.inner.get(reference, to).await?;
        self.known.learn(&found);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use futures::FutureExt;

    #[test]
    fn s10_11_a_secret_that_is_looked_up_is_known_from_then_on() {
        struct Host;
        #[async_trait]
        impl Secrets for Host {
            async fn get(&self, _: &SecretRef, _: Recipient<'_>) -> Result<Option<Secret>> {
                Ok(Some(Secret::new("looked-up-secret")))
            }
        }
        let known = KnownSecrets::default();
        known.learn(&[Secret::new("first-secret"), Secret::new("first-secret")]);
        let secrets = RememberedSecrets::new(Arc::new(Host), known.clone());
        assert_eq!(known.redactor().text("looked-up-secret"), "looked-up-secret");
        let to = Recipient {
            workspace: WorkspaceId::from_key("secrets", "tests"),
            address: Address::Url("https://a.example"),
        };
        secrets.get(&SecretRef::Named("x".into()), to).now_or_never().unwrap().unwrap();
        assert_eq!(known.redactor().text("looked-up-secret first-secret"), "[redacted] [redacted]");
        assert!(!format!("{known:?}").contains("secret"), "{known:?}");
    }

    #[test]
    fn s10_11_secrets_that_pass_are_bounded_and_never_those_that_stay() {
        let known = KnownSecrets::default();
        known.learn(&[Secret::new("stays-for-ever")]);
        known.learn_passing(&[Secret::new("passes-some-day")]);
        assert_eq!(known.redactor().text("stays-for-ever passes-some-day"), "[redacted] [redacted]");

        let all = |texts: &[&str]| texts.iter().map(|text| Secret::new(*text)).collect::<VecDeque<_>>();
        for (most, most_bytes, left) in [(3, 99, 3), (2, 99, 2), (3, 10, 2), (3, 4, 1), (3, 3, 0)] {
            let mut passing = all(&["first", "second", "last"]);
            forget_oldest(&mut passing, most, most_bytes);
            assert_eq!(passing, all(&["first", "second", "last"]).split_off(3 - left), "{most} {most_bytes}");
        }
    }

    #[test]
    fn s10_11_a_secret_is_never_shown() {
        let secret = Secret::new("hunter2-hunter2");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "[redacted] [redacted] Some([redacted])");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"[redacted]\"");
        assert_eq!(serde_json::from_str::<Secret>("\"abc\"").unwrap().expose(), "abc");
    }
}
