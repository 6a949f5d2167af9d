//! Work on an input: with a mark while it is computed, and alone while the input is suspect.

use super::{Crashes, Id, Mark, RefusedInput, gate, gate::Turn, installed};
use parking_lot::{Mutex, MutexGuard};
use std::{
    cell::RefCell,
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, ready},
};

thread_local! {
    /// The current work of this thread.
    static CURRENT: RefCell<Option<Arc<Work>>> = const { RefCell::new(None) };
}

/// The current work of this thread; none outside of a poll of [`computing`] or [`whole`], and of the parts that they hand on.
pub fn current() -> Option<Arc<Work>> {
    CURRENT.with_borrow(Clone::clone)
}

/// The place of a mark, for the thread that finds that others compute beside it.
pub(super) struct Slot {
    pub number: AtomicUsize,
    pub is_overdue: AtomicBool,
}

impl Slot {
    const NONE: usize = usize::MAX;

    fn new() -> Self {
        Self { number: AtomicUsize::new(Self::NONE), is_overdue: AtomicBool::new(false) }
    }
}

/// A mark, until it is dropped.
pub(super) struct MarkGuard<'a> {
    pub crashes: &'a Crashes,
    pub number: Option<usize>,
}

impl Drop for MarkGuard<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.crashes.register.end(number);
        }
    }
}

/// A question to be alone, and the time of it.
struct Asking {
    turn: Turn,
    slot: Arc<Slot>,
    crashes: Arc<Crashes>,
}

impl Asking {
    fn new(crashes: &Arc<Crashes>) -> Self {
        Self { turn: Turn::default(), slot: Arc::new(Slot::new()), crashes: crashes.clone() }
    }

    fn overdue(&self) -> impl FnOnce() + Send + Clone + 'static {
        let (slot, crashes) = (self.slot.clone(), self.crashes.clone());
        move || {
            slot.is_overdue.store(true, SeqCst);
            let number = slot.number.load(SeqCst);
            if number != Slot::NONE {
                crashes.register.beside(number);
            }
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let overdue = self.overdue();
        self.turn.poll(context, overdue)
    }

    fn wait(&mut self) -> bool {
        let overdue = self.overdue();
        self.turn.wait(overdue)
    }
}

/// Work on an input.
pub struct Work {
    pub(super) crashes: Arc<Crashes>,
    pub(super) place: String,
    /// Its ids so far; the last one counts.
    pub(super) ids: Mutex<Vec<Id>>,
    pub(super) is_suspect: AtomicBool,
    /// Whether it is alone from its beginning to its end.
    pub(super) is_alone: AtomicBool,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Work({})", self.place)
    }
}

impl Work {
    fn ids(&self) -> MutexGuard<'_, Vec<Id>> {
        self.ids.lock()
    }

    fn id(&self) -> Option<Id> {
        self.ids().last().copied()
    }

    fn is_suspect(&self) -> bool {
        self.is_suspect.load(SeqCst)
    }

    fn marked<'a>(&'a self, slot: &Slot, alone: bool) -> Option<MarkGuard<'a>> {
        Some(self.crashes.mark(&Mark { id: self.id()?, place: self.place.clone(), alone }, slot))
    }

    /// More of its input has come, such as the body of a request. It goes on with its next poll, under another mark.
    ///
    /// # Errors
    /// When the whole of it is not tried again.
    pub async fn takes_in(&self, more: &[u8]) -> Result<(), RefusedInput> {
        let Some(before) = self.id() else { return Ok(()) };
        let id = Id::of(&[&before.0, more]);
        let is_suspect = self.crashes.admits(id)?;
        self.ids().push(id);
        self.is_suspect.store(is_suspect, SeqCst);
        let mut is_next = false;
        poll_fn(|context| {
            if std::mem::replace(&mut is_next, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        Ok(())
    }

    fn survived(&self) {
        self.crashes.survived(&self.ids());
    }
}

/// The thread computes on this work, until it is dropped.
struct Current(Option<Arc<Work>>);

impl Current {
    fn set(work: Option<&Arc<Work>>) -> Self {
        Self(CURRENT.replace(work.cloned()))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// `future`, with a mark of `work` in the register until it ends. If the work is suspect it is alone in each poll, and has a mark while
/// it is polled only: a death while it waits is no evidence.
pub async fn computing<F: Future>(work: Arc<Work>, future: F) -> F::Output {
    let mut future = pin!(future);
    let (usual, mut marked) = (Slot::new(), None);
    let mut asking = None;
    let output = poll_fn(|context| {
        let _current = Current::set(Some(&work));
        if !work.is_suspect() {
            let Some(_inside) = gate::enter(context.waker()) else { return Poll::Pending };
            let id = work.id();
            if marked.as_ref().is_none_or(|(before, _)| *before != id) {
                marked = None;
                marked = Some((id, work.marked(&usual, false)));
            }
            return future.as_mut().poll(context);
        }
        marked = None;
        let question = asking.get_or_insert_with(|| Asking::new(&work.crashes));
        let is_alone = ready!(question.poll(context));
        let polled = {
            let _marked = work.marked(&question.slot, is_alone);
            if is_alone { gate::within(|| future.as_mut().poll(context)) } else { future.as_mut().poll(context) }
        };
        asking = None;
        polled
    })
    .await;
    drop(marked);
    work.survived();
    output
}

/// `future`, with a mark of `work` in the register from its beginning to its end, also while it waits. Alone as long, if the work is
/// suspect. For work that waits for nothing but a disk.
pub async fn whole<F: Future>(work: Arc<Work>, future: F) -> F::Output {
    let (mut future, mut question) = (pin!(future), Asking::new(&work.crashes));
    let is_alone = work.is_suspect() && poll_fn(|context| question.poll(context)).await;
    work.is_alone.store(is_alone, SeqCst);
    let marked = work.marked(&question.slot, is_alone);
    let output = poll_fn(|context| {
        let _current = Current::set(Some(&work));
        if is_alone {
            return gate::within(|| future.as_mut().poll(context));
        }
        let Some(_inside) = gate::enter(context.waker()) else { return Poll::Pending };
        future.as_mut().poll(context)
    })
    .await;
    drop(marked);
    work.survived();
    output
}

/// `future` as work of its own, such as a file that a sweep comes to by itself, from its beginning to its end.
///
/// # Errors
/// When the input is not tried again; then nothing of it is done.
pub async fn guarded<F: Future>(
    place: impl FnOnce() -> String,
    id: impl FnOnce() -> Id,
    future: F,
) -> Result<F::Output, RefusedInput> {
    match installed() {
        Some(crashes) => Ok(whole(crashes.work(place(), id())?, future).await),
        None => Ok(future.await),
    }
}

/// The current work of a thread, to be handed on to a thread that may wait.
#[derive(Clone, Debug)]
pub struct WorkContext {
    work: Option<Arc<Work>>,
    is_alone: bool,
}

/// The current work of this thread, to be handed on.
pub fn hand_on() -> WorkContext {
    WorkContext { work: current(), is_alone: gate::is_alone() }
}

impl WorkContext {
    /// Does a part of the work on this thread, which may wait.
    pub fn run<T>(self, part: impl FnOnce() -> T) -> T {
        let _current = Current::set(self.work.as_ref());
        let Some(work) = &self.work else {
            let _inside = gate::enter_waiting();
            return part();
        };
        if work.is_alone.load(SeqCst) {
            return gate::within(part);
        }
        let mut question = Asking::new(&work.crashes);
        if work.is_suspect() && question.wait() {
            let _marked = work.marked(&question.slot, true);
            return gate::within(part);
        }
        // The mark of the whole is there.
        drop(question);
        let _inside = gate::enter_waiting();
        part()
    }

    /// Whether files have to be gone through one at a time: when one of them may be alone.
    pub fn one_at_a_time(&self) -> bool {
        self.is_alone || installed().is_some_and(|crashes| crashes.any.load(SeqCst))
    }

    /// Goes through files on one thread.
    pub fn files(&self) -> Files {
        Files { crashes: installed().cloned(), is_alone: self.is_alone, place: None }
    }
}

/// Files that one thread goes through. The mark of a file is there until that of the next one: one call to the system for each.
pub struct Files {
    pub(super) crashes: Option<Arc<Crashes>>,
    pub(super) is_alone: bool,
    pub(super) place: Option<usize>,
}

impl Files {
    /// Does something with a file. `id` says what makes it the same file with the same content.
    ///
    /// # Errors
    /// When the file is not tried again.
    pub fn file<T>(
        &mut self,
        place: impl FnOnce() -> String,
        id: impl FnOnce() -> Id,
        part: impl FnOnce() -> T,
    ) -> Result<T, RefusedInput> {
        let Some(crashes) = self.crashes.clone() else { return Ok(part()) };
        let id = id();
        let is_suspect = crashes.admits(id)?;
        let mut mark = Mark { id, place: place(), alone: false };
        let mut question = Asking::new(&crashes);
        let done = if self.is_alone || (is_suspect && question.wait()) {
            self.ends();
            mark.alone = true;
            let _marked = crashes.mark(&mark, &question.slot);
            gate::within(part)
        } else {
            let _inside = gate::enter_waiting();
            match self.place {
                Some(place) => crashes.register.change(place, &mark),
                None => self.place = crashes.register.begin(&mark),
            }
            part()
        };
        crashes.survived(&[id]);
        Ok(done)
    }

    fn ends(&mut self) {
        if let (Some(crashes), Some(place)) = (&self.crashes, self.place.take()) {
            crashes.register.end(place);
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.ends();
    }
}
