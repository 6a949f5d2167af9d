//! Principals: the callers of reads and writes.

use crate::{ChatId, Error, TaskId, UserId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The caller of a read or a write: every one of them names a principal (docs/architecture/security.md).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Principal {
    /// A person.
    User {
        /// The user.
        id: UserId,
    },
    /// An agent that works in a chat for a person.
    Agent {
        /// The persona, such as `assistant`.
        role: String,
        /// The chat it works in.
        chat: ChatId,
        /// The user it works for.
        user: UserId,
    },
    /// A deterministic node of a task that works for a person.
    Task {
        /// The task.
        task: TaskId,
        /// The user it works for.
        user: UserId,
    },
    /// BuildScale itself, for housekeeping.
    System,
}

impl Principal {
    /// The one person of a machine without accounts.
    pub fn local() -> Self {
        Self::User { id: UserId(uuid::Uuid::nil()) }
    }

    /// The person behind it; the nil id for the system.
    pub fn user(&self) -> UserId {
        match self {
            Self::User { id } | Self::Agent { user: id, .. } | Self::Task { user: id, .. } => *id,
            Self::System => UserId(uuid::Uuid::nil()),
        }
    }

    /// The person who acts; none where a program acts, also where it works for a person.
    pub fn person(&self) -> Option<UserId> {
        match self {
            Self::User { id } => Some(*id),
            Self::Agent { .. } | Self::Task { .. } | Self::System => None,
        }
    }

    /// Refuses a text that cannot be the author of a version: it would find nothing, and look like an author without files.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about the field `author`.
    pub fn check_author(text: &str) -> Result<(), Error> {
        const SHOWN: usize = 64;
        if Self::is_author(text) {
            return Ok(());
        }
        let shown: String = text.chars().take(SHOWN).collect();
        Err(Error::invalid("author", format!("{shown:?} cannot be the author of a version"))
            .hint("an author is user:<id>, agent:<persona>, task:<id> or system, or of an imported repository Ada <ada@example.org>"))
    }

    /// Whether a text can be the author of a version: a principal as it is shown, `unknown`, or an author of an imported version, which has a space or
    /// an `@`, such as `Ada <ada@example.org>`. Whether anything is by that author is another question.
    fn is_author(text: &str) -> bool {
        /// The longest author, in characters.
        const LONGEST: usize = 300;
        if text.chars().any(char::is_control) || text.chars().count() > LONGEST {
            return false;
        }
        // Ids are compared as texts: another spelling of the same id finds nothing.
        match text.split_once(':') {
            Some(("user", id)) => id.parse::<UserId>().is_ok_and(|parsed| parsed.to_string() == id),
            Some(("task", id)) => id.parse::<TaskId>().is_ok_and(|parsed| parsed.to_string() == id),
            Some(("agent", role)) => !role.trim().is_empty(),
            _ => ["system", "unknown"].contains(&text) || !text.trim().is_empty() && text.contains([' ', '@']),
        }
    }
}

/// As it is shown as an author: `user:<id>`, `agent:<role>`, `task:<id>`, `system`.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { id } => write!(f, "user:{id}"),
            Self::Agent { role, .. } => write!(f, "agent:{role}"),
            Self::Task { task, .. } => write!(f, "task:{task}"),
            Self::System => f.write_str("system"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_principal_can_be_an_author_and_odd_texts_cannot() {
        let id = uuid::Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_3da8_af30_2e12);
        let (chat, user) = (ChatId(id), UserId(id));
        for principal in [
            Principal::local(),
            Principal::User { id: user },
            Principal::Agent { role: "seo-specialist".into(), chat, user },
            Principal::Task { task: TaskId(id), user },
            Principal::System,
        ] {
            assert!(Principal::is_author(&principal.to_string()), "{principal}");
        }
        let cut = format!("Ada {}", "a".repeat(296));
        for imported in [
            "Ada Lovelace <ada@example.org>",
            "<ada@example.org>",
            "Ada ada@example.org",
            "ada@example.org",
            "Ada: Lovelace",
            "unknown",
            &cut,
        ] {
            assert!(Principal::is_author(imported), "{imported}");
        }
        let long = format!("agent:{}", "a".repeat(300));
        for odd in [
            "",
            " ",
            "ada",
            "me",
            "user",
            "user:",
            "user:ada",
            "user:<id>",
            "agent:",
            "agent: ",
            "task:1",
            "System",
            "system:",
            "service:sandbox",
            "agent:a\nb",
            &id.to_string(),
            &format!("user:{}", id.simple()),
            &format!("user: {id}"),
            &format!("user:{}", id.to_string().to_uppercase()),
            &long,
        ] {
            assert!(!Principal::is_author(odd), "{odd:?}");
        }
    }
}
