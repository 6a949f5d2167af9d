//! The settings that all agents of a machine run with.

use crate::roots::Roots;
use ports::KnownSecrets;
use std::path::PathBuf;

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

/// Confines the calling thread and all that it starts, for ever: to paths that it can read and run, beside the system's, and to paths that it can change.
pub type Enclose = fn(&[PathBuf], &[PathBuf]) -> Result<(), String>;

/// The settings that agents run with.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The environment of this process.
    pub environment: Vec<(String, String)>,
    /// The folders that they may work in.
    pub roots: Roots,
    /// Secrets that are taken out of what is told.
    pub known: KnownSecrets,
    /// How a process is confined; why this machine cannot.
    pub enclose: Result<Enclose, String>,
}

impl World {
    pub fn variable(&self, name: &str) -> &str {
        self.environment.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}
