//! The cost of a step in larger graphs, by the look-ups of the router.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::{Next, NodeOutcome, Route, RouteState, Router};
use crate::graph::{Graph, Join, NewEdge, NewNode, OnFailure, Role, work};
use domain::{
    Error, NodeId, Sha256, Status, TaskEvent, TaskId, Timestamp, WorkspaceId,
    task::{Arrival, ChildEnd, FlowRef, TaskConfig, is_stop, stopped},
};
use serde_json::{Value, json};

/// How the children of the layers end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Children {
    Come,
    Fail,
    AreStopped,
}

/// Layers of a branch and a merge, one after the other: `start ─ branch ═ width nodes ═ merge ─ branch ═ … ─ exit`.
fn layers(layers: usize, width: usize) -> Graph {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    let mut add = |id: String, role: Role| {
        let join = Join { on_failure: OnFailure::Include, ..Join::default() };
        let (continue_on_failure, always_fail) = (false, false);
        nodes.push(NewNode {
            id: id.as_str().into(),
            role,
            continue_on_failure,
            always_fail,
            fails_partial: false,
            join,
        });
        NodeId::from(id.as_str())
    };
    let mut link = |from: &NodeId, to: &NodeId| {
        edges.push(NewEdge { from: from.clone(), to: to.clone(), label: None, takes_errors: false })
    };
    let mut last = add("start".into(), Role::Start);
    for layer in 0..layers {
        let branch = add(format!("branch{layer}"), Role::Branch);
        link(&last, &branch);
        let merge = add(format!("merge{layer}"), Role::Merge);
        for place in 0..width {
            let clone = add(format!("clone{layer}_{place}"), Role::Linear);
            link(&branch, &clone);
            link(&clone, &merge);
        }
        last = merge;
    }
    let exit = add("exit".into(), Role::Exit);
    link(&last, &exit);
    Graph::build(nodes, edges).unwrap()
}

/// The root task of such a flow, and its cost.
struct Play<'a> {
    graph: &'a Graph,
    config: TaskConfig,
    place: RouteState,
    children: u64,
    /// Look-ups made to take in the messages of children.
    looked_up: u64,
}

impl Play<'_> {
    fn router(&self) -> Router<'_> {
        Router { graph: self.graph, config: &self.config, place: &self.place, now: Timestamp::default(), follows: None }
    }

    /// One that is to begin.
    fn of(graph: &Graph) -> Play<'_> {
        let flow = FlowRef { name: "layers".into(), hash: Sha256::of(b"") };
        let (workspace, task) = (WorkspaceId::from_key("test", "workspace"), TaskId::from_key("test", "task"));
        let config = testkit::flows::task(workspace, task, flow, "start");
        let mut play = Play { graph, config, place: RouteState::default(), children: 0, looked_up: 0 };
        play.place.apply(&TaskEvent::Created { config: Box::new(play.config.clone()) });
        play
    }

    /// Plays it to its end; the number of its children, and the cost of a child.
    fn cost(graph: &Graph, how: Children) -> (u64, f64) {
        let mut play = Play::of(graph);
        let mut route = play.router().begin();
        loop {
            let next = play.took(route);
            route = match next {
                Next::Execute(node, _) => {
                    let output = json!("done");
                    let outcome = NodeOutcome {
                        status: Status::Success,
                        output: &output,
                        error: None,
                        elements: None,
                        caught: None,
                    };
                    play.router().finished(&node, &outcome)
                }
                Next::Spawn(fork) => play.children_of(&fork, how),
                Next::Same => panic!("it waits for no child"),
                Next::End => break,
            };
        }
        assert!(play.place.forks.is_empty() && play.place.made == play.children, "{:?}", play.place);
        (play.children, play.looked_up as f64 / play.children as f64)
    }

    fn took(&mut self, route: Route) -> Next {
        route.events.iter().for_each(|event| self.place.apply(event));
        route.next
    }

    /// All children of a fork come, or fail; the route after the last of them.
    fn children_of(&mut self, node: &NodeId, how: Children) -> Route {
        let fork = self.place.forks[node].clone();
        self.place.apply(&TaskEvent::Spawned { node: node.clone(), until: fork.total });
        let mut last = Route::default();
        for index in 0..fork.total {
            let next = self.took(std::mem::take(&mut last));
            assert_eq!(next, Next::Same, "children are still under way");
            let (child, from) = (fork.name(node, index).unwrap(), fork.target(index).unwrap().clone());
            let before = work::counted();
            last = match how {
                Children::Come => {
                    let merge = self.graph.node(&from).unwrap().out[0].to.clone();
                    let (child, place, output) = (child.to_string(), vec![index], Value::Null);
                    self.router().arrived(Arrival { merge, from, child, place, status: Status::Success, output })
                }
                Children::Fail | Children::AreStopped => {
                    let error = Some(match how {
                        Children::AreStopped => stopped("user_cancelled"),
                        _ => Error::new(domain::Code::Internal, "it failed"),
                    });
                    let end = ChildEnd { status: Status::Failure, output: Value::Null, merged: false, lost: 0, error };
                    self.router().child_ended(&child, end)
                }
            };
            self.looked_up += work::counted() - before;
            self.children += 1;
        }
        last
    }
}

#[test]
fn s3_1_a_child_costs_the_router_the_same_in_a_graph_of_many_layers() {
    for how in [Children::Come, Children::Fail] {
        let (few, small) = Play::cost(&layers(5, 24), how);
        let (many, large) = Play::cost(&layers(80, 24), how);
        assert_eq!((few, many), (120, 1_920));
        assert!(small > 0.0 && large < 1.2 * small, "{how:?}: {small} look-ups a child, then {large}");
    }
}

#[test]
fn s3_1_a_child_costs_the_router_the_same_beside_many_siblings() {
    for how in [Children::Come, Children::Fail] {
        let (_, small) = Play::cost(&layers(2, 24), how);
        let (_, large) = Play::cost(&layers(2, 384), how);
        assert!(small > 0.0 && large < 1.2 * small, "{how:?}: {small} look-ups a child, then {large}");
    }
}

/// `start ─ branch ═ two nodes ═ exit`: the children meet nowhere.
fn fork_without_merge() -> Graph {
    let node = |id: &str, role| NewNode {
        id: id.into(),
        role,
        continue_on_failure: false,
        always_fail: false,
        fails_partial: false,
        join: Join::default(),
    };
    let nodes = [("start", Role::Start), ("branch", Role::Branch), ("a", Role::Linear), ("b", Role::Linear)];
    let nodes = nodes.into_iter().chain([("exit", Role::Exit)]).map(|(id, role)| node(id, role)).collect();
    let edge =
        |(from, to): (&str, &str)| NewEdge { from: from.into(), to: to.into(), label: None, takes_errors: false };
    let edges = [("start", "branch"), ("branch", "a"), ("branch", "b"), ("a", "exit"), ("b", "exit")];
    Graph::build(nodes, edges.into_iter().map(edge).collect()).unwrap()
}

#[test]
fn s9_a_task_whose_children_were_stopped_was_not_stopped_itself() {
    let graph = fork_without_merge();
    let mut play = Play::of(&graph);
    let mut route = play.router().begin();
    while let Next::Execute(node, _) = play.took(route) {
        let output = json!("done");
        let outcome =
            NodeOutcome { status: Status::Success, output: &output, error: None, elements: None, caught: None };
        route = play.router().finished(&node, &outcome);
    }
    let last = play.children_of(&"branch".into(), Children::AreStopped);
    let error = last.events.iter().find_map(|event| match event {
        TaskEvent::Finished { error, .. } => error.clone(),
        _ => None,
    });
    let error = error.unwrap();
    assert!(!is_stop(&error) && error.message.contains("user_cancelled"), "{error:?}");
}
