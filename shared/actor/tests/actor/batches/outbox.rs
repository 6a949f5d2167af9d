//! An entry and its messages: one call of a store that has both, and two calls elsewhere. Sent again after a death, they come once.

use super::{
    Adder,
    Command::{Add, Tell},
    World, all, world_of,
};
use buildscale_actor::{Options, Runtime};
use ports::Delivery;
use std::sync::Arc;
use testkit::{
    crash::{Crash, Side},
    fakes::{FakeBus, FakeTable, Faults},
};
use tokio_util::sync::CancellationToken;

/// A process over these stores.
fn process(world: &World, crash: &Crash) -> Runtime<Adder> {
    let (table, queue) = (crash.table(world.table.clone()), crash.queue(world.queue.clone()));
    let bus = Arc::new(FakeBus::new(3, Faults::none()));
    let (outside, clock) = (world.outside.clone(), world.clock.clone());
    Runtime::new(Adder, outside, table, queue, bus, clock, Arc::new(()), Options::default())
}

/// The calls that change something.
fn changes(crash: &Crash) -> Vec<&'static str> {
    crash.names().into_iter().filter(|name| !matches!(*name, "table.get" | "table.query")).collect()
}

/// How many entries and how many sent messages there are.
fn counts(world: &World) -> (usize, usize) {
    (world.log().len(), world.queue.messages().len())
}

#[tokio::test(start_paused = true)]
async fn an_entry_and_its_messages_are_one_call_of_a_store_that_has_both() {
    for one_store in [true, false] {
        let (world, crash) = (world_of(one_store), Crash::never());
        let deliveries = world.mail(&[Tell(1)]);
        let verdict = process(&world, &crash).deliver(&deliveries, &CancellationToken::new()).await;
        assert_eq!((verdict, counts(&world)), (all(&deliveries), (1, 1)));
        let sends = ["table.commit_sending", "queue.send"];
        assert_eq!(changes(&crash), sends[..if one_store { 1 } else { 2 }]);
        // Messages that went with their entry are not in it a second time.
        assert_eq!(world.entries().iter().all(|entry| entry.outbox.is_empty()), one_store);
        // An entry without messages is a commit as any other.
        let (world, crash) = (world_of(one_store), Crash::never());
        process(&world, &crash).deliver(&world.mail(&[Add(1)]), &CancellationToken::new()).await;
        assert_eq!(changes(&crash), ["table.commit"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_call_of_a_step_that_sends_loses_and_doubles_nothing() {
    let cut = CancellationToken::new();
    for one_store in [true, false] {
        let (calm, whole) = (world_of(one_store), Crash::never());
        process(&calm, &whole).deliver(&calm.mail(&[Tell(1)]), &cut).await;
        let deaths = (1..=whole.calls()).flat_map(|call| [(call, Side::Before), (call, Side::After)]);
        for (call, side) in deaths {
            let (world, crash) = (world_of(one_store), Crash::at(call, side));
            let (deliveries, dying) = (world.mail(&[Tell(1)]), process(&world, &crash));
            tokio::select! {
                () = crash.died() => {}
                verdict = dying.deliver(&deliveries, &cut) => panic!("it lives: {verdict:?}"),
            }
            let (entries, messages) = counts(&world);
            assert!(!one_store || entries == messages, "both or none: {entries} and {messages} at {side:?} {call}");
            let again: Vec<_> = deliveries.iter().map(|delivery| Delivery { attempt: 2, ..delivery.clone() }).collect();
            assert_eq!(process(&world, &Crash::never()).deliver(&again, &cut).await, all(&again));
            assert_eq!(counts(&world), (1, 1), "one_store {one_store}, {side:?} {call}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_sent_and_whose_answer_was_lost_sends_once() {
    let cut = CancellationToken::new();
    for seed in 0..40 {
        let world = world_of(true);
        let faults = Faults { unavailable_before: 0.2, unavailable_after: 0.4, ..Faults::none() };
        let table = FakeTable::new(world.clock.clone(), seed, faults).sending_to(world.queue.clone());
        let world = World { table: Arc::new(table), ..world };
        let deliveries = world.mail(&[Tell(1)]);
        let mut rest = process(&world, &Crash::never()).deliver(&deliveries, &cut).await;
        for attempt in 2..9 {
            if rest.done == 1 {
                break;
            }
            tokio::time::sleep(rest.again).await;
            let again: Vec<_> = deliveries.iter().map(|delivery| Delivery { attempt, ..delivery.clone() }).collect();
            rest = process(&world, &Crash::never()).deliver(&again, &cut).await;
        }
        assert_eq!((rest.done, counts(&world)), (1, (1, 1)), "seed {seed}");
    }
}
