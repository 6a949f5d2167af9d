//! References to actors: one text for a queue group, a partition of the table and a channel of the bus, such as `chat/<workspace>/<chat>`.

use crate::{ChatId, EvaluationId, TaskId, WorkspaceId};
use std::{fmt, str::FromStr};

/// The kind of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorKind {
    /// A chat.
    Chat,
    /// A task of a flow.
    Task,
    /// An evaluation.
    Evaluation,
}

impl ActorKind {
    const ALL: [Self; 3] = [Self::Chat, Self::Task, Self::Evaluation];

    /// The first part of the text of a reference. Tables and queues keep it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Task => "task",
            Self::Evaluation => "evaluation",
        }
    }

    /// The kind with this text; none when no kind has it.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A chat, a task or an evaluation of a workspace, as commands are sent to it and as it is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActorRef {
    /// A chat.
    Chat {
        /// Its workspace.
        workspace: WorkspaceId,
        /// Its id.
        chat: ChatId,
    },
    /// A task of a flow.
    Task {
        /// Its workspace.
        workspace: WorkspaceId,
        /// Its id.
        task: TaskId,
    },
    /// An evaluation. It has messages as an actor has, and no log.
    Evaluation {
        /// Its workspace.
        workspace: WorkspaceId,
        /// Its id.
        evaluation: EvaluationId,
    },
}

impl ActorRef {
    /// Its kind.
    pub const fn kind(self) -> ActorKind {
        match self {
            Self::Chat { .. } => ActorKind::Chat,
            Self::Task { .. } => ActorKind::Task,
            Self::Evaluation { .. } => ActorKind::Evaluation,
        }
    }
}

impl fmt::Display for ActorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind().as_str();
        match self {
            Self::Chat { workspace, chat } => write!(f, "{kind}/{workspace}/{chat}"),
            Self::Task { workspace, task } => write!(f, "{kind}/{workspace}/{task}"),
            Self::Evaluation { workspace, evaluation } => write!(f, "{kind}/{workspace}/{evaluation}"),
        }
    }
}

/// A text that refers to no chat, task or evaluation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no reference to an actor: expected one like chat/<workspace>/<chat>")]
pub struct ActorRefError(String);

impl FromStr for ActorRef {
    type Err = ActorRefError;
    fn from_str(text: &str) -> Result<Self, ActorRefError> {
        parse(text).ok_or_else(|| ActorRefError(text.chars().take(128).collect()))
    }
}

fn parse(text: &str) -> Option<ActorRef> {
    let (kind, rest) = text.split_once('/')?;
    let (workspace, id) = rest.split_once('/')?;
    let workspace = workspace.parse().ok()?;
    Some(match ActorKind::from_text(kind)? {
        ActorKind::Chat => ActorRef::Chat { workspace, chat: id.parse().ok()? },
        ActorKind::Task => ActorRef::Task { workspace, task: id.parse().ok()? },
        ActorKind::Evaluation => ActorRef::Evaluation { workspace, evaluation: id.parse().ok()? },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_reference_has_one_text() {
        let (workspace, id) = (WorkspaceId(Uuid::from_u128(1)), Uuid::from_u128(2));
        let ids = "00000000-0000-0000-0000-000000000001/00000000-0000-0000-0000-000000000002";
        for (actor, kind) in [
            (ActorRef::Chat { workspace, chat: id.into() }, "chat"),
            (ActorRef::Task { workspace, task: id.into() }, "task"),
            (ActorRef::Evaluation { workspace, evaluation: id.into() }, "evaluation"),
        ] {
            let text = format!("{kind}/{ids}");
            assert_eq!((actor.to_string(), actor.kind().as_str()), (text.clone(), kind));
            assert_eq!(text.parse(), Ok(actor));
        }
    }

    #[test]
    fn another_text_is_no_reference() {
        let id = Uuid::from_u128(1);
        for text in [
            String::new(),
            "chat".into(),
            format!("chat/{id}"),
            format!("chat/{id}/"),
            format!("chat/{id}/{id}/{id}"),
            format!("chat/w/{id}"),
            format!("chats/{id}/{id}"),
            format!("Chat/{id}/{id}"),
            format!("slots/{id}/{id}"),
        ] {
            assert!(text.parse::<ActorRef>().is_err(), "{text}");
        }
    }
}
