//! The simulator finds out when a safeguard is missing.

use simulation::{Life, Plan, Safeguard, invariants::Violation, play, scenario};
use std::collections::BTreeSet;

/// What is found when `scenario` is played without a safeguard, with the first process cut off at each of its calls.
fn found(name: &str, without: Safeguard) -> BTreeSet<&'static str> {
    let scenario = scenario::named(name).unwrap();
    let calls = play(scenario, &Plan::calm()).calls.len() as u64;
    let lives = std::iter::once(Life::Whole).chain((1..calls).step_by(3).map(Life::CutOff));
    let outcome = |life| play(scenario, &Plan { without: Some(without), ..Plan::with(life) });
    lives.flat_map(|life| outcome(life).violations).map(|violation| violation.invariant).collect()
}

#[test]
fn logs_without_a_fence_are_found_out() {
    // Two workers must be at it at once: a first one that was cut off, and comes back while the second one works.
    let found: BTreeSet<_> =
        ["restart_streaming", "files", "two_chats"].iter().flat_map(|name| found(name, Safeguard::Fence)).collect();
    assert!(found.contains("entries_are_contiguous") || found.contains("attempts_count_up"), "{found:?}");
}

#[test]
fn a_queue_that_forgets_the_outbox_is_found_out() {
    let outcome =
        play(scenario::named("ask_expired").unwrap(), &Plan { without: Some(Safeguard::Outbox), ..Plan::calm() });
    assert!(outcome.violations.iter().any(|violation| violation.invariant == "nothing_is_stranded"), "{outcome}");
}

#[test]
fn calls_without_a_record_are_found_out() {
    let outcome =
        play(scenario::named("files").unwrap(), &Plan { without: Some(Safeguard::CallRecord), ..Plan::calm() });
    assert!(outcome.violations.iter().any(|violation| violation.invariant == "writes_took_effect_once"), "{outcome}");
}

#[test]
fn deletions_that_stop_nothing_are_found_out() {
    for name in ["delete_streaming", "delete_after_post"] {
        let outcome = play(scenario::named(name).unwrap(), &Plan { without: Some(Safeguard::Stop), ..Plan::calm() });
        let found = |violation: &Violation| violation.invariant == "deleted_chats_stay_deleted";
        assert!(outcome.violations.iter().any(found), "{name}:\n{outcome}");
    }
}
