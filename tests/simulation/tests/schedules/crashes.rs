//! Every scenario under every crash: it is played once to count the port calls of the process, then once for each call,
//! with a death there, before and after the call took effect; and once for each call with the process cut off there, so
//! that a second one takes over and the first one comes back as a zombie. Where an entry sends messages, its own call is tried in both worlds: an entry
//! and its messages are two calls of two stores, or one call of one store.

use crate::common::{on_all_cores, places_of_death};
use simulation::{Life, Plan, Scenario, play, scenario};
use testkit::crash::Side;

/// Plays every scenario under each of the lives that there are at a call.
fn try_each(lives: impl Fn(u64) -> Vec<Life>) {
    let mut work = Vec::new();
    for scenario in chosen() {
        for (plan, call, name) in places_of_death(|plan| play(&scenario, plan).calls) {
            let plans = lives(call).into_iter().map(|life| Plan { lives: vec![life], ..plan.clone() });
            work.extend(plans.map(|plan| (scenario, name, plan)));
        }
    }
    on_all_cores(
        work,
        |(scenario, name, plan)| format!("{} {plan:?} at {name}", scenario.name),
        |(scenario, _, plan)| {
            let outcome = play(scenario, plan);
            (!outcome.violations.is_empty()).then(|| outcome.to_string())
        },
    );
}

#[test]
fn no_death_loses_or_doubles_anything() {
    try_each(|call| vec![Life::Dies(call, Side::Before), Life::Dies(call, Side::After)]);
}

#[test]
fn no_zombie_loses_or_doubles_anything() {
    try_each(|call| vec![Life::CutOff(call)]);
}

fn chosen() -> Vec<Scenario> {
    let only = std::env::var("ONLY").ok();
    scenario::ALL.iter().filter(|s| only.as_deref().is_none_or(|only| s.name.contains(only))).copied().collect()
}
