//! The router and the naive model agree on everything, for all graphs, outcomes and orders.

use crate::{
    drive::Drive,
    graphs::Plan,
    naive::{End, Naive},
    script::{Script, without_errors},
};
use buildscale_flow::graph::{Graph, GraphNode, Role, Strategy as When};
use domain::TaskEvent;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

/// The router's run ended, kept its invariants, and is what the model says.
pub fn check(script: &Script, drive: &Drive<'_>) {
    let naive = Naive::run(script, &drive.steps);
    let begun: BTreeSet<&str> =
        naive.tasks.iter().filter(|(_, token)| token.end.is_some()).map(|(name, _)| name.as_str()).collect();
    let ran: BTreeSet<&str> = drive.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(ran, begun, "the tasks that were");
    for task in &drive.tasks {
        let name = &task.name;
        let token = &naive.tasks[name];
        assert_eq!(task.trace, token.trace, "the trace of {name:?}");
        let (status, output) = task.end().unwrap_or_else(|| panic!("{name:?} never ends"));
        let went_up = task.events.iter().any(|event| matches!(event, TaskEvent::WentUp { .. }));
        let expected = match token.end.clone() {
            Some(End::Itself(status, output)) => (status, output, false),
            Some(End::Up(_, brought)) => (brought.status, brought.output, true),
            Some(End::Dissolved(status)) => (status, Value::Null, false),
            None => panic!("{name:?} never ends in the model"),
        };
        let given = (status, without_errors(output), went_up);
        assert_eq!(given, (expected.0, without_errors(&expected.1), expected.2), "the end of {name:?}");
        invariants(task.name.as_str(), &task.events);
    }
}

/// The invariants of every log.
fn invariants(name: &str, events: &[TaskEvent]) {
    let ends = events.iter().filter(|event| matches!(event, TaskEvent::Finished { .. })).count();
    assert_eq!(ends, 1, "{name:?} ends exactly once");
    assert!(matches!(events.last(), Some(TaskEvent::Finished { .. })), "{name:?} ends last");
    let (mut merged, mut came, mut ended) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for event in events {
        match event {
            TaskEvent::Merged { node, .. } => assert!(merged.insert(node), "{name:?} begins {node} twice"),
            TaskEvent::ChildArrived { arrival } => {
                assert!(!merged.contains(&arrival.merge), "{name:?} takes in {arrival:?} too late");
                assert!(
                    came.insert((&arrival.merge, &arrival.child, &arrival.from)),
                    "{name:?} takes in {arrival:?} twice"
                );
            }
            TaskEvent::ChildFinished { child, .. } => assert!(ended.insert(child), "{child} ends twice for {name:?}"),
            _ => {}
        }
    }
}

fn graph() -> impl Strategy<Value = Plan> {
    prop::collection::vec(any::<u8>(), 0..240).prop_map(|choices| Plan::grow(&choices, 40))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_shrink_iters: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s3_1_the_router_and_the_naive_model_agree(plan in graph(), seed: u64, order: u64) {
        let script = Script::random(&plan, seed);
        let drive = Drive::run(&script, order);
        check(&script, &drive);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 4_000, failure_persistence: None, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn s3_3_no_order_changes_where_a_flow_goes_unless_somebody_had_to_be_first(
        mut plan in graph(), seed: u64, orders: [u64; 2],
    ) {
        plan.nodes.iter_mut().for_each(|node| node.join.strategy = When::All);
        let script = Script::random(&plan, seed);
        prop_assume!(!script.graph.nodes().iter().any(|node| first_wins(&script.graph, node)));
        let [one, other] = orders.map(|order| Drive::run(&script, order));
        // A child that leads to no merge is not waited for: its progress when its parent went on is chance.
        let stopped = |drive: &Drive<'_>| drive.tasks.iter().any(|task| task.is_stopped() || task.left_some_behind());
        prop_assume!(!stopped(&one) && !stopped(&other));
        prop_assert_eq!(one.tasks.len(), other.tasks.len());
        for task in &one.tasks {
            prop_assert!(other.tasks.iter().any(|same| same.name == task.name), "{:?}", task.name);
            let same = other.task(&task.name);
            prop_assert_eq!(&task.trace, &same.trace, "{:?}", task.name);
            prop_assert_eq!(task.end(), same.end(), "{:?}", task.name);
        }
    }
}

/// The property found it: `n10` had begun when the child of a stopped clone came to `n8`, which leads to `n10`. `n8` began all
/// the same, and the task then waited at `n10` for ever.
#[test]
fn s3_1_a_child_of_a_stopped_clone_does_not_lead_a_task_back_to_an_earlier_merge() {
    let script = Script::of(
        "start n0 > n1
         branch n1 > n2 n3
         branch n2 > n3 n4 n8
         merge n3 first_success ignore > n5
         branch n4 > n7 n8 n9
         decision n5 > n6 n10
         decision n6 > n8 n10
         exit n7
         merge n8 ignore > n10
         split n9 > n10 n11
         merge n10 ignore > n12
         linear n11 > n13
         split n12 > n14
         linear n13 > n15
         linear n14 > n16
         exit n15
         exit n16",
    );
    let script = script.seeded(6_198_803_796_200_747_618);
    let drive = Drive::run(&script, 708_654_214_294_570_011);
    check(&script, &drive);
    assert_eq!(drive.root().path(), ["n0", "n1", "n3", "n5", "n10", "n12"]);
}

/// Whether it is a branch whose clones do not meet again.
fn first_wins(graph: &Graph, node: &GraphNode) -> bool {
    let depth = node.forks.len();
    let meets = |merge: &GraphNode| {
        merge.role == Role::Merge && merge.forks.len() <= depth && graph.reaches(&node.id, &merge.id)
    };
    node.role == Role::Branch && !graph.nodes().iter().any(meets)
}

/// A generator that only makes simple graphs would prove little.
#[test]
fn random_graphs_have_everything_nested() {
    let mut dice = crate::drive::Dice::new(7);
    let (mut merges, mut up, mut deep, mut largest) = (0, 0, 0, 0);
    for _ in 0..500 {
        let choices: Vec<u8> = (0..200).map(|_| dice.below(256) as u8).collect();
        let graph = Plan::grow(&choices, 40).graph();
        largest = largest.max(graph.nodes().len());
        for merge in graph.nodes().iter().filter(|node| node.role == Role::Merge) {
            merges += 1;
            let depths: Vec<usize> = merge
                .inbound
                .iter()
                .map(|from| {
                    let from = graph.node(from).unwrap();
                    from.forks.len() + usize::from(from.role.forks())
                })
                .collect();
            up += usize::from(depths.iter().any(|depth| *depth > merge.forks.len() + 1));
            deep += usize::from(merge.forks.len() >= 2);
        }
    }
    assert!(merges > 500 && up > 100 && deep > 50 && (35..=40).contains(&largest), "{merges} {up} {deep} {largest}");
}
