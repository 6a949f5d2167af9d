//! One reader of a feed: a cursor, and where its bytes come from next.

use crate::{
    cursor::Position,
    feed::{Feed, Next},
    frame,
    metrics::{count, uncount},
    options::spread_of,
    window::{Chunk, Read},
};
use bytes::Bytes;
use futures::future::BoxFuture;
use std::{
    future::poll_fn,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll, ready},
    time::Duration,
};

/// After so many beats without a byte a comment is due.
pub(crate) const SILENT_BEATS: u8 = 2;
/// Clients come back within this time after a shutdown.
pub(crate) const RETURN_WITHIN_MS: u64 = 4096;

/// The bytes of one event stream: frames of the events after a cursor, in order and each once, and comments between them.
///
/// It takes nothing from the feed before it is asked, and so holds no more than a cursor while its client does not read.
pub struct Subscription {
    feed: Arc<Feed>,
    stage: Stage,
    /// Everything visible up to here was given out.
    cursor: u64,
    /// Counts the streams of this process; spreads work that must not happen to all at once.
    serial: u64,
    slot: u32,
    beat: u32,
    /// The beat at which it ends.
    last_beat: u32,
    silent_beats: u8,
    is_over: bool,
}

enum Stage {
    Opening(Option<&'static str>),
    Open,
    Reading(BoxFuture<'static, ports::Result<Chunk>>),
    Closed,
}

impl Subscription {
    pub(crate) fn new(feed: Arc<Feed>, position: Position) -> Self {
        let (slot, beat) = feed.claim();
        let metrics = &feed.shared().metrics;
        count(&metrics.subscriptions);
        let serial = count(&metrics.subscribed);
        if position.reset.is_some() {
            count(&metrics.resets);
        }
        let stage = Stage::Opening(position.reset);
        let last_beat = beat.wrapping_add(feed.shared().options.life_in_beats(serial));
        Self { feed, stage, cursor: position.cursor, serial, slot, beat, last_beat, silent_beats: 0, is_over: false }
    }

    /// The next bytes to write, about 64 KiB at most; none once the stream has ended.
    pub async fn next(&mut self) -> Option<Bytes> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Whether it ended because no event can follow; otherwise a client that comes back goes on.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The same as [`Self::next`], to be polled. Only the waker of the last poll is woken.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            match &mut self.stage {
                Stage::Opening(reset) => {
                    let bytes = frame::opening(self.cursor, self.feed.shared().options.retry, *reset);
                    self.stage = Stage::Open;
                    return self.give(bytes);
                }
                Stage::Reading(read) => {
                    let chunk = ready!(read.as_mut().poll(context));
                    self.stage = Stage::Open;
                    match chunk {
                        Ok(chunk) if chunk.frames == 0 => self.cursor = chunk.through,
                        Ok(chunk) => return self.give_chunk(chunk),
                        Err(error) => {
                            tracing::warn!(actor = %self.feed.actor(), error = %error.with_causes(), "a stream ends: its log could not be read");
                            return self.end(self.feed.shared().options.retry);
                        }
                    }
                }
                Stage::Open => match self.feed.poll(self.slot, self.cursor, self.beat, self.last_beat, context) {
                    Next::Read(Read::Frames(chunk)) => return self.give_chunk(chunk),
                    Next::Read(Read::CaughtUp(cursor)) => self.cursor = cursor,
                    Next::Read(Read::Before) => {
                        let (feed, cursor) = (self.feed.clone(), self.cursor);
                        self.stage = Stage::Reading(Box::pin(async move { feed.blocks.read(&feed, cursor).await }));
                    }
                    Next::Wait(cursor) => {
                        self.cursor = cursor;
                        return Poll::Pending;
                    }
                    Next::Beat(beat) => {
                        self.beat = beat;
                        self.silent_beats += 1;
                        if self.silent_beats >= SILENT_BEATS {
                            return self.give(frame::KEEP_ALIVE);
                        }
                    }
                    Next::LivedOut => return self.end(self.feed.shared().options.retry),
                    Next::Closing => {
                        let spread_ms = spread_of(self.serial) % RETURN_WITHIN_MS;
                        return self.end(Duration::from_millis(500 + spread_ms));
                    }
                    // A client that comes back all the same is told by the API that there is nothing more.
                    Next::Ended => {
                        self.is_over = true;
                        return self.end(self.feed.shared().options.retry);
                    }
                },
                Stage::Closed => return Poll::Ready(None),
            }
        }
    }

    fn give_chunk(&mut self, chunk: Chunk) -> Poll<Option<Bytes>> {
        self.cursor = chunk.through;
        self.feed.shared().metrics.deliveries.fetch_add(chunk.frames, Relaxed);
        self.give(chunk.bytes)
    }

    fn give(&mut self, bytes: Bytes) -> Poll<Option<Bytes>> {
        self.silent_beats = 0;
        self.feed.shared().metrics.bytes.fetch_add(bytes.len() as u64, Relaxed);
        Poll::Ready(Some(bytes))
    }

    fn end(&mut self, retry: Duration) -> Poll<Option<Bytes>> {
        self.stage = Stage::Closed;
        self.give(frame::farewell(retry))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.feed.release(self.slot);
        uncount(&self.feed.shared().metrics.subscriptions);
    }
}
