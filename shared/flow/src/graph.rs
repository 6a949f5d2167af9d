//! The graph of a flow: nodes with roles, edges, and which task a merge belongs to (spec 002 §2.2, §2.3, §3.3).
//!
//! It is all that the router looks at: no agent, no tool, no schema. It is built by [`Graph::build`], which reports every
//! broken invariant at once, so a graph that exists is valid.
//!
//! # The owner of a merge
//!
//! Every task executes at most one node, and branches and splits make tasks of their own. So the task that executes a node
//! is known by the forks that were passed on the way to it: [`GraphNode::forks`].
//!
//! ```text
//!   start ── plan ══ split ── check ── decide ─┬─ write ──┐
//!    []       []      []     [split]  [split]  │  [split] ├─ gather ── report ── exit
//!                                              └─ skip ───┘    []        []      []
//!                                                 [split]
//! ```
//!
//! * Every node but a merge or an exit has one way in, so its forks are those of the node before it, and that node too if it
//!   is a branch or a split.
//! * A merge belongs to the nearest task whose descendants feed it. Each way into it has a stack of forks, each with the
//!   edge that was taken; the common beginning of all stacks are the forks of the merge. Two edges of one branch lead to different
//!   clones, so the branch itself is not common to them.
//! * When all stacks are the same, the ways part at a decision, or come from the many subtasks of one split. Then the merge
//!   joins the innermost fork, as `gather` above joins the subtasks and not the two ways of `decide`. Where that is not
//!   meant, `merge.of` names the decision (or another fork), and the merge belongs to the task that executes that.
//! * When they are the same and empty, it is one task that comes along one of the alternatives of a decision, and the merge
//!   is its own.
//!
//! Merges that children of one fork go to are passed by one token, that of the task that made the children; so of any two
//! such merges one must lead to the other.

mod build;
mod cycles;
mod draft;
mod fault;
mod joins;
mod owner;

pub use fault::{FaultAt, GraphFault, GraphFaultKind};

use domain::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::HashMap, fmt};

/// The most branches and splits that lie inside one another. Each node knows all those around it, so chains of thousands of them would take gigabytes.
pub(crate) const MOST_LEVELS: usize = 100;

/// The effect of a node on its task (spec 002 §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
    /// The node that it leads to.
    pub to: NodeId,
    /// Its name for decisions; its target's id is good, too.
    pub label: Option<String>,
    /// Whether only failures go along it (`on_error` of a linear node).
    pub takes_errors: bool,
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

/// How a merge treats failed tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The condition on which it is complete.
    pub strategy: Strategy,
    /// How it treats failed tasks.
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
    /// Whether it makes a failure of every task that reaches it partial; exits only.
    pub fails_partial: bool,
    /// How it joins; merges only.
    pub join: Join,
    /// The forks (branch and split nodes) between the root task and the task that executes this node, outermost first: a
    /// task that is at this node has this many ancestors within the flow.
    pub forks: Vec<NodeId>,
}

impl GraphNode {
    /// The names by which a decision selects its edges, for people and models: `yes, no`.
    pub fn choices(&self) -> String {
        let names: Vec<&str> =
            self.out.iter().map(|edge| edge.label.as_deref().unwrap_or_else(|| edge.to.as_str())).collect();
        names.join(", ")
    }

    /// The edge that the output of a decision selects: `{"selected_edge": label or target}`, or the text alone. White space around
    /// a text alone is what models write around their answers; everything else has to be exact.
    pub fn selected_edge(&self, output: &Value) -> Option<&Edge> {
        let name = match output {
            Value::String(text) => text.trim(),
            other => other.get("selected_edge")?.as_str()?,
        };
        let by_label = self.out.iter().find(|edge| edge.label.as_deref() == Some(name));
        by_label.or_else(|| self.out.iter().find(|edge| edge.to.as_str() == name))
    }
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
    /// Whether it makes a failure of every task that reaches it partial.
    pub fails_partial: bool,
    /// How it joins.
    pub join: Join,
}

/// An edge to build a graph of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEdge {
    /// Its source.
    pub from: NodeId,
    /// Its target.
    pub to: NodeId,
    /// Its name.
    pub label: Option<String>,
    /// Whether only failures go along it.
    pub takes_errors: bool,
}

/// A valid graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: Vec<GraphNode>,
    by_id: HashMap<NodeId, usize>,
    /// For each node the nodes that can be reached from it, itself excluded, as bits.
    reach: Vec<Vec<u64>>,
    /// For each node whether it is a fork of which some merge takes children.
    merged: Vec<bool>,
    /// The merges that a waiting task asks about.
    joins: joins::Joins,
}

impl Role {
    /// Whether it makes children: branch and split.
    pub fn forks(self) -> bool {
        matches!(self, Self::Branch | Self::Split)
    }

    /// Its name with its article, for people: `a merge`, `an exit`.
    pub fn with_article(self) -> String {
        match self {
            Self::Exit => format!("an {self}"),
            Self::Start | Self::Linear | Self::Decision | Self::Branch | Self::Split | Self::Merge => {
                format!("a {self}")
            }
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Linear => "linear",
            Self::Decision => "decision",
            Self::Branch => "branch",
            Self::Split => "split",
            Self::Merge => "merge",
            Self::Exit => "exit",
        })
    }
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
            (Some(from), Some(to)) => draft::has_bit(&self.reach, *from, *to),
            _ => false,
        }
    }

    /// The position of a node in [`Self::nodes`].
    pub(crate) fn position(&self, id: &NodeId) -> Option<usize> {
        work::count();
        self.by_id.get(id).copied()
    }

    /// The node at a position.
    pub(crate) fn at(&self, position: usize) -> Option<&GraphNode> {
        work::count();
        self.nodes.get(position)
    }

    /// Whether there is a way from one position to the other, maybe of no edge.
    pub(crate) fn leads(&self, from: usize, to: usize) -> bool {
        work::count();
        from == to || draft::has_bit(&self.reach, from, to)
    }

    /// The merges of a task with `depth` ancestors that it may come to first from this position, itself counted.
    pub(crate) fn first_merges(&self, from: usize, depth: usize) -> &[usize] {
        work::count();
        self.joins.first(from, depth)
    }

    /// The merges of the same task that can follow a merge, without one between.
    pub(crate) fn merges_after(&self, merge: usize) -> &[usize] {
        work::count();
        self.joins.after(merge)
    }

    /// Whether a merge of a task with fewer than `depth` ancestors can be reached from here, itself counted.
    pub(crate) fn goes_above(&self, from: usize, depth: usize) -> bool {
        work::count();
        self.joins.least_depth(from) < depth
    }

    /// The nodes before a merge at which a child may be as one of several.
    pub(crate) fn deeper_before(&self, merge: usize) -> &[usize] {
        self.joins.deeper(merge)
    }

    /// Whether all edges of a fork lead to the same merges.
    pub(crate) fn are_alike(&self, fork: usize) -> bool {
        work::count();
        self.joins.are_all_alike(fork)
    }

    /// How many levels above a task with `depth` ancestors the owner of this merge is: 0 for the task itself. None when
    /// there is no such merge above a task so deep.
    pub fn owner_levels(&self, merge: &NodeId, depth: usize) -> Option<usize> {
        let node = self.node(merge).filter(|node| node.role == Role::Merge)?;
        depth.checked_sub(node.forks.len())
    }

    /// Whether a merge that belongs to the task that executes this branch or split takes children that it makes, so that
    /// the task goes on there instead of ending with them.
    pub fn is_merged(&self, fork: &NodeId) -> bool {
        self.by_id.get(fork).and_then(|position| self.merged.get(*position)).copied().unwrap_or_default()
    }
}

/// Counts the lookups of the router, so that a test can tell whether a step costs more in a larger graph.
pub(crate) mod work {
    #[cfg(test)]
    thread_local! {
        static COUNTED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// One more. Nothing outside of tests.
    #[inline]
    pub fn count() {
        #[cfg(test)]
        COUNTED.with(|counted| counted.set(counted.get() + 1));
    }

    /// How many so far, on this thread.
    #[cfg(test)]
    pub fn counted() -> u64 {
        COUNTED.with(std::cell::Cell::get)
    }
}
