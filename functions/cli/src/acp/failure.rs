//! A failure, as an answer to the editor tells it.

use crate::failure::CliError;

/// Code, message and hint.
pub(super) struct Failure(pub(super) (String, String, Option<String>));

impl From<CliError> for Failure {
    fn from(error: CliError) -> Self {
        match error.refusal() {
            Some(refusal) => Self((refusal.code.clone(), refusal.message.clone(), refusal.hint.clone())),
            None => Self(("UNREACHABLE".into(), error.to_string(), Some("start a hub with `buildscale serve`".into()))),
        }
    }
}

impl From<::client::Error> for Failure {
    fn from(error: ::client::Error) -> Self {
        CliError::from(error).into()
    }
}
