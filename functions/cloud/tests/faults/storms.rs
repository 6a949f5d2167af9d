//! Many things that fail at once, while several people talk to several chats.

use crate::lane::{Lane, tell};
use emulators::Fate;
use futures::future::join_all;
use journeys::Emulators;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use testkit::Random;

/// How many chats there are at once.
const CHATS: usize = 4;

/// The fate of the call with this number: the same in every run.
fn drawn(number: usize, seed: u64) -> Fate {
    let mut random = Random::new(seed ^ number as u64);
    if !random.chance(0.12) {
        return Fate::Pass;
    }
    match random.below(8) {
        0 => Fate::Lost,
        1 => Fate::AnswerLost,
        2 => Fate::AnswerCut,
        3 => Fate::json(500, "InternalServerError"),
        4 => Fate::json_after(500, "InternalServerError"),
        5 => Fate::json(400, "ThrottlingException"),
        6 => Fate::json(503, "SlowDown"),
        _ => Fate::Slow(Duration::from_millis(200)),
    }
}

impl Lane {
    /// Several people at once, each with a file and a turn that is stopped.
    async fn crowd(&self, what: &str) {
        let began = tokio::time::Instant::now();
        let chats = join_all((0..CHATS).map(|chat| async move {
            let (chat, watch) = self.make(&format!("large-{what}-{chat}")).await;
            self.stop(&chat, &watch).await;
            (chat, watch)
        }));
        let chats = chats.await;
        self.plan(|_| Fate::Pass);
        for (chat, watch) in &chats {
            self.check(chat, watch, what).await;
        }
        tell(&format!("{what}: {:?}", began.elapsed()));
    }
}

pub async fn a_crowd_gets_through_storms_and_throttling(emulators: &Arc<Emulators>) {
    let lane = Lane::deploy(emulators, &[]).await;
    for seed in [1, 2] {
        // People are told about a failed call of theirs, and they try again; here it is the worker that has to.
        let (number, failed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counted = failed.clone();
        lane.plan(move |call| {
            if call.function != "worker" {
                return Fate::Pass;
            }
            let fate = drawn(number.fetch_add(1, Relaxed), seed);
            counted.fetch_add(usize::from(!matches!(fate, Fate::Pass)), Relaxed);
            fate
        });
        lane.crowd(&format!("storm-{seed}")).await;
        tell(&format!("storm {seed}: {} calls failed", failed.load(Relaxed)));
        assert!(failed.load(Relaxed) > 10);
    }
    // Of every hundred calls of DynamoDB, fifteen in a row are too many: more than the SDK tries by itself.
    let number = Arc::new(AtomicUsize::new(0));
    lane.world.dynamodb.plan(move |_| match number.fetch_add(1, Relaxed) % 100 {
        30..45 => Fate::json(400, "ProvisionedThroughputExceededException"),
        _ => Fate::Pass,
    });
    lane.crowd("throttled").await;
}
