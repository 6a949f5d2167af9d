//! The Agent2Agent protocol: requests of other agents become commands of chats, and turns become tasks by [`protocols::a2a`].
//!
//! A path of this door names a workspace, or none, as those of the code agent hub. A refusal within a request is in its answer.

mod answered;
mod list;
mod push;

use crate::{
    Context,
    access::{Access, Converse, Read},
    converse::{MessageInput, NameKind, Reply, Run, Speaker, has_its_input, task_log},
    error::{Answer, ApiError, excerpt},
    extract::{JsonWithFiles, TraceParent, Traced},
    full_disk::demand_room,
    hub::Within,
    ids::Ids,
    login::LoginHeaders,
    long_answers::long_answer,
    rate_limits::admit,
    workspaces::InWorkspace,
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use chat::DefinitionKind;
use domain::{ChatEvent, ChatId, Code, CommandId, Error, OnBusy, TaskEvent, TurnId, WorkspaceId};
use http::{HeaderMap, HeaderName, header};
use protocols::{
    Part, PauseFilter, Projection, Span,
    a2a::{self as wire, Ask, Card, PushAsk, Refusal, RefusalKind, SentMessage, Shows, Skill, Task, TaskId},
    after_pauses,
    task_as_turn::{self, TaskTranslation},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// The version of the protocol that a client speaks.
const VERSION: HeaderName = HeaderName::from_static("a2a-version");
/// How long the end of a task that was canceled is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A part of an answer, or the refusal of its request.
type PeerResult<T> = Result<T, Refusal>;

/// The card of this server, for every client: the endpoint, the credential, and the personas in the box as skills. With a credential the method
/// `GetExtendedAgentCard` tells the personas and flows of a workspace.
#[utoipa::path(get, path = "/.well-known/agent-card.json", tag = "a2a",
    responses((status = 200, description = "The card (Agent2Agent 1.0).", body = Value)))]
pub(crate) async fn agent_card(State(context): State<Arc<Context>>, headers: HeaderMap) -> axum::Json<Value> {
    let personas = chat::built_in_personas();
    let skills = personas.iter().map(persona).collect();
    axum::Json(card(&context, &headers, "/a2a", skills))
}

/// The card of a workspace: its endpoint, and its personas and flows as skills.
#[utoipa::path(get, path = "/a2a/{workspace_id}/.well-known/agent-card.json", tag = "a2a", params(InWorkspace),
    responses((status = 200, description = "The card (Agent2Agent 1.0).", body = Value)))]
pub(crate) async fn workspace_card(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
    headers: HeaderMap,
) -> Answer<axum::Json<Value>> {
    let endpoint = format!("/a2a/{}", at.workspace_id);
    Ok(axum::Json(card_of(&context, at.workspace_id, files, &headers, &endpoint).await?))
}

/// Takes a request of another agent (Agent2Agent 1.0 over JSON-RPC): `SendMessage`, `SendStreamingMessage`, `GetTask`, `CancelTask`,
/// `SubscribeToTask`, `ListTasks`, `GetExtendedAgentCard`, and those about push notifications. A task is a turn, and its
/// context is the chat; or it is a task of a flow.
#[utoipa::path(post, path = "/a2a", tag = "a2a", params(TraceParent),
    request_body(content = Value, description = "A request of JSON-RPC 2.0."),
    responses((status = 200, description = "Its answer; of a streaming method the answers, as an event stream.",
        content((Value = "application/json"), (String = "text/event-stream")))))]
pub(crate) async fn take_a2a_request(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    ids: Ids,
    traced: Traced,
    headers: HeaderMap,
    JsonWithFiles(body): JsonWithFiles<Value>,
) -> Answer<Response> {
    let speaker = Speaker::within(&context, &within, ids, traced).await?;
    Ok(take(Peer { speaker, headers: &headers, endpoint: "/a2a".to_owned() }, &body).await)
}

/// The same in the workspace of the path.
#[utoipa::path(post, path = "/a2a/{workspace_id}", tag = "a2a", params(InWorkspace, TraceParent),
    request_body(content = Value, description = "A request of JSON-RPC 2.0."),
    responses((status = 200, description = "Its answer; of a streaming method the answers, as an event stream.",
        content((Value = "application/json"), (String = "text/event-stream")))))]
pub(crate) async fn take_a2a_request_in(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, files, .. }: Access<Converse, InWorkspace>,
    ids: Ids,
    Traced(trace): Traced,
    headers: HeaderMap,
    JsonWithFiles(body): JsonWithFiles<Value>,
) -> Answer<Response> {
    let speaker =
        Speaker { context: &context, workspace: at.workspace_id, by, caller: &caller, role, files, ids, trace };
    Ok(take(Peer { speaker, headers: &headers, endpoint: format!("/a2a/{}", at.workspace_id) }, &body).await)
}

/// The other agent, and the endpoint that it has called.
struct Peer<'a> {
    speaker: Speaker<'a>,
    headers: &'a HeaderMap,
    endpoint: String,
}

async fn take(mut peer: Peer<'_>, body: &Value) -> Response {
    let version = peer.headers.get(VERSION).map(|version| version.to_str().unwrap_or_default().trim());
    let (id, asked) = wire::request(body, version);
    let answered = match asked {
        Ok(ask) => {
            if matches!(&ask, Ask::Send(sent) if sent.push.is_some()) {
                peer.speaker.ids = peer.speaker.ids.fixed();
            }
            answer(&peer, &id, ask).await
        }
        Err(refusal) => Err(refusal),
    };
    // A refusal is an answer as any other in JSON-RPC. It is not kept under an idempotency key: the request can be sent again.
    answered.unwrap_or_else(|refusal| {
        ([(header::CACHE_CONTROL, "no-store")], axum::Json(refusal.answer(&id))).into_response()
    })
}

async fn answer(peer: &Peer<'_>, id: &Value, ask: Ask) -> PeerResult<Response> {
    let speaker = &peer.speaker;
    let adds = matches!(ask, Ask::Send(_) | Ask::Push(_, PushAsk::Create(_)));
    if adds {
        demand_room(&speaker.context.base)?;
    }
    match ask {
        Ask::Send(sent) => send(peer, id, *sent).await,
        Ask::Get(task, history) => whole(id, &known(peer, id, task).await?.task, history),
        Ask::Cancel(task) => cancel(peer, id, task).await,
        Ask::List(ask) => list::list(peer, id, ask).await,
        Ask::Push(task, ask) => push::configure(peer, id, task, ask).await,
        Ask::Subscribe(task) => {
            speaker.demand_streams("poll the task by GetTask")?;
            let now = known(peer, id, task).await?;
            if now.task.state().is_terminal() {
                let error = Error::new(Code::Conflict, "the task has ended").hint("read it by GetTask");
                return Err(Refusal { kind: RefusalKind::UnsupportedOperation, error });
            }
            // A task that waits for the end of a pause has failed, so no pause of before lasts.
            streamed(peer, id, (task, u32::MAX), &now, now.after).await
        }
        Ask::Card => {
            let (context, files) = (speaker.context, speaker.files.clone());
            let card = card_of(context, speaker.workspace, files, peer.headers, &peer.endpoint).await?;
            Ok(axum::Json(wire::success(id, &card)).into_response())
        }
    }
}

async fn send(peer: &Peer<'_>, id: &Value, sent: SentMessage) -> PeerResult<Response> {
    let speaker = &peer.speaker;
    if sent.is_streamed || !sent.at_once {
        speaker.demand_streams("call SendMessage with returnImmediately, and poll the task by GetTask")?;
    }
    admit(speaker.context, speaker.caller.user).await?;
    let (is_streamed, at_once, history) = (sent.is_streamed, sent.at_once, sent.history);
    let run = said(peer, id, sent).await?;
    let (task, part) = (TaskId { chat: run.chat, turn: run.part.turn }, run.part.number);
    if is_streamed || at_once {
        let now = folded(peer, id, task, part, run.resumed).await?;
        return match is_streamed {
            true => streamed(peer, id, (task, part), &now, run.resumed).await,
            false => Ok(axum::Json(wire::success(id, &json!({ "task": now.task.whole(history) }))).into_response()),
        };
    }
    let view = Box::new(view(peer, id, task, part, Shows::Whole(history)));
    let waited = speaker.waited(run, view).await.map_err(|error| error.error)?;
    // A late refusal is an answer of JSON-RPC, as an early one is.
    let asked = id.clone();
    let whole = async move { Ok(waited.await.unwrap_or_else(|late| Refusal::from(late.error).answer(&asked))) };
    Ok(long_answer(whole, ApiError::envelope).await.map_err(|error| error.error)?)
}

/// Hands a message to its chat. Notifications of its task are set up before it, so that none is missed.
async fn said(peer: &Peer<'_>, id: &Value, mut sent: SentMessage) -> PeerResult<Run> {
    // First, so that a message that its task does not take leaves the notifications of the task as they were.
    let open = match sent.task {
        Some(task) => Some(open_task(peer, id, task, sent.context).await?),
        None => None,
    };
    let flow = begun_flow(peer, &sent).await?;
    let Some(config) = sent.push.take() else { return handed(peer, open, flow, sent).await };
    let speaker = &peer.speaker;
    let task = sent.task.unwrap_or_else(|| {
        let chat = sent.context.unwrap_or_else(|| speaker.new_chat());
        if flow.is_some() {
            let task = domain::TaskId::root(chat.0);
            return TaskId { chat: task_as_turn::chat_of(task), turn: task_as_turn::turn_of(task) };
        }
        TaskId { chat, turn: TurnId(speaker.turn(chat).0) }
    });
    let made = push::put(peer, task, flow.clone(), config).await?;
    let said = handed(peer, open, flow, sent).await;
    if let (Err(_), Some(made)) = (&said, &made.id) {
        speaker.context.webhooks.unpush(speaker.workspace, task.turn, made, &speaker.by).await?;
    }
    said
}

/// The flow of which a message begins a task; none for one that begins a chat or goes on.
async fn begun_flow(peer: &Peer<'_>, sent: &SentMessage) -> PeerResult<Option<String>> {
    let Some(skill) = sent.skill.as_ref().filter(|_| sent.task.is_none() && sent.context.is_none()) else {
        return Ok(None);
    };
    match peer.speaker.named(skill).await? {
        NameKind::Flow => Ok(Some(skill.clone())),
        NameKind::Persona => Ok(None),
        NameKind::Nothing => Err(Error::invalid("skill", format!("there is no skill {:?}", excerpt(skill)))
            .hint("the card lists the personas and the flows, which are the skills")
            .into()),
    }
}

/// Hands a message to the task that it is for, which is `open`, or else to its context or a new one: a task of this flow, if there is one.
async fn handed(peer: &Peer<'_>, open: Option<Task>, flow: Option<String>, sent: SentMessage) -> PeerResult<Run> {
    let speaker = &peer.speaker;
    if let (Some(task), Some(now)) = (sent.task, open) {
        if !sent.files.is_empty() {
            return Err(RefusalKind::ContentTypeNotSupported
                .of("parts", "a message for a task that runs or asks brings no files")
                .hint("send them with the contextId and without the taskId"));
        }
        // The answer to its question, or words for the turn that runs.
        let open = now.asked();
        let asked = match &sent.message {
            Some(message) => answered::by(speaker, task.chat, (message, &sent.content), open).await?,
            None => open,
        };
        return Ok(match asked {
            Some(before) if asked != open => {
                // The message came before. Its answer counts, and what is open now is something else.
                let parts = speaker.parts(task.chat).await?;
                let part = parts.that_asked(before).map_or(Part::first(task.turn), |(_, part)| part.next());
                Run { chat: task.chat, part, first: 1, resumed: parts.resumed() }
            }
            Some(asked) => speaker.reply(task.chat, asked, Reply::Given(sent.content)).await?,
            None if task_as_turn::task_of(task.chat).is_some() => return Err(one_input()),
            None => speaker.steer(task.chat, task.turn, sent.words()).await?,
        });
    }
    if let Some(chat) = sent.context {
        if task_as_turn::task_of(chat).is_some() {
            return Err(one_input());
        }
        let view = speaker.context.chats.get(speaker.workspace, chat).await.map_err(|error| match error.code {
            Code::NotFound => Refusal { kind: RefusalKind::InvalidParams, error: error.detail("field", "contextId") },
            _ => error.into(),
        })?;
        if sent.skill.as_ref().is_some_and(|skill| *skill != view.role) {
            return Err(Error::invalid("skill", "another persona has this context")
                .hint("leave skill out, or begin a context")
                .into());
        }
        let words = MessageInput { content: sent.words(), files: sent.files, ..MessageInput::default() };
        return Ok(speaker.post(chat, words, OnBusy::Enqueue).await?);
    }
    let words = MessageInput {
        content: sent.words(),
        role: sent.skill,
        model: sent.model,
        files: sent.files,
        ..MessageInput::default()
    };
    let chat = speaker.new_chat();
    Ok(match flow {
        Some(flow) => speaker.begin_task(chat, &flow, words).await?,
        None => speaker.begin_chat(chat, words).await?,
    })
}

/// The refusal of words for a task of a flow that asks nothing.
fn one_input() -> Refusal {
    Refusal { kind: RefusalKind::UnsupportedOperation, error: has_its_input() }
}

/// A task that takes a message which names this context, or none.
async fn open_task(peer: &Peer<'_>, id: &Value, task: TaskId, context: Option<ChatId>) -> PeerResult<Task> {
    if context.is_some_and(|context| context != task.chat) {
        return Err(Error::invalid("contextId", "the task belongs to another context").into());
    }
    let FoldedTask { task: now, .. } = known(peer, id, task).await?;
    if now.state().is_terminal() {
        let error = Error::new(Code::Conflict, "the task has ended")
            .hint("send the message with the contextId and without the taskId");
        return Err(Refusal { kind: RefusalKind::UnsupportedOperation, error });
    }
    Ok(now)
}

async fn cancel(peer: &Peer<'_>, id: &Value, task: TaskId) -> PeerResult<Response> {
    let speaker = &peer.speaker;
    let FoldedTask { task: now, .. } = known(peer, id, task).await?;
    let refused = |why: &str, hint: &str| {
        Err(Refusal { kind: RefusalKind::TaskNotCancelable, error: Error::new(Code::Conflict, why).hint(hint) })
    };
    if now.state().is_terminal() {
        return refused("the task has ended", "read it by GetTask");
    }
    let (chats, command) = (&speaker.context.chats, CommandId(speaker.ids.id("command")));
    if let Some(of) = task_as_turn::task_of(task.chat) {
        speaker.stop_task(of).await?;
    } else if chats.get(speaker.workspace, task.chat).await?.turn_id.is_some_and(|turn| turn != task.turn) {
        return refused("the task waits behind another one of its context", "cancel that one, or wait for its end");
    } else {
        chats.stop(speaker.workspace, task.chat, command, &speaker.by).await?;
    }
    if speaker.demand_streams("").is_ok() {
        // The stop ends a pause, too.
        let run = Run { chat: task.chat, part: Part::first(task.turn), first: 1, resumed: u64::MAX };
        let view = Box::new(view(peer, id, task, u32::MAX, Shows::Whole(None)));
        let waited = async { speaker.waited(run, view).await?.await };
        if let Ok(whole) = tokio::time::timeout(PATIENCE, waited).await {
            let whole = whole.map_err(|error| error.error)?;
            return Ok(axum::Json(wire::success(id, &whole["result"]["task"])).into_response());
        }
    }
    whole(id, &known(peer, id, task).await?.task, None)
}

fn whole(id: &Value, task: &Task, history: Option<usize>) -> PeerResult<Response> {
    Ok(axum::Json(wire::success(id, &task.whole(history))).into_response())
}

fn view(peer: &Peer<'_>, id: &Value, task: TaskId, part: u32, shows: Shows) -> Task {
    let files =
        format!("{}/api/v1/workspaces/{}/files", address(peer.speaker.context, peer.headers), peer.speaker.workspace);
    Task::new(task, part, id.clone(), files, shows)
}

/// A task as its log has it.
struct FoldedTask {
    task: Task,
    /// The number of the next event of the log.
    next: u64,
    /// The same number as the view counts: a task of a flow is told with numbers of its own.
    after: u64,
}

/// A task of the caller's workspace as it is now.
async fn known(peer: &Peer<'_>, id: &Value, task: TaskId) -> PeerResult<FoldedTask> {
    let (context, workspace) = (peer.speaker.context, peer.speaker.workspace);
    let there = match task_as_turn::task_of(task.chat) {
        Some(of) if task.turn != task_as_turn::turn_of(of) => return Err(Refusal::no_task(task)),
        Some(of) => context.tasks.get(workspace, of).await.map(drop),
        None => context.chats.get(workspace, task.chat).await.map(drop),
    };
    match there {
        Ok(()) => folded(peer, id, task, u32::MAX, 0).await,
        Err(error) if error.code == Code::NotFound => Err(Refusal::no_task(task)),
        Err(error) => Err(error.into()),
    }
}

/// A task up to the end of a part, without the pauses that have ended and those before the event `resumed`.
async fn folded(peer: &Peer<'_>, id: &Value, task: TaskId, part: u32, resumed: u64) -> PeerResult<FoldedTask> {
    let (mut view, mut frames) = (view(peer, id, task, part, Shows::Whole(None)), Vec::new());
    let (mut pauses, mut next, mut after) = (PauseFilter::default(), 1, 1);
    let mut show = |number: u64, at, event: &ChatEvent| {
        if number >= resumed || !matches!(event, ChatEvent::Paused { .. }) {
            view.take_in(number, at, event, &mut frames);
        }
    };
    if let Some(of) = task_as_turn::task_of(task.chat) {
        let mut telling = TaskTranslation::of(of);
        let take_in = |number, at, event: &TaskEvent| {
            for (told, event) in telling.numbered(number, at, event) {
                pauses.take_in(told, at, &event, &mut show);
                after = told + 1;
            }
            next = number + 1;
        };
        task_log(&peer.speaker.context.base, peer.speaker.workspace, of, take_in).await?;
    } else {
        let take_in = |number, at, event: &ChatEvent| {
            pauses.take_in(number, at, event, &mut show);
            (next, after) = (number + 1, number + 1);
        };
        peer.speaker.context.threads().reader().log(peer.speaker.workspace, task.chat, 1, take_in).await?;
    }
    pauses.end(show);
    Ok(FoldedTask { task: view, next, after })
}

/// The task as it is now, and the updates after it. All pauses before the event `resumed` have ended.
async fn streamed(
    peer: &Peer<'_>,
    id: &Value,
    of: (TaskId, u32),
    now: &FoldedTask,
    resumed: u64,
) -> PeerResult<Response> {
    let (task, part) = of;
    let span = Span { fold_from: 1, first: now.next, to_the_end: true };
    let view = after_pauses(resumed, Box::new(view(peer, id, task, part, Shows::Updates)));
    let now = format!("data: {}\n\n", wire::success(id, &json!({ "task": now.task.whole(None) })));
    let around = [Bytes::from(now), Bytes::new()];
    Ok(peer.speaker.stream(task.chat, view, span, around).await.map_err(|error| error.error)?)
}

/// The URL of this server, as the client that asks knows it.
fn address(context: &Context, headers: &HeaderMap) -> String {
    context.base.auth.login().resource(&LoginHeaders::by(headers)).unwrap_or_default()
}

fn card(context: &Context, headers: &HeaderMap, endpoint: &str, skills: Vec<Skill<'_>>) -> Value {
    let url = format!("{}{endpoint}", address(context, headers));
    let pushes = context.webhooks.setup().is_some();
    Card { url, is_guarded: context.base.auth.is_guarded(), pushes, skills }.value()
}

fn persona(one: &chat::Definition) -> Skill<'_> {
    Skill { kind: "persona", name: &one.name, title: &one.title, description: &one.description }
}

fn flow(one: &engine::FlowInfo) -> Skill<'_> {
    let description = one.description.as_deref().unwrap_or_default();
    Skill { kind: "flow", name: &one.name, title: &one.name, description }
}

/// The card of a workspace. Of a persona and a flow of one name it has the persona; a flow with faults is no skill.
async fn card_of(
    context: &Context,
    workspace: WorkspaceId,
    files: workspace::Access,
    headers: &HeaderMap,
    endpoint: &str,
) -> Result<Value, Error> {
    let opened = context.base.workspaces.open(workspace, files).await?;
    let personas = chat::definitions(&opened, DefinitionKind::Agents).await?;
    let mut flows = context.tasks.flows().list(workspace).await?;
    flows.retain(|flow| flow.hash.is_some() && personas.iter().all(|persona| persona.name != flow.name));
    let skills = personas.iter().map(persona).chain(flows.iter().map(flow)).collect();
    Ok(card(context, headers, endpoint, skills))
}
