//! The simulator finds out when a safeguard is missing.

use simulation::{Life, Plan, Safeguard, invariants::Violation, play, scenario};

/// Whether one of these is found broken when `scenario` is played without a safeguard, with the first process cut off at some call.
fn finds(name: &str, without: Safeguard, invariants: &[&str]) -> bool {
    let scenario = scenario::named(name).unwrap();
    let calls = play(scenario, &Plan::calm()).calls.len() as u64;
    let mut lives = std::iter::once(Life::Whole).chain((1..calls).step_by(3).map(Life::CutOff));
    lives.any(|life| {
        let outcome = play(scenario, &Plan { without: Some(without), ..Plan::with(life) });
        outcome.violations.iter().any(|violation| invariants.contains(&violation.invariant))
    })
}

#[test]
fn logs_without_a_fence_are_found_out() {
    // Two workers must be at it at once: a first one that was cut off, and comes back while the second one works.
    let broken = ["entries_are_contiguous", "attempts_count_up"];
    assert!(["restart_streaming", "files", "two_chats"].iter().any(|name| finds(name, Safeguard::Fence, &broken)));
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
