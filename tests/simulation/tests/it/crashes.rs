//! Every scenario under every crash: it is played once to count the port calls of the process, then once for each call,
//! with a death there, before and after the call took effect; and once for each call with the process cut off there, so
//! that a second one takes over and the first one comes back as a zombie.

use simulation::{Life, Outcome, Plan, Scenario, play, scenario};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
};
use testkit::crash::Side;

/// Whether a call changes nothing. A death at such a call is the same as one after the change before it, so it is not
/// tried by itself, unless `EVERY` is set.
fn only_reads(call: &str) -> bool {
    let reads =
        ["table.get", "table.query", "table.query_index", "blobs.get", "bus.subscribe", "model.stream", "model.delta"];
    reads.contains(&call) && std::env::var_os("EVERY").is_none()
}

fn lives(scenario: &Scenario, life: impl Fn(u64, &str) -> Vec<Life>) -> Vec<(&'static str, Life)> {
    let calls = play(scenario, &Plan::calm()).calls;
    let counted = calls.iter().enumerate().filter(|(_, name)| !only_reads(name));
    let at = |(position, name): (usize, &&'static str)| {
        let lives = life(position as u64 + 1, name);
        lives.into_iter().map(|life| (*name, life)).collect::<Vec<_>>()
    };
    counted.flat_map(at).collect()
}

/// Plays a scenario under each of these lives, on all cores.
fn try_each(scenarios: &[Scenario], life: impl Fn(u64, &str) -> Vec<Life> + Sync) {
    let work: Vec<_> = scenarios
        .iter()
        .flat_map(|scenario| lives(scenario, &life).into_iter().map(move |life| (scenario, life)))
        .collect();
    let (work, faults) = (Mutex::new(work), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((scenario, (name, life))) = work.lock().unwrap().pop() else { return };
                    let outcome = catch_unwind(AssertUnwindSafe(|| play(scenario, &Plan::with(life))));
                    let told = match outcome {
                        Ok(Outcome { violations, .. }) if violations.is_empty() => continue,
                        Ok(outcome) => outcome.to_string(),
                        Err(_) => "panicked".into(),
                    };
                    faults.lock().unwrap().push(format!("{} {life:?} at {name}:\n{told}", scenario.name));
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    let told: String = faults.iter().map(|fault| fault.lines().take(3).collect::<Vec<_>>().join("\n") + "\n").collect();
    let first = faults.first().cloned().unwrap_or_default();
    assert!(faults.is_empty(), "{} of these lives end badly:\n{told}\nThe first one:\n{first}", faults.len());
}

#[test]
fn no_death_loses_or_doubles_anything() {
    try_each(&chosen(), |call, _| vec![Life::Dies(call, Side::Before), Life::Dies(call, Side::After)]);
}

#[test]
fn no_zombie_loses_or_doubles_anything() {
    try_each(&chosen(), |call, _| vec![Life::CutOff(call)]);
}

fn chosen() -> Vec<Scenario> {
    let only = std::env::var("ONLY").ok();
    scenario::ALL.iter().filter(|s| only.as_deref().is_none_or(|only| s.name.contains(only))).copied().collect()
}
