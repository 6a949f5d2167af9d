//! The feed of one actor: listens to the bus, heals from the log, and wakes the subscriptions when its window moves.

mod block;
mod shared_feeds;

pub(crate) use shared_feeds::Shared;

use crate::{
    frame::{self, Event, LogKind},
    log_end::LogEnd,
    metrics::{count, uncount},
    poll_schedule::PollSchedule,
    waiters::Waiters,
    window::{Read, Window},
};
use actor::{
    ActorId, Entry,
    log::{next_number, read_after},
};
use block::Blocks;
use bytes::Bytes;
use domain::{ActorRef, ChatEvent, TaskEvent};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::Result;
use std::{
    sync::Arc,
    task::{Context, Waker},
};
use tokio::{
    sync::OnceCell,
    time::{MissedTickBehavior, interval},
};

/// Bus messages taken at once, so that readers are woken once for all of them.
const BATCH: usize = 64;
/// Entries read at once while healing.
const PAGE: usize = 128;
/// Beats without a message after which the window is dropped: a client that comes back to an idle actor reads its log.
const BEATS_TO_FORGET: u32 = 12;

/// One actor that somebody watches. It lives as long as a subscription or its task holds it.
pub(crate) struct Feed {
    /// Its key among the feeds.
    watched: ActorRef,
    actor: ActorId,
    kind: LogKind,
    shared: Arc<Shared>,
    state: Mutex<State>,
    /// Blocks of the log for readers behind the window.
    pub(crate) blocks: Blocks,
    /// Set once the feed listens and knows the log's end.
    oldest: OnceCell<u64>,
}

struct State {
    window: Window,
    waiters: Waiters,
    /// Counts up with every beat; a waiter that sees another number than before has been silent for a beat.
    beat: u32,
    /// The end of the log, as far as it is known: a subscription that has its last event is done.
    end: LogEnd,
    closing: bool,
}

/// The result of polling a subscription.
pub(crate) enum Next {
    /// The window's answer.
    Read(Read),
    /// Nothing, for one more beat: this is its number.
    Beat(u32),
    /// The stream has lived for as long as it may.
    LivedOut,
    /// Nothing, and the server shuts down.
    Closing,
    /// Nothing, now and later: the last event was given out.
    Ended,
    /// Nothing: the waker is parked. The cursor may move here.
    Wait(u64),
}

impl Feed {
    pub(crate) fn new(watched: ActorRef, kind: LogKind, shared: Arc<Shared>) -> Self {
        count(&shared.metrics.feeds);
        let (window, waiters, end) = (Window::at(1), Waiters::default(), LogEnd::default());
        let state = State { window, waiters, beat: 0, end, closing: false };
        let (actor, state) = (watched.into(), Mutex::new(state));
        Self { watched, actor, kind, shared, state, blocks: Blocks::default(), oldest: OnceCell::new() }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn watched(&self) -> ActorRef {
        self.watched
    }

    pub(crate) fn actor(&self) -> &ActorId {
        &self.actor
    }

    pub(crate) fn kind(&self) -> LogKind {
        self.kind
    }

    pub(crate) fn floor(&self) -> u64 {
        self.state.lock().window.floor()
    }

    fn next(&self) -> u64 {
        self.state.lock().window.next()
    }

    /// Listens, and returns the numbers of the log's oldest event and of the next one. The first caller does the work; when that fails, the
    /// next one tries again.
    pub(crate) async fn start(self: &Arc<Self>) -> Result<(u64, u64)> {
        let oldest = self.oldest.get_or_try_init(|| async {
            // First the bus, then the log: an event published in between arrives twice, and none is missed.
            let messages = match self.shared.bus.subscribe(self.actor.as_str()).await {
                Ok(messages) => messages,
                // The log has everything; it is looked at with every beat until the bus is there.
                Err(error) => {
                    tracing::warn!(actor = %self.actor, error = %error.with_causes(), "the bus is not there: watchers are served from the log");
                    stream::empty().boxed()
                }
            };
            let next = next_number(&*self.shared.table, &self.actor).await?;
            let first = read_after::<serde::de::IgnoredAny>(&*self.shared.table, &self.actor, 0, 1).await?;
            self.state.lock().window = Window::at(next);
            tokio::spawn(self.clone().run(messages));
            Ok(first.entries.first().map_or(1, |entry| entry.first))
        });
        Ok((*oldest.await?, self.next()))
    }

    async fn run(self: Arc<Self>, messages: ports::Subscription) {
        let mut messages = messages.ready_chunks(BATCH);
        let mut beats = interval(self.shared.options.beat());
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beats.tick().await; // the first one is at once
        let mut schedule = PollSchedule::default();
        let shutdown = self.shared.shutdown.clone();
        let closing = shutdown.cancelled();
        tokio::pin!(closing);
        loop {
            tokio::select! {
                batch = messages.next() => match batch {
                    Some(batch) => {
                        schedule.heard();
                        schedule.behind |= !self.receive(batch).await;
                    }
                    None => {
                        schedule.deaf = true;
                        messages = stream::pending().boxed().ready_chunks(BATCH);
                    }
                },
                _ = beats.tick() => {
                    // A whole beat without subscribers is the linger: a client that reconnects finds its feed.
                    let alone = Arc::strong_count(&self) == 1;
                    if alone && schedule.alone && self.shared.retire(&self) {
                        return;
                    }
                    schedule.alone = alone;
                    if schedule.deaf && let Ok(again) = self.shared.bus.subscribe(self.actor.as_str()).await {
                        messages = again.ready_chunks(BATCH);
                        (schedule.deaf, schedule.behind) = (false, true);
                    }
                    self.beat(&mut schedule).await;
                }
                () = &mut closing => {
                    return self.change(|state| state.closing = true);
                }
            }
        }
    }

    /// Takes in messages of the bus; false when the log has more but could not be read.
    async fn receive(&self, messages: Vec<Bytes>) -> bool {
        let gap = match self.kind {
            LogKind::Chat => self.take_in::<ChatEvent>(messages),
            LogKind::Task => self.take_in::<TaskEvent>(messages),
        };
        // The entries after a gap are in the log too: they were committed before they were published.
        if gap { self.heal().await } else { true }
    }

    /// Moves the window by the messages that follow it directly; true when something is missing before the rest.
    fn take_in<E: Event>(&self, messages: Vec<Bytes>) -> bool {
        let mut next = self.next();
        let mut frames = Vec::new();
        let (mut gap, mut end) = (false, LogEnd::default());
        for message in messages {
            match serde_json::from_slice::<Entry<E>>(&message) {
                Ok(entry) if entry.next <= next => {} // again, or late: a message that overtook it had it read from the log
                Ok(entry) if entry.first <= next => {
                    frames.extend(frame::render_entry(&entry, next));
                    end.join(frame::end_of(&entry));
                    next = entry.next;
                }
                // Something is missing before it, or it is only a hint that the log has more.
                Ok(_) | Err(_) => {
                    gap = true;
                    break;
                }
            }
        }
        self.append(frames, next, end);
        gap
    }

    /// Reads the entries that the log has and the window lacks; false when they could not be read.
    async fn heal(&self) -> bool {
        let caught_up = match self.kind {
            LogKind::Chat => self.catch_up::<ChatEvent>().await,
            LogKind::Task => self.catch_up::<TaskEvent>().await,
        };
        match caught_up {
            Ok(found) => {
                if found {
                    count(&self.shared.metrics.healed_gaps);
                }
                true
            }
            Err(error) => {
                tracing::warn!(actor = %self.actor, error = %error.with_causes(), "the log could not be read for a gap in the bus messages");
                false
            }
        }
    }

    async fn catch_up<E: Event>(&self) -> Result<bool> {
        let mut found = false;
        loop {
            let mut next = self.next();
            let page = read_after::<E>(&*self.shared.table, &self.actor, next - 1, PAGE).await?;
            let (mut frames, mut end) = (Vec::new(), LogEnd::default());
            for entry in page.entries.iter().filter(|entry| entry.next > self.next()) {
                frames.extend(frame::render_entry(entry, next));
                end.join(frame::end_of(entry));
                next = next.max(entry.next);
                found = true;
            }
            self.append(frames, next, end);
            if !page.more {
                return Ok(found);
            }
        }
    }

    /// Moves the window and wakes the waiters. Only the feed's own task does.
    fn append(&self, frames: Vec<(u64, Bytes)>, next: u64, end: LogEnd) {
        if next > self.next() {
            self.change(|state| {
                state.window.append(frames, next, &self.shared.options);
                state.end.join(end);
            });
        }
    }

    /// A reader behind the window has found these facts in the log.
    pub(crate) fn note_end(&self, end: LogEnd) {
        let is_news = {
            let mut state = self.state.lock();
            let before = state.end.number();
            state.end.join(end);
            state.end.number() != before
        };
        // Those who wait may have the last event already.
        if is_news {
            self.change(|_| ());
        }
    }

    async fn beat(&self, schedule: &mut PollSchedule) {
        self.blocks.clear();
        let before = self.next();
        if schedule.poll_is_due() {
            schedule.behind = !self.heal().await;
        }
        if self.next() != before {
            schedule.heard();
        }
        self.change(|state| {
            state.beat = state.beat.wrapping_add(1);
            if schedule.silent == BEATS_TO_FORGET {
                state.window.forget();
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let woken = {
            let mut state = self.state.lock();
            change(&mut state);
            state.waiters.take()
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// A slot for a subscription, and the beat that it begins at.
    pub(crate) fn claim(&self) -> (u32, u32) {
        let mut state = self.state.lock();
        (state.waiters.claim(), state.beat)
    }

    pub(crate) fn release(&self, slot: u32) {
        let waker = self.state.lock().waiters.release(slot);
        drop(waker); // outside the lock: it may be the last hold on a task
    }

    /// The next chunk after `cursor` for the subscription in `slot`, which has seen `beat` and ends at `last_beat`. So does one whose client is always behind
    /// the window, and to which no beat is told.
    pub(crate) fn poll(&self, slot: u32, cursor: u64, beat: u32, last_beat: u32, context: &Context<'_>) -> Next {
        let mut state = self.state.lock();
        // The distance as a signed number: beats wrap around.
        if last_beat.wrapping_sub(state.beat).cast_signed() <= 0 {
            return Next::LivedOut;
        }
        match state.window.after(cursor, &self.shared.options) {
            read @ Read::Frames(_) => Next::Read(read),
            _ if state.closing => Next::Closing,
            read @ Read::Before => Next::Read(read),
            Read::CaughtUp(cursor) if state.end.number().is_some_and(|last| last <= cursor) => Next::Ended,
            Read::CaughtUp(_) if state.beat != beat => Next::Beat(state.beat),
            Read::CaughtUp(cursor) => {
                state.waiters.park(slot, context.waker());
                Next::Wait(cursor)
            }
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        uncount(&self.shared.metrics.feeds);
        self.shared.dropped(self.watched);
    }
}
