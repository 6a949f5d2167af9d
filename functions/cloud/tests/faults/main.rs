//! Faults around the functions: calls that fail, workers that die at any of them, messages that come twice, and workers of two versions at
//! once. After each of them the simulator's invariants hold, and watchers saw everything once and in order.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bus;
mod check;
mod checkpoints;
mod command_requests;
mod deaths;
mod deliveries;
mod ecs;
mod in_flight;
mod lane;
mod machines;
mod services;
mod storms;
mod versions;

use tokio::join;

/// Tests that mostly wait run beside each other, on the same emulators.
#[tokio::test(flavor = "multi_thread")]
async fn ecs_may_fail_the_bus_may_be_away_and_commands_may_outlast_their_invocations() {
    let emulators = &lane::emulators().await;
    join!(
        ecs::a_command_runs_once_or_says_why_not_under_any_fault_of_ecs(emulators),
        bus::the_bus_may_be_away_for_a_while(emulators),
        checkpoints::a_command_that_outlasts_its_invocation_runs_once(emulators),
    );
}

/// The same.
#[tokio::test(flavor = "multi_thread")]
async fn there_may_be_storms_messages_that_come_again_and_versions_at_once() {
    let emulators = &lane::emulators().await;
    join!(
        storms::a_crowd_gets_through_storms_and_throttling(emulators),
        deliveries::repeated_messages_are_done_once(emulators),
        versions::a_deploy_in_the_middle_of_turns_loses_nothing(emulators),
    );
}
