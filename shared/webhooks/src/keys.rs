//! The secrets of webhooks. They are derived from a key of the host and never stored: neither the table nor a backup of it has one.

use crate::webhook::SecretName;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{Error, Sha256, WorkspaceId};
use hmac::{Hmac, Mac};
use parking_lot::Mutex;
use ports::Secret;
use std::{fmt, sync::Arc};
use uuid::Uuid;

/// The shortest key, in bytes.
const MIN_KEY: usize = 32;

/// The keys of the host, from which the secrets of webhooks are derived: one per line, of which the first is for new secrets and all are good. So a
/// key can be replaced while the webhooks that came from it still sign.
#[derive(Clone)]
pub struct HookKeys(Arc<Source>);

/// The keys, each under its fingerprint.
type Keys = Arc<Vec<(String, Secret)>>;

enum Source {
    Given(Keys),
    /// Read, or made, when the first webhook needs them.
    WhenNeeded {
        read: Box<dyn Fn() -> Result<Secret, Error> + Send + Sync>,
        keys: Mutex<Option<Keys>>,
    },
}

/// Never shows a key.
impl fmt::Debug for HookKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookKeys")
    }
}

impl HookKeys {
    /// From a text with one key per line.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a text without a key, or with one of less than 32 bytes.
    pub fn new(text: &Secret) -> Result<Self, Error> {
        Ok(Self(Arc::new(Source::Given(parse_keys(text)?))))
    }

    /// From a text that is read, or made, when the first webhook needs it: a host without webhooks has no key to keep.
    pub fn when_needed(read: impl Fn() -> Result<Secret, Error> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Source::WhenNeeded { read: Box::new(read), keys: Mutex::default() }))
    }

    fn keys(&self) -> Result<Keys, Error> {
        match &*self.0 {
            Source::Given(keys) => Ok(keys.clone()),
            Source::WhenNeeded { read, keys } => {
                let mut keys = keys.lock();
                if let Some(keys) = &*keys {
                    return Ok(keys.clone());
                }
                Ok(keys.insert(parse_keys(&read()?)?).clone())
            }
        }
    }

    /// The fingerprint of the key of new secrets.
    ///
    /// # Errors
    /// Those of the place that the key is read from.
    pub fn newest(&self) -> Result<String, Error> {
        Ok(self.keys()?.first().map(|(name, _)| name.clone()).unwrap_or_default())
    }

    /// The secret of a webhook, as `whsec_` and base64; none when this host does not have its key.
    ///
    /// # Errors
    /// Those of the place that the key is read from.
    pub fn secret(&self, workspace: WorkspaceId, webhook: Uuid, name: &SecretName) -> Result<Option<Secret>, Error> {
        let keys = self.keys()?;
        let Some((_, key)) = keys.iter().find(|(known, _)| *known == name.key) else { return Ok(None) };
        let Ok(mut mac) = Hmac::<sha2::Sha256>::new_from_slice(key.expose().as_bytes()) else { return Ok(None) };
        let of = format!("buildscale webhook secret 1\n{workspace}\n{}\n{}", webhook.hyphenated(), name.generation);
        mac.update(of.as_bytes());
        Ok(Some(Secret::new(format!("whsec_{}", STANDARD.encode(mac.finalize().into_bytes())))))
    }
}

fn parse_keys(text: &Secret) -> Result<Keys, Error> {
    let lines = text.expose().lines().map(str::trim).filter(|line| !line.is_empty());
    let keys: Vec<(String, Secret)> = lines.map(|line| (fingerprint(line), Secret::new(line))).collect();
    if keys.is_empty() || keys.iter().any(|(_, key)| key.expose().len() < MIN_KEY) {
        return Err(Error::invalid("webhooks.secret", format!("a key of webhooks has at least {MIN_KEY} bytes"))
            .hint("make one with: buildscale token secret"));
    }
    Ok(Arc::new(keys))
}

fn fingerprint(key: &str) -> String {
    let digest = Sha256::of(format!("buildscale webhook key 1\n{key}").as_bytes()).to_string();
    digest.chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "an old key of at least thirty-two bytes";
    const NEW: &str = "a new key that has at least thirty-two bytes";

    fn keys(text: &str) -> HookKeys {
        HookKeys::new(&Secret::new(text)).expect("keys")
    }

    #[test]
    fn each_webhook_and_generation_has_a_secret_of_its_own_that_outlives_a_change_of_keys() {
        let (workspace, hook) = (WorkspaceId(Uuid::from_u128(1)), Uuid::from_u128(2));
        let old = keys(OLD);
        let first = SecretName { key: old.newest().expect("a key"), generation: 1 };
        let of = |keys: &HookKeys, hook, name: &SecretName| keys.secret(workspace, hook, name).expect("keys");
        let secret = of(&old, hook, &first).expect("a secret");
        assert!(secret.expose().starts_with("whsec_") && secret.expose().len() == 50);
        let second = SecretName { generation: 2, ..first.clone() };
        assert_ne!(of(&old, hook, &second), Some(secret.clone()));
        assert_ne!(of(&old, Uuid::from_u128(3), &first), Some(secret.clone()));
        assert_eq!(of(&keys(&format!("{NEW}\n{OLD}\n")), hook, &first), Some(secret));
        assert_eq!(of(&keys(NEW), hook, &first), None);
    }

    #[test]
    fn weak_keys_are_refused_and_none_is_shown() {
        for text in ["", "\n \n", "short", &format!("{OLD}\nshort")] {
            let refused = HookKeys::new(&Secret::new(text)).expect_err("refused");
            assert!(!refused.to_string().contains("old key"), "{refused}");
        }
        assert_eq!(format!("{:?}", keys(OLD)), "HookKeys");
    }

    #[test]
    fn a_key_is_made_once_and_when_it_is_needed() {
        let made = Arc::new(Mutex::new(0));
        let count = made.clone();
        let keys = HookKeys::when_needed(move || {
            *count.lock() += 1;
            Ok(Secret::new(OLD))
        });
        assert_eq!(*made.lock(), 0);
        assert_eq!(keys.newest(), keys.clone().newest());
        assert_eq!(*made.lock(), 1);
        let lost = HookKeys::when_needed(|| Err(Error::invalid("webhooks-key", "it cannot be read")));
        assert!(lost.newest().is_err());
    }
}
