//! Ids that follow from other ids and names, so that the door has to remember none.

use domain::{CommandId, Error};
use std::{fmt, str::FromStr};
use uuid::Uuid;

/// The kinds of assistants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssistantKind {
    /// A persona: its threads are chats.
    Persona,
    /// A flow: its threads are tasks.
    Flow,
}

impl AssistantKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Persona => "persona",
            Self::Flow => "flow",
        }
    }

    /// The id of the assistant with this name: a UUID of version 5, the same in every workspace.
    pub fn id(self, name: &str) -> Uuid {
        CommandId::from_key(&format!("assistant/{}", self.name()), name).0
    }

    /// Whether a client means the assistant of this name: by its id, or by the name.
    pub fn is_meant(self, name: &str, by: &str) -> bool {
        name == by || Uuid::try_parse(by).is_ok_and(|id| id == self.id(name))
    }
}

/// A run: the turn or the task, and, but for its first part, `_` and the number of the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunId {
    /// The turn, or the task.
    pub of: Uuid,
    /// Counts the interrupts before it.
    pub number: u32,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.of.hyphenated())?;
        if self.number > 0 { write!(f, "_{}", self.number) } else { Ok(()) }
    }
}

impl FromStr for RunId {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        let (of, number) = text.split_once('_').map_or((text, Ok(0)), |(of, number)| (of, number.parse()));
        match (Uuid::try_parse(of), number) {
            (Ok(of), Ok(number)) => Ok(Self { of, number }),
            _ => Err(Error::not_found("run", text.chars().take(64).collect::<String>())),
        }
    }
}

/// The id of the checkpoint at an event: its number, so that ids have the order of the log.
pub(super) fn checkpoint_id(number: u64) -> String {
    format!("{number:020}")
}

/// The number of the event that a checkpoint is at.
///
/// # Errors
/// `NOT_FOUND` for an id of no checkpoint.
pub fn checkpoint_number(id: &str) -> Result<u64, Error> {
    id.parse().map_err(|_| Error::not_found("checkpoint", id.chars().take(64).collect::<String>()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        for number in [0, 7] {
            let id = RunId { of: Uuid::from_u128(5), number };
            assert_eq!(id.to_string().parse::<RunId>().unwrap(), id);
        }
        for wrong in ["", "x", "_1", "00000000-0000-0000-0000-000000000005_x"] {
            wrong.parse::<RunId>().unwrap_err();
        }
        assert_eq!(checkpoint_number(&checkpoint_id(12)).unwrap(), 12);
        assert_ne!(AssistantKind::Flow.id("review"), AssistantKind::Persona.id("review"));
        assert!(AssistantKind::Flow.is_meant("review", &AssistantKind::Flow.id("review").to_string()));
    }
}
