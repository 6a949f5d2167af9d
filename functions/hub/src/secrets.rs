//! The secrets of this machine.

use async_trait::async_trait;
use embedded::LocalSecrets;
use ports::{Error, KnownSecrets, Noted, Result, Secret, SecretRef, Secrets};
use std::{path::Path, sync::Arc};

/// The secrets of this machine, for flows to refer to: of the variables those that are `allowed`, or all. What they look up is known
/// from then on.
pub(crate) fn of_host(
    data: &Path,
    environment: &[(String, String)],
    allowed: Option<&[String]>,
    known: &KnownSecrets,
) -> Arc<dyn Secrets> {
    let host = OfHost { secrets: local(data, environment), allowed: allowed.map(<[String]>::to_vec) };
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
    /// Names of variables; one that ends in `*` stands for all that begin so.
    allowed: Option<Vec<String>>,
}

#[async_trait]
impl Secrets for OfHost {
    async fn get(&self, reference: &SecretRef) -> Result<Option<Secret>> {
        if let (SecretRef::Env(name), Some(allowed)) = (reference, &self.allowed) {
            let fits = |pattern: &String| match pattern.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == pattern,
            };
            if !allowed.iter().any(fits) {
                return Err(Error::Invalid(format!("{reference} cannot be used: flows may not refer to it here")));
            }
        }
        self.secrets.get(reference).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn s10_11_flows_refer_to_the_variables_that_they_may() {
        let environment = ["HOUSE_KEY", "OTHER_KEY", "ONE"].map(|name| (name.to_owned(), format!("value-of-{name}")));
        let folder = Path::new("no-such-folder");
        let found = async |allowed: Option<&[String]>, name: &str| {
            let secrets = of_host(folder, &environment, allowed, &KnownSecrets::default());
            secrets
                .get(&SecretRef::Env(name.into()))
                .await
                .map(|found| found.is_some())
                .map_err(|error| error.to_string())
        };
        let some = ["HOUSE_*".to_owned(), "ONE".to_owned()];
        for name in ["HOUSE_KEY", "ONE"] {
            assert_eq!(found(Some(&some), name).await, Ok(true), "{name}");
        }
        for name in ["OTHER_KEY", "ONE_MORE"] {
            let refused = found(Some(&some), name).await;
            assert!(refused.is_err_and(|why| why.contains(name) && !why.contains("value-of")), "{name}");
        }
        assert!(found(Some(&[]), "HOUSE_KEY").await.is_err());
        assert_eq!(found(None, "OTHER_KEY").await, Ok(true));
    }
}
