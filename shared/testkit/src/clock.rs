//! Time that follows tokio's, and ids by seed.

use crate::Random;
use domain::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use ports::Clock;
use std::future::Future;
use tokio::{runtime::Handle, time::Instant};
use uuid::Uuid;

/// A clock that begins at a fixed moment and passes as tokio's time does: in a runtime with paused time it stands still
/// while there is work and jumps over waits. Its ids are version 7 UUIDs, the same for the same seed.
///
/// It never goes back. A runtime has a time of its own, so a test that goes on in another one calls [`TestClock::rebase`] first.
#[derive(Debug)]
pub struct TestClock(Mutex<State>);

#[derive(Debug)]
struct State {
    /// A moment in tokio's time and in ours.
    anchor: (Instant, Timestamp),
    /// The runtime that keeps the time: a thread outside of it, such as a store's writer, sees the same time.
    runtime: Option<Handle>,
    newest: Timestamp,
    random: Random,
}

impl TestClock {
    /// When it begins: 2026-01-01T00:00:00Z.
    pub const BEGINNING: Timestamp = Timestamp::from_millis(1_767_225_600_000);

    /// A clock that begins now, with the ids of `seed`.
    pub fn new(seed: u64) -> Self {
        let anchor = (Instant::now(), Self::BEGINNING);
        let runtime = Handle::try_current().ok();
        Self(Mutex::new(State { anchor, runtime, newest: Self::BEGINNING, random: Random::new(seed) }))
    }

    /// Goes on in this runtime from the newest time that it has told.
    pub fn rebase(&self) {
        let mut state = self.lock();
        state.anchor = (Instant::now(), state.newest);
        state.runtime = Handle::try_current().ok();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    fn now(&mut self) -> Timestamp {
        let is_outside = Handle::try_current().is_err();
        let _inside = self.runtime.as_ref().filter(|_| is_outside).map(Handle::enter);
        let instant = Instant::now();
        let now = self.anchor.1 + instant.saturating_duration_since(self.anchor.0);
        if now < self.newest {
            self.anchor = (instant, self.newest);
        } else {
            self.newest = now;
        }
        self.newest
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.lock().now()
    }

    fn id(&self) -> Uuid {
        let mut state = self.lock();
        let ms = u64::try_from(state.now().as_millis()).unwrap_or(0);
        let random = [state.random.number().to_be_bytes(), state.random.number().to_be_bytes()].concat();
        let mut bytes = [0; 10];
        bytes.iter_mut().zip(random).for_each(|(byte, drawn)| *byte = drawn);
        uuid::Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid()
    }
}

/// Runs `call` while paused time stands still.
///
/// A paused runtime jumps to its next timer whenever no task can go on, also when a task waits for a real thread, such as
/// the embedded store's writer. Work on a blocking thread is the one thing it does not jump over.
pub async fn holding_time<T>(call: impl Future<Output = T>) -> T {
    let (done, wait) = std::sync::mpsc::channel::<()>();
    // It ends when `done` is dropped; nothing is ever sent.
    let held = tokio::task::spawn_blocking(move || wait.recv().is_err());
    let answer = call.await;
    drop(done);
    // Its only failure is a runtime that is going away.
    drop(held.await);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn time_jumps_over_waits_and_ids_follow_the_seed() {
        let (one, other) = (TestClock::new(7), TestClock::new(7));
        assert_eq!((one.now(), one.id()), (TestClock::BEGINNING, other.id()));
        assert_eq!(one.id().get_version_num(), 7);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(one.now(), TestClock::BEGINNING + Duration::from_secs(3600));
        assert_ne!(TestClock::new(8).id(), TestClock::new(7).id());
    }

    #[test]
    fn time_goes_on_in_another_runtime() {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let (Ok(first), Ok(second)) = (runtime(), runtime()) else { panic!("no runtime") };
        let clock = first.block_on(async {
            let clock = TestClock::new(0);
            tokio::time::advance(Duration::from_secs(60)).await;
            assert_eq!(clock.now(), TestClock::BEGINNING + Duration::from_secs(60));
            clock
        });
        drop(first);
        second.block_on(async {
            clock.rebase();
            assert_eq!(clock.now(), TestClock::BEGINNING + Duration::from_secs(60));
        });
    }
}
