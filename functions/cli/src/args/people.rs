//! The arguments of `buildscale key` and `buildscale member`.

use super::Connection;
use clap::{Args, Subcommand, ValueEnum};
use domain::WorkspaceId;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct KeyArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) command: Option<KeyCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// List your API keys, oldest first (as `key` alone does)
    List,
    /// Make an API key and print it, this once
    Create {
        /// The name of the key, such as its purpose
        name: String,
        /// A permission of the key; can be repeated
        #[arg(long = "scope", value_name = "SCOPE", default_value = "read")]
        scopes: Vec<Scope>,
        /// For this workspace only, by id; can be repeated [default: all of yours]
        #[arg(long = "only", value_name = "WORKSPACE")]
        workspaces: Vec<WorkspaceId>,
        /// How long it is valid: a number with s, m, h or d [default: until it is revoked]
        #[arg(long, value_parser = duration, value_name = "TIME")]
        life: Option<Duration>,
    },
    /// Revoke an API key, for good
    Revoke {
        /// Its id, as `key list` shows it, or the beginning of it
        #[arg(value_name = "KEY")]
        id: IdPrefix,
    },
}

#[derive(Debug, Args)]
pub struct MemberArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one]
    #[arg(long, short, global = true, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<MemberCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemberCommand {
    /// List the members of a workspace (as `member` alone does)
    List,
    /// Show your own role and rights
    Me,
    /// Make somebody a member
    Add {
        /// Their name at the issuer of tokens, or their user id
        who: String,
        /// The role
        role: Role,
    },
    /// Give a member another role
    Role {
        /// Their name or user id, or the beginning of the id
        who: String,
        /// The new role
        role: Role,
    },
    /// End somebody's membership, or your own
    Remove {
        /// Their name or user id, or the beginning of the id. After the membership has ended, --erase-home needs the whole user id
        who: String,
        /// Also remove all that is in their home for good, with all versions
        #[arg(long)]
        erase_home: bool,
    },
}

/// An id, or as much of its beginning as no other one has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdPrefix(String);

impl IdPrefix {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for IdPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A table on a narrow terminal cuts ids, and says so.
        let text = text.trim_end_matches('…');
        let is_one = text.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-');
        match text.len() {
            4..=36 if is_one => Ok(Self(text.to_ascii_lowercase())),
            0..4 if is_one => Err("give at least the first four characters of the id".into()),
            _ => Err("write the id, or its beginning such as 019bf537".into()),
        }
    }
}

/// The role of a member in a workspace.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Role {
    /// Has the workspace
    Owner,
    /// Manages members
    Admin,
    /// Changes files, and decides permission requests of agents
    Editor,
    /// Works through agents and flows
    Member,
    /// Looks
    Viewer,
}

/// The rows of the table of usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UsageBy {
    /// A day and a model
    Day,
    /// A person that agents worked for, and a model
    Person,
}

/// A permission of a key.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Scope {
    /// See everything
    Read,
    /// Make chats and talk in them
    Converse,
    /// Start and steer tasks
    Run,
    /// Change files
    Write,
    /// Decide permission requests of agents
    Approve,
    /// Members, names, removing for good
    Administer,
    /// Make and delete workspaces
    Own,
}

/// As it is on the wire.
pub(crate) fn named(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// `90s`, `15m`, `12h`, `30d`.
///
/// # Errors
/// For people: the text, and the forms to write.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: write 90s, 15m, 12h or 30d");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    // A century is as good as for ever.
    number
        .checked_mul(seconds)
        .filter(|all| (1..=100 * 366 * 24 * 3600).contains(all))
        .map(Duration::from_secs)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)));
        }
        for bad in ["", "s", "0d", "1", "-1d", "1w", "1.5h", "999999999999999d", "ä"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
