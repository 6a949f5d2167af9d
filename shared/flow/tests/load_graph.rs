//! Graphs: every invariant of spec 002 §2.3 and §3.3, and the owner of each merge.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/graphs.rs"]
mod graphs;

use buildscale_flow::{
    Graph,
    graph::{FaultAt, GraphFault, Join, NewEdge, NewNode, Role},
};
use domain::NodeId;
use graphs::Plan;
use proptest::prelude::*;

fn new_node(id: &str, role: Role) -> NewNode {
    NewNode {
        id: id.into(),
        role,
        continue_on_failure: false,
        always_fail: false,
        fails_partial: false,
        join: Join::default(),
    }
}

/// A graph from lines such as `start a -> b, c=label`: the role, the id, and the edges out.
fn plan(text: &str) -> (Vec<NewNode>, Vec<NewEdge>) {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, ways) = line.split_once("->").unwrap_or((line, ""));
        let mut words = head.split_whitespace();
        let role: Role = serde_json::from_value(words.next().unwrap().into()).unwrap();
        let mut node = new_node(words.next().unwrap(), role);
        for word in words {
            match word.split_once('=') {
                Some(("of", of)) => node.join.of = Some(of.into()),
                _ => node.always_fail = word == "always_fail",
            }
        }
        for way in ways.split(',').map(str::trim).filter(|way| !way.is_empty()) {
            let (to, label) = way.split_once('=').map_or((way, None), |(to, label)| (to, Some(label.into())));
            edges.push(NewEdge { from: node.id.clone(), to: to.into(), label, takes_errors: false });
        }
        nodes.push(node);
    }
    (nodes, edges)
}

fn build(text: &str) -> Graph {
    let (nodes, edges) = plan(text);
    Graph::build(nodes, edges).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

fn faults(text: &str) -> Vec<GraphFault> {
    let (nodes, edges) = plan(text);
    Graph::build(nodes, edges).expect_err("a fault")
}

/// The codes and texts of all faults.
fn said(text: &str) -> Vec<String> {
    faults(text).iter().map(|fault| format!("{:?} {}: {fault}", fault.at, fault.kind.code())).collect()
}

fn forks(graph: &Graph, id: &str) -> Vec<String> {
    graph.node(&id.into()).unwrap().forks.iter().map(ToString::to_string).collect()
}

#[test]
fn s2_3_a_cycle_is_reported_with_its_path() {
    let found = said("start s -> a\nlinear a -> b\ndecision b -> c, e\nlinear c -> a\nexit e");
    assert!(found.contains(&"Edge(4) cycle: the edges form a cycle: a -> b -> c -> a".to_string()), "{found:#?}");
    assert_eq!(
        said("start s -> a\nlinear a -> a"),
        [
            "Node(0) start_without_exit: no exit can be reached from the start `s`",
            "Node(1) wrong_degree: `a` is a linear and has 2 in, 1 out; it needs 1 in, 1 out",
            "Edge(1) cycle: the edges form a cycle: a -> a",
        ]
    );
}

#[test]
fn s2_3_two_cycles_are_two_faults() {
    let found = faults("start s -> d\ndecision d -> a, x\nlinear a -> b\nlinear b -> a\nlinear x -> y\nlinear y -> x");
    assert_eq!(found.iter().filter(|fault| fault.kind.code() == "cycle").count(), 2, "{found:#?}");
}

#[test]
fn s2_3_a_cycle_hides_no_fault_of_a_merge() {
    let found = said(
        "start s -> m
         merge m -> d
         decision d -> a, e
         linear a -> b
         linear b -> a
         exit e",
    );
    assert_eq!(
        found,
        [
            "Node(1) wrong_degree: `m` is a merge and has 1 in, 1 out; it needs 2 or more in \
             (1 when subtasks of a split come along it), 1 out",
            "Node(3) wrong_degree: `a` is a linear and has 2 in, 1 out; it needs 1 in, 1 out",
            "Edge(5) cycle: the edges form a cycle: a -> b -> a",
        ]
    );
    // In the cycle itself, and beyond it.
    let found = faults(
        "start s -> d
         decision d -> a, x
         linear a -> m
         merge m -> a
         linear x -> n
         merge n of=s -> e
         exit e",
    );
    let of: Vec<_> = found.iter().map(|fault| (fault.kind.code(), fault.at)).collect();
    for fault in [
        ("wrong_degree", FaultAt::Node(3)),
        ("wrong_degree", FaultAt::Node(5)),
        ("merge_of", FaultAt::Node(5)),
        ("cycle", FaultAt::Edge(4)),
    ] {
        assert!(of.contains(&fault), "{fault:?}: {found:#?}");
    }
    // The right parts beside a cycle stay right: subtasks along one way, and merges of which one leads to the other over it.
    let found = faults(
        "start s -> p
         split p -> w
         linear w -> m
         merge m -> b
         branch b -> f, g, h
         linear f -> one
         linear g -> one
         merge one -> d
         decision d -> c, two
         linear c -> d
         linear h -> two
         merge two -> e
         exit e",
    );
    let codes: Vec<_> = found.iter().map(|fault| fault.kind.code()).collect();
    assert_eq!(codes, ["wrong_degree", "cycle"], "of the decision that is led back to: {found:#?}");
}

#[test]
fn s2_3_every_node_is_reachable_from_a_start() {
    assert_eq!(
        said("start s -> e\nexit e\nlinear lost -> f\nexit f"),
        ["Node(2) unreachable_node: no start leads to `lost`", "Node(3) unreachable_node: no start leads to `f`",]
    );
}

#[test]
fn s2_3_every_start_reaches_an_exit() {
    let found = said("start s -> e\nexit e\nstart t -> a\nlinear a -> b\nlinear b");
    assert_eq!(
        found,
        [
            "Node(2) start_without_exit: no exit can be reached from the start `t`",
            "Node(4) wrong_degree: `b` is a linear and has 1 in, 0 out; it needs 1 in, 1 out",
        ]
    );
}

#[test]
fn s3_3_each_role_has_its_degree() {
    for (role, ways, wanted) in [
        ("start", "s2 -> a, b", "start"),
        ("linear", "l -> a, b", "linear"),
        ("decision", "d -> a", "decision"),
        ("branch", "b1 -> a", "branch"),
        ("split", "p", "split"),
        ("merge", "m -> a, b", "merge"),
        ("exit", "x -> a", "exit"),
    ] {
        let text = format!("start s -> e\nexit e\n{role} {ways}\nexit a\nexit b");
        let found = faults(&text);
        let said = found.iter().any(|fault| {
            matches!(&fault.kind, buildscale_flow::graph::GraphFaultKind::Degree { role, .. } if role.to_string() == wanted)
                && fault.at == FaultAt::Node(2)
        });
        assert!(said, "{role}: {found:#?}");
    }
}

#[test]
fn s3_3_an_exit_may_be_reached_along_several_edges() {
    build("start s -> d\ndecision d -> e, a\nlinear a -> e\nexit e");
}

#[test]
fn s2_2_ids_and_edges_are_unique_and_lead_somewhere() {
    assert_eq!(
        said("start s -> a, a\nlinear a -> nowhere\nlinear a -> e\nexit e"),
        [
            "Node(2) duplicate_id: the id `a` is taken by an earlier node",
            "Edge(1) duplicate_edge: there is already an edge from `s` to `a`",
            "Edge(2) unknown_node: there is no node `nowhere`",
            "Node(1) wrong_degree: `a` is a linear and has 1 in, 2 out; it needs 1 in, 1 out",
        ]
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .tap_sort()
    );
}

/// Sorted copies, for lists whose order does not matter here.
trait TapSort {
    fn tap_sort(self) -> Self;
}

impl TapSort for Vec<String> {
    fn tap_sort(mut self) -> Self {
        self.sort_by_key(|line| {
            let (kind, rest) = line.split_once('(').unwrap();
            (kind != "Node", rest.split_once(')').unwrap().0.parse::<u32>().unwrap())
        });
        self
    }
}

#[test]
fn s3_3_only_an_exit_is_always_fail() {
    assert_eq!(
        said("start s always_fail -> e\nexit e always_fail"),
        ["Node(0) always_fail_on_non_exit: `s` is a start; only an exit can be always_fail",]
    );
}

#[test]
fn s3_3_the_edges_of_a_decision_can_be_told_apart() {
    let twice = said("start s -> d\ndecision d -> a=yes, b=yes\nexit a\nexit b");
    assert_eq!(twice, ["Edge(2) duplicate_label: the decision `d` has two edges that `yes` selects"]);
    let shadow = said("start s -> d\ndecision d -> a=b, b\nexit a\nexit b");
    assert_eq!(shadow, ["Edge(1) duplicate_label: the decision `d` has two edges that `b` selects"]);
    build("start s -> d\ndecision d -> a=a, b\nexit a\nexit b");
}

#[test]
fn a_merge_joins_the_clones_of_a_branch() {
    let graph = build("start s -> b\nbranch b -> x, y\nlinear x -> m\nlinear y -> m\nmerge m -> e\nexit e");
    assert_eq!(forks(&graph, "x"), ["b"]);
    assert_eq!(forks(&graph, "m"), [""; 0]);
    assert!(graph.is_merged(&"b".into()));
    assert_eq!(graph.owner_levels(&"m".into(), 1), Some(1));
}

#[test]
fn a_merge_joins_the_subtasks_of_a_split_over_one_edge() {
    let graph = build("start s -> p\nsplit p -> w\nlinear w -> m\nmerge m -> e\nexit e");
    assert_eq!(forks(&graph, "w"), ["p"]);
    assert_eq!(forks(&graph, "m"), [""; 0]);
}

#[test]
fn a_decision_inside_a_subtask_does_not_keep_the_merge() {
    let text = "start s -> p\nsplit p -> d\ndecision d -> x, y\nlinear x -> m\nlinear y -> m\nmerge m OF -> e\nexit e";
    assert_eq!(forks(&build(&text.replace("OF", "")), "m"), [""; 0]);
    // Unless it is said so.
    let kept = build(&text.replace("OF", "of=d"));
    assert_eq!(forks(&kept, "m"), ["p"]);
    assert!(!kept.is_merged(&"p".into()));
}

#[test]
fn a_merge_of_alternatives_belongs_to_the_task_itself() {
    let graph = build("start s -> d\ndecision d -> x, y\nlinear x -> m\nlinear y -> m\nmerge m -> e\nexit e");
    assert_eq!(forks(&graph, "m"), [""; 0]);
    assert_eq!(graph.owner_levels(&"m".into(), 0), Some(0));
}

#[test]
fn a_merge_across_levels_belongs_to_the_outermost_fork() {
    let graph =
        build("start s -> b\nbranch b -> p, y\nsplit p -> w\nlinear w -> m\nlinear y -> m\nmerge m -> e\nexit e");
    assert_eq!(forks(&graph, "w"), ["b", "p"]);
    assert_eq!(forks(&graph, "m"), [""; 0]);
    assert!(graph.is_merged(&"b".into()));
    assert!(!graph.is_merged(&"p".into()));
}

#[test]
fn a_nested_fork_is_merged_inside_one_subtask() {
    let graph = build(
        "start s -> p\nsplit p -> b\nbranch b -> x, y\nlinear x -> m\nlinear y -> m\nmerge m -> n\nmerge n -> e\nexit e",
    );
    assert_eq!(forks(&graph, "m"), ["p"]);
    assert_eq!(forks(&graph, "n"), [""; 0]);
    assert!(graph.is_merged(&"p".into()) && graph.is_merged(&"b".into()));
}

#[test]
fn the_owner_itself_may_come_along_one_way() {
    let graph = build(
        "start s -> d\ndecision d -> b, z\nbranch b -> x, y\nlinear x -> m\nlinear y -> m\nlinear z -> m\nmerge m -> e\nexit e",
    );
    assert_eq!(forks(&graph, "m"), [""; 0]);
}

#[test]
fn of_must_be_a_fork_above_every_way() {
    let unknown = said("start s -> b\nbranch b -> x, y\nlinear x -> m\nlinear y -> m\nmerge m of=q -> e\nexit e");
    assert_eq!(
        unknown,
        ["Node(4) merge_of: the merge `m` is of `q`, which is no branch, split or decision of this flow"]
    );
    let linear = said("start s -> b\nbranch b -> x, y\nlinear x -> m\nlinear y -> m\nmerge m of=x -> e\nexit e");
    assert_eq!(
        linear,
        ["Node(4) merge_of: the merge `m` is of `x`, which is no branch, split or decision of this flow"]
    );
    let astray = said(
        "start s -> b\nbranch b -> d, y\ndecision d -> x, z\nlinear x -> m\nlinear z -> m\nlinear y -> m\nmerge m of=d -> e\nexit e",
    );
    assert_eq!(
        astray,
        ["Node(6) merge_of: the merge `m` is of `d`, but the way over `y` does not come from one task that passed it",]
    );
}

#[test]
fn merges_of_one_fork_form_a_chain() {
    let apart = "start s -> b\nbranch b -> w, x, y, z\nlinear w -> m\nlinear x -> m\nlinear y -> n\nlinear z -> n\nmerge m -> e\nmerge n -> e\nexit e";
    assert_eq!(
        said(apart),
        ["Node(7) unchained_merges: children of `b` go to the merges `m` and `n`, and neither leads to the other",]
    );
    build(&apart.replace("merge m -> e", "merge m -> n"));
}

#[test]
fn one_way_into_a_merge_needs_subtasks() {
    assert_eq!(
        said("start s -> m\nmerge m -> e\nexit e"),
        [
            "Node(1) wrong_degree: `m` is a merge and has 1 in, 1 out; it needs 2 or more in (1 when subtasks of a split come along it), 1 out",
        ]
    );
    assert_eq!(
        faults("start s -> b\nbranch b -> x, y\nlinear x -> m\nmerge m -> e\nlinear y -> f\nexit e\nexit f").len(),
        1
    );
}

#[test]
fn long_chains_and_wide_fans_are_built() {
    let (mut nodes, mut edges) = (vec![new_node("s", Role::Start)], Vec::new());
    let mut last = NodeId::from("s");
    for place in 0..3000 {
        let node = new_node(&format!("n{place}"), Role::Linear);
        edges.push(NewEdge { from: last, to: node.id.clone(), label: None, takes_errors: false });
        last = node.id.clone();
        nodes.push(node);
    }
    nodes.push(new_node("e", Role::Exit));
    edges.push(NewEdge { from: last, to: "e".into(), label: None, takes_errors: false });
    let graph = Graph::build(nodes, edges).unwrap();
    assert!(graph.reaches(&"s".into(), &"e".into()) && !graph.reaches(&"n7".into(), &"n7".into()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn generated_graphs_have_owners_above_those_who_come(choices in prop::collection::vec(any::<u8>(), 0..120)) {
        let graph = Plan::grow(&choices, 40).graph();
        for node in graph.nodes() {
            for before in node.inbound.iter().filter_map(|id| graph.node(id)) {
                let depth = before.forks.len() + usize::from(before.role.forks());
                prop_assert!(node.forks.len() <= depth);
                prop_assert!(graph.reaches(&before.id, &node.id) && !graph.reaches(&node.id, &before.id));
            }
            if let Some(of) = node.join.of.as_ref().and_then(|of| graph.node(of)) {
                prop_assert_eq!(&node.forks, &of.forks);
            }
        }
    }

    #[test]
    fn an_edge_back_is_a_cycle(
        choices in prop::collection::vec(any::<u8>(), 0..120),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
    ) {
        let mut plan = Plan::grow(&choices, 40);
        let graph = plan.graph();
        let (from, to) = (from.get(&plan.nodes).id.clone(), to.get(&plan.nodes).id.clone());
        prop_assume!(graph.reaches(&to, &from));
        plan.edges.push(NewEdge { from, to, label: None, takes_errors: false });
        let faults = Graph::build(plan.nodes, plan.edges).expect_err("a cycle");
        prop_assert!(faults.iter().any(|fault| fault.kind.code() == "cycle"), "{:#?}", faults);
    }
}

#[test]
fn forks_that_lie_too_deep_inside_one_another_are_refused() {
    let nested = |levels: usize| {
        let to = |level: usize| if level == levels { "z".to_owned() } else { format!("s{level}") };
        let splits = (0..levels).map(|level| format!("split s{level} -> {}\n", to(level + 1)));
        format!("start a -> s0\n{}exit z", splits.collect::<String>())
    };
    assert_eq!(build(&nested(100)).node(&"z".into()).unwrap().forks.len(), 100);
    // One fault, and not one of each node that follows.
    let found = faults(&nested(5_000));
    assert_eq!(found.iter().map(|fault| fault.kind.code()).collect::<Vec<_>>(), ["too_deep"]);
    assert!(found[0].to_string().contains("around `s101`"), "{}", found[0]);
}
