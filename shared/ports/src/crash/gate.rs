//! The gate in front of all computations of a process. It stands open. A suspect closes it: then nothing begins, the suspect waits
//! until running computations have paused or ended, computes alone, and opens it again.
//!
//! A computation that passes the open gate costs two stores and two loads, and no lock. Each thread has a seat that says whether
//! it computes. To enter is to take the seat and then to look at the gate; to close is to shut the gate and then to look at the
//! seats. All four are sequentially consistent, so one of the two sees the other.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    cell::Cell,
    io,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

/// How long a suspect waits for the others to pause. After that it computes beside them, and a death is no evidence.
const QUIET: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 2_000 });
/// How long a suspect keeps the others waiting at most, once it is alone.
const HOLD: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 10_000 });

/// Whether a thread computes.
#[derive(Default)]
struct ComputingFlag(AtomicBool);

thread_local! {
    static SEAT: Arc<ComputingFlag> = {
        let seat = Arc::<ComputingFlag>::default();
        let mut all = seats();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&seat));
        seat
    };
    /// How many computations of this thread are inside of each other.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Whether the computation of this thread is alone.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

static SEATS: Mutex<Vec<Weak<ComputingFlag>>> = Mutex::new(Vec::new());
static SHUT: AtomicBool = AtomicBool::new(false);
static GATE: Mutex<Gate> =
    Mutex::new(Gate { owner: None, last: 0, is_quiet: false, closer: None, waiting: Vec::new() });
static OPENED: Condvar = Condvar::new();

struct Gate {
    /// The turn that closed it.
    owner: Option<u64>,
    last: u64,
    /// Whether its owner is alone.
    is_quiet: bool,
    /// Woken by each thread that leaves.
    closer: Option<Waker>,
    /// Woken when it opens.
    waiting: Vec<Waker>,
}

fn seats() -> MutexGuard<'static, Vec<Weak<ComputingFlag>>> {
    SEATS.lock()
}

fn gate() -> MutexGuard<'static, Gate> {
    GATE.lock()
}

/// A computation of this thread, from its beginning to its end.
#[derive(Debug)]
pub struct ComputationGuard(std::marker::PhantomData<*const ()>);

impl ComputationGuard {
    fn deeper() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self(std::marker::PhantomData)
    }
}

impl Drop for ComputationGuard {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().saturating_sub(1));
        if DEPTH.get() == 0 {
            leave();
        }
    }
}

fn leave() {
    SEAT.with(|seat| seat.0.store(false, SeqCst));
    if SHUT.load(SeqCst) {
        let closer = gate().closer.take();
        closer.into_iter().for_each(Waker::wake);
    }
}

/// Enters, unless another computation is alone: then `waker` is woken when the gate opens.
pub fn enter(waker: &Waker) -> Option<ComputationGuard> {
    if DEPTH.get() > 0 || ALONE.get() {
        return Some(ComputationGuard::deeper());
    }
    loop {
        SEAT.with(|seat| seat.0.store(true, SeqCst));
        if !SHUT.load(SeqCst) {
            return Some(ComputationGuard::deeper());
        }
        leave();
        let mut gate = gate();
        if gate.owner.is_some() {
            gate.waiting.push(waker.clone());
            return None;
        }
    }
}

/// Enters as soon as no computation is alone. For threads that may wait.
pub fn enter_waiting() -> ComputationGuard {
    loop {
        if let Some(inside) = enter(Waker::noop()) {
            return inside;
        }
        let mut gate = gate();
        if gate.owner.is_some() {
            OPENED.wait(&mut gate);
        }
    }
}

/// Does `work`, which only waits for other threads, as one that does not compute.
pub fn outside<T>(work: impl FnOnce() -> T) -> T {
    let depth = DEPTH.replace(0);
    if depth == 0 {
        return work();
    }
    leave();
    let done = work();
    drop_into(depth);
    done
}

fn drop_into(depth: u32) {
    // The seat is taken again, and as deep as before; the guards of the caller leave it.
    std::mem::forget(enter_waiting());
    DEPTH.set(depth);
}

/// The work of a thread.
type ThreadWork = Box<dyn FnOnce() + Send>;

/// A turn to be alone: from the question to the end of it.
#[derive(Debug)]
pub struct Turn {
    /// Its number once it has closed the gate, and the end of a channel: dropped, it ends the thread that watches over the turn.
    closed: Option<(u64, Sender<()>)>,
    /// Starts that thread.
    start: fn(ThreadWork) -> io::Result<()>,
}

impl Default for Turn {
    fn default() -> Self {
        Self::starting_with(|watching| thread::Builder::new().name("alone".into()).spawn(watching).map(drop))
    }
}

impl Turn {
    /// The same, with the thread that watches over it started by `start`.
    pub(super) fn starting_with(start: fn(ThreadWork) -> io::Result<()>) -> Self {
        Self { closed: None, start }
    }

    /// Closes the gate and waits until no other thread computes. `overdue` is called when the turn has lasted too long, just before the
    /// others go on beside it. Whether it is alone: false when the others did not pause in time, or no thread can watch over the turn.
    pub fn poll(&mut self, context: &mut Context<'_>, overdue: impl FnOnce() + Send + 'static) -> Poll<bool> {
        let mut gate = gate();
        let number = match (self.closed.as_ref().map(|(number, _)| *number), gate.owner) {
            (Some(number), Some(owner)) if owner == number => number,
            (Some(_), _) => return Poll::Ready(false),
            (None, Some(_)) => {
                gate.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            (None, None) => {
                let number = gate.last + 1;
                // Without it nothing would open the gate again, should the others not pause.
                let Ok(watch) = watch(number, overdue, self.start) else { return Poll::Ready(false) };
                (gate.owner, gate.is_quiet, gate.last) = (Some(number), false, number);
                self.closed = Some((number, watch));
                SHUT.store(true, SeqCst);
                number
            }
        };
        gate.closer = Some(context.waker().clone());
        let own = SEAT.with(Arc::downgrade);
        let others =
            seats().iter().filter(|seat| !seat.ptr_eq(&own)).filter_map(Weak::upgrade).any(|seat| seat.0.load(SeqCst));
        if others {
            return Poll::Pending;
        }
        debug_assert_eq!(gate.owner, Some(number));
        gate.is_quiet = true;
        Poll::Ready(true)
    }

    /// The same for a thread that may wait.
    pub fn wait(&mut self, overdue: impl FnOnce() + Send + Clone + 'static) -> bool {
        struct Unparks(Thread);
        impl Wake for Unparks {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unparks(thread::current())));
        loop {
            if let Poll::Ready(is_alone) = self.poll(&mut Context::from_waker(&waker), overdue.clone()) {
                return is_alone;
            }
            thread::park();
        }
    }
}

/// Does `work` on this thread as what is alone.
pub fn within<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _before = Before(ALONE.replace(true));
    work()
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some((number, watch)) = self.closed.take() {
            drop(watch);
            open(number);
        }
    }
}

/// Whether the computation of this thread is alone.
pub fn is_alone() -> bool {
    ALONE.get()
}

fn open(number: u64) {
    let waiting = {
        let mut gate = gate();
        if gate.owner != Some(number) {
            return;
        }
        gate.owner = None;
        SHUT.store(false, SeqCst);
        OPENED.notify_all();
        let closer = gate.closer.take();
        std::mem::take(&mut gate.waiting).into_iter().chain(closer).collect::<Vec<_>>()
    };
    waiting.into_iter().for_each(Waker::wake);
}

/// Opens the gate when a turn lasts too long. A thread for each turn: there are turns only after a death of the process.
fn watch(
    number: u64,
    overdue: impl FnOnce() + Send + 'static,
    start: fn(ThreadWork) -> io::Result<()>,
) -> io::Result<Sender<()>> {
    let (ends, ended) = channel::<()>();
    let watching = move || {
        let mut is_over = ended.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout);
        let is_quiet = || {
            let gate = gate();
            gate.owner == Some(number) && gate.is_quiet
        };
        if is_over && is_quiet() {
            is_over = ended.recv_timeout(HOLD) == Err(RecvTimeoutError::Timeout);
        }
        if is_over {
            overdue();
            open(number);
        }
    };
    start(Box::new(watching)).map(|()| ends)
}
