//! The one thread that writes: all ready requests go into one transaction and share one sync.
//!
//! A durable commit costs a sync of the disk, for any number of requests. So the writer takes every waiting request, runs them in one
//! `BEGIN IMMEDIATE … COMMIT`, and answers all of them after it. Requests that arrive during the sync form the next group. A group has an
//! end, and tenants take turns in it ([`WriteQueue`]). A conflict touches nothing (expectations are checked before anything is written), so it
//! needs no savepoint; any other failure undoes the group, and all of its requests get its error. On a full disk the reserve is given up
//! and the group is tried again, each request alone: a long one fails, and takes no other along. A group that met a page that cannot be read is
//! halved until what met it fails alone. Lazy changes and the removal of expired items ride along with requests: those that cannot be written are
//! left out, since they would take every later commit along.

use crate::{
    checkpoint::Checkpointer,
    items::{self, NextNumbers},
    lazy_writes::LazyWrites,
    messages::{self, Arrival, DeferredWrite},
    open::Lock,
    readers::{failed, is_full, is_of_a_page},
    request::{Answer, Request},
    reserve::Reserve,
    shared_mailbox::SharedMailbox,
    stats::{Counters, add},
    write_queue::WriteQueue,
};
use domain::Timestamp;
use ports::{Clock, Error, Result, Write};
use rusqlite::Connection;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::Ordering::Relaxed,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    time::Duration,
};
use tokio::{sync::oneshot, time::Instant};

/// How many requests are taken in at most before the next transaction.
const GATHERED_MOST: usize = 1024;
/// How long the writer waits for companions it has reason to expect. Less than a sync, which each of them saves.
const LINGER: Duration = Duration::from_micros(100);
/// How often a store without room looks whether there is some again.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often expired items are looked for.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How often they are looked for after a sweep met a page that cannot be read.
const DAMAGED_SWEEP_EVERY: Duration = Duration::from_secs(60 * 60);

/// The way to the writer.
#[derive(Clone)]
pub(crate) struct Writer(pub Sender<Request>);

impl Writer {
    /// Asks and waits for the answer.
    pub async fn ask<T>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        self.note(request(answer));
        answered.await.unwrap_or_else(|_| {
            Err(Error::unavailable("the store", "the writer gave no answer: it failed or was closed"))
        })
    }

    /// Leaves a request. A store that is closed drops it, and with it the way to answer.
    pub fn note(&self, request: Request) {
        drop(self.0.send(request));
    }
}

/// The result of a request, once its transaction is on the disk.
enum Outcome {
    Done(Result<()>),
    Count(usize),
}

/// The effects of a transaction.
#[derive(Default)]
struct TransactionResult {
    /// In the order of the requests.
    outcomes: Vec<Outcome>,
    arrivals: Vec<Arrival>,
    swept: usize,
    /// The number of dead letters, where it may have changed.
    dead: Option<u64>,
}

pub(crate) struct WriterThread {
    pub connection: Connection,
    pub shared_mailbox: Arc<SharedMailbox>,
    pub clock: Arc<dyn Clock>,
    pub counters: Arc<Counters>,
    pub reserve: Arc<Reserve>,
    pub checkpointer: Checkpointer,
    pub next_seq: i64,
    pub next_numbers: NextNumbers,
    pub lazy: LazyWrites,
    pub next_sweep: Timestamp,
    pub sweep_every: Duration,
    /// The data folder is ours until the last write is done.
    pub lock: Lock,
}

impl WriterThread {
    /// Serves until the store is closed or dropped.
    pub fn run(mut self, requests: &Receiver<Request>) {
        let mut companions: usize = 1;
        let mut queue = WriteQueue::default();
        let mut look_due = None;
        let closing = loop {
            let mut group = Vec::new();
            look_due = self.reserve.is_given_up().then(|| look_due.unwrap_or_else(|| Instant::now() + LOOK_EVERY));
            if queue.len() == 0 {
                match wait(requests, [self.lazy.due(), look_due].into_iter().flatten().min()) {
                    Ok(first) => group.push(first),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break None,
                }
            }
            // Also beside requests that never end.
            if look_due.is_some_and(|due| due <= Instant::now()) {
                self.look();
                look_due = None;
            }
            gather(requests, &mut group, companions.saturating_sub(queue.len()));
            let GroupResult { waited_for, closing } = self.sort_out(group, &mut queue);
            companions = waited_for;
            if closing.is_some() {
                break closing;
            }
        };
        while queue.len() > 0 {
            self.transact(queue.take());
        }
        self.end(closing);
    }

    /// Takes in a group, and commits the requests with the next turns.
    fn sort_out(&mut self, group: Vec<Request>, queue: &mut WriteQueue) -> GroupResult {
        let now = Instant::now();
        let (mut closing, mut flush) = (None, self.lazy.is_due(now));
        for request in group {
            match request {
                Request::Lazy { seq, change } => self.lazy.add([(seq, change)], now),
                Request::Ping { answer } => drop(answer.send(Ok(()))),
                Request::Look => self.look(),
                Request::Close { answer } => (closing, flush) = (Some(answer), true),
                Request::Flush { .. } => {
                    flush = true;
                    queue.add(request);
                }
                Request::Commit { .. } | Request::Redrive { .. } => queue.add(request),
            }
        }
        let durable = queue.take();
        let waited_for = durable.len();
        if waited_for > 0 || (flush && !self.lazy.is_empty()) {
            self.transact(durable);
        }
        GroupResult { waited_for, closing }
    }

    /// Commits `requests` and lazy changes, and answers; false when that failed.
    fn transact(&mut self, requests: Vec<Request>) -> bool {
        if self.reserve.is_given_up() {
            if requests.len() > 1 {
                return self.transact_each(requests);
            }
            if requests.iter().any(|request| request.weight().1 as u64 > self.reserve.part()) {
                requests.into_iter().for_each(|request| request.fail(Error::full("the store")));
                return false;
            }
        }
        let lazy = self.next_lazy(&requests);
        let sweeps = self.is_sweep_due();
        self.transact_with(requests, lazy, sweeps)
    }

    /// The same with these lazy changes, and with a sweep if `sweeps`.
    fn transact_with(&mut self, requests: Vec<Request>, lazy: BTreeMap<i64, DeferredWrite>, sweeps: bool) -> bool {
        let next_seq = self.next_seq;
        match self.transaction(&requests, &lazy, sweeps) {
            Ok(TransactionResult { outcomes, arrivals, swept, dead }) => {
                add(&self.counters.groups, 1);
                add(&self.counters.requests, requests.len());
                add(&self.counters.lazy_writes, lazy.len());
                add(&self.counters.swept, swept);
                if let Some(dead) = dead {
                    self.counters.dead.store(dead, Relaxed);
                }
                self.bring_in(arrivals);
                requests.into_iter().zip(outcomes).for_each(|(request, outcome)| request.answer(outcome));
                self.look();
                self.copy_log();
                true
            }
            Err(error) => {
                if let Err(error) = self.connection.execute_batch("ROLLBACK") {
                    tracing::debug!(error = %ports::with_causes(&error), "nothing to roll back");
                }
                self.next_seq = next_seq;
                if is_of_a_page(&error) {
                    if requests.len() + lazy.len() + usize::from(sweeps) > 1 {
                        return self.transact_apart(requests, lazy, sweeps);
                    }
                    if requests.is_empty() {
                        self.leave_out(&lazy, &error);
                        return true;
                    }
                }
                self.lazy.put_back(lazy, Instant::now());
                if is_full(&error) && self.give_up() {
                    return self.transact(requests);
                }
                tracing::error!(error = %ports::with_causes(&error), "a commit failed");
                requests.into_iter().for_each(|request| request.fail(failed(&error)));
                false
            }
        }
    }

    /// The same in parts: each half of the lazy changes, each half of the requests, and the sweep. A half that fails is halved again, so that
    /// one row that cannot be read fails alone, and costs few transactions. False when a request failed.
    fn transact_apart(
        &mut self,
        mut requests: Vec<Request>,
        mut lazy: BTreeMap<i64, DeferredWrite>,
        sweeps: bool,
    ) -> bool {
        let mut all = true;
        // Before the requests, which may depend on them.
        let second_half = lazy.keys().nth(lazy.len().div_ceil(2)).copied();
        let later = second_half.map(|seq| lazy.split_off(&seq)).unwrap_or_default();
        for half in [lazy, later].into_iter().filter(|half| !half.is_empty()) {
            all &= self.transact_with(Vec::new(), half, false);
        }
        let later = requests.split_off(requests.len().div_ceil(2));
        for half in [requests, later].into_iter().filter(|half| !half.is_empty()) {
            all &= self.transact_with(half, BTreeMap::new(), false);
        }
        if sweeps {
            all &= self.transact_with(Vec::new(), BTreeMap::new(), true);
        }
        all
    }

    /// Goes on without a lazy change, or without sweeps for a while. The change or the sweep met a page that cannot be read, and would make every later
    /// commit fail. A message whose lazy change is left out comes again after the next start.
    fn leave_out(&mut self, lazy: &BTreeMap<i64, DeferredWrite>, error: &rusqlite::Error) {
        let error = ports::with_causes(error);
        match lazy.keys().next() {
            Some(seq) => tracing::error!(seq, %error, "the state of a message is not written: its row cannot be read"),
            None => {
                tracing::error!(%error, "expired items stay, and take room: one of them cannot be read; restore a backup");
                self.sweep_every = DAMAGED_SWEEP_EVERY;
                self.next_sweep = self.clock.now() + self.sweep_every;
            }
        }
    }

    /// Also after the clock was set back from a time far ahead.
    fn is_sweep_due(&self) -> bool {
        let now = self.clock.now();
        now >= self.next_sweep || self.next_sweep.since(now) > self.sweep_every
    }

    /// The same with a transaction for each request; false when one failed.
    fn transact_each(&mut self, requests: Vec<Request>) -> bool {
        let mut all = true;
        for request in requests {
            all &= self.transact(vec![request]);
        }
        all
    }

    /// Takes out the lazy changes of the next transaction: all of them if one of its requests depends on them, and some if it has no request.
    fn next_lazy(&mut self, requests: &[Request]) -> BTreeMap<i64, DeferredWrite> {
        let needs_all =
            requests.iter().any(|request| matches!(request, Request::Flush { .. } | Request::Redrive { .. }));
        match needs_all {
            true => self.lazy.take_all(),
            false if requests.is_empty() || self.lazy.rides_along(Instant::now()) => self.lazy.take_some(),
            false => BTreeMap::new(),
        }
    }

    /// Everything between `BEGIN` and `COMMIT`. An error undoes all of it.
    fn transaction(
        &mut self,
        requests: &[Request],
        lazy: &BTreeMap<i64, DeferredWrite>,
        sweeps: bool,
    ) -> rusqlite::Result<TransactionResult> {
        let now = self.clock.now();
        let connection = &self.connection;
        let mut written = TransactionResult::default();
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        // Before a redrive, because one of these may put a message aside that the redrive sends again.
        for (seq, change) in lazy {
            messages::apply(connection, *seq, *change)?;
        }
        for request in requests {
            written.outcomes.push(match request {
                Request::Commit { writes, messages, .. } => {
                    let outcome = items::commit(connection, writes, &mut self.next_numbers, now)?;
                    match &outcome {
                        Ok(()) => {
                            let with_new_item = writes.iter().any(Write::makes_item);
                            let sent = messages::send(connection, messages, with_new_item, &mut self.next_seq, now)?;
                            written.arrivals.extend(sent);
                        }
                        Err(_) => add(&self.counters.conflicts, 1),
                    }
                    Outcome::Done(outcome)
                }
                Request::Redrive { group, .. } => {
                    let redriven = messages::redrive(connection, group, &mut self.next_seq)?;
                    let count = redriven.len();
                    written.arrivals.extend(redriven);
                    Outcome::Count(count)
                }
                _ => Outcome::Done(Ok(())),
            });
        }
        let mut next_sweep = None;
        if sweeps {
            let (items, more_items) = items::sweep(connection, now)?;
            let (messages, more_messages) = messages::sweep(connection, now)?;
            written.swept = items + messages;
            if !(more_items || more_messages) {
                next_sweep = Some(now + SWEEP_EVERY);
            }
        }
        let is_redrive = |request: &Request| matches!(request, Request::Redrive { .. });
        if lazy.values().any(|change| matches!(change, DeferredWrite::Dead { .. })) || requests.iter().any(is_redrive) {
            written.dead = Some(messages::count_dead(connection)?);
        }
        connection.prepare_cached("COMMIT")?.execute([])?;
        if let Some(next) = next_sweep {
            (self.next_sweep, self.sweep_every) = (next, SWEEP_EVERY);
        }
        Ok(written)
    }

    fn copy_log(&mut self) {
        let (pages, is_full) = (self.counters.wal_pages.load(Relaxed), self.reserve.is_given_up());
        self.checkpointer.after_commit(&self.connection, pages, is_full);
    }

    /// Measures the free room, and lets the queue deliver accordingly.
    fn look(&mut self) {
        let was_full = self.reserve.is_given_up();
        let is_full = self.reserve.look();
        if was_full != is_full {
            self.only_urgent(is_full);
            // The room of the reserve may be gone soon.
            self.copy_log();
        }
    }

    /// Gives up the reserve; false when nothing was left of it.
    fn give_up(&self) -> bool {
        let given = self.reserve.give_up();
        if given {
            self.only_urgent(true);
        }
        given
    }

    fn only_urgent(&self, only: bool) {
        self.shared_mailbox.with(|mailbox| mailbox.only_urgent(only));
    }

    /// Messages that are now on the disk may be delivered.
    fn bring_in(&mut self, arrivals: Vec<Arrival>) {
        if arrivals.is_empty() {
            return;
        }
        let (clock, lazy) = (&self.clock, &mut self.lazy);
        self.shared_mailbox.with(|mailbox| {
            mailbox.arrive(arrivals, clock.now());
            lazy.add(mailbox.lazy.drain(..), Instant::now());
        });
    }

    fn end(mut self, closing: Option<Answer<()>>) {
        while !self.lazy.is_empty() && self.transact(Vec::new()) {}
        self.shared_mailbox.close();
        let Self { connection, lock, checkpointer, .. } = self;
        checkpointer.stop();
        if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
            tracing::warn!(error = %ports::with_causes(&error), "the log stays as it is; the next start reads it");
        }
        drop(connection);
        drop(lock);
        if let Some(answer) = closing {
            drop(answer.send(Ok(())));
        }
    }
}

/// The result of one group.
struct GroupResult {
    /// How many requests needed the disk.
    waited_for: usize,
    /// The caller that wants the store closed.
    closing: Option<Answer<()>>,
}

/// The next request, unless lazy changes are due first.
fn wait(requests: &Receiver<Request>, lazy_due: Option<Instant>) -> std::result::Result<Request, RecvTimeoutError> {
    match lazy_due {
        None => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(due) => requests.recv_timeout(due.saturating_duration_since(Instant::now())),
    }
}

/// Takes waiting requests. When the last group was shared, its members were answered at one moment and will soon come again: without a
/// short wait the first of them would sync alone, and the others behind it.
fn gather(requests: &Receiver<Request>, group: &mut Vec<Request>, companions: usize) {
    let mut until = None;
    while group.len() < GATHERED_MOST {
        match requests.try_recv() {
            Ok(request) => group.push(request),
            Err(_) if group.is_empty() || group.len() >= companions => return,
            Err(_) => {
                let now = Instant::now();
                if now >= *until.get_or_insert(now + LINGER) {
                    return;
                }
                std::thread::yield_now();
            }
        }
    }
}

impl Request {
    /// An answer whose caller is gone is fine: the work is done.
    fn answer(self, outcome: Outcome) {
        match (self, outcome) {
            (Self::Commit { answer, .. } | Self::Flush { answer }, Outcome::Done(outcome)) => {
                drop(answer.send(outcome));
            }
            (Self::Redrive { answer, .. }, Outcome::Count(count)) => drop(answer.send(Ok(count))),
            _ => {}
        }
    }

    fn fail(self, error: Error) {
        match self {
            Self::Commit { answer, .. } | Self::Flush { answer } => drop(answer.send(Err(error))),
            Self::Redrive { answer, .. } => drop(answer.send(Err(error))),
            Self::Lazy { .. } | Self::Ping { .. } | Self::Look | Self::Close { .. } => {}
        }
    }
}
