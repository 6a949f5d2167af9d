//! A queue in memory.

use super::{Fate, Faults};
use async_trait::async_trait;
use domain::Timestamp;
use ports::{Clock, DeadLetter, Delivery, Outgoing, Queue, Receipt, Result, validate};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

const WHAT: &str = "the fake queue";
const REMEMBERED: Duration = Duration::from_secs(5 * 60);

/// A queue in memory. A delivery may become visible again while its worker still works, and a message that was acknowledged
/// may come again; order in a group, attempts and dead letters hold all the same.
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
}

struct Waiting {
    message: Outgoing,
    attempts: u32,
    /// Not before this time: its date, its visibility, or its rest.
    hidden_until: Timestamp,
    /// The delivery in flight, while it is hidden.
    delivery: Option<u64>,
    /// It was delivered and not settled, so it stays the first of its group.
    is_head: bool,
    /// It was acknowledged. It comes once more, holds up nobody before it is due, and is never put aside.
    is_ghost: bool,
}

impl FakeQueue {
    /// An empty queue that puts a message aside after `max_attempts` deliveries.
    pub fn new(clock: Arc<dyn Clock>, seed: u64, faults: Faults, max_attempts: u32) -> Self {
        Self { clock, fate: Fate::new(seed, faults), max_attempts, state: Mutex::default(), bell: Notify::new() }
    }

    /// Whether nothing waits, is in flight or is delayed. What was put aside and what comes again although it was
    /// acknowledged do not count.
    pub fn is_empty(&self) -> bool {
        self.lock().waiting.iter().all(|waiting| waiting.is_ghost)
    }

    /// What waits, is in flight or is delayed, in the order of sending.
    pub fn messages(&self) -> Vec<Outgoing> {
        let state = self.lock();
        state.waiting.iter().filter(|waiting| !waiting.is_ghost).map(|waiting| waiting.message.clone()).collect()
    }

    /// What was put aside.
    pub fn dead(&self) -> Vec<DeadLetter> {
        self.lock().dead.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends deliveries whose time is over and puts aside what has used up its attempts.
    fn advance(&self, state: &mut State, now: Timestamp) {
        let State { waiting, dead, .. } = state;
        waiting.retain_mut(|waiting| {
            if waiting.hidden_until <= now {
                waiting.delivery = None;
                let used_up = waiting.attempts >= self.max_attempts;
                if used_up && !waiting.is_ghost {
                    dead.push(DeadLetter { message: waiting.message.clone(), attempts: waiting.attempts, at: now });
                }
                return !used_up;
            }
            true
        });
    }

    fn take(&self, state: &mut State, max: usize, visibility: Duration, now: Timestamp) -> Vec<Delivery> {
        let mut groups: Vec<String> = Vec::new();
        let mut taken = Vec::new();
        // The head of a group first, else its oldest due message.
        let mut order: Vec<usize> = (0..state.waiting.len()).collect();
        order.sort_by_key(|at| !state.waiting.get(*at).is_some_and(|waiting| waiting.is_head));
        for at in order {
            let Some(waiting) = state.waiting.get_mut(at) else { continue };
            if taken.len() == max {
                break;
            }
            if groups.contains(&waiting.message.group) {
                continue;
            }
            let is_hidden = waiting.hidden_until > now;
            if is_hidden && !waiting.is_head {
                continue;
            }
            groups.push(waiting.message.group.clone());
            if is_hidden {
                // In flight or resting: nothing of its group may be delivered.
                continue;
            }
            let early = self.fate.chance(|faults| faults.early_timeout);
            let visible_after = match early {
                true => Duration::from_millis(self.fate.draw(|random| random.below(visibility.as_millis() as u64))),
                false => visibility,
            };
            state.deliveries += 1;
            waiting.attempts += 1;
            waiting.hidden_until = now + visible_after;
            waiting.delivery = Some(state.deliveries);
            waiting.is_head = true;
            taken.push(Delivery {
                group: waiting.message.group.clone(),
                id: waiting.message.id.clone(),
                body: waiting.message.body.clone(),
                attempt: waiting.attempts,
                receipt: Receipt(state.deliveries.to_string()),
            });
        }
        taken
    }

    /// Changes the message of a delivery that is in flight; false when there is none.
    fn settle(&self, receipt: &Receipt, change: impl FnOnce(&mut State, usize, Timestamp)) -> bool {
        let now = self.clock.now();
        let mut state = self.lock();
        self.advance(&mut state, now);
        let number = receipt.0.parse::<u64>().ok();
        let found = state.waiting.iter().position(|waiting| number.is_some() && waiting.delivery == number);
        let Some(at) = found else { return false };
        change(&mut state, at, now);
        drop(state);
        // Every waiter looks again; there are few, and it spawns nothing.
        self.bell.notify_waiters();
        true
    }
}

#[async_trait]
impl Queue for FakeQueue {
    async fn send(&self, messages: Vec<Outgoing>) -> Result<()> {
        validate::messages(&messages)?;
        self.fate.before(WHAT).await?;
        {
            let now = self.clock.now();
            let mut state = self.lock();
            state.sent.retain(|(_, _, until)| *until > now);
            for message in messages {
                if state.sent.iter().any(|(group, id, _)| (group, id) == (&message.group, &message.id)) {
                    continue;
                }
                state.sent.push((message.group.clone(), message.id.clone(), now + REMEMBERED));
                state.waiting.push(Waiting {
                    hidden_until: message.deliver_at.unwrap_or(now),
                    message,
                    attempts: 0,
                    delivery: None,
                    is_head: false,
                    is_ghost: false,
                });
            }
        }
        self.bell.notify_waiters();
        self.fate.after(WHAT, ()).await
    }

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
                    // Not `after`: whoever drops the call must lose nothing, so nothing is awaited from here on.
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

    async fn ack(&self, receipt: &Receipt) -> Result<bool> {
        self.fate.before(WHAT).await?;
        let comes_again = self.fate.chance(|faults| faults.duplicate);
        let later = Duration::from_millis(self.fate.draw(|random| if comes_again { random.below(30_000) } else { 0 }));
        let settled = self.settle(receipt, |state, at, now| {
            if let Some(waiting) = state.waiting.get_mut(at).filter(|waiting| comes_again && !waiting.is_ghost) {
                waiting.is_ghost = true;
                waiting.is_head = false;
                waiting.delivery = None;
                waiting.hidden_until = now + later;
            } else {
                state.waiting.remove(at);
            }
        });
        self.fate.after(WHAT, settled).await
    }

    async fn extend(&self, receipt: &Receipt, visibility: Duration) -> Result<bool> {
        self.fate.before(WHAT).await?;
        let extended = self.settle(receipt, |state, at, now| {
            if let Some(waiting) = state.waiting.get_mut(at) {
                waiting.hidden_until = now + visibility;
            }
        });
        self.fate.after(WHAT, extended).await
    }

    async fn reject(&self, receipt: &Receipt, delay: Duration) -> Result<bool> {
        self.fate.before(WHAT).await?;
        let rejected = self.settle(receipt, |state, at, now| {
            if let Some(waiting) = state.waiting.get_mut(at) {
                waiting.delivery = None;
                waiting.hidden_until = now + delay;
            }
        });
        self.fate.after(WHAT, rejected).await
    }

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
                is_head: false,
                is_ghost: false,
            }));
            count
        };
        self.bell.notify_waiters();
        self.fate.after(WHAT, count).await
    }
}
