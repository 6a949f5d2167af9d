//! The event streams of threads and turns, which resume by `Last-Event-ID`.

use super::{InThread, InTurn, caller::Hub};
use crate::{
    StreamContext,
    access::Read,
    error::Answer,
    extract::{Path, Query},
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use chat::ThreadReader;
use domain::{ActorRef, ChatEvent, Timestamp};
use http::{HeaderMap, StatusCode};
use protocols::{Span, after_pauses, hub::Frames};
use serde::Deserialize;
use std::{ops::ControlFlow, sync::Arc};
use utoipa::IntoParams;

/// From where on to watch.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct From {
    /// Only events after the one with this `id:`; `Last-Event-ID` comes before it. Without either, all events are sent.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
}

impl StreamContext {
    fn threads(&self) -> ThreadReader {
        ThreadReader::new(self.table.clone(), self.chats.clone())
    }
}

/// The events of all turns of a thread, those that were and those to come. It ends when the thread is deleted.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/events", tag = "hub",
    params(InThread, From, ("Last-Event-ID" = Option<u64>, Header, description = "As `after`; browsers send it.")),
    responses((status = 200, description = "Events, until the client goes.", body = String, content_type = "text/event-stream",
        example = json!("id: 4\nevent: message_delta\ndata: {\"delta\":\"Hello\",\"turnId\":\"019bf537-…\",\"seq\":4}\n\n"))))]
pub(crate) async fn watch_thread(
    State(context): State<Arc<StreamContext>>,
    Hub { within, .. }: Hub<Read>,
    Path(at): Path<InThread>,
    Query(From { after }): Query<From>,
    headers: HeaderMap,
) -> Answer<Response> {
    context.threads().get(within.workspace, at.thread_id).await?;
    let actor = ActorRef::Chat { workspace: within.workspace, chat: at.thread_id };
    let frames = Box::new(Frames::of_thread(at.thread_id));
    let span = Span { fold_from: 1, first: 1, to_the_end: false };
    Ok(context.streams.open_projected(actor, frames, span, &headers, after.as_deref()).await?)
}

/// The events of one turn, to its last one. A stream that ends before it, because the server stops or it was open for long, breaks off where
/// the server can do that. 204 when the turn has ended and the client has its last event: `EventSource` then stops connecting.
#[utoipa::path(get, path = "/v1/turns/{turn_id}/events", tag = "hub",
    params(InTurn, From, ("Last-Event-ID" = Option<u64>, Header, description = "As `after`; browsers send it.")),
    responses((status = 204, description = "The turn has ended, and the client has its last event."),
        (status = 200, description = "Events, to the last one.", body = String, content_type = "text/event-stream",
        example = json!("id: 4\nevent: message_delta\ndata: {\"delta\":\"Hello\",\"turnId\":\"019bf537-…\",\"seq\":4}\n\n"))))]
pub(crate) async fn watch_turn(
    State(context): State<Arc<StreamContext>>,
    Hub { within, .. }: Hub<Read>,
    Path(InTurn { turn_id }): Path<InTurn>,
    Query(From { after }): Query<From>,
    headers: HeaderMap,
) -> Answer<Response> {
    let threads = context.threads();
    let turn = threads.turn(within.workspace, turn_id).await?;
    // Clients stop reading at a pause, and the turn may have gone on since.
    let (mut end, mut resumed) = (None, 0);
    let take_in = |number: u64, _: Timestamp, event: &ChatEvent| match event {
        ChatEvent::Unpaused { .. } => {
            resumed = number;
            ControlFlow::Continue(())
        }
        ChatEvent::Done { turn_id: ended, .. } | ChatEvent::Stopped { turn_id: ended, .. } if *ended == turn_id => {
            end = Some(number);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    threads.log_until(within.workspace, turn.thread_id, turn.first, take_in).await?;
    let cursor = crate::events::cursor(&headers, after.as_deref());
    if cursor.zip(end).is_some_and(|(after, end)| after >= end) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let actor = ActorRef::Chat { workspace: within.workspace, chat: turn.thread_id };
    let frames = after_pauses(resumed, Box::new(Frames::of_turn(turn.thread_id, turn_id)));
    let span = Span { fold_from: turn.first, first: turn.first, to_the_end: false };
    Ok(context.streams.open_projected(actor, frames, span, &headers, after.as_deref()).await?)
}
