//! A graph that is being built: its edges are linked, and its faults are gathered.

use super::{FaultAt, GraphFault, GraphFaultKind as NodeKind, MOST_LEVELS, NewEdge, NewNode, Role};
use domain::NodeId;
use std::collections::{HashMap, HashSet};

/// A graph that may be wrong. Nodes are known by their places among those that count, `given` leads back.
pub(super) struct Draft {
    pub(super) nodes: Vec<NewNode>,
    /// For each node its index in the given list.
    pub(super) given: Vec<usize>,
    pub(super) by_id: HashMap<NodeId, usize>,
    /// For each node its edges out: target, label, index of the edge in the given list.
    pub(super) out: Vec<Vec<(usize, Option<String>, usize)>>,
    /// For each node those before it.
    pub(super) inbound: Vec<Vec<usize>>,
    /// For each node how many edges name it as their end and as their beginning, whether or not they lead anywhere.
    pub(super) degrees: Vec<(usize, usize)>,
    /// The places of the edges that only failures go along; they are ways besides those that the role asks for.
    pub(super) of_errors: HashSet<usize>,
    /// The most branches and splits that lie inside one another.
    pub(super) most_levels: usize,
    pub(super) faults: Vec<GraphFault>,
}

impl Draft {
    pub(super) fn link(given_nodes: Vec<NewNode>, edges: &[NewEdge]) -> Self {
        let mut draft = Self {
            nodes: Vec::with_capacity(given_nodes.len()),
            given: Vec::new(),
            by_id: HashMap::new(),
            out: Vec::new(),
            inbound: Vec::new(),
            degrees: Vec::new(),
            of_errors: HashSet::new(),
            most_levels: MOST_LEVELS,
            faults: Vec::new(),
        };
        for (place, node) in given_nodes.into_iter().enumerate() {
            if draft.by_id.contains_key(&node.id) {
                draft.fault(FaultAt::Node(place), NodeKind::DuplicateId(node.id));
            } else {
                draft.by_id.insert(node.id.clone(), draft.nodes.len());
                draft.nodes.push(node);
                draft.given.push(place);
            }
        }
        draft.out.resize(draft.nodes.len(), Vec::new());
        draft.inbound.resize(draft.nodes.len(), Vec::new());
        draft.degrees.resize(draft.nodes.len(), (0, 0));
        let mut seen = HashSet::new();
        for (place, edge) in edges.iter().enumerate() {
            if !seen.insert((&edge.from, &edge.to)) {
                draft.fault(FaultAt::Edge(place), NodeKind::DuplicateEdge(edge.from.clone(), edge.to.clone()));
                continue;
            }
            let ends = [&edge.from, &edge.to].map(|end| draft.by_id.get(end).copied());
            for (end, id) in ends.iter().zip([&edge.from, &edge.to]) {
                if end.is_none() {
                    draft.fault(FaultAt::Edge(place), NodeKind::UnknownEnd(id.clone()));
                }
            }
            let [from, to] = ends;
            if edge.takes_errors {
                draft.of_errors.insert(place);
            } else if let Some(from) = from {
                draft.degrees[from].1 += 1;
            }
            if let Some(to) = to {
                draft.degrees[to].0 += 1;
            }
            if let (Some(from), Some(to)) = (from, to) {
                draft.out[from].push((to, edge.label.clone(), place));
                draft.inbound[to].push(from);
            }
        }
        draft
    }

    pub(super) fn fault(&mut self, at: FaultAt, kind: NodeKind) {
        self.faults.push(GraphFault { at, kind });
    }

    /// A fault of a node.
    pub(super) fn node_fault(&mut self, node: usize, kind: NodeKind) {
        self.fault(FaultAt::Node(self.given[node]), kind);
    }

    pub(super) fn id(&self, node: usize) -> NodeId {
        self.nodes[node].id.clone()
    }

    pub(super) fn position(&self, id: &NodeId) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// The degrees of all roles but the inbound one of merges, which depends on who comes (see [`owner`]).
    pub(super) fn check_nodes(&mut self) {
        if !self.nodes.iter().any(|node| node.role == Role::Start) {
            self.fault(FaultAt::Graph, NodeKind::NoStart);
        }
        for node in 0..self.nodes.len() {
            let NewNode { role, always_fail, join, .. } = &self.nodes[node];
            let (role, always_fail, joins) = (*role, *always_fail, join.of.is_some());
            let (inbound, outbound) = self.degrees[node];
            let fits = match role {
                Role::Start => inbound == 0 && outbound == 1,
                Role::Linear => inbound <= 1 && outbound == 1,
                Role::Decision | Role::Branch => inbound <= 1 && outbound >= 2,
                Role::Split => inbound <= 1 && outbound >= 1,
                Role::Merge => outbound == 1,
                Role::Exit => outbound == 0,
            };
            // A node that no edge leads to is reported as unreachable, which says it better.
            if !fits {
                self.degree_fault(node);
            }
            if always_fail && role != Role::Exit {
                self.node_fault(node, NodeKind::AlwaysFail { node: self.id(node), role });
            }
            if joins && role != Role::Merge {
                self.node_fault(node, NodeKind::NotAMerge { node: self.id(node), role });
            }
        }
    }

    pub(super) fn degree_fault(&mut self, node: usize) {
        let (inbound, outbound) = self.degrees[node];
        self.node_fault(node, NodeKind::Degree { node: self.id(node), role: self.nodes[node].role, inbound, outbound });
    }

    /// Edges that name this node as their end.
    pub(super) fn inbound_degree(&self, node: usize) -> usize {
        self.degrees[node].0
    }

    /// A decision selects by label or by target, so no two of its edges may share any of these.
    pub(super) fn check_labels(&mut self) {
        let selects = |node: &usize| {
            let of_errors = || self.out[*node].iter().any(|(_, _, place)| self.of_errors.contains(place));
            self.nodes[*node].role == Role::Decision || of_errors()
        };
        for node in (0..self.nodes.len()).filter(selects).collect::<Vec<_>>() {
            let mut names: HashMap<String, usize> =
                self.out[node].iter().map(|(to, _, place)| (self.id(*to).to_string(), *place)).collect();
            for (_, label, place) in self.out[node].clone() {
                let Some(label) = label else { continue };
                if names.insert(label.clone(), place).is_some_and(|earlier| earlier != place) {
                    self.fault(FaultAt::Edge(place), NodeKind::DuplicateLabel { node: self.id(node), label });
                }
            }
        }
    }

    /// The nodes so that every edge leads forward; none, with a fault for each cycle, when there is no such order.
    pub(super) fn order(&mut self) -> Option<Vec<usize>> {
        let mut waits: Vec<usize> = self.inbound.iter().map(Vec::len).collect();
        let mut order: Vec<usize> = (0..waits.len()).filter(|node| waits[*node] == 0).collect();
        let mut next = 0;
        while let Some(node) = order.get(next).copied() {
            next += 1;
            for (to, ..) in &self.out[node] {
                waits[*to] -= 1;
                if waits[*to] == 0 {
                    order.push(*to);
                }
            }
        }
        if order.len() == self.nodes.len() {
            return Some(order);
        }
        self.cycle_faults((0..waits.len()).filter(|node| waits[*node] > 0).collect());
        None
    }

    pub(super) fn check_reachable(&mut self) {
        let starts: Vec<usize> = (0..self.nodes.len()).filter(|node| self.nodes[*node].role == Role::Start).collect();
        let reached = self.reached_from(&starts);
        for node in (0..self.nodes.len()).filter(|node| !reached.contains(node)) {
            self.node_fault(node, NodeKind::Unreachable(self.id(node)));
        }
        for start in starts {
            let reached = self.reached_from(&[start]);
            if !reached.iter().any(|node| self.nodes[*node].role == Role::Exit) {
                self.node_fault(start, NodeKind::NoExit(self.id(start)));
            }
        }
    }

    fn reached_from(&self, starts: &[usize]) -> HashSet<usize> {
        let mut reached: HashSet<usize> = starts.iter().copied().collect();
        let mut open = starts.to_vec();
        while let Some(node) = open.pop() {
            for (to, ..) in &self.out[node] {
                if reached.insert(*to) {
                    open.push(*to);
                }
            }
        }
        reached
    }

    pub(super) fn reach(&self, order: &[usize]) -> Vec<Vec<u64>> {
        let mut reach = vec![vec![0; self.nodes.len().div_ceil(64)]; self.nodes.len()];
        for node in order.iter().rev() {
            let mut bits = std::mem::take(&mut reach[*node]);
            for (to, ..) in &self.out[*node] {
                bits[to / 64] |= 1 << (to % 64);
                for (word, more) in bits.iter_mut().zip(&reach[*to]) {
                    *word |= more;
                }
            }
            reach[*node] = bits;
        }
        reach
    }
}

/// Whether `to` is among the bits of `from`.
pub(super) fn has_bit(reach: &[Vec<u64>], from: usize, to: usize) -> bool {
    reach.get(from).and_then(|bits| bits.get(to / 64)).is_some_and(|word| word & (1 << (to % 64)) != 0)
}
