//! The queue's state in memory: the waiting messages by number, and the deliveries in flight.
//!
//! A short message that was just sent also has its content here until its first delivery, within a bound for all of them: nearly every message is
//! delivered at once. Any other delivery reads the row, which is the truth.
//!
//! Nothing here does I/O or waits, so every rule of the order is in one place. Visibility and rests are measured by the
//! monotonic clock, because they are lengths; `deliver_at` is a date, so it is compared with the date. When the clock is set back, the messages that wait then
//! also get a limit by the monotonic clock: none waits longer than it would have.

use crate::{
    lanes::{LanePosition, Lanes, ReadyKey},
    messages::{Arrival, DeferredWrite, MessageContent},
};
use domain::Timestamp;
use ports::{MAX_BATCH, URGENT};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// No visibility is longer; it keeps sums of instants away from their end.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// A sleeping machine stops the monotonic clock, and a person may set the date: a wait for a date is looked at again after this.
const DATE_CHECK: Duration = Duration::from_secs(60);
/// A date that is less than this before the last one is of another thread, or of a clock that is corrected a little.
const SET_BACK: Duration = Duration::from_secs(1);
/// The most bytes of contents in memory.
const MOST_KEPT: usize = 4 * 1024 * 1024;

/// A message that was just taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TakenMessage {
    pub seq: i64,
    pub group: Arc<str>,
    pub attempt: u32,
    /// Of this delivery; its receipt.
    pub number: u64,
    /// The place of its group, if this delivery is the counted one of its batch.
    pub place: Option<usize>,
    /// Its content; none if it has to be read.
    pub content: Option<MessageContent>,
}

#[derive(Debug)]
pub(crate) struct Mailbox {
    max_attempts: u32,
    groups: HashMap<Arc<str>, Group>,
    /// Groups that have something to deliver now.
    lanes: Lanes,
    /// Messages with a date in the future.
    delayed: BTreeMap<(Timestamp, i64), (Arc<str>, Message)>,
    /// The latest moments of delivery of the messages that waited when the clock was set back, with their dates. Some of these messages may be gone.
    limits: BTreeMap<(Instant, i64), Timestamp>,
    /// When a group that is in flight or rests may be delivered again.
    timers: BTreeSet<(Instant, Arc<str>)>,
    deliveries: u64,
    /// The bytes of all contents here.
    kept: usize,
    /// The places of groups in flight: how many there are, and those that are free.
    all_places: usize,
    free_places: Vec<usize>,
    /// The date of the last call.
    today: Timestamp,
    /// The time that has passed by these dates, in milliseconds: the waiting of groups is measured by it. It never goes back, not even with the clock:
    /// otherwise groups that become ready after the clock was set back would go before all that wait.
    passed: i64,
    /// Changes for the store to note, in order.
    pub lazy: Vec<(i64, DeferredWrite)>,
    /// How many waiters have a reason to look.
    pub wakes: usize,
    pub closed: bool,
}

#[derive(Debug, Default)]
struct Group {
    /// Messages that were delivered and not settled, in order: they stay the first ones, also when others fall due meanwhile.
    taken: VecDeque<Message>,
    /// The other due messages by number.
    due: BTreeMap<i64, Message>,
    /// While some of those taken are in flight or rest: until when nothing of the group is delivered.
    until: Option<Instant>,
    /// Until when those that were given back rest, once those before them, which are in flight, are settled.
    rests: Option<Instant>,
    /// Its position among the ready ones.
    ready: Option<LanePosition>,
    /// Its place among the groups in flight, while it counts as one.
    flies: Option<usize>,
    /// How many urgent messages it has.
    urgent: usize,
    /// How many of its messages its lane counts as waiting.
    counted: usize,
}

#[derive(Debug)]
struct Message {
    seq: i64,
    priority: i8,
    /// How often it was the first of a batch.
    attempts: u32,
    /// The delivery in flight.
    delivery: Option<u64>,
    /// Its content, until its first delivery.
    content: Option<MessageContent>,
}

impl Mailbox {
    /// Of messages that are put aside after so many attempts, for a worker that drives so many groups at once.
    pub fn new(max_attempts: u32, places: usize) -> Self {
        Self {
            max_attempts: max_attempts.max(1),
            groups: HashMap::new(),
            lanes: Lanes::new(places),
            delayed: BTreeMap::new(),
            limits: BTreeMap::new(),
            timers: BTreeSet::new(),
            deliveries: 0,
            kept: 0,
            all_places: 0,
            free_places: Vec::new(),
            today: Timestamp::default(),
            passed: 0,
            lazy: Vec::new(),
            wakes: 0,
            closed: false,
        }
    }

    /// Adds messages of the store that were never delivered.
    pub fn arrive(&mut self, arrivals: Vec<Arrival>, today: Timestamp) {
        self.pass(Instant::now(), today);
        for Arrival { seq, group, deliver_at, priority, attempts, content } in arrivals {
            let group: Arc<str> = match self.groups.get_key_value(group.as_str()) {
                Some((known, _)) => known.clone(),
                None => group.into(),
            };
            let content = content.filter(|content| self.kept + content.bytes() <= MOST_KEPT);
            self.kept += content.as_ref().map_or(0, MessageContent::bytes);
            let message = Message { seq, priority, attempts, delivery: None, content };
            match deliver_at.filter(|at| *at > today) {
                Some(at) => {
                    self.delayed.insert((at, seq), (group, message));
                    self.wakes += 1;
                }
                None => self.fall_due(group, message, today),
            }
        }
    }

    /// Lets time pass: frees groups whose time is over and takes in delayed messages whose date has come.
    pub fn advance(&mut self, now: Instant, today: Timestamp) {
        self.pass(now, today);
        while self.timers.first().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, group)) = self.timers.pop_first() {
                self.free(group, today);
            }
        }
        while let Some(entry) = self.delayed.first_entry().filter(|entry| entry.key().0 <= today) {
            let (group, message) = entry.remove();
            self.fall_due(group, message, today);
        }
        while let Some(entry) = self.limits.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, seq), at) = entry.remove_entry();
            if let Some((group, message)) = self.delayed.remove(&(at, seq)) {
                self.fall_due(group, message, today);
            }
        }
    }

    /// From now on only groups with something urgent are delivered; or all of them again. Waiting messages are not tried meanwhile.
    pub fn only_urgent(&mut self, only: bool) {
        self.wakes += self.lanes.only_urgent(only);
    }

    /// Takes the next messages, at most `max`, of the group with the next turn.
    pub fn take(&mut self, now: Instant, visibility: Duration, max: usize) -> Vec<TakenMessage> {
        let Some(name) = self.lanes.next() else { return Vec::new() };
        let Some(group) = self.groups.get_mut(&name) else { return Vec::new() };
        group.ready = None;
        let place = *group.flies.get_or_insert_with(|| {
            self.free_places.pop().unwrap_or_else(|| {
                self.all_places += 1;
                self.all_places - 1
            })
        });
        let batch = group.batch(max.min(MAX_BATCH));
        let mut taken = Vec::with_capacity(batch);
        for (position, message) in group.taken.iter_mut().take(batch).enumerate() {
            if position == 0 {
                message.attempts = message.attempts.saturating_add(1);
            }
            self.deliveries += 1;
            let number = self.deliveries;
            message.delivery = Some(number);
            let content = message.content.take();
            self.kept = self.kept.saturating_sub(content.as_ref().map_or(0, MessageContent::bytes));
            taken.push(TakenMessage {
                seq: message.seq,
                group: name.clone(),
                attempt: message.attempts.max(1),
                number,
                place: (position == 0).then_some(place),
                content,
            });
        }
        self.hold(&name, now + visibility.min(LONGEST));
        self.offer(name);
        taken
    }

    /// The deliveries are done.
    pub fn settle(&mut self, group: &str, numbers: &[u64]) -> bool {
        let Some((name, group)) = self.known(group) else { return false };
        let (mut settled, mut gone) = (Vec::with_capacity(numbers.len()), 0);
        group.taken.retain(|message| {
            let is_one = message.delivery.is_some_and(|number| numbers.contains(&number));
            settled.extend(is_one.then_some((message.seq, DeferredWrite::Settled)));
            gone += usize::from(is_one && message.priority == URGENT);
            !is_one
        });
        group.urgent = group.urgent.saturating_sub(gone);
        let all = settled.len() == numbers.len();
        if !settled.is_empty() && !group.in_flight() {
            match group.rests.take() {
                Some(until) => {
                    self.hold(&name, until);
                    self.wakes += 1;
                }
                None => self.release(&name),
            }
            self.land(&name);
        }
        self.lazy.append(&mut settled);
        self.offer(name);
        all
    }

    /// The deliveries need more time, and get it for their whole batch.
    pub fn extend(&mut self, group: &str, numbers: &[u64], now: Instant, visibility: Duration) -> bool {
        let Some((name, group)) = self.known(group) else { return false };
        let found = numbers.iter().filter(|number| group.holds(**number)).count();
        if found > 0 {
            self.hold(&name, now + visibility.min(LONGEST));
            self.wakes += 1;
        }
        found == numbers.len()
    }

    /// The deliveries failed; they and those behind them come again after `delay`, and not before those in front of them are settled.
    pub fn reject(&mut self, group: &str, numbers: &[u64], now: Instant, delay: Duration, today: Timestamp) -> bool {
        let Some((name, group)) = self.known(group) else { return false };
        let found = numbers.iter().filter(|number| group.holds(**number)).count();
        let is_one = |message: &Message| message.delivery.is_some_and(|number| numbers.contains(&number));
        let first = group.taken.iter().position(is_one).unwrap_or(group.taken.len());
        group.taken.iter_mut().skip(first).for_each(|message| message.delivery = None);
        let until = now + delay.min(LONGEST);
        if found > 0 && group.in_flight() {
            group.rests = (delay > Duration::ZERO).then_some(until);
        } else if found > 0 {
            self.hold(&name, until);
            self.land(&name);
            self.wakes += 1;
            self.advance(now, today);
        }
        found == numbers.len()
    }

    /// How long nothing will happen by itself; none: until something is sent.
    pub fn quiet_for(&self, now: Instant, today: Timestamp) -> Option<Duration> {
        let timer = self.timers.first().map(|(until, _)| until.saturating_duration_since(now));
        let date = self.delayed.first_key_value().map(|((at, _), _)| at.since(today).min(DATE_CHECK));
        let limit = self.limits.first_key_value().map(|((until, _), _)| until.saturating_duration_since(now));
        [timer, date, limit].into_iter().flatten().min()
    }

    /// How many messages wait, and how many are in flight.
    pub fn counts(&self) -> (usize, usize) {
        let in_flight = |group: &Group| group.taken.iter().filter(|message| message.delivery.is_some()).count();
        let in_flight: usize = self.groups.values().map(in_flight).sum();
        let here: usize = self.groups.values().map(|group| group.taken.len() + group.due.len()).sum();
        (self.delayed.len() + here - in_flight, in_flight)
    }

    /// How many messages of a lane are due and not in flight.
    pub fn waiting(&self, lane: &str) -> usize {
        self.lanes.waiting(lane)
    }

    fn pass(&mut self, now: Instant, today: Timestamp) {
        if self.today.since(today) >= SET_BACK && !self.delayed.is_empty() {
            let last = self.today;
            let limit = |(at, seq): &(Timestamp, i64)| ((now + at.since(last).min(LONGEST), *seq), *at);
            self.limits.extend(self.delayed.keys().map(limit));
            self.wakes += 1;
        }
        let more = i64::try_from(today.since(self.today).as_millis()).unwrap_or(i64::MAX);
        (self.today, self.passed) = (today, self.passed.saturating_add(more));
    }

    fn fall_due(&mut self, group: Arc<str>, message: Message, today: Timestamp) {
        if message.attempts >= self.max_attempts {
            self.put_aside(&group, message, today);
            return;
        }
        let entry = self.groups.entry(group.clone()).or_default();
        let is_urgent = message.priority == URGENT;
        entry.due.insert(message.seq, message);
        if is_urgent {
            entry.urgent += 1;
            if let Some(place) = entry.ready {
                entry.ready = Some(self.lanes.hurry(group.clone(), place));
                self.wakes += 1;
            }
        }
        self.offer(group);
    }

    /// Makes a dead letter of a message: it waits for an operator.
    fn put_aside(&mut self, group: &str, Message { seq, attempts, content, .. }: Message, today: Timestamp) {
        self.kept = self.kept.saturating_sub(content.as_ref().map_or(0, MessageContent::bytes));
        tracing::error!(group, attempts, "a message is put aside after too many attempts: it is a dead letter");
        self.lazy.push((seq, DeferredWrite::Dead { attempts, at: today }));
    }

    /// The time of a group is over: its messages in flight come again, or are put aside.
    fn free(&mut self, name: Arc<str>, today: Timestamp) {
        let Some(group) = self.groups.get_mut(&name) else { return };
        (group.until, group.rests) = (None, None);
        group.taken.iter_mut().for_each(|message| message.delivery = None);
        // Only the first of a batch is counted, so only the first one can have used up its attempts.
        if group.taken.front().is_some_and(|first| first.attempts >= self.max_attempts)
            && let Some(first) = group.taken.pop_front()
        {
            group.urgent = group.urgent.saturating_sub(usize::from(first.priority == URGENT));
            self.put_aside(&name, first, today);
        }
        self.land(&name);
        self.offer(name);
    }

    /// Takes a group out of flight.
    fn land(&mut self, name: &Arc<str>) {
        let Some(group) = self.groups.get_mut(name) else { return };
        let Some(place) = group.flies.take() else { return };
        self.free_places.push(place);
        // The count of a message that stays is noted at this place only, and another group gets the place now.
        let left = group.taken.front().filter(|message| message.attempts > 0);
        self.lazy.extend(left.map(|message| (message.seq, DeferredWrite::Attempts(message.attempts))));
        if self.lanes.landed(name) {
            self.wakes += 1;
        }
    }

    /// Updates the place of a group: among the ready ones, or removed when nothing is left of it.
    fn offer(&mut self, name: Arc<str>) {
        let Some(group) = self.groups.get_mut(&name) else { return };
        let here = group.taken.len() + group.due.len();
        let waiting = if group.until.is_some() { group.due.len() } else { here };
        self.lanes.recount(&name, std::mem::replace(&mut group.counted, waiting), waiting);
        if here == 0 {
            self.groups.remove(&name);
        } else if group.until.is_none() && group.ready.is_none() {
            let priority = group.first().map_or(0, |message| message.priority);
            let key = ReadyKey { urgent: group.urgent > 0, priority, since: self.passed };
            group.ready = Some(self.lanes.add(name, key));
            self.wakes += 1;
        }
    }

    fn known(&mut self, group: &str) -> Option<(Arc<str>, &mut Group)> {
        let name = self.groups.get_key_value(group)?.0.clone();
        let group = self.groups.get_mut(&name)?;
        Some((name, group))
    }

    /// Nothing of the group is delivered until then.
    fn hold(&mut self, name: &Arc<str>, until: Instant) {
        self.release(name);
        if let Some(group) = self.groups.get_mut(name) {
            group.until = Some(until);
            self.timers.insert((until, name.clone()));
        }
    }

    fn release(&mut self, name: &Arc<str>) {
        if let Some(until) = self.groups.get_mut(name).and_then(|group| group.until.take()) {
            self.timers.remove(&(until, name.clone()));
        }
    }
}

impl Group {
    fn in_flight(&self) -> bool {
        self.taken.iter().any(|message| message.delivery.is_some())
    }

    fn holds(&self, number: u64) -> bool {
        self.taken.iter().any(|message| message.delivery == Some(number))
    }

    fn first(&self) -> Option<&Message> {
        self.taken.front().or_else(|| self.due.first_key_value().map(|(_, message)| message))
    }

    /// Brings the next batch to the front of the taken messages and returns its length. A message that was tried before comes alone, so
    /// that a failure can be blamed on it.
    fn batch(&mut self, max: usize) -> usize {
        let mut batch = 0;
        while batch < max {
            if batch == self.taken.len() {
                let Some(next) = self.due.first_entry().filter(|next| batch == 0 || next.get().attempts == 0) else {
                    break;
                };
                self.taken.push_back(next.remove());
            }
            let Some(message) = self.taken.get(batch) else { break };
            if message.attempts > 0 {
                return batch.max(1);
            }
            batch += 1;
        }
        batch
    }
}

#[cfg(test)]
mod tests;
