//! The answer to a request for events.

use crate::{Cursor, Feeds, Start, Subscription, handover::Handover};
use axum::{body::Body, response::Response};
use bytes::Bytes;
use domain::ActorRef;
use http::{HeaderMap, HeaderValue, header};
use http_body::Frame;
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

/// Answers with the events of `actor` as an event stream: after the request's `Last-Event-ID`, else after `after` (the value
/// of `?after=`), else from `start` on. Whether the client may see them is decided before this is called.
///
/// # Errors
/// Those of [`Feeds::subscribe`].
pub async fn events(
    feeds: &Feeds,
    actor: ActorRef,
    start: Start,
    headers: &HeaderMap,
    after: Option<&str>,
) -> ports::Result<Response> {
    let subscription = feeds.subscribe(actor, Cursor::from_request(headers, after), start).await?;
    let handover = Handover::new(subscription);
    let mut response = answer(Body::new(SseBody(handover.clone())));
    response.extensions_mut().insert(handover);
    Ok(response)
}

/// An answer with this event stream.
pub(crate) fn answer(stream: Body) -> Response {
    let mut response = Response::new(stream);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// An event stream as the body of a response.
#[derive(Debug)]
pub struct SseBody(Handover);

impl From<Subscription> for SseBody {
    fn from(subscription: Subscription) -> Self {
        Self(Handover::new(subscription))
    }
}

impl http_body::Body for SseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.with(|subscription| subscription.poll_next(context)) {
            Some(polled) => polled.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
            None => Poll::Ready(None), // handed over
        }
    }
}
