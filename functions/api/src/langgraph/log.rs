//! The log of a run: its stream, its last values, its stop.

use super::Thread;
use crate::{
    Context, StreamContext,
    converse::{Run, only_frame},
    error::Answer,
};
use axum::response::Response;
use domain::{ActorRef, Code, CommandId, Error, Principal, TaskId, TurnId, WorkspaceId};
use http::HeaderMap;
use protocols::{
    Part, Span,
    langgraph::{AssistantKind, ChatRun, Mode, RunId, TaskRun},
};
use serde_json::Value;

/// A run, and the log that tells of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Log {
    /// That of a chat.
    Chat(Run),
    /// That of a task.
    Task(RunId),
}

/// A run whose command was sent.
pub(super) struct Started {
    /// The client's id of the thread.
    pub thread: String,
    /// The assistant.
    pub kind: AssistantKind,
    pub graph: String,
    pub log: Log,
}

impl Log {
    pub(super) fn id(self) -> RunId {
        match self {
            Self::Chat(run) => run.part.into(),
            Self::Task(run) => run,
        }
    }
}

/// The stream of a run in these modes; without modes its last values alone. With the headers of a client that joins it, the stream begins after their
/// cursor, and ends after some minutes, so that permission is checked again; else it lasts until the run ends.
pub(super) async fn open(
    stage: &StreamContext,
    workspace: WorkspaceId,
    started: &Started,
    modes: Option<Vec<Mode>>,
    joins: Option<&HeaderMap>,
) -> Answer<Response> {
    let Started { thread, graph, log, .. } = started;
    let (thread, graph) = (thread.clone(), graph.clone());
    let (none, to_the_end) = (HeaderMap::new(), joins.is_none());
    let headers = joins.unwrap_or(&none);
    Ok(match *log {
        Log::Chat(Run { chat, part, first }) => {
            // The values have the messages of earlier turns.
            let has_values = modes.as_ref().is_none_or(|modes| modes.contains(&Mode::Values));
            let fold_from = if has_values { 1 } else { first };
            let view = match modes {
                Some(modes) => ChatRun::new(part, thread, graph, modes),
                None => ChatRun::whole(part, thread, graph),
            };
            let span = Span { fold_from, first: fold_from, to_the_end };
            let actor = ActorRef::Chat { workspace, chat };
            stage.streams.open_projected(actor, Box::new(view), span, headers, None).await?
        }
        Log::Task(run) => {
            let view = TaskRun::new(run, thread, graph, modes);
            let span = Span { fold_from: 1, first: 1, to_the_end };
            let actor = ActorRef::Task { workspace, task: TaskId(run.of) };
            stage.streams.open_task(actor, Box::new(view), span, headers).await?
        }
    })
}

/// The run of this id in a thread.
pub(super) fn found(id: RunId, thread: &str, found: &Thread) -> Result<Started, Error> {
    let gone = || Error::not_found("run", id);
    let (kind, graph, log) = match found {
        Thread::Chat(view) => {
            let part = Part { turn: TurnId(id.of), number: id.number };
            (AssistantKind::Persona, &view.role, Log::Chat(Run { chat: view.chat_id, part, first: 1 }))
        }
        Thread::Task(view) if view.task_id.0 == id.of => (AssistantKind::Flow, &view.flow.name, Log::Task(id)),
        Thread::Task(_) | Thread::Empty(..) | Thread::Nothing(_) => return Err(gone()),
    };
    Ok(Started { thread: thread.to_owned(), kind, graph: graph.clone(), log })
}

/// The last values of a run, once it has ended: what is returned waits for them.
pub(super) async fn values(
    stage: &StreamContext,
    workspace: WorkspaceId,
    started: &Started,
) -> Answer<impl Future<Output = Answer<Value>> + Send + use<>> {
    let (stream, run) = (open(stage, workspace, started, None, None).await?, started.log.id());
    Ok(async move {
        Ok(only_frame(stream).await?.ok_or_else(|| {
            Error::new(Code::UpstreamUnavailable, "the server ends, and the run goes on after its start")
                .detail("run_id", run.to_string())
                .hint("join the run later")
        })?)
    })
}

/// Stops a run that has not ended.
pub(super) async fn stop(
    context: &Context,
    workspace: WorkspaceId,
    log: Log,
    command: CommandId,
    by: &Principal,
) -> Answer<()> {
    match log {
        Log::Chat(run) => {
            let view = context.chats.get(workspace, run.chat).await?;
            if view.turn_id == Some(run.part.turn) {
                context.chats.stop(workspace, run.chat, command, by).await?;
            } else if view.queued.iter().any(|queued| queued.turn_id == run.part.turn) {
                return Err(Error::new(Code::Conflict, "the run waits behind another one")
                    .hint("cancel the one that runs first")
                    .into());
            }
        }
        Log::Task(run) => {
            context.tasks.stop(workspace, TaskId(run.of), command, by).await?;
        }
    }
    Ok(())
}
