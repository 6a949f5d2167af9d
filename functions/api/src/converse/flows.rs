//! Flows behind the doors of client protocols. A client names a flow where it names a persona; of a persona and a flow of one name it means the persona.
//! The task is told as the turn of a chat with the task's id ([`doors::of_task`]). Its input is the message, and it has no second one.

use super::{Reply, Run, Speaker, Words, answers_of, chat_of};
use crate::{StreamContext, access::demand, error::ApiError};
use domain::{
    ActorRef, ChatEvent, ChatId, ChatView, Code, Error, QuestionId, TaskEvent, TaskId, TaskPhase, TaskView, Timestamp,
    WorkspaceId,
};
use doors::{
    Part,
    of_task::{self, TaskParts, Telling},
};
use engine::NewTask;
use identity::Action;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Entries read at once.
const PAGE: usize = 256;

/// The thing that a client means by its own id of a conversation.
pub(crate) enum Meant {
    /// A chat that is there.
    Chat(Box<ChatView>),
    /// A task that is there.
    Task(Box<TaskView>),
    /// Nothing yet: what begins has this id.
    Nothing(ChatId),
}

impl Meant {
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
            Self::Task(view) => of_task::chat_of(view.task_id),
            Self::Nothing(chat) => *chat,
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        !matches!(self, Self::Nothing(_))
    }
}

impl Speaker<'_> {
    /// The flows that there are, by their names.
    pub(crate) async fn flows(&self) -> Result<Vec<String>, Error> {
        let flows = self.context.tasks.flows().list(self.workspace).await?;
        Ok(flows.into_iter().map(|flow| flow.name).collect())
    }

    /// Whether a name is that of a flow, and of no persona.
    pub(super) async fn is_flow(&self, name: &str) -> Result<bool, Error> {
        Ok(!self.personas().await?.iter().any(|persona| persona == name)
            && self.flows().await?.iter().any(|flow| flow == name))
    }

    /// Begins a task of a flow with a message: JSON is the input as it is, other words are its `message`.
    pub(super) async fn begin_task(&self, chat: ChatId, flow: &str, words: Words) -> Result<Run, Error> {
        demand(self.caller, self.role, Action::Run)?;
        let Words { content, earlier, model, functions, files, .. } = words;
        let refused = |field: &str, why: &str| Err(Error::invalid(field, why).hint("begin it with one message alone"));
        if !earlier.is_empty() {
            return refused("messages", "a flow has one input, and no conversation before it");
        }
        if model.is_some() {
            return refused("model", "the agents of a flow have models of their own");
        }
        if !functions.is_empty() {
            return refused("tools", "a flow has tools of its own");
        }
        if !files.is_empty() {
            return refused("files", "a flow takes files by their paths in its input");
        }
        let input = match serde_json::from_str(&content) {
            Ok(input @ (Value::Object(_) | Value::Array(_))) => input,
            Ok(_) | Err(_) => json!({ "message": content }),
        };
        let new = NewTask { input, trace: self.trace, ..NewTask::default() };
        let task = TaskId::root(chat.0);
        let made = self.context.tasks.create(self.workspace, task, flow, new, &self.by).await?;
        Ok(of(made.task_id, Part::first(of_task::turn_of(made.task_id))))
    }

    /// Answers the questions with this id that a task asks.
    pub(super) async fn reply_task(&self, task: TaskId, id: Uuid, reply: Reply) -> Result<Run, Error> {
        let parts = self.task_parts(task).await?;
        let not_asked =
            || Error::not_found("question", id).hint("the task's waiting_for lists the open one").detail("field", "id");
        let (asked, part) = parts.parts.that_asked(id).ok_or_else(not_asked)?;
        let Some(node) = parts.asking.get(&QuestionId(asked)) else {
            return Err(Error::new(Code::Conflict, "these questions are answered already").detail("field", "id"));
        };
        let view = self.context.base.tasks.get(self.workspace, task).await?;
        let answers = match reply {
            Reply::Decision { approved, reason: None } => Map::from_iter([("approved".to_owned(), json!(approved))]),
            Reply::Decision { approved, reason: Some(comment) } => {
                Map::from_iter([("approved".to_owned(), json!(approved)), ("comment".to_owned(), json!(comment))])
            }
            given @ Reply::Given(_) => answers_of(&view.waiting_for, asked, given)?,
        };
        let given = engine::Answers { answers, may_approve: self.may_approve() };
        self.context.tasks.answer(self.workspace, task, node, given, self.command(), &self.by).await?;
        Ok(of(task, part.next()))
    }

    /// The parts of a task so far.
    pub(crate) async fn task_parts(&self, task: TaskId) -> Result<TaskParts, Error> {
        let mut parts = TaskParts::of(task);
        task_log(&self.context.base, self.workspace, task, |_, _, event| parts.take_in(event)).await?;
        Ok(parts)
    }

    /// Hands the log of a task to `take_in`, as that of a chat.
    pub(super) async fn fold_task(
        &self,
        task: TaskId,
        mut take_in: impl FnMut(u64, Timestamp, &ChatEvent),
    ) -> Result<(), Error> {
        let mut telling = Telling::of(task);
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
        let last = self.task_parts(view.task_id).await?.last();
        let number = if view.waiting_for.is_empty() { last.number } else { last.number.saturating_sub(1) };
        Ok(Some(of(view.task_id, Part { number, ..last })))
    }

    /// The log that a run is in.
    pub(super) fn actor(&self, run: Run) -> ActorRef {
        match of_task::task_of(run.chat) {
            Some(task) => ActorRef::Task { workspace: self.workspace, task },
            None => ActorRef::Chat { workspace: self.workspace, chat: run.chat },
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
    let (actor, mut next) = (ActorRef::Task { workspace, task }.into(), 1);
    loop {
        let page = actor::read_after::<TaskEvent>(&*stage.table, &actor, next - 1, PAGE).await;
        let page = page.map_err(|error| ApiError::from(error).error)?;
        for entry in &page.entries {
            for (number, event) in entry.numbered().filter(|(number, _)| *number >= next) {
                take_in(number, entry.at, event);
            }
            next = next.max(entry.next);
        }
        if !page.more {
            return Ok(());
        }
    }
}

/// The refusal of a second message to a task.
pub(super) fn has_its_input() -> Error {
    Error::new(Code::Conflict, "a task of a flow has one input")
        .hint("begin another conversation for another run of the flow")
}

fn of(task: TaskId, part: Part) -> Run {
    Run { chat: of_task::chat_of(task), part, first: 1 }
}
