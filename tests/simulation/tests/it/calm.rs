//! Every scenario when nothing goes wrong.

use simulation::{Plan, play, scenario};

#[test]
fn scenarios_end_well_when_nothing_goes_wrong() {
    for scenario in scenario::ALL {
        let begun = std::time::Instant::now();
        let outcome = play(scenario, &Plan::calm());
        eprintln!("{} {:?} {} calls", scenario.name, begun.elapsed(), outcome.calls.len());
        assert!(outcome.violations.is_empty(), "{}:\n{outcome}", scenario.name);
    }
}
