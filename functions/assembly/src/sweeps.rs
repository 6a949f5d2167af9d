//! Sweeps: leftover work, found and dealt with from time to time; by the timer on a schedule, by the hub at intervals.
//!
//! A sweep goes on from the end of the last one, by a cursor in the table, and keeps to its time limit. Its steps can be done twice, so two that
//! sweep at once do no harm; the one that is late with its cursor stops. Nothing scans: each sweep asks an index for due items, or goes through lists
//! a page at a time.

mod due;
mod ended;
mod handoffs;
mod scrub;
mod stalled_work;
mod unlisted_waits;
mod uploads;
mod walk;

pub use due::{DueIndex, DueItems};
pub use ended::EndedActors;
pub use handoffs::Handoffs;
pub use scrub::Scrub;
pub use stalled_work::{StalledActors, StalledEvaluations, StalledTasks};
pub use unlisted_waits::UnlistedWaits;
pub use uploads::Uploads;
pub use walk::Lists;

use crate::{
    Base, Config, Services,
    remains::{Semaphores, unreachable},
};
use api::Counters;
use async_trait::async_trait;
use domain::Error;
use parking_lot::Mutex;
use ports::{Expect, Key, Table, Write};
use std::{collections::BTreeMap, fmt::Write as _, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};

/// How long a message may wait for a worker, and an actor be at one thing, before it is looked after.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How long a version of a file may wait for its flows: they begin at once, so a minute says that a process died.
const HANDED_OFF_WITHIN: Duration = Duration::from_secs(60);
/// How long the deletion of a workspace may run: longer than any request.
const DELETED_WITHIN: Duration = Duration::from_secs(600);
/// How much longer than a file in the trash the log of a deleted chat or task stays.
const LATER_THAN_TRASH: Duration = Duration::from_secs(24 * 3600);
/// The partition of all cursors.
const PARTITION: &str = "sweeps";

/// One kind of things that are left behind.
#[async_trait]
pub trait Sweep: Send + Sync {
    /// Its name: its cursor and its counter have it.
    fn name(&self) -> &'static str;
    /// Deals with some of them: a page, or less. `from` is where the last one ended; none to begin anew.
    ///
    /// # Errors
    /// An error ends this sweep for now; the next one begins again at `from`. Things that could not be dealt with by themselves are counted
    /// as `failed` instead.
    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error>;
}

/// The result of one step of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepStep {
    /// How many things it dealt with.
    pub count: u64,
    /// How many it could not deal with and left for the next time.
    pub failed: u64,
    /// The cursor of the next step; none to begin anew.
    pub next: Option<String>,
    /// Whether there is more to do now.
    pub more: bool,
}

/// All sweeps of a deployable. Cheap to clone.
#[derive(Clone)]
pub struct Sweeps {
    sweeps: Arc<[Arc<dyn Sweep>]>,
    table: Arc<dyn Table>,
    counts: Arc<Mutex<BTreeMap<&'static str, Count>>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    swept: u64,
    failed: u64,
}

impl Sweeps {
    /// These, with their cursors in the table.
    pub fn new(sweeps: impl IntoIterator<Item = Arc<dyn Sweep>>, table: Arc<dyn Table>) -> Self {
        Self { sweeps: sweeps.into_iter().collect(), table, counts: Arc::default() }
    }

    /// Those of every deployable, and others of its own.
    pub fn of(services: &Services, config: &Config, others: impl IntoIterator<Item = Arc<dyn Sweep>>) -> Self {
        let Base { table, clock, blobs, .. } = &services.base;
        let (tasks, clock, patience) = (services.tasks.clone(), clock.clone(), PATIENCE);
        let workspaces = services.workspaces.clone();
        let lists = Lists { workspaces: workspaces.clone(), tasks: tasks.clone(), chats: services.chats.clone() };
        let unlisted = UnlistedWaits { lists: lists.clone(), table: table.clone(), patience, clock: clock.clone() };
        let behind = StalledActors {
            lists,
            table: table.clone(),
            queue: services.queue.clone(),
            patience,
            clock: clock.clone(),
        };
        let scrub = Scrub { workspaces: workspaces.clone(), every: config.files.scrub_every(), clock: clock.clone() };
        let handoffs = Handoffs {
            workspaces: workspaces.clone(),
            queue: services.queue.clone(),
            patience: HANDED_OFF_WITHIN,
            clock: clock.clone(),
        };
        let due = |index, patience| DueItems { index, workspaces: workspaces.clone(), patience, clock: clock.clone() };
        let kept = config.files.trash_kept() + LATER_THAN_TRASH;
        let semaphores = Semaphores { table: table.clone(), queue: services.queue.clone(), clock: clock.clone() };
        let ended = EndedActors { workspaces: workspaces.clone(), semaphores, kept, clock: clock.clone() };
        let uploads = Uploads { blobs: blobs.clone(), clock: clock.clone() };
        let all: [Arc<dyn Sweep>; 12] = [
            Arc::new(due(DueIndex::Deletions, DELETED_WITHIN)),
            Arc::new(uploads),
            Arc::new(handoffs),
            Arc::new(due(DueIndex::Documents, patience)),
            Arc::new(StalledEvaluations { evaluations: services.evaluations.clone(), patience, clock: clock.clone() }),
            Arc::new(StalledTasks { tasks, patience, clock: clock.clone() }),
            Arc::new(due(DueIndex::Trash, config.files.trash_kept())),
            Arc::new(ended),
            Arc::new(unlisted),
            Arc::new(behind),
            Arc::new(scrub),
            // The rows of a large workspace take the longest: it has the time that all others leave.
            Arc::new(due(DueIndex::Remains, patience)),
        ];
        Self::new(others.into_iter().chain(all), table.clone())
    }

    /// Sweeps for at most this long: each for an equal share of the time that those before it have left, so that none has less than an equal share of all.
    /// How many things each dealt with; one that failed has gone on to where it failed, and goes on there the next time.
    pub async fn sweep(&self, at_most: Duration) -> BTreeMap<&'static str, u64> {
        let end = Instant::now() + at_most;
        let to_come = (1..=u32::try_from(self.sweeps.len()).unwrap_or(u32::MAX)).rev();
        let mut done = BTreeMap::new();
        for (sweep, to_come) in self.sweeps.iter().zip(to_come) {
            let (name, mut dealt, now) = (sweep.name(), Count::default(), Instant::now());
            let share = end.saturating_duration_since(now) / to_come;
            let result = timeout_at(now + share, self.through(&**sweep, &mut dealt)).await;
            let Count { swept, failed } = dealt;
            let stopped = match result {
                Ok(Err(error)) => {
                    tracing::warn!(sweep = name, %error, "a sweep failed; the next one goes on from here");
                    1
                }
                Ok(Ok(())) => 0,
                Err(_) => {
                    tracing::info!(sweep = name, swept, "the time is up; the next sweep goes on from here");
                    0
                }
            };
            let mut counts = self.counts.lock();
            let count = counts.entry(name).or_default();
            *count = Count { swept: count.swept + swept, failed: count.failed + failed + stopped };
            done.insert(name, swept);
        }
        done
    }

    /// Goes on with one sweep until it has been through everything.
    async fn through(&self, sweep: &dyn Sweep, dealt: &mut Count) -> Result<(), Error> {
        let key = Key::new(PARTITION, sweep.name());
        loop {
            let found = self.table.get(&key).await.map_err(unreachable)?;
            let from: Option<String> = found.as_ref().and_then(|item| serde_json::from_str(&item.body).ok());
            let step = sweep.sweep_page(from.as_deref()).await?;
            dealt.swept += step.count;
            dealt.failed += step.failed;
            let expect = found.as_ref().map_or(Expect::Absent, |item| Expect::Rev(item.rev));
            let moved = match &step.next {
                // Nothing was due.
                Some(next) if from.as_ref() == Some(next) => None,
                Some(next) => Some(Write::put(key.clone(), serde_json::Value::from(next.as_str()).to_string(), expect)),
                None => found.is_some().then(|| Write::delete(key.clone(), expect)),
            };
            if let Some(write) = moved {
                match self.table.commit(vec![write]).await {
                    Ok(()) => {}
                    // Somebody else sweeps, and has gone on.
                    Err(ports::Error::Conflict { .. }) => return Ok(()),
                    Err(error) => return Err(unreachable(error)),
                }
            }
            if !step.more {
                return Ok(());
            }
        }
    }

    /// The counts of swept items, in Prometheus' text format.
    pub fn counters(&self) -> Counters {
        let counts = self.counts.clone();
        Box::new(move |out| {
            let counts = counts.lock();
            let mut family = |name: &str, help: &str, of: fn(&Count) -> u64| {
                // Writing to a string cannot fail.
                let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
                for (sweep, count) in counts.iter() {
                    let _ = writeln!(out, "{name}{{sweep=\"{sweep}\"}} {}", of(count));
                }
            };
            family("buildscale_swept_total", "Things that sweeps dealt with.", |count| count.swept);
            family(
                "buildscale_sweeps_failed_total",
                "Sweeps that did not come to their end, and things that they left for the next time.",
                |count| count.failed,
            );
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::Clock;
    use testkit::{
        TestClock,
        fakes::{FakeTable, Faults},
    };

    /// Ten pages, a second each; one of them fails the first time.
    #[derive(Default)]
    struct Pages {
        seen: Mutex<Vec<u64>>,
        fails_at: Mutex<Option<u64>>,
    }

    impl Pages {
        fn seen(&self) -> Vec<u64> {
            std::mem::take(&mut self.seen.lock())
        }
    }

    #[async_trait]
    impl Sweep for Pages {
        fn name(&self) -> &'static str {
            "pages"
        }

        async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
            let page = from.and_then(|from| from.parse().ok()).unwrap_or(0);
            // poll: time is paused, so this is how long it takes and not how long the test does
            tokio::time::sleep(Duration::from_secs(1)).await;
            if self.fails_at.lock().take_if(|at| *at == page).is_some() {
                return Err(Error::new(domain::Code::Internal, "this page is torn"));
            }
            self.seen.lock().push(page);
            let more = page < 9;
            Ok(SweepStep { count: 1, next: more.then(|| (page + 1).to_string()), more, ..SweepStep::default() })
        }
    }

    fn sweeps(pages: &Arc<Pages>) -> Sweeps {
        in_order([pages.clone() as Arc<dyn Sweep>])
    }

    fn in_order(sweeps: impl IntoIterator<Item = Arc<dyn Sweep>>) -> Sweeps {
        let clock: Arc<dyn Clock> = Arc::new(TestClock::new(0));
        Sweeps::new(sweeps, Arc::new(FakeTable::new(clock, 0, Faults::none())))
    }

    /// Finds nothing to do, at once.
    struct Nothing(&'static str);

    #[async_trait]
    impl Sweep for Nothing {
        fn name(&self) -> &'static str {
            self.0
        }

        async fn sweep_page(&self, _: Option<&str>) -> Result<SweepStep, Error> {
            Ok(SweepStep::default())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_others_do_not_need_is_for_the_sweeps_behind_them_and_none_has_less_than_its_share() {
        let nothing = |name| Arc::new(Nothing(name)) as Arc<dyn Sweep>;
        let pages = Arc::new(Pages::default());
        let at_most = Duration::from_millis(8_500);
        let last = in_order([nothing("one"), nothing("two"), nothing("three"), pages.clone()]);
        assert_eq!(last.sweep(at_most).await["pages"], 8);
        let first = in_order([pages as Arc<dyn Sweep>, nothing("one")]);
        let (swept, began) = (first.sweep(at_most).await, Instant::now());
        assert_eq!((swept["pages"], swept.get("one")), (4, Some(&0)), "half of the time");
        assert!(first.sweep(at_most).await.contains_key("one") && began.elapsed() <= at_most);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sweep_goes_on_where_the_time_was_up_or_something_failed() {
        let pages = Arc::new(Pages::default());
        let sweeps = sweeps(&pages);
        let four = Duration::from_millis(4_500);
        assert_eq!((sweeps.sweep(four).await["pages"], pages.seen()), (4, vec![0, 1, 2, 3]));
        *pages.fails_at.lock() = Some(6);
        assert_eq!((sweeps.sweep(four).await["pages"], pages.seen()), (2, vec![4, 5]));
        // Another process goes on from the cursor of this one.
        let other = sweeps.clone();
        assert_eq!((other.sweep(4 * four).await["pages"], pages.seen()), (4, vec![6, 7, 8, 9]));
        assert_eq!((sweeps.sweep(four).await["pages"], pages.seen()), (4, vec![0, 1, 2, 3]), "and anew");
        let mut out = String::new();
        sweeps.counters()(&mut out);
        for line in
            ["buildscale_swept_total{sweep=\"pages\"} 14\n", "buildscale_sweeps_failed_total{sweep=\"pages\"} 1\n"]
        {
            assert!(out.contains(line), "{out}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_at_once_one_stops() {
        let pages = Arc::new(Pages::default());
        let sweeps = sweeps(&pages);
        let long = Duration::from_secs(60);
        let (one, other) = tokio::join!(sweeps.sweep(long), sweeps.sweep(long));
        assert_eq!(one["pages"] + other["pages"], 11, "the first page twice, and each other one once");
        let mut seen = pages.seen();
        seen.dedup();
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    }
}
