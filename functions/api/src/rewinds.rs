//! Rewinds: a folder, the workspace, or the work of a chat, a turn or a task goes back to how it was.

use crate::{
    Context,
    access::{Access, Write, demand},
    error::{Answer, about_event},
    extract::{Json, page_length},
    full_disk::demand_room,
    ids::Ids,
    schema,
    workspaces::InWorkspace,
    writes::author,
};
use ::workspace::rewind::{RewindState, Selection, StepPage, Target};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use chat::{ForkPoint, HistoryRange, RangeCalls};
use domain::{ChatId, Code, CommandId, Error, FileId, FilePath, TaskId, Timestamp, TurnId, WorkspaceId};
use engine::TaskFilter;
use http::{HeaderValue, header};
use identity::Action;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use utoipa::ToSchema;
use uuid::Uuid;

/// How long one request works; a function has 29 seconds.
const BUDGET: Duration = Duration::from_secs(20);
/// A client's clock may be ahead by this much.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);
/// The most tasks and chats of one tree.
const MAX_ACTORS: usize = 2_000;

/// A rewind to preview or to do.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RewindRequest {
    /// The changes to take back.
    scope: RewindScope,
    /// The point to go back to. Needed for a workspace and a path; of a chat it takes back the calls after it; a turn, a task and a rewind have none.
    to: Option<RewindPoint>,
    /// Whether to show the steps only, and change nothing.
    #[serde(default)]
    preview: bool,
    /// Whether the chat goes back, too: a fork of it is made that ends before the turn, or at the point. For a turn, and for a chat with a point. A preview
    /// makes none, and so does a rewind that is still running.
    #[serde(default)]
    fork: bool,
    /// The id of the rewind: the same id again goes on with the same rewind [default: a new one].
    rewind_id: Option<Uuid>,
    /// `as_of` of a preview: changes after it count as made by others, and are kept [default: now].
    as_of: Option<Uuid>,
    /// The most steps that a preview shows; 1 to 1,000 [default: 200].
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next_cursor` of the page of a preview before.
    cursor: Option<String>,
}

/// The changes that a rewind takes back.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum RewindScope {
    /// All changes.
    Workspace {},
    /// All changes at or below a path.
    Path {
        /// The path, as it is now or as it was.
        #[schema(value_type = String)]
        path: FilePath,
    },
    /// The changes of a chat's agent.
    Chat {
        /// The chat.
        #[schema(value_type = Uuid)]
        chat_id: ChatId,
    },
    /// The changes of one turn.
    Turn {
        /// The chat.
        #[schema(value_type = Uuid)]
        chat_id: ChatId,
        /// The turn.
        #[schema(value_type = Uuid)]
        turn_id: TurnId,
    },
    /// The changes of a task, its clones and subtasks, and their agents.
    Task {
        /// The task.
        #[schema(value_type = Uuid)]
        task_id: TaskId,
    },
    /// The changes of another rewind.
    Rewind {
        /// The rewind.
        rewind_id: Uuid,
    },
}

/// The point to go back to: `time`; `chat_id` and `seq`; `chat_id` and `turn_id`; or `file_id` and `v`.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RewindPoint {
    /// A time: later changes are taken back.
    #[schema(value_type = Option<String>, format = DateTime)]
    time: Option<Timestamp>,
    /// The chat of `seq` or `turn_id`.
    #[schema(value_type = Option<Uuid>)]
    chat_id: Option<ChatId>,
    /// The number of an event of the chat: later changes are taken back.
    #[serde(default, deserialize_with = "crate::extract::some_number")]
    #[schema(minimum = 1, maximum = 9_223_372_036_854_775_807_i64)]
    seq: Option<u64>,
    /// A turn of the chat: its changes and later ones are taken back.
    #[schema(value_type = Option<Uuid>)]
    turn_id: Option<TurnId>,
    /// The file of `v`.
    #[schema(value_type = Option<Uuid>)]
    file_id: Option<FileId>,
    /// A version of the file: later changes are taken back.
    #[serde(default, deserialize_with = "crate::extract::some_number")]
    #[schema(minimum = 1, maximum = 9_223_372_036_854_775_807_i64)]
    v: Option<u64>,
}

/// A point, after a look at its fields.
enum Point {
    Time(Timestamp),
    Chat(ChatId, HistoryRange),
    Version(FileId, u64),
}

impl RewindPoint {
    fn read(&self) -> Result<Point, Error> {
        match (self.time, self.chat_id, self.seq, self.turn_id, self.file_id, self.v) {
            (Some(time), None, None, None, None, None) => Ok(Point::Time(time)),
            (None, Some(chat), Some(seq), None, None, None) => Ok(Point::Chat(chat, HistoryRange::After(seq))),
            (None, Some(chat), None, Some(turn), None, None) => Ok(Point::Chat(chat, HistoryRange::FromTurn(turn))),
            (None, None, None, None, Some(file), Some(v)) => Ok(Point::Version(file, v)),
            _ => Err(Error::invalid("to", "this is no point to go back to")
                .hint("send time; or chat_id and seq; or chat_id and turn_id; or file_id and v")),
        }
    }
}

/// Takes changes of files back by new changes, or shows the steps that it would do. Nothing is lost: files that others changed since are conflicts and
/// stay, and a rewind is taken back by another one of `{"kind": "rewind"}`. A rewind of many files answers with the state `running` after 20 seconds: the
/// same request with the same `rewind_id` goes on, also after a crash.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/rewind", tag = "versions", params(InWorkspace),
    request_body = RewindRequest,
    responses((status = 200, description = "The rewind, or its preview.", body = schema::Rewind)))]
pub(crate) async fn rewind(
    State(context): State<Arc<Context>>,
    Access { at, by, files, caller, role, .. }: Access<Write, InWorkspace>,
    ids: Ids,
    Json(asked): Json<RewindRequest>,
) -> Answer<Response> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let limit = page_length(asked.limit, 200, 1_000)?;
    let (after, planned_as_of) = match asked.cursor.as_deref().map(StepPage::place) {
        None => (0, None),
        Some(Some(place)) => place,
        Some(None) => {
            return Err(Error::invalid("cursor", "this is no cursor of a preview")
                .hint("take next_cursor of the page before, or leave it out for the first page")
                .into());
        }
    };
    let selection = selection(&context, &workspace, at.workspace_id, &asked).await?;
    let target = Target { selection, as_of: asked.as_of };
    let fork = asked.fork.then(|| fork_point(&asked)).transpose()?;
    if fork.is_some() {
        demand(&caller, role, Action::Converse)?;
    }
    if asked.preview {
        let target = Target { as_of: planned_as_of.or(asked.as_of), ..target };
        let preview = workspace.preview_rewind(&target, StepPage { after, limit }).await?;
        if preview.is_empty() {
            demand_place(&workspace, &asked.scope).await?;
        }
        return Ok(axum::Json(preview).into_response());
    }
    demand_room(&context.base)?;
    // The plan has the paths that this caller sees: another one has a plan of their own.
    let request = (&asked.scope, &asked.to, &asked.as_of, by.to_string());
    let request = serde_json::to_string(&request).map_err(|_| crate::error::internal())?;
    let id = asked.rewind_id.unwrap_or_else(|| ids.id("rewind"));
    let writer = author(&caller, by.clone().into());
    let rewind = workspace.rewind(id, &target, &request, &writer, BUDGET).await?;
    if rewind.is_empty() {
        demand_place(&workspace, &asked.scope).await?;
    }
    let is_running = rewind.state == RewindState::Running;
    let forked = match fork.filter(|_| !is_running) {
        None => None,
        Some((chat, point)) => {
            // The same rewind has the same fork.
            let of = |kind: &str| CommandId::from_key(kind, &id.to_string());
            let ids = (ChatId(of("rewind/chat").0), of("rewind/fork"));
            Some(context.chats.fork(at.workspace_id, chat, point, ids, None, &by).await?.chat_id)
        }
    };
    let mut response = axum::Json(RewindAnswer { rewind, forked_chat_id: forked }).into_response();
    if is_running {
        // The same request goes on: its answer is not kept under its idempotency key.
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    Ok(response)
}

/// Of a path that has no changes to take back: that there is something.
async fn demand_place(workspace: &::workspace::Workspace, scope: &RewindScope) -> Result<(), Error> {
    let RewindScope::Path { path } = scope else { return Ok(()) };
    match workspace.stat(path).await {
        Err(error) if error.code == Code::NotFound => {
            Err(error.hint("nothing is there, and nothing was changed there since that point"))
        }
        _ => Ok(()),
    }
}

/// A rewind with the fork that it made.
#[derive(Serialize)]
struct RewindAnswer<R> {
    #[serde(flatten)]
    rewind: R,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_chat_id: Option<ChatId>,
}

/// The chat that goes back with its files, and how far.
fn fork_point(asked: &RewindRequest) -> Result<(ChatId, ForkPoint), Error> {
    let point = asked.to.as_ref().map(RewindPoint::read).transpose()?;
    match (&asked.scope, point) {
        (RewindScope::Turn { chat_id, turn_id }, None) => Ok((*chat_id, ForkPoint::Before(*turn_id))),
        (RewindScope::Chat { chat_id }, Some(Point::Chat(of, range))) if of == *chat_id => match range {
            HistoryRange::After(seq) => Ok((of, ForkPoint::Seq(seq))),
            HistoryRange::FromTurn(turn) | HistoryRange::Turn(turn) => Ok((of, ForkPoint::Before(turn))),
        },
        _ => Err(Error::invalid("fork", "a chat goes back with its files to a point of its own")
            .hint("use the scope turn, or the scope chat with to.seq or to.turn_id of that chat")),
    }
}

/// The changes that a request means.
async fn selection(
    context: &Context,
    workspace: &::workspace::Workspace,
    id: WorkspaceId,
    asked: &RewindRequest,
) -> Result<Selection, Error> {
    let point = asked.to.as_ref().map(RewindPoint::read).transpose()?;
    let no_point = || match &asked.to {
        None => Ok(()),
        Some(_) => Err(Error::invalid("to", "a turn, a task and a rewind are taken back whole").hint("leave it out")),
    };
    match &asked.scope {
        RewindScope::Workspace {} => below(context, workspace, FilePath::root(), point).await,
        RewindScope::Path { path } => below(context, workspace, path.clone(), point).await,
        RewindScope::Chat { chat_id } => match point {
            None => {
                context.chats.get(id, *chat_id).await?;
                Ok(Selection::By { actors: vec![chat_id.0], calls: None, since: Timestamp::of_any_id(chat_id.0) })
            }
            Some(Point::Chat(chat, range)) if chat == *chat_id => {
                Ok(of_chat(chat, calls_after(context, id, chat, range).await?))
            }
            Some(_) => Err(Error::invalid("to", "the point is not in this chat")
                .hint("send the chat's own chat_id with seq or turn_id, or leave it out for all of the chat")),
        },
        RewindScope::Turn { chat_id, turn_id } => {
            no_point()?;
            Ok(of_chat(*chat_id, context.chats.calls_in(id, *chat_id, HistoryRange::Turn(*turn_id)).await?))
        }
        RewindScope::Task { task_id } => {
            no_point()?;
            Ok(Selection::By {
                actors: tree(context, id, *task_id).await?,
                calls: None,
                since: Timestamp::of_any_id(task_id.0),
            })
        }
        RewindScope::Rewind { rewind_id } => {
            no_point()?;
            if !workspace.knows_rewind(*rewind_id).await? {
                let hint = "the answer to a rewind has its id, which is known for 30 days";
                return Err(Error::not_found("rewind", rewind_id).hint(hint));
            }
            Ok(Selection::By { actors: vec![*rewind_id], calls: None, since: None })
        }
    }
}

/// The calls of a chat after the point of a request.
async fn calls_after(
    context: &Context,
    workspace: WorkspaceId,
    chat: ChatId,
    range: HistoryRange,
) -> Result<RangeCalls, Error> {
    context.chats.calls_in(workspace, chat, range).await.map_err(|error| about_event(error, "to.seq"))
}

fn of_chat(chat: ChatId, RangeCalls { at, calls }: RangeCalls) -> Selection {
    Selection::By { actors: vec![chat.0], calls: Some(calls), since: Some(at) }
}

/// All changes at or below a path after a point.
async fn below(
    context: &Context,
    workspace: &::workspace::Workspace,
    path: FilePath,
    point: Option<Point>,
) -> Result<Selection, Error> {
    let since = match point {
        None => {
            return Err(Error::invalid("to", "a workspace or a path needs a point to go back to")
                .hint("send to.time, such as 2026-01-31T12:00:00Z"));
        }
        Some(Point::Time(time)) if time > context.base.clock.now() + CLOCKS_DIFFER => {
            return Err(Error::invalid("to", "this time is still to come").hint("send a time in the past, in UTC"));
        }
        Some(Point::Time(time)) => time,
        Some(Point::Chat(chat, range)) => calls_after(context, workspace.id(), chat, range).await?.at,
        Some(Point::Version(file_id, v)) => match workspace.path_of(file_id).await {
            Ok(current) if current == path => return Ok(Selection::Version { file_id, v }),
            _ => workspace.version_info(file_id, v).await?.at,
        },
    };
    Ok(Selection::Below { path, since })
}

/// A task with its clones and subtasks, and the chats of their agents.
async fn tree(context: &Context, workspace: WorkspaceId, root: TaskId) -> Result<Vec<Uuid>, Error> {
    const PAGE: usize = 200;
    context.tasks.get(workspace, root).await?;
    let (mut actors, mut tasks) = (Vec::new(), vec![root]);
    while let Some(task) = tasks.pop() {
        actors.push(task.0);
        let mut cursor = None;
        loop {
            let page = context.tasks.children(workspace, task, &TaskFilter::default(), PAGE, cursor).await?;
            tasks.extend(page.tasks.iter().map(|child| child.task_id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        loop {
            let page = context.chats.of_task(workspace, task, PAGE, cursor).await?;
            actors.extend(page.chats.iter().map(|chat| chat.chat_id.0));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        if actors.len() + tasks.len() > MAX_ACTORS {
            let message = format!("the task has more than {MAX_ACTORS} clones, subtasks and agents");
            return Err(Error::new(Code::Unprocessable, message)
                .hint("rewind its clones or subtasks one by one, or a folder to a time")
                .detail("field", "scope")
                .detail("limit", MAX_ACTORS));
        }
    }
    Ok(actors)
}
