//! Places: whose command begins next, and who waits for it. A pure machine: what time it is comes from outside.
//!
//! - A machine has so many places. A workspace takes one while it holds fewer than [`Rules::share`] times those that are free. So one
//!   that runs as much as it can leaves some to the next one, which leaves some to a third.
//! - A place that becomes free goes to the workspace that holds the fewest, and of equals to the one that was served longest ago: who
//!   comes with one command waits for one place at the most, however many of another's wait.
//! - Within a workspace the first to come goes first. A point of priority is worth [some waiting](ports::POINT): a higher
//!   one that comes later overtakes, and nobody waits for ever.
//! - A place is granted only while somebody listens, so that none stands empty for whoever has gone away; and one under which nothing
//!   begins is free again after a while.

use domain::{CallId, WorkspaceId};
use ports::Grant;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use uuid::Uuid;

/// What calls are kept under: a call is its workspace's own.
pub(crate) type Key = (WorkspaceId, CallId);

/// For how long a place is kept for a command that has not begun, and a turn for one that nobody has asked about since.
pub(crate) const KEPT: Duration = Duration::from_secs(60);

/// How places are given.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// How many there are.
    pub at_once: usize,
    /// How many a workspace may hold for each that is free; all where one has the machine for itself.
    pub share: Option<usize>,
    /// How many commands of a workspace may wait.
    pub waiting: usize,
}

/// Places, and who waits for one.
#[derive(Debug)]
pub(crate) struct Places {
    rules: Rules,
    machine: Uuid,
    since: Instant,
    /// Grows with whatever has to be told apart or put in an order.
    counter: u64,
    held: HashMap<Key, Held>,
    waiting: HashMap<Key, Waiting>,
    workspaces: HashMap<WorkspaceId, Tenant>,
    /// None is granted any more.
    closed: bool,
    /// Granted since somebody [looked](Self::granted).
    fresh: Vec<(Key, u64)>,
}

#[derive(Debug)]
struct Held {
    number: u64,
    /// Until when it is kept for a command that has not begun; none for one that has.
    until: Option<Instant>,
}

#[derive(Debug)]
struct Waiting {
    turn: Turn,
    asked: Instant,
    listeners: usize,
    wake: Arc<Notify>,
}

/// When it is served, within its workspace.
type Turn = (i64, u64);

#[derive(Debug, Default)]
struct Tenant {
    holds: usize,
    served: u64,
    queue: BTreeMap<Turn, CallId>,
}

/// What comes of asking.
#[derive(Debug)]
pub(crate) enum Asked {
    Granted(Grant),
    /// It is in the queue. Whoever asked [listens](Places::done_listening) from now on, and is woken when there is something to see.
    Waits(Arc<Notify>),
    Full(usize),
}

impl Places {
    pub fn new(rules: Rules, machine: Uuid, now: Instant) -> Self {
        Self {
            rules,
            machine,
            since: now,
            counter: 0,
            held: HashMap::new(),
            waiting: HashMap::new(),
            workspaces: HashMap::new(),
            closed: false,
            fresh: Vec::new(),
        }
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// A grant of this machine.
    pub fn grant(&self, number: u64) -> Grant {
        Grant { machine: self.machine, number }
    }

    /// Asks for a place.
    pub fn ask(&mut self, key: Key, priority: i8, now: Instant) -> Asked {
        if let Some(grant) = self.renew(&key, now) {
            return Asked::Granted(grant);
        }
        if !self.waiting.contains_key(&key) {
            if let Some(waiting) = self.is_full(key.0, now) {
                return Asked::Full(waiting);
            }
            let came = i64::try_from(now.saturating_duration_since(self.since).as_millis()).unwrap_or(i64::MAX);
            let turn = (ports::rank(came, priority), self.next());
            self.workspaces.entry(key.0).or_default().queue.insert(turn, key.1);
            self.waiting.insert(key, Waiting { turn, asked: now, listeners: 0, wake: Arc::default() });
        }
        let wake = self.waiting.get_mut(&key).map(|waiting| {
            (waiting.asked, waiting.listeners) = (now, waiting.listeners + 1);
            waiting.wake.clone()
        });
        self.serve(now);
        match (self.renew(&key, now), wake) {
            (Some(grant), _) => Asked::Granted(grant),
            (None, Some(wake)) => Asked::Waits(wake),
            // It was put there above.
            (None, None) => Asked::Full(0),
        }
    }

    /// Whoever asked does not listen any more.
    pub fn done_listening(&mut self, key: &Key) {
        if let Some(waiting) = self.waiting.get_mut(key) {
            waiting.listeners = waiting.listeners.saturating_sub(1);
        }
    }

    /// The place that a call holds, kept for it anew.
    pub fn renew(&mut self, key: &Key, now: Instant) -> Option<Grant> {
        let held = self.held.get_mut(key)?;
        if let Some(until) = &mut held.until {
            *until = now + KEPT;
        }
        Some(Grant { machine: self.machine, number: held.number })
    }

    /// How many of its workspace are before a call; none when it does not wait.
    pub fn ahead(&self, key: &Key) -> Option<usize> {
        let turn = self.waiting.get(key)?.turn;
        Some(self.workspaces.get(&key.0)?.queue.range(..turn).count())
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A command begins under this grant; false when it does not hold it (any more).
    pub fn begin(&mut self, key: &Key, number: u64) -> bool {
        match self.held.get_mut(key) {
            Some(held) if held.number == number && held.until.is_some() => {
                held.until = None;
                true
            }
            _ => false,
        }
    }

    /// A call has ended, or will not begin: its place is another's, and so is its turn.
    pub fn release(&mut self, key: &Key, now: Instant) {
        if self.held.remove(key).is_some() {
            self.less(key.0, |tenant| tenant.holds = tenant.holds.saturating_sub(1));
            self.serve(now);
        }
        self.forget(key);
    }

    /// The command that began under this grant has ended, or could not be started.
    pub fn ended(&mut self, key: &Key, number: u64, now: Instant) {
        if self.held.get(key).is_some_and(|held| held.number == number) {
            self.release(key, now);
        }
    }

    /// A place under which nothing has begun for too long is another's. When to look again, where it was asked for meanwhile.
    pub fn lapse(&mut self, key: &Key, number: u64, now: Instant) -> Option<Instant> {
        let until = self.held.get(key).filter(|held| held.number == number)?.until?;
        if until > now {
            return Some(until);
        }
        self.release(key, now);
        None
    }

    /// Nothing begins any more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// What was granted since somebody looked.
    pub fn granted(&mut self) -> Vec<(Key, u64)> {
        std::mem::take(&mut self.fresh)
    }

    /// How many of a workspace wait, when no more may.
    fn is_full(&mut self, workspace: WorkspaceId, now: Instant) -> Option<usize> {
        let most = self.rules.waiting;
        let queue = &self.workspaces.get(&workspace)?.queue;
        if queue.len() < most {
            return None;
        }
        let left: Vec<Key> =
            queue.values().map(|call| (workspace, *call)).filter(|key| self.is_left(key, now)).collect();
        left.iter().for_each(|key| self.forget(key));
        self.workspaces.get(&workspace).map(|tenant| tenant.queue.len()).filter(|waiting| *waiting >= most)
    }

    /// Whether nobody asks about a call any more.
    fn is_left(&self, key: &Key, now: Instant) -> bool {
        self.waiting.get(key).is_none_or(|waiting| waiting.listeners == 0 && waiting.asked + KEPT < now)
    }

    /// Takes a call out of the queue.
    fn forget(&mut self, key: &Key) {
        if let Some(waiting) = self.waiting.remove(key) {
            self.less(key.0, |tenant| {
                tenant.queue.remove(&waiting.turn);
            });
            waiting.wake.notify_waiters();
        }
    }

    fn less(&mut self, workspace: WorkspaceId, change: impl FnOnce(&mut Tenant)) {
        let Some(tenant) = self.workspaces.get_mut(&workspace) else { return };
        change(tenant);
        if tenant.holds == 0 && tenant.queue.is_empty() {
            self.workspaces.remove(&workspace);
        }
    }

    /// Gives what is free.
    fn serve(&mut self, now: Instant) {
        while !self.closed && self.held.len() < self.rules.at_once {
            let free = self.rules.at_once - self.held.len();
            let most = self.rules.share.map_or(self.rules.at_once, |share| share.max(1).saturating_mul(free));
            let mut next: Vec<(usize, u64, WorkspaceId)> = self
                .workspaces
                .iter()
                .filter(|(_, tenant)| !tenant.queue.is_empty() && tenant.holds < most)
                .map(|(workspace, tenant)| (tenant.holds, tenant.served, *workspace))
                .collect();
            next.sort_unstable();
            let Some(key) = next.into_iter().find_map(|(_, _, workspace)| self.first(workspace, now)) else { return };
            let number = self.next();
            if let Some(waiting) = self.waiting.remove(&key) {
                let tenant = self.workspaces.entry(key.0).or_default();
                tenant.queue.remove(&waiting.turn);
                (tenant.holds, tenant.served) = (tenant.holds + 1, number);
                waiting.wake.notify_waiters();
            }
            self.held.insert(key, Held { number, until: Some(now + KEPT) });
            self.fresh.push((key, number));
        }
    }

    /// The first of a workspace that somebody listens for. Those that nobody asks about any more are forgotten on the way.
    fn first(&mut self, workspace: WorkspaceId, now: Instant) -> Option<Key> {
        let (mut left, mut first) = (Vec::new(), None);
        for call in self.workspaces.get(&workspace)?.queue.values() {
            let key = (workspace, *call);
            if self.waiting.get(&key).is_some_and(|waiting| waiting.listeners > 0) {
                first = Some(key);
                break;
            }
            if self.is_left(&key, now) {
                left.push(key);
            }
        }
        left.iter().for_each(|key| self.forget(key));
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(workspace: u128, call: u128) -> Key {
        (WorkspaceId::from(Uuid::from_u128(workspace)), CallId::from(Uuid::from_u128(call)))
    }

    fn places(at_once: usize, share: Option<usize>) -> Places {
        Places::new(Rules { at_once, share, waiting: 100 }, Uuid::from_u128(7), Instant::now())
    }

    impl Places {
        fn comes(&mut self, key: Key, priority: i8, now: Instant) -> bool {
            matches!(self.ask(key, priority, now), Asked::Granted(_))
        }

        /// The calls that are granted next, when each place that becomes free goes on at once.
        fn drained(&mut self, running: &[Key], now: Instant) -> Vec<Key> {
            self.granted();
            let (mut running, mut order) = (running.to_vec(), Vec::new());
            while !running.is_empty() {
                let ended = running.remove(0);
                self.release(&ended, now);
                let fresh: Vec<Key> = self.granted().into_iter().map(|(key, _)| key).collect();
                order.extend(&fresh);
                running.extend(fresh);
            }
            order
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_workspace_waits_for_one_place_and_not_behind_anothers_queue() {
        let now = Instant::now();
        let mut places = places(4, None);
        let first: Vec<Key> = (0..4).map(|call| key(1, call)).collect();
        assert!(first.iter().all(|key| places.comes(*key, 0, now)));
        assert!((4..20).all(|call| !places.comes(key(1, call), 0, now)));
        assert!((0..2).all(|call| !places.comes(key(2, call), 0, now)));
        assert!(!places.comes(key(3, 0), 0, now));
        let order = places.drained(&first, now);
        assert_eq!(order.len(), 19);
        assert_eq!(order.get(..2), Some(&[key(2, 0), key(3, 0)][..]), "those with the fewest places first");
        for (workspace, calls) in [(1, 4..20), (2, 0..2)] {
            let own = order.iter().filter(|(other, _)| *other == key(workspace, 0).0).copied();
            assert_eq!(own.collect::<Vec<_>>(), calls.map(|call| key(workspace, call)).collect::<Vec<_>>());
        }
        assert!(places.workspaces.is_empty() && places.waiting.is_empty() && places.held.is_empty(), "{places:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_takes_all_it_can_leaves_some_to_the_next_one() {
        let now = Instant::now();
        let mut places = places(32, Some(3));
        let runs =
            |places: &mut Places, workspace| (0..40).filter(|call| places.comes(key(workspace, *call), 0, now)).count();
        assert_eq!(
            [runs(&mut places, 1), runs(&mut places, 2), runs(&mut places, 3), runs(&mut places, 4)],
            [24, 6, 2, 0]
        );
        let mut alone = self::places(2, Some(3));
        assert_eq!(runs(&mut alone, 1), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_higher_priority_overtakes_and_a_long_wait_counts_for_more() {
        let began = Instant::now();
        let mut places = places(1, None);
        assert!(places.comes(key(1, 0), 0, began));
        let later = |points: u32| began + points * ports::POINT;
        for (call, priority, points) in [(1, 0, 1), (2, 5, 2), (3, -5, 2), (4, 5, 3), (5, 3, 8)] {
            assert!(!places.comes(key(1, call), priority, later(points)));
        }
        assert_eq!(places.ahead(&key(1, 3)), Some(4));
        assert_eq!(places.drained(&[key(1, 0)], later(8)), [2, 4, 1, 5, 3].map(|call| key(1, call)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_listens_for_holds_nobody_up_and_is_forgotten() {
        let began = Instant::now();
        let mut places = places(1, None);
        assert!(places.comes(key(1, 0), 0, began));
        assert!(!places.comes(key(1, 1), 0, began) && !places.comes(key(1, 2), 0, began));
        places.done_listening(&key(1, 1));
        places.granted();
        places.release(&key(1, 0), began);
        assert_eq!(places.granted(), [(key(1, 2), 5)]);
        // It asks again in time, and has kept its turn.
        assert!(!places.comes(key(1, 3), 0, began) && !places.comes(key(1, 1), 0, began));
        assert_eq!(places.ahead(&key(1, 3)), Some(1));
        // Nothing begins under the grant, so the place is the next one's.
        assert_eq!(places.lapse(&key(1, 2), 5, began), Some(began + KEPT));
        assert_eq!(places.lapse(&key(1, 2), 5, began + KEPT), None);
        assert_eq!(places.granted(), [(key(1, 1), 7)]);
        assert!(!places.begin(&key(1, 2), 5) && !places.begin(&key(1, 1), 5) && places.begin(&key(1, 1), 7));
        assert!(!places.begin(&key(1, 1), 7), "once");
        assert_eq!(places.lapse(&key(1, 1), 7, began + KEPT * 2), None, "what has begun stays");
        places.done_listening(&key(1, 3));
        let later = began + KEPT * 3;
        places.release(&key(1, 1), later);
        assert_eq!((places.waiting(), places.granted()), (0, Vec::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_has_an_end_and_each_workspace_its_own() {
        let now = Instant::now();
        let mut places = Places::new(Rules { at_once: 1, share: None, waiting: 2 }, Uuid::nil(), now);
        assert!(places.comes(key(1, 0), 0, now));
        assert!((1..3).all(|call| !places.comes(key(1, call), 0, now)));
        assert!(matches!(places.ask(key(1, 3), 9, now), Asked::Full(2)));
        assert!(matches!(places.ask(key(1, 2), 0, now), Asked::Waits(_)), "those that are in it stay");
        assert!(matches!(places.ask(key(2, 3), 0, now), Asked::Waits(_)));
        for call in 1..3 {
            (0..2).for_each(|_| places.done_listening(&key(1, call)));
        }
        assert!(
            matches!(places.ask(key(1, 3), 0, now + KEPT * 2), Asked::Waits(_)),
            "those that have gone do not count"
        );
    }
}
