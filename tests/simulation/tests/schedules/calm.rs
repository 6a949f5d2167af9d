//! Every scenario when nothing goes wrong.

use simulation::{Plan, play, scenario};

#[test]
fn scenarios_end_well_when_nothing_goes_wrong() {
    for scenario in scenario::ALL {
        for one_store in [false, true] {
            let outcome = play(scenario, &Plan { one_store, ..Plan::calm() });
            assert!(outcome.violations.is_empty(), "{}, one_store {one_store}:\n{outcome}", scenario.name);
        }
    }
}
