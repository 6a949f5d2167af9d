//! Flows behind the protocols of clients. A client names a flow where it names a persona; of a persona and a flow of one name it means the persona.
//! The task is told as the turn of a chat with the task's id ([`protocols::task_as_turn`]). Its input is the message, and it has no second one.

use super::{MessageInput, Reply, Run, Speaker, answers_of, chat_of};
use crate::{StreamContext, access::demand, error::ApiError};
use domain::{
    ActorRef, ChatEvent, ChatId, ChatView, Code, Error, ModelSettings, QuestionId, TaskEvent, TaskId, TaskPhase,
    TaskView, Timestamp, WorkspaceId,
};
use engine::NewTask;
use identity::Action;
use protocols::{
    Part,
    task_as_turn::{self, TaskParts, TaskTranslation},
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The chat or task behind a client's own id of a conversation.
pub(crate) enum ConversationTarget {
    /// A chat that is there.
    Chat(Box<ChatView>),
    /// A task that is there.
    Task(Box<TaskView>),
    /// Nothing yet: what begins has this id.
    Nothing(ChatId),
}

impl ConversationTarget {
    /// The chat or task that a client's id means, as [`chat_of`] has it.
    pub(crate) async fn find(stage: &StreamContext, workspace: WorkspaceId, id: &str) -> Result<Self, Error> {
        let (made, view) = chat_of(stage, workspace, id).await?;
        if let Some(view) = view {
            return Ok(Self::Chat(Box::new(view)));
        }
        let own: Option<Uuid> = id.parse().ok();
        let tasks = own.into_iter().flat_map(|id| [TaskId(id), TaskId::root(id)]).chain([TaskId::root(made.0)]);
        for task in tasks {
            match stage.tasks.get(workspace, task).await {
                Ok(view) => return Ok(Self::Task(Box::new(view))),
                Err(error) if error.code == Code::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self::Nothing(made))
    }

    /// The chat, or the one that the task is told as.
    pub(crate) fn chat(&self) -> ChatId {
        match self {
            Self::Chat(view) => view.chat_id,
            Self::Task(view) => task_as_turn::chat_of(view.task_id),
            Self::Nothing(chat) => *chat,
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        !matches!(self, Self::Nothing(_))
    }
}

/// The kind of thing that a name stands for, where a message begins something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameKind {
    Persona,
    Flow,
    Nothing,
}

impl Speaker<'_> {
    /// The flows that there are, by their names.
    pub(crate) async fn flows(&self) -> Result<Vec<String>, Error> {
        let flows = self.context.tasks.flows().list(self.workspace).await?;
        Ok(flows.into_iter().map(|flow| flow.name).collect())
    }

    /// The kind of what has this name. A persona goes before a flow.
    pub(crate) async fn named(&self, name: &str) -> Result<NameKind, Error> {
        Ok(if self.personas().await?.iter().any(|persona| persona == name) {
            NameKind::Persona
        } else if self.flows().await?.iter().any(|flow| flow == name) {
            NameKind::Flow
        } else {
            NameKind::Nothing
        })
    }

    /// Begins a task of a flow with a message: JSON is the input as it is, other words are its `message`.
    pub(crate) async fn begin_task(&self, chat: ChatId, flow: &str, words: MessageInput) -> Result<Run, Error> {
        demand(self.caller, self.role, Action::Run)?;
        let MessageInput { content, earlier, model, model_settings, functions, files, labels, .. } = words;
        let refused = |field: &str, why: &str| Err(Error::invalid(field, why).hint("begin it with one message alone"));
        if !earlier.is_empty() {
            return refused("messages", "a flow has one input, and no conversation before it");
        }
        if model.is_some() {
            return refused("model", "the agents of a flow have models of their own");
        }
        check_settings_of_flow(model_settings)?;
        if !functions.is_empty() {
            return refused("tools", "a flow has tools of its own");
        }
        if !files.is_empty() {
            return refused("files", "a flow takes files by their paths in its input");
        }
        let input = match serde_json::from_str(&content) {
            Ok(input @ (Value::Object(_) | Value::Array(_))) => {
                domain::exact_numbers::check("message", &content)?;
                input
            }
            Ok(_) | Err(_) => json!({ "message": content }),
        };
        let new = NewTask { input, trace: self.trace, labels, ..NewTask::default() };
        let task = TaskId::root(chat.0);
        let made = self.context.tasks.create(self.workspace, task, flow, new, &self.by).await?;
        Ok(of(made.task_id, Part::first(task_as_turn::turn_of(made.task_id)), 0))
    }

    /// Answers the questions with this id that a task asks, or the request of its agent. An answer to the task leads its flow on, which needs the right to run it.
    pub(super) async fn reply_task(&self, task: TaskId, id: Uuid, reply: Reply) -> Result<Run, Error> {
        let parts = self.task_parts(task).await?;
        let not_asked =
            || Error::not_found("question", id).hint("the task's waiting_for lists the open one").detail("field", "id");
        let (asked, part) = parts.parts.that_asked(id).ok_or_else(not_asked)?;
        if let Some((_, chat)) = parts.agent.filter(|(open, _)| *open == asked) {
            self.answer_chat(chat, asked, reply, ModelSettings::default()).await?;
            return Ok(of(task, part.next(), parts.parts.resumed()));
        }
        demand(self.caller, self.role, Action::Run)?;
        let Some(node) = parts.asking.get(&QuestionId(asked)) else {
            return Err(Error::new(Code::Conflict, "these questions are answered already").detail("field", "id"));
        };
        let view = self.context.base.tasks.get(self.workspace, task).await?;
        let answers = match reply {
            Reply::Decision { approved, reason: None } => Map::from_iter([("approved".to_owned(), json!(approved))]),
            Reply::Decision { approved, reason: Some(comment) } => {
                Map::from_iter([("approved".to_owned(), json!(approved)), ("comment".to_owned(), json!(comment))])
            }
            given @ (Reply::Given(_) | Reply::Failed(_)) => answers_of(&view.waiting_for, asked, given)?,
        };
        let given = engine::Answers { answers, may_approve: self.may_approve() };
        self.context.tasks.answer(self.workspace, task, node, given, self.command(), &self.by).await?;
        Ok(of(task, part.next(), parts.parts.resumed()))
    }

    /// Stops a task, with all below it. That needs the right to run flows, at every door.
    pub(crate) async fn stop_task(&self, task: TaskId) -> Result<(), Error> {
        demand(self.caller, self.role, Action::Run)?;
        self.context.tasks.stop(self.workspace, task, self.command(), &self.by).await.map(drop)
    }

    /// The parts of a task so far.
    pub(crate) async fn task_parts(&self, task: TaskId) -> Result<TaskParts, Error> {
        let mut parts = TaskParts::of(task);
        task_log(&self.context.base, self.workspace, task, |number, _, event| parts.take_in(number, event)).await?;
        Ok(parts)
    }

    /// Hands the log of a task to `take_in`, as that of a chat.
    pub(super) async fn fold_task(
        &self,
        task: TaskId,
        mut take_in: impl FnMut(u64, Timestamp, &ChatEvent),
    ) -> Result<(), Error> {
        let mut telling = TaskTranslation::of(task);
        let each = |number, at, event: &TaskEvent| {
            telling.numbered(number, at, event).for_each(|(number, event)| take_in(number, at, &event));
        };
        task_log(&self.context.base, self.workspace, task, each).await
    }

    /// The run of a task that is under way, up to its question where it waits for a person; none for one that has ended.
    pub(crate) async fn under_way(&self, view: &TaskView) -> Result<Option<Run>, Error> {
        if view.phase == TaskPhase::Finished {
            return Ok(None);
        }
        let parts = self.task_parts(view.task_id).await?;
        let last = parts.last();
        let number = if parts.waits() { last.number.saturating_sub(1) } else { last.number };
        Ok(Some(of(view.task_id, Part { number, ..last }, parts.parts.resumed())))
    }

    /// The log of a chat, or of the task that it is.
    pub(super) fn actor(&self, chat: ChatId) -> ActorRef {
        match task_as_turn::task_of(chat) {
            Some(task) => ActorRef::Task { workspace: self.workspace, task },
            None => ActorRef::Chat { workspace: self.workspace, chat },
        }
    }
}

/// Hands the log of a task to `take_in`, with the numbers and times of its events.
pub(crate) async fn task_log(
    stage: &StreamContext,
    workspace: WorkspaceId,
    task: TaskId,
    mut take_in: impl FnMut(u64, Timestamp, &TaskEvent),
) -> Result<(), Error> {
    let mut log = engine::log::of(workspace, task);
    while let Some((number, at, event)) = log.next(&*stage.table).await.map_err(|error| ApiError::from(error).error)? {
        take_in(number, at, &event);
    }
    Ok(())
}

/// Refuses settings of the model for a flow, whose agents have their own. A temperature of 1 and a share of 1 are the defaults that some clients always send.
pub(super) fn check_settings_of_flow(settings: ModelSettings) -> Result<(), Error> {
    let ModelSettings { temperature, top_p, max_output_tokens } = settings;
    let is_chosen = |value: Option<f64>| value.is_some_and(|value| (value - 1.0).abs() > f64::EPSILON);
    let field = if is_chosen(temperature) {
        "temperature"
    } else if is_chosen(top_p) {
        "top_p"
    } else if max_output_tokens.is_some() {
        "max_output_tokens"
    } else {
        return Ok(());
    };
    Err(Error::invalid(field, "the agents of a flow have settings of their own").hint(
        "leave it out, also under another name such as max_tokens; the config of an agent in agents.yaml has them",
    ))
}

/// The refusal of a second message to a task.
pub(crate) fn has_its_input() -> Error {
    Error::new(Code::Conflict, "a task of a flow has one input")
        .hint("begin another conversation for another run of the flow")
}

fn of(task: TaskId, part: Part, resumed: u64) -> Run {
    Run { chat: task_as_turn::chat_of(task), part, first: 1, resumed }
}
