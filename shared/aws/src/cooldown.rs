//! The cooldown of a service: one that has just failed is left alone for a moment.

use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// For how long.
const LEFT_ALONE: Duration = Duration::from_secs(3);

/// Whether a service failed a moment ago: a publisher must not wait for it each time.
#[derive(Default)]
pub(crate) struct Cooldown(Mutex<Option<Instant>>);

impl Cooldown {
    pub(crate) fn is_on(&self) -> bool {
        let until = *self.0.lock();
        until.is_some_and(|until| Instant::now() < until)
    }

    pub(crate) fn begin(&self) {
        *self.0.lock() = Some(Instant::now() + LEFT_ALONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_ends_by_itself() {
        let cooldown = Cooldown::default();
        assert!(!cooldown.is_on());
        cooldown.begin();
        assert!(cooldown.is_on());
        tokio::time::advance(LEFT_ALONE).await;
        assert!(!cooldown.is_on());
    }
}
