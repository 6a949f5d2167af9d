//! New runs: streamed, waited for, or in the background.

use super::{
    OfThread,
    log::{Log, Started, open, stop, values},
    start::start,
};
use crate::{
    Context,
    access::Converse,
    converse::Speaker,
    error::{Answer, ApiError},
    extract::{JsonWithFiles, Path, TraceParent, Traced},
    hub::Within,
    ids::Ids,
    long_answers::long_answer,
    rate_limits::Paced,
};
use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use domain::{Code, CommandId, Error, Principal, Timestamp, WorkspaceId, text::percent_encoded};
use futures::{StreamExt, stream};
use http::{HeaderValue, header};
use protocols::langgraph::{self as wire, Mode, RunId, RunState, Status};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Stops a run when its client goes before its end.
struct Guard {
    context: Arc<Context>,
    workspace: WorkspaceId,
    by: Principal,
    log: Option<Log>,
}

impl Guard {
    fn of(context: &Arc<Context>, within: &Within<Converse>, started: &Started, is_on: bool) -> Self {
        let log = is_on.then_some(started.log);
        Self { context: context.clone(), workspace: within.workspace, by: within.by.clone(), log }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(log) = self.log.take() else { return };
        let (context, workspace, by) = (self.context.clone(), self.workspace, self.by.clone());
        tokio::spawn(async move {
            let command = CommandId(context.base.clock.id());
            // It may not have begun.
            if let Err(error) = stop(&context, workspace, log, true, command, &by).await {
                tracing::warn!(error = %error.error, "a run goes on although its client is gone");
            }
        });
    }
}

/// Whether the run stops when its client goes.
fn stops_with_client(context: &Context, run: &wire::Run) -> Result<bool, Error> {
    if run.stops_with_client && !context.base.streams.see_clients_go() {
        return Err(Error::new(Code::Unprocessable, "this server does not learn that a client has gone")
            .detail("field", "on_disconnect")
            .hint(
                "send continue: useStream does with reconnectOnMount: true, and submit with onDisconnect: 'continue'",
            ));
    }
    Ok(run.stops_with_client)
}

/// The headers by which a client finds a run again: in these modes, and without modes its last values.
pub(super) fn placed(mut response: Response, started: &Started, modes: Option<&[Mode]>) -> Response {
    let place = format!("/threads/{}/runs/{}", percent_encoded(&started.thread), started.log.id());
    let again = match modes {
        Some(modes) => {
            let modes: Vec<String> = modes.iter().map(|mode| format!("stream_mode={}", mode.name())).collect();
            format!("{place}/stream?{}", modes.join("&"))
        }
        None => format!("{place}/join"),
    };
    for (name, value) in [(header::CONTENT_LOCATION, place), (header::LOCATION, again)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The events of a new run.
async fn streamed(
    context: Arc<Context>,
    within: Within<Converse>,
    (ids, traced): (Ids, Traced),
    thread: Option<String>,
    body: &Map<String, Value>,
) -> Answer<Response> {
    let run = wire::Run::read(body)?;
    let speaker = Speaker::within(&context, &within, ids, traced).await?;
    speaker.demand_streams("create the run in the background, and ask for its state")?;
    let (modes, stops) = (run.modes.clone(), stops_with_client(&context, &run)?);
    let started = start(&speaker, thread, run).await?;
    let guard = Guard::of(&context, &within, &started, stops);
    let response = open(&context.base, within.workspace, &started, Some(modes.clone()), None).await?;
    let (parts, body) = response.into_parts();
    let bytes = stream::unfold(Some((body.into_data_stream(), guard)), async |state| {
        let (mut bytes, mut guard) = state?;
        match bytes.next().await {
            Some(Ok(next)) => Some((Ok(next), Some((bytes, guard)))),
            // The client is there: it is told that this server interrupts the stream, and joins the run elsewhere.
            Some(Err(interrupted)) => {
                guard.log = None;
                Some((Err(interrupted), None))
            }
            None => {
                guard.log = None;
                None
            }
        }
    });
    Ok(placed(Response::from_parts(parts, Body::from_stream(bytes)), &started, Some(&modes)))
}

/// The last values of a new run.
async fn waited(
    context: Arc<Context>,
    within: Within<Converse>,
    (ids, traced): (Ids, Traced),
    thread: Option<String>,
    body: &Map<String, Value>,
) -> Answer<Response> {
    let run = wire::Run::read(body)?;
    let speaker = Speaker::within(&context, &within, ids, traced).await?;
    speaker.demand_streams("create the run in the background, and ask for its state")?;
    let stops = stops_with_client(&context, &run)?;
    let started = start(&speaker, thread, run).await?;
    let guard = Guard::of(&context, &within, &started, stops);
    let values = values(&context.base, within.workspace, &started).await?;
    let whole = async move {
        // All of it, as it stops the run when it is dropped.
        let mut guard = guard;
        let values = values.await;
        guard.log = None;
        values
    };
    Ok(placed(long_answer(whole, ApiError::envelope).await?, &started, None))
}

/// A new run in the background.
async fn created(
    context: &Arc<Context>,
    within: &Within<Converse>,
    (ids, traced): (Ids, Traced),
    thread: Option<String>,
    body: &Map<String, Value>,
) -> Answer<Response> {
    let run = wire::Run::read(body)?;
    let speaker = Speaker::within(context, within, ids, traced).await?;
    let modes = run.modes.clone();
    let (started, run) = begun(&speaker, thread, run).await?;
    Ok(placed(axum::Json(run).into_response(), &started, Some(&modes)))
}

/// Begins a run, and shows it as it is before a worker has it.
pub(super) async fn begun(speaker: &Speaker<'_>, thread: Option<String>, run: wire::Run) -> Answer<(Started, Value)> {
    let started = start(speaker, thread, run).await?;
    let state = pending(started.log.id(), speaker.context.base.clock.now());
    let run = wire::run(&state, &started.thread, &started.kind.id(&started.graph).to_string());
    Ok((started, run))
}

pub(super) fn pending(id: RunId, at: Timestamp) -> RunState {
    RunState { id, status: Status::Pending, created_at: at, updated_at: at }
}

/// Runs an assistant in a thread, and answers with the events of the run: a message (`input`), or the answer to an interrupt (`command.resume`).
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/runs/stream", tag = "langgraph", operation_id = "stream_run",
    params(OfThread, TraceParent),
    request_body(content = Value, description = "As the SDKs send it. A field that cannot be honoured is refused by its name."),
    responses((status = 200, description = "The events of the run.", body = String, content_type = "text/event-stream")))]
pub(crate) async fn stream_run(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Path(OfThread { thread_id }): Path<OfThread>,
    _: Paced,
    ids: Ids,
    traced: Traced,
    JsonWithFiles(body): JsonWithFiles<Map<String, Value>>,
) -> Answer<Response> {
    streamed(context, within, (ids, traced), Some(thread_id), &body).await
}

/// Runs an assistant in a thread, and answers with its last values.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/runs/wait", tag = "langgraph", operation_id = "wait_run",
    params(OfThread, TraceParent), request_body(content = Value, description = "As that of `runs/stream`."),
    responses((status = 200, description = "The values; `__error__` has a failure.", body = Value)))]
pub(crate) async fn wait_run(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Path(OfThread { thread_id }): Path<OfThread>,
    _: Paced,
    ids: Ids,
    traced: Traced,
    JsonWithFiles(body): JsonWithFiles<Map<String, Value>>,
) -> Answer<Response> {
    waited(context, within, (ids, traced), Some(thread_id), &body).await
}

/// Runs an assistant in a thread, in the background.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/runs", tag = "langgraph", operation_id = "create_run",
    params(OfThread, TraceParent), request_body(content = Value, description = "As that of `runs/stream`."),
    responses((status = 200, description = "The run.", body = Value)))]
pub(crate) async fn create_run(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Path(OfThread { thread_id }): Path<OfThread>,
    _: Paced,
    ids: Ids,
    traced: Traced,
    JsonWithFiles(body): JsonWithFiles<Map<String, Value>>,
) -> Answer<Response> {
    created(&context, &within, (ids, traced), Some(thread_id), &body).await
}

/// Runs an assistant in a thread of its own, which is kept, and answers with the events of the run.
#[utoipa::path(post, path = "/langgraph/runs/stream", tag = "langgraph", operation_id = "stream_stateless_run",
    params(TraceParent), request_body(content = Value, description = "As in a thread."),
    responses((status = 200, description = "The events of the run.", body = String, content_type = "text/event-stream")))]
pub(crate) async fn stream_stateless_run(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    _: Paced,
    ids: Ids,
    traced: Traced,
    JsonWithFiles(body): JsonWithFiles<Map<String, Value>>,
) -> Answer<Response> {
    streamed(context, within, (ids, traced), None, &body).await
}

/// Runs an assistant in a thread of its own, and answers with its last values.
#[utoipa::path(post, path = "/langgraph/runs/wait", tag = "langgraph", operation_id = "wait_stateless_run",
    params(TraceParent), request_body(content = Value, description = "As in a thread."),
    responses((status = 200, description = "The values; `__error__` has a failure.", body = Value)))]
pub(crate) async fn wait_stateless_run(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    _: Paced,
    ids: Ids,
    traced: Traced,
    JsonWithFiles(body): JsonWithFiles<Map<String, Value>>,
) -> Answer<Response> {
    waited(context, within, (ids, traced), None, &body).await
}

/// Runs an assistant in a thread of its own, in the background.
#[utoipa::path(post, path = "/langgraph/runs", tag = "langgraph", operation_id = "create_stateless_run",
    params(TraceParent), request_body(content = Value, description = "As in a thread."),
    responses((status = 200, description = "The run.", body = Value)))]
pub(crate) async fn create_stateless_run(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    _: Paced,
    ids: Ids,
    traced: Traced,
    JsonWithFiles(body): JsonWithFiles<Map<String, Value>>,
) -> Answer<Response> {
    created(&context, &within, (ids, traced), None, &body).await
}
