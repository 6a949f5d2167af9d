//! Chats for those who talk to them: the ports behind every request, and how a command is sent. Knows no HTTP.
//!
//! A command is accepted when the queue has it; the chat's events tell its result. The requests are in `commands`, and beside what they are about.

use crate::{keys::actor_id, locations::LocationUses, prompt::Persona, settings::Settings};
use actor::{Content, Envelope, Mailbox, StopRequest, StopTarget};
use domain::{ActorKind, ChatCommand, ChatId, Code, CommandId, Error, Principal, StopId, WorkspaceId};
use ports::{Bus, Clock, QueueMessage, QueueSender, Table, URGENT, validate::MAX_MESSAGE};
use std::sync::Arc;
use workspace::Workspaces;

/// Whether there is a model of this name. Answers by the configuration: no model is called.
pub type KnowsModel = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Chats, for those who talk to them.
///
/// # Errors
/// Beside its own, every method gives `INTERNAL` when a store or the queue does not answer (the command may be accepted; the same id again
/// is harmless) and `STORAGE_FULL` when there is no room.
#[derive(Clone)]
pub struct Chats {
    pub(crate) table: Arc<dyn Table>,
    pub(crate) mailbox: Mailbox,
    pub(crate) workspaces: Workspaces,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    /// The uses of the locations of sessions.
    pub(crate) locations: Arc<LocationUses>,
    /// All names are taken for models where none can be told.
    knows_model: Option<KnowsModel>,
}

impl Chats {
    /// Over these ports.
    pub fn new(
        table: Arc<dyn Table>,
        queue: Arc<dyn QueueSender>,
        bus: Arc<dyn Bus>,
        clock: Arc<dyn Clock>,
        workspaces: Workspaces,
        settings: Settings,
    ) -> Self {
        let mailbox = Mailbox { queue, table: table.clone(), bus };
        Self { table, mailbox, workspaces, clock, settings, locations: Arc::default(), knows_model: None }
    }

    /// The same with the names of models told apart from others, so that no chat begins with a persona that is made for a model that is none.
    #[must_use]
    pub fn with_models(self, knows_model: KnowsModel) -> Self {
        Self { knows_model: Some(knows_model), ..self }
    }

    /// Refuses a persona whose model is none. Whether a provider has the model, the provider says when it is asked.
    pub(crate) fn check_model_of(&self, persona: &Persona) -> Result<(), Error> {
        let is_known = |model: &str| self.knows_model.as_ref().is_none_or(|knows| (**knows)(model));
        let Some(model) = persona.model.as_deref().filter(|model| !is_known(model)) else { return Ok(()) };
        let (role, shown) = (&persona.role, model.chars().take(100).collect::<String>());
        Err(Error::new(
            Code::Unprocessable,
            format!("the persona {role} is made for {shown:?}, which is no model here"),
        )
        .detail("field", "role")
        .hint("GET /api/v1/models lists those that there are: change `model` in the persona, or send a model along"))
    }

    pub(crate) async fn request_stop(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        target: StopTarget,
        reason: &str,
        stop_id: StopId,
    ) -> Result<(), Error> {
        let request = StopRequest { stop_id, target, at: self.clock.now(), reason: reason.into() };
        self.mailbox.stop(&actor_id(workspace, chat), &request).await.map_err(internal)
    }

    /// Accepts a refused command that was consumed before: its sender repeats it because the first answer was lost.
    pub(crate) async fn unless_done(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        refusal: Error,
    ) -> Result<(), Error> {
        let done = actor::has_consumed(&*self.table, &actor_id(workspace, chat), command).await;
        if done.map_err(internal)? { Ok(()) } else { Err(refusal) }
    }

    pub(crate) async fn send(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        id: CommandId,
        by: &Principal,
        command: ChatCommand,
    ) -> Result<(), Error> {
        let ends_work = matches!(command, ChatCommand::Stop { .. } | ChatCommand::Delete);
        let mut message = self.message(workspace, chat, id, by, command)?;
        if ends_work {
            message.priority = URGENT;
        }
        self.mailbox.send(message).await.map_err(internal)
    }

    /// The command as a message of the queue; `PAYLOAD_TOO_LARGE` when it does not fit into one.
    pub(crate) fn message(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        id: CommandId,
        by: &Principal,
        command: ChatCommand,
    ) -> Result<QueueMessage, Error> {
        let envelope =
            Envelope { id, at: self.clock.now(), by: by.clone(), content: Content::Command { body: command } };
        let message = envelope.to(&actor_id(workspace, chat)).map_err(internal)?;
        if message.body.len() > MAX_MESSAGE {
            let text = format!("the message with its attachments is {} bytes; {MAX_MESSAGE} fit", message.body.len());
            return Err(Error::new(Code::PayloadTooLarge, text)
                .hint("put long texts into files; the agent reads what it needs. A long persona counts, too"));
        }
        Ok(message)
    }
}

/// Logs the cause of an internal error; a client learns that it was not its fault.
pub(crate) fn internal(error: impl std::error::Error + 'static) -> Error {
    actor::unreachable(ActorKind::Chat, error)
}
