//! What a task does while none of its nodes executes: begin a merge, end, or wait.

use crate::{
    graph::{GraphNode, OnFailure, Role, Strategy},
    router::{
        Router,
        place::{Fork, failures, is_failure, key_of},
    },
};
use domain::{
    Error, NodeId, Status,
    task::{Arrival, ChildEnd, ChildKind, ChildName},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// What just happened and is not in the place yet: a large set is not copied for each message.
#[derive(Default)]
pub(super) struct Change<'a> {
    pub arrival: Option<&'a Arrival>,
    pub ended: Option<(&'a NodeId, u32, &'a ChildEnd)>,
}

/// What becomes of a task that waits.
pub(super) enum Join {
    Wait,
    Begin {
        merge: NodeId,
        taken: Vec<String>,
        failed: Vec<ChildName>,
        with_failed: bool,
        cancelled: Vec<ChildName>,
    },
    Fail {
        merge: NodeId,
        why: String,
        failed: Vec<ChildName>,
        cancelled: Vec<ChildName>,
    },
    /// All that it made went on; so many of it failed.
    Up(Status, u32),
    End(Status, Value, Option<Error>),
}

impl Change<'_> {
    /// Whether this child ends with it.
    fn ends(&self, node: &NodeId, fork: &Fork, index: u32) -> bool {
        self.ended.is_some_and(|(ended, at, _)| ended == node && at == index)
            || self.arrival.is_some_and(|arrival| {
                arrival.place == [index] && fork.name(node, index).is_some_and(|name| name.as_str() == arrival.child)
            })
    }

    /// How many children of this edge end with it.
    fn ended_on(&self, node: &NodeId, fork: &Fork, edge: usize) -> u32 {
        let arrived = self.arrival.and_then(|arrival| arrival.place.first().copied());
        let index = self.ended.map(|(_, index, _)| index).or(arrived);
        u32::from(index.is_some_and(|index| fork.edge(index) == Some(edge) && self.ends(node, fork, index)))
    }
}

impl Router<'_> {
    /// What the task does, given that no node of it executes.
    pub(super) fn join(&self, change: &Change<'_>) -> Join {
        let mut candidates: Vec<&GraphNode> = self.own_merges().filter(|node| self.may_begin(node, change)).collect();
        // Those of one fork form a chain, so the first is the one that no other leads to.
        candidates.sort_by(|left, right| left.id.cmp(&right.id));
        let first = candidates
            .iter()
            .find(|node| !candidates.iter().any(|other| self.graph.reaches(&other.id, &node.id)))
            .copied();
        match first {
            Some(merge) => self.judge(merge, change),
            None if self.live(change) > 0 => Join::Wait,
            None => self.complete(change),
        }
    }

    /// The merges that belong to this task and have not begun.
    fn own_merges(&self) -> impl Iterator<Item = &GraphNode> {
        let depth = self.depth();
        let merges =
            self.graph.nodes().iter().filter(move |node| node.role == Role::Merge && node.forks.len() == depth);
        merges.filter(|node| !self.place.begun.contains(&node.id))
    }

    /// Whether something has come to this merge of the task, may come, or could have come and failed.
    fn may_begin(&self, merge: &GraphNode, change: &Change<'_>) -> bool {
        self.place.arrivals.contains_key(&merge.id)
            || change.arrival.is_some_and(|arrival| arrival.merge == merge.id)
            || self.is_empty_split(&merge.id)
            || self.possible(merge, change) > 0
            || self.failures(merge, change) > 0
    }

    /// Whether the task waits for a split that had nothing to split, and this merge would have taken its subtasks.
    fn is_empty_split(&self, merge: &NodeId) -> bool {
        let fork = self.place.last_fork.as_ref().and_then(|node| self.place.forks.get_key_value(node));
        fork.is_some_and(|(node, fork)| fork.total == 0 && self.graph.reaches(node, merge))
    }

    fn leads(&self, from: &NodeId, merge: &NodeId) -> bool {
        from == merge || self.graph.reaches(from, merge)
    }

    /// Whether this is the first merge of the task that a child which began at `target` could have come to.
    fn is_first_for(&self, target: &NodeId, merge: &NodeId) -> bool {
        let mut own = self.own_merges().filter(|own| self.leads(target, &own.id));
        self.leads(target, merge) && !own.any(|own| self.graph.reaches(&own.id, merge))
    }

    /// The edges of all forks with the nodes that they lead to.
    fn edges(&self) -> impl Iterator<Item = (&NodeId, &Fork, usize, &NodeId)> {
        let forks = self.place.forks.iter();
        forks.flat_map(|(node, fork)| fork.to.iter().enumerate().map(move |(edge, to)| (node, fork, edge, to)))
    }

    /// How many children may still come to this merge, or send something there.
    fn possible(&self, merge: &GraphNode, change: &Change<'_>) -> u32 {
        let edges = self.edges().filter(|(.., to)| self.leads(to, &merge.id));
        edges.map(|(node, fork, edge, _)| self.live_on(node, fork, edge, change)).sum()
    }

    /// How many children may still go past this task, to a merge of one above, and not to this merge of its own. A task that
    /// left them behind would end before they are there, and what they bring would count or not as it happens.
    fn going_up(&self, merge: &GraphNode, change: &Change<'_>) -> u32 {
        let depth = self.depth();
        let above: Vec<&NodeId> = self
            .graph
            .nodes()
            .iter()
            .filter(|node| node.role == Role::Merge && node.forks.len() < depth)
            .map(|node| &node.id)
            .collect();
        let edges = self
            .edges()
            .filter(|(.., to)| !self.leads(to, &merge.id) && above.iter().any(|above| self.leads(to, above)));
        edges.map(|(node, fork, edge, _)| self.live_on(node, fork, edge, change)).sum()
    }

    fn live_on(&self, node: &NodeId, fork: &Fork, edge: usize, change: &Change<'_>) -> u32 {
        fork.live.get(edge).copied().unwrap_or_default().saturating_sub(change.ended_on(node, fork, edge))
    }

    /// Whether a child may still come to this merge as several: it may fork on its way, and nobody knows into how many.
    fn may_multiply(&self, merge: &GraphNode, change: &Change<'_>) -> bool {
        let depth_of = |node: &GraphNode| node.forks.len() + usize::from(node.role.forks());
        let before = || merge.inbound.iter().filter_map(|from| self.graph.node(from));
        let deeper = || before().filter(|from| depth_of(from) > merge.forks.len() + 1);
        let mut edges = self.edges().filter(|(.., to)| deeper().any(|from| self.leads(to, &from.id)));
        edges.any(|(node, fork, edge, _)| self.live_on(node, fork, edge, change) > 0)
    }

    fn live(&self, change: &Change<'_>) -> u32 {
        self.edges().map(|(node, fork, edge, _)| self.live_on(node, fork, edge, change)).sum()
    }

    /// How many children failed before this merge, which is the first that they could have come to.
    fn failures(&self, merge: &GraphNode, change: &Change<'_>) -> u32 {
        let edges = self.edges().filter(|(.., to)| self.is_first_for(to, &merge.id));
        let now = |node: &NodeId, fork: &Fork, edge: usize| {
            let ended = change.ended.filter(|(ended, index, _)| *ended == node && fork.edge(*index) == Some(edge));
            ended.map_or(0, |(.., end)| failures(end))
        };
        let count = |(node, fork, edge, _): (&NodeId, &Fork, usize, &NodeId)| {
            fork.failed.get(edge).copied().unwrap_or_default() + now(node, fork, edge)
        };
        edges.map(count).sum()
    }

    /// The same by their names.
    fn failed(&self, merge: &GraphNode, change: &Change<'_>) -> Vec<ChildName> {
        let mut failed = Vec::new();
        for (node, fork, edge, _) in self.edges().filter(|(.., to)| self.is_first_for(to, &merge.id)) {
            let now = change.ended.filter(|(ended, ..)| *ended == node).map(|(_, index, end)| (index, end));
            let ended = fork.ended.iter().map(|(index, end)| (*index, end)).chain(now);
            let on_edge = ended.filter(|(index, end)| is_failure(end) && fork.edge(*index) == Some(edge));
            failed.extend(on_edge.filter_map(|(index, _)| fork.name(node, index)));
        }
        failed
    }

    fn judge(&self, merge: &GraphNode, change: &Change<'_>) -> Join {
        let possible = self.possible(merge, change);
        let takes_all = matches!(merge.join.strategy, Strategy::All | Strategy::BestOf);
        if takes_all && (possible > 0 || self.going_up(merge, change) > 0) {
            return Join::Wait;
        }
        let now = change.arrival.filter(|arrival| arrival.merge == merge.id);
        let set = || self.place.arrivals.get(&merge.id).into_iter().flatten();
        let arrived = set().count() as u32 + u32::from(now.is_some());
        let good = set().filter(|(_, arrived)| arrived.status == Status::Success).count() as u32
            + u32::from(now.is_some_and(|arrival| arrival.status == Status::Success));
        // More than half of how many is not known while one that may come may come as several.
        if merge.join.strategy == Strategy::Quorum(0) && self.may_multiply(merge, change) {
            return Join::Wait;
        }
        let wanted = match merge.join.strategy {
            Strategy::All | Strategy::BestOf => 0,
            Strategy::FirstSuccess => 1,
            Strategy::Quorum(0) => (arrived + possible + self.failures(merge, change)) / 2 + 1,
            Strategy::Quorum(wanted) => wanted,
        };
        if good < wanted && (possible > 0 || self.going_up(merge, change) > 0) {
            return Join::Wait;
        }
        let failed = self.failed(merge, change);
        let on_failure = merge.join.on_failure;
        let why = match merge.join.strategy {
            Strategy::All | Strategy::BestOf => match failed.first() {
                Some(first) if on_failure == OnFailure::Fail => {
                    Some(format!("{} of those that it joins failed, the first is {first}", failed.len()))
                }
                _ if arrived == 0 && !self.is_empty_split(&merge.id) && on_failure != OnFailure::Include => {
                    Some("all of those that it joins failed".to_owned())
                }
                _ => None,
            },
            Strategy::FirstSuccess if good == 0 => Some("none of those that it joins succeeded".to_owned()),
            Strategy::Quorum(_) if good < wanted => Some(format!("{good} succeeded, and {wanted} are needed")),
            Strategy::FirstSuccess | Strategy::Quorum(_) => None,
        };
        let cancelled = self.unwanted(merge, change);
        if let Some(why) = why {
            return Join::Fail { merge: merge.id.clone(), why, failed, cancelled };
        }
        let now = now.map(|arrival| (key_of(arrival), arrival.status, arrival.child.as_str()));
        let mut came: Vec<(&str, Status, &str)> =
            now.iter().map(|(key, status, child)| (key.as_str(), *status, *child)).collect();
        came.extend(set().map(|(key, arrived)| (key.as_str(), arrived.status, arrived.child.as_str())));
        came.sort_unstable_by_key(|(key, ..)| *key);
        let good = came.iter().filter(|(_, status, _)| *status == Status::Success);
        let most = match merge.join.strategy {
            Strategy::All | Strategy::BestOf => 0,
            Strategy::FirstSuccess => 1,
            Strategy::Quorum(_) => usize::MAX,
        };
        let taken = good.take(most).map(|(.., child)| (*child).to_owned()).collect();
        let with_failed = takes_all && on_failure == OnFailure::Include;
        Join::Begin { merge: merge.id.clone(), taken, failed, with_failed, cancelled }
    }

    /// Children that could still come to a merge that waits no more.
    fn unwanted(&self, merge: &GraphNode, change: &Change<'_>) -> Vec<ChildName> {
        let mut names = Vec::new();
        for (node, fork) in &self.place.forks {
            let sent =
                (0..fork.spawned).filter(|index| !fork.ended.contains_key(index) && !change.ends(node, fork, *index));
            let coming = sent.filter(|index| fork.target(*index).is_some_and(|target| self.leads(target, &merge.id)));
            names.extend(coming.filter_map(|index| fork.name(node, index)));
        }
        names
    }

    /// Whether what this fork makes comes together again, in this task or in one above.
    pub(super) fn is_joined(&self, fork: &Fork, node: &NodeId) -> bool {
        let depth = self.graph.node(node).map_or(0, |node| node.forks.len());
        let mut merges = self.graph.nodes().iter().filter(|node| node.role == Role::Merge && node.forks.len() <= depth);
        merges.any(|merge| fork.to.iter().any(|to| self.leads(to, &merge.id)))
    }

    /// No merge is left, and no child: the task is as its children are (seed 002 §2.1).
    fn complete(&self, change: &Change<'_>) -> Join {
        let Some((node, fork)) = self.place.last_fork.as_ref().and_then(|node| self.place.forks.get_key_value(node))
        else {
            return Join::Wait;
        };
        let now = change.ended.filter(|(ended, ..)| *ended == node).map(|(_, index, end)| (index, end));
        let ends: BTreeMap<u32, &ChildEnd> = fork.ended.iter().map(|(index, end)| (*index, end)).chain(now).collect();
        let failed = ends.values().filter(|end| is_failure(end)).count();
        if ends.values().any(|end| end.merged) {
            let lost = ends.values().map(|end| failures(end)).sum();
            return Join::Up(if failed > 0 { Status::Partial } else { self.place.status() }, lost);
        }
        let with = |status: Status| ends.values().find(|end| end.status == status);
        let error = ends.values().find_map(|end| end.error.clone());
        match fork.kind {
            // Had one succeeded whose fork is not joined, the task would have ended with it.
            ChildKind::Clone => match (with(Status::Success), with(Status::Partial)) {
                (Some(end), _) => Join::End(self.place.status(), end.output.clone(), None),
                (None, Some(end)) => Join::End(Status::Partial, end.output.clone(), None),
                (None, None) => Join::End(Status::Failure, Value::Null, error),
            },
            ChildKind::Subtask => {
                let output: Value = ends.values().map(|end| end.output.clone()).collect();
                let tolerant = self.graph.node(node).is_some_and(|node| node.continue_on_failure);
                match failed {
                    0 if with(Status::Partial).is_some() => Join::End(Status::Partial, output, None),
                    0 => Join::End(self.place.status(), output, None),
                    _ if tolerant && failed < ends.len() => Join::End(Status::Partial, output, error),
                    _ => Join::End(Status::Failure, output, error),
                }
            }
        }
    }
}
