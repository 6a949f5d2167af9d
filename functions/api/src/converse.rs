//! The common part of the protocols of clients: a message, or the answer to a question, becomes the command of a chat, and the part of
//! the turn that answers it is streamed, or waited for.

mod flows;
mod replies;
mod streamed;

use crate::{
    Context, StreamContext,
    access::demand,
    chats::check_model,
    error::{Answer, ApiError},
    extract::Traced,
    hub::{Attachment, Within, attach},
    ids::Ids,
    pauses::resumed,
    prompts::spoken,
    writes::author,
};
use actor::next_number;
use chat::DefinitionKind;
use domain::{
    ActorRef, AnswerFormat, CallId, ChatEvent, ChatId, ChatStatus, ChatView, ClientFunction, Code, CommandId, Error,
    FileId, Labels, Limits, ModelSettings, OnBusy, PermissionId, Principal, QuestionId, Timestamp, TraceContext,
    TurnId, WorkspaceId, event::PermissionOutcome,
};
use flows::check_settings_of_flow;
pub(crate) use flows::{ConversationTarget, NameKind, has_its_input, task_log};
use identity::{Action, Caller, Role};
use protocols::{ChatParts, IncomingFile, Part, PauseFilter, task_as_turn};
use replies::{answers_of, decision, is_permission};
use serde_json::{Value, json};
pub(crate) use streamed::only_frame;
use uuid::Uuid;

/// The caller of such a door, in their workspace.
pub(crate) struct Speaker<'a> {
    pub context: &'a Context,
    pub workspace: WorkspaceId,
    pub by: Principal,
    pub caller: &'a Caller,
    pub role: Role,
    pub files: workspace::Access,
    pub ids: Ids,
    pub trace: Option<TraceContext>,
}

/// A message, and the setup of the chat that it makes, if it makes one.
#[derive(Default)]
pub(crate) struct MessageInput {
    pub content: String,
    pub earlier: String,
    /// The persona, or the flow; `assistant` when none.
    pub role: Option<String>,
    pub model: Option<String>,
    /// The settings of the model: of a new chat, and from the turn of this message on of a chat that goes on. One that is none stays as it is.
    pub model_settings: ModelSettings,
    /// The functions that the client runs itself.
    pub functions: Vec<ClientFunction>,
    /// The files that it brings along.
    pub files: Vec<IncomingFile>,
    /// The format that the answer of an agent has to have, as [`chat::check_answer_format`] takes it.
    pub answer_format: Option<AnswerFormat>,
    /// Instructions of the client for a chat that goes on.
    pub instructions: String,
    /// The most calls of the model in the turn of this message.
    pub max_steps: Option<u32>,
    /// The labels of a new chat or task.
    pub labels: Labels,
}

/// The answer to a question or a request for permission.
pub(crate) enum Reply {
    /// A yes or a no to a request for permission.
    Decision { approved: bool, reason: Option<String> },
    /// Words or values: answers to questions, or a yes or a no.
    Given(Value),
    /// The error of a call that failed.
    Failed(String),
}

/// The part of a turn that answers a request. A task is a turn, too ([`task_as_turn`]).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub chat: ChatId,
    pub part: Part,
    /// An event that is not after the first one of its turn.
    pub first: u64,
    /// All pauses before the event with this number have ended; 0 where the chat has no history.
    pub resumed: u64,
}

impl<'a> Speaker<'a> {
    /// The caller of a route whose path names no workspace.
    pub(crate) async fn within<N>(
        context: &'a Context,
        within: &'a Within<N>,
        ids: Ids,
        Traced(trace): Traced,
    ) -> Answer<Self> {
        within.settle(context).await?;
        let Within { workspace, by, caller, role, files, .. } = within;
        let (by, files) = (by.clone(), files.clone());
        Ok(Self { context, workspace: *workspace, by, caller, role: *role, files, ids, trace })
    }
}

impl Speaker<'_> {
    pub(crate) fn may_approve(&self) -> bool {
        demand(self.caller, self.role, Action::Approve).is_ok()
    }

    /// Whether no file that an agent writes for the caller may start a flow.
    pub(crate) fn may_not_run(&self) -> bool {
        demand(self.caller, self.role, Action::Run).is_err()
    }

    pub(crate) fn command(&self) -> CommandId {
        CommandId(self.ids.id("command"))
    }

    /// The id of a chat to begin.
    pub(crate) fn new_chat(&self) -> ChatId {
        ChatId(self.ids.id("chat"))
    }

    /// The command that begins a turn in a chat, under an id that tells the chat.
    pub(crate) fn turn(&self, chat: ChatId) -> CommandId {
        CommandId(marked(chat, self.command().0))
    }

    /// Refuses, before anything is sent, a request whose answer is streamed or waited for where no streams are.
    pub(crate) fn demand_streams(&self, instead: &str) -> Result<(), Error> {
        if self.context.base.streams.are_here() {
            return Ok(());
        }
        let error = Error::new(Code::UpstreamUnavailable, "this server takes messages and holds no streams");
        Err(error.hint(format!("the message was not taken; {instead}")))
    }

    /// The personas that there are, by their names.
    pub(crate) async fn personas(&self) -> Result<Vec<String>, Error> {
        let workspace = self.context.base.workspaces.open(self.workspace, self.files.clone()).await?;
        Ok(chat::definitions(&workspace, DefinitionKind::Agents)
            .await?
            .into_iter()
            .map(|persona| persona.name)
            .collect())
    }

    /// Begins a chat, or a task of the flow that the words name, with a message.
    pub(crate) async fn begin(&self, chat: ChatId, words: MessageInput) -> Result<Run, Error> {
        match words.role.clone() {
            Some(name) if self.named(&name).await? == NameKind::Flow => self.begin_task(chat, &name, words).await,
            _ => self.begin_chat(chat, words).await,
        }
    }

    /// Begins a chat of a persona with a message.
    pub(crate) async fn begin_chat(&self, chat: ChatId, words: MessageInput) -> Result<Run, Error> {
        let MessageInput { content, earlier, role, model, model_settings, functions, files, answer_format, .. } = words;
        let turn_limits = words.max_steps.map(Limits::of_steps);
        check_model(self.context, "model", model.as_deref())?;
        let earlier = match earlier.is_empty() {
            true => earlier,
            false => format!("The conversation before, as the client has it:\n{earlier}"),
        };
        let (may_approve, may_not_run, trace) = (self.may_approve(), self.may_not_run(), self.trace);
        let content = spoken(self.context, self.workspace, &self.files, content).await?;
        let files = self.keep(chat, files).await?;
        let new = chat::NewChat {
            goal: content,
            earlier,
            role,
            model,
            model_settings,
            may_approve,
            may_not_run,
            trace,
            functions,
            files,
            answer_format,
            turn_limits,
            labels: words.labels,
            ..chat::NewChat::default()
        };
        let command = self.turn(chat);
        let accepted = self.context.chats.create(self.workspace, chat, command, new, &self.by).await?;
        Ok(Run { chat, part: Part::first(accepted.turn_id), first: 1, resumed: 0 })
    }

    /// Says something in a chat with an id of the client's: it waits for its turn there, or begins the chat.
    pub(crate) async fn say(&self, chat: ChatId, is_there: bool, words: MessageInput) -> Result<Run, Error> {
        match is_there {
            true => self.post(chat, words, OnBusy::Enqueue).await,
            false => self.begin(chat, words).await,
        }
    }

    /// Writes the files of a message into the workspace, where its attachments are.
    async fn keep(&self, chat: ChatId, files: Vec<IncomingFile>) -> Result<Vec<FileId>, Error> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        demand(self.caller, self.role, Action::Write)?;
        let files =
            files.into_iter().map(|IncomingFile { name, content }| Attachment::new(&name, content.into())).collect();
        let workspace = self.context.base.workspaces.open(self.workspace, self.files.clone()).await?;
        attach(&workspace, &author(self.caller, self.by.clone().into()), chat, &self.ids, files).await
    }

    /// Posts a message to a chat, which keeps its own setup but for the settings of its model.
    pub(crate) async fn post(&self, chat: ChatId, words: MessageInput, on_busy: OnBusy) -> Result<Run, Error> {
        if task_as_turn::task_of(chat).is_some() {
            return Err(has_its_input());
        }
        let MessageInput { content, files, model_settings, answer_format, instructions, .. } = words;
        let limits = words.max_steps.map(Limits::of_steps);
        if on_busy == OnBusy::Rollback {
            demand(self.caller, self.role, Action::Write)?;
        }
        let turn = self.turn(chat);
        if !files.is_empty() {
            self.context.chats.check_takes(self.workspace, chat, turn, on_busy).await?;
        }
        let (first, resumed) = self.place_of(chat, TurnId(turn.0)).await?;
        let (may_approve, may_not_run, trace) = (self.may_approve(), self.may_not_run(), self.trace);
        let content = spoken(self.context, self.workspace, &self.files, content).await?;
        let files = self.keep(chat, files).await?;
        let post = chat::NewMessage {
            content,
            files,
            on_busy,
            model_settings,
            answer_format,
            instructions,
            limits,
            may_approve,
            may_not_run,
            trace,
            ..chat::NewMessage::default()
        };
        let accepted = self.context.chats.post(self.workspace, chat, turn, post, &self.by).await?;
        Ok(Run { chat, part: Part::first(accepted.turn_id), first, resumed })
    }

    /// The first event that the turn of a message can begin with, and the one before which all pauses have ended for it: the message resumes a chat
    /// that is paused now.
    async fn place_of(&self, chat: ChatId, turn: TurnId) -> Result<(u64, u64), Error> {
        match self.ids {
            Ids::Fresh(_) => {
                let actor = ActorRef::Chat { workspace: self.workspace, chat };
                let next = next_number(&*self.context.base.table, &actor.into()).await;
                let next = next.map_err(|error| ApiError::from(error).error)?;
                Ok((next, next))
            }
            // A repeated request may find its turn begun.
            Ids::Key(..) => Ok((1, resumed(self.context, self.workspace, chat, turn).await?)),
        }
    }

    /// Says something to the turn that runs: the model reads it with its next call.
    pub(crate) async fn steer(&self, chat: ChatId, turn: TurnId, content: String) -> Result<Run, Error> {
        let post = chat::NewMessage {
            content,
            on_busy: OnBusy::Steer,
            may_approve: self.may_approve(),
            may_not_run: self.may_not_run(),
            trace: self.trace,
            expected_turn_id: Some(turn),
            ..chat::NewMessage::default()
        };
        self.context.chats.post(self.workspace, chat, self.command(), post, &self.by).await?;
        let parts = self.parts(chat).await?;
        let part = parts.last().filter(|last| last.turn == turn).unwrap_or(Part::first(turn));
        Ok(Run { chat, part, first: 1, resumed: parts.resumed() })
    }

    /// Answers the questions or the request for permission with this id, or of the call with this id, in a chat.
    pub(crate) async fn reply(&self, chat: ChatId, id: Uuid, reply: Reply) -> Result<Run, Error> {
        self.reply_with(chat, id, reply, ModelSettings::default()).await
    }

    /// The same with settings of the model for the rest of the turn, and for the chat from then on.
    pub(crate) async fn reply_with(
        &self,
        chat: ChatId,
        id: Uuid,
        reply: Reply,
        settings: ModelSettings,
    ) -> Result<Run, Error> {
        if let Some(task) = task_as_turn::task_of(chat) {
            check_settings_of_flow(settings)?;
            return self.reply_task(task, id, reply).await;
        }
        let (part, resumed) = self.answer_chat(chat, id, reply, settings).await?;
        Ok(Run { chat, part: part.next(), first: 1, resumed })
    }

    /// The same in a chat, that of a task's agent included. Returns the part that ended with what is answered, and the event before which all pauses
    /// have ended.
    async fn answer_chat(
        &self,
        chat: ChatId,
        id: Uuid,
        reply: Reply,
        settings: ModelSettings,
    ) -> Result<(Part, u64), Error> {
        let view = self.context.chats.get(self.workspace, chat).await?;
        let parts = self.parts(chat).await?;
        let Some((asked, part)) = parts.that_asked(id) else {
            return Err(Error::not_found("question or request for permission", id)
                .hint("the chat's waiting_for lists the open ones"));
        };
        if view
            .waiting_for
            .iter()
            .any(|open| open["event"] == "call_handed_out" && open["data"]["call_id"] == json!(asked))
        {
            let (output, success) = match reply {
                Reply::Given(Value::String(text)) => (text, true),
                Reply::Given(given) => (given.to_string(), true),
                Reply::Failed(error) => (error, false),
                Reply::Decision { .. } => {
                    return Err(Error::invalid("answer", "a call is answered by its result, not by a yes or a no"));
                }
            };
            let (call_id, may_approve, may_not_run) = (CallId(asked), self.may_approve(), self.may_not_run());
            let (output, _) = ::tools::cap(output);
            self.set_model(&view, asked, settings).await?;
            let answer = chat::CallAnswer { call_id, output, success, may_approve, may_not_run };
            self.context.chats.answer_call(self.workspace, chat, self.command(), answer, &self.by).await?;
        } else if is_permission(&view, asked, &reply) {
            demand(self.caller, self.role, Action::Approve)?;
            let (approved, reason) = decision(reply)?;
            let outcome = if approved { PermissionOutcome::Approved } else { PermissionOutcome::Declined };
            let reason = reason.filter(|reason| !approved && !reason.trim().is_empty());
            let decision = chat::Decision { reason, ..chat::Decision::new(PermissionId(asked), outcome) };
            self.set_model(&view, asked, settings).await?;
            self.context.chats.decide(self.workspace, chat, self.command(), decision, &self.by).await?;
        } else {
            let answers = answers_of(&view.waiting_for, asked, reply)?;
            self.set_model(&view, asked, settings).await?;
            let (id, command) = (QuestionId(asked), self.command());
            let rights = chat::LeaderRights { may_approve: self.may_approve(), may_not_run: self.may_not_run() };
            self.context.chats.answer(self.workspace, chat, command, id, answers, rights, &self.by).await?;
        }
        Ok((part, parts.resumed()))
    }

    /// Refuses other functions of the client than those that a chat was made with.
    pub(crate) async fn check_functions(&self, chat: ChatId, functions: &[ClientFunction]) -> Result<(), Error> {
        if functions.is_empty() || task_as_turn::task_of(chat).is_some() {
            return Ok(());
        }
        let mut known = Vec::new();
        let take_in = |_, _, event: &ChatEvent| {
            if let ChatEvent::Created { config } = event {
                known.clone_from(&config.functions);
            }
        };
        self.fold(chat, take_in).await?;
        if known == functions {
            return Ok(());
        }
        Err(Error::invalid("tools", "a chat keeps the functions of its first message")
            .hint("send the same tools or none, or begin another chat"))
    }

    /// The parts of a chat so far.
    pub(crate) async fn parts(&self, chat: ChatId) -> Result<ChatParts, Error> {
        let mut parts = ChatParts::default();
        self.fold(chat, |number, _, event| parts.take_in(number, event)).await?;
        Ok(parts)
    }

    /// Hands the log of a chat, or of a task as one, to `take_in`, with the numbers and times of its events. Pauses that have ended are left out.
    pub(crate) async fn fold(
        &self,
        chat: ChatId,
        mut take_in: impl FnMut(u64, Timestamp, &ChatEvent),
    ) -> Result<(), Error> {
        let mut pauses = PauseFilter::default();
        let each = |number, at, event: &ChatEvent| pauses.take_in(number, at, event, &mut take_in);
        match task_as_turn::task_of(chat) {
            Some(task) => self.fold_task(task, each).await?,
            None => self.context.threads().reader().log(self.workspace, chat, 1, each).await?,
        }
        pauses.end(take_in);
        Ok(())
    }
}

/// The chat that a client's own id of a conversation means, and its view if it is there: the chat of the workspace with this id, else one whose
/// id is made of it. All protocols whose clients choose the id take the same one for the same chat.
pub(crate) async fn chat_of(
    context: &StreamContext,
    workspace: WorkspaceId,
    id: &str,
) -> Result<(ChatId, Option<ChatView>), Error> {
    let made = ChatId::from_key(&format!("client chat/{workspace}"), id);
    for chat in id.parse().into_iter().chain([made]) {
        match context.chats.get(workspace, chat).await {
            Ok(view) => return Ok((chat, Some(view))),
            Err(error) if error.code == Code::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok((made, None))
}

/// Stops a turn of a chat, if it runs, waits for a person, or is `awaited`: the log has not its beginning. A turn that waits behind another one cannot
/// be stopped before that one ends.
///
/// # Errors
/// `CONFLICT` for a turn that waits behind another one; `NOT_FOUND` when there is no such chat.
pub(crate) async fn stop_turn(
    context: &Context,
    workspace: WorkspaceId,
    (chat, turn): (ChatId, TurnId),
    awaited: bool,
    command: CommandId,
    by: &Principal,
) -> Result<(), Error> {
    match context.chats.get(workspace, chat).await?.turn_id {
        Some(running) if running == turn => context.chats.stop(workspace, chat, command, by).await,
        Some(_) if awaited => Err(Error::new(Code::Conflict, "the turn waits behind another one of its chat")
            .hint("stop the one that runs first, then this one")),
        // Its message was accepted a moment ago, and no worker has it yet.
        None if awaited => context.chats.stop_turn(workspace, chat, turn, command, by).await,
        Some(_) | None => Ok(()),
    }
}

/// Whether a turn that the log of a chat does not have may be one that was accepted, and has not begun.
pub(crate) async fn may_begin(stage: &StreamContext, view: &ChatView, turn: TurnId) -> Result<bool, Error> {
    if view.turn_id == Some(turn)
        || marked(view.chat_id, turn.0) == turn.0
        || view.queued.iter().any(|queued| queued.turn_id == turn)
    {
        return Ok(true);
    }
    let threads = chat::ThreadReader::new(stage.table.clone(), stage.chats.clone());
    match threads.turn(view.workspace_id, turn).await {
        Ok(record) => Ok(record.thread_id == view.chat_id),
        Err(error) if error.code == Code::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// An id that was drawn, with a mark of the chat as its last 32 bits: so a turn that was accepted is told from one of another chat before the log
/// has it.
fn marked(chat: ChatId, drawn: Uuid) -> Uuid {
    let (high, low) = drawn.as_u64_pair();
    let mark = Uuid::new_v5(&chat.0, &[high.to_be_bytes(), (low >> 32).to_be_bytes()].concat());
    Uuid::from_u64_pair(high, (low & !0xffff_ffff) | (mark.as_u64_pair().0 >> 32))
}

/// Whether the chat waits for a person, as its view has it.
pub(crate) fn waits(view: &ChatView) -> bool {
    view.status != ChatStatus::Idle && !view.waiting_for.is_empty()
}
