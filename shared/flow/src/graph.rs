//! The graph of a flow: nodes with roles, edges, and which task a merge belongs to (seed 002 §2.2, §2.3, §3.3).
//!
//! It is what the router looks at, and nothing else: no agent, no tool, no schema. It is built by [`Graph::build`], which
//! reports every broken invariant at once, so a graph that exists is valid.

use domain::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// What a node does with the task (seed 002 §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Normalises the raw input: no edge in, one out.
    Start,
    /// Transforms: one in, one out.
    Linear,
    /// Selects one of its edges: one in, two or more out.
    Decision,
    /// Makes a clone an edge: one in, two or more out.
    Branch,
    /// Makes subtasks: one in, one or more out.
    Split,
    /// Waits for those that come to it: two or more in (one, where many subtasks come along it), one out.
    Merge,
    /// Presents the task's status: one or more in, none out.
    Exit,
}

/// An edge as the node that it leaves has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// Where it leads.
    pub to: NodeId,
    /// Its name for decisions; its target's id is good, too.
    pub label: Option<String>,
}

/// When a merge begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// When everyone that can still come has come.
    #[default]
    All,
    /// With the first that comes with success; the others are cancelled.
    FirstSuccess,
    /// When this many have come with success; the others are cancelled. 0 stands for more than half.
    Quorum(u32),
    /// When everyone has come, with the one whose score is highest.
    BestOf,
}

/// What a merge makes of those that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// They are left out.
    Ignore,
    /// They are in its input, with their status and error.
    Include,
    /// One of them fails the merge.
    #[default]
    Fail,
}

/// How a merge joins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// When.
    pub strategy: Strategy,
    /// What becomes of those that failed.
    pub on_failure: OnFailure,
    /// The branch, split or decision whose ways it joins, where the default would be another.
    pub of: Option<NodeId>,
}

/// A node as the router sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphNode {
    /// Its id.
    pub id: NodeId,
    /// Its role.
    pub role: Role,
    /// The edges that leave it, in the order of the manifest.
    pub out: Vec<Edge>,
    /// The nodes whose edges lead to it, in the order of the manifest.
    pub inbound: Vec<NodeId>,
    /// Whether the task goes on when it fails.
    pub continue_on_failure: bool,
    /// Whether it makes a failure of every task that reaches it; exits only.
    pub always_fail: bool,
    /// How it joins; merges only.
    pub join: Join,
    /// The forks (branch and split nodes) between the root task and the task that executes this node, outermost first: a
    /// task that is at this node has this many ancestors within the flow.
    pub forks: Vec<NodeId>,
}

/// A node to build a graph of.
#[derive(Clone, Debug, PartialEq)]
pub struct NewNode {
    /// Its id.
    pub id: NodeId,
    /// Its role.
    pub role: Role,
    /// Whether the task goes on when it fails.
    pub continue_on_failure: bool,
    /// Whether it makes a failure of every task that reaches it.
    pub always_fail: bool,
    /// How it joins.
    pub join: Join,
}

/// An edge to build a graph of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEdge {
    /// Where it begins.
    pub from: NodeId,
    /// Where it leads.
    pub to: NodeId,
    /// Its name.
    pub label: Option<String>,
}

/// A valid graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: Vec<GraphNode>,
    by_id: HashMap<NodeId, usize>,
    /// For each node the nodes that can be reached from it, itself excluded, as bits.
    reach: Vec<Vec<u64>>,
}

impl Graph {
    /// The node with this id.
    pub fn node(&self, id: &NodeId) -> Option<&GraphNode> {
        self.by_id.get(id).and_then(|position| self.nodes.get(*position))
    }

    /// All nodes, in the order of the manifest.
    pub fn nodes(&self) -> &[GraphNode] {
        &self.nodes
    }

    /// Whether there is a way from `from` to `to` of at least one edge.
    pub fn reaches(&self, from: &NodeId, to: &NodeId) -> bool {
        match (self.by_id.get(from), self.by_id.get(to)) {
            (Some(from), Some(to)) => self
                .reach
                .get(*from)
                .and_then(|bits| bits.get(to / 64))
                .is_some_and(|word| word & (1 << (to % 64)) != 0),
            _ => false,
        }
    }
}
