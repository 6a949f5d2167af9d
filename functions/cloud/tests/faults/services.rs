//! Calls of every service that fail one at a time, in every way there is.

use crate::lane::{Lane, Turns, emulators, redis, tell};
use emulators::{Fate, Line, State};
use futures::future::join_all;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

/// How many deployments share the cases.
const LANES: usize = 3;

/// A service as [`Lane::services`] calls it, an operation, and what becomes of one such call.
type Case = (&'static str, &'static str, Fate);

/// What any call may meet. (Calls of DynamoDB that are lost are in `tests/cloud/faults.rs`.)
fn everywhere(service: &'static str, operation: &'static str) -> Vec<Case> {
    let late = Duration::from_millis(1500);
    [Fate::Lost, Fate::AnswerLost, Fate::AnswerCut, Fate::Slow(late)].map(|fate| (service, operation, fate)).into()
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for operation in ["PutItem", "TransactWriteItems", "Query", "GetItem"] {
        let throttled = ["ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"];
        let throttled = throttled.map(|code| Fate::json(400, code));
        let broken = [Fate::json_after(500, "InternalServerError"), Fate::json(503, "ServiceUnavailable")];
        let fates = throttled.into_iter().chain(broken).chain([Fate::AnswerCut]);
        cases.extend(fates.map(|fate| ("DynamoDB", operation, fate)));
    }
    cases.push(("DynamoDB", "TransactWriteItems", Fate::json(400, "TransactionInProgressException")));
    for operation in ["PUT object", "GET object"] {
        cases.extend(everywhere("S3", operation));
        let fates =
            [Fate::xml(500, "InternalError"), Fate::xml(503, "SlowDown"), Fate::AnsweredAfter(500, String::new())];
        cases.extend(fates.map(|fate| ("S3", operation, fate)));
    }
    cases.extend(everywhere("S3", "HEAD object"));
    for (service, operation) in [("SQS", "ChangeMessageVisibilityBatch"), ("SQS of the API", "SendMessageBatch")] {
        cases.extend(everywhere(service, operation));
        let fates = [
            Fate::json(400, "RequestThrottled"),
            Fate::json(403, "ThrottlingException"),
            Fate::json(500, "InternalFailure"),
            Fate::json_after(500, "InternalFailure"),
        ];
        cases.extend(fates.map(|fate| (service, operation, fate)));
    }
    for operation in ["PutItem", "GetItem", "Query"] {
        cases.extend(everywhere("DynamoDB of the API", operation));
    }
    // These take as long as a client has patience, so they come first: others go on meanwhile.
    let silent = [Fate::Silence, Fate::SilenceAfter];
    let silent = ["PutItem", "TransactWriteItems", "Query"]
        .into_iter()
        .flat_map(|operation| silent.clone().map(|fate| ("DynamoDB", operation, fate)));
    silent.chain([("S3", "PUT object", Fate::SilenceAfter), ("S3", "GET object", Fate::Silence)]).chain(cases).collect()
}

impl Lane {
    /// A file and another turn in a process that has to read what the first one left, while one call fails.
    async fn meets(&self, number: usize, (service, operation, fate): &Case) -> bool {
        let (operation, fate, met) = (*operation, fate.clone(), Arc::new(AtomicBool::new(false)));
        let what = format!("case {number}: {operation} of {service} is {fate:?}");
        let (_, calls) = *self.services().iter().find(|(name, _)| name == service).unwrap();
        let noted = met.clone();
        // What people watch asks for the same.
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
                unmet.lock().unwrap().insert(number, case);
            }
        }
    }))
    .await;
    tell(&format!("{} failing calls", cases.len()));
    assert!(unmet.lock().unwrap().is_empty(), "never called: {unmet:?}");
}

/// The bus is away for a whole journey: it breaks, then it is silent, then it is back. Nobody misses anything.
#[tokio::test(flavor = "multi_thread")]
async fn the_bus_may_break_or_fall_silent_for_as_long_as_it_likes() {
    let (emulators, redis) = tokio::join!(emulators(), redis());
    let line = Line::to(redis.port()).await.unwrap();
    let bus = format!("redis://127.0.0.1:{}", line.port());
    let lane = Lane::deploy(&emulators, &[("BUILDSCALE__AWS__BUS", &bus)]).await;
    for (number, state) in
        [State::Whole, State::Cut, State::Whole, State::Dead, State::Cut, State::Whole].into_iter().enumerate()
    {
        line.set(state);
        let began = tokio::time::Instant::now();
        let (chat, watch) = lane.make(&format!("large-{number}")).await;
        lane.stop(&chat, &watch).await;
        lane.check(&chat, &watch, &format!("{number}: the bus is {state:?}")).await;
        tell(&format!("the bus is {state:?}: {:?}", began.elapsed()));
    }
}
