//! The end of a command: the exit codes that scripts use, and the messages on standard error.

use ::client::Error;
pub use ::client::Refusal;
use serde_json::{Value, json};
use std::{borrow::Cow, io, process::ExitCode};

/// Words by which hints of the hub name the route of a list, and words that name the command in its place.
const LISTS: [(&str, &str); 5] = [
    ("GET /api/v1/agents lists", "`buildscale agents` lists"),
    ("GET /api/v1/dead-letters lists", "`buildscale dead-letters` lists"),
    ("GET /api/v1/models lists", "`buildscale models` lists"),
    ("GET /api/v1/workspaces lists", "`buildscale workspaces` lists"),
    ("GET …/tasks lists", "`buildscale task list` lists"),
];

/// How a command ended. The numbers are listed in `--help` and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All went well.
    Done = 0,
    /// Something failed.
    Failed = 1,
    /// The command line or the request makes no sense.
    Usage = 2,
    /// There is no such thing.
    NotFound = 3,
    /// Somebody else was first, or the thing is busy.
    Conflict = 4,
    /// No hub answers.
    Unreachable = 5,
    /// The turn or the task was stopped.
    Stopped = 6,
    /// The turn ended at a limit or with an error.
    Cut = 7,
    /// The turn or the task waits for a person, and none is there.
    Waiting = 8,
    /// The task ended partially.
    Partial = 9,
    /// The hub wants a login, a token or an API key, and there is none that is valid.
    NotLoggedIn = 10,
    /// Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The arguments are well-formed, but cannot be used.
    #[error("{0}")]
    Usage(String),
    /// The named thing does not exist.
    #[error("{0}")]
    NotFound(String),
    /// A path was named, and no folder is there.
    #[error("there is no folder {0}")]
    NoFolder(String),
    /// A folder of this machine, where a file is wanted.
    #[error("{0} is a folder")]
    Folder(String),
    /// The hub refused, cannot be reached, or is none.
    #[error(transparent)]
    Client(#[from] Error),
    /// The issuer of tokens does not answer, or not as one.
    #[error("{url}: {reason}")]
    Issuer {
        /// The address that was asked.
        url: String,
        /// The reason.
        reason: String,
    },
    /// There is no login, or none is possible.
    #[error("{reason}")]
    Login {
        /// The reason.
        reason: String,
        /// The remedy.
        hint: Option<&'static str>,
    },
    /// A file of this machine.
    #[error("{path}: {source}")]
    Local {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// An archive was written, and the workspace has damaged data that is not in it.
    #[error("{path} lacks data that is damaged; rows of it that name such data: {missing}")]
    Incomplete {
        /// The archive.
        path: String,
        /// How many rows of it are about missing data.
        missing: u64,
    },
    /// An export that the hub began and did not end.
    #[error("the export broke off: {reason}")]
    BrokenOff {
        /// How the connection ended.
        reason: String,
    },
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The hub of this process did not start or ended badly, or its configuration is wrong.
    #[error("{}", ports::with_causes(.error.as_ref()))]
    Hub {
        /// The cause.
        error: Box<dyn std::error::Error + Send + Sync>,
        /// Stable, for programs.
        code: &'static str,
        /// Advice for the user.
        hint: Option<Cow<'static, str>>,
    },
    /// Standard output or standard error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl CliError {
    /// The refusal of the hub, if it refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Client(Error::Refused(refusal)) => Some(refusal),
            _ => None,
        }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::Folder(_) | Self::Client(Error::Unusable(_)) => Exit::Usage,
            Self::NotFound(_) | Self::NoFolder(_) => Exit::NotFound,
            Self::Client(Error::Refused(refusal)) => match (refusal.code.as_str(), refusal.status) {
                ("NOT_FOUND", _) => Exit::NotFound,
                ("CONFLICT" | "IDEMPOTENCY_MISMATCH" | "STALE_VERSION" | "PAUSED", _) => Exit::Conflict,
                ("INVALID_ARGUMENT", _) => Exit::Usage,
                ("UNAUTHORIZED", _) | (_, 401) => Exit::NotLoggedIn,
                (_, 404) => Exit::NotFound,
                (_, 409 | 412) => Exit::Conflict,
                _ => Exit::Failed,
            },
            Self::Client(Error::Unreachable { .. } | Error::NoTls { .. }) | Self::BrokenOff { .. } => Exit::Unreachable,
            Self::Login { .. } | Self::Client(Error::NoToken { is_passing: false, .. }) => Exit::NotLoggedIn,
            Self::Interrupted => Exit::Interrupted,
            // A reader of our output may leave when it has seen enough, as `head` does: that is no failure.
            Self::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
            Self::Client(Error::Foreign { .. } | Error::NoToken { is_passing: true, .. })
            | Self::Issuer { .. }
            | Self::Local { .. }
            | Self::Incomplete { .. }
            | Self::Hub { .. }
            | Self::Io(_) => Exit::Failed,
        }
    }

    /// Whether nothing is to be said about it.
    pub fn is_silent(&self) -> bool {
        match self {
            Self::Interrupted => true,
            Self::Io(error) => error.kind() == io::ErrorKind::BrokenPipe,
            _ => false,
        }
    }

    /// Whether a person may have more luck with the next line that they type.
    pub fn can_try_again(&self) -> bool {
        !matches!(self, Self::Interrupted | Self::Io(_))
    }

    /// The stable code: the hub's, or one of ours.
    pub fn code(&self) -> &str {
        match self {
            Self::Usage(_) | Self::Folder(_) | Self::Client(Error::Unusable(_)) => "INVALID_ARGUMENT",
            Self::NotFound(_) | Self::NoFolder(_) => "NOT_FOUND",
            Self::Client(Error::Refused(refusal)) => &refusal.code,
            Self::Client(Error::Unreachable { .. } | Error::NoTls { .. }) | Self::BrokenOff { .. } => "UNREACHABLE",
            Self::Client(Error::Foreign { .. }) => "NOT_A_HUB",
            Self::Issuer { .. } | Self::Client(Error::NoToken { is_passing: true, .. }) => "ISSUER",
            Self::Login { .. } | Self::Client(Error::NoToken { is_passing: false, .. }) => "UNAUTHORIZED",
            Self::Local { .. } | Self::Io(_) => "IO",
            Self::Incomplete { .. } => "CONTENT_MISSING",
            Self::Interrupted => "CANCELLED",
            Self::Hub { code, .. } => code,
        }
    }

    /// The remedy. Where a hint of the hub names the route of a list, this one names the command.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = self.remedy()?;
        let named = LISTS.iter().find(|(route, _)| hint.contains(route));
        Some(named.map_or(Cow::Borrowed(hint), |(route, command)| hint.replace(route, command).into()))
    }

    fn remedy(&self) -> Option<&str> {
        match self {
            // The hub's own hints speak of a header of HTTP, or of clients in general.
            Self::Client(Error::Refused(refusal)) if refusal.status == 401 && refusal.message.contains("API key") => {
                Some(
                    "perhaps it was revoked or has expired: set BUILDSCALE_TOKEN to another one, or log in with \
                     `buildscale auth login` and make one with `buildscale key create`",
                )
            }
            Self::Client(Error::Refused(refusal)) if refusal.status == 401 => {
                Some("log in with `buildscale auth login`, or set BUILDSCALE_TOKEN to a token or an API key")
            }
            Self::Client(Error::Refused(refusal)) => refusal.hint.as_deref(),
            Self::Hub { hint, .. } => hint.as_deref(),
            Self::Login { hint, .. } => *hint,
            Self::Client(Error::NoToken { is_passing: false, .. }) => Some("log in again with: buildscale auth login"),
            Self::Issuer { .. } | Self::Client(Error::NoToken { is_passing: true, .. }) => {
                Some("try again; if it stays so, ask the operator of the hub")
            }
            Self::Client(Error::Unreachable { .. }) => {
                Some("start it with: buildscale serve (or name another with --url)")
            }
            Self::Client(Error::NoTls { .. }) => {
                Some("begin the address (--url or BUILDSCALE_URL) with http:// instead of https://")
            }
            Self::Incomplete { .. } => Some(
                "all that is whole is in it and can be imported; its rows {\"missing\":…} name the rest, as does the import",
            ),
            Self::BrokenOff { .. } => Some(
                "the hub ended, files were moved meanwhile, or data is damaged: its log has the reason. \
                 Export again; of damaged data, an archive (without --git) has all that is whole",
            ),
            Self::Client(Error::Foreign { .. }) => Some("check --url and BUILDSCALE_URL"),
            Self::Folder(_) => Some("send a folder with: buildscale files sync DIR /FOLDER"),
            Self::NoFolder(_) => {
                Some("a flow is a folder with a workflow.yaml; make one with: buildscale flow new DIR")
            }
            _ => None,
        }
    }

    /// For programs: the same envelope that the hub's API has.
    pub fn json(&self) -> Value {
        let mut error = json!({ "code": self.code(), "message": self.to_string() });
        if let Some(hint) = self.hint() {
            error["hint"] = json!(hint);
        }
        if let Some(refusal) = self.refusal() {
            if let Some(id) = &refusal.request_id {
                error["request_id"] = json!(id);
            }
            if !refusal.details.is_empty() {
                error["details"] = Value::Object(refusal.details.clone());
            }
        }
        json!({ "error": error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str) -> CliError {
        let (code, message) = (code.to_owned(), "no".to_owned());
        Error::Refused(Box::new(Refusal { status, code, message, ..Refusal::default() })).into()
    }

    #[test]
    fn codes_decide_before_statuses() {
        for (failure, exit) in [
            (refused(404, "NOT_FOUND"), Exit::NotFound),
            (refused(409, "CONFLICT"), Exit::Conflict),
            (refused(412, "STALE_VERSION"), Exit::Conflict),
            (refused(400, "INVALID_ARGUMENT"), Exit::Usage),
            (refused(405, "INVALID_ARGUMENT"), Exit::Usage),
            (refused(401, "UNAUTHORIZED"), Exit::NotLoggedIn),
            (refused(401, "SOMETHING_NEW"), Exit::NotLoggedIn),
            (refused(403, "FORBIDDEN"), Exit::Failed),
            (refused(409, "SOMETHING_NEW"), Exit::Conflict),
            (refused(500, "INTERNAL"), Exit::Failed),
            (CliError::Usage("x".into()), Exit::Usage),
            (CliError::NotFound("x".into()), Exit::NotFound),
            (CliError::NoFolder("x".into()), Exit::NotFound),
            (CliError::Incomplete { path: "x".into(), missing: 1 }, Exit::Failed),
            (CliError::BrokenOff { reason: "r".into() }, Exit::Unreachable),
            (Error::Unreachable { url: "u".into(), reason: "r".into() }.into(), Exit::Unreachable),
            (Error::NoTls { url: "u".into() }.into(), Exit::Unreachable),
            (Error::Unusable("x".into()).into(), Exit::Usage),
            (Error::NoToken { reason: "r".into(), is_passing: true }.into(), Exit::Failed),
            (Error::NoToken { reason: "r".into(), is_passing: false }.into(), Exit::NotLoggedIn),
            (CliError::Login { reason: "r".into(), hint: None }, Exit::NotLoggedIn),
            (CliError::Io(io::ErrorKind::BrokenPipe.into()), Exit::Done),
            (CliError::Io(io::ErrorKind::StorageFull.into()), Exit::Failed),
        ] {
            assert_eq!(failure.exit(), exit, "{failure:?}");
        }
    }

    #[test]
    fn only_a_broken_pipe_is_silent() {
        assert!(CliError::Io(io::ErrorKind::BrokenPipe.into()).is_silent());
        assert!(!CliError::Io(io::ErrorKind::StorageFull.into()).is_silent());
        assert!(!refused(404, "NOT_FOUND").is_silent());
    }

    #[test]
    fn a_hint_names_commands_in_place_of_routes() {
        let hint = |hint: &str| {
            let refusal = Refusal { status: 404, hint: Some(hint.to_owned()), ..Refusal::default() };
            CliError::from(Error::Refused(Box::new(refusal))).hint().map(Cow::into_owned)
        };
        assert_eq!(
            hint("one of: a; GET /api/v1/models lists all").as_deref(),
            Some("one of: a; `buildscale models` lists all")
        );
        for other in ["ls", "watch GET /api/v1/workspaces/ID/events"] {
            assert_eq!(hint(other).as_deref(), Some(other));
        }
    }

    #[test]
    fn a_refusal_keeps_the_words_of_the_hub() -> Result<(), serde_json::Error> {
        let text = r#"{"code":"CONFLICT","message":"busy","hint":"wait","request_id":"r1","details":{"field":"x"}}"#;
        let json = CliError::from(Error::Refused(Box::new(serde_json::from_str(text)?))).json();
        assert_eq!(json, json!({ "error": serde_json::from_str::<Value>(text)? }));
        Ok(())
    }
}
