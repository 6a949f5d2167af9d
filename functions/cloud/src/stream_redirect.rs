//! Event streams are not here: the public address leads past the API to them.

use async_trait::async_trait;
use axum::response::Response;
use domain::{ActorRef, ChatEvent, TaskEvent, WorkspaceId};
use http::HeaderMap;
use protocols::{Projection, Span};

/// The API's answer to requests for events.
pub(crate) struct StreamRedirect;

#[derive(Debug, thiserror::Error)]
#[error("they are at the public address of this deployment, and not at this one")]
struct NotHere;

#[async_trait]
impl api::Streams for StreamRedirect {
    async fn open(&self, _: ActorRef, _: u64, _: &HeaderMap, _: Option<&str>) -> ports::Result<Response> {
        Err(ports::Error::unavailable("event streams", NotHere))
    }
    async fn open_projected(
        &self,
        _: ActorRef,
        _: Box<dyn Projection<Event = ChatEvent>>,
        _: Span,
        _: &HeaderMap,
        _: Option<&str>,
    ) -> ports::Result<Response> {
        Err(ports::Error::unavailable("event streams", NotHere))
    }
    async fn open_task(
        &self,
        _: ActorRef,
        _: Box<dyn Projection<Event = TaskEvent>>,
        _: Span,
        _: &HeaderMap,
    ) -> ports::Result<Response> {
        Err(ports::Error::unavailable("event streams", NotHere))
    }
    fn are_here(&self) -> bool {
        false
    }
    async fn open_changes(
        &self,
        _: WorkspaceId,
        _: workspace::Access,
        _: Vec<api::Followed>,
        _: &HeaderMap,
        _: Option<&str>,
    ) -> ports::Result<Response> {
        Err(ports::Error::unavailable("event streams", NotHere))
    }
}
