//! A worker that dies at any call that it makes, before the call has its effect and after.

use crate::lane::{Lane, Turns, emulators, tell};
use emulators::{Call, Fate};
use futures::future::join_all;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// How many deployments there are to die in.
const LANES: usize = 4;

/// On which side of a call to die.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    /// It has no effect.
    Before,
    /// It has its effect, and its answer is lost.
    After,
    /// It has none to have.
    None,
}

impl Lane {
    /// The calls of the worker during the actions of a person in these tests: a file that goes to S3, and a turn that is stopped.
    async fn calm(&self) -> Vec<Call> {
        let calls: Arc<Mutex<Vec<Call>>> = Arc::default();
        let noted = calls.clone();
        self.plan(move |call| {
            if call.function == "worker" {
                noted.lock().push(call.clone());
            }
            Fate::Pass
        });
        self.journey("large-calm", "undisturbed").await;
        calls.lock().clone()
    }

    async fn journey(&self, goal: &str, what: &str) {
        // Each begins in a process that knows nothing.
        self.world.worker.forget_idle();
        let (chat, watch) = self.make(goal).await;
        self.stop(&chat, &watch).await;
        self.plan(|_| Fate::Pass);
        self.check(&chat, &watch, what).await;
    }

    /// The same, with a worker that dies at a moment. Returns at which call that was; none when it did not come.
    async fn dies(&self, moment: Moment) -> Option<Call> {
        let (changes, died) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None)));
        let (worker, died_at) = (self.world.worker.clone(), died.clone());
        self.plan(move |call| {
            let comes = call.function == "worker" && {
                let before = if call.reads() { changes.load(Relaxed) } else { changes.fetch_add(1, Relaxed) };
                before == moment.changes && call.reads() == (moment.side == Side::None)
            };
            if !comes || died_at.lock().is_some() {
                return Fate::Pass;
            }
            *died_at.lock() = Some(call.clone());
            let worker = worker.clone();
            match moment.side {
                Side::Before | Side::None => {
                    worker.kill_busy();
                    Fate::Lost
                }
                Side::After => Fate::then(move || _ = worker.kill_busy()),
            }
        });
        let goal = format!("large-{}-{:?}", moment.changes, moment.side);
        self.journey(&goal, &format!("died at {moment:?}")).await;
        died.lock().clone()
    }
}

/// A moment to die at.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// How many of its calls that change something come before.
    changes: usize,
    side: Side,
}

/// Every distinct moment. A worker's memory dies with it, so only its changes tell one death from another: deaths at calls that only read,
/// with no change between them and the next call that changes something, are one and the same as the death before that call. The rest are
/// both sides of each change (between the later side of one and the earlier side of the next lies the publishing), and the reads after the
/// last.
fn moments(calls: &[Call]) -> Vec<Moment> {
    let changes = calls.iter().filter(|call| !call.reads()).count();
    let sides = |changes| [Side::Before, Side::After].map(|side| Moment { changes, side });
    let end = calls.last().filter(|call| call.reads()).map(|_| Moment { changes, side: Side::None });
    (0..changes).flat_map(sides).chain(end).collect()
}

/// The worker is killed at every moment of a journey, by its changes until then. Its work is done once all the same, and watchers see it.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_may_die_at_any_call() {
    let emulators = emulators().await;
    let lanes = join_all((0..LANES).map(|_| Lane::deploy(&emulators, &[]))).await;
    let calls = lanes[0].calm().await;
    let moments = moments(&calls);
    let operations: Vec<&str> = calls.iter().map(|call| call.operation.as_str()).collect();
    assert!(moments.len() > 20, "{operations:?}");
    // The content of the file, its edited content, and the two entries of the log that are too long for the table.
    let sent = operations.iter().filter(|operation| **operation == "PUT object").count();
    assert!((2..=4).contains(&sent), "{operations:?}");
    let (turns, died) = (Turns::new(), Mutex::new(BTreeMap::<String, usize>::new()));
    let (turns, died, moments) = (&turns, &died, &moments);
    join_all(lanes.iter().map(|lane| async move {
        while let Some(moment) = moments.get(turns.next()) {
            if let Some(call) = lane.dies(*moment).await {
                *died.lock().entry(format!("{} {:?}", call.operation, moment.side)).or_default() += 1;
            }
        }
    }))
    .await;
    let died = died.lock();
    tell(&format!("{} calls, died at {died:?}", calls.len()));
    // How often a lease is renewed depends on the time; the rest is the same in each run.
    assert!(died.values().sum::<usize>() * 10 >= moments.len() * 8, "too few deaths: {died:?} of {operations:?}");
}
