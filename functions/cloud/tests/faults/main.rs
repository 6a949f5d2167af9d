//! What goes wrong around the functions: calls that fail, workers that die at any of them, messages that come twice, and workers of
//! two versions at once. After each of it the simulator's invariants hold, and whoever watched saw everything once and in order.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bus;
mod check;
mod checkpoints;
mod deaths;
mod deliveries;
mod ecs;
mod in_flight;
mod lane;
mod machines;
mod services;
mod storms;
mod versions;
mod wishes;

use bus::the_bus_may_be_away_for_a_while;
use checkpoints::a_command_that_outlasts_its_invocation_runs_once;

/// Beside each other, as each of them mostly waits.
#[tokio::test(flavor = "multi_thread")]
async fn the_bus_may_be_away_and_commands_may_outlast_their_invocations() {
    let emulators = lane::emulators().await;
    tokio::join!(
        the_bus_may_be_away_for_a_while(&emulators),
        a_command_that_outlasts_its_invocation_runs_once(&emulators),
    );
}
