//! A worker that dies at any call that it makes, before the call has its effect and after.

use crate::lane::{Lane, Turns, emulators, tell};
use emulators::{Call, Fate};
use futures::future::join_all;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// How many deployments there are to die in.
const LANES: usize = 3;

/// On which side of a call to die.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    /// It has no effect.
    Before,
    /// It has its effect, and nobody hears of it.
    After,
}

impl Lane {
    /// The calls of the worker while a person does what people here do: a file that goes to S3, and a turn that is stopped.
    async fn calm(&self) -> Vec<Call> {
        let calls: Arc<Mutex<Vec<Call>>> = Arc::default();
        let noted = calls.clone();
        self.plan(move |call| {
            if call.function == "worker" {
                noted.lock().unwrap().push(call.clone());
            }
            Fate::Pass
        });
        self.journey("large-calm", "undisturbed").await;
        calls.lock().unwrap().clone()
    }

    async fn journey(&self, goal: &str, what: &str) {
        // Each begins in a process that knows nothing.
        self.world.worker.forget_idle();
        let (chat, watch) = self.make(goal).await;
        self.stop(&chat, &watch).await;
        self.plan(|_| Fate::Pass);
        self.check(&chat, &watch, what).await;
    }

    /// The same, with a worker that dies at the call with this number. Returns which call that was; none when it made fewer.
    async fn dies(&self, number: usize, side: Side) -> Option<Call> {
        let (made, died) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None)));
        let (worker, died_at) = (self.world.worker.clone(), died.clone());
        self.plan(move |call| {
            if call.function != "worker" || made.fetch_add(1, Relaxed) != number {
                return Fate::Pass;
            }
            *died_at.lock().unwrap() = Some(call.clone());
            let worker = worker.clone();
            match side {
                Side::Before => {
                    worker.kill_busy();
                    Fate::Lost
                }
                Side::After => Fate::then(move || _ = worker.kill_busy()),
            }
        });
        self.journey(&format!("large-{number}-{side:?}"), &format!("died at call {number}, {side:?}")).await;
        died.lock().unwrap().clone()
    }
}

/// The worker is killed at every call that it makes in a journey; where the call changes something, on both sides of it. Whatever it was
/// at is done once all the same, and whoever watches sees it.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_may_die_at_any_call() {
    let emulators = emulators().await;
    let lanes = join_all((0..LANES).map(|_| Lane::deploy(&emulators, &[]))).await;
    let calls = lanes[0].calm().await;
    let deaths: Vec<(usize, Side)> = calls
        .iter()
        .enumerate()
        .flat_map(|(number, call)| match call.reads() {
            // What changes nothing has no side.
            true => vec![(number, Side::Before)],
            false => vec![(number, Side::Before), (number, Side::After)],
        })
        .collect();
    let operations: Vec<&str> = calls.iter().map(|call| call.operation.as_str()).collect();
    assert!(deaths.len() > 20, "{operations:?}");
    // The content of the file, what it was changed to, and the two entries of the log that are too long for the table.
    let sent = operations.iter().filter(|operation| **operation == "PUT object").count();
    assert!((2..=4).contains(&sent), "{operations:?}");
    let (turns, died) = (Turns::new(), Mutex::new(BTreeMap::<String, usize>::new()));
    let (turns, died, deaths) = (&turns, &died, &deaths);
    join_all(lanes.iter().map(|lane| async move {
        while let Some((number, side)) = deaths.get(turns.next()) {
            if let Some(call) = lane.dies(*number, *side).await {
                *died.lock().unwrap().entry(format!("{} {side:?}", call.operation)).or_default() += 1;
            }
        }
    }))
    .await;
    let died = died.lock().unwrap();
    tell(&format!("{} calls, died at {died:?}", calls.len()));
    // How often a stop is looked for depends on the time; the rest is the same in each run.
    assert!(died.values().sum::<usize>() * 10 >= deaths.len() * 8, "too few deaths: {died:?} of {operations:?}");
}
