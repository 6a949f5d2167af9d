//! Graphs that lead back to themselves: their cycles, and their other faults.

use super::{FaultAt, GraphFaultKind as NodeKind, Role, draft::Draft, owner};
use std::collections::HashSet;

impl Draft {
    /// A fault for each cycle among these nodes, at the edge that closes it.
    pub(super) fn cycle_faults(&mut self, mut left: HashSet<usize>) {
        while let Some(cycle) = self.cycle_within(&mut left) {
            let (first, last) = (cycle[0], cycle[cycle.len() - 1]);
            let closing = self.out[last].iter().find(|(to, ..)| *to == first).map_or(0, |(.., place)| *place);
            let path = cycle.iter().chain([&first]).map(|node| self.id(*node)).collect();
            self.fault(FaultAt::Edge(closing), NodeKind::Cycle(path));
        }
    }

    /// Takes one cycle out of these nodes, beginning with its earliest node; and those that are on none.
    fn cycle_within(&self, left: &mut HashSet<usize>) -> Option<Vec<usize>> {
        let onward =
            |left: &HashSet<usize>, node: usize| self.out[node].iter().map(|(to, ..)| *to).find(|to| left.contains(to));
        // A node without a way on is on no cycle. After that every walk must come back to itself.
        loop {
            let ends: Vec<usize> = left.iter().copied().filter(|node| onward(left, *node).is_none()).collect();
            if ends.is_empty() {
                break;
            }
            for end in ends {
                left.remove(&end);
            }
        }
        let mut walk = vec![*left.iter().min()?];
        let start = loop {
            let to = onward(left, *walk.last()?)?;
            match walk.iter().position(|node| *node == to) {
                Some(start) => break start,
                None => walk.push(to),
            }
        };
        let mut cycle = walk.split_off(start);
        let earliest = cycle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(place, _)| place);
        cycle.rotate_left(earliest);
        for node in &cycle {
            left.remove(node);
        }
        Some(cycle)
    }

    /// The faults of merges in a graph with cycles. The owner of each merge is then found without the edges that lead back, as
    /// if these had been taken out: so one fault does not hide the others.
    pub(super) fn check_joins_despite_cycles(&mut self) {
        let back = self.back_edges();
        let keep = |from: usize, to: usize| !back.contains(&(from, to));
        let mut forward = Self {
            nodes: self.nodes.clone(),
            given: self.given.clone(),
            by_id: self.by_id.clone(),
            out: self.out.clone(),
            inbound: self.inbound.clone(),
            degrees: self.degrees.clone(),
            of_errors: self.of_errors.clone(),
            most_levels: self.most_levels,
            faults: Vec::new(),
        };
        for node in 0..forward.nodes.len() {
            forward.out[node].retain(|(to, ..)| keep(node, *to));
            forward.inbound[node].retain(|from| keep(*from, node));
        }
        let Some(order) = forward.order() else { return };
        // Reachability is asked of the graph as it is.
        let mut reach = forward.reach(&order);
        let mut grows = true;
        while grows {
            grows = false;
            for node in order.iter().rev() {
                grows |= self.extend_reach(&mut reach, *node);
            }
        }
        owner::find(&mut forward, &order, &reach);
        // The children that come to a merge are unknown if only an edge back reaches it.
        let unknown: HashSet<FaultAt> = back
            .iter()
            .filter(|(_, to)| self.nodes[*to].role == Role::Merge && forward.inbound[*to].is_empty())
            .map(|(_, to)| FaultAt::Node(self.given[*to]))
            .collect();
        self.faults.extend(forward.faults.into_iter().filter(|fault| !unknown.contains(&fault.at)));
    }

    /// Adds to what a node leads to what the nodes after it lead to; whether that was anything new.
    fn extend_reach(&self, reach: &mut [Vec<u64>], node: usize) -> bool {
        let mut bits = std::mem::take(&mut reach[node]);
        let before = bits.clone();
        for (to, ..) in &self.out[node] {
            bits[to / 64] |= 1 << (to % 64);
            bits.iter_mut().zip(&reach[*to]).for_each(|(word, more)| *word |= more);
        }
        let grew = bits != before;
        reach[node] = bits;
        grew
    }

    /// The edges that lead to where a walk from the starts has come from. Without them there is no cycle.
    fn back_edges(&self) -> HashSet<(usize, usize)> {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            Not,
            OnTheWay,
            Done,
        }
        let mut seen = vec![Seen::Not; self.nodes.len()];
        let mut back = HashSet::new();
        let starts = (0..self.nodes.len()).filter(|node| self.nodes[*node].role == Role::Start);
        for root in starts.chain(0..self.nodes.len()) {
            if seen[root] != Seen::Not {
                continue;
            }
            seen[root] = Seen::OnTheWay;
            let mut walk = vec![(root, 0)];
            while let Some((node, next)) = walk.last_mut() {
                let Some((to, ..)) = self.out[*node].get(*next) else {
                    seen[*node] = Seen::Done;
                    walk.pop();
                    continue;
                };
                *next += 1;
                match seen[*to] {
                    Seen::OnTheWay => drop(back.insert((*node, *to))),
                    Seen::Done => {}
                    Seen::Not => {
                        seen[*to] = Seen::OnTheWay;
                        walk.push((*to, 0));
                    }
                }
            }
        }
        back
    }
}
