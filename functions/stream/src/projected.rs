//! The stream of one actor's log in a protocol of clients: the frames of a [`Projection`].
//!
//! Each watcher folds the log for itself, at the pace of its client: a page of the log is read only when the frames of the one before were
//! taken. Once the log is read, the entries that the bus carries are taken in when they continue it, and are read from the log otherwise.
//!
//! - **Each frame once, in order, and the same after every interruption.** A stream that resumes folds the same log, and sends the frames
//!   after its cursor.
//! - **A cursor never points into an event.** Of several frames that follow from one event only the last has an `id:`. A client that was cut
//!   off between them gets the first ones again, and loses none.
//! - **Memory is bounded.** A watcher holds the projection, the frames of one page at most, and the messages that the bus keeps for it.
//!
//! The opening and the comments between frames have no blank line, so that they are no events, not even to clients that read every
//! block between two blank lines as one.

use crate::{
    Cursor, Feeds, frame,
    metrics::{Metrics, count, uncount},
    options::spread_of,
    pulse::Pulse,
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
    io::Write,
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
        let mut watcher = Watcher {
            actor: actor.into(),
            projection,
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

/// One reader of a projection.
struct Watcher<E> {
    actor: ActorId,
    projection: Box<dyn Projection<Event = E>>,
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
            if self.projection.is_over() {
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
            }
            Err(error) => {
                tracing::warn!(actor = %self.actor, %error, "a stream ends: its log could not be read");
                self.end(self.retry);
            }
        }
    }

    fn receive(&mut self, message: &[u8]) {
        match serde_json::from_slice::<Entry<E>>(message) {
            Ok(entry) if entry.first <= self.next => self.take_in(&entry),
            // Something is missing before it, or it is only a hint that the log has more.
            Ok(_) | Err(_) => self.pulse.behind = true,
        }
    }

    /// Folds the events of an entry that were not taken in yet.
    fn take_in(&mut self, entry: &Entry<E>) {
        let next = self.next;
        for (number, event) in entry.numbered().filter(|(number, _)| *number >= next) {
            if self.projection.is_over() {
                break;
            }
            self.projection.take_in(number, entry.at, event, &mut self.rendered);
            if number >= self.shown_from {
                self.metrics.deliveries.fetch_add(self.rendered.len() as u64, Relaxed);
                write_frames(&mut self.waiting, &self.rendered);
            }
            self.rendered.clear();
        }
        self.next = next.max(entry.next);
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

/// Appends the frames of one event; the last one has its number.
fn write_frames(out: &mut BytesMut, frames: &[Frame]) {
    let mut text = Vec::new();
    for (index, Frame { number, event, data }) in frames.iter().enumerate() {
        // Writing to memory does not fail.
        if index + 1 == frames.len() {
            let _ = writeln!(text, "id: {number}");
        }
        if let Some(event) = event {
            let _ = writeln!(text, "event: {event}");
        }
        // JSON text escapes line ends, so the data is one line.
        let _ = write!(text, "data: {data}\n\n");
    }
    out.extend_from_slice(&text);
}
