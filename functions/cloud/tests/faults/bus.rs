//! The bus goes away in the middle of a turn and comes back later. Watchers miss nothing meanwhile, as the log has everything; and
//! afterwards events come by the bus again.

use crate::lane::{Lane, chat_id, tell};
use emulators::{Fate, Line, State};
use journeys::{Emulators, Event};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

/// The bus goes away before the write with this number that the worker makes in the turn, with several more to come.
const GOES_AT: usize = 4;

/// A bus that breaks, and one that falls silent.
pub async fn the_bus_may_be_away_for_a_while(emulators: &Arc<Emulators>) {
    let away = async |state| {
        let began = tokio::time::Instant::now();
        is_away(emulators, state).await;
        tell(&format!("the bus was {state:?}: {:?}", began.elapsed()));
    };
    tokio::join!(away(State::Dead), away(State::Cut));
}

async fn is_away(emulators: &Arc<Emulators>, state: State) {
    let redis = emulators.redis.lock().await.port();
    let line = Arc::new(Line::to(redis).await.unwrap());
    let bus = format!("redis://127.0.0.1:{}", line.port());
    let lane = Lane::deploy(emulators, &[("BUILDSCALE__AWS__BUS", &bus)]).await;
    let (writes, cut) = (Arc::new(AtomicUsize::new(0)), line.clone());
    lane.plan(move |call| {
        let is_step = call.function == "worker" && ["PutItem", "TransactWriteItems"].contains(&&*call.operation);
        if is_step && writes.fetch_add(1, Relaxed) + 1 == GOES_AT {
            cut.set(state);
        }
        Fate::Pass
    });
    let chat = lane.client.chat(&lane.place, "many looks").await.unwrap();
    let watch = lane.client.watch(&chat);
    // Events written while it is away are seen while it is away, up to the point where the turn waits for an answer.
    watch.until_event("question").await.unwrap();
    assert_eq!(journeys::count(&watch.events(), "observation"), 4);
    // Others watch from the beginning, and stop a turn.
    let (other, watch_other) = lane.make("small-away").await;
    lane.stop(&other, &watch_other).await;

    line.set(State::Whole);
    let channel = chat::actor_id(lane.workspace, chat_id(&chat));
    while emulators::listeners(redis, channel.as_str()).await.unwrap() == 0 {
        // poll: Redis does not tell about its subscribers
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // A client that was away for a while is left alone for a moment; a worker that has just begun knows of nothing.
    lane.world.worker.forget_idle();
    // From now on watchers cannot look at the log: events come by the bus alone.
    lane.plan(|call| match call.function.is_empty() && call.operation == "Query" {
        true => Fate::Lost,
        false => Fate::Pass,
    });
    lane.answer(&chat, &watch).await;
    let looked = |events: &[Event]| journeys::count(events, "observation") == 7 && journeys::count(events, "done") == 1;
    watch.until(looked).await.unwrap();
    lane.plan(|_| Fate::Pass);
    lane.check(&chat, &watch, &format!("the bus was {state:?}")).await;
    lane.check(&other, &watch_other, &format!("others while the bus was {state:?}")).await;
}
