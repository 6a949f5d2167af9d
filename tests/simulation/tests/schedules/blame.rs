//! The blame for a death: processes that die one after the other lose nothing, and a poison is paused all the same.

use crate::common::on_all_cores;
use simulation::{Life, Plan, play, scenario};
use std::time::Duration;
use testkit::{Random, crash::Side, fakes::Faults};

/// In each of these something runs that takes a while.
const LONG: [&str; 4] = ["queued", "files", "two_chats", "stop_tool"];
const DEATHS: u64 = 30;
const SEEDS: u64 = 120;

/// Every sixth life is long enough to come out of a computation: a poison cannot be told from an actor in whose computation all of six
/// lives end (docs/architecture/runtime.md, *A crash is not the actor's fault*; `actor::trial` has the test of that limit).
fn deaths(seed: u64) -> Plan {
    let mut random = Random::new(seed ^ 0xdead);
    let mut dies = |life: u64| {
        let side = if random.chance(0.5) { Side::Before } else { Side::After };
        let calls = 10 + random.below(110);
        Life::Dies(if life % 6 == 5 { 120 + calls } else { calls }, side)
    };
    let lives = (0..DEATHS).map(&mut dies).collect();
    Plan { seed, faults: Faults::none(), lives, restless: false, one_store: seed % 2 == 1, without: None }
}

#[test]
fn processes_that_die_again_and_again_pause_no_actor() {
    let scenario = |seed: u64| scenario::named(LONG[(seed % 4) as usize]).unwrap();
    on_all_cores(
        0..SEEDS,
        |seed| format!("the seed {seed} ({})", scenario(*seed).name),
        |seed| {
            let outcome = play(scenario(*seed), &deaths(*seed));
            let is_wrong = outcome.pauses > 0 || !outcome.violations.is_empty();
            is_wrong.then(|| format!("{} pauses\n{outcome}", outcome.pauses))
        },
    );
}

#[test]
fn processes_that_die_as_soon_as_they_receive_something_pause_no_actor_and_lose_nothing() {
    let scenario = |seed: u64| scenario::named(LONG[(seed % 4) as usize]).unwrap();
    on_all_cores(
        0..SEEDS / 2,
        |seed| format!("the seed {seed} ({})", scenario(*seed).name),
        |seed| {
            // Four come further, so that each message of the scenario has its turn: too few deaths to be evidence.
            let lives = deaths(*seed).lives.into_iter().enumerate();
            let lives = lives.map(|(number, life)| if number % 7 == 6 { life } else { Life::DiesReceiving });
            let plan = Plan { lives: lives.collect(), ..deaths(*seed) };
            let outcome = play(scenario(*seed), &plan);
            let is_wrong = outcome.pauses > 0 || !outcome.violations.is_empty();
            is_wrong.then(|| format!("{} pauses\n{outcome}", outcome.pauses))
        },
    );
}

#[test]
fn invocations_that_time_out_in_the_middle_of_a_step_pause_no_actor_and_lose_nothing() {
    let scenario = |seed: u64| scenario::named(LONG[(seed % 4) as usize]).unwrap();
    on_all_cores(
        0..SEEDS / 2,
        |seed| format!("the seed {seed} ({})", scenario(*seed).name),
        |seed| {
            let mut random = Random::new(seed ^ 0x0dd);
            let lives = (0..DEATHS).map(|_| Life::TimesOut(Duration::from_millis(20 + random.below(1_500)))).collect();
            // Each call takes its time, so that a time-out comes in the middle of one.
            let faults = Faults { slow: 1.0, latency: Duration::from_millis(10), ..Faults::none() };
            let plan = Plan { faults, lives, ..deaths(*seed) };
            let outcome = play(scenario(*seed), &plan);
            let is_wrong = outcome.pauses > 0 || !outcome.violations.is_empty();
            is_wrong.then(|| format!("{} pauses\n{outcome}", outcome.pauses))
        },
    );
}

#[test]
fn a_seed_decides_a_run() {
    let scenario = |seed: u64| scenario::named(LONG[(seed % 4) as usize]).unwrap();
    on_all_cores(
        0..SEEDS / 4,
        |seed| format!("the seed {seed} ({})", scenario(*seed).name),
        |seed| {
            let plan =
                Plan { faults: [Faults::none(), Faults::some()][(seed / 4 % 2) as usize].clone(), ..deaths(*seed) };
            let [one, other] = [play(scenario(*seed), &plan), play(scenario(*seed), &plan)];
            let differ = one.trace != other.trace || one.calls != other.calls;
            differ.then(|| format!("{} and {} calls\n{one}\n{other}", one.calls.len(), other.calls.len()))
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
