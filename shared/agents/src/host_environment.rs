//! The environment of a host that all agents on it run with.

use crate::roots::Roots;
use domain::{FilePath, WORKSPACE_FOLDER};
use ports::KnownSecrets;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The variables that every agent has of ours: those of its user, and none with a key.
pub(crate) const ENVIRONMENT: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
];

/// Confines the calling thread and all that it starts, for ever: to `readable` paths, which it can read and run, beside the system's, and to
/// `writable` ones, which it can change. An error says for people why this machine cannot.
///
/// A function, because it has no state; it is given, because this crate does not know the crate of sandboxes.
pub type ConfineThread = fn(readable: &[PathBuf], writable: &[PathBuf]) -> Result<(), String>;

/// The environment that agents run with.
#[derive(Clone, Debug)]
pub(crate) struct HostEnvironment {
    /// The environment of this process.
    pub environment: Vec<(String, String)>,
    /// The folders that they may work in.
    pub roots: Roots,
    /// Secrets that are taken out of what is told.
    pub known: KnownSecrets,
    /// How a process is confined; why this machine cannot.
    pub confine: Result<ConfineThread, String>,
    /// The working copy that the agent works in: the folder that has it, as text. None in a folder of the machine.
    pub copy: Option<String>,
}

impl HostEnvironment {
    pub fn variable(&self, name: &str) -> &str {
        self.environment.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The same environment for an agent in a working copy, and in nothing else.
    pub fn in_copy(&self, root: &Path) -> Self {
        Self { roots: Roots::new([root.to_owned()]), copy: root.to_str().map(ToOwned::to_owned), ..self.clone() }
    }

    /// The path in the workspace of a file of the working copy.
    pub fn copied(&self, path: &Path) -> Option<FilePath> {
        let name = path.strip_prefix(self.copy.as_deref()?).ok()?.to_str()?;
        FilePath::parse(&format!("/{name}")).ok()
    }

    /// Names the files of the working copy as those of the workspace: clients know no path of this machine, and rules hold for paths that they know.
    pub fn show(&self, value: &mut Value) {
        let Some(root) = &self.copy else { return };
        match value {
            Value::String(text) if text.contains(root.as_str()) => *text = text.replace(root, WORKSPACE_FOLDER),
            Value::Array(all) => all.iter_mut().for_each(|one| self.show(one)),
            Value::Object(all) => all.values_mut().for_each(|one| self.show(one)),
            _ => {}
        }
    }
}
