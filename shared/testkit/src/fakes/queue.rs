//! A queue in memory.

use super::{Fate, Faults};
use async_trait::async_trait;
use domain::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use ports::{
    Clock, DeadLetter, DeadLetterQueue, Delivery, MAX_BATCH, QueueMessage, QueueReceiver, QueueSender, Receipt, Result,
    lane, validate,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::sync::Notify;

const WHAT: &str = "the fake queue";
const REMEMBERED: Duration = Duration::from_secs(5 * 60);

/// A queue in memory. Batches are of any length, the end of one may become visible again while its worker still works, and a
/// message that was acknowledged may come again; order in a group, attempts and dead letters hold all the same.
pub struct FakeQueue {
    clock: Arc<dyn Clock>,
    fate: Fate,
    max_attempts: u32,
    state: Mutex<State>,
    bell: Notify,
}

#[derive(Default)]
struct State {
    /// In the order of sending.
    waiting: Vec<Waiting>,
    dead: Vec<DeadLetter>,
    /// Group, id, and until when a repetition has no effect.
    sent: Vec<(String, String, Timestamp)>,
    deliveries: u64,
    /// Lanes, and the delivery that was their last one.
    served: BTreeMap<String, u64>,
}

struct Waiting {
    message: QueueMessage,
    /// How often it was the first of a batch.
    attempts: u32,
    /// Not before this time: its date, its visibility, or its rest.
    hidden_until: Timestamp,
    /// The delivery in flight, while it is hidden.
    delivery: Option<u64>,
    /// Its place among those of its group that were delivered and not settled; they stay in front of the others.
    place: Option<u64>,
    /// It was acknowledged. It comes once more, delays no message before it is due, and is never put aside.
    is_ghost: bool,
}

impl FakeQueue {
    /// An empty queue that puts a message aside after `max_attempts` deliveries.
    pub fn new(clock: Arc<dyn Clock>, seed: u64, faults: Faults, max_attempts: u32) -> Self {
        Self { clock, fate: Fate::new(seed, faults), max_attempts, state: Mutex::default(), bell: Notify::new() }
    }

    /// Whether no message waits, is in flight or is delayed. Dead letters, and acknowledged messages that come again, do not count.
    pub fn is_empty(&self) -> bool {
        self.lock().waiting.iter().all(|waiting| waiting.is_ghost)
    }

    /// The messages that wait, are in flight or are delayed, in the order of sending.
    pub fn messages(&self) -> Vec<QueueMessage> {
        let state = self.lock();
        state.waiting.iter().filter(|waiting| !waiting.is_ghost).map(|waiting| waiting.message.clone()).collect()
    }

    /// The dead letters.
    pub fn dead(&self) -> Vec<DeadLetter> {
        self.lock().dead.clone()
    }

    /// Takes in messages, but for those whose ids are known.
    pub(super) fn put(&self, mut messages: Vec<QueueMessage>) {
        let now = self.clock.now();
        let mut state = self.lock();
        state.sent.retain(|(_, _, until)| *until > now);
        messages.retain(|message| {
            let is_known = state.sent.iter().any(|(group, id, _)| (group, id) == (&message.group, &message.id));
            if !is_known {
                state.sent.push((message.group.clone(), message.id.clone(), now + REMEMBERED));
            }
            !is_known
        });
        drop(state);
        self.put_new(messages);
    }

    /// Takes in messages whose commit takes effect once. Their ids are neither looked for nor remembered.
    pub(super) fn put_new(&self, messages: Vec<QueueMessage>) {
        let now = self.clock.now();
        self.lock().waiting.extend(messages.into_iter().map(|message| Waiting {
            hidden_until: message.deliver_at.unwrap_or(now),
            message,
            attempts: 0,
            delivery: None,
            place: None,
            is_ghost: false,
        }));
        self.bell.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Ends deliveries whose time is over, with those behind them, and puts messages aside that have used up their attempts.
    fn advance(&self, state: &mut State, now: Timestamp) {
        let State { waiting, dead, .. } = state;
        let over = |waiting: &Waiting| waiting.delivery.is_some() && waiting.hidden_until <= now;
        while let Some(at) = waiting.iter().position(over) {
            give_back(waiting, at, now);
        }
        waiting.retain(|waiting| {
            let used_up = waiting.hidden_until <= now && waiting.attempts >= self.max_attempts;
            if used_up && !waiting.is_ghost {
                dead.push(DeadLetter { message: waiting.message.clone(), attempts: waiting.attempts, at: now });
            }
            !used_up
        });
    }

    fn take(&self, state: &mut State, max: usize, visibility: Duration, now: Timestamp) -> Vec<Delivery> {
        let mut taken = Vec::new();
        for group in groups_by_turn(state, now) {
            let most = (max - taken.len()).min(MAX_BATCH);
            if most == 0 {
                break;
            }
            let short = self.fate.chance(|faults| faults.short_batches);
            let most = if short { 1 + self.fate.draw(|random| random.below(most as u64)) as usize } else { most };
            let batch = next_batch(&state.waiting, &group, now, most);
            // From some message of the batch on, the visibility may end early.
            let early = self.fate.chance(|faults| faults.early_timeout).then(|| {
                let from = self.fate.draw(|random| random.below(batch.len() as u64)) as usize;
                let after = self.fate.draw(|random| random.below(visibility.as_millis() as u64));
                (from, Duration::from_millis(after))
            });
            for (position, at) in batch.into_iter().enumerate() {
                let Some(waiting) = state.waiting.get_mut(at) else { continue };
                state.deliveries += 1;
                state.served.insert(lane(&group).to_owned(), state.deliveries);
                waiting.attempts += u32::from(position == 0);
                let visible_after = early.filter(|(from, _)| position >= *from).map_or(visibility, |(_, after)| after);
                waiting.hidden_until = now + visible_after;
                waiting.delivery = Some(state.deliveries);
                waiting.place.get_or_insert(state.deliveries);
                taken.push(Delivery {
                    group: waiting.message.group.clone(),
                    id: waiting.message.id.clone(),
                    body: waiting.message.body.clone(),
                    attempt: waiting.attempts.max(1),
                    receipt: Receipt(state.deliveries.to_string()),
                });
            }
        }
        taken
    }

    /// Changes the messages of deliveries that are in flight; false when one of them is not.
    fn settle(&self, receipts: &[Receipt], mut change: impl FnMut(&mut Vec<Waiting>, usize, Timestamp)) -> bool {
        let now = self.clock.now();
        let mut state = self.lock();
        self.advance(&mut state, now);
        let mut all = true;
        for receipt in receipts {
            let number = receipt.0.parse::<u64>().ok();
            let found = state.waiting.iter().position(|waiting| number.is_some() && waiting.delivery == number);
            match found {
                Some(at) => change(&mut state.waiting, at, now),
                None => all = false,
            }
        }
        drop(state);
        // Every waiter looks again; there are few, and it spawns nothing.
        self.bell.notify_waiters();
        all
    }
}

/// The messages of a group in the order in which they are delivered: those that were, then the others.
fn in_order<'a>(waiting: &'a [Waiting], group: &'a str) -> impl Iterator<Item = (usize, &'a Waiting)> {
    let mut all: Vec<_> = waiting.iter().enumerate().filter(|(_, one)| one.message.group == group).collect();
    all.sort_by_key(|(_, one)| one.place.unwrap_or(u64::MAX));
    all.into_iter()
}

/// Groups with something to deliver: lanes in turn, and within a lane the highest priority, then the oldest.
fn groups_by_turn(State { waiting, served, .. }: &State, now: Timestamp) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut groups = Vec::new();
    for name in waiting.iter().map(|waiting| waiting.message.group.as_str()).filter(|name| seen.insert(*name)) {
        let is_locked =
            in_order(waiting, name).any(|(_, waiting)| waiting.place.is_some() && waiting.hidden_until > now);
        let first = in_order(waiting, name).find(|(_, waiting)| waiting.hidden_until <= now);
        if let Some((at, first)) = first.filter(|_| !is_locked) {
            groups.push((Reverse(first.message.priority), at, name));
        }
    }
    groups.sort_unstable();
    // The first of each lane, then the second of each, and so on; the lane that was served longest ago first.
    let mut turns = BTreeMap::<&str, usize>::new();
    let mut by_turn = Vec::with_capacity(groups.len());
    for (_, _, name) in groups {
        let turn = turns.entry(lane(name)).or_default();
        *turn += 1;
        by_turn.push((*turn, served.get(lane(name)).copied().unwrap_or(0), name.to_owned()));
    }
    by_turn.sort_by_key(|(turn, last, _)| (*turn, *last));
    by_turn.into_iter().map(|(.., name)| name).collect()
}

/// The positions of the next batch of a group: a message that was tried before alone, else all that were not, as many as may be.
fn next_batch(waiting: &[Waiting], group: &str, now: Timestamp, most: usize) -> Vec<usize> {
    let mut due = in_order(waiting, group).filter(|(_, waiting)| waiting.hidden_until <= now).peekable();
    if due.peek().is_some_and(|(_, first)| first.attempts > 0) {
        return due.take(1).map(|(at, _)| at).collect();
    }
    due.take_while(|(_, waiting)| waiting.attempts == 0).take(most).map(|(at, _)| at).collect()
}

/// Ends the delivery of a message and of those behind it, to come again at `when`.
fn give_back(waiting: &mut [Waiting], at: usize, when: Timestamp) {
    let Some((group, place)) = waiting.get(at).map(|first| (first.message.group.clone(), first.place)) else { return };
    for waiting in
        waiting.iter_mut().filter(|one| one.message.group == group && one.place.is_some() && one.place >= place)
    {
        waiting.delivery = None;
        waiting.hidden_until = when;
    }
}

#[async_trait]
impl QueueSender for FakeQueue {
    async fn send(&self, messages: Vec<QueueMessage>) -> Result<()> {
        validate::messages(&messages)?;
        self.fate.before(WHAT).await?;
        self.put(messages);
        self.fate.after(WHAT, ()).await
    }

    async fn waiting(&self, lane: &str) -> Result<usize> {
        self.fate.before(WHAT).await?;
        let waiting = {
            let now = self.clock.now();
            let mut state = self.lock();
            self.advance(&mut state, now);
            let waits = |one: &&Waiting| one.hidden_until <= now && ports::lane(&one.message.group) == lane;
            state.waiting.iter().filter(waits).count()
        };
        self.fate.after(WHAT, waiting).await
    }
}

#[async_trait]
impl QueueReceiver for FakeQueue {
    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<Delivery>> {
        self.fate.before(WHAT).await?;
        if max == 0 || self.fate.chance(|faults| faults.empty_receive) {
            return Ok(Vec::new());
        }
        loop {
            let rung = self.bell.notified();
            let quiet = {
                let now = self.clock.now();
                let mut state = self.lock();
                self.advance(&mut state, now);
                let taken = self.take(&mut state, max, visibility, now);
                if !taken.is_empty() {
                    // Not `after`: a caller that drops the call must lose nothing, so nothing is awaited from here on.
                    return self.fate.fail(WHAT, self.fate.chance(|faults| faults.unavailable_after)).map(|()| taken);
                }
                let later = state.waiting.iter().map(|waiting| waiting.hidden_until).filter(|until| *until > now);
                later.min().map(|until| until.since(now))
            };
            match quiet {
                Some(quiet) => _ = tokio::time::timeout(quiet, rung).await,
                None => rung.await,
            }
        }
    }

    async fn ack(&self, receipts: &[Receipt]) -> Result<bool> {
        self.fate.before(WHAT).await?;
        let settled = self.settle(receipts, |all, at, now| {
            let comes_again = self.fate.chance(|faults| faults.duplicate);
            let later = self.fate.draw(|random| if comes_again { random.below(30_000) } else { 0 });
            if let Some(waiting) = all.get_mut(at).filter(|waiting| comes_again && !waiting.is_ghost) {
                waiting.is_ghost = true;
                waiting.place = None;
                waiting.delivery = None;
                waiting.hidden_until = now + Duration::from_millis(later);
            } else {
                all.remove(at);
            }
        });
        self.fate.after(WHAT, settled).await
    }

    async fn extend(&self, receipts: &[Receipt], visibility: Duration) -> Result<bool> {
        self.fate.before(WHAT).await?;
        let extended = self.settle(receipts, |all, at, now| {
            if let Some(waiting) = all.get_mut(at) {
                waiting.hidden_until = now + visibility;
            }
        });
        self.fate.after(WHAT, extended).await
    }

    async fn reject(&self, receipts: &[Receipt], delay: Duration) -> Result<bool> {
        self.fate.before(WHAT).await?;
        let rejected = {
            let now = self.clock.now();
            let mut state = self.lock();
            self.advance(&mut state, now);
            let is_one = |delivery: Option<u64>| {
                delivery.is_some_and(|number| receipts.iter().any(|receipt| receipt.0 == number.to_string()))
            };
            let all = state.waiting.iter().enumerate().filter(|(_, waiting)| is_one(waiting.delivery));
            let found: Vec<_> = all.map(|(at, waiting)| (waiting.place, at)).collect();
            if let Some((_, first)) = found.iter().min() {
                give_back(&mut state.waiting, *first, now + delay);
            }
            found.len() == receipts.len()
        };
        self.bell.notify_waiters();
        self.fate.after(WHAT, rejected).await
    }
}

#[async_trait]
impl DeadLetterQueue for FakeQueue {
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>> {
        self.fate.before(WHAT).await?;
        let letters = {
            let mut state = self.lock();
            self.advance(&mut state, self.clock.now());
            state.dead.iter().take(limit).cloned().collect()
        };
        self.fate.after(WHAT, letters).await
    }

    async fn redrive(&self, group: &str) -> Result<usize> {
        self.fate.before(WHAT).await?;
        let count = {
            let now = self.clock.now();
            let mut state = self.lock();
            self.advance(&mut state, now);
            let (again, rest): (Vec<_>, Vec<_>) =
                std::mem::take(&mut state.dead).into_iter().partition(|letter| letter.message.group == group);
            state.dead = rest;
            let count = again.len();
            state.waiting.extend(again.into_iter().map(|DeadLetter { message, .. }| Waiting {
                message,
                attempts: 0,
                hidden_until: now,
                delivery: None,
                place: None,
                is_ghost: false,
            }));
            count
        };
        self.bell.notify_waiters();
        self.fate.after(WHAT, count).await
    }
}
