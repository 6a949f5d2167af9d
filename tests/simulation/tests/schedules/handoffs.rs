//! Files that start flows, under every death and many schedules.

use crate::common::{lives, on_all_cores, only_reads};
use simulation::{Life, Plan, play_handoffs};
use testkit::{Random, crash::Side, fakes::Faults};

/// Schedules in a test run; `HANDOFF_SEEDS=10000` plays more.
const SEEDS: u64 = 200;

fn try_each(plans: Vec<Plan>) {
    on_all_cores(
        plans,
        |plan| format!("{plan:?}"),
        |plan| {
            let outcome = play_handoffs(plan);
            (!outcome.violations.is_empty()).then(|| outcome.to_string())
        },
    );
}

#[test]
fn a_file_starts_a_flow_whose_file_starts_another() {
    let outcome = play_handoffs(&Plan::calm());
    assert!(outcome.violations.is_empty(), "{outcome}");
}

#[test]
fn no_death_loses_or_doubles_a_handoff() {
    let calls = play_handoffs(&Plan::calm()).calls;
    let writing = calls.iter().enumerate().filter(|(_, name)| !only_reads(name));
    let plans = writing.flat_map(|(position, _)| {
        let call = position as u64 + 1;
        [Life::Dies(call, Side::Before), Life::Dies(call, Side::After), Life::CutOff(call)].map(Plan::with)
    });
    try_each(plans.collect());
}

#[test]
fn no_schedule_loses_or_doubles_a_handoff() {
    let seeds = std::env::var("HANDOFF_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let plan = |seed| {
        let mut random = Random::new(seed);
        let lives = lives(&mut random, 120);
        let faults = if random.below(2) == 0 { Faults::none() } else { Faults::interleaving() };
        Plan { seed, faults, lives, restless: true, one_store: seed % 2 == 1, without: None }
    };
    try_each((0..seeds).map(plan).collect());
}
