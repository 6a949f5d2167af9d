//! Commands, as streams of lines.

use crate::{
    answer::Answer,
    body::{Body, malformed},
    idle::UseGuard,
    machine::Machine,
};
use axum::{
    Json, body,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use domain::{CallId, Code, Error};
use futures::{Stream, StreamExt, stream};
use http::{StatusCode, header};
use ports::{Exec, ExecEvent, Execution, Reservation, Reserve, Result};
use sandbox::wire::{self, BEAT, Failed, LONGEST_WAIT, Line};
use std::convert::Infallible;
use tokio::time::timeout;

pub(crate) async fn exec(State(machine): State<Machine>, Body(command): Body<Exec>) -> Answer<Response> {
    let used = machine.idle().used();
    let execution = machine.commands().exec(machine.options().workspace, &machine.mirror().latest(), command).await?;
    let events = match execution {
        Execution::Begun(events) => events,
        Execution::NotBegun(why) => return Err(Error::new(Code::NotBegun, why).into()),
        Execution::Unknown(why) => return Err(Error::new(Code::OutcomeUnknown, why).into()),
    };
    let body = body::Body::from_stream(lines(events, used));
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

pub(crate) async fn reserve(
    State(machine): State<Machine>,
    Body(mut asked): Body<Reserve>,
) -> Answer<Json<Reservation>> {
    asked.wait = asked.wait.min(LONGEST_WAIT);
    Ok(Json(machine.commands().reserve(machine.options().workspace, &asked).await))
}

/// One line per event, and an empty one when there was none for a while. The machine is in use until the last.
fn lines(
    events: impl Stream<Item = Result<ExecEvent>> + Send + Unpin + 'static,
    used: UseGuard,
) -> impl Stream<Item = std::result::Result<Bytes, Infallible>> {
    stream::unfold((events, used), |(mut events, used)| async move {
        let line = match timeout(BEAT, events.next()).await {
            Ok(None) => return None,
            Ok(Some(Ok(event))) => text(&Line::Event(event)),
            Ok(Some(Err(error))) => text(&Line::Failed(Failed { error: wire::as_domain_error(&error) })),
            Err(_) => String::new(),
        };
        Some((Ok(Bytes::from(line + "\n")), (events, used)))
    })
}

fn text(line: &Line) -> String {
    // Texts and numbers: there is nothing in it that JSON has not.
    serde_json::to_string(line).unwrap_or_default()
}

pub(crate) async fn kill(
    State(machine): State<Machine>,
    Path((_, call)): Path<(String, String)>,
) -> Answer<StatusCode> {
    let call: CallId = call.parse().map_err(malformed)?;
    machine.commands().kill(machine.options().workspace, call).await;
    Ok(StatusCode::NO_CONTENT)
}
