//! The answer to a request of such a door: the frames of a run, or the one frame of it once it is there.

use super::{Run, Speaker};
use crate::error::{Answer, internal};
use axum::{
    body::{Body, to_bytes},
    response::Response,
};
use bytes::Bytes;
use domain::{ChatEvent, ChatId, Code, Error, Timestamp};
use futures::{StreamExt, future::ready, stream};
use http::HeaderMap;
use protocols::{
    Frame, Projection, Span, after_pauses,
    task_as_turn::{self, TaskAsTurn},
};
use serde_json::Value;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// The longest answer that is waited for, in bytes.
const MAX_ANSWER: usize = 16 << 20;

/// A view that tells outside whether it is over: a stream may end before that.
#[derive(Debug)]
struct Ending {
    view: Box<dyn Projection<Event = ChatEvent>>,
    is_over: Arc<AtomicBool>,
}

impl Projection for Ending {
    type Event = ChatEvent;

    fn name(&self) -> &'static str {
        self.view.name()
    }

    fn take_in(&mut self, number: u64, at: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        self.view.take_in(number, at, event, frames);
        self.is_over.store(self.view.is_over(), Relaxed);
    }

    fn is_over(&self) -> bool {
        self.view.is_over()
    }

    fn ends_with_its_stream(&self) -> bool {
        self.view.ends_with_its_stream()
    }
}

impl Speaker<'_> {
    /// The stream of a run to its end; `tail` is sent behind it.
    pub(crate) async fn streamed(
        &self,
        run: Run,
        projection: Box<dyn Projection<Event = ChatEvent>>,
        tail: &'static str,
    ) -> Answer<Response> {
        let span = Span { fold_from: run.first, first: run.first, to_the_end: true };
        let around = [Bytes::new(), Bytes::from_static(tail.as_bytes())];
        self.stream(run.chat, after_pauses(run.resumed, projection), span, around).await
    }

    /// The stream of a chat, or of a task as one: the frames of a span of its log, with `head` before them. `tail` comes behind the last frame: it tells
    /// clients that the answer is whole, so one that ends before has none.
    pub(crate) async fn stream(
        &self,
        chat: ChatId,
        projection: Box<dyn Projection<Event = ChatEvent>>,
        span: Span,
        [head, tail]: [Bytes; 2],
    ) -> Answer<Response> {
        let (actor, streams, none) = (self.actor(chat), &self.context.base.streams, HeaderMap::new());
        let is_over = Arc::<AtomicBool>::default();
        let projection = Box::new(Ending { view: projection, is_over: is_over.clone() });
        let opened = match task_as_turn::task_of(chat) {
            Some(task) => streams.open_task(actor, Box::new(TaskAsTurn::new(task, projection)), span, &none).await?,
            None => streams.open_projected(actor, projection, span, &none, None).await?,
        };
        let (parts, body) = opened.into_parts();
        let head = stream::iter((!head.is_empty()).then_some(Ok(head)));
        let tail = stream::once(async move { (is_over.load(Relaxed) && !tail.is_empty()).then_some(Ok(tail)) });
        let body = head.chain(body.into_data_stream()).chain(tail.filter_map(ready));
        Ok(Response::from_parts(parts, Body::from_stream(body)))
    }

    /// The one frame of a projection that has no other, once it is there: what is returned waits for it.
    pub(crate) async fn waited(
        &self,
        run: Run,
        projection: Box<dyn Projection<Event = ChatEvent>>,
    ) -> Answer<impl Future<Output = Answer<Value>> + Send + use<>> {
        let stream = self.streamed(run, projection, "").await?;
        Ok(async move {
            Ok(only_frame(stream).await?.ok_or_else(|| {
                Error::new(Code::UpstreamUnavailable, "the server ends, and the turn goes on after its start")
                    .detail("chat_id", run.chat.to_string())
                    .hint("read the chat later")
            })?)
        })
    }
}

/// The data of the one frame of a stream, once it is there; none when the server ends before.
pub(crate) async fn only_frame(stream: Response) -> Answer<Option<Value>> {
    let text = to_bytes(stream.into_body(), MAX_ANSWER).await.map_err(|_| internal())?;
    let text = String::from_utf8_lossy(&text);
    let data = text.lines().find_map(|line| line.strip_prefix("data: "));
    Ok(data.and_then(|data| serde_json::from_str(data).ok()))
}
