//! The protocol of the LangGraph server, `/langgraph`: requests become commands of chats, tasks, schedules and files, and their logs become states
//! and streams by [`protocols::langgraph`].
//!
//! A path of this door names no workspace, as those of the code agent hub.

mod assistants;
mod bulk;
mod crons;
mod joins;
mod labels;
mod log;
mod runs;
mod start;
mod store;
mod threads;

pub(crate) use assistants::*;
pub(crate) use bulk::*;
pub(crate) use crons::*;
pub(crate) use joins::*;
pub(crate) use runs::*;
pub(crate) use store::*;
pub(crate) use threads::*;

use crate::{
    StreamContext,
    converse::{ConversationTarget, task_log},
    error::excerpt,
    extract::Open,
    hub::OURS,
};
use domain::{ChatId, ChatStatus, ChatView, Code, Error, Labels, TaskEvent, TaskId, TaskPhase, TaskView, WorkspaceId};
use protocols::langgraph::{Conversation, TaskThread};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::IntoParams;

/// The most threads, states or items that are answered at once.
const MOST: usize = 100;
/// The most that a part of a list leaves out.
const MOST_PASSED: usize = 10_000;

/// The thread of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfThread {
    /// The thread: a chat or a task, or the client's own id.
    #[param(example = "019bf537-f228-7cd3-aa1c-3da8af302e12")]
    thread_id: String,
}

/// The run of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfRun {
    /// The thread.
    thread_id: String,
    /// The run.
    #[param(example = "019bf537-f228-7cd3-aa1c-3da8af302e13")]
    run_id: String,
}

impl Open for OfThread {}
impl Open for OfRun {}

/// Something that a client's id of a thread means.
pub(crate) enum Thread {
    /// A chat.
    Chat(Box<ChatView>),
    /// A task of a flow.
    Task(Box<TaskView>),
    /// A thread that was made, and has no run yet; with the persona that its client named, and its labels.
    Empty(ChatId, domain::Timestamp, Option<String>, Labels),
    /// Nothing yet; it would be this chat.
    Nothing(ChatId),
}

impl Thread {
    /// The thread of a workspace that a client means by this id.
    pub(crate) async fn find(stage: &StreamContext, workspace: WorkspaceId, id: &str) -> Result<Self, Error> {
        if id.is_empty() || id.len() > 200 {
            return Err(Error::invalid("thread_id", "the id of a thread has 1 to 200 bytes"));
        }
        let made = match ConversationTarget::find(stage, workspace, id).await? {
            ConversationTarget::Chat(view) => return Ok(Self::Chat(view)),
            ConversationTarget::Task(view) => return Ok(Self::Task(view)),
            ConversationTarget::Nothing(made) => made,
        };
        let own: Option<uuid::Uuid> = id.parse().ok();
        let threads = chat::ThreadReader::new(stage.table.clone(), stage.chats.clone());
        for chat in own.map(ChatId).into_iter().chain([made]) {
            if let Some(thread) = found(threads.get(workspace, chat).await)? {
                let record = thread.record;
                // The agents of threads of other clients are no personas.
                let is_named = record.client == threads::CLIENT && record.agent.agent != OURS;
                let persona = is_named.then_some(record.agent.agent);
                return Ok(Self::Empty(chat, record.created_at, persona, record.labels));
            }
        }
        Ok(Self::Nothing(made))
    }

    /// The thread, if it is there.
    pub(crate) fn there(self, id: &str) -> Result<Self, Error> {
        match self {
            Self::Nothing(_) => Err(Error::not_found("thread", excerpt(id)).hint("make it: POST /langgraph/threads")),
            thread => Ok(thread),
        }
    }

    /// A client's id of the thread, in one spelling: a UUID has many, and those who name a thread alike share its streams.
    pub(crate) fn spelled(&self, id: &str) -> String {
        let own = match self {
            Self::Chat(view) => view.chat_id.0,
            Self::Task(view) => view.task_id.0,
            Self::Empty(chat, ..) | Self::Nothing(chat) => chat.0,
        };
        match id.parse::<uuid::Uuid>() {
            Ok(named) if named == own => own.to_string(),
            Ok(_) | Err(_) => id.to_owned(),
        }
    }
}

fn found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The states of a chat's thread.
pub(crate) async fn conversation(
    stage: &StreamContext,
    workspace: WorkspaceId,
    chat: ChatId,
) -> Result<Conversation, Error> {
    let mut conversation = Conversation::default();
    let threads = chat::ThreadReader::new(stage.table.clone(), stage.chats.clone());
    let take_in = |number, at, event: &domain::ChatEvent| {
        conversation.take_in(number, at, event);
    };
    threads.log(workspace, chat, 1, take_in).await?;
    Ok(conversation)
}

/// The states of a task's thread.
pub(crate) async fn course(stage: &StreamContext, workspace: WorkspaceId, task: TaskId) -> Result<TaskThread, Error> {
    let mut course = TaskThread::of(task);
    let take_in = |number, at, event: &TaskEvent| {
        course.take_in(number, at, event);
    };
    task_log(stage, workspace, task, take_in).await?;
    Ok(course)
}

/// The state of a thread, by its name in the protocol.
fn status_of_chat(view: &ChatView) -> &'static str {
    match view.status {
        ChatStatus::Idle => "idle",
        ChatStatus::Paused => "error",
        _ if crate::converse::waits(view) => "interrupted",
        _ => "busy",
    }
}

fn status_of_task(view: &TaskView) -> &'static str {
    match view.phase {
        TaskPhase::Finished if view.status == domain::Status::Failure => "error",
        TaskPhase::Finished => "idle",
        TaskPhase::Parked => "error",
        TaskPhase::Paused => "interrupted",
        _ if view.agent_waits || !view.waiting_for.is_empty() => "interrupted",
        _ => "busy",
    }
}

/// The state that a list is asked for, if it is one of these: another one would make an empty list, which looks like an answer.
fn wanted_status<'a>(status: Option<&'a str>, known: &[&str]) -> Result<Option<&'a str>, Error> {
    match status {
        Some(status) if !known.contains(&status) => {
            Err(Error::invalid("status", format!("{:?} is no status", excerpt(status)))
                .hint(format!("one of: {}", known.join(", "))))
        }
        status => Ok(status),
    }
}

/// Keeps the fields of an answer that the client selects; all of them without a selection.
fn selected(mut answer: Value, select: Option<&Vec<String>>) -> Value {
    if let (Some(select), Some(fields)) = (select.filter(|select| !select.is_empty()), answer.as_object_mut()) {
        fields.retain(|name, _| select.contains(name));
    }
    answer
}

/// The field of a body as a list of texts.
fn texts(body: &Map<String, Value>, field: &str) -> Result<Option<Vec<String>>, Error> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) if list.len() <= 1_000 && list.iter().all(Value::is_string) => {
            Ok(Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect()))
        }
        Some(_) => Err(Error::invalid(field, format!("{field} is a list of texts"))),
    }
}

/// The part of a list that a body asks for: how many to leave out, and how many to take.
fn part(body: &Map<String, Value>, usual: usize, most: usize) -> Result<(usize, usize), Error> {
    let number = |field: &str, usual: usize, range: std::ops::RangeInclusive<usize>| match body.get(field) {
        None | Some(Value::Null) => Ok(usual),
        Some(value) => {
            let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
            number
                .filter(|number| range.contains(number))
                .ok_or_else(|| Error::invalid(field, format!("{field} is {} to {}", range.start(), range.end())))
        }
    };
    Ok((number("offset", 0, 0..=MOST_PASSED)?, number("limit", usual, 1..=most)?))
}

/// Whether this door answers, as its clients ask.
#[utoipa::path(get, path = "/langgraph/ok", tag = "langgraph", operation_id = "langgraph_ok",
    responses((status = 200, description = "It does.", body = Value)))]
pub(crate) async fn langgraph_ok() -> axum::Json<Value> {
    axum::Json(json!({ "ok": true }))
}

/// The version, and which parts of the protocol are there.
#[utoipa::path(get, path = "/langgraph/info", tag = "langgraph", operation_id = "langgraph_info",
    responses((status = 200, description = "They.", body = Value)))]
pub(crate) async fn langgraph_info(_: crate::extract::UnscopedCaller) -> axum::Json<Value> {
    let flags = json!({ "assistants": true, "crons": true, "langsmith": false });
    axum::Json(json!({ "version": env!("CARGO_PKG_VERSION"), "flags": flags }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_thread_that_is_named_by_a_uuid_has_one_spelling() {
        let own = Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_3da8_af30_2e12);
        let thread = Thread::Empty(ChatId(own), domain::Timestamp::default(), None, Labels::default());
        let text = own.to_string();
        for id in [text.clone(), text.to_uppercase(), own.simple().to_string(), own.urn().to_string()] {
            assert_eq!(thread.spelled(&id), text);
        }
        let other = Uuid::nil().simple().to_string();
        for id in ["mine", &other] {
            assert_eq!(thread.spelled(id), id);
        }
    }
}
