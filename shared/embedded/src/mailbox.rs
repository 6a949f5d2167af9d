//! What the queue keeps in memory: which messages wait, by number only, and which delivery is in flight.
//!
//! Nothing here does I/O or waits, so every rule of the order is in one place. Visibility and rests are measured by the
//! monotonic clock, because they are lengths; `deliver_at` is a date, so it is compared with the date.

use crate::messages::Lazy;
use domain::Timestamp;
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

/// A message that is now in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub seq: i64,
    pub group: String,
    pub deliver_at: Option<Timestamp>,
    pub attempts: u32,
}

/// A message that was just taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub seq: i64,
    pub group: Arc<str>,
    pub attempt: u32,
    /// Of this delivery; its receipt.
    pub number: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    max_attempts: u32,
    groups: HashMap<Arc<str>, Group>,
    /// Groups that have something to deliver now, the longest waiting first.
    ready: VecDeque<Arc<str>>,
    /// Messages whose date has not come.
    delayed: BTreeMap<(Timestamp, i64), (Arc<str>, u32)>,
    /// When a head comes free.
    timers: BTreeSet<(Instant, Arc<str>)>,
    deliveries: u64,
    /// What the store must be told, in order.
    pub lazy: Vec<(i64, Lazy)>,
    /// How many waiters have a reason to look.
    pub wakes: usize,
    pub closed: bool,
}

#[derive(Debug, Default)]
struct Group {
    /// Due messages by number, with their attempts. The head is not among them.
    due: BTreeMap<i64, u32>,
    /// The message that was delivered and not settled: whatever falls due meanwhile, it stays the first one.
    head: Option<Head>,
    /// Whether the group is in `ready`.
    queued: bool,
}

#[derive(Debug)]
struct Head {
    seq: i64,
    attempts: u32,
    held: Held,
}

#[derive(Clone, Copy, Debug)]
enum Held {
    /// Somebody works on it.
    InFlight { number: u64, until: Instant },
    /// It was given back, to come again later.
    Resting,
    /// It may be delivered again.
    Free,
}

impl Mailbox {
    pub fn new(max_attempts: u32) -> Self {
        Self { max_attempts: max_attempts.max(1), ..Self::default() }
    }

    /// Messages of the store that nobody has taken yet.
    pub fn arrive(&mut self, arrivals: Vec<Arrival>, today: Timestamp) {
        for Arrival { seq, group, deliver_at, attempts } in arrivals {
            let group: Arc<str> = match self.groups.get_key_value(group.as_str()) {
                Some((known, _)) => known.clone(),
                None => group.into(),
            };
            match deliver_at.filter(|at| *at > today) {
                Some(at) => {
                    self.delayed.insert((at, seq), (group, attempts));
                    self.wakes += 1;
                }
                None => self.fall_due(group, seq, attempts, today),
            }
        }
    }

    /// Lets time pass: frees heads whose time is over and takes in delayed messages whose date has come.
    pub fn advance(&mut self, now: Instant, today: Timestamp) {
        while self.timers.first().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, group)) = self.timers.pop_first() {
                self.free_head(&group, today);
            }
        }
        while let Some(entry) = self.delayed.first_entry().filter(|entry| entry.key().0 <= today) {
            let ((_, seq), (group, attempts)) = entry.remove_entry();
            self.fall_due(group, seq, attempts, today);
        }
    }

    /// Takes the next message of the group that waits longest.
    pub fn take(&mut self, now: Instant, visibility: Duration) -> Option<Taken> {
        let name = self.ready.pop_front()?;
        let group = self.groups.get_mut(&name)?;
        group.queued = false;
        let (seq, attempts) =
            group.head.take().map(|head| (head.seq, head.attempts)).or_else(|| group.due.pop_first())?;
        let attempt = attempts.saturating_add(1);
        let until = now + visibility.min(LONGEST);
        self.deliveries += 1;
        let number = self.deliveries;
        group.head = Some(Head { seq, attempts: attempt, held: Held::InFlight { number, until } });
        self.timers.insert((until, name.clone()));
        self.lazy.push((seq, Lazy::Attempts(attempt)));
        Some(Taken { seq, group: name, attempt, number })
    }

    /// The delivery is done.
    pub fn settle(&mut self, group: &str, number: u64) -> bool {
        let Some(name) = self.in_flight(group, number) else { return false };
        if let Some(head) = self.groups.get_mut(&name).and_then(|group| group.head.take()) {
            self.lazy.push((head.seq, Lazy::Settled));
        }
        self.offer(name);
        true
    }

    /// The delivery needs more time.
    pub fn extend(&mut self, group: &str, number: u64, now: Instant, visibility: Duration) -> bool {
        let until = now + visibility.min(LONGEST);
        self.hold(group, number, Held::InFlight { number, until }, until)
    }

    /// The delivery failed; the message comes again after `delay`.
    pub fn reject(&mut self, group: &str, number: u64, now: Instant, delay: Duration, today: Timestamp) -> bool {
        let until = now + delay.min(LONGEST);
        let held = self.hold(group, number, Held::Resting, until);
        if held {
            self.advance(now, today);
        }
        held
    }

    /// How long nothing will happen by itself; none: until something is sent.
    pub fn quiet_for(&self, now: Instant, today: Timestamp) -> Option<Duration> {
        let timer = self.timers.first().map(|(until, _)| until.saturating_duration_since(now));
        let date = self.delayed.first_key_value().map(|((at, _), _)| at.since(today).min(DATE_CHECK));
        [timer, date].into_iter().flatten().min()
    }

    /// How many messages wait, and how many are in flight.
    pub fn counts(&self) -> (usize, usize) {
        let in_flight = self.groups.values().filter(|group| group.in_flight()).count();
        let heads = self.groups.values().filter(|group| group.head.is_some()).count();
        let due: usize = self.groups.values().map(|group| group.due.len()).sum();
        (self.delayed.len() + due + heads - in_flight, in_flight)
    }

    fn fall_due(&mut self, group: Arc<str>, seq: i64, attempts: u32, today: Timestamp) {
        if attempts >= self.max_attempts {
            self.lazy.push((seq, Lazy::Dead { attempts, at: today }));
            return;
        }
        self.groups.entry(group.clone()).or_default().due.insert(seq, attempts);
        self.offer(group);
    }

    fn free_head(&mut self, name: &Arc<str>, today: Timestamp) {
        let Some(group) = self.groups.get_mut(name) else { return };
        if let Some(head) = &mut group.head {
            if head.attempts >= self.max_attempts {
                self.lazy.push((head.seq, Lazy::Dead { attempts: head.attempts, at: today }));
                group.head = None;
            } else {
                head.held = Held::Free;
            }
        }
        self.offer(name.clone());
    }

    /// Puts a group where it belongs now: among the ready ones, or away when nothing is left of it.
    fn offer(&mut self, name: Arc<str>) {
        let Some(group) = self.groups.get_mut(&name) else { return };
        match &group.head {
            Some(Head { held: Held::InFlight { .. } | Held::Resting, .. }) => {}
            None if group.due.is_empty() => {
                self.groups.remove(&name);
            }
            Some(Head { held: Held::Free, .. }) | None => {
                if !group.queued {
                    group.queued = true;
                    self.ready.push_back(name);
                    self.wakes += 1;
                }
            }
        }
    }

    /// The group's name, if this delivery is in flight; its timer is taken down.
    fn in_flight(&mut self, group: &str, number: u64) -> Option<Arc<str>> {
        let (name, state) = self.groups.get_key_value(group)?;
        match state.head {
            Some(Head { held: Held::InFlight { number: current, until }, .. }) if current == number => {
                let name = name.clone();
                self.timers.remove(&(until, name.clone()));
                Some(name)
            }
            _ => None,
        }
    }

    fn hold(&mut self, group: &str, number: u64, held: Held, until: Instant) -> bool {
        let Some(name) = self.in_flight(group, number) else { return false };
        if let Some(head) = self.groups.get_mut(&name).and_then(|group| group.head.as_mut()) {
            head.held = held;
        }
        self.timers.insert((until, name));
        self.wakes += 1;
        true
    }
}

impl Group {
    fn in_flight(&self) -> bool {
        matches!(self.head, Some(Head { held: Held::InFlight { .. }, .. }))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const TODAY: Timestamp = Timestamp::from_millis(1_000_000);
    const VISIBLE: Duration = Duration::from_secs(30);

    fn arrival(seq: i64, group: &str) -> Arrival {
        Arrival { seq, group: group.into(), deliver_at: None, attempts: 0 }
    }

    #[test]
    fn what_falls_due_meanwhile_does_not_overtake_a_message_that_was_delivered() {
        let (mut mailbox, now) = (Mailbox::new(5), Instant::now());
        let later = Arrival { deliver_at: Some(TODAY + VISIBLE), ..arrival(1, "a") };
        mailbox.arrive(vec![later, arrival(2, "a")], TODAY);
        assert_eq!(mailbox.take(now, VISIBLE).unwrap().seq, 2);
        mailbox.advance(now + VISIBLE, TODAY + VISIBLE);
        let again = mailbox.take(now + VISIBLE, VISIBLE).unwrap();
        assert_eq!((again.seq, again.attempt), (2, 2));
        assert!(mailbox.settle("a", again.number));
        assert_eq!(mailbox.take(now + VISIBLE, VISIBLE).unwrap().seq, 1);
    }

    #[test]
    fn nothing_is_left_of_a_group_whose_messages_are_settled() {
        let (mut mailbox, now) = (Mailbox::new(5), Instant::now());
        mailbox.arrive(vec![arrival(1, "a")], TODAY);
        let taken = mailbox.take(now, VISIBLE).unwrap();
        assert_eq!(mailbox.counts(), (0, 1));
        assert!(mailbox.settle("a", taken.number));
        assert!(!mailbox.settle("a", taken.number), "a receipt settles once");
        assert!(mailbox.groups.is_empty() && mailbox.timers.is_empty() && mailbox.ready.is_empty());
        assert_eq!(mailbox.quiet_for(now, TODAY), None);
    }

    #[test]
    fn used_up_attempts_of_an_earlier_process_count() {
        let mut mailbox = Mailbox::new(5);
        mailbox.arrive(vec![Arrival { attempts: 5, ..arrival(1, "a") }], TODAY);
        assert_eq!(mailbox.lazy, [(1, Lazy::Dead { attempts: 5, at: TODAY })]);
        assert_eq!(mailbox.take(Instant::now(), VISIBLE), None);
    }
}
