//! The common parts of these tests: draw lives by seed, leave out deaths that change nothing, and play on all cores.

use parking_lot::Mutex;
use simulation::{Life, Plan};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread::available_parallelism,
};
use testkit::{Random, crash::Side};

/// With so many faults, there is enough to look at.
const MOST_FAULTS: usize = 20;

/// The lives of three processes, which may end at one of their first `calls`.
pub fn lives(random: &mut Random, calls: u64) -> Vec<Life> {
    let mut life = || match random.below(8) {
        0..3 => Life::Whole,
        3 | 4 => Life::Dies(1 + random.below(calls), Side::Before),
        5 | 6 => Life::Dies(1 + random.below(calls), Side::After),
        _ => Life::CutOff(1 + random.below(calls)),
    };
    vec![life(), life(), life()]
}

/// Whether a call changes nothing. A death at such a call is the same as one after the change before it, so it is not
/// tried by itself, unless `EVERY` is set.
pub fn only_reads(call: &str) -> bool {
    let reads =
        ["table.get", "table.query", "table.query_index", "blobs.get", "bus.subscribe", "model.stream", "model.delta"];
    reads.contains(&call) && std::env::var_os("EVERY").is_none()
}

/// The calls at which a death is tried, by number and name, each with its plan without faults: with two stores those that change anything; with one
/// store those that send with an entry, since a death at any other is the same there, unless `EVERY` is set.
pub fn places_of_death(calls: impl Fn(&Plan) -> Vec<&'static str>) -> Vec<(Plan, u64, &'static str)> {
    const SENDS: &str = "table.commit_sending";
    let of = |plan: Plan, is_tried: &dyn Fn(&str) -> bool| -> Vec<(Plan, u64, &'static str)> {
        let calls = (1..).zip(calls(&plan)).filter(|(_, name)| is_tried(name));
        calls.map(|(call, name)| (plan.clone(), call, name)).collect()
    };
    let mut places = of(Plan::calm(), &|name| !only_reads(name));
    if places.iter().any(|(_, _, name)| *name == SENDS) {
        let is_every = std::env::var_os("EVERY").is_some();
        places.extend(of(Plan { one_store: true, ..Plan::calm() }, &|name| is_every || name == SENDS));
    }
    places
}

/// Plays each of these on all cores, and fails if one is wrong: with the beginnings of the messages about each, and the whole of the first.
/// A panic is wrong, too; `name` names its case.
#[track_caller]
pub fn on_all_cores<T: Send>(
    work: impl IntoIterator<Item = T, IntoIter: Send>,
    name: impl Fn(&T) -> String + Sync,
    wrong: impl Fn(&T) -> Option<String> + Sync,
) {
    let (work, faults) = (Mutex::new(work.into_iter()), Mutex::new(Vec::new()));
    let play_some = || {
        while faults.lock().len() < MOST_FAULTS {
            let Some(one) = ({ work.lock().next() }) else { return };
            let told = match catch_unwind(AssertUnwindSafe(|| wrong(&one))) {
                Ok(None) => continue,
                Ok(Some(told)) => told,
                Err(panic) => format!("panicked: {:?}", panic.downcast_ref::<String>()),
            };
            faults.lock().push(format!("{}:\n{told}", name(&one)));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..available_parallelism().map_or(2, usize::from) {
            scope.spawn(play_some);
        }
    });
    let faults = faults.into_inner();
    let heads: String =
        faults.iter().map(|fault| fault.lines().take(3).collect::<Vec<_>>().join("\n") + "\n").collect();
    let first = faults.first().cloned().unwrap_or_default();
    assert!(faults.is_empty(), "{} end badly:\n{heads}\nThe first one:\n{first}", faults.len());
}
