//! The activity of a turn at a moment, or the reason why it rests.

use domain::{CallId, ChatEvent, MessageId, PermissionId, QuestionId, Timestamp, TurnId, event::Question};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The present activity of a turn.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// It was begun; nothing is asked of anybody yet.
    Begun,
    /// The call of the model waits for slots.
    Slots {
        /// The message to come.
        message_id: MessageId,
        /// The start of the wait.
        since: Timestamp,
    },
    /// The call of the model waits until its provider can be asked again.
    Backoff {
        /// The message to come.
        message_id: MessageId,
    },
    /// The model answers.
    Model {
        /// The message to come.
        message_id: MessageId,
        /// Counts from 1.
        attempt: u32,
        /// The text so far.
        text: String,
    },
    /// The coding agent of a thread works.
    Agent {
        /// The stretch of its work, from a prompt or an answer on.
        leg: MessageId,
        /// Counts from 1.
        attempt: u32,
        /// The message to come.
        message_id: MessageId,
        /// Its text so far.
        text: String,
    },
    /// A command waits for a place on its machine: the first of `calls`.
    Place {
        /// The call.
        call_id: CallId,
        /// The attempt that starts then.
        attempt: u32,
        /// The start of the wait.
        since: Timestamp,
    },
    /// A tool runs: the first of `calls`.
    Tool {
        /// The call.
        call_id: CallId,
        /// Counts from 1.
        attempt: u32,
    },
    /// The files of the turn before go back.
    Rollback {
        /// The turn that is taken back.
        turn_id: TurnId,
        /// Counts from 1.
        attempt: u32,
        /// Its calls.
        calls: Vec<CallId>,
        /// The time of its first message.
        since: Timestamp,
    },
    /// Words of a person are on their way; the model is asked when they are there.
    Steer {
        /// The start of the wait.
        since: Timestamp,
    },
    /// The executors of a plan are at work: the first of `calls`, in a session.
    Plan {
        /// The call that is the plan.
        call_id: CallId,
    },
    /// The agents of the team are at work, or the plan is read for them.
    Team,
    /// A person is asked for permission for the first of `calls`.
    Permission {
        /// The permission.
        permission_id: PermissionId,
        /// Its event, for the view.
        asked: Box<ChatEvent>,
        /// The start of the wait.
        since: Timestamp,
    },
    /// A person is asked questions by the first of `calls`.
    Question {
        /// The questions' id.
        question_id: QuestionId,
        /// The questions.
        questions: Vec<Question>,
        /// Their event, for the view.
        asked: Box<ChatEvent>,
        /// The start of the wait.
        since: Timestamp,
    },
    /// A program elsewhere runs the first of `calls`.
    Handed {
        /// The call.
        call_id: CallId,
        /// Its event, for the view.
        asked: Box<ChatEvent>,
        /// The start of the wait.
        since: Timestamp,
    },
}

impl Phase {
    /// Whether nothing runs here: it waits for a person, a program, slots, a place, executors, or for a provider that is to be asked again later.
    pub fn is_suspended(&self) -> bool {
        match self {
            Self::Permission { .. }
            | Self::Question { .. }
            | Self::Handed { .. }
            | Self::Slots { .. }
            | Self::Backoff { .. }
            | Self::Place { .. }
            | Self::Steer { .. }
            | Self::Plan { .. }
            | Self::Team => true,
            Self::Begun | Self::Model { .. } | Self::Agent { .. } | Self::Tool { .. } | Self::Rollback { .. } => false,
        }
    }

    /// Whether it waits for the answer of a person, or of a program elsewhere.
    pub fn asks_people(&self) -> bool {
        matches!(self, Self::Permission { .. } | Self::Question { .. } | Self::Handed { .. })
    }

    /// The question or request for permission that is open.
    pub fn request(&self) -> Option<Uuid> {
        match self {
            Self::Permission { permission_id, .. } => Some(permission_id.0),
            Self::Question { question_id, .. } => Some(question_id.0),
            _ => None,
        }
    }

    /// The start of a wait that takes nothing of the turn's time. A provider that is slow takes it, and so does one that
    /// has to be asked again.
    pub fn since(&self) -> Option<Timestamp> {
        match self {
            Self::Permission { since, .. }
            | Self::Question { since, .. }
            | Self::Handed { since, .. }
            | Self::Slots { since, .. }
            | Self::Steer { since }
            | Self::Place { since, .. } => Some(*since),
            Self::Begun
            | Self::Backoff { .. }
            | Self::Model { .. }
            | Self::Agent { .. }
            | Self::Tool { .. }
            | Self::Rollback { .. }
            | Self::Team
            | Self::Plan { .. } => None,
        }
    }

    /// The activity after a message is complete: an agent goes on, and a model has answered.
    pub(crate) fn message_added(&mut self) {
        match self {
            Self::Agent { message_id, text, .. } => {
                *message_id = MessageId::from_key(&message_id.to_string(), "next");
                text.clear();
            }
            _ => *self = Self::Begun,
        }
    }
}
