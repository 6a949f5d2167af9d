//! Whose fault a death is: processes that die one after the other lose nothing, and a poison is paused all the same.

use crate::common::on_all_cores;
use simulation::{Life, Plan, play, scenario};
use testkit::{Random, crash::Side, fakes::Faults};

/// In each of these something runs that takes a while.
const LONG: [&str; 4] = ["queued", "files", "two_chats", "stop_tool"];
const DEATHS: u64 = 30;
const SEEDS: u64 = 120;

fn deaths(seed: u64) -> Plan {
    let mut random = Random::new(seed ^ 0xdead);
    let mut dies = || {
        let side = if random.chance(0.5) { Side::Before } else { Side::After };
        Life::Dies(10 + random.below(110), side)
    };
    let lives = (0..DEATHS).map(|_| dies()).collect();
    Plan { seed, faults: Faults::none(), lives, restless: false, without: None }
}

#[test]
fn processes_that_die_again_and_again_lose_nothing() {
    let scenario = |seed: u64| scenario::named(LONG[(seed % 4) as usize]).unwrap();
    on_all_cores(
        0..SEEDS,
        |seed| format!("the seed {seed} ({})", scenario(*seed).name),
        |seed| {
            let outcome = play(scenario(*seed), &deaths(*seed));
            // An actor that six deaths found computing alone, without a step forward, is paused: that is evidence.
            (!outcome.violations.is_empty()).then(|| format!("{} pauses\n{outcome}", outcome.pauses))
        },
    );
}

#[test]
fn a_poison_is_paused_also_between_deaths() {
    let scenario = |seed: u64| scenario::named(["poison_resumed", "poison_dropped"][(seed % 2) as usize]).unwrap();
    on_all_cores(
        0..SEEDS / 4,
        |seed| format!("the seed {seed} ({})", scenario(*seed).name),
        |seed| {
            let plan = Plan { lives: deaths(*seed).lives.split_off(24), ..deaths(*seed) };
            let outcome = play(scenario(*seed), &plan);
            let is_wrong = outcome.pauses == 0 || !outcome.violations.is_empty();
            is_wrong.then(|| format!("{} pauses\n{outcome}", outcome.pauses))
        },
    );
}
