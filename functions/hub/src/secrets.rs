//! The secrets of this machine.

use assembly::grants::{Granted, Grants};
use embedded::LocalSecrets;
use ports::{KnownSecrets, Noted, Secrets};
use std::{path::Path, sync::Arc};

/// The secrets of this machine as far as flows may use them: the files of its folder, and variables of its environment. A secret
/// that was looked up is known from then on.
pub(crate) fn of_host(
    data: &Path,
    environment: &[(String, String)],
    grants: Grants,
    known: &KnownSecrets,
) -> Arc<dyn Secrets> {
    let host = Granted::new(Arc::new(local(data, environment)), grants);
    Arc::new(Noted::new(Arc::new(host), known.clone()))
}

/// The same secrets without the rule, for what the operator's own configuration refers to.
pub(crate) fn of_operator(data: &Path, environment: &[(String, String)], known: &KnownSecrets) -> Arc<dyn Secrets> {
    Arc::new(Noted::new(Arc::new(local(data, environment)), known.clone()))
}

/// Learns the current secrets of the folder.
pub(crate) fn learn_folder(data: &Path, known: &KnownSecrets) {
    known.learn(&local(data, &[]).of_folder());
}

fn local(data: &Path, environment: &[(String, String)]) -> LocalSecrets {
    let variables = environment.to_vec();
    let lookup = move |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    LocalSecrets::new(Some(data.join("secrets"))).with_variables(lookup)
}
