//! The task that executes a node, and so the owner of a merge: see the head of [`super`].

use super::{
    GraphFaultKind as NodeKind, Role,
    draft::{Draft, has_bit},
};

/// A fork that was passed on the way to a node, with the edge that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The branch or split.
    pub(super) fork: usize,
    /// The target of the edge.
    to: usize,
}

/// The owners of the nodes.
pub(super) struct Owned {
    /// For each node the forks passed on the way to it.
    pub(super) stacks: Vec<Vec<Frame>>,
    /// For each node whether it is a fork of which some merge takes children.
    pub(super) merged: Vec<bool>,
}

/// Follows the forks along the nodes, and checks the merges.
pub(super) fn find(draft: &mut Draft, order: &[usize], reach: &[Vec<u64>]) -> Owned {
    let mut stacks: Vec<Vec<Frame>> = vec![Vec::new(); draft.nodes.len()];
    // For each fork the merges that take its children.
    let mut takers: Vec<Vec<usize>> = vec![Vec::new(); draft.nodes.len()];
    let mut is_too_deep = false;
    for node in order.iter().copied() {
        let ways: Vec<(usize, Vec<Frame>)> =
            draft.inbound[node].iter().map(|from| (*from, along(draft, &stacks, *from, node))).collect();
        stacks[node] = match draft.nodes[node].role {
            Role::Merge => owner(draft, &stacks, reach, node, &ways),
            _ => common(&ways).to_vec(),
        };
        let levels = stacks[node].len();
        if levels > draft.most_levels {
            // The first one stands for all that follow.
            if !std::mem::replace(&mut is_too_deep, true) {
                draft.node_fault(node, NodeKind::TooDeep { node: draft.id(node), levels });
            }
            stacks[node].truncate(draft.most_levels);
        }
        if draft.nodes[node].role == Role::Merge {
            let depth = stacks[node].len();
            let joined = ways.iter().filter_map(|(_, way)| way.get(depth));
            for frame in joined {
                if !takers[frame.fork].contains(&node) {
                    takers[frame.fork].push(node);
                }
            }
            let many = ways
                .iter()
                .any(|(_, way)| way.iter().skip(depth).any(|frame| draft.nodes[frame.fork].role == Role::Split));
            if draft.inbound_degree(node) == 1 && !many {
                draft.degree_fault(node);
            }
        }
    }
    for (fork, merges) in takers.iter().enumerate() {
        for (place, one) in merges.iter().enumerate() {
            for other in merges.iter().skip(place + 1) {
                if !has_bit(reach, *one, *other) && !has_bit(reach, *other, *one) {
                    let kind = NodeKind::UnchainedMerges {
                        fork: draft.id(fork),
                        one: draft.id(*one),
                        other: draft.id(*other),
                    };
                    draft.node_fault(*other, kind);
                }
            }
        }
    }
    Owned { stacks, merged: takers.iter().map(|merges| !merges.is_empty()).collect() }
}

/// The forks passed when `node` is reached over `from`.
fn along(draft: &Draft, stacks: &[Vec<Frame>], from: usize, node: usize) -> Vec<Frame> {
    let mut way = stacks[from].clone();
    if draft.nodes[from].role.forks() {
        way.push(Frame { fork: from, to: node });
    }
    way
}

/// The common beginning of all ways.
fn common(ways: &[(usize, Vec<Frame>)]) -> &[Frame] {
    let Some(((_, first), others)) = ways.split_first() else { return &[] };
    let length = others
        .iter()
        .map(|(_, way)| first.iter().zip(way).take_while(|(one, other)| one == other).count())
        .min()
        .unwrap_or(first.len());
    first.get(..length).unwrap_or_default()
}

/// The forks above the task that a merge belongs to.
fn owner(
    draft: &mut Draft,
    stacks: &[Vec<Frame>],
    reach: &[Vec<u64>],
    merge: usize,
    ways: &[(usize, Vec<Frame>)],
) -> Vec<Frame> {
    let shared = common(ways);
    let default = match shared.split_last() {
        Some((_, outer)) if ways.iter().all(|(_, way)| way.len() == shared.len()) => outer,
        _ => shared,
    };
    let Some(of) = draft.nodes[merge].join.of.clone() else { return default.to_vec() };
    let named = draft.position(&of).filter(|named| {
        let role = draft.nodes[*named].role;
        role.forks() || role == Role::Decision || draft.out[*named].len() > 1
    });
    let Some(named) = named else {
        draft.node_fault(merge, NodeKind::OfWhat { merge: draft.id(merge), of });
        return default.to_vec();
    };
    let above = &stacks[named];
    let astray =
        ways.iter().find(|(from, way)| !(way.starts_with(above) && (*from == named || has_bit(reach, named, *from))));
    if let Some((from, _)) = astray {
        draft.node_fault(merge, NodeKind::OfNotAbove { merge: draft.id(merge), of, from: draft.id(*from) });
        return default.to_vec();
    }
    above.clone()
}
