//! Measures for how long the machine has been unused.

use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Counts the users of the machine, and remembers when the last one was done.
#[derive(Clone, Debug)]
pub(crate) struct Idle(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    users: usize,
    since: Instant,
}

impl Idle {
    /// No users, from now on.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State { users: 0, since: Instant::now() })))
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock())
    }

    /// Somebody, until the answer is dropped.
    pub fn used(&self) -> UseGuard {
        self.change(|state| state.users += 1);
        UseGuard(self.clone())
    }

    /// For how long there have been no users; zero while there is one.
    pub fn elapsed(&self) -> Duration {
        self.change(|state| if state.users == 0 { state.since.elapsed() } else { Duration::ZERO })
    }
}

/// A use of the machine.
#[derive(Debug)]
pub(crate) struct UseGuard(Idle);

impl Drop for UseGuard {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.users -= 1;
            state.since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn it_is_idle_since_the_last_one_was_done() {
        let idle = Idle::new();
        advance(Duration::from_secs(7)).await;
        assert_eq!(idle.elapsed().as_secs(), 7);
        let (one, two) = (idle.used(), idle.used());
        drop(one);
        advance(Duration::from_secs(7)).await;
        assert_eq!(idle.elapsed(), Duration::ZERO);
        drop(two);
        advance(Duration::from_secs(3)).await;
        assert_eq!(idle.elapsed().as_secs(), 3);
    }
}
