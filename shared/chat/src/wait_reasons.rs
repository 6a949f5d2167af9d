//! Why messages wait: a turn that runs, a question to a person, or a pause; and how a pause ends.

use crate::{Chats, chats::internal, keys::actor_id, view::MOST_QUEUED};
use actor::{ActorId, Content, Envelope};
use domain::{
    ChatCommand, ChatId, ChatStatus, ChatView, Code, CommandId, Error, Principal, QueuedMessage, TurnId, WorkspaceId,
};
use ports::QueueMessage;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// When a sender that was refused may come again, in seconds.
const COME_AGAIN: u64 = 5;
/// How long a note tells of a message that no worker has seen: its sender may have died before it sent the message.
const SENT_WITHIN: Duration = Duration::from_secs(600);

/// Why a message waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueuedBehind {
    /// A turn that runs, or was accepted before.
    RunningTurn,
    /// A question that a person has to answer first.
    OpenQuestion,
    /// A permission that a person has to decide on first.
    OpenPermission,
    /// A call that a program elsewhere has to answer first.
    HandedOutCall,
    /// The work that the chat was paused for. The message has it tried again, and comes after it.
    PausedTurn,
}

impl QueuedBehind {
    /// Why a message waits that comes to a chat with this view.
    pub(crate) fn of(view: &ChatView) -> Option<Self> {
        match view.status {
            ChatStatus::Idle => None,
            ChatStatus::Queued | ChatStatus::Running => Some(Self::RunningTurn),
            ChatStatus::Paused => Some(Self::PausedTurn),
            ChatStatus::Suspended if view.waiting_for.iter().any(|asked| asked["event"] == "question") => {
                Some(Self::OpenQuestion)
            }
            ChatStatus::Suspended if view.waiting_for.iter().any(|asked| asked["event"] == "call_handed_out") => {
                Some(Self::HandedOutCall)
            }
            ChatStatus::Suspended => Some(Self::OpenPermission),
        }
    }

    /// A way for people to go on.
    pub fn hint(self) -> &'static str {
        match self {
            Self::RunningTurn => {
                "it is read when the running turn has ended; with on_busy interrupt it is read at once"
            }
            Self::OpenQuestion => "it is read when the question is answered; with on_busy interrupt it is read at once",
            Self::OpenPermission => {
                "it is read when the permission is decided on; with on_busy interrupt it is read at once"
            }
            Self::HandedOutCall => {
                "it is read when a program has answered the call; with on_busy interrupt it is read at once"
            }
            Self::PausedTurn => "the chat was paused; the failed work is tried again, and then this is read",
        }
    }
}

impl Chats {
    /// Sends messages, of which the first waits as the note says.
    pub(crate) async fn send_noted(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        messages: Vec<QueueMessage>,
        note: Option<QueuedMessage>,
    ) -> Result<(), Error> {
        if let Some(note) = note {
            let command = CommandId(note.turn_id.0);
            let noted = self.mailbox.note(&actor_id(workspace, chat), command, note.at, &note).await;
            noted.map_err(internal)?;
        }
        self.mailbox.send_all(messages).await.map_err(internal)
    }

    /// A chat as people see it: its view, with the queued messages that no worker has seen yet.
    ///
    /// # Errors
    /// As [`Chats::get`].
    pub async fn look(&self, workspace: WorkspaceId, chat: ChatId) -> Result<ChatView, Error> {
        let mut view = self.get(workspace, chat).await?;
        if view.status != ChatStatus::Idle {
            let noted = self.noted(&actor_id(workspace, chat)).await?;
            view.queued = self.queued(&view, noted).await?;
        }
        Ok(view)
    }

    /// Whether a message that was noted waits for a worker.
    pub(crate) async fn has_unseen(&self, workspace: WorkspaceId, chat: ChatId) -> Result<bool, Error> {
        let actor = actor_id(workspace, chat);
        let (mut noted, now) = (self.noted(&actor).await?, self.clock.now());
        noted.retain(|message| now.is_within(SENT_WITHIN, message.at));
        Ok(!self.unseen(&actor, noted).await?.is_empty())
    }

    /// The notes about messages that wait in a chat, at most [`MOST_QUEUED`]. The chat may have taken some of them in.
    async fn noted(&self, actor: &ActorId) -> Result<Vec<QueuedMessage>, Error> {
        self.mailbox.noted(actor, MOST_QUEUED).await.map_err(internal)
    }

    /// The messages that wait in a chat, at most [`MOST_QUEUED`]: those of its view, and those of these notes that no worker has seen yet.
    async fn queued(&self, view: &ChatView, noted: Vec<QueuedMessage>) -> Result<Vec<QueuedMessage>, Error> {
        let mut queued = view.queued.clone();
        queued.extend(self.unseen(&actor_id(view.workspace_id, view.chat_id), noted).await?);
        queued.truncate(MOST_QUEUED);
        Ok(queued)
    }

    /// Those of these notes whose messages no worker has seen yet, the oldest first.
    async fn unseen(&self, actor: &ActorId, mut noted: Vec<QueuedMessage>) -> Result<Vec<QueuedMessage>, Error> {
        if noted.is_empty() {
            return Ok(noted);
        }
        // A message that was sent again, because its sender heard nothing, is noted again, and may have been taken in long ago.
        let commands: Vec<CommandId> = noted.iter().map(|message| CommandId(message.turn_id.0)).collect();
        let taken_in = actor::consumed(&*self.table, actor, &commands).await.map_err(internal)?;
        noted.retain(|message| !taken_in.contains(&CommandId(message.turn_id.0)));
        noted.sort_by_key(|message| message.at);
        Ok(noted)
    }

    /// Refuses a message that would wait where [`MOST_QUEUED`] messages wait: each is in the state of the chat, with all its words. One that was accepted
    /// before is accepted again. Messages that come at the same moment may all be accepted, so some more may wait.
    ///
    /// # Errors
    /// `RATE_LIMITED`, with `retry_after_s`.
    pub(crate) async fn check_queue(&self, view: &ChatView, command: CommandId) -> Result<(), Error> {
        let noted = self.noted(&actor_id(view.workspace_id, view.chat_id)).await?;
        // The log of the chat, which tells the notes that count, is read only where they can be too many.
        if view.queued.len() + noted.len() < MOST_QUEUED {
            return Ok(());
        }
        let queued = self.queued(view, noted).await?;
        if queued.len() < MOST_QUEUED || queued.iter().any(|message| message.turn_id == TurnId(command.0)) {
            return Ok(());
        }
        let hint = match QueuedBehind::of(view) {
            Some(QueuedBehind::OpenQuestion) => "answer the open question first, or post with on_busy interrupt",
            Some(QueuedBehind::OpenPermission) => "decide on the open permission first, or post with on_busy interrupt",
            Some(QueuedBehind::PausedTurn) => "resume the chat, or post with on_busy interrupt",
            _ => "send it again later; or stop the running turn, or post with on_busy interrupt",
        };
        let refusal = Error::new(Code::RateLimited, format!("{MOST_QUEUED} messages wait in this chat already"))
            .detail("retry_after_s", COME_AGAIN)
            .hint(hint);
        self.unless_done(view.workspace_id, view.chat_id, command, refusal).await
    }

    /// Resumes a chat that was paused; with `drop` it gives up the failed work.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat; `CONFLICT` when it is not paused, unless this very command resumed it.
    pub async fn resume(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        drop: bool,
        by: &Principal,
    ) -> Result<(), Error> {
        let view = self.get(workspace, chat).await?;
        if view.status != ChatStatus::Paused {
            let refusal = Error::new(Code::Conflict, "this chat is not paused");
            return self.unless_done(workspace, chat, command, refusal).await;
        }
        let message = self.unpark(workspace, chat, command, drop, by)?;
        self.mailbox.send(message).await.map_err(internal)
    }

    /// Has a paused chat go on because of a message; the same message again resumes nothing more.
    pub(crate) fn resumption(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        message: CommandId,
        drop: bool,
        by: &Principal,
    ) -> Result<QueueMessage, Error> {
        self.unpark(workspace, chat, CommandId::from_key(&message.to_string(), "resume"), drop, by)
    }

    fn unpark(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        id: CommandId,
        drop: bool,
        by: &Principal,
    ) -> Result<QueueMessage, Error> {
        let envelope: Envelope<ChatCommand> =
            Envelope { id, at: self.clock.now(), by: by.clone(), content: Content::Unpark { drop } };
        envelope.to(&actor_id(workspace, chat)).map_err(internal)
    }
}

/// The event that a view waits for with this id.
pub(crate) fn waiting<'a>(view: &'a ChatView, event: &str, key: &str, id: &str) -> Option<&'a Value> {
    let asked = view.waiting_for.iter().find(|asked| asked["event"] == event && asked["data"][key] == id)?;
    asked.get("data")
}

pub(crate) fn not_asked(what: &str, key: &str, id: &str) -> Error {
    Error::new(Code::Conflict, format!("the {what} {id} is not open"))
        .detail(key, id)
        .hint("it was answered, withdrawn or timed out; the chat's waiting_for lists the open ones")
}
