//! The merges that a task may wait at, computed once: so that a step of the router costs the same however large the graph is.

use super::{Edge, GraphNode, Role, draft::has_bit};
use domain::NodeId;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// The joins of each node, by its position.
#[derive(Clone, Debug, Default)]
pub(super) struct Joins {
    /// By the depth of a task: its merges that a task which is at this node may come to first, itself counted. There is none
    /// for a task that is deeper than the node.
    first: Vec<Vec<Arc<[usize]>>>,
    /// For a merge: the merges of the same task that can follow it, without one between.
    after: Vec<Arc<[usize]>>,
    /// The least depth of a task to which a merge belongs that can be reached from here, itself counted.
    least_depth: Vec<usize>,
    /// For a merge: nodes before it that a child may be at as one of several, because it forked on its way.
    deeper: Vec<Vec<usize>>,
    /// For a fork: whether all its edges lead to the same merges, so that its children need not be counted by edges.
    alike: Vec<bool>,
}

impl Joins {
    pub fn find(nodes: &[GraphNode], by_id: &HashMap<NodeId, usize>, order: &[usize], reach: &[Vec<u64>]) -> Self {
        let none: Arc<[usize]> = Arc::default();
        let mut joins = Self {
            first: vec![Vec::new(); nodes.len()],
            after: vec![none.clone(); nodes.len()],
            least_depth: vec![usize::MAX; nodes.len()],
            deeper: vec![Vec::new(); nodes.len()],
            alike: vec![false; nodes.len()],
        };
        let position = |id: &NodeId| by_id.get(id).copied();
        for at in order.iter().rev().copied() {
            let Some(node) = nodes.get(at) else { continue };
            let to: Vec<usize> = node.out.iter().filter_map(|Edge { to, .. }| position(to)).collect();
            let depth = node.forks.len();
            let mut first: Vec<Arc<[usize]>> = (0..=depth).map(|depth| joins.of_all(&to, depth)).collect();
            let mut least = to.iter().filter_map(|to| joins.least_depth.get(*to)).min().copied().unwrap_or(usize::MAX);
            if node.role == Role::Merge {
                least = least.min(depth);
                if let Some(last) = first.last_mut() {
                    joins.after[at] = std::mem::replace(last, [at].into());
                }
                let deep = |from: &&NodeId| {
                    let from = position(from).and_then(|from| nodes.get(from));
                    from.is_some_and(|from| from.forks.len() + usize::from(from.role.forks()) > depth + 1)
                };
                joins.deeper[at] = node.inbound.iter().filter(deep).filter_map(position).collect();
            }
            joins.first[at] = first;
            joins.least_depth[at] = least;
            if node.role.forks() {
                joins.alike[at] = joins.are_alike(&to, depth, reach);
            }
        }
        joins
    }

    fn of_all(&self, nodes: &[usize], depth: usize) -> Arc<[usize]> {
        let mut all = nodes.iter().map(|node| self.first(*node, depth));
        let Some(one) = all.next() else { return Arc::default() };
        if all.all(|other| other == one) {
            return one.clone();
        }
        let all: BTreeSet<usize> = nodes.iter().flat_map(|node| self.first(*node, depth).iter().copied()).collect();
        all.into_iter().collect()
    }

    /// Whether children that begin at these nodes are the same for every merge of a task of this depth.
    fn are_alike(&self, starts: &[usize], depth: usize, reach: &[Vec<u64>]) -> bool {
        let Some((one, others)) = starts.split_first() else { return true };
        let goes_up = |start: usize| self.least_depth.get(start).is_some_and(|least| *least < depth);
        let leads = |from: usize, to: usize| from == to || has_bit(reach, from, to);
        let first = self.first(*one, depth);
        let deeper: Vec<usize> =
            self.all_after(first).into_iter().flat_map(|merge| self.deeper(merge).to_vec()).collect();
        others.iter().all(|other| {
            self.first(*other, depth) == first
                && goes_up(*other) == goes_up(*one)
                && deeper.iter().all(|from| leads(*other, *from) == leads(*one, *from))
        })
    }

    /// These merges and all of the same task that can follow them.
    fn all_after(&self, merges: &[usize]) -> BTreeSet<usize> {
        let (mut all, mut open) = (BTreeSet::new(), merges.to_vec());
        while let Some(merge) = open.pop() {
            if all.insert(merge) {
                open.extend(self.after(merge).iter().copied());
            }
        }
        all
    }

    pub fn first(&self, node: usize, depth: usize) -> &Arc<[usize]> {
        static NONE: std::sync::LazyLock<Arc<[usize]>> = std::sync::LazyLock::new(Arc::default);
        self.first.get(node).and_then(|first| first.get(depth)).unwrap_or(&NONE)
    }

    pub fn after(&self, merge: usize) -> &[usize] {
        self.after.get(merge).map_or(&[], |after| after)
    }

    pub fn least_depth(&self, node: usize) -> usize {
        self.least_depth.get(node).copied().unwrap_or(usize::MAX)
    }

    pub fn deeper(&self, merge: usize) -> &[usize] {
        self.deeper.get(merge).map_or(&[], Vec::as_slice)
    }

    pub fn are_all_alike(&self, fork: usize) -> bool {
        self.alike.get(fork).copied().unwrap_or_default()
    }
}
