//! Polls deliveries and their effects lane by lane, on a few runners of the async runtime.
//!
//! The queue of the async runtime is first come, first served. A future of one tenant that is ready would wait there behind every ready
//! future of another tenant, at each of its awaits. Here a future that is woken waits among those of its lane, and lanes take turns, a poll
//! each. There are as many runners as the runtime has threads, and a runner steps back after each poll. So a future waits for a poll or two
//! of another lane, and the runtime's other work, such as serving requests, waits for no more.
//!
//! A poll is not interrupted: one that computes for long holds up the others for as long.

use futures::future::BoxFuture;
use parking_lot::Mutex;
use ports::{FairQueue, lane};
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};
use tokio::runtime::Handle;

/// Runs futures lane by lane. Clones are the same one; a process shares one.
#[derive(Clone, Debug, Default)]
pub struct Executor(Arc<Mutex<Ready>>);

/// Futures that are to be polled.
#[derive(Debug, Default)]
struct Ready {
    turns: FairQueue<Arc<Task>>,
    runners: usize,
}

/// A future with its lane and its state.
struct Task {
    lane: Arc<str>,
    executor: Executor,
    runtime: Handle,
    slot: Mutex<Slot>,
}

struct Slot {
    /// Not here while it is polled, and gone when it is over.
    future: Option<BoxFuture<'static, ()>>,
    state: State,
    /// The waker of the task that waits for the end.
    waits: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It waits to be woken.
    Idle,
    /// It waits for its turn.
    Ready,
    Polled,
    /// It was woken while it is polled.
    Woken,
    /// It has ended, panicked, or was aborted.
    Over,
}

/// A running future. Dropping this aborts it; as a future, this ends when that one has ended, was aborted or has panicked.
#[must_use = "dropping it aborts the future"]
#[derive(Debug)]
pub struct Job {
    task: Arc<Task>,
    detached: bool,
}

impl Executor {
    /// Runs a future for this actor. Call it from within a runtime of tokio.
    pub fn spawn(&self, actor: &str, future: impl Future<Output = ()> + Send + 'static) -> Job {
        let slot = Slot { future: Some(Box::pin(future)), state: State::Idle, waits: None };
        let (lane, runtime) = (lane(actor).into(), Handle::current());
        let task = Arc::new(Task { lane, executor: self.clone(), runtime, slot: Mutex::new(slot) });
        task.wake_by_ref();
        Job { task, detached: false }
    }

    /// A task has its turn to wait for. One more runner, if all are at work and there may be more.
    fn queue(&self, task: Arc<Task>) {
        let (lane, runtime) = (task.lane.clone(), task.runtime.clone());
        let mut ready = self.0.lock();
        ready.turns.add(&lane, task);
        let starts = ready.runners < runtime.metrics().num_workers();
        ready.runners += usize::from(starts);
        drop(ready);
        if starts {
            drop(runtime.spawn(self.clone().run()));
        }
    }

    /// One runner: it ends when nothing is ready.
    async fn run(self) {
        while let Some(task) = self.next() {
            // A panic ends this future alone, as it would end a task of tokio's. The hook has reported it.
            if catch_unwind(AssertUnwindSafe(|| task.clone().poll())).is_err() {
                task.end();
            }
            tokio::task::yield_now().await;
        }
    }

    /// The next task; none, and a runner less, when nothing is ready.
    fn next(&self) -> Option<Arc<Task>> {
        let mut ready = self.0.lock();
        let next = ready.turns.next();
        ready.runners -= usize::from(next.is_none());
        next
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let mut slot = self.slot.lock();
        slot.state = match slot.state {
            State::Idle => State::Ready,
            State::Polled => State::Woken,
            State::Ready | State::Woken | State::Over => return,
        };
        let is_ready = slot.state == State::Ready;
        drop(slot);
        if is_ready {
            self.executor.clone().queue(self);
        }
    }
}

impl Task {
    fn poll(self: Arc<Self>) {
        let future = {
            let mut slot = self.slot.lock();
            let future = slot.future.take();
            // None of one that was aborted meanwhile.
            if future.is_some() {
                slot.state = State::Polled;
            }
            future
        };
        let Some(mut future) = future else { return };
        let waker = Waker::from(self.clone());
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            return self.end();
        }
        let mut slot = self.slot.lock();
        match slot.state {
            State::Woken => {
                (slot.future, slot.state) = (Some(future), State::Ready);
                drop(slot);
                self.executor.clone().queue(self);
            }
            State::Polled => (slot.future, slot.state) = (Some(future), State::Idle),
            // It was aborted meanwhile.
            State::Idle | State::Ready | State::Over => {}
        }
    }

    /// Ends it: drops the rest of the future and wakes the task that waits for it.
    fn end(&self) {
        let mut slot = self.slot.lock();
        slot.state = State::Over;
        let (future, waits) = (slot.future.take(), slot.waits.take());
        drop(slot);
        drop(future);
        if let Some(waits) = waits {
            waits.wake();
        }
    }
}

impl Job {
    /// Lets it run to its end without an owner.
    pub fn detach(mut self) {
        self.detached = true;
    }
}

impl Future for Job {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut slot = self.task.slot.lock();
        if slot.state == State::Over {
            return Poll::Ready(());
        }
        slot.waits = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.detached {
            self.task.end();
        }
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("lane", &self.lane).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use tokio::{sync::oneshot, task::yield_now};

    type Seen = Arc<Mutex<Vec<&'static str>>>;

    /// Polled so many times, each of which it notes.
    async fn polled(name: &'static str, times: usize, seen: Seen) {
        for _ in 0..times {
            seen.lock().push(name);
            let mut again = true;
            // Ready again at once, without a detour through the queue of the async runtime.
            std::future::poll_fn(|context| match std::mem::take(&mut again) {
                true => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                false => Poll::Ready(()),
            })
            .await;
        }
    }

    /// Counts itself as gone when it is dropped.
    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[tokio::test]
    async fn a_lane_with_one_future_waits_for_one_poll_of_a_lane_with_a_thousand() {
        let (executor, seen) = (Executor::default(), Seen::default());
        let many: Vec<Job> =
            (0..1_000).map(|_| executor.spawn("task/many/1", polled("many", 3, seen.clone()))).collect();
        executor.spawn("task/few/1", polled("few", 3, seen.clone())).await;
        assert_eq!(*seen.lock(), ["many", "few", "many", "few", "many", "few", "many"]);
        for job in many {
            job.await;
        }
        assert_eq!(seen.lock().len(), 3_003);
    }

    #[tokio::test]
    async fn chats_and_tasks_of_one_tenant_take_turns() {
        let (executor, seen) = (Executor::default(), Seen::default());
        let tasks = [(); 3].map(|()| executor.spawn("task/one/1", polled("task", 1, seen.clone())));
        executor.spawn("chat/one/1", polled("chat", 1, seen.clone())).await;
        assert_eq!(seen.lock()[..3], ["task", "chat", "task"]);
        drop(tasks);
    }

    #[tokio::test]
    async fn others_of_the_runtime_have_their_turn_between_two_polls() {
        let (executor, seen) = (Executor::default(), Seen::default());
        let job = executor.spawn("task/many/1", polled("many", 1_000, seen.clone()));
        let other = tokio::spawn({
            let seen = seen.clone();
            async move {
                for _ in 0..3 {
                    seen.lock().push("other");
                    yield_now().await;
                }
            }
        });
        other.await.expect("it ends");
        assert!(seen.lock().len() < 10, "{:?}", seen.lock());
        job.await;
    }

    #[tokio::test]
    async fn a_future_that_is_woken_from_another_thread_goes_on() {
        let executor = Executor::default();
        let (tell, told) = oneshot::channel();
        let job = executor.spawn("task/one/1", async move { told.await.expect("it is told") });
        yield_now().await;
        std::thread::spawn(move || tell.send(())).join().expect("it ends").expect("it waits");
        job.await;
    }

    #[tokio::test]
    async fn a_dropped_job_is_dropped_at_once_and_a_detached_one_ends() {
        let (executor, gone) = (Executor::default(), Arc::new(AtomicUsize::new(0)));
        let (tell, told) = oneshot::channel::<()>();
        let hanging = Counted(gone.clone());
        let job = executor.spawn("task/one/1", async move {
            let _hanging = hanging;
            std::future::pending::<()>().await;
        });
        let waiting = Counted(gone.clone());
        let detached = executor.spawn("task/one/2", async move {
            let _waiting = waiting;
            drop(told.await);
        });
        // Before the first poll, and after it.
        let unpolled = Counted(gone.clone());
        drop(executor.spawn("task/one/3", async move { drop(unpolled) }));
        assert_eq!(gone.load(Relaxed), 1);
        yield_now().await;
        drop(job);
        assert_eq!(gone.load(Relaxed), 2);
        let ended = Arc::downgrade(&detached.task);
        detached.detach();
        drop(tell);
        while ended.upgrade().is_some() {
            yield_now().await;
        }
        assert_eq!(gone.load(Relaxed), 3);
    }

    #[tokio::test]
    async fn a_future_may_abort_itself_while_it_is_polled() {
        let (executor, gone) = (Executor::default(), Arc::new(AtomicUsize::new(0)));
        let own: Arc<Mutex<Option<Job>>> = Arc::default();
        let counted = Counted(gone.clone());
        let job = executor.spawn("task/one/1", {
            let own = own.clone();
            async move {
                let _counted = counted;
                drop(own.lock().take());
                std::future::pending::<()>().await;
            }
        });
        *own.lock() = Some(job);
        while gone.load(Relaxed) == 0 {
            yield_now().await;
        }
        // Another one runs all the same.
        executor.spawn("task/one/2", async {}).await;
    }

    #[tokio::test]
    async fn a_panic_ends_its_own_future_alone() {
        let executor = Executor::default();
        let job = executor.spawn("task/one/1", async { panic!("for the test") });
        let other = executor.spawn("task/one/2", yield_now());
        job.await;
        other.await;
    }
}
