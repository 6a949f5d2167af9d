//! Every scenario when nothing goes wrong.

use simulation::{Plan, play, scenario};

#[test]
fn scenarios_end_well_when_nothing_goes_wrong() {
    for scenario in scenario::ALL {
        let outcome = play(scenario, &Plan::calm());
        assert!(outcome.violations.is_empty(), "{}:\n{outcome}", scenario.name);
    }
}
