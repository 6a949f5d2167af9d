//! Flows under every death and many schedules.

use crate::common::{lives, on_all_cores, places_of_death};
use simulation::{Life, Plan, Safeguard, TaskScenario, play_tasks, tasks};
use testkit::{Random, crash::Side, fakes::Faults};

/// Schedules in a test run; `TASK_SEEDS=100000` plays more.
const SEEDS: u64 = 2_000;

fn chosen() -> Vec<TaskScenario> {
    let only = std::env::var("ONLY").ok();
    tasks::ALL.iter().filter(|s| only.as_deref().is_none_or(|only| s.name.contains(only))).copied().collect()
}

/// How the root has to end, where it always ends the same.
type Ended = Option<Option<(domain::Status, serde_json::Value)>>;

/// A flow, its faults, and its end without faults.
type Work = (TaskScenario, Plan, Ended);

fn try_each(work: Vec<Work>) {
    on_all_cores(
        work,
        |(scenario, plan, _)| {
            let again = if plan.seed > 0 {
                format!("; again: TASK_SEED={} scripts/test replay_tasks", plan.seed)
            } else {
                String::new()
            };
            format!("{} {plan:?}{again}", scenario.name)
        },
        |(scenario, plan, undisturbed)| {
            let (outcome, _) = play_tasks(scenario, plan, undisturbed.as_ref());
            (!outcome.violations.is_empty()).then(|| outcome.to_string())
        },
    );
}

#[test]
fn calm_tasks_end_as_they_should() {
    for scenario in chosen() {
        let (outcome, ended) = play_tasks(&scenario, &Plan::calm(), None);
        assert!(outcome.violations.is_empty(), "{}: {outcome}", scenario.name);
        let expected = match scenario.name {
            "chain" => serde_json::json!([2, 4, 6]),
            "split_and_merge" => serde_json::json!([10, 20, 30]),
            "nested" => serde_json::json!([[101, 201], [102, 202], 7]),
            "limited" => serde_json::json!([101, 102, 103]),
            "asked" | "answered_early" => serde_json::json!("approved"),
            "agent" => serde_json::json!("You are welcome."),
            _ => continue,
        };
        assert_eq!(ended, Some((domain::Status::Success, expected)), "{}", scenario.name);
    }
}

#[test]
fn no_death_loses_or_doubles_a_step_of_a_task() {
    let mut work = Vec::new();
    for scenario in chosen() {
        let undisturbed = scenario.is_fixed.then(|| play_tasks(&scenario, &Plan::calm(), None).1);
        for (plan, call, _) in places_of_death(|plan| play_tasks(&scenario, plan, None).0.calls) {
            let lives = [Life::Dies(call, Side::Before), Life::Dies(call, Side::After), Life::CutOff(call)];
            let plans = lives.map(|life| Plan { lives: vec![life], ..plan.clone() });
            work.extend(plans.map(|plan| (scenario, plan, undisturbed.clone())));
        }
    }
    try_each(work);
}

#[test]
fn no_schedule_loses_or_doubles_a_step_of_a_task() {
    let seeds = std::env::var("TASK_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let scenarios = calm();
    try_each((0..seeds).map(|seed| schedule(seed, &scenarios)).collect());
}

/// Plays the schedule of `TASK_SEED` again, or that of 0.
#[test]
fn replay_tasks() {
    let seed = std::env::var("TASK_SEED").map_or(0, |seed| seed.parse().unwrap());
    try_each(vec![schedule(seed, &calm())]);
}

/// The scenarios with how their roots end when nothing goes wrong.
fn calm() -> Vec<(TaskScenario, Ended)> {
    let ended = |scenario: &TaskScenario| play_tasks(scenario, &Plan::calm(), None).1;
    chosen().into_iter().map(|scenario| (scenario, scenario.is_fixed.then(|| ended(&scenario)))).collect()
}

fn schedule(seed: u64, scenarios: &[(TaskScenario, Ended)]) -> Work {
    let mut random = Random::new(seed);
    let (scenario, undisturbed) = scenarios[random.below(scenarios.len() as u64) as usize].clone();
    let lives = lives(&mut random, 150);
    let (faults, undisturbed) = match random.below(4) {
        0 => (Faults::none(), undisturbed),
        1 => (Faults::interleaving(), undisturbed),
        // A tool that meets a store that does not answer reports that, and the flow decides about it.
        _ => (Faults::some(), None),
    };
    (scenario, Plan { seed, faults, lives, restless: true, one_store: seed % 2 == 1, without: None }, undisturbed)
}

/// An invariant that cannot fail proves nothing.
#[test]
fn a_tool_call_that_leaves_no_record_is_found_out() {
    let chain = tasks::ALL.iter().find(|scenario| scenario.name == "chain").unwrap();
    let (outcome, _) = play_tasks(chain, &Plan { without: Some(Safeguard::CallRecord), ..Plan::calm() }, None);
    let found = outcome.violations.iter().any(|violation| violation.invariant == "tools_took_effect_once");
    assert!(found, "{outcome}");
}

#[test]
fn a_place_that_is_not_given_back_is_found_out() {
    let item = |sk: &str| ports::Item {
        key: ports::Key::new("w/admitted/it", sk),
        rev: 1,
        body: "{}".into(),
        index: None,
        expires_at: None,
    };
    assert!(simulation::invariants::places_are_given_back(&[item("gate")]).is_ok());
    assert!(simulation::invariants::places_are_given_back(&[item("gate"), item("task/1")]).is_err());
}

#[test]
fn a_slot_that_is_held_for_no_work_is_found_out() {
    let holds = |events: &[serde_json::Value]| {
        let entry = serde_json::json!({
            "first": 1,
            "next": events.len() + 1,
            "at": "2026-01-01T00:00:00.042Z",
            "step": "00000000-0000-0000-0000-000000000000",
            "events": events,
        });
        let key = ports::Key::new("slots/w/semaphore", "log/1");
        let item = ports::Item { key, rev: 1, body: entry.to_string(), index: None, expires_at: None };
        simulation::invariants::slots_are_held_by_work(&[item]).is_err()
    };
    let asked = serde_json::json!({ "type": "asked", "ask": { "holder": "task/x/1" } });
    let granted = serde_json::json!({ "type": "granted", "holder": "task/x/1" });
    let given = serde_json::json!({ "type": "given", "holder": "task/x/1" });
    assert!(holds(std::slice::from_ref(&asked)), "it waits for no task");
    assert!(holds(&[asked.clone(), granted.clone()]));
    assert!(!holds(&[asked, granted, given]));
}
