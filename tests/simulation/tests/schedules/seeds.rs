//! Thousands of schedules by seed: the scenario, the faults, the deaths with their times, and the times of people's acts.

use crate::common::{lives, on_all_cores};
use simulation::{Plan, Scenario, play, scenario};
use testkit::{Random, fakes::Faults};

/// Schedules in a test run; `SEEDS=100000` plays more.
const SEEDS: u64 = 10_000;

/// The schedule of a seed.
fn schedule(seed: u64) -> (&'static Scenario, Plan) {
    let mut random = Random::new(seed);
    let scenario = &scenario::ALL[random.below(scenario::ALL.len() as u64) as usize];
    let lives = lives(&mut random, 250);
    let faults = match random.below(4) {
        0 => Faults::none(),
        1 => Faults::interleaving(),
        _ => Faults::some(),
    };
    (scenario, Plan { seed, faults, lives, restless: true, one_store: seed % 2 == 1, without: None })
}

fn try_each(seeds: impl IntoIterator<Item = u64, IntoIter: Send>) {
    on_all_cores(
        seeds,
        |seed| {
            let (scenario, plan) = schedule(*seed);
            format!("the seed {seed} ({}, {plan:?}); again: SEED={seed} scripts/test replay", scenario.name)
        },
        |seed| {
            let (scenario, plan) = schedule(*seed);
            let outcome = play(scenario, &plan);
            (!outcome.violations.is_empty()).then(|| outcome.to_string())
        },
    );
}

#[test]
fn no_schedule_loses_or_doubles_anything() {
    let seeds = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    try_each(0..seeds);
}

/// Plays the schedule of `SEED` again, or that of 0.
#[test]
fn replay() {
    try_each([std::env::var("SEED").map_or(0, |seed| seed.parse().unwrap())]);
}
