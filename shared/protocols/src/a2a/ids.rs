//! Ids of tasks, made of those of chats and turns, so that the door remembers none.

use super::{Refusal, RefusalKind};
use domain::{ChatId, TurnId};
use serde_json::Value;
use std::{fmt, str::FromStr};
use uuid::Uuid;

/// A task: the chat, a hyphen and the turn, 32 hexadecimal digits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskId {
    /// The chat.
    pub chat: ChatId,
    /// The turn.
    pub turn: TurnId,
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.chat.0.simple(), self.turn.0.simple())
    }
}

impl FromStr for TaskId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let id = |text: &str| match text.len() {
            32 => Uuid::try_parse(text).map_err(drop),
            _ => Err(()),
        };
        let (chat, turn) = text.split_once('-').ok_or(())?;
        Ok(Self { chat: ChatId(id(chat)?), turn: TurnId(id(turn)?) })
    }
}

/// The task that a value of a request names.
pub(super) fn task(value: &Value) -> Result<TaskId, Refusal> {
    let Some(id) = value.as_str().filter(|id| !id.is_empty()) else {
        return Err(RefusalKind::InvalidParams.of("id", "the id of the task is missing"));
    };
    id.parse().map_err(|()| Refusal::no_task(id.chars().take(80).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = TaskId { chat: ChatId(Uuid::from_u128(1)), turn: TurnId(Uuid::from_u128(2)) };
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "-", "1-2", "019bf537-f228-7cd3-aa1c-3da8af302e12"] {
            assert_eq!(wrong.parse::<TaskId>(), Err(()));
        }
    }
}
