//! The events of chats and tasks: who may watch, and from where on. The stream itself is of another function.

use crate::{
    Context,
    access::{Access, Read},
    chats::InChat,
    error::Answer,
    extract::Query,
    keys::NO_STORE,
    tasks::InTask,
};
use actor::ActorId;
use async_trait::async_trait;
use axum::{extract::State, response::Response};
use domain::{Error, Timestamp};
use http::{HeaderMap, HeaderValue, header};
use identity::{Means, Stream};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Where event streams come from: `stream::events` over its feeds, in the hub.
#[async_trait]
pub trait Streams: Send + Sync {
    /// Answers with the events of `actor`: after the request's `Last-Event-ID`, else after `after` (the value of `?after=`),
    /// else those numbered `first` and above. A cursor that is unknown or too old is no error but a `reset` event.
    async fn open(
        &self,
        actor: &ActorId,
        first: u64,
        headers: &HeaderMap,
        after: Option<&str>,
    ) -> ports::Result<Response>;
}

/// How to watch.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Watch {
    /// Only events after the one with this number; 0 for all of them. `Last-Event-ID` comes before it. Without either, the
    /// stream of a chat begins at the start of the running turn, or live when none runs; that of a task at its beginning.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
    /// The wire format: `native`.
    #[param(default = "native")]
    protocol: Option<String>,
    /// A ticket to this stream, of `POST …/stream-tickets`, instead of a token.
    ticket: Option<String>,
}

/// The events of a chat as Server-Sent Events: `id:` is the event's number, `event:` its type, `data:` one JSON object.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/events", tag = "chats",
    params(InChat, Watch, ("Last-Event-ID" = Option<u64>, Header, description = "As `after`; browsers send it.")),
    responses((status = 200, description = "Events, until the client goes.", body = String,
        content_type = "text/event-stream",
        example = json!("id: 4\nevent: chunk\ndata: {\"text\":\"Hello\",\"message_id\":\"019bf537-…\"}\n\n"))))]
pub(crate) async fn watch_chat(
    State(context): State<Arc<Context>>,
    Access { at, caller, .. }: Access<Read, InChat>,
    Query(watch): Query<Watch>,
    headers: HeaderMap,
) -> Answer<Response> {
    check_protocol(watch.protocol)?;
    let actor = chat::actor_id(at.workspace_id, at.chat_id);
    // Where the log ends comes first: what a turn that begins after the view was read adds is above that.
    let next = actor::next_number(&*context.table, &actor).await?;
    let view = context.chats.get(at.workspace_id, at.chat_id).await?;
    let first = view.turn_seq.unwrap_or(next);
    let opened = context.streams.open(&actor, first, &headers, watch.after.as_deref()).await?;
    let ticket = || {
        context.auth.ticket_office().issue(caller.user, at.workspace_id, Stream::Chat(at.chat_id), context.clock.now())
    };
    Ok(with_ticket(opened, watch.ticket.filter(|_| caller.means == Means::Ticket), ticket)?)
}

/// The events of a task as Server-Sent Events, from its beginning when no cursor is given. The last one is `done` or
/// `stopped`; of a clone or subtask that went on into a merge above it is `went_up`. Clones and subtasks are tasks with events
/// of their own; so are the chats of agents (`agent_asked` names them).
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/events", tag = "tasks",
    params(InTask, Watch, ("Last-Event-ID" = Option<u64>, Header, description = "As `after`; browsers send it.")),
    responses((status = 200, description = "Events, until the client goes.", body = String,
        content_type = "text/event-stream",
        example = json!("id: 3\nevent: node_started\ndata: {\"node\":\"draft\",\"attempt\":1}\n\n"))))]
pub(crate) async fn watch_task(
    State(context): State<Arc<Context>>,
    Access { at, caller, .. }: Access<Read, InTask>,
    Query(watch): Query<Watch>,
    headers: HeaderMap,
) -> Answer<Response> {
    check_protocol(watch.protocol)?;
    context.tasks.get(at.workspace_id, at.task_id).await?;
    let actor = flow::machine::actor_id(at.workspace_id, at.task_id);
    let opened = context.streams.open(&actor, 1, &headers, watch.after.as_deref()).await?;
    let ticket = || {
        context.auth.ticket_office().issue(caller.user, at.workspace_id, Stream::Task(at.task_id), context.clock.now())
    };
    Ok(with_ticket(opened, watch.ticket.filter(|_| caller.means == Means::Ticket), ticket)?)
}

/// A stream that is held elsewhere is an answer with its address. Clients do not take their token along to another one, so the
/// address gets a ticket: the one that the client came with, or a new one.
fn with_ticket(
    mut opened: Response,
    given: Option<String>,
    issue: impl FnOnce() -> Result<(String, Timestamp), Error>,
) -> Result<Response, Error> {
    if !opened.status().is_redirection() {
        return Ok(opened);
    }
    let Some(place) = opened.headers().get(header::LOCATION).and_then(|place| place.to_str().ok()) else {
        return Ok(opened);
    };
    let ticket = match given {
        Some(given) => given,
        None => issue()?.0,
    };
    let mark = if place.contains('?') { '&' } else { '?' };
    let place = HeaderValue::try_from(format!("{place}{mark}ticket={ticket}"));
    let place = place.map_err(|_| Error::invalid("ticket", "this is no ticket"))?;
    opened.headers_mut().insert(header::LOCATION, place);
    let (name, value) = NO_STORE;
    opened.headers_mut().insert(name, value);
    Ok(opened)
}

fn check_protocol(wanted: Option<String>) -> Result<(), Error> {
    let Some(protocol) = wanted.filter(|protocol| protocol != "native") else { return Ok(()) };
    let protocol: String = protocol.chars().take(64).collect();
    let error = Error::invalid("protocol", format!("{protocol:?} is not a wire format that is spoken here"));
    Err(error.hint("supported: native"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;
    use http::StatusCode;

    #[test]
    fn who_is_sent_elsewhere_takes_a_ticket_along() {
        let at = Timestamp::from_millis(0);
        let sent = |place: &'static str, given: Option<&str>| {
            let elsewhere = (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, place)]).into_response();
            let told =
                with_ticket(elsewhere, given.map(str::to_owned), || Ok(("bst_new".into(), at))).unwrap_or_default();
            told.headers().get(header::LOCATION).and_then(|place| place.to_str().ok()).map(str::to_owned)
        };
        assert_eq!(sent("https://s/events?after=0", None).as_deref(), Some("https://s/events?after=0&ticket=bst_new"));
        assert_eq!(sent("/events", Some("bst_own")).as_deref(), Some("/events?ticket=bst_own"));
        let here = with_ticket(StatusCode::OK.into_response(), None, || Err(Error::invalid("x", "not asked for")));
        assert!(here.is_ok_and(|here| here.headers().is_empty()));
    }
}
