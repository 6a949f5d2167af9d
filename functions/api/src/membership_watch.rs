//! Event streams end with the membership of their person, and with the API key that they were asked for with. The right to read is decided when a stream
//! begins, and a stream may last for a quarter of an hour; so both are looked up again once the bus tells of an end. The bus loses messages, so they are also
//! looked up now and then.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use domain::{UserId, WorkspaceId};
use futures::{
    FutureExt, Stream, StreamExt,
    future::{BoxFuture, Shared, WeakShared},
    stream,
};
use http::header;
use parking_lot::Mutex;
use ports::{Bus, Subscription};
use std::{collections::HashMap, fmt::Display, future::Future, sync::Arc, time::Duration};
use uuid::Uuid;

/// The time between two looks where nothing else was set: a removed member sees events for at most this long where the bus lost the message. Each look
/// is a read of the table, and one more for a key, so 10,000 people with open streams cost 83 reads a second.
const EVERY: Duration = Duration::from_secs(2 * 60);

/// Completes with the end of a right.
type End = BoxFuture<'static, ()>;

/// The right that a stream needs for as long as it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamRight {
    /// A member of the workspace.
    pub user: UserId,
    pub workspace: WorkspaceId,
    /// The API key of the request, if it had one.
    pub key: Option<Uuid>,
}

/// The channel of the bus with the ends of memberships of a workspace. A message is the id of the person, or the id of the workspace for all its members.
/// The suffix separates the channel from those of logs: on Momento channels share topics, and a process would receive the streams of others with this one.
fn channel(workspace: WorkspaceId) -> String {
    format!("members/{workspace}/control")
}

/// The channel of the bus with the end of a key. Its one message is the id of the key.
fn channel_of_key(key: Uuid) -> String {
    format!("keys/{key}/control")
}

/// Announces that a membership has ended; with the id of the workspace, that all its memberships have.
pub(crate) async fn tell_end(bus: &dyn Bus, workspace: WorkspaceId, of: impl Display) {
    tell(bus, &channel(workspace), of).await;
}

/// Announces that a key is void.
pub(crate) async fn tell_revoked(bus: &dyn Bus, key: Uuid) {
    tell(bus, &channel_of_key(key), key).await;
}

async fn tell(bus: &dyn Bus, channel: &str, of: impl Display) {
    if let Err(error) = bus.publish(channel, of.to_string().into()).await {
        tracing::warn!(channel, error = %error.with_causes(), "streams hear of the end of a right by a later look");
    }
}

/// Subscribes to what is told about a right.
async fn ends(bus: Arc<dyn Bus>, right: StreamRight) -> Subscription {
    let of_members = subscribed(&*bus, &channel(right.workspace)).await;
    match right.key {
        Some(key) => stream::select(of_members, subscribed(&*bus, &channel_of_key(key)).await).boxed(),
        None => of_members,
    }
}

async fn subscribed(bus: &dyn Bus, channel: &str) -> Subscription {
    bus.subscribe(channel).await.unwrap_or_else(|error| {
        tracing::warn!(channel, error = %error.with_causes(), "the end of a right is looked for in the table alone");
        stream::pending().boxed()
    })
}

/// Ends with the next message that may be about this right.
async fn wait_for_message(messages: &mut (impl Stream<Item = Bytes> + Unpin), right: StreamRight) {
    let key = right.key.map(|key| key.to_string());
    let about: Vec<String> = [right.user.to_string(), right.workspace.to_string()].into_iter().chain(key).collect();
    while let Some(message) = messages.next().await {
        // An empty message says that some may be lost.
        if message.is_empty() || about.iter().any(|id| *message == *id.as_bytes()) {
            return;
        }
    }
    // The bus is gone.
    std::future::pending().await
}

/// The looks of this process. All event streams with one right share them, so a program that holds thousands of streams for one person costs one
/// read per interval. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Looks {
    every: Duration,
    running: Arc<Mutex<HashMap<StreamRight, WeakShared<End>>>>,
}

impl Default for Looks {
    fn default() -> Self {
        Self::every(EVERY)
    }
}

impl Looks {
    /// With this time between two looks.
    pub(crate) fn every(every: Duration) -> Self {
        Self { every, running: Arc::default() }
    }

    /// The response as it is, but for an event stream: that ends once a look finds that the right is gone. A client that comes back is refused.
    pub(crate) fn while_allowed<F>(
        &self,
        response: Response,
        right: StreamRight,
        bus: Arc<dyn Bus>,
        is_allowed: impl Fn() -> F + Send + 'static,
    ) -> Response
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let kind = response.headers().get(header::CONTENT_TYPE);
        if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            return response;
        }
        let end = self.end_of(right, ends(bus, right), is_allowed);
        response.map(|body| Body::from_stream(until(body.into_data_stream(), end)))
    }

    /// The end of a right, by the looks that run for it already if there are some.
    fn end_of<F>(
        &self,
        right: StreamRight,
        ends: impl Future<Output = Subscription> + Send + 'static,
        is_allowed: impl Fn() -> F + Send + 'static,
    ) -> Shared<End>
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let mut running = self.running.lock();
        // Looks that have found the end say nothing about a member who came back.
        let found = running.get(&right).and_then(WeakShared::upgrade).filter(|end| end.peek().is_none());
        if let Some(end) = found {
            return end;
        }
        let every = self.every;
        let looks = async move {
            let mut ends = ends.await.fuse();
            // The first look is at once: an end before the subscription is told to nobody.
            loop {
                let look = is_allowed();
                if !look.await {
                    return;
                }
                tokio::select! {
                    () = tokio::time::sleep(every) => {}
                    () = wait_for_message(&mut ends, right) => {}
                }
            }
        };
        let end = looks.boxed().shared();
        if running.len() == running.capacity() {
            running.retain(|_, end| end.upgrade().is_some());
        }
        running.extend(end.downgrade().map(|end| (right, end)));
        end
    }
}

/// The pieces of a stream until the end of a right.
fn until<S>(pieces: S, end: Shared<End>) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static
where
    S: Stream<Item = Result<Bytes, axum::Error>> + Send + 'static,
{
    pieces.take_until(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        future::{Ready, ready},
        sync::atomic::{AtomicUsize, Ordering},
    };
    use tokio::time::Instant;

    const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));
    const ANN: StreamRight = StreamRight { user: UserId(Uuid::from_u128(2)), workspace: WORKSPACE, key: None };
    const BOB: StreamRight = StreamRight { user: UserId(Uuid::from_u128(3)), ..ANN };

    /// A look that finds a member this many times.
    fn member_for(times: usize, looks: &Arc<AtomicUsize>) -> impl Fn() -> Ready<bool> + Send + 'static + use<> {
        let looks = looks.clone();
        move || ready(looks.fetch_add(1, Ordering::SeqCst) < times)
    }

    /// A bus that tells nothing.
    fn silence() -> Ready<Subscription> {
        ready(stream::pending().boxed())
    }

    async fn seen(end: Shared<End>) -> usize {
        let pieces = stream::iter([Ok(Bytes::from_static(b"a"))]).chain(stream::pending());
        until(pieces, end).count().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_lasts_for_as_long_as_each_look_finds_a_member() {
        let (begun, counted) = (Instant::now(), Arc::default());
        let end = Looks::default().end_of(ANN, silence(), member_for(2, &counted));
        assert_eq!((seen(end).await, counted.load(Ordering::SeqCst), begun.elapsed()), (1, 3, 2 * EVERY));
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_about_a_person_is_a_look_at_once_and_one_about_others_is_none() {
        let at_once =
            [ANN.user.to_string(), WORKSPACE.to_string(), String::new()].map(|told| (told, 0, Duration::ZERO));
        for (message, pieces, waits) in at_once.into_iter().chain([(BOB.user.to_string(), 1, EVERY)]) {
            let (begun, counted) = (Instant::now(), Arc::default());
            let messages: Subscription = stream::iter([Bytes::from(message.clone())]).boxed();
            let end = Looks::default().end_of(ANN, ready(messages), member_for(1, &counted));
            assert_eq!((seen(end).await, begun.elapsed()), (pieces, waits), "{message}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_streams_of_a_person_share_looks_which_begin_anew_for_one_who_comes_back() {
        let (looks, begun) = (Looks::default(), Instant::now());
        let [first, other, again] = [(); 3].map(|()| Arc::default());
        let of_whom = |of: StreamRight| member_for(1, if of == ANN { &first } else { &other });
        let ends = [ANN, ANN, BOB].map(|of| looks.end_of(of, silence(), of_whom(of)));
        let kept = ends[0].clone();
        assert_eq!(futures::future::join_all(ends.map(seen)).await, [1, 1, 1]);
        let counted = [&first, &other].map(|looks| looks.load(Ordering::SeqCst));
        assert_eq!((counted, begun.elapsed()), ([2, 2], EVERY), "each look of a person is one for all streams");
        assert!(kept.peek().is_some());
        let end = looks.end_of(ANN, silence(), member_for(1, &again));
        assert_eq!((seen(end).await, begun.elapsed()), (1, 2 * EVERY));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_ends_by_itself_waits_for_no_look_and_leaves_none_behind() {
        let (looks, begun) = (Looks::default(), Instant::now());
        let end = looks.end_of(ANN, silence(), || ready(true));
        let pieces = stream::iter([Ok(Bytes::from_static(b"a"))]);
        assert_eq!((until(pieces, end).count().await, begun.elapsed()), (1, Duration::ZERO));
        assert!(looks.running.lock().values().all(|end| end.upgrade().is_none()));
    }
}
