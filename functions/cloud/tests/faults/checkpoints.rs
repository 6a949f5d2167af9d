//! Commands that outlast the invocation that began them: the next one takes them up, and nothing runs twice.

use crate::{command_requests::By, lane::script, machines::Machines};
use futures::future::join_all;
use journeys::{Emulators, Options};
use std::{sync::Arc, time::Duration};

/// How long a worker works before its deadline is near.
const WORKS: Duration = Duration::from_secs(8);

/// The commands wait for leave, so each of them runs when its worker comes near its deadline. Those whose machine is there run to their
/// end, once; one whose machine dies meanwhile is neither reported as run nor as not run, and it is not run again.
pub async fn a_command_that_outlasts_its_invocation_runs_once(emulators: &Arc<Emulators>) {
    let machines = Machines::start().await;
    let options = Options { script: script(), timeout: WORKS + buildscale_cloud::worker::MARGIN, ..Options::default() };
    let first = machines.deploy(emulators, options).await;
    let lanes = [first.beside().await, first.beside().await, first.beside().await, first];
    machines.may_go_on(false);
    let wants = [By::Agent, By::Flow, By::Agent, By::Flow];
    let wishes = join_all(lanes.iter().zip(wants).map(|(lane, by)| lane.wants(by))).await;
    join_all(lanes.iter().zip(&wishes).map(|(lane, wish)| async {
        machines.until_begun(lane.workspace).await;
        let before = wish.attempts(&wish.watch.events());
        wish.watch.until(|events| wish.attempts(events) > before).await.unwrap();
    }))
    .await;
    for lane in &lanes[2..] {
        machines.ecs.kill(&machines.of(lane.workspace)[0].task);
    }
    machines.may_go_on(true);
    let told = join_all(wishes.iter().map(|wish| wish.told())).await;
    for (number, (lane, wish)) in lanes.iter().zip(&wishes).enumerate() {
        let expected = if number < 2 { "ran\\n" } else { "interrupted, outcome unknown" };
        assert!(told[number].contains(expected), "{number}: {}\n{}", told[number], lane.world.log());
        assert_eq!(machines.begun(lane.workspace), 1, "{number}: {}", told[number]);
        assert_eq!(machines.of(lane.workspace).len(), 1, "{number}: no second machine");
        lane.check_wish(wish, &format!("{number} outlasts its invocation")).await;
    }
}
