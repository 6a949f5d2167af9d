//! The log of a run: its stream, its last values, its stop.

use super::Thread;
use crate::{
    Context, StreamContext,
    converse::{Run, only_frame, stop_turn},
    error::Answer,
};
use axum::response::Response;
use domain::{ActorRef, Code, CommandId, Error, Principal, TaskId, TurnId, WorkspaceId};
use http::HeaderMap;
use protocols::{
    Part, Span, after_pauses,
    langgraph::{AssistantKind, ChatRun, Mode, RunId, TaskRun},
};
use serde_json::Value;

/// A run, and the log that tells of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Log {
    /// That of a chat.
    Chat(Run),
    /// That of a task.
    /// All pauses before the event with this number have ended.
    Task(RunId, u64),
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
            Self::Task(run, _) => run,
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
        Log::Chat(Run { chat, part, first, resumed }) => {
            // The values have the messages of earlier turns.
            let has_values = modes.as_ref().is_none_or(|modes| modes.contains(&Mode::Values));
            let fold_from = if has_values { 1 } else { first };
            let view = match modes {
                Some(modes) => ChatRun::new(part, thread, graph, modes),
                None => ChatRun::whole(part, thread, graph),
            };
            let span = Span { fold_from, first: fold_from, to_the_end };
            let actor = ActorRef::Chat { workspace, chat };
            let view = after_pauses(resumed, Box::new(view));
            stage.streams.open_projected(actor, view, span, headers, None).await?
        }
        Log::Task(run, resumed) => {
            let view = TaskRun::new(run, thread, graph, modes).after_pauses(resumed);
            let span = Span { fold_from: 1, first: 1, to_the_end };
            let actor = ActorRef::Task { workspace, task: TaskId(run.of) };
            stage.streams.open_task(actor, Box::new(view), span, headers).await?
        }
    })
}

/// The run of this id in a thread, in whose log all pauses before the event `resumed` have ended.
pub(super) fn found(id: RunId, thread: &str, found: &Thread, resumed: u64) -> Result<Started, Error> {
    let gone = || Error::not_found("run", id);
    let (kind, graph, log) = match found {
        Thread::Chat(view) => {
            let part = Part { turn: TurnId(id.of), number: id.number };
            (AssistantKind::Persona, &view.role, Log::Chat(Run { chat: view.chat_id, part, first: 1, resumed }))
        }
        Thread::Task(view) if view.task_id.0 == id.of => (AssistantKind::Flow, &view.flow.name, Log::Task(id, resumed)),
        Thread::Task(_) | Thread::Empty(..) | Thread::Nothing(_) => return Err(gone()),
    };
    Ok(Started { thread: found.spelled(thread), kind, graph: graph.clone(), log })
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

/// Stops a run that has not ended. `awaited`: as far as it is known, the run has not begun.
pub(super) async fn stop(
    context: &Context,
    workspace: WorkspaceId,
    log: Log,
    awaited: bool,
    command: CommandId,
    by: &Principal,
) -> Answer<()> {
    match log {
        Log::Chat(run) => stop_turn(context, workspace, (run.chat, run.part.turn), awaited, command, by).await?,
        Log::Task(run, _) => {
            context.tasks.stop(workspace, TaskId(run.of), command, by).await?;
        }
    }
    Ok(())
}
