//! Several runs by one request: begun, or stopped.

use super::{
    MOST, OfRun, Thread,
    assistants::meant,
    joins::{one_of, only_interrupts, runs},
    log::{stop, values},
    runs::begun,
    texts,
};
use crate::{
    Context,
    access::{Converse, demand},
    converse::Speaker,
    error::Answer,
    extract::{Json, ListWithFiles, Query, TraceParent, Traced},
    hub::Within,
    ids::Ids,
    rate_limits::admit,
};
use axum::extract::State;
use domain::{CommandId, Error, QueuedMessage, TurnId};
use http::StatusCode;
use identity::Action;
use protocols::{
    fields::text,
    langgraph::{self as wire, RunState, Status},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{collections::BTreeSet, sync::Arc};
use utoipa::IntoParams;

/// The way of a cancellation of several runs.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CancelAll {
    /// `interrupt`: what was done stays.
    #[param(default = "interrupt")]
    action: Option<String>,
}

/// Runs assistants in the background, each in a thread of its own. A run that is refused begins nothing, but those before it in the list go on: the
/// error has their ids as `run_ids`.
#[utoipa::path(post, path = "/langgraph/runs/batch", tag = "langgraph", operation_id = "create_runs", params(TraceParent),
    request_body(content = Value, description = "A list of up to 100 runs, each as in a thread."),
    responses((status = 200, description = "The runs, in this order.", body = Value)))]
pub(crate) async fn create_runs(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    ids: Ids,
    Traced(trace): Traced,
    ListWithFiles(bodies): ListWithFiles<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    if bodies.len() > MOST {
        return Err(Error::invalid("body", format!("a batch has at most {MOST} runs")).hint("send several").into());
    }
    let new = bodies.into_iter().map(|body| wire::Run::read(&in_snake_case(body))).collect::<Result<Vec<_>, _>>()?;
    let speaker = Speaker::within(&context, &within, ids, Traced(trace)).await?;
    for assistant in new.iter().map(|run| run.assistant.as_str()).collect::<BTreeSet<_>>() {
        meant(&speaker, assistant).await?;
    }
    let (mut shown, mut run_ids) = (Vec::new(), Vec::new());
    for (place, run) in new.into_iter().enumerate() {
        let (ids, by, files) = (speaker.ids.nth(place), speaker.by.clone(), speaker.files.clone());
        let speaker = Speaker { ids, by, files, ..speaker };
        let next = async {
            admit(&context, within.caller.user).await?;
            begun(&speaker, None, run).await
        };
        match next.await {
            Ok((started, run)) => {
                run_ids.push(Value::from(started.log.id().to_string()));
                shown.push(run);
            }
            Err(mut refused) => {
                refused.error = refused.error.detail("run_ids", run_ids);
                return Err(refused);
            }
        }
    }
    Ok(axum::Json(shown.into()))
}

/// The SDK for JavaScript sends the options of a batch as its callers write them: `multitaskStrategy`, and `assistantId` beside `assistant_id`.
fn in_snake_case(body: Map<String, Value>) -> Map<String, Value> {
    let renamed = body.into_iter().map(|(name, value)| {
        let letters = name.chars().flat_map(|letter| {
            let is_upper = letter.is_ascii_uppercase();
            is_upper.then_some('_').into_iter().chain([letter.to_ascii_lowercase()])
        });
        (letters.collect(), value)
    });
    renamed.collect()
}

/// Stops runs of a thread, also those that have not begun, one after the other: what was done stays. Those that are over stay as they are.
#[utoipa::path(post, path = "/langgraph/runs/cancel", tag = "langgraph", operation_id = "cancel_runs", params(CancelAll),
    request_body(content = Value, description = "`thread_id` and `run_ids`, of which all but the last one are over with the answer."),
    responses((status = 204, description = "They were told to stop.")))]
pub(crate) async fn cancel_runs(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Query(CancelAll { action }): Query<CancelAll>,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<StatusCode> {
    only_interrupts(action.as_deref())?;
    wire::plain(&body, &["thread_id", "run_ids"])?;
    let missing = |field: &str| Error::invalid(field, "runs are stopped by name").hint("send thread_id and run_ids");
    let thread_id = text(&body, "thread_id")?.ok_or_else(|| missing("thread_id"))?;
    let run_ids = texts(&body, "run_ids")?.filter(|ids| !ids.is_empty()).ok_or_else(|| missing("run_ids"))?;
    if run_ids.len() > MOST {
        return Err(Error::invalid("run_ids", format!("at most {MOST} runs are stopped at once")).into());
    }
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let thread = Thread::find(&context.base, within.workspace, thread_id).await?.there(thread_id)?;
    if matches!(thread, Thread::Task(_)) {
        demand(&within.caller, within.role, Action::Run)?;
    }
    let known = runs(&context.base, within.workspace, &thread).await?;
    let mut open = Vec::new();
    for run_id in run_ids.into_iter().collect::<BTreeSet<_>>() {
        let found = one_of(&context.base, &thread, &known, &OfRun { thread_id: thread_id.to_owned(), run_id }).await?;
        if !found.1.status.is_over() {
            open.push(found);
        }
    }
    // A run can be stopped once those before it are over.
    let queued = match &thread {
        Thread::Chat(view) => &view.queued[..],
        Thread::Task(_) | Thread::Empty(..) | Thread::Nothing(_) => &[],
    };
    open.sort_by_key(|(_, run)| place_in_queue(queued, run));
    if open.len() > 1 {
        speaker.demand_streams("cancel them one by one, and ask for their states")?;
    }
    let last = open.len().saturating_sub(1);
    for (place, (started, run)) in open.iter().enumerate() {
        let command = CommandId(speaker.ids.id(&format!("cancel {}", run.id)));
        let awaited = run.status == Status::Pending;
        stop(&context, within.workspace, started.log, awaited, command, &within.by).await?;
        if place < last {
            values(&context.base, within.workspace, started).await?.await?;
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The number of runs before this one in its thread, as the view of the thread tells. One that waits and that the view does not have, since it came a
/// moment ago or is one of many, is behind all that it has.
fn place_in_queue(queued: &[QueuedMessage], run: &RunState) -> usize {
    if run.status != Status::Pending {
        return 0;
    }
    let place = queued.iter().position(|queued| queued.turn_id == TurnId(run.id.of));
    place.unwrap_or(queued.len()) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::langgraph::runs::pending;
    use domain::Timestamp;
    use protocols::langgraph::RunId;
    use serde_json::json;
    use uuid::Uuid;

    #[test]
    fn the_options_of_a_batch_are_read_as_the_sdks_send_them() {
        let sent = json!({ "assistantId": "a", "assistant_id": "a", "streamMode": "values", "input": { "aB": 1 } });
        let read = json!({ "assistant_id": "a", "stream_mode": "values", "input": { "aB": 1 } });
        let sent = sent.as_object().cloned().unwrap_or_default();
        assert_eq!(Value::Object(in_snake_case(sent)), read);
    }

    #[test]
    fn runs_are_stopped_in_their_order_also_those_that_the_view_leaves_out() {
        let at = Timestamp::default();
        let run = |of: u128| pending(RunId { of: Uuid::from_u128(of), number: 0 }, at);
        let queued = [2, 1].map(|of| QueuedMessage::new(TurnId(Uuid::from_u128(of)), at, "", &[], None));
        let running = RunState { status: Status::Running, ..run(4) };
        let mut runs = [run(3), run(1), running, run(2)];
        runs.sort_by_key(|run| place_in_queue(&queued, run));
        assert_eq!(runs.map(|run| run.id.of.as_u128()), [4, 2, 1, 3]);
    }
}
