//! The acts of a task while none of its nodes executes: begin a merge, end, or wait.

use crate::graph::{GraphNode, OnFailure, Strategy};
use crate::router::{
    Router,
    route_state::{Fork, failures, is_failure, key_of},
};
use domain::{
    Code, Error, NodeId, Status,
    task::{Arrival, ChildEnd, ChildKind, ChildName, is_stop},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The latest change, which is not in the place yet: a large set is not copied for each message.
#[derive(Default)]
pub(super) struct Change<'a> {
    pub arrival: Option<&'a Arrival>,
    pub ended: Option<(&'a NodeId, u32, &'a ChildEnd)>,
}

/// The next act of a task that waits.
pub(super) enum Join {
    Wait,
    Begin {
        merge: NodeId,
        taken: Vec<String>,
        failed: Vec<ChildName>,
        with_failed: bool,
        cancelled: Vec<ChildName>,
        /// Whether the task goes on without some that it waited for.
        partial: bool,
    },
    Fail {
        merge: NodeId,
        why: Error,
        failed: Vec<ChildName>,
        cancelled: Vec<ChildName>,
    },
    /// All that it made went on; so many of it failed.
    Up(Status, u32),
    End(Status, Value, Option<Error>),
}

/// Children that are the same for every merge of the task: those of one fork that go along one of its edges, or along any
/// where the edges are alike.
#[derive(Clone, Copy)]
struct Group<'a> {
    node: &'a NodeId,
    fork: &'a Fork,
    /// The edge; none for all of them.
    edge: Option<usize>,
    /// The position of the node where they begin, or of one of these.
    start: usize,
    /// How many have not come to their end.
    live: u32,
    /// How many failed, they or something below them.
    failed: u32,
}

/// The task as it is with what just happened.
struct JoinContext<'a> {
    change: &'a Change<'a>,
    /// The groups that something is to be expected of.
    groups: Vec<Group<'a>>,
    /// For each of them, the merges that these children may come to first and that have not begun.
    first: Vec<Vec<usize>>,
}

impl Router<'_> {
    /// The next act of the task, given that no node of it executes.
    pub(super) fn join(&self, change: &Change<'_>) -> Join {
        if self.waits_for_its_turn(change) {
            return Join::Wait;
        }
        let scene = self.scene(change);
        let mut candidates: Vec<(usize, &GraphNode)> = self.candidates(&scene);
        // Those of one fork form a chain, so the first is the one that no other leads to.
        candidates.sort_by(|(_, left), (_, right)| left.id.cmp(&right.id));
        let is_first = |(at, _): &&(usize, &GraphNode)| {
            !candidates.iter().any(|(other, _)| other != at && self.graph.leads(*other, *at))
        };
        match candidates.iter().find(is_first) {
            Some((at, merge)) => self.judge(*at, merge, &scene),
            None if scene.groups.iter().any(|group| group.live > 0) => Join::Wait,
            None => self.complete(change),
        }
    }

    /// Whether a re-run still has to be told something that the recorded task knew when it went on. When no child is left that
    /// could tell it, it goes on by itself.
    fn waits_for_its_turn(&self, change: &Change<'_>) -> bool {
        let Some(record) = self.follows else { return false };
        let of_child = change.arrival.filter(|arrival| !arrival.place.is_empty());
        let told = u32::from(of_child.is_some() || change.ended.is_some());
        let ends = u32::from(of_child.is_some_and(|arrival| arrival.place.len() == 1) || change.ended.is_some());
        !record.is_complete(self.place, told) && self.place.live() > ends
    }

    /// The children that may still come. It looks at the forks that are not spent, and at the edges of one only where they
    /// differ: so it costs the same however large the graph is.
    fn scene<'a>(&'a self, change: &'a Change<'a>) -> JoinContext<'a> {
        let gone = match (change.ended, change.arrival) {
            (Some((node, index, end)), _) => Some((node, index, failures(end))),
            (None, Some(arrival)) if arrival.place.len() == 1 => {
                self.place.maker_of(arrival).map(|(node, _, index)| (node, index, 0))
            }
            (None, _) => None,
        };
        let mut groups = Vec::new();
        for (node, fork) in &self.place.forks {
            let gone = gone.filter(|(of, index, _)| *of == node && !fork.ended.contains_key(index));
            let gone = gone.and_then(|(_, index, failed)| Some((fork.edge(index)?, failed)));
            let count = |edge: Option<usize>, live: u32, failed: u32| {
                let to = fork.to.get(edge.unwrap_or_default())?;
                let (ends, fails) =
                    gone.filter(|(at, _)| edge.is_none_or(|edge| edge == *at)).map_or((0, 0), |gone| (1, gone.1));
                let (live, failed) = (live.saturating_sub(ends), failed + fails);
                let is_expected = live > 0 || failed > 0;
                let start = self.graph.position(to).filter(|_| is_expected)?;
                Some(Group { node, fork, edge, start, live, failed })
            };
            if self.graph.position(node).is_some_and(|position| self.graph.are_alike(position)) {
                groups.extend(count(None, fork.in_all.live, fork.in_all.failed));
            } else {
                let counts = fork.live.iter().zip(&fork.failed).enumerate();
                groups.extend(counts.filter_map(|(edge, (live, failed))| count(Some(edge), *live, *failed)));
            }
        }
        let depth = self.depth();
        let first = groups.iter().map(|group| self.not_begun(self.graph.first_merges(group.start, depth))).collect();
        JoinContext { change, groups, first }
    }

    /// These merges, and in the place of each that has begun those after it.
    fn not_begun(&self, merges: &[usize]) -> Vec<usize> {
        let (mut found, mut open) = (Vec::new(), merges.to_vec());
        while let Some(merge) = open.pop() {
            match self.graph.at(merge) {
                Some(node) if self.place.begun.contains(&node.id) => open.extend(self.graph.merges_after(merge)),
                Some(_) if !found.contains(&merge) => found.push(merge),
                Some(_) | None => {}
            }
        }
        found
    }

    /// The merges of this task to which something has come, may come, or could have come and failed. One that only another
    /// one of these leads to may be missing.
    fn candidates(&self, scene: &JoinContext<'_>) -> Vec<(usize, &GraphNode)> {
        let came = self.place.arrivals.keys().chain(scene.change.arrival.map(|arrival| &arrival.merge));
        let mut all: Vec<usize> = came.filter_map(|merge| self.graph.position(merge)).collect();
        if let Some(split) = self.empty_split() {
            all.extend(self.not_begun(self.graph.first_merges(split, self.depth())));
        }
        let expected = scene.groups.iter().zip(&scene.first).flat_map(|(group, first)| {
            first.iter().copied().filter(|merge| group.live > 0 || self.is_first_of(first, *merge))
        });
        all.extend(expected);
        all.sort_unstable();
        all.dedup();
        let nodes = all.into_iter().filter_map(|at| Some((at, self.graph.at(at)?)));
        nodes.filter(|(_, node)| !self.place.begun.contains(&node.id)).collect()
    }

    /// The split that the task waits for, if it had nothing to split.
    fn empty_split(&self) -> Option<usize> {
        let node = self.place.last_fork.as_ref()?;
        let fork = self.place.forks.get(node).filter(|fork| fork.total == 0);
        fork.and_then(|_| self.graph.position(node))
    }

    /// Whether this merge is the first of the task that children can have come to, of those that they can come to first.
    fn is_first_of(&self, first: &[usize], merge: usize) -> bool {
        first.contains(&merge) && !first.iter().any(|other| *other != merge && self.graph.leads(*other, merge))
    }

    /// How many children may still come to this merge, or send something there.
    fn possible(&self, merge: usize, scene: &JoinContext<'_>) -> u32 {
        let groups = scene.groups.iter().filter(|group| self.graph.leads(group.start, merge));
        groups.map(|group| group.live).sum()
    }

    /// How many children may still go past this task, to a merge of one above, and not to this merge of its own. A task that
    /// left them behind would end before they are there, and their outputs would count or not by chance.
    fn going_up(&self, merge: usize, scene: &JoinContext<'_>) -> u32 {
        let depth = self.depth();
        let past =
            |group: &&Group<'_>| !self.graph.leads(group.start, merge) && self.graph.goes_above(group.start, depth);
        scene.groups.iter().filter(past).map(|group| group.live).sum()
    }

    /// Whether a child may still come to this merge as several: it may fork on its way, into an unknown number.
    fn may_multiply(&self, merge: usize, scene: &JoinContext<'_>) -> bool {
        let deeper = self.graph.deeper_before(merge);
        let mut live = scene.groups.iter().filter(|group| group.live > 0);
        live.any(|group| deeper.iter().any(|from| self.graph.leads(group.start, *from)))
    }

    /// The groups whose children can have come to no merge of the task before this one.
    fn first_come_to<'a>(&'a self, merge: usize, scene: &'a JoinContext<'a>) -> impl Iterator<Item = &'a Group<'a>> {
        let groups = scene.groups.iter().zip(&scene.first);
        groups.filter(move |(_, first)| self.is_first_of(first, merge)).map(|(group, _)| group)
    }

    /// How many children failed before this merge, which is the first that they could have come to.
    fn failures(&self, merge: usize, scene: &JoinContext<'_>) -> u32 {
        self.first_come_to(merge, scene).map(|group| group.failed).sum()
    }

    /// The same by their names, with how they ended.
    fn failed<'a>(&'a self, merge: usize, scene: &'a JoinContext<'a>) -> Vec<(ChildName, &'a ChildEnd)> {
        let mut failed = Vec::new();
        for Group { node, fork, edge, .. } in self.first_come_to(merge, scene) {
            let now = scene.change.ended.filter(|(ended, ..)| ended == node).map(|(_, index, end)| (index, end));
            let ended = fork.ended.iter().map(|(index, end)| (*index, &**end)).chain(now);
            let of_group =
                ended.filter(|(index, end)| is_failure(end) && edge.is_none_or(|edge| fork.edge(*index) == Some(edge)));
            failed.extend(of_group.filter_map(|(index, end)| Some((fork.name(node, index)?, end))));
        }
        failed
    }

    fn judge(&self, at: usize, merge: &GraphNode, scene: &JoinContext<'_>) -> Join {
        let change = scene.change;
        let possible = self.possible(at, scene);
        let takes_all = matches!(merge.join.strategy, Strategy::All | Strategy::BestOf);
        if takes_all && (possible > 0 || self.going_up(at, scene) > 0) {
            return Join::Wait;
        }
        let now = change.arrival.filter(|arrival| arrival.merge == merge.id);
        let set = self.place.arrivals.get(&merge.id);
        let arrived = set.map_or(0, |set| set.len() as u32) + u32::from(now.is_some());
        let good = self.place.good.get(&merge.id).copied().unwrap_or_default()
            + u32::from(now.is_some_and(|arrival| arrival.status == Status::Success));
        // More than half of how many is not known while one that may come may come as several.
        if merge.join.strategy == Strategy::Quorum(0) && self.may_multiply(at, scene) {
            return Join::Wait;
        }
        let wanted = match merge.join.strategy {
            Strategy::All | Strategy::BestOf => 0,
            Strategy::FirstSuccess => 1,
            Strategy::Quorum(0) => (arrived + possible + self.failures(at, scene)) / 2 + 1,
            Strategy::Quorum(wanted) => wanted,
        };
        let on_failure = merge.join.on_failure;
        let tolerates = on_failure != OnFailure::Fail || self.failures(at, scene) == 0;
        if good < wanted && tolerates && (possible > 0 || self.going_up(at, scene) > 0) {
            return Join::Wait;
        }
        let lost = self.failed(at, scene);
        let failed: Vec<ChildName> = lost.iter().map(|(child, _)| child.clone()).collect();
        let some_failed = || Some(format!("{} of those that it joins failed", failed.len()));
        let why = match merge.join.strategy {
            Strategy::All | Strategy::BestOf => match failed.first() {
                Some(_) if on_failure == OnFailure::Fail => some_failed(),
                // There is no best of none, whichever failures are shown beside it.
                _ if arrived == 0
                    && !self.is_of_empty_split(at)
                    && (on_failure != OnFailure::Include || merge.join.strategy == Strategy::BestOf) =>
                {
                    Some("all of those that it joins failed".to_owned())
                }
                _ => None,
            },
            Strategy::FirstSuccess | Strategy::Quorum(_) if !tolerates => some_failed(),
            Strategy::FirstSuccess if good == 0 => Some("none of those that it joins succeeded".to_owned()),
            Strategy::Quorum(_) if good < wanted => Some(format!("{good} succeeded, and {wanted} are needed")),
            Strategy::FirstSuccess | Strategy::Quorum(_) => None,
        };
        let cancelled = self.unwanted(at, scene);
        if let Some(why) = why {
            let why = self.with_failed(Error::new(Code::Unprocessable, why), &lost);
            return Join::Fail { merge: merge.id.clone(), why, failed, cancelled };
        }
        let now = now.map(|arrival| (key_of(arrival), arrival.status, arrival.child.as_str()));
        let mut came: Vec<(&str, Status, &str)> =
            now.iter().map(|(key, status, child)| (key.as_str(), *status, *child)).collect();
        came.extend(
            set.into_iter().flatten().map(|(key, arrived)| (key.as_str(), arrived.status, arrived.child.as_str())),
        );
        came.sort_unstable_by_key(|(key, ..)| *key);
        let good = came.iter().filter(|(_, status, _)| *status == Status::Success);
        let most = match merge.join.strategy {
            Strategy::All | Strategy::BestOf => 0,
            Strategy::FirstSuccess => 1,
            Strategy::Quorum(_) => usize::MAX,
        };
        let taken = good.take(most).map(|(.., child)| (*child).to_owned()).collect();
        let with_failed = on_failure == OnFailure::Include;
        // A quorum wants as many as there are; the first that succeeds is all that its merge ever wanted.
        let some_partial = came.iter().any(|(_, status, _)| *status == Status::Partial);
        let partial = matches!(merge.join.strategy, Strategy::Quorum(_)) && (some_partial || !failed.is_empty());
        Join::Begin { merge: merge.id.clone(), taken, failed, with_failed, cancelled, partial }
    }

    /// The error with the children that failed: of the first ones the name, the reason and the task to look at; of the others the count.
    fn with_failed(&self, error: Error, failed: &[(ChildName, &ChildEnd)]) -> Error {
        const TOLD: usize = 10;
        const MESSAGE: usize = 500;
        let Some((first, end)) = failed.first() else { return error };
        let why = |end: &ChildEnd| {
            let message = end.error.as_ref().map_or("some of its own children failed", |error| error.message.as_str());
            message.chars().take(MESSAGE).collect::<String>()
        };
        let told = failed.iter().take(TOLD).map(|(child, end)| {
            let code = end.error.as_ref().map_or(Code::Unprocessable, |error| error.code);
            json!({ "child": child, "task_id": self.config.task.child(child), "code": code, "message": why(end) })
        });
        let which = if failed.len() > 1 { ", the first is " } else { ": " };
        let message = format!("{}{which}{first}: {}", error.message, why(end));
        let look = format!("`buildscale task show {}` shows why", self.config.task.child(first));
        let mut error = Error { message, ..error }.hint(look).detail("failed", told.collect::<Value>());
        if let Some(more) = failed.len().checked_sub(TOLD).filter(|more| *more > 0) {
            error = error.detail("more", more);
        }
        error
    }

    /// Whether the task waits for a split that had nothing to split, and this merge would have taken its subtasks.
    fn is_of_empty_split(&self, merge: usize) -> bool {
        self.empty_split().is_some_and(|split| self.graph.leads(split, merge))
    }

    /// Children that could still come to a merge that waits no more.
    fn unwanted(&self, merge: usize, scene: &JoinContext<'_>) -> Vec<ChildName> {
        let ends = |node: &NodeId, index: u32| {
            let of_arrival = |arrival: &Arrival| {
                arrival.place == [index] && self.place.maker_of(arrival).is_some_and(|(maker, ..)| maker == node)
            };
            scene.change.ended.is_some_and(|(ended, at, _)| ended == node && at == index)
                || scene.change.arrival.is_some_and(of_arrival)
        };
        let mut names = Vec::new();
        for Group { node, fork, edge, start, live, .. } in &scene.groups {
            if *live == 0 || !self.graph.leads(*start, merge) {
                continue;
            }
            let of_group = |index: &u32| edge.is_none_or(|edge| fork.edge(*index) == Some(edge));
            let sent = (0..fork.spawned).filter(of_group);
            let coming = sent.filter(|index| !fork.ended.contains_key(index) && !ends(node, *index));
            names.extend(coming.filter_map(|index| fork.name(node, index)));
        }
        names
    }

    /// Whether the children of this fork meet again, in this task or in one above.
    pub(super) fn is_joined(&self, node: &NodeId) -> bool {
        let fork = self.graph.position(node).and_then(|at| Some((at, self.graph.at(at)?)));
        fork.is_some_and(|(at, fork)| self.graph.goes_above(at, fork.forks.len() + 1))
    }

    /// No merge is left, and no child: the task is as its children are (spec 002 §2.1).
    fn complete(&self, change: &Change<'_>) -> Join {
        let Some((node, fork)) = self.place.last_fork.as_ref().and_then(|node| self.place.forks.get_key_value(node))
        else {
            return Join::Wait;
        };
        let now = change.ended.filter(|(ended, ..)| *ended == node).map(|(_, index, end)| (index, end));
        let ends: BTreeMap<u32, &ChildEnd> =
            fork.ended.iter().map(|(index, end)| (*index, &**end)).chain(now).collect();
        let failed = ends.values().filter(|end| is_failure(end)).count();
        if ends.values().any(|end| end.merged) {
            let lost = ends.values().map(|end| failures(end)).sum();
            return Join::Up(if failed > 0 { Status::Partial } else { self.place.status() }, lost);
        }
        let with = |status: Status| ends.values().find(|end| end.status == status);
        let lost: Vec<(ChildName, &ChildEnd)> = ends
            .iter()
            .filter(|(_, end)| is_failure(end))
            .filter_map(|(index, end)| Some((fork.name(node, *index)?, *end)))
            .collect();
        let error = ends.values().find_map(|end| end.error.clone()).map(|error| match lost.as_slice() {
            [] => error,
            // One speaks for itself.
            [(_, end)] => {
                let (message, hint) = (error.message.clone(), error.hint.clone());
                let error = self.with_failed(end.error.clone().unwrap_or(error), &lost);
                Error { message, hint: hint.or(error.hint), ..error }
            }
            many => {
                let said = format!("{} of {} children failed", many.len(), ends.len());
                self.with_failed(Error::new(error.code, said), many)
            }
        });
        // The error of a stop says that the task itself was stopped: it is that of the child.
        let error = error.map(|error| match is_stop(&error) {
            true => Error { message: format!("a child was {}", error.message), ..error },
            false => error,
        });
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
