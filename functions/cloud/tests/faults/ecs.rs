//! Calls of ECS that fail, take too long, or are answered after they took effect, while agents and flows want to run a command. It
//! runs once, or people read why it did not; and there is never a second machine, nor one that is left behind.

use crate::{
    command_requests::{By, Wish},
    lane::{Lane, script, tell},
    machines::Machines,
};
use domain::WorkspaceId;
use emulators::Fate;
use futures::future::join_all;
use http::Method;
use journeys::{Emulators, Options};
use parking_lot::Mutex;
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    iter::repeat_n,
    sync::Arc,
};

/// The attempts of the SDK before it gives up.
const ATTEMPTS: usize = 3;
/// How many of the calls on the way to a command are tried: a request, a look at a task that ECS does not know yet, one that waits, one
/// that starts, and one that runs. Later calls are more looks at one that runs.
const CALLS: usize = 4;

/// The fate of calls for one workspace: those of one operation, from one call on.
#[derive(Clone, Debug)]
struct Case {
    /// How many calls come before.
    from: usize,
    operation: String,
    fates: VecDeque<Fate>,
    /// Whether no command runs, and people are told why.
    is_refused: bool,
}

fn denied() -> Fate {
    Fate::json(400, "AccessDeniedException")
}

/// One call at a time, in every way; those that the SDK hides by asking again, and those that it does not. Those that take longest
/// come first.
fn cases(operations: &[String]) -> Vec<Case> {
    let throttled = || Fate::json(400, "ThrottlingException");
    let broken_after = || Fate::json_after(500, "ServerException");
    let mut cases = Vec::new();
    let mut add = |from: usize, is_refused: bool, fates: Vec<Fate>| {
        let operation = operations.get(from).cloned().unwrap_or_default();
        cases.push(Case { from, operation, fates: fates.into(), is_refused });
    };
    let all = |fate: Fate| repeat_n(fate, ATTEMPTS).collect::<Vec<_>>();
    for fate in [Fate::Lost, Fate::AnswerLost, broken_after(), throttled()] {
        add(0, false, all(fate));
    }
    let services = [Fate::Lost, Fate::AnswerLost, broken_after(), throttled()];
    for (from, fate) in (1..operations.len()).zip(services.iter().cycle()) {
        add(from, false, all(fate.clone()));
        add(from, false, vec![denied()]);
    }
    for from in 0..operations.len() {
        add(from, false, vec![Fate::Silence]);
    }
    for (from, fate) in (0..operations.len()).zip(services.iter().cycle().skip(1)) {
        add(from, false, vec![fate.clone()]);
    }
    add(0, false, vec![Fate::SilenceAfter]);
    add(0, true, vec![denied()]);
    // It has started one, its answer is lost, and then it refuses.
    add(0, true, vec![Fate::AnswerLost, denied()]);
    cases
}

impl Lane {
    /// The command runs once, or it does not run and the reason is told.
    async fn runs(&self, machines: &Machines, number: usize, case: &Case) -> Wish {
        let by = if number.is_multiple_of(2) { By::Agent } else { By::Flow };
        let wish = self.wants(by).await;
        let told = wish.told().await;
        let what = || format!("case {number}: {case:?}: {told}\n{}", self.world.log());
        let tasks = machines.of(self.workspace);
        match case.is_refused {
            false => {
                assert!(told.contains("ran\\n"), "{}", what());
                assert_eq!((machines.begun(self.workspace), tasks.len()), (1, 1), "{}", what());
            }
            true => {
                assert!(told.contains("the command did not run: ECS refuses"), "{}", what());
                assert_eq!(machines.begun(self.workspace), 0, "{}", what());
                assert!(tasks.len() <= 1, "{}", what());
            }
        }
        wish
    }

    async fn sweep(&self) {
        self.world.timer.invoke(r#"{"sweep": "all"}"#).await.unwrap();
    }

    /// Lets the sandbox go, and asks again when no answer comes. Returns how often that was.
    async fn lets_go(&self) -> usize {
        let path = format!("{}/sandbox", self.place);
        // The SDK does not repeat a request that ECS refuses.
        for asked in 1..=ATTEMPTS + 1 {
            let answer = self.client.ask(Method::DELETE, &path, Value::Null).await.unwrap();
            if answer.status == 204 {
                return asked;
            }
            assert_eq!(answer.status, 503, "{}", answer.text());
        }
        panic!("{path} is never let go\n{}", self.world.log());
    }
}

/// The operations of the calls for each workspace that the worker makes.
fn count(machines: &Machines) -> Arc<Mutex<BTreeMap<WorkspaceId, Vec<String>>>> {
    let counted: Arc<Mutex<BTreeMap<_, Vec<_>>>> = Arc::default();
    let notes = counted.clone();
    machines.plan(move |call, workspace| {
        if let Some(workspace) = workspace.filter(|_| call.function == "worker") {
            notes.lock().entry(workspace).or_default().push(call.operation.clone());
        }
        Fate::Pass
    });
    counted
}

/// Each workspace has a case of its own; those that were not met by then are left.
fn plan(
    machines: &Machines,
    cases: impl Iterator<Item = (WorkspaceId, Case)>,
) -> Arc<Mutex<BTreeMap<WorkspaceId, Case>>> {
    let left: Arc<Mutex<BTreeMap<WorkspaceId, Case>>> = Arc::new(Mutex::new(cases.collect()));
    let planned = left.clone();
    machines.plan(move |call, workspace| {
        let mut planned = planned.lock();
        let case = workspace.filter(|_| call.function == "worker").and_then(|workspace| planned.get_mut(&workspace));
        let Some(case) = case else { return Fate::Pass };
        if case.from > 0 {
            case.from -= 1;
            return Fate::Pass;
        }
        match call.operation == case.operation {
            true => case.fates.pop_front().unwrap_or(Fate::Pass),
            false => Fate::Pass,
        }
    });
    left
}

pub async fn a_command_runs_once_or_says_why_not_under_any_fault_of_ecs(emulators: &Arc<Emulators>) {
    let machines = Machines::start().await;
    let options = Options { script: script(), concurrency: 16, ..Options::default() };
    let first = machines.deploy(emulators, options).await;

    // The calls to ECS on the way, of an agent and of a flow.
    let counted = count(&machines);
    let second = first.beside().await;
    let undisturbed = Case { from: 0, operation: String::new(), fates: VecDeque::new(), is_refused: false };
    tokio::join!(first.runs(&machines, 0, &undisturbed), second.runs(&machines, 1, &undisturbed));
    let counted: Vec<Vec<String>> = counted.lock().values().cloned().collect();
    let on_the_way: Vec<String> =
        counted.iter().min_by_key(|calls| calls.len()).unwrap().iter().take(CALLS).cloned().collect();
    assert!(on_the_way.len() >= 4 && on_the_way[0] == "RunTask", "{counted:?}");
    assert!(on_the_way[1..].iter().all(|operation| operation == "DescribeTasks"), "{counted:?}");

    let cases = cases(&on_the_way);
    let lanes = join_all(cases.iter().map(|_| first.beside())).await;
    let left = plan(&machines, lanes.iter().map(|lane| lane.workspace).zip(cases.iter().cloned()));
    let began = tokio::time::Instant::now();
    let runs = lanes.iter().zip(&cases).enumerate();
    let ran = join_all(runs.map(|(number, (lane, case))| lane.runs(&machines, number, case))).await;
    tell(&format!("{} cases of {on_the_way:?}: {:?}", cases.len(), began.elapsed()));
    let unmet: Vec<Case> = left.lock().values().filter(|case| !case.fates.is_empty()).cloned().collect();
    assert!(unmet.is_empty(), "these calls never came: {unmet:?}");
    for (number, (lane, wish)) in lanes.iter().zip(&ran).enumerate() {
        lane.check_wish(wish, &format!("case {number}: {:?}", cases[number])).await;
    }

    // An unwanted one runs: a sweep ends it, and no other, though it fails at each of its calls before.
    let wanted = 2 + cases.iter().filter(|case| !case.is_refused).count();
    assert_eq!(machines.ecs.living().len(), wanted + 1);
    for operation in ["ListTasks", "DescribeTasks", "StopTask"] {
        machines.plan(move |call, _| if call.operation == operation { Fate::Lost } else { Fate::Pass });
        first.sweep().await;
        assert_eq!(machines.ecs.living().len(), wanted + 1, "{operation} fails");
    }
    machines.plan(|call, _| if call.operation == "StopTask" { Fate::AnswerLost } else { Fate::Pass });
    first.sweep().await;
    machines.plan(|_, _| Fate::Pass);
    first.sweep().await;
    let living = machines.ecs.living();
    assert_eq!(living.len(), wanted, "{living:?}");

    // The others are let go. A call without an answer is repeated; a sandbox that was let go is gone.
    let fates = [Fate::Lost, Fate::AnswerLost, denied(), Fate::Pass];
    let mut fates: BTreeMap<WorkspaceId, VecDeque<Fate>> = lanes
        .iter()
        .map(|lane| lane.workspace)
        .zip(fates.iter().cycle().map(|fate| repeat_n(fate.clone(), ATTEMPTS).collect()))
        .collect();
    machines.plan(move |call, workspace| {
        let planned =
            workspace.filter(|_| call.operation == "StopTask").and_then(|workspace| fates.get_mut(&workspace));
        planned.and_then(VecDeque::pop_front).unwrap_or(Fate::Pass)
    });
    let asked = join_all(lanes.iter().chain([&first, &second]).map(Lane::lets_go)).await;
    assert!(asked.iter().any(|times| *times > 1), "{asked:?}");
    assert_eq!(machines.ecs.living(), []);
    machines.plan(|_, _| Fate::Pass);
    first.sweep().await;
    assert_eq!(machines.ecs.living(), []);
}
