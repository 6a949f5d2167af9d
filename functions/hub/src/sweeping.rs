//! Stranded work is looked after now and then; the timer does so in the cloud.

use assembly::sweeps::Sweeps;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How long it rests.
const EVERY: Duration = Duration::from_secs(300);
/// How long one sweep may take.
const AT_MOST: Duration = Duration::from_secs(60);

/// Sweeps at once, because a hub on a laptop may run for some minutes a day, and then at intervals. A sweep that is under way does
/// not hold up the shutdown: the next one goes on from there.
pub(crate) async fn sweep(sweeps: Sweeps, shutdown: CancellationToken) {
    let sweeping = async {
        loop {
            let swept = sweeps.sweep(AT_MOST).await;
            tracing::debug!(?swept, "swept");
            sleep(EVERY).await;
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = sweeping => {}
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use assembly::sweeps::{Sweep, SweepStep};
    use async_trait::async_trait;
    use ports::Clock;
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    };
    use testkit::{
        TestClock,
        fakes::{FakeTable, Faults},
    };
    use tokio::{task::JoinHandle, time::Instant};

    /// Counts how often it is asked; and never answers, or at once.
    struct Asked {
        times: AtomicU64,
        answers: bool,
    }

    #[async_trait]
    impl Sweep for Asked {
        fn name(&self) -> &'static str {
            "asked"
        }

        async fn sweep_page(&self, _: Option<&str>) -> Result<SweepStep, domain::Error> {
            self.times.fetch_add(1, Relaxed);
            if self.answers { Ok(SweepStep::default()) } else { std::future::pending().await }
        }
    }

    /// A hub's loop over this one sweep.
    fn hub(answers: bool) -> (Arc<Asked>, CancellationToken, JoinHandle<()>) {
        let clock: Arc<dyn Clock> = Arc::new(TestClock::new(0));
        let asked = Arc::new(Asked { times: AtomicU64::new(0), answers });
        let sweeps = Sweeps::new([asked.clone() as Arc<dyn Sweep>], Arc::new(FakeTable::new(clock, 0, Faults::none())));
        let shutdown = CancellationToken::new();
        let sweeping = tokio::spawn(sweep(sweeps, shutdown.clone()));
        (asked, shutdown, sweeping)
    }

    #[tokio::test(start_paused = true)]
    async fn it_sweeps_at_once_and_every_five_minutes_until_it_ends() {
        let (asked, shutdown, sweeping) = hub(true);
        let second = Duration::from_secs(1);
        for times in 1..=12 {
            // poll: time is paused, and passes when all tasks are idle
            sleep(second).await;
            assert_eq!(asked.times.load(Relaxed), times);
            sleep(EVERY - 2 * second).await;
            assert_eq!(asked.times.load(Relaxed), times, "it rests");
            sleep(second).await;
        }
        shutdown.cancel();
        sweeping.await.unwrap();
        let swept = asked.times.load(Relaxed);
        sleep(EVERY * 2).await;
        assert_eq!(asked.times.load(Relaxed), swept);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sweep_that_hangs_is_given_up_and_holds_up_no_shutdown() {
        let (asked, shutdown, sweeping) = hub(false);
        // poll: time is paused
        sleep(2 * (AT_MOST + EVERY) + AT_MOST / 2).await;
        assert_eq!(asked.times.load(Relaxed), 3, "there is a next one, which is under way");
        let told = Instant::now();
        shutdown.cancel();
        sweeping.await.unwrap();
        assert_eq!(told.elapsed(), Duration::ZERO);
    }
}
