//! Random valid graphs. A graph grows from its start: as long as there are choices left, one of its loose ends gets a node of
//! some role, or several of them meet in a merge, over any forks. The ends that stay loose lead to exits.
//!
//! All choices come from a list of bytes, and a list that is shorter or has smaller numbers gives a simpler graph, so that
//! proptest shrinks a failing case to a readable one.

use buildscale_flow::graph::{Graph, Join, NewEdge, NewNode, OnFailure, Role, Strategy};
use domain::NodeId;
use std::{collections::BTreeSet, fmt};

/// A valid graph, as it is given to [`Graph::build`].
#[derive(Clone, Default)]
pub struct Plan {
    pub nodes: Vec<NewNode>,
    pub edges: Vec<NewEdge>,
    /// The splits that are over lists.
    pub over: BTreeSet<NodeId>,
}

impl Plan {
    /// A graph with at most `most` nodes.
    pub fn grow(choices: &[u8], most: usize) -> Self {
        let mut choices = Choices(choices.iter());
        let mut plan = Self::default();
        let start = plan.add("n0", Role::Start);
        let mut loose = vec![start];
        // Each loose end may need an exit of its own.
        while plan.nodes.len() + loose.len() + 4 < most && !choices.is_over() {
            plan.grow_once(&mut loose, &mut choices);
        }
        plan.close(loose, &mut choices);
        plan
    }

    /// The graph.
    pub fn graph(&self) -> Graph {
        match Graph::build(self.nodes.clone(), self.edges.clone()) {
            Ok(graph) => graph,
            Err(faults) => panic!("the generator makes valid graphs, and not {self:?}: {faults:?}"),
        }
    }

    fn add(&mut self, id: &str, role: Role) -> NodeId {
        let id = NodeId::from(id);
        let (continue_on_failure, always_fail, join) = (false, false, Join::default());
        self.nodes.push(NewNode { id: id.clone(), role, continue_on_failure, always_fail, fails_partial: false, join });
        id
    }

    fn link(&mut self, from: &NodeId, to: &NodeId) {
        self.edges.push(NewEdge { from: from.clone(), to: to.clone(), label: None, takes_errors: false });
    }

    fn grow_once(&mut self, loose: &mut Vec<NodeId>, choices: &mut Choices<'_>) {
        let place = choices.below(loose.len());
        let (role, width) = match choices.below(8) {
            0 | 1 => (Role::Linear, 1),
            2 => (Role::Decision, 2 + choices.below(2)),
            3 => (Role::Branch, 2 + choices.below(2)),
            4 => (Role::Split, 1 + choices.below(2)),
            5 | 6 => (Role::Merge, 1),
            _ => (Role::Exit, 0),
        };
        if role == Role::Merge {
            return self.merge(loose, choices);
        }
        // The last loose end goes on: a graph that ends early proves little.
        if role == Role::Exit && loose.len() == 1 {
            return;
        }
        let from = loose.swap_remove(place);
        let id = self.add(&format!("n{}", self.nodes.len()), role);
        self.link(&from, &id);
        if role == Role::Split && choices.below(2) == 1 {
            self.over.insert(id.clone());
        }
        self.last(|node| {
            node.continue_on_failure = choices.below(4) == 3;
            node.always_fail = role == Role::Exit && choices.below(4) == 3;
        });
        loose.extend(std::iter::repeat_n(id, width));
    }

    /// Lets some of the loose ends meet in a merge, if the graph stays valid.
    fn merge(&mut self, loose: &mut Vec<NodeId>, choices: &mut Choices<'_>) {
        let all = choices.below(3) == 0;
        let mut from: Vec<NodeId> = Vec::new();
        let mut rest = Vec::new();
        for end in loose.iter() {
            let once = !from.contains(end);
            if once && (all || choices.below(2) == 0) { from.push(end.clone()) } else { rest.push(end.clone()) }
        }
        let before = self.clone();
        let id = self.add(&format!("n{}", self.nodes.len()), Role::Merge);
        from.iter().for_each(|from| self.link(from, &id));
        let strategy = match choices.below(6) {
            0..=2 => Strategy::All,
            3 => Strategy::FirstSuccess,
            4 => Strategy::Quorum(choices.below(3) as u32),
            _ => Strategy::BestOf,
        };
        let on_failure = match choices.below(3) {
            0 => OnFailure::Ignore,
            1 => OnFailure::Include,
            _ => OnFailure::Fail,
        };
        let forks = before.nodes.iter().filter(|node| node.role.forks() || node.role == Role::Decision);
        let forks: Vec<NodeId> = forks.map(|node| node.id.clone()).collect();
        let of = (choices.below(6) == 5 && !forks.is_empty()).then(|| forks[choices.below(forks.len())].clone());
        self.last(|node| {
            node.continue_on_failure = choices.below(4) == 3;
            node.join = Join { strategy, on_failure, of };
        });
        rest.push(id);
        if !self.is_valid(&rest) {
            self.last(|node| node.join.of = None);
        }
        if self.is_valid(&rest) { *loose = rest } else { *self = before }
    }

    fn last(&mut self, change: impl FnOnce(&mut NewNode)) {
        if let Some(node) = self.nodes.last_mut() {
            change(node);
        }
    }

    /// Whether it is a graph when each loose end gets an exit: an invalid graph does not become valid later, because
    /// edges lead to new nodes only.
    fn is_valid(&self, loose: &[NodeId]) -> bool {
        let mut closed = self.clone();
        closed.close(loose.to_vec(), &mut Choices([].iter()));
        Graph::build(closed.nodes, closed.edges).is_ok()
    }

    /// Leads the loose ends to exits, sometimes several to one.
    fn close(&mut self, loose: Vec<NodeId>, choices: &mut Choices<'_>) {
        let mut exit = None;
        for from in loose {
            let is_linked = |to: &NodeId| self.edges.iter().any(|edge| edge.from == from && edge.to == *to);
            let shared = exit.clone().filter(|to| !is_linked(to) && choices.below(2) == 1);
            let to = shared.unwrap_or_else(|| self.add(&format!("n{}", self.nodes.len()), Role::Exit));
            self.link(&from, &to);
            exit = Some(to);
        }
    }
}

/// One line per node: `role id options > targets`.
impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for NewNode { id, role, continue_on_failure, always_fail, join, .. } in &self.nodes {
            write!(f, "\n{role} {id}")?;
            let options =
                [("over", self.over.contains(id)), ("continue", *continue_on_failure), ("always_fail", *always_fail)];
            options.iter().filter(|(_, is_set)| *is_set).try_for_each(|(option, _)| write!(f, " {option}"))?;
            match join.strategy {
                Strategy::All => {}
                Strategy::FirstSuccess => write!(f, " first_success")?,
                Strategy::Quorum(wanted) => write!(f, " quorum={wanted}")?,
                Strategy::BestOf => write!(f, " best_of")?,
            }
            match join.on_failure {
                OnFailure::Fail => {}
                OnFailure::Ignore => write!(f, " ignore")?,
                OnFailure::Include => write!(f, " include")?,
            }
            if let Some(of) = &join.of {
                write!(f, " of={of}")?;
            }
            write!(f, " >")?;
            let mut out = self.edges.iter().filter(|edge| edge.from == *id);
            out.try_for_each(|edge| write!(f, " {}", edge.to))?;
        }
        Ok(())
    }
}

/// Bytes as choices; when there are none left, always the first.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, end: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or_default()) % end.max(1)
    }

    fn is_over(&self) -> bool {
        self.0.as_slice().is_empty()
    }
}
