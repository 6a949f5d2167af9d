//! The hub: everything in one process on embedded adapters, and the command line. It is the default on a laptop, and the
//! code is the same as in the cloud; only `assemble` names adapters.

mod address_in_use;
pub mod assemble;
pub mod backup;
mod coding_agents;
mod connections;
mod crashes;
pub mod fsck;
mod host;
mod layout;
pub mod notify;
pub mod preflight;
pub mod program;
mod secrets;
pub mod serve;
mod servers;
mod sweeping;
mod transcripts;

use std::borrow::Cow;

/// Why the hub did not start or did not go on.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The configuration makes no sense.
    #[error("the configuration is wrong: {0}")]
    Config(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        #[source]
        source: std::io::Error,
        /// The way out, where it is known.
        hint: Option<String>,
    },
    /// The data folder cannot be used.
    #[error(transparent)]
    Store(#[from] embedded::OpenError),
    /// The models cannot be set up.
    #[error(transparent)]
    Models(#[from] models::ConfigError),
    /// The files on disk could not be brought in line with the index.
    #[error("the workspaces could not be repaired: {0}")]
    Repair(domain::Error),
    /// A backup was not made, or not restored.
    #[error(transparent)]
    Backup(#[from] backup::BackupError),
    /// Something of the operating system's.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl HubError {
    /// Stable, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::Backup(failure) => failure.code(),
            _ => "HUB",
        }
    }

    /// Advice for the operator.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Listen { hint, .. } => hint.clone().map(Cow::Owned),
            Self::Store(error) => error.hint().map(Cow::Borrowed),
            Self::Backup(failure) => failure.hint().map(Cow::Borrowed),
            _ => None,
        }
    }
}

impl From<assembly::SetupError> for HubError {
    fn from(failure: assembly::SetupError) -> Self {
        match failure {
            assembly::SetupError::Config(reason) => Self::Config(reason),
            assembly::SetupError::Models(error) => Self::Models(error),
        }
    }
}
