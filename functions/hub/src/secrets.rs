//! The secrets of this machine.

use embedded::LocalSecrets;
use ports::{KnownSecrets, Noted, Secrets};
use std::{path::Path, sync::Arc};

/// The secrets of this machine, for flows to refer to. What they look up is known from then on.
pub(crate) fn of_host(data: &Path, environment: &[(String, String)], known: &KnownSecrets) -> Arc<dyn Secrets> {
    Arc::new(Noted::new(Arc::new(local(data, environment)), known.clone()))
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
