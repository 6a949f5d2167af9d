//! The stream of one actor's log in a protocol of clients: the frames of a [`Projection`].
//!
//! A watcher reads the log for itself, at the pace of its client: a page of the log is read only when the frames of the one before were
//! taken. Once the log is read, it joins the others of its kind (`rendering.rs`): the entries that the bus carries are taken in once for all of them
//! when they continue the log, and are read from the log otherwise. The answer to a POST cannot be resumed, so it folds for itself to its end.
//!
//! - **Each frame once, in order, and the same after every interruption.** A stream that resumes folds the same log, and sends the frames
//!   after its cursor.
//! - **A cursor never points into an event.** Of several frames that follow from one event only the last has an `id:`. A client that was cut
//!   off between them gets the first ones again, and loses none.
//! - **Memory is bounded.** A watcher holds the projection or its share of one, the frames of one page at most, and the messages that the bus keeps
//!   for it.
//!
//! The opening and the comments between frames have no blank line, so that they are no events, not even to clients that read every
//! block between two blank lines as one.

use crate::{
    Cursor, Feeds, frame,
    metrics::{Metrics, count, uncount},
    options::spread_of,
    pulse::Pulse,
    rendering::{Joined, Rendering, Taken, Written},
    respond,
    subscription::{RETURN_WITHIN_MS, SILENT_BEATS},
};
use actor::{
    ActorId, Entry,
    log::{next_number, read_after},
};
use axum::{body::Body, response::Response};
use bytes::{Bytes, BytesMut};
use domain::ActorRef;
use doors::{Frame, Projection, Span};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use ports::{Bus, Table};
use serde::de::DeserializeOwned;
use std::{
    convert::Infallible,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Bus messages taken at once, so that they leave in one write.
const BATCH: usize = 64;
/// Entries read at once. The table ends a page at 1 MiB.
const PAGE: usize = 64;

impl Feeds {
    /// Answers with the frames of `projection` over the log of `actor`. Whether the client may see them is decided before this is called.
    /// The stream ends when the projection is over, when the server shuts down, and when its client is gone.
    ///
    /// A cursor that is not known here counts as none: the frames from `span.first` on are sent.
    ///
    /// # Errors
    /// When the table does not answer. The bus is not needed: without it the stream looks at the log at every beat.
    pub async fn projected<E: DeserializeOwned + Send + Sync + 'static>(
        &self,
        actor: ActorRef,
        projection: Box<dyn Projection<Event = E>>,
        span: Span,
        cursor: Cursor,
    ) -> ports::Result<Response> {
        let options = self.options();
        let mut beats = interval(options.beat());
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beats.tick().await; // the first one is at once
        let metrics = self.metrics().clone();
        count(&metrics.subscriptions);
        let serial = count(&metrics.subscribed);
        let mut pulse = Pulse::default();
        pulse.behind = true;
        let actor = ActorId::from(actor);
        let rendering = (!span.to_the_end).then(|| self.renderings().of(actor.as_str(), &projection));
        let mut watcher = Watcher {
            actor,
            view: View::Own(Some(projection)),
            rendering,
            joins_from: 0,
            tries: 0,
            table: self.table().clone(),
            bus: self.bus().clone(),
            messages: stream::pending().boxed(),
            next: span.fold_from.max(1),
            shown_from: span.first,
            waiting: BytesMut::new(),
            rendered: Vec::new(),
            beats,
            pulse,
            silent_beats: 0,
            beats_left: (!span.to_the_end).then(|| options.life_in_beats(serial)),
            ended: false,
            serial,
            retry: options.retry,
            chunk: options.chunk_bytes,
            shutdown: self.shutdown().clone(),
            metrics,
        };
        // First the bus, then the log: an event published in between arrives twice, and none is missed.
        watcher.listen().await;
        let next = next_number(&*watcher.table, &watcher.actor).await?;
        match cursor {
            Cursor::After(after) if after < next => watcher.shown_from = after + 1,
            Cursor::After(_) | Cursor::Unknown => _ = count(&watcher.metrics.resets),
            Cursor::None => {}
        }
        watcher.waiting.extend_from_slice(&frame::prelude(watcher.retry));
        let bytes = stream::unfold(watcher, async |mut watcher| {
            let bytes = watcher.next().await?;
            Some((Ok::<_, Infallible>(bytes), watcher))
        });
        Ok(respond::answer(Body::from_stream(bytes)))
    }
}

/// The fold of a watcher.
enum View<E> {
    /// Its own; none while it is tried to join the others.
    Own(Option<Box<dyn Projection<Event = E>>>),
    /// That of all who have joined.
    Joined(Joined<E>),
}

/// One reader of a projection.
struct Watcher<E> {
    actor: ActorId,
    view: View<E>,
    /// None for a stream that folds for itself to its end.
    rendering: Option<Arc<Rendering<E>>>,
    /// The number of the event before which it does not try to join, and how often it has tried.
    joins_from: u64,
    tries: u32,
    table: Arc<dyn Table>,
    bus: Arc<dyn Bus>,
    messages: BoxStream<'static, Vec<Bytes>>,
    /// The number of the event that the projection takes in next.
    next: u64,
    /// Frames of events before this number are not sent.
    shown_from: u64,
    /// Bytes that the client has not taken yet.
    waiting: BytesMut,
    /// The frames of one event; kept for its memory.
    rendered: Vec<Frame>,
    beats: Interval,
    pulse: Pulse,
    silent_beats: u8,
    /// None when it lasts until the projection is over.
    beats_left: Option<u32>,
    ended: bool,
    serial: u64,
    retry: Duration,
    chunk: usize,
    shutdown: CancellationToken,
    metrics: Arc<Metrics>,
}

impl<E: DeserializeOwned + Send + Sync + 'static> Watcher<E> {
    async fn listen(&mut self) {
        match self.bus.subscribe(self.actor.as_str()).await {
            Ok(messages) => {
                // The empty batch tells the end of the subscription from a stream that is pending.
                self.messages = messages.ready_chunks(BATCH).chain(stream::once(async { Vec::new() })).boxed();
                self.pulse.deaf = false;
            }
            Err(error) => {
                tracing::warn!(actor = %self.actor, %error, "the bus is not there: a watcher is served from the log");
                self.pulse.deaf = true;
            }
        }
    }

    /// The next bytes; none once the stream has ended.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.waiting.is_empty() {
                self.silent_beats = 0;
                let taken = self.waiting.len().min(self.chunk);
                self.metrics.bytes.fetch_add(taken as u64, Relaxed);
                return Some(self.waiting.split_to(taken).freeze());
            }
            if self.ended {
                return None;
            }
            if matches!(&self.view, View::Own(Some(projection)) if projection.is_over()) {
                self.ended = true;
                continue;
            }
            if self.pulse.behind {
                self.read().await;
                continue;
            }
            tokio::select! {
                batch = self.messages.next() => match batch {
                    Some(batch) if !batch.is_empty() => {
                        self.pulse.heard();
                        batch.iter().for_each(|message| self.receive(message));
                    }
                    // The bus has ended the subscription.
                    Some(_) | None => {
                        self.pulse.deaf = true;
                        self.messages = stream::pending().boxed();
                    }
                },
                _ = self.beats.tick() => self.beat().await,
                () = self.shutdown.cancelled() => {
                    let spread_ms = spread_of(self.serial) % RETURN_WITHIN_MS;
                    self.end(Duration::from_millis(500 + spread_ms));
                }
            }
        }
    }

    /// Reads a page of the log.
    async fn read(&mut self) {
        match read_after::<E>(&*self.table, &self.actor, self.next - 1, PAGE).await {
            Ok(page) => {
                page.entries.iter().for_each(|entry| self.take_in(entry));
                self.pulse.behind = page.more;
                self.join();
            }
            Err(error) => {
                tracing::warn!(actor = %self.actor, %error, "a stream ends: its log could not be read");
                self.end(self.retry);
            }
        }
    }

    /// Joins the others of its kind, once it is where they are.
    fn join(&mut self) {
        let (View::Own(own), Some(rendering)) = (&mut self.view, &self.rendering) else { return };
        if self.pulse.behind || self.next < self.shown_from.max(self.joins_from) || !rendering.is_at(self.next) {
            return;
        }
        match own.take_if(|own| !own.is_over()).map(|own| rendering.join(own, self.next)) {
            Some(Ok(joined)) => self.view = View::Joined(joined),
            // To compare two states takes time: the tries become rarer.
            Some(Err(projection)) => {
                *own = Some(projection);
                self.joins_from = self.next + (1 << self.tries.min(10));
                self.tries += 1;
            }
            None => {}
        }
    }

    fn receive(&mut self, message: &Bytes) {
        let entry = match &self.view {
            View::Own(_) => serde_json::from_slice::<Entry<E>>(message).ok().map(Arc::new),
            View::Joined(joined) => {
                let (entry, taken) = (joined.read(message), joined.take(self.next));
                self.send(taken);
                entry
            }
        };
        match entry {
            Some(entry) if entry.first <= self.next => {
                self.take_in(&entry);
                self.join();
            }
            // Something is missing before it, or it is only a hint that the log has more.
            Some(_) | None => self.pulse.behind = true,
        }
    }

    /// Takes in the events of an entry that were not taken in yet.
    fn take_in(&mut self, entry: &Entry<E>) {
        let own = match &mut self.view {
            View::Own(own) => own,
            View::Joined(joined) => {
                let taken = joined.take_in(entry, self.next);
                return self.send(taken);
            }
        };
        let Some(projection) = own else { return };
        let next = self.next;
        for (number, event) in entry.numbered().filter(|(number, _)| *number >= next) {
            if projection.is_over() {
                break;
            }
            projection.take_in(number, entry.at, event, &mut self.rendered);
            if number >= self.shown_from && !self.rendered.is_empty() {
                self.metrics.deliveries.fetch_add(self.rendered.len() as u64, Relaxed);
                self.waiting.extend_from_slice(&Written::new(number, &self.rendered).bytes);
            }
            self.rendered.clear();
        }
        self.next = next.max(entry.next);
    }

    /// Sends frames that all have; none when this watcher has fallen behind them.
    fn send(&mut self, taken: Option<Taken>) {
        let Some(Taken { written, next, is_over }) = taken else {
            tracing::debug!(actor = %self.actor, "a watcher is too slow for the others: its client comes back");
            return self.end(self.retry);
        };
        for Written { frames, bytes, .. } in written {
            self.metrics.deliveries.fetch_add(frames, Relaxed);
            self.waiting.extend_from_slice(&bytes);
        }
        self.next = next;
        self.ended |= is_over;
    }

    async fn beat(&mut self) {
        if let Some(left) = &mut self.beats_left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                return self.end(self.retry);
            }
        }
        if self.pulse.deaf {
            self.listen().await;
            self.pulse.behind = true;
        }
        if self.pulse.check_is_due() {
            self.pulse.behind = true;
        }
        self.silent_beats += 1;
        if self.silent_beats >= SILENT_BEATS {
            self.waiting.extend_from_slice(&frame::KEEP_ALIVE);
        }
    }

    fn end(&mut self, retry: Duration) {
        self.waiting.extend_from_slice(&frame::farewell(retry));
        self.ended = true;
    }
}

impl<E> Drop for Watcher<E> {
    fn drop(&mut self) {
        uncount(&self.metrics.subscriptions);
    }
}
