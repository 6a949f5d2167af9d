//! Thousands of schedules by seed: which scenario, which faults, who dies when, and when people act.

use simulation::{Life, Plan, Scenario, play, scenario};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};
use testkit::{Random, crash::Side, fakes::Faults};

/// Schedules in a test run; `SEEDS=100000` plays more.
const SEEDS: u64 = 10_000;

/// What a seed stands for.
fn schedule(seed: u64) -> (&'static Scenario, Plan) {
    let mut random = Random::new(seed);
    let scenario = &scenario::ALL[random.below(scenario::ALL.len() as u64) as usize];
    let mut life = || match random.below(8) {
        0..3 => Life::Whole,
        3 | 4 => Life::Dies(1 + random.below(250), Side::Before),
        5 | 6 => Life::Dies(1 + random.below(250), Side::After),
        _ => Life::CutOff(1 + random.below(250)),
    };
    let lives = vec![life(), life(), life()];
    let faults = match random.below(4) {
        0 => Faults::none(),
        1 => Faults::interleaving(),
        _ => Faults::some(),
    };
    (scenario, Plan { seed, faults, lives, restless: true, without: None })
}

/// What is wrong after this schedule.
fn wrong(seed: u64) -> Option<String> {
    let (scenario, plan) = schedule(seed);
    let outcome = catch_unwind(AssertUnwindSafe(|| play(scenario, &plan)));
    let told = match outcome {
        Ok(outcome) if outcome.violations.is_empty() => return None,
        Ok(outcome) => outcome.to_string(),
        Err(panic) => format!("panicked: {:?}", panic.downcast_ref::<String>()),
    };
    Some(format!(
        "the seed {seed} ends badly ({}, {:?}); again: SEED={seed} scripts/test replay\n{told}",
        scenario.name, plan
    ))
}

#[test]
fn no_schedule_loses_or_doubles_anything() {
    let seeds = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let (next, workers) = (AtomicU64::new(0), std::thread::available_parallelism().map_or(2, usize::from));
    let play_some = || {
        let mut faults = Vec::new();
        loop {
            let seed = next.fetch_add(1, SeqCst);
            if seed >= seeds || faults.len() >= 20 {
                return faults;
            }
            faults.extend(wrong(seed));
        }
    };
    let faults: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(play_some)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let heads: String =
        faults.iter().map(|fault| fault.lines().take(2).collect::<Vec<_>>().join("\n") + "\n").collect();
    assert!(faults.is_empty(), "{heads}\n{}", faults.first().cloned().unwrap_or_default());
}

/// Plays the schedule of `SEED` again.
#[test]
fn replay() {
    let Some(seed) = std::env::var("SEED").ok().and_then(|text| text.parse().ok()) else { return };
    if let Some(fault) = wrong(seed) {
        panic!("{fault}");
    }
}
