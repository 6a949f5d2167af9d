//! Threads: made, found, read, copied, deleted.

use super::{
    MOST, OfThread, Thread,
    assistants::{Assistant, meant},
    conversation, course, labels, part, selected, texts, wanted_status,
};
use crate::{
    Context,
    access::{Converse, Read, demand},
    converse::Speaker,
    error::Answer,
    extract::{Json, Open, Path, Traced},
    hub::{OURS, Within},
    ids::Ids,
};
use axum::extract::State;
use chat::ForkPoint;
use domain::{
    AgentOptions, ChatId, ChatView, Code, CommandId, Error, Labels, TaskView, ThreadAgent, Timestamp, WORKSPACE_FOLDER,
};
use engine::TaskFilter;
use http::StatusCode;
use identity::Action;
use protocols::{
    fields::{object, text},
    langgraph::{self as wire, AssistantKind, History},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa::IntoParams;

/// The name of the client that makes threads by this door.
pub(super) const CLIENT: &str = "langgraph";
/// Pages of chats or tasks that one search reads, at most.
const PAGES: usize = 20;

/// The values of the threads of a page have so many bytes in all; those of further threads are null.
const MAX_VALUES: usize = 16 << 20;

/// The checkpoint of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfCheckpoint {
    /// The thread.
    thread_id: String,
    /// The checkpoint.
    #[param(example = "00000000000000000012")]
    checkpoint_id: String,
}

impl Open for OfCheckpoint {}

fn rendered(
    id: &str,
    (created, updated): (Timestamp, Timestamp),
    metadata: &Value,
    status: &str,
    history: Option<&History>,
) -> Value {
    let (values, interrupts) = match history {
        Some(history) => (history.values(), history.interrupts_of_tasks()),
        None => (json!({}), json!({})),
    };
    json!({
        "thread_id": id, "created_at": created, "updated_at": updated, "state_updated_at": updated, "metadata": metadata,
        "status": status, "values": values, "interrupts": interrupts, "config": {}, "error": null,
    })
}

fn of_persona(name: &str) -> Value {
    json!({ "graph_id": name, "assistant_id": AssistantKind::Persona.id(name) })
}

fn of_chat(id: &str, view: &ChatView, history: Option<&History>) -> Value {
    let mut ids = of_persona(&view.role);
    ids["chat_id"] = json!(view.chat_id);
    let metadata = wire::metadata(json!({ "title": view.title }), &view.labels, ids);
    let status = super::status_of_chat(view);
    rendered(id, (view.created_at, view.active_at), &metadata, status, history)
}

fn of_task(id: &str, view: &TaskView, history: Option<&History>) -> Value {
    let flow = &view.flow.name;
    let ids = json!({ "graph_id": flow, "assistant_id": AssistantKind::Flow.id(flow), "task_id": view.task_id });
    let metadata = wire::metadata(Value::Null, &view.labels, ids);
    let ended = view.finished_at.unwrap_or(view.created_at);
    rendered(id, (view.created_at, ended), &metadata, super::status_of_task(view), history)
}

/// A thread under the client's id of it.
async fn thread_json(speaker: &Speaker<'_>, id: &str, thread: &Thread) -> Result<Value, Error> {
    let stage = &speaker.context.base;
    Ok(match thread {
        Thread::Chat(view) => {
            of_chat(id, view, Some(conversation(stage, speaker.workspace, view.chat_id).await?.history()))
        }
        Thread::Task(view) => of_task(id, view, Some(course(stage, speaker.workspace, view.task_id).await?.history())),
        Thread::Empty(_, at, persona, labels) => {
            let ids = persona.as_deref().map_or(Value::Null, of_persona);
            rendered(id, (*at, *at), &wire::metadata(Value::Null, labels, ids), "idle", None)
        }
        Thread::Nothing(_) => return Err(Error::not_found("thread", id)),
    })
}

/// Makes a thread, which is a chat or a task with its first run.
#[utoipa::path(post, path = "/langgraph/threads", tag = "langgraph", operation_id = "create_langgraph_thread",
    request_body(content = Value, description = "`thread_id`, `if_exists`, and `metadata`: `graph_id`, and texts as labels."),
    responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn create_thread(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    wire::plain(&body, &["thread_id", "if_exists", "metadata"])?;
    let metadata = object(&body, "metadata")?;
    let labels = Labels::default().changed("metadata", wire::labels(&metadata)?)?;
    let returns_it = match text(&body, "if_exists")? {
        None | Some("raise") => false,
        Some("do_nothing") => true,
        Some(_) => return Err(Error::invalid("if_exists", "if_exists is raise or do_nothing").into()),
    };
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let mut agent = OURS.to_owned();
    if let Some(named) = text(&metadata, "graph_id")?.or(text(&metadata, "assistant_id")?) {
        let assistant = meant(&speaker, named).await?;
        if assistant.kind == AssistantKind::Persona {
            agent = assistant.name;
        }
    }
    let (id, chat) = match text(&body, "thread_id")? {
        None => {
            let chat = ChatId(speaker.ids.id("thread"));
            (chat.to_string(), chat)
        }
        Some(id) => match Thread::find(&context.base, speaker.workspace, id).await? {
            Thread::Nothing(chat) => (id.to_owned(), chat),
            there if returns_it => return Ok(axum::Json(thread_json(&speaker, id, &there).await?)),
            _ => {
                let error = Error::new(Code::Conflict, "there is a thread of this id").detail("field", "thread_id");
                return Err(error.hint("send if_exists do_nothing, or leave thread_id out").into());
            }
        },
    };
    let roots = context.folders.as_ref().and_then(|folders| folders.roots().into_iter().next());
    let cwd = roots.unwrap_or_else(|| WORKSPACE_FOLDER.to_owned());
    let agent = ThreadAgent { agent, cwd, options: AgentOptions::default() };
    let new = chat::NewThread { agent, functions: Vec::new(), title: None, labels, client: CLIENT.to_owned() };
    context.threads().create(speaker.workspace, chat, new).await?;
    let thread = Thread::find(&context.base, speaker.workspace, &id).await?;
    Ok(axum::Json(thread_json(&speaker, &id, &thread).await?))
}

/// The threads that are chats, the last active first; with `metadata.graph_id` those of this persona or flow, and with other metadata those that have
/// these labels.
#[utoipa::path(post, path = "/langgraph/threads/search", tag = "langgraph",
    request_body(content = Value, description = "`metadata` with `graph_id` or `assistant_id` and labels, `ids`, `status`, `limit`, `offset`, `select`."),
    responses((status = 200, description = "A part of them.", body = Value)))]
pub(crate) async fn search_threads(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    wire::plain(&body, &["metadata", "ids", "status", "limit", "offset", "select", "sort_by", "sort_order"])?;
    if !matches!(text(&body, "sort_by")?, None | Some("updated_at" | "state_updated_at"))
        || !matches!(text(&body, "sort_order")?, None | Some("desc"))
    {
        return Err(Error::invalid("sort_by", "threads are sorted by updated_at, the newest first").into());
    }
    let metadata = object(&body, "metadata")?;
    if metadata.contains_key("chat_id") || metadata.contains_key("task_id") {
        let error = Error::invalid("metadata", "chat_id and task_id of metadata find no thread");
        return Err(error.hint("send ids").into());
    }
    let wanted = Labels::default().changed("metadata", wire::labels(&metadata)?)?;
    let ((offset, limit), select) = (part(&body, 10, MOST)?, texts(&body, "select")?);
    let status = wanted_status(text(&body, "status")?, &["idle", "busy", "interrupted", "error"])?;
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let assistant = match text(&metadata, "graph_id")?.or(text(&metadata, "assistant_id")?) {
        Some(named) => Some(meant(&speaker, named).await?),
        None => None,
    };
    let is = |state: &str| status.is_none_or(|status| status == state);
    let fits = |thread: &Thread| match thread {
        Thread::Chat(view) => is(super::status_of_chat(view)) && view.labels.include(&wanted),
        Thread::Task(view) => is(super::status_of_task(view)) && view.labels.include(&wanted),
        Thread::Empty(.., labels) => is("idle") && labels.include(&wanted),
        Thread::Nothing(_) => false,
    };
    let mut threads = match texts(&body, "ids")? {
        Some(wanted) => by_ids(&speaker, &wanted[..wanted.len().min(MOST)]).await?,
        None => listed(&speaker, (assistant.as_ref(), &wanted), offset + limit, fits).await?,
    };
    threads.retain(|(_, thread)| fits(thread));
    let mut answer = Vec::new();
    let mut size = 0;
    for (id, thread) in threads.iter().skip(offset).take(limit) {
        let mut shown = thread_json(&speaker, id, thread).await?;
        size += shown["values"].to_string().len();
        if size > MAX_VALUES {
            shown["values"] = Value::Null;
        }
        answer.push(selected(shown, select.as_ref()));
    }
    Ok(axum::Json(answer.into()))
}

async fn by_ids(speaker: &Speaker<'_>, ids: &[String]) -> Result<Vec<(String, Thread)>, Error> {
    let mut threads = Vec::new();
    for id in ids {
        threads.push((id.clone(), Thread::find(&speaker.context.base, speaker.workspace, id).await?));
    }
    Ok(threads)
}

/// The first `wanted` threads of this assistant with these labels that fit.
async fn listed(
    speaker: &Speaker<'_>,
    (of, labels): (Option<&Assistant>, &Labels),
    wanted: usize,
    fits: impl Fn(&Thread) -> bool,
) -> Result<Vec<(String, Thread)>, Error> {
    let (context, workspace) = (speaker.context, speaker.workspace);
    let (mut threads, mut cursor, mut pages) = (Vec::new(), None, 0);
    while threads.len() < wanted && pages < PAGES {
        let (page, next): (Vec<_>, _) = match of {
            Some(Assistant { kind: AssistantKind::Flow, name, .. }) => {
                let filter = TaskFilter { flow: Some(name.clone()), labels: labels.clone(), ..TaskFilter::default() };
                let page = context.tasks.list(workspace, &filter, MOST, cursor).await?;
                let tasks = page.tasks.into_iter();
                (tasks.map(|view| (view.task_id.to_string(), Thread::Task(Box::new(view)))).collect(), page.next_cursor)
            }
            of => {
                let is = |view: &ChatView| of.is_none_or(|one| view.role == one.name) && view.labels.include(labels);
                let page = context.chats.reader().list_wanted(workspace, MOST, cursor, is).await?;
                let chats = page.chats.into_iter();
                (chats.map(|view| (view.chat_id.to_string(), Thread::Chat(Box::new(view)))).collect(), page.next_cursor)
            }
        };
        threads.extend(page.into_iter().filter(|(_, thread)| fits(thread)));
        pages += 1;
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(threads)
}

/// A thread with its values and interrupts.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}", tag = "langgraph", params(OfThread),
    operation_id = "get_langgraph_thread", responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn get_thread(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(OfThread { thread_id }): Path<OfThread>,
    ids: Ids,
) -> Answer<axum::Json<Value>> {
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let thread = Thread::find(&context.base, speaker.workspace, &thread_id).await?.there(&thread_id)?;
    Ok(axum::Json(thread_json(&speaker, &thread_id, &thread).await?))
}

/// Deletes a thread: its chat, or its task with all below it.
#[utoipa::path(delete, path = "/langgraph/threads/{thread_id}", tag = "langgraph", params(OfThread),
    operation_id = "delete_langgraph_thread", responses((status = 204, description = "It is gone.")))]
pub(crate) async fn delete_thread(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Path(OfThread { thread_id }): Path<OfThread>,
) -> Answer<StatusCode> {
    let (workspace, by) = (within.workspace, &within.by);
    let threads = context.threads();
    match Thread::find(&context.base, workspace, &thread_id).await?.there(&thread_id)? {
        Thread::Chat(view) => match threads.reader().get(workspace, view.chat_id).await {
            Ok(_) => threads.delete(workspace, view.chat_id, by).await?,
            Err(error) if error.code == Code::NotFound => context.chats.delete(workspace, view.chat_id, by).await?,
            Err(error) => return Err(error.into()),
        },
        Thread::Task(view) => {
            demand(&within.caller, within.role, Action::Run)?;
            context.tasks.delete(workspace, view.task_id, CommandId(context.base.clock.id()), by).await?;
        }
        Thread::Empty(chat, ..) | Thread::Nothing(chat) => threads.delete(workspace, chat, by).await?,
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Copies a thread: a fork of its chat with all turns that have ended.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/copy", tag = "langgraph", params(OfThread),
    operation_id = "copy_langgraph_thread", responses((status = 200, description = "The copy.", body = Value)))]
pub(crate) async fn copy_thread(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Path(OfThread { thread_id }): Path<OfThread>,
    ids: Ids,
) -> Answer<axum::Json<Value>> {
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let workspace = speaker.workspace;
    let Thread::Chat(view) = Thread::find(&context.base, workspace, &thread_id).await?.there(&thread_id)? else {
        return Err(Error::invalid("thread_id", "only the thread of a chat can be copied")
            .hint("run a task again: POST /api/v1/workspaces/ID/tasks/ID/replay")
            .into());
    };
    let fork = (ChatId(speaker.ids.id("chat")), CommandId(speaker.ids.id("command")));
    let copy = context.chats.fork(workspace, view.chat_id, ForkPoint::Now, fork, None, &speaker.by).await?;
    Ok(axum::Json(thread_json(&speaker, &copy.chat_id.to_string(), &Thread::Chat(Box::new(copy))).await?))
}

/// The result of `read` for the states of a thread. A thread without a run has none.
async fn states<T>(context: &Context, within: &Within<Read>, id: &str, read: impl FnOnce(&History) -> T) -> Answer<T> {
    let (stage, workspace) = (&context.base, within.workspace);
    Ok(match Thread::find(stage, workspace, id).await?.there(id)? {
        Thread::Chat(view) => read(conversation(stage, workspace, view.chat_id).await?.history()),
        Thread::Task(view) => read(course(stage, workspace, view.task_id).await?.history()),
        Thread::Empty(..) | Thread::Nothing(_) => read(&History::default()),
    })
}

/// The state of a thread now.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/state", tag = "langgraph", params(OfThread),
    responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn get_thread_state(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(OfThread { thread_id }): Path<OfThread>,
) -> Answer<axum::Json<Value>> {
    Ok(axum::Json(states(&context, &within, &thread_id, |history| history.state(&thread_id, None)).await?))
}

/// The state of a thread at a checkpoint.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/state/{checkpoint_id}", tag = "langgraph", params(OfCheckpoint),
    responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn get_checkpoint_state(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(OfCheckpoint { thread_id, checkpoint_id }): Path<OfCheckpoint>,
) -> Answer<axum::Json<Value>> {
    let number = wire::checkpoint_number(&checkpoint_id)?;
    Ok(axum::Json(states(&context, &within, &thread_id, |history| history.state(&thread_id, Some(number))).await?))
}

/// The state of a thread at a checkpoint, which the SDKs ask for in this way, too.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/state/checkpoint", tag = "langgraph",
    operation_id = "read_checkpoint_state", params(OfThread),
    request_body(content = Value, description = "`checkpoint` with its `checkpoint_id`."),
    responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn read_checkpoint_state(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(OfThread { thread_id }): Path<OfThread>,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    // There are no graphs below a thread's own.
    wire::plain(&body, &["checkpoint", "subgraphs"])?;
    let checkpoint = object(&body, "checkpoint")?;
    let number = text(&checkpoint, "checkpoint_id")?.map(wire::checkpoint_number).transpose()?;
    Ok(axum::Json(states(&context, &within, &thread_id, |history| history.state(&thread_id, number)).await?))
}

/// Refuses to change the state of a thread: agents make it.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/state", tag = "langgraph", operation_id = "update_thread_state",
    params(OfThread), request_body(content = Value, description = "Anything."),
    responses((status = 200, description = "Never.", body = Value)))]
pub(crate) async fn update_thread_state(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Path(OfThread { thread_id }): Path<OfThread>,
    Json(_): Json<Value>,
) -> Answer<axum::Json<Value>> {
    Thread::find(&context.base, within.workspace, &thread_id).await?.there(&thread_id)?;
    Err(Error::invalid("values", "values of a thread cannot be changed from outside")
        .hint("send a message; or fork the chat at an earlier turn: POST /api/v1/workspaces/ID/chats/ID/fork")
        .into())
}

/// Changes labels of a thread: a text sets one, and null removes it.
#[utoipa::path(patch, path = "/langgraph/threads/{thread_id}", tag = "langgraph", operation_id = "update_langgraph_thread",
    params(OfThread), request_body(content = Value, description = "`metadata` with the labels to change."),
    responses((status = 200, description = "The thread as it is in a moment.", body = Value)))]
pub(crate) async fn update_thread(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Path(OfThread { thread_id }): Path<OfThread>,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    wire::plain(&body, &["metadata"])?;
    let mut changes = wire::labels(&object(&body, "metadata")?)?;
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let mut thread = Thread::find(&context.base, speaker.workspace, &thread_id).await?.there(&thread_id)?;
    if let Thread::Chat(view) = &thread
        && view.labels.pairs().all(|(key, _)| key != "title")
    {
        // A client that sends back the metadata which it was shown does not mean a label.
        changes.retain(|key, value| key != "title" || value.as_ref() != Some(&view.title));
    }
    labels::change(&speaker, &mut thread, changes).await?;
    Ok(axum::Json(thread_json(&speaker, &thread_id, &thread).await?))
}

/// The states of a thread, the newest first.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/history", tag = "langgraph", params(OfThread),
    operation_id = "get_langgraph_history", request_body(content = Value, description = "`limit`, and `before` a checkpoint."),
    responses((status = 200, description = "A part of them.", body = Value)))]
pub(crate) async fn get_history(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(OfThread { thread_id }): Path<OfThread>,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    wire::plain(&body, &["limit", "before", "checkpoint"])?;
    if text(&object(&body, "checkpoint")?, "checkpoint_ns")?.is_some_and(|graph| !graph.is_empty()) {
        return Err(Error::invalid("checkpoint", "a thread has no graphs below its own")
            .hint("leave checkpoint_ns out")
            .into());
    }
    let (_, limit) = part(&body, 10, MOST)?;
    let before = body.get("before").filter(|before| !before.is_null());
    let before = before.map(|before| {
        let nested = [
            &before["checkpoint_id"],
            &before["checkpoint"]["checkpoint_id"],
            &before["configurable"]["checkpoint_id"],
        ];
        let id = before.as_str().or_else(|| nested.into_iter().find_map(Value::as_str));
        wire::checkpoint_number(id.ok_or_else(|| Error::invalid("before", "before names a checkpoint"))?)
    });
    let before = before.transpose()?;
    let states = states(&context, &within, &thread_id, |history| history.states(&thread_id, limit, before)).await?;
    Ok(axum::Json(states.into()))
}
