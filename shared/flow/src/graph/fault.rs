//! Faults of a graph, each with its node or edge.

use super::Role;
use domain::NodeId;

/// The place of a fault: an index into the lists that were given to [`super::Graph::build`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultAt {
    /// The graph as a whole.
    Graph,
    /// The node at this place.
    Node(usize),
    /// The edge at this place.
    Edge(usize),
}

/// One broken invariant of a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct GraphFault {
    /// Its place.
    pub at: FaultAt,
    /// Its kind.
    pub kind: GraphFaultKind,
}

/// The invariants of spec 002 §2.3 and §3.3, broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphFaultKind {
    /// There is nowhere to begin.
    #[error("the flow has no node of role start")]
    NoStart,
    /// Two nodes have this id.
    #[error("the id `{0}` is taken by an earlier node")]
    DuplicateId(NodeId),
    /// An edge leads from or to nothing.
    #[error("there is no node `{0}`")]
    UnknownEnd(NodeId),
    /// An edge is there twice.
    #[error("there is already an edge from `{0}` to `{1}`")]
    DuplicateEdge(NodeId, NodeId),
    /// Edges lead back; the first node of the path is also its last.
    #[error("the edges form a cycle: {}", path(.0))]
    Cycle(Vec<NodeId>),
    /// No start leads to it.
    #[error("no start leads to `{0}`")]
    Unreachable(NodeId),
    /// A task that begins there can come to no end.
    #[error("no exit can be reached from the start `{0}`")]
    NoExit(NodeId),
    /// Too few or too many edges for a role.
    #[error("`{node}` is {} and has {inbound} in, {outbound} out; it needs {}", role.with_article(), needs(*role))]
    Degree {
        /// The node.
        node: NodeId,
        /// Its role.
        role: Role,
        /// Edges that lead to it.
        inbound: usize,
        /// Edges that leave it.
        outbound: usize,
    },
    /// Only exits decide so.
    #[error("`{node}` is {}; only an exit can be always_fail", role.with_article())]
    AlwaysFail {
        /// The node.
        node: NodeId,
        /// Its role.
        role: Role,
    },
    /// A decision could not tell two of its edges apart.
    #[error("the decision `{node}` has two edges that `{label}` selects")]
    DuplicateLabel {
        /// The decision.
        node: NodeId,
        /// The label, or the id of a target that is another edge's label.
        label: String,
    },
    /// `of` without a merge.
    #[error("`{node}` is {}; only a merge joins", role.with_article())]
    NotAMerge {
        /// The node.
        node: NodeId,
        /// Its role.
        role: Role,
    },
    /// `of` names something else than a branch, a split or a decision.
    #[error("the merge `{merge}` is of `{of}`, which is no branch, split or decision of this flow")]
    OfWhat {
        /// The merge.
        merge: NodeId,
        /// The name in `of`.
        of: NodeId,
    },
    /// `of` names a node that some way to the merge does not pass.
    #[error("the merge `{merge}` is of `{of}`, but the way over `{from}` does not come from one task that passed it")]
    OfNotAbove {
        /// The merge.
        merge: NodeId,
        /// The name in `of`.
        of: NodeId,
        /// The node before the merge on that way.
        from: NodeId,
    },
    /// More branches and splits lie inside one another than a flow may have.
    #[error(
        "{levels} branches and splits lie around `{node}`, one inside the other; {} are the most",
        super::MOST_LEVELS
    )]
    TooDeep {
        /// The node.
        node: NodeId,
        /// How many.
        levels: usize,
    },
    /// Two merges take children of one fork, and the task that made them can go on at one only.
    #[error("children of `{fork}` go to the merges `{one}` and `{other}`, and neither leads to the other")]
    UnchainedMerges {
        /// The branch or split.
        fork: NodeId,
        /// The earlier merge.
        one: NodeId,
        /// The later one.
        other: NodeId,
    },
}

impl GraphFaultKind {
    /// A stable name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoStart => "no_start",
            Self::DuplicateId(_) => "duplicate_id",
            Self::UnknownEnd(_) => "unknown_node",
            Self::DuplicateEdge(..) => "duplicate_edge",
            Self::Cycle(_) => "cycle",
            Self::Unreachable(_) => "unreachable_node",
            Self::NoExit(_) => "start_without_exit",
            Self::Degree { .. } => "wrong_degree",
            Self::AlwaysFail { .. } => "always_fail_on_non_exit",
            Self::DuplicateLabel { .. } => "duplicate_label",
            Self::NotAMerge { .. } => "merge_on_non_merge",
            Self::OfWhat { .. } | Self::OfNotAbove { .. } => "merge_of",
            Self::TooDeep { .. } => "too_deep",
            Self::UnchainedMerges { .. } => "unchained_merges",
        }
    }

    /// Whether it is about edges, and says nothing when these are not known.
    pub fn is_about_edges(&self) -> bool {
        !matches!(
            self,
            Self::NoStart
                | Self::DuplicateId(_)
                | Self::AlwaysFail { .. }
                | Self::NotAMerge { .. }
                | Self::OfWhat { .. }
        )
    }

    /// A way to correct it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoStart => "give one node `role: start`; tasks begin there",
            Self::DuplicateId(_) => "give one of them another id; edges that name it mean the earlier node",
            Self::UnknownEnd(_) => "add a node of this id, or correct the edge",
            Self::DuplicateEdge(..) => "remove one of them",
            Self::Cycle(_) => "a flow never leads back; to repeat something, list it again or use a node's `retries`",
            Self::Unreachable(_) => "add an edge that leads to it, or remove it",
            Self::NoExit(_) => "lead its way to a node of role exit",
            Self::Degree { role, inbound, outbound, .. } => match role {
                Role::Linear if *outbound > 1 => {
                    "to choose one way, make it a decision; to go all ways at once, a branch or split"
                }
                Role::Merge | Role::Exit => "check its role and its edges",
                _ if *inbound > 1 => "only merges and exits are reached along several edges; put a merge before it",
                _ => "check its role and its edges",
            },
            Self::AlwaysFail { .. } => "put it on the exit that the failing way leads to",
            Self::DuplicateLabel { .. } => "give every edge of a decision a label of its own",
            Self::NotAMerge { .. } => "remove `merge`, or make it `role: merge`",
            Self::OfWhat { .. } => "name the branch, split or decision where the ways part",
            Self::OfNotAbove { .. } => "name one that all ways into the merge pass",
            Self::TooDeep { .. } => {
                "join the children of some of them in a merge before the next one, or split one list of all parts"
            }
            Self::UnchainedMerges { .. } => {
                "let the ways meet in one merge, or lead the first merge's way to the second one"
            }
        }
    }
}

/// A cycle for people.
fn path(nodes: &[NodeId]) -> String {
    nodes.iter().map(NodeId::as_str).collect::<Vec<_>>().join(" -> ")
}

/// The degrees of a role for people.
fn needs(role: Role) -> &'static str {
    match role {
        Role::Start => "0 in, 1 out",
        Role::Linear => "1 in, 1 out",
        Role::Decision | Role::Branch => "1 in, 2 or more out",
        Role::Split => "1 in, 1 or more out",
        Role::Merge => "2 or more in (1 when subtasks of a split come along it), 1 out",
        Role::Exit => "1 or more in, 0 out",
    }
}
