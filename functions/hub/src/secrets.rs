//! The secrets of this machine.

use crate::layout::{ACCOUNTS_KEY, WEBHOOKS_KEY};
use assembly::{
    grants::{Granted, Grants},
    process,
};
use domain::{Code, Error};
use embedded::{LocalSecrets, WRITTEN_BACK};
use mcp::KeySource;
use ports::{KnownSecrets, RememberedSecrets, Secret, Secrets};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Arc,
};
use webhooks::HookKeys;

/// The secrets of this machine as far as flows may use them: the files of its folder, and variables of its environment. A secret
/// that was looked up is known from then on.
pub(crate) fn of_host(
    data: &Path,
    environment: &[(String, String)],
    grants: Grants,
    known: &KnownSecrets,
) -> Arc<dyn Secrets> {
    let host = Granted::new(Arc::new(local(data, environment)), grants);
    Arc::new(RememberedSecrets::new(Arc::new(host), known.clone()))
}

/// The same secrets without the rule, for what the operator's own configuration refers to.
pub(crate) fn of_operator(data: &Path, environment: &[(String, String)], known: &KnownSecrets) -> Arc<dyn Secrets> {
    Arc::new(RememberedSecrets::new(Arc::new(local(data, environment)), known.clone()))
}

/// Learns the current secrets of the folder.
pub(crate) fn learn_folder(data: &Path, known: &KnownSecrets) {
    known.learn(&local(data, &[]).of_folder());
}

/// The key of webhooks in the data folder, which is made for the first webhook. It is not in the folder of secrets, which flows can refer to.
pub(crate) fn webhooks_keys(data: &Path, known: &KnownSecrets) -> HookKeys {
    let (data, known) = (data.to_owned(), known.clone());
    HookKeys::when_needed(move || {
        let key = kept_key(&data, WEBHOOKS_KEY).map_err(|error| {
            tracing::error!(%error, "the key of webhooks cannot be read or made");
            Error::new(Code::UpstreamUnavailable, "the key of webhooks cannot be read or made")
        })?;
        known.learn([&key]);
        Ok(key)
    })
}

/// The key of accounts at MCP servers in the data folder, which is made with the first sign-in. Flows cannot refer to it, either.
pub(crate) fn accounts_key(data: &Path, known: &KnownSecrets) -> KeySource {
    let (data, known) = (data.to_owned(), known.clone());
    Arc::new(move || {
        let key = kept_key(&data, ACCOUNTS_KEY).map_err(|error| {
            tracing::error!(%error, "the key of accounts cannot be read or made");
            "the key of accounts cannot be read or made".to_owned()
        })?;
        known.learn([&key]);
        Ok(key)
    })
}

/// Writes a secret to a file that only the user of the hub reads. The entry of its folder may not be durable yet.
pub(crate) fn keep(path: &Path, secret: &str) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    writeln!(file, "{secret}")?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

/// A key in the data folder, which is made where there is none.
fn kept_key(data: &Path, name: &str) -> io::Result<Secret> {
    kept_key_with(data, name, |folder| File::open(folder)?.sync_all())
}

/// The same with `sync`, which makes the entries of a folder durable.
fn kept_key_with(data: &Path, name: &str, sync: fn(&Path) -> io::Result<()>) -> io::Result<Secret> {
    let path = data.join(name);
    let text = match fs::read_to_string(&path) {
        Ok(text) => {
            // The process that made it may have died before the sync, and the kernel writes the change within a minute. Nothing is sealed before that
            // with a key that a power cut may take.
            let age = fs::metadata(&path)?.modified()?.elapsed().unwrap_or_default();
            if age < WRITTEN_BACK {
                sync(data)?;
            }
            text
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = identity::fresh_secret();
            keep(&path, &text)?;
            sync(data)?;
            text
        }
        Err(error) => return Err(error),
    };
    Ok(Secret::new(text.trim()))
}

fn local(data: &Path, environment: &[(String, String)]) -> LocalSecrets {
    let variables = environment.to_vec();
    let lookup = move |name: &str| process::variable(&variables, name).map(str::to_owned);
    LocalSecrets::new(Some(data.join("secrets"))).with_variables(lookup)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use assembly::grants::Grant;
    use domain::WorkspaceId;
    use ports::{Address, Recipient, SecretRef};

    #[test]
    fn a_key_that_an_earlier_process_did_not_sync_is_synced_before_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let failing = |_: &Path| Err(io::Error::other("the disk fails"));
        // It is made and not synced, as by a process that dies there.
        assert!(kept_key_with(folder.path(), "key", failing).is_err());
        assert!(folder.path().join("key").exists());
        assert!(kept_key_with(folder.path(), "key", failing).is_err());
        let key = kept_key(folder.path(), "key").unwrap();
        assert_eq!(kept_key(folder.path(), "key").unwrap().expose(), key.expose());
    }

    #[tokio::test]
    async fn no_grant_gives_a_workspace_what_is_the_hubs_own() {
        let folder = tempfile::tempdir().unwrap();
        let all = || vec!["*".to_owned()];
        let grant = Grant { names: all(), workspaces: all(), hosts: all() };
        let environment = ["HOUSE_KEY", "BUILDSCALE_TOKEN", "BUILDSCALE__SERVER__AUTH_TOKEN"]
            .map(|name| (name.to_owned(), format!("the value of {name}")));
        let to = Recipient {
            workspace: WorkspaceId::from_key("secrets", "tests"),
            address: Address::Url("https://a.example"),
        };
        let known = KnownSecrets::default();
        for has_accounts in [true, false] {
            let grants = Grants::new(std::slice::from_ref(&grant), has_accounts);
            let host = of_host(folder.path(), &environment, grants, &known);
            let given = host.get(&SecretRef::Env("HOUSE_KEY".into()), to).await.unwrap();
            assert_eq!(given.map(|secret| secret.expose().to_owned()).as_deref(), Some("the value of HOUSE_KEY"));
            for (name, value) in &environment[1..] {
                let refused = host.get(&SecretRef::Env(name.clone()), to).await.unwrap_err().to_string();
                assert!(refused.contains("it belongs to the hub itself") && !refused.contains(value), "{refused}");
            }
        }
    }
}
