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
//! - **Clients tell an end from an interruption.** Where they take the end of the stream for that of what it shows, a stream that is interrupted breaks off.
//! - **Memory is bounded.** A watcher holds the projection or its share of one, 1 MiB of frames and those of one entry more, and the messages that the
//!   bus keeps for it. The frames of an entry may be much longer than the entry: some have the whole state of a thread.
//!
//! The opening and the comments between frames have no blank line, so that they are no events, not even to clients that read every
//! block between two blank lines as one.

use crate::{
    Cursor, Feeds, frame,
    metrics::{Metrics, count},
    rendering::{JoinedWatcher, RenderedFrames, Rendering, TakenFrames},
    respond,
    wakeups::{Wakeup, Wakeups},
};
use actor::{
    ActorId, Entry,
    log::{next_number, read_after},
};
use axum::{body::Body, response::Response};
use bytes::{Bytes, BytesMut};
use domain::ActorRef;
use futures::stream;
use ports::Table;
use protocols::{Frame, Projection, Span};
use serde::de::DeserializeOwned;
use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

/// Entries read at once. The table ends a page at 1 MiB.
const PAGE: usize = 64;
/// With so many bytes that the client has not taken, no further entry is taken in. The log has it.
const FULL: usize = 1024 * 1024;

impl Feeds {
    /// Answers with the frames of `projection` over the log of `actor`. Whether the client may see them is decided before this is called.
    /// The stream ends when the projection is over, when the server shuts down, after its longest life, and when its client is gone. One that
    /// [ends with its stream](Projection::ends_with_its_stream) breaks off where it ends before it is over.
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
        let actor = ActorId::from(actor);
        let mut wakeups = self.wakeups(actor.as_str().to_owned(), span.to_the_end).await;
        wakeups.schedule.behind = true;
        let rendering = (!span.to_the_end).then(|| self.renderings().of(actor.as_str(), &projection));
        let breaks_off = options.may_break_off && projection.ends_with_its_stream();
        let mut watcher = Watcher {
            actor,
            view: View::Own(Some(projection)),
            rendering,
            joins_from: 0,
            tries: 0,
            table: self.table().clone(),
            wakeups,
            next: span.fold_from.max(1),
            shown_from: span.first,
            waiting: BytesMut::new(),
            rendered: Vec::new(),
            ended: false,
            interrupted: false,
            breaks_off,
            retry: options.retry,
            chunk: options.chunk_bytes,
            metrics: self.metrics().clone(),
        };
        // First the bus, then the log: an event published in between arrives twice, and none is missed.
        watcher.wakeups.listen().await;
        let next = next_number(&*watcher.table, &watcher.actor).await?;
        match cursor {
            Cursor::After(after) if after < next => watcher.shown_from = after + 1,
            Cursor::After(_) | Cursor::Unknown => _ = count(&watcher.metrics.resets),
            Cursor::None => {}
        }
        watcher.waiting.extend_from_slice(&frame::prelude(watcher.retry));
        let bytes = stream::unfold(Some(watcher), async |watcher: Option<Watcher<E>>| {
            let mut watcher = watcher?;
            if let Some(bytes) = watcher.next().await {
                return Some((Ok(bytes), Some(watcher)));
            }
            if !(watcher.interrupted && watcher.breaks_off) {
                return None;
            }
            // hyper throws away what it holds of an answer that fails; while it waits for more of it, that leaves.
            tokio::task::yield_now().await;
            Some((Err(io::Error::from(io::ErrorKind::ConnectionAborted)), None))
        });
        Ok(respond::answer(Body::from_stream(bytes)))
    }
}

/// The fold of a watcher.
enum View<E> {
    /// Its own; none while it is tried to join the others.
    Own(Option<Box<dyn Projection<Event = E>>>),
    /// That of all who have joined.
    Joined(JoinedWatcher<E>),
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
    wakeups: Wakeups,
    /// The number of the event that the projection takes in next.
    next: u64,
    /// Frames of events before this number are not sent.
    shown_from: u64,
    /// Bytes that the client has not taken yet.
    waiting: BytesMut,
    /// The frames of one event; kept for its memory.
    rendered: Vec<Frame>,
    ended: bool,
    /// Whether it ends before its projection is over.
    interrupted: bool,
    /// Whether it breaks off then.
    breaks_off: bool,
    retry: Duration,
    chunk: usize,
    metrics: Arc<Metrics>,
}

impl<E: DeserializeOwned + Send + Sync + 'static> Watcher<E> {
    /// The next bytes; none once the stream has ended.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.waiting.is_empty() {
                self.wakeups.spoke();
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
            if self.wakeups.has_lived_out() {
                self.end(self.retry);
                continue;
            }
            if self.wakeups.schedule.behind {
                self.read().await;
                continue;
            }
            match self.wakeups.next().await {
                Wakeup::Messages(batch) => batch.iter().for_each(|message| self.receive(message)),
                Wakeup::Beat => self.beat().await,
                Wakeup::Shutdown(retry) => self.end(retry),
            }
        }
    }

    /// Reads a page of the log.
    async fn read(&mut self) {
        match read_after::<E>(&*self.table, &self.actor, self.next - 1, PAGE).await {
            Ok(page) => {
                let mut left = page.entries.iter();
                while self.waiting.len() < FULL
                    && let Some(entry) = left.next()
                {
                    self.take_in(entry);
                }
                self.wakeups.schedule.behind = page.more || left.len() > 0;
                self.join();
            }
            Err(error) => {
                tracing::warn!(actor = %self.actor, error = %error.with_causes(), "a stream ends: its log could not be read");
                self.end(self.retry);
            }
        }
    }

    /// Joins the others of its kind, once it is where they are.
    fn join(&mut self) {
        let (View::Own(own), Some(rendering)) = (&mut self.view, &self.rendering) else { return };
        if self.wakeups.schedule.behind
            || self.next < self.shown_from.max(self.joins_from)
            || !rendering.is_at(self.next)
        {
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
        if self.waiting.len() >= FULL {
            self.wakeups.schedule.behind = true;
            return;
        }
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
            Some(_) | None => self.wakeups.schedule.behind = true,
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
                self.waiting.extend_from_slice(&RenderedFrames::new(number, &self.rendered).bytes);
            }
            self.rendered.clear();
        }
        self.next = next.max(entry.next);
    }

    /// Sends frames that all have; none when this watcher has fallen behind them.
    fn send(&mut self, taken: Option<TakenFrames>) {
        let Some(TakenFrames { written, next, is_over }) = taken else {
            tracing::debug!(actor = %self.actor, "a watcher is too slow for the others: its client comes back");
            return self.end(self.retry);
        };
        for RenderedFrames { frames, bytes, .. } in written {
            self.metrics.deliveries.fetch_add(frames, Relaxed);
            self.waiting.extend_from_slice(&bytes);
        }
        self.next = next;
        self.ended |= is_over;
    }

    async fn beat(&mut self) {
        if self.wakeups.look_is_due().await {
            self.wakeups.schedule.behind = true;
        }
        if self.wakeups.comment_is_due() {
            self.waiting.extend_from_slice(&frame::KEEP_ALIVE);
        }
    }

    fn end(&mut self, retry: Duration) {
        self.waiting.extend_from_slice(&frame::farewell(retry));
        (self.ended, self.interrupted) = (true, true);
    }
}
