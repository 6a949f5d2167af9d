//! Re-runs of random graphs: each decision by order of arrival is as it was in the recorded run.

use crate::{graphs::Plan, rig::Rig};
use domain::Status;
use flow::graph::{NewNode, OnFailure, Role, Strategy};
use serde_json::{Value, json};
use testkit::Random;

/// The manifest of a plan, whose nodes fail and choose by chance, and always the same by the same seed.
fn workflow(plan: &Plan, random: &mut Random) -> String {
    let nodes: Vec<Value> = plan.nodes.iter().map(|node| manifest(plan, node, random)).collect();
    let edges: Vec<Value> = plan.edges.iter().map(|edge| json!({ "from": edge.from, "to": edge.to })).collect();
    json!({ "nodes": nodes, "edges": edges }).to_string()
}

fn manifest(plan: &Plan, node: &NewNode, random: &mut Random) -> Value {
    let id = &node.id;
    let mut manifest = json!({ "id": id, "kind": "deterministic", "role": node.role, "context": "none" });
    let gives = match node.role {
        Role::Decision => {
            let ways: Vec<_> = plan.edges.iter().filter(|edge| edge.from == *id).map(|edge| &edge.to).collect();
            let pick = |random: &mut Random| ways[random.below(ways.len() as u64) as usize];
            format!("task.index == 1 ? '{}' : '{}'", pick(random), pick(random))
        }
        Role::Merge => "input.map(one, {'child': one.child, 'status': one.status, 'from': one.from})".to_owned(),
        _ => format!("'{id}'"),
    };
    let op = match random.below(12) {
        0 => "input.nothing.there".to_owned(),
        1 | 2 => format!("task.index == {} ? input.nothing.there : {gives}", random.below(3)),
        _ => gives,
    };
    if node.role != Role::Exit {
        manifest["op"] = json!({ "expr": op });
    }
    if node.continue_on_failure && !matches!(node.role, Role::Exit | Role::Decision) {
        manifest["continue_on_failure"] = json!(true);
    }
    if node.always_fail {
        manifest["always_fail"] = json!(true);
    }
    if node.role == Role::Split && plan.over.contains(id) {
        let elements: Vec<u64> = (0..random.below(5)).collect();
        manifest["split"] = json!({ "over": json!(elements).to_string() });
    }
    if node.role == Role::Merge {
        let on_failure = match node.join.on_failure {
            OnFailure::Ignore => "ignore",
            OnFailure::Include => "include",
            OnFailure::Fail => "fail",
        };
        let mut merge = json!({ "on_failure": on_failure });
        match node.join.strategy {
            Strategy::All => {}
            Strategy::FirstSuccess => merge["strategy"] = json!("first_success"),
            Strategy::Quorum(0) => merge["strategy"] = json!("quorum"),
            Strategy::Quorum(wanted) => (merge["strategy"], merge["quorum"]) = (json!("quorum"), json!(wanted)),
            // All are equally good: the first of them by name is the best.
            Strategy::BestOf => (merge["strategy"], merge["score"]) = (json!("best_of"), json!("1.0")),
        }
        if let Some(of) = &node.join.of {
            merge["of"] = json!(of);
        }
        manifest["merge"] = merge;
    }
    manifest
}

/// Runs this many graphs, each once and once more on its record, in another order. Returns how many can be run, and for how many
/// of them order alone makes another run of the same input differ.
async fn run(first: u64, graphs: u64) -> (u64, u64) {
    let (mut ran, mut differ) = (0, 0);
    for seed in first..first + graphs {
        let mut random = Random::new(seed + 1);
        let choices: Vec<u8> = (0..40 + random.below(80)).map(|_| random.below(256) as u8).collect();
        let plan = Plan::grow(&choices, 24);
        assert!(plan.graph().nodes().len() >= 2);
        let workflow = workflow(&plan, &mut random);
        let rig = Rig::new(seed + 1).await;
        rig.flow("random", &[("workflow.yaml", workflow.as_str())]).await;
        let task = domain::TaskId(rig.id());
        let new = engine::NewTask { input: json!({ "in": 1 }), ..engine::NewTask::default() };
        // A flow that the check refuses does not run.
        if rig.tasks.create(rig.workspace, task, "random", new, &domain::Principal::local()).await.is_err() {
            continue;
        }
        ran += 1;
        rig.work().await;
        let view = rig.finished(task).await;
        let trace = rig.trace(task).await;
        let again = rig.replay(task, None).await;
        let replayed = rig.trace(again.task_id).await;
        assert_eq!(replayed, trace, "seed {seed}\n{plan:?}\n{workflow}");
        assert_eq!((again.status, &again.output), (view.status, &view.output), "seed {seed}: {plan:?}");
        // From any node on, and where failed nodes are tried again: the nodes give the same, so the result is the same.
        let from = plan.nodes[random.below(plan.nodes.len() as u64) as usize].id.to_string();
        let partly = rig.replay(task, Some(&from)).await;
        assert_eq!((partly.status, &partly.output), (view.status, &view.output), "seed {seed} from {from}: {plan:?}");
        if let Some(retried) = rig.retry(task).await {
            assert_eq!((retried.status, &retried.output), (view.status, &view.output), "seed {seed} retried: {plan:?}");
        }
        if view.status != Status::Failure {
            let other = rig.run("random", json!({ "in": 1 })).await;
            differ += u64::from(rig.trace(other.task_id).await != trace);
        }
    }
    (ran, differ)
}

async fn check(first: u64) {
    let (ran, differ) = run(first, 250).await;
    assert!(ran > 200 && differ > 5, "{ran} graphs run, and order matters in {differ}");
}

#[tokio::test(start_paused = true)]
async fn re_runs_of_random_graphs_have_the_bytes_of_their_records() {
    check(0).await;
}

#[tokio::test(start_paused = true)]
async fn re_runs_of_random_graphs_have_the_bytes_of_their_records_2() {
    check(250).await;
}

#[tokio::test(start_paused = true)]
async fn re_runs_of_random_graphs_have_the_bytes_of_their_records_3() {
    check(500).await;
}

#[tokio::test(start_paused = true)]
async fn re_runs_of_random_graphs_have_the_bytes_of_their_records_4() {
    check(750).await;
}
