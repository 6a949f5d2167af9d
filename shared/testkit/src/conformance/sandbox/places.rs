//! The suite for places: which calls may begin, how often, and the state of a command that has not begun.

use super::{Bench, PATIENCE, all_of, begun, call, command, execution, granted, run, script};
use crate::conformance::table::ok;
use domain::CallId;
use futures::StreamExt;
use ports::{Exec, ExecEvent, Execution, Grant, Reservation, Reserve, Sandbox};
use std::{future::Future, time::Duration};

/// How many commands a sandbox of this suite runs at once at the most, and how many wait.
const MANY: usize = 64;

pub(super) async fn hold<F: Future<Output = Bench>>(fresh: &impl Fn() -> F) {
    a_place_is_for_one_call_and_for_one_begin(&*fresh().await.sandbox).await;
    a_call_without_a_place_is_not_begun(&*fresh().await.sandbox).await;
    a_place_of_another_machine_says_nothing(&*fresh().await.sandbox, &*fresh().await.sandbox).await;
    a_call_that_is_killed_before_it_begins_never_does(&*fresh().await.sandbox).await;
    commands_wait_for_a_place_and_all_run_once(&*fresh().await.sandbox).await;
}

fn asks(call: CallId) -> Reserve {
    Reserve { call, direct: false, wait: Duration::ZERO }
}

async fn not_begun(sandbox: &dyn Sandbox, command: Exec) {
    match ok(sandbox.exec(command).await) {
        Execution::NotBegun(_) => {}
        Execution::Begun(events) => panic!("it is begun: {:?}", all_of(events).await),
        Execution::Unknown(why) => panic!("it is known that it has not begun: {why}"),
    }
}

async fn a_place_is_for_one_call_and_for_one_begin(sandbox: &dyn Sandbox) {
    let asked = command(&["cat", "/proc/sys/kernel/random/uuid"]);
    let grant = granted(sandbox, asked.call).await;
    assert_eq!(granted(sandbox, asked.call).await, grant, "a repeated request gets the same grant");
    let other = Exec { call: call(), grant, ..asked.clone() };
    not_begun(sandbox, other).await;
    let did = run(sandbox, asked.clone()).await;
    // A request that was sent twice, or comes late, is one run.
    let late = Exec { grant, ..asked };
    let Execution::Begun(events) = ok(sandbox.exec(late).await) else { panic!("it has run") };
    assert_eq!(all_of(events).await, did);
}

async fn a_call_without_a_place_is_not_begun(sandbox: &dyn Sandbox) {
    let asked = command(&["true"]);
    let machine = granted(sandbox, call()).await.machine;
    for number in [0, 1, u64::MAX] {
        not_begun(sandbox, Exec { grant: Grant { machine, number }, ..asked.clone() }).await;
    }
    run(sandbox, asked).await.well();
}

async fn a_place_of_another_machine_says_nothing(sandbox: &dyn Sandbox, other: &dyn Sandbox) {
    let asked = command(&["true"]);
    let grant = granted(other, asked.call).await;
    for grant in [grant, Grant::default()] {
        let execution = ok(sandbox.exec(Exec { grant, ..asked.clone() }).await);
        assert!(matches!(execution, Execution::Unknown(_)), "it may have begun there");
    }
}

async fn a_call_that_is_killed_before_it_begins_never_does(sandbox: &dyn Sandbox) {
    let (granted_one, unknown) = (command(&["true"]), command(&["true"]));
    let grant = granted(sandbox, granted_one.call).await;
    ok(sandbox.kill(granted_one.call).await);
    ok(sandbox.kill(unknown.call).await);
    not_begun(sandbox, Exec { grant, ..granted_one.clone() }).await;
    for call in [granted_one.call, unknown.call] {
        assert_eq!(ok(sandbox.reserve(asks(call)).await), Reservation::Killed);
    }
}

async fn commands_wait_for_a_place_and_all_run_once(sandbox: &dyn Sandbox) {
    // All places, held by commands that stay.
    let stays = || script("echo begun; sleep 1000");
    let mut held = Vec::new();
    let waits = loop {
        let asked = stays();
        match ok(sandbox.reserve(asks(asked.call)).await) {
            Reservation::Granted(grant) => {
                let Execution::Begun(mut events) = ok(sandbox.exec(Exec { grant, ..asked.clone() }).await) else {
                    panic!("it has a place")
                };
                let first = tokio::time::timeout(PATIENCE, events.next()).await.expect("it begins");
                assert!(matches!(first, Some(Ok(ExecEvent::Output { .. }))), "{first:?}");
                held.push(asked.call);
            }
            Reservation::Busy => break asked,
            other => panic!("{other:?}"),
        }
        assert!(held.len() <= MANY, "there is no end of places");
    };
    // Nothing of it has begun, so it is not begun, and not unknown.
    let machine = granted(sandbox, held[0]).await.machine;
    not_begun(sandbox, Exec { grant: Grant { machine, number: 1 }, ..waits.clone() }).await;
    // More than there are places, each once, when they become free.
    ok(sandbox.kill(waits.call).await);
    let unique = || command(&["cat", "/proc/sys/kernel/random/uuid"]);
    let queued = (0..held.len() + 8).map(|_| run(sandbox, unique()));
    let ends = async {
        for call in &held {
            ok(sandbox.kill(*call).await);
        }
    };
    let (all, ()) = tokio::join!(futures::future::join_all(queued), ends);
    let mut outputs: Vec<String> = all.into_iter().map(super::Did::well).collect();
    let count = outputs.len();
    outputs.sort_unstable();
    outputs.dedup();
    assert_eq!(outputs.len(), count);
    drop(begun(sandbox, command(&["true"])).await);
    assert!(matches!(execution(sandbox, command(&["true"])).await, Ok(Execution::Begun(_))));
}
