//! Threads of a runtime that a computation holds: other work on them waits meanwhile, and only this module reports it.
//!
//! A future of an actor records its name while it is polled ([`watched`]). A [`Watchdog`] reads the records of all threads from a thread of
//! its own, several times within its bound, and reports each poll that lasts longer. Being watched costs two additions and two locks per
//! poll, which only the watchdog contends for, and no clock.

use parking_lot::Mutex;
use ports::crash::gate;
use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    task::Poll,
    time::Duration,
};

/// How often a watchdog looks within its bound.
const LOOKS: u32 = 4;

/// The current poll of a thread.
#[derive(Default)]
struct Thread {
    /// Polls that it began and ended: odd while it is in one.
    turns: AtomicU64,
    /// The name of the innermost future that is polled.
    at: Mutex<Arc<str>>,
}

static THREADS: Mutex<Vec<Weak<Thread>>> = Mutex::new(Vec::new());

thread_local! {
    static THREAD: Arc<Thread> = {
        let thread = Arc::new(Thread::default());
        let mut all = THREADS.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&thread));
        thread
    };
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// One poll, from its beginning to its end.
struct Turn {
    thread: Arc<Thread>,
    outer: Arc<str>,
}

impl Turn {
    fn begin(at: &Arc<str>) -> Self {
        let thread = THREAD.with(Arc::clone);
        let outer = std::mem::replace(&mut *thread.at.lock(), at.clone());
        if DEPTH.replace(DEPTH.get() + 1) == 0 {
            thread.turns.fetch_add(1, Relaxed);
        }
        Self { thread, outer }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() == 0 {
            self.thread.turns.fetch_add(1, Relaxed);
        }
        let outer = std::mem::take(&mut self.outer);
        *self.thread.at.lock() = outer;
    }
}

/// `work`, which a watchdog finds as `at`, such as the id of an actor, while it is polled.
pub async fn watched<F: Future>(at: impl Into<Arc<str>>, work: F) -> F::Output {
    let (at, mut work) = (at.into(), pin!(work));
    poll_fn(|context| {
        // While an input that may end the process computes alone, nothing else does.
        let Some(_inside) = gate::enter(context.waker()) else { return Poll::Pending };
        let _turn = Turn::begin(&at);
        work.as_mut().poll(context)
    })
    .await
}

/// Looks at all threads of the process until it is dropped.
pub struct Watchdog {
    found: Arc<BlockedThreads>,
    /// Dropped, it ends the thread.
    _ends: Sender<()>,
}

#[derive(Default)]
struct BlockedThreads {
    held: Mutex<Vec<Arc<str>>>,
    longest_ms: AtomicU64,
    total: AtomicU64,
}

impl Watchdog {
    /// Reports each computation that holds a thread for longer than about `bound`: once in the log when it passes the bound, and once when
    /// it ends.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub fn start(bound: Duration) -> std::io::Result<Self> {
        let (ends, ended) = channel::<()>();
        let found = Arc::<BlockedThreads>::default();
        let (telling, interval) = (found.clone(), bound / LOOKS);
        std::thread::Builder::new().name("watchdog".into()).spawn(move || {
            let mut seen = Vec::new();
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                look(&mut seen, interval, &telling);
            }
        })?;
        Ok(Self { found, _ends: ends })
    }

    /// The names of the futures that hold a thread now.
    pub fn held(&self) -> Vec<Arc<str>> {
        self.found.held.lock().clone()
    }

    /// For how long the thread has been held that has been held for longest; zero when none is.
    pub fn longest(&self) -> Duration {
        Duration::from_millis(self.found.longest_ms.load(Relaxed))
    }

    /// How often a thread was held since the start.
    pub fn total(&self) -> u64 {
        self.found.total.load(Relaxed)
    }
}

/// The last look at a thread.
struct Seen {
    thread: Weak<Thread>,
    turns: u64,
    /// How often the same poll was found.
    looks: u32,
    at: Arc<str>,
}

fn look(seen: &mut Vec<Seen>, interval: Duration, found: &BlockedThreads) {
    let (mut held, mut longest) = (Vec::new(), Duration::ZERO);
    let all = THREADS.lock().clone();
    seen.retain(|one| one.thread.strong_count() > 0);
    for thread in all {
        if !seen.iter().any(|one| one.thread.ptr_eq(&thread)) {
            seen.push(Seen { thread, turns: 0, looks: 0, at: Arc::default() });
        }
    }
    for one in seen {
        let Some(thread) = one.thread.upgrade() else { continue };
        let turns = thread.turns.load(Relaxed);
        if turns == one.turns && turns % 2 == 1 {
            one.looks = one.looks.saturating_add(1);
        } else {
            if one.looks >= LOOKS {
                let ms = (interval * one.looks).as_millis() as u64;
                tracing::warn!(at = &*one.at, ms, "a thread is free again that was held");
            }
            (one.turns, one.looks) = (turns, 0);
        }
        if one.looks >= LOOKS {
            one.at = thread.at.lock().clone();
            held.push(one.at.clone());
            longest = longest.max(interval * one.looks);
        }
        if one.looks == LOOKS {
            found.total.fetch_add(1, Relaxed);
            tracing::warn!(at = &*one.at, ms = (interval * LOOKS).as_millis() as u64, "a computation holds a thread");
        }
    }
    found.longest_ms.store(longest.as_millis() as u64, Relaxed);
    *found.held.lock() = held;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_computation_that_holds_a_thread_is_told_by_its_place() -> std::io::Result<()> {
        let watchdog = Watchdog::start(Duration::from_millis(20))?;
        let ours = || watchdog.held().into_iter().filter(|at| at.starts_with("task/")).collect::<Vec<_>>();
        let free = Arc::new(AtomicBool::new(false));
        let computes = {
            let free = free.clone();
            async move {
                while !free.load(Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        // A waiting future holds nothing, and of two nested ones the inner one is named.
        let waits = tokio::spawn(watched("task/waits", std::future::pending::<()>()));
        let computing = tokio::spawn(watched("chat/outer", async move { watched("task/computes", computes).await }));
        while ours().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(ours(), ["task/computes".into()]);
        assert!(watchdog.total() >= 1);
        assert!(watchdog.longest() >= Duration::from_millis(20), "{:?}", watchdog.longest());
        free.store(true, Relaxed);
        computing.await.map_err(std::io::Error::other)?;
        while !ours().is_empty() {
            tokio::task::yield_now().await;
        }
        waits.abort();
        Ok(())
    }
}
