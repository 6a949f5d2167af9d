//! Threads whose agent dies: at each of its steps, together with the process that started it, and by seed.

use crate::common::{lives, on_all_cores};
use domain::{ChatEvent, Limits, Timestamp, TurnId, event::StopReason};
use simulation::{Life, Plan, Scenario, agent::AgentFact, invariants, play, scenario};
use testkit::{Random, fakes::Faults};

/// Schedules in a test run; `AGENT_SEEDS=100000` plays more.
const SEEDS: u64 = 1_000;
/// More than any scenario takes.
const STEPS: u64 = 40;

fn threads() -> Vec<&'static Scenario> {
    scenario::ALL.iter().filter(|scenario| scenario.name.starts_with("agent_")).collect()
}

fn try_each(work: Vec<(&'static Scenario, Plan)>) {
    on_all_cores(
        work,
        |(scenario, plan)| format!("{} {plan:?}", scenario.name),
        |(scenario, plan)| {
            let outcome = play(scenario, plan);
            (!outcome.violations.is_empty()).then(|| outcome.to_string())
        },
    );
}

#[test]
fn an_agent_that_dies_at_any_step_ends_its_turn_once_and_answers_reach_their_own_request() {
    let dies = |scenario| (1..STEPS).map(move |step| (scenario, Plan::with(Life::LosesAgent(step))));
    try_each(threads().into_iter().flat_map(dies).collect());
}

#[test]
fn an_agent_that_dies_in_each_of_two_processes_loses_nothing_that_was_shown() {
    let dies = |scenario| {
        let lives = |step| vec![Life::LosesAgent(step), Life::LosesAgent(STEPS / 2 - step / 2)];
        (1..STEPS).step_by(3).map(move |step| (scenario, Plan { lives: lives(step), ..Plan::calm() }))
    };
    try_each(threads().into_iter().flat_map(dies).collect());
}

#[test]
fn no_schedule_of_agents_and_processes_that_die_loses_or_doubles_anything() {
    let seeds = std::env::var("AGENT_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let threads = threads();
    let plan = |seed: u64| {
        let mut random = Random::new(seed);
        let scenario = threads[random.below(threads.len() as u64) as usize];
        let mut lives = lives(&mut random, 200);
        for life in &mut lives {
            if random.chance(0.5) {
                *life = Life::LosesAgent(1 + random.below(STEPS));
            }
        }
        let faults = match random.below(3) {
            0 => Faults::none(),
            1 => Faults::interleaving(),
            _ => Faults::some(),
        };
        (scenario, Plan { seed, faults, lives, restless: true, one_store: seed % 2 == 1, without: None })
    };
    try_each((0..seeds).map(plan).collect());
}

/// An invariant that cannot fail proves nothing.
#[test]
fn prompts_and_answers_that_go_astray_are_found_out() {
    let turn = TurnId(uuid::Uuid::from_u128(1));
    let twice = [AgentFact::Prompted(turn), AgentFact::Prompted(turn)];
    assert!(invariants::prompts_were_given_once(&twice[..1]).is_ok());
    assert!(invariants::prompts_were_given_once(&twice).is_err());
    let heard = AgentFact::Heard(turn, "r".into(), Some("allow_once".into()));
    let log = [log_of(turn)];
    assert!(invariants::agents_heard_their_own_answers(&log, &[]).is_ok());
    assert!(invariants::agents_heard_their_own_answers(&log, &[heard]).is_err());
    assert!(invariants::agents_updates_are_in_the_log(&log, &[]).is_ok());
    assert!(invariants::agents_updates_are_in_the_log(&log, &[AgentFact::Told(turn, "lost".into())]).is_err());
}

/// A turn in which nothing was said.
fn log_of(turn_id: TurnId) -> actor::Entry<ChatEvent> {
    let (at, limits) = (Timestamp::default(), Limits::default());
    let started = ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: at, limits, may_approve: false, trace: None };
    let done = ChatEvent::Done { turn_id, message: String::new(), stop_reason: StopReason::EndTurn, at };
    let (step, events) = (turn_id.0, vec![started, done]);
    actor::Entry { first: 1, next: 3, at, step, commands: Vec::new(), events, outbox: Vec::new(), parking: None }
}
