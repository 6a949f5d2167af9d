//! Several event streams in one: the changes of a workspace, and the events of some of its chats and tasks.
//!
//! A browser opens six connections to a server over HTTP/1.1, for all of its tabs together. A page that shows a workspace and several
//! chats needs one of them.
//!
//! - **An event of an actor is a block of its own kind.** `chat_event` and `task_event` have the actor, and the event's `id`, `event` and
//!   `data`. `id:` repeats the cursor of the workspace. So a client goes on with the last `id:`, and per actor with the last number.
//! - **Parts do not wait for each other.** Each is read when the socket has room; between parts there is no order.
//! - **One end for all.** The stream ends when a part ends that would go on elsewhere. The part of a task that has ended goes alone: its last event
//!   says so. No event says it of a chat that is deleted, so the stream ends, and a client that comes back is told which chat is gone.

use crate::{Cursor, Feeds, Start, changes::Changes, respond, subscription::Subscription};
use axum::{body::Body, response::Response};
use bytes::Bytes;
use domain::ActorRef;
use futures::{
    StreamExt,
    future::ready,
    stream::{self, BoxStream, SelectAll},
};
use std::{convert::Infallible, io::Write, sync::Arc};

/// A chat or a task whose events are wanted beside the changes of its workspace.
#[derive(Clone, Copy, Debug)]
pub struct Followed {
    /// The actor.
    pub actor: ActorRef,
    /// The client's cursor.
    pub cursor: Cursor,
    /// The start without one.
    pub start: Start,
}

/// Bytes of one part.
enum Part {
    /// Of the changes of the workspace.
    Changes(Bytes),
    /// Of an actor.
    Events(Name, Bytes),
    /// One part has ended that would go on elsewhere, or without a word.
    End,
}

/// The words for an actor in the blocks of its events.
#[derive(Clone, Debug)]
struct Name {
    event: &'static str,
    key: &'static str,
    id: String,
}

impl Feeds {
    /// Answers with the changes of a workspace and with the events of `followed`, as one event stream. Whether the client may see them is
    /// decided before this is called.
    ///
    /// # Errors
    /// Those of [`Feeds::changes`] and [`Feeds::subscribe`].
    pub async fn merged(
        &self,
        of: Arc<dyn Changes>,
        cursor: Cursor,
        followed: Vec<Followed>,
    ) -> ports::Result<Response> {
        let mut changes = self.watch_changes(of, cursor).await?.boxed();
        // It begins with the cursor, so that every block can have one.
        let opening = changes.next().await.unwrap_or_default();
        let mut at = last_id(&opening).unwrap_or(0);
        let mut parts: SelectAll<BoxStream<'static, Part>> = SelectAll::new();
        parts.push(changes.map(Part::Changes).chain(stream::once(ready(Part::End))).boxed());
        for Followed { actor, cursor, start } in followed {
            let subscription = self.subscribe(actor, cursor, start).await?;
            let goes_alone = matches!(actor, ActorRef::Task { .. });
            parts.extend(Name::of(actor).map(|name| events(name, subscription, goes_alone)));
        }
        let frames = parts
            .take_while(|part| ready(!matches!(part, Part::End)))
            .map(move |part| match part {
                Part::Changes(bytes) => {
                    at = last_id(&bytes).unwrap_or(at);
                    bytes
                }
                Part::Events(name, bytes) => wrapped(&name, at, &bytes),
                Part::End => Bytes::new(),
            })
            .filter(|bytes| ready(!bytes.is_empty()));
        let all = stream::once(ready(opening)).chain(frames).map(Ok::<_, Infallible>);
        Ok(respond::answer(Body::from_stream(all)))
    }
}

impl Name {
    /// None for an actor without events.
    fn of(actor: ActorRef) -> Option<Self> {
        match actor {
            ActorRef::Chat { chat, .. } => Some(Self { event: "chat_event", key: "chat_id", id: chat.to_string() }),
            ActorRef::Task { task, .. } => Some(Self { event: "task_event", key: "task_id", id: task.to_string() }),
            ActorRef::Evaluation { .. } => None,
        }
    }
}

/// The part of an actor; one that `goes_alone` ends no other part when nothing more can come.
fn events(name: Name, subscription: Subscription, goes_alone: bool) -> BoxStream<'static, Part> {
    let state = Some((name, subscription, goes_alone));
    stream::unfold(state, async |state| {
        let (name, mut subscription, goes_alone) = state?;
        match subscription.next().await {
            Some(bytes) => Some((Part::Events(name.clone(), bytes), Some((name, subscription, goes_alone)))),
            None if goes_alone && subscription.is_over() => None,
            None => Some((Part::End, None)),
        }
    })
    .boxed()
}

/// The cursor of the last block in `frames` that has one.
fn last_id(frames: &[u8]) -> Option<u64> {
    let mut ids = frames.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"id: "));
    std::str::from_utf8(ids.next_back()?).ok()?.parse().ok()
}

/// The blocks of an actor as blocks of the merged stream. Comments are left out, since the changes have their own; the hint when to come
/// back stays.
fn wrapped(name: &Name, at: u64, frames: &[u8]) -> Bytes {
    let Name { event: kind, key, id: actor } = name;
    let mut out = Vec::with_capacity(frames.len() * 2);
    let (mut id, mut event, mut data) = (&b""[..], &b""[..], &b""[..]);
    for line in frames.split(|byte| *byte == b'\n') {
        if let Some(text) = line.strip_prefix(b"id: ") {
            id = text;
        } else if let Some(text) = line.strip_prefix(b"event: ") {
            event = text;
        } else if let Some(text) = line.strip_prefix(b"data: ") {
            data = text;
        } else if line.starts_with(b"retry: ") && event.is_empty() {
            out.extend_from_slice(line);
            out.push(b'\n');
        } else if line.is_empty() && !event.is_empty() {
            let (id, event) = (String::from_utf8_lossy(id), String::from_utf8_lossy(event));
            // Writing to memory does not fail. Names of events and ids need no escaping.
            let _ =
                write!(out, "id: {at}\nevent: {kind}\ndata: {{\"{key}\":\"{actor}\",\"id\":{id},\"event\":\"{event}\"");
            if !data.is_empty() {
                out.extend_from_slice(b",\"data\":");
                out.extend_from_slice(data);
            }
            out.extend_from_slice(b"}\n\n");
        }
        if line.is_empty() {
            (id, event, data) = (&[], &[], &[]);
        }
    }
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;
    use std::time::Duration;

    fn text(frames: &[u8]) -> String {
        let name = Name { event: "chat_event", key: "chat_id", id: "c".into() };
        String::from_utf8_lossy(&wrapped(&name, 7, frames)).into_owned()
    }

    #[test]
    fn a_block_of_an_actor_keeps_its_number_and_takes_the_cursor_of_the_workspace() {
        assert_eq!(
            text(b"id: 4\nevent: chunk\ndata: {\"text\":\"a\"}\n\nid: 5\nevent: done\ndata: {}\n\n"),
            "id: 7\nevent: chat_event\ndata: {\"chat_id\":\"c\",\"id\":4,\"event\":\"chunk\",\"data\":{\"text\":\"a\"}}\n\n\
             id: 7\nevent: chat_event\ndata: {\"chat_id\":\"c\",\"id\":5,\"event\":\"done\",\"data\":{}}\n\n"
        );
    }

    #[test]
    fn the_opening_tells_the_cursor_and_silence_tells_nothing() {
        let opening = frame::opening(3, Duration::from_secs(1), None);
        assert_eq!(
            text(&opening),
            "id: 7\nevent: chat_event\ndata: {\"chat_id\":\"c\",\"id\":3,\"event\":\"cursor\"}\n\n"
        );
        assert_eq!(text(&frame::KEEP_ALIVE), "");
        assert_eq!(text(&frame::farewell(Duration::from_secs(2))), "retry: 2000\n");
    }

    #[test]
    fn the_cursor_of_the_workspace_is_that_of_its_last_block() {
        assert_eq!(last_id(b"id: 4\nevent: x\ndata: {}\n\nid: 5\nevent: x\ndata: {\"a\":\"id: 9\"}\n\n"), Some(5));
        assert_eq!(last_id(b": keep-alive\n"), None);
    }
}
