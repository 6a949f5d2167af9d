//! The options of a sandbox, given at its start as environment variables of its task.

use domain::{Sha256, WorkspaceId};
use std::{path::PathBuf, time::Duration};

/// The workspace's id.
const WORKSPACE: &str = "BUILDSCALE__SANDBOX__WORKSPACE";
/// The SHA-256 hash of the token. Only the table has the token itself.
const TOKEN_SHA256: &str = "BUILDSCALE__SANDBOX__TOKEN_SHA256";
/// The seconds without use after which it ends.
const IDLE_SECONDS: &str = "BUILDSCALE__SANDBOX__IDLE_SECONDS";
/// The folder of the mirror.
const FOLDER: &str = "BUILDSCALE__SANDBOX__FOLDER";
/// The folder that commands may write to.
const SCRATCH: &str = "BUILDSCALE__SANDBOX__SCRATCH";
/// The address to listen on.
const LISTEN: &str = "BUILDSCALE__SERVER__LISTEN";

/// Why a sandbox does not start.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// A variable that is missing, or makes no sense.
    #[error("{name} {what}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// The fault, as the predicate of the message.
        what: String,
    },
    /// The disk, or the socket.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// How a sandbox runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The workspace that the sandbox belongs to.
    pub workspace: WorkspaceId,
    /// The SHA-256 hash of its token.
    pub token: Sha256,
    /// The time without use after which it ends.
    pub idle: Duration,
    /// The folder of the mirror.
    pub folder: PathBuf,
    /// The folder that commands may write to.
    pub scratch: PathBuf,
    /// The address to listen on, such as `0.0.0.0:8080`.
    pub listen: String,
}

impl Options {
    /// Out of variables.
    ///
    /// # Errors
    /// When one that is needed is missing, or one makes no sense.
    pub fn from_variables(look_up: impl Fn(&str) -> Option<String>) -> Result<Self, OptionsError> {
        let given = |name| look_up(name).filter(|text| !text.is_empty());
        let needed = |name| given(name).ok_or_else(|| OptionsError::Variable { name, what: "is not set".into() });
        fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
            name: &'static str,
            text: &str,
        ) -> Result<T, OptionsError> {
            text.parse().map_err(|error| OptionsError::Variable { name, what: format!("makes no sense: {error}") })
        }
        let idle: u64 = parse(IDLE_SECONDS, &given(IDLE_SECONDS).unwrap_or_else(|| "900".into()))?;
        Ok(Self {
            workspace: parse(WORKSPACE, &needed(WORKSPACE)?)?,
            token: parse(TOKEN_SHA256, &needed(TOKEN_SHA256)?)?,
            idle: Duration::from_secs(idle),
            folder: given(FOLDER).unwrap_or_else(|| "/workspace".into()).into(),
            scratch: given(SCRATCH).unwrap_or_else(|| "/tmp".into()).into(),
            listen: given(LISTEN).unwrap_or_else(|| "0.0.0.0:8080".into()),
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn options(variables: &[(&str, &str)]) -> Result<Options, OptionsError> {
        let found = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).into());
        Options::from_variables(found)
    }

    #[test]
    fn a_task_needs_a_workspace_and_a_token_and_has_defaults_for_the_rest() {
        let digest = Sha256::of(b"token").to_string();
        let workspace = "0199aaaa-0000-7000-8000-000000000001";
        let least = [(WORKSPACE, workspace), (TOKEN_SHA256, digest.as_str())];
        let found = options(&least).unwrap();
        assert_eq!(found.workspace.to_string(), workspace);
        assert_eq!((found.idle, found.listen.as_str()), (Duration::from_secs(900), "0.0.0.0:8080"));
        assert_eq!((found.folder, found.scratch), (PathBuf::from("/workspace"), PathBuf::from("/tmp")));
        assert_eq!(options(&[least[1]]).unwrap_err().to_string(), format!("{WORKSPACE} is not set"));
        assert_eq!(options(&[least[0]]).unwrap_err().to_string(), format!("{TOKEN_SHA256} is not set"));
        assert!(options(&[least[0], (TOKEN_SHA256, "secret")]).unwrap_err().to_string().contains("makes no sense"));
        assert!(options(&[least[0], least[1], (IDLE_SECONDS, "soon")]).is_err());
    }
}
