//! The one thread that writes: everything that is ready goes into one transaction and shares one sync.
//!
//! A durable commit costs what the disk needs to sync, whatever it holds. So the writer takes every request that waits, runs
//! them in one `BEGIN IMMEDIATE … COMMIT`, and answers all of them after it. What arrives during the sync forms the next
//! group. A conflict touches nothing (expectations are checked before anything is written), so it needs no savepoint; any other
//! failure undoes the group, and everyone in it hears that the store was unavailable.

use crate::{
    checkpoint::Checkpointer,
    mailbox::Arrival,
    messages::{self, Lazy},
    queue::Mailroom,
    stats::{Counters, add},
    table,
};
use domain::Timestamp;
use ports::{Clock, Error, Outgoing, Result, Write};
use rusqlite::Connection;
use std::{
    collections::BTreeMap,
    fs::File,
    sync::{
        Arc,
        atomic::Ordering::Relaxed,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    time::Duration,
};
use tokio::{sync::oneshot, time::Instant};

/// How long a lazy change waits for a commit to ride along with.
const LAZY_WAIT: Duration = Duration::from_millis(5);
/// How long they wait for the next attempt after a commit failed: a full disk is not asked a hundred times a second.
const LAZY_RETRY: Duration = Duration::from_secs(1);
/// How many lazy changes wait at most.
const LAZY_MOST: usize = 4096;
/// How many requests share one transaction at most: it bounds how long the first one waits for the last.
const GROUP_MOST: usize = 1024;
/// How long the writer waits for companions it has reason to expect. Less than a sync, which is what each of them saves.
const LINGER: Duration = Duration::from_micros(100);
/// How often expired items are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

pub(crate) type Answer<T> = oneshot::Sender<Result<T>>;

/// What the writer is asked to do.
pub(crate) enum Request {
    Commit {
        writes: Vec<Write>,
        answer: Answer<()>,
    },
    Send {
        messages: Vec<Outgoing>,
        answer: Answer<()>,
    },
    Redrive {
        group: String,
        answer: Answer<usize>,
    },
    /// Nobody waits for it.
    Lazy {
        seq: i64,
        change: Lazy,
    },
    /// Writes what is lazy now.
    Flush {
        answer: Answer<()>,
    },
    Ping {
        answer: Answer<()>,
    },
    Close {
        answer: Answer<()>,
    },
}

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

/// An answer that is held back until its transaction is on the disk.
enum Held {
    Done(Answer<()>, Result<()>),
    Count(Answer<usize>, usize),
}

pub(crate) struct WriterThread {
    pub connection: Connection,
    pub room: Arc<Mailroom>,
    pub clock: Arc<dyn Clock>,
    pub counters: Arc<Counters>,
    pub checkpointer: Checkpointer,
    pub next_seq: i64,
    pub lazy: BTreeMap<i64, Lazy>,
    pub next_sweep: Timestamp,
    /// The data directory is ours until the last write is done.
    pub lock: File,
}

impl WriterThread {
    /// Serves until the store is closed or dropped.
    pub fn run(mut self, requests: &Receiver<Request>) {
        let mut lazy_due = None;
        let mut companions = 1;
        let closing = loop {
            let mut group = Vec::new();
            match wait(requests, lazy_due) {
                Ok(first) => group.push(first),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break None,
            }
            gather(requests, &mut group, companions);
            let flush_is_due = group.is_empty() || self.lazy.len() > LAZY_MOST;
            let Turn { waited_for, failed, closing } = self.sort_out(group, flush_is_due);
            companions = waited_for;
            if closing.is_some() {
                break closing;
            }
            lazy_due = match self.lazy.is_empty() {
                true => None,
                false if failed => Some(Instant::now() + LAZY_RETRY),
                false => lazy_due.or_else(|| Some(Instant::now() + LAZY_WAIT)),
            };
        };
        self.end(closing);
    }

    fn sort_out(&mut self, group: Vec<Request>, flush_is_due: bool) -> Turn {
        let (mut durable, mut closing, mut flush) = (Vec::new(), None, flush_is_due);
        for request in group {
            match request {
                Request::Lazy { seq, change } => _ = self.lazy.insert(seq, change),
                Request::Ping { answer } => drop(answer.send(Ok(()))),
                Request::Close { answer } => (closing, flush) = (Some(answer), true),
                Request::Flush { .. } => {
                    flush = true;
                    durable.push(request);
                }
                Request::Commit { .. } | Request::Send { .. } | Request::Redrive { .. } => durable.push(request),
            }
        }
        let waited_for = durable.len();
        let is_needed = waited_for > 0 || (flush && !self.lazy.is_empty());
        let failed = is_needed && !self.transact(durable);
        Turn { waited_for, failed, closing }
    }

    /// Commits `requests` and what is lazy, and answers; false when that failed.
    fn transact(&mut self, requests: Vec<Request>) -> bool {
        let mut held = Vec::with_capacity(requests.len());
        let mut arrivals = Vec::new();
        let next_seq = self.next_seq;
        let lazy = std::mem::take(&mut self.lazy);
        let number_of_requests = requests.len();
        match self.transaction(requests, &lazy, &mut held, &mut arrivals) {
            Ok(swept) => {
                add(&self.counters.groups, 1);
                add(&self.counters.requests, number_of_requests);
                add(&self.counters.lazy_writes, lazy.len());
                add(&self.counters.swept, swept);
                self.bring_in(arrivals);
                held.into_iter().for_each(Held::answer);
                self.checkpointer.after_commit(&self.connection, self.counters.wal_pages.load(Relaxed));
                true
            }
            Err(error) => {
                tracing::error!(%error, "a commit failed");
                if let Err(error) = self.connection.execute_batch("ROLLBACK") {
                    tracing::debug!(%error, "nothing to roll back");
                }
                self.next_seq = next_seq;
                self.lazy = lazy;
                let why = error.to_string();
                held.into_iter().for_each(|held| held.fail(&why));
                false
            }
        }
    }

    /// Everything between `BEGIN` and `COMMIT`. After an error each request is still in `held`, or its answer was dropped,
    /// which is heard as unavailable too.
    fn transaction(
        &mut self,
        requests: Vec<Request>,
        lazy: &BTreeMap<i64, Lazy>,
        held: &mut Vec<Held>,
        arrivals: &mut Vec<Arrival>,
    ) -> rusqlite::Result<usize> {
        let now = self.clock.now();
        let connection = &self.connection;
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        // Before a redrive, because what it sends again may be put aside by one of these.
        for (seq, change) in lazy {
            messages::apply(connection, *seq, *change)?;
        }
        for request in requests {
            match request {
                Request::Commit { writes, answer } => {
                    let outcome = table::commit(connection, &writes, now)?;
                    add(&self.counters.conflicts, usize::from(outcome.is_err()));
                    held.push(Held::Done(answer, outcome));
                }
                Request::Send { messages, answer } => {
                    arrivals.extend(messages::send(connection, messages, &mut self.next_seq, now)?);
                    held.push(Held::Done(answer, Ok(())));
                }
                Request::Redrive { group, answer } => {
                    let redriven = messages::redrive(connection, &group, &mut self.next_seq)?;
                    held.push(Held::Count(answer, redriven.len()));
                    arrivals.extend(redriven);
                }
                Request::Flush { answer } => held.push(Held::Done(answer, Ok(()))),
                Request::Lazy { .. } | Request::Ping { .. } | Request::Close { .. } => {}
            }
        }
        let mut swept = 0;
        if now >= self.next_sweep {
            let (items, more_items) = table::sweep(connection, now)?;
            let (messages, more_messages) = messages::sweep(connection, now)?;
            swept = items + messages;
            if !(more_items || more_messages) {
                self.next_sweep = now + SWEEP_EVERY;
            }
        }
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(swept)
    }

    /// Messages that are now on the disk may be delivered.
    fn bring_in(&mut self, arrivals: Vec<Arrival>) {
        if arrivals.is_empty() {
            return;
        }
        let mut mailbox = self.room.lock();
        mailbox.arrive(arrivals, self.clock.now());
        self.lazy.extend(mailbox.lazy.drain(..));
        let wakes = std::mem::take(&mut mailbox.wakes);
        drop(mailbox);
        self.room.ring(wakes);
    }

    fn end(mut self, closing: Option<Answer<()>>) {
        if !self.lazy.is_empty() {
            self.transact(Vec::new());
        }
        self.room.close();
        let Self { connection, lock, checkpointer, .. } = self;
        checkpointer.stop();
        if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
            tracing::warn!(%error, "the log stays as it is; the next start reads it");
        }
        drop(connection);
        drop(lock);
        if let Some(answer) = closing {
            drop(answer.send(Ok(())));
        }
    }
}

/// What became of one group.
struct Turn {
    /// How many requests needed the disk.
    waited_for: usize,
    failed: bool,
    /// Who wants the store closed.
    closing: Option<Answer<()>>,
}

/// The next request, unless lazy changes are due first.
fn wait(requests: &Receiver<Request>, lazy_due: Option<Instant>) -> std::result::Result<Request, RecvTimeoutError> {
    match lazy_due {
        None => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(due) => requests.recv_timeout(due.saturating_duration_since(Instant::now())),
    }
}

/// Takes what waits. When the last group was shared, its members were answered at one moment and will soon come again: without
/// a short wait the first of them would sync alone, and the others behind it.
fn gather(requests: &Receiver<Request>, group: &mut Vec<Request>, companions: usize) {
    let mut until = None;
    while group.len() < GROUP_MOST {
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

impl Held {
    /// An answer that nobody waits for any more is fine: the work is done.
    fn answer(self) {
        match self {
            Self::Done(answer, outcome) => drop(answer.send(outcome)),
            Self::Count(answer, count) => drop(answer.send(Ok(count))),
        }
    }

    fn fail(self, why: &str) {
        let error = Error::unavailable("the store", why);
        match self {
            Self::Done(answer, _) => drop(answer.send(Err(error))),
            Self::Count(answer, _) => drop(answer.send(Err(error))),
        }
    }
}
