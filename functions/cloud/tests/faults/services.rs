//! Calls of every service that fail one at a time, in every way there is.

use crate::lane::{Lane, Turns, emulators, tell};
use emulators::Fate;
use futures::future::join_all;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

/// How many deployments share the cases.
const LANES: usize = 4;

/// A service as [`Lane::services`] calls it, an operation, and the fate of one such call.
type Case = (&'static str, &'static str, Fate);

/// The fates of a call on its way. (Calls of DynamoDB that are lost are in `tests/cloud/faults.rs`.)
fn on_its_way() -> [Fate; 4] {
    [Fate::Lost, Fate::AnswerLost, Fate::AnswerCut, Fate::Slow(Duration::from_millis(1500))]
}

fn cases() -> Vec<Case> {
    let throttled = ["ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"];
    let mut throttled = throttled.into_iter().cycle().map(|code| Fate::json(400, code));
    let mut cases = Vec::new();
    // No answer ever comes: these take as long as a client has patience (five seconds, and ten for contents), so they come first, and
    // others go on meanwhile. A bus that is silent is in `bus.rs`.
    for operation in ["PutItem", "TransactWriteItems", "Query"] {
        cases.extend([Fate::Silence, Fate::SilenceAfter].map(|fate| ("DynamoDB", operation, fate)));
    }
    cases.extend([("S3", "PUT object", Fate::SilenceAfter), ("S3", "GET object", Fate::Silence)]);
    cases.extend([Fate::Silence, Fate::SilenceAfter].map(|fate| ("SQS of the API", "SendMessageBatch", fate)));
    cases.push(("SQS", "ChangeMessageVisibilityBatch", Fate::Silence));
    for operation in ["PutItem", "TransactWriteItems", "Query", "GetItem"] {
        let broken = [Fate::json_after(500, "InternalServerError"), Fate::json(503, "ServiceUnavailable")];
        let fates = throttled.next().into_iter().chain(broken).chain([Fate::AnswerCut]);
        cases.extend(fates.map(|fate| ("DynamoDB", operation, fate)));
    }
    cases.push(("DynamoDB", "TransactWriteItems", Fate::json(400, "TransactionInProgressException")));
    for operation in ["PUT object", "GET object"] {
        let fates =
            [Fate::xml(500, "InternalError"), Fate::xml(503, "SlowDown"), Fate::AnsweredAfter(500, String::new())];
        cases.extend(on_its_way().into_iter().chain(fates).map(|fate| ("S3", operation, fate)));
    }
    cases.extend([Fate::Lost, Fate::xml(503, "SlowDown")].map(|fate| ("S3", "HEAD object", fate)));
    for (service, operation) in [("SQS", "ChangeMessageVisibilityBatch"), ("SQS of the API", "SendMessageBatch")] {
        let fates = [
            Fate::json(400, "RequestThrottled"),
            Fate::json(500, "InternalFailure"),
            Fate::json_after(500, "InternalFailure"),
        ];
        cases.extend(on_its_way().into_iter().chain(fates).map(|fate| (service, operation, fate)));
    }
    for (operation, fate) in ["PutItem", "GetItem", "Query"].into_iter().zip(on_its_way()) {
        cases.push(("DynamoDB of the API", operation, fate));
    }
    cases
}

impl Lane {
    /// A file and another turn in a process that has to read the state of the first one, while one call fails.
    async fn meets(&self, number: usize, (service, operation, fate): &Case) -> bool {
        let (operation, fate, met) = (*operation, fate.clone(), Arc::new(AtomicBool::new(false)));
        let what = format!("case {number}: {operation} of {service} is {fate:?}");
        let (_, calls) = *self.services().iter().find(|(name, _)| name == service).unwrap();
        let noted = met.clone();
        // Watchers make the same calls.
        let of_worker = *service == "DynamoDB";
        calls.plan_calls(move |call| {
            let meant = call.operation == operation && (!of_worker || call.function == "worker");
            match meant && !noted.swap(true, Relaxed) {
                true => fate.clone(),
                false => Fate::Pass,
            }
        });
        let is_head = operation == "HEAD object";
        let (chat, watch) = self.make(&format!("{}-{number}", if is_head { "huge" } else { "large" })).await;
        self.world.worker.forget_idle();
        self.say(&chat, "say it").await;
        watch.until(|events| journeys::count(events, "done") == 2).await.unwrap();
        let events = watch.events();
        let mut observed = events.iter().filter(|event| event.name == "observation");
        assert!(
            observed.all(|event| event.data["success"] == true),
            "{what}: no tool fails because of it: {events:#?}"
        );
        calls.pass();
        self.check(&chat, &watch, &what).await;
        met.load(Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_service_may_fail_in_any_way_at_each_of_its_calls() {
    let emulators = emulators().await;
    let lanes = join_all((0..LANES).map(|_| Lane::deploy(&emulators, &[]))).await;
    let (cases, turns, unmet) = (&cases(), &Turns::new(), &Mutex::new(BTreeMap::new()));
    join_all(lanes.iter().map(|lane| async move {
        loop {
            let number = turns.next();
            let Some(case) = cases.get(number) else { return };
            if !lane.meets(number, case).await {
                unmet.lock().insert(number, case);
            }
        }
    }))
    .await;
    tell(&format!("{} failing calls", cases.len()));
    assert!(unmet.lock().is_empty(), "never called: {unmet:?}");
}
