//! The wake-ups of a stream that reads for itself (`changes.rs`, `projection_stream.rs`): messages of the bus, beats, and the shutdown of the server.

use crate::{
    Feeds,
    metrics::{Metrics, count, uncount},
    options::spread_of,
    poll_schedule::PollSchedule,
    subscription::{RETURN_WITHIN_MS, SILENT_BEATS},
};
use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use ports::Bus;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Bus messages taken at once, so that they leave in one write.
const BATCH: usize = 64;

/// A reason to go on.
pub(crate) enum Wakeup {
    /// Messages of the bus, one at least.
    Messages(Vec<Bytes>),
    /// The time of a beat.
    Beat,
    /// The server shuts down. The client comes back after this time.
    Shutdown(Duration),
}

/// The wake-ups of one stream, which counts as a subscription while it has them.
pub(crate) struct Wakeups {
    bus: Arc<dyn Bus>,
    channel: String,
    messages: BoxStream<'static, Vec<Bytes>>,
    beats: Interval,
    pub(crate) schedule: PollSchedule,
    silent_beats: u8,
    /// When it has lived for as long as it may; none for a stream that ends by itself.
    ends_at: Option<Instant>,
    serial: u64,
    shutdown: CancellationToken,
    metrics: Arc<Metrics>,
}

impl Feeds {
    /// The wake-ups of a new stream. It does not listen to the channel yet. With `ends_by_itself` its life has no bound.
    pub(crate) async fn wakeups(&self, channel: String, ends_by_itself: bool) -> Wakeups {
        let options = self.options();
        let mut beats = interval(options.beat());
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beats.tick().await; // the first one is at once
        let metrics = self.metrics().clone();
        count(&metrics.subscriptions);
        let serial = count(&metrics.subscribed);
        let life = options.beat().saturating_mul(options.life_in_beats(serial));
        Wakeups {
            bus: self.bus().clone(),
            channel,
            messages: stream::pending().boxed(),
            beats,
            schedule: PollSchedule::default(),
            silent_beats: 0,
            ends_at: (!ends_by_itself).then_some(life).and_then(|life| Instant::now().checked_add(life)),
            serial,
            shutdown: self.shutdown().clone(),
            metrics,
        }
    }
}

impl Wakeups {
    /// Listens to the channel; without the bus the stream looks at what was written at every beat.
    pub(crate) async fn listen(&mut self) {
        match self.bus.subscribe(&self.channel).await {
            Ok(messages) => {
                // The empty batch tells the end of the subscription from a stream that is pending.
                self.messages = messages.ready_chunks(BATCH).chain(stream::once(async { Vec::new() })).boxed();
                self.schedule.deaf = false;
            }
            Err(error) => {
                tracing::warn!(channel = %self.channel, error = %error.with_causes(), "the bus is not there: a watcher is served from what was written");
                self.schedule.deaf = true;
            }
        }
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Wakeup {
        loop {
            tokio::select! {
                batch = self.messages.next() => match batch {
                    Some(batch) if !batch.is_empty() => {
                        self.schedule.heard();
                        return Wakeup::Messages(batch);
                    }
                    // The bus has ended the subscription.
                    Some(_) | None => {
                        self.schedule.deaf = true;
                        self.messages = stream::pending().boxed();
                    }
                },
                _ = self.beats.tick() => return Wakeup::Beat,
                () = self.shutdown.cancelled() => {
                    let spread_ms = spread_of(self.serial) % RETURN_WITHIN_MS;
                    return Wakeup::Shutdown(Duration::from_millis(500 + spread_ms));
                }
            }
        }
    }

    /// Whether the stream has lived for as long as it may. The time tells, and not the beats: a stream whose client reads slowly sees few of them.
    pub(crate) fn has_lived_out(&self) -> bool {
        self.ends_at.is_some_and(|end| end <= Instant::now())
    }

    /// At a beat: listens again where the bus ended the subscription, and tells whether to look at what was written.
    pub(crate) async fn look_is_due(&mut self) -> bool {
        if self.schedule.deaf {
            self.listen().await;
            self.schedule.behind |= !self.schedule.deaf;
        }
        self.schedule.poll_is_due()
    }

    /// At a beat: whether a comment is due, so that the client sees that the stream lives.
    pub(crate) fn comment_is_due(&mut self) -> bool {
        self.silent_beats += 1;
        self.silent_beats >= SILENT_BEATS
    }

    /// Bytes leave for the client.
    pub(crate) fn spoke(&mut self) {
        self.silent_beats = 0;
    }
}

impl Drop for Wakeups {
    fn drop(&mut self) {
        uncount(&self.metrics.subscriptions);
    }
}
