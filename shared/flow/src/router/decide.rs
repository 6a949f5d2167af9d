//! The decisions of the router.

use crate::{
    graph::{Graph, GraphNode, OnFailure, Role, Strategy},
    router::place::{Fork, Place, Position, is_failure, parse},
};
use domain::{
    Code, Error, NodeId, Status, TaskEvent, TaskId, Timestamp,
    task::{Arrival, ChildEnd, ChildKind, ChildName, TaskConfig},
};
use serde_json::Value;
use std::sync::Arc;

/// What the router decided.
#[derive(Debug, Default)]
pub struct Route {
    /// What happened, in order.
    pub events: Vec<TaskEvent>,
    /// What other tasks are told.
    pub posts: Vec<Post>,
    /// What the task does next.
    pub next: Next,
}

/// What a task does next.
#[derive(Debug, Default, PartialEq)]
pub enum Next {
    /// Nothing changes: it goes on with what it does, or waits.
    #[default]
    Same,
    /// It executes this node with this input.
    Execute(NodeId, Arc<Value>),
    /// It makes the children of this fork.
    Spawn(NodeId),
    /// It has ended.
    End,
}

/// What another task is told.
#[derive(Debug, PartialEq)]
pub enum Post {
    /// Something comes to a merge of a task above.
    Arrived(TaskId, Arrival),
    /// The parent's child has come to its end.
    Ended(TaskId, ChildName, ChildEnd),
    /// A child is not wanted any more.
    Cancel(ChildName),
}

/// The router of one task.
#[derive(Clone, Copy, Debug)]
pub struct Router<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The task.
    pub config: &'a TaskConfig,
    /// Where it is.
    pub place: &'a Place,
    /// Now.
    pub now: Timestamp,
}

/// How the node of a task ended.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// How.
    pub status: Status,
    /// What it gave.
    pub output: &'a Value,
    /// Why it failed.
    pub error: Option<&'a Error>,
    /// For a split over a list: how many elements it has.
    pub elements: Option<u32>,
}

/// The edge that the output of a decision selects: `{"selected_edge": label or target}`, or the text alone.
pub fn selected<'a>(node: &'a GraphNode, output: &Value) -> Option<&'a NodeId> {
    let name = output.get("selected_edge").unwrap_or(output).as_str()?;
    let by_label = node.out.iter().find(|edge| edge.label.as_deref() == Some(name));
    by_label.or_else(|| node.out.iter().find(|edge| edge.to.as_str() == name)).map(|edge| &edge.to)
}

/// A change that comes with what just happened and is not in the place yet.
#[derive(Default)]
struct Change<'a> {
    arrival: Option<&'a Arrival>,
    ended: Option<(&'a NodeId, u32, &'a ChildEnd)>,
    /// A fork that was made just now.
    forked: Option<(&'a NodeId, u32)>,
}

/// What is known of those that may come to a merge.
struct Expected {
    possible: u32,
    arrived: u32,
    successes: Vec<String>,
    failed: Vec<ChildName>,
}

impl Router<'_> {
    /// The task begins at the node that it was made for.
    pub fn begin(&self) -> Route {
        let mut route = Route::default();
        let input = Arc::new(self.config.input.clone());
        let from = self.config.origin.as_ref().map(|origin| origin.node.clone());
        self.enter(&mut route, from.as_ref(), &self.config.start, input, Status::Success);
        route
    }

    /// The node that executed has ended (its `NodeFinished` is the caller's to add before).
    pub fn finished(&self, node: &NodeId, outcome: &Outcome<'_>) -> Route {
        let mut route = Route::default();
        let Some(node) = self.graph.node(node) else {
            self.end(&mut route, Status::Failure, Value::Null, None, Some(unknown(node)));
            return route;
        };
        let failed = outcome.status == Status::Failure;
        if failed && !node.continue_on_failure {
            self.end(&mut route, Status::Failure, outcome.output.clone(), None, outcome.error.cloned());
            return route;
        }
        let (output, status) = match outcome.status {
            Status::Success => (Arc::new(outcome.output.clone()), self.place.status()),
            Status::Partial => (Arc::new(outcome.output.clone()), Status::Partial),
            Status::Failure => (self.place.current.clone(), Status::Partial),
        };
        match node.role {
            Role::Start | Role::Linear | Role::Merge => match node.out.first() {
                Some(edge) => self.enter(&mut route, Some(&node.id), &edge.to, output, status),
                None => self.end(&mut route, Status::Failure, Value::Null, None, Some(unknown(&node.id))),
            },
            Role::Decision => match selected(node, outcome.output).filter(|_| !failed) {
                Some(to) => self.enter(&mut route, Some(&node.id), to, output, status),
                None => {
                    let error = outcome.error.cloned().or_else(|| Some(no_edge(node)));
                    self.end(&mut route, Status::Failure, outcome.output.clone(), None, error);
                }
            },
            Role::Branch => self.fork(&mut route, node, ChildKind::Clone, node.out.len() as u32),
            Role::Split => {
                let total = outcome.elements.unwrap_or(node.out.len() as u32);
                self.fork(&mut route, node, ChildKind::Subtask, total);
            }
            Role::Exit => {
                let (status, error) = match node.always_fail {
                    true => (Status::Failure, Some(always_fails(&node.id))),
                    false => (status, None),
                };
                self.end(&mut route, status, (*output).clone(), Some(node.id.clone()), error);
            }
        }
        route
    }

    /// Something came to a merge of this task. Twice is harmless, and so is too late.
    pub fn arrived(&self, arrival: Arrival) -> Route {
        let mut route = Route::default();
        // The owner itself has no name; anybody else has to be a child that was made.
        let known = arrival.place.is_empty() || self.first_of(&arrival).is_some();
        let late = self.place.begun.contains(&arrival.merge);
        let twice = self
            .place
            .arrivals
            .get(&arrival.merge)
            .is_some_and(|set| set.values().any(|arrived| arrived.child == arrival.child));
        if self.place.position == Position::Ended || late || twice || !known {
            return route;
        }
        let change = Change { arrival: Some(&arrival), ..Change::default() };
        let then = (self.place.position == Position::Waiting).then(|| self.join(&change));
        route.events.push(TaskEvent::ChildArrived { arrival: Box::new(arrival.clone()) });
        self.follow(&mut route, then);
        route
    }

    /// A child has come to its end.
    pub fn child_ended(&self, child: &ChildName, end: ChildEnd) -> Route {
        let mut route = Route::default();
        let Some((node, index)) = parse(child, &self.place.forks) else { return route };
        let Some(fork) = self.place.forks.get(&node) else { return route };
        if self.place.position == Position::Ended || fork.ended.contains_key(&index) {
            return route;
        }
        let change = Change { ended: Some((&node, index, &end)), ..Change::default() };
        let then = (self.place.position == Position::Waiting).then(|| {
            let wins = fork.kind == ChildKind::Clone
                && end.status == Status::Success
                && !end.merged
                && self.place.last_fork.as_ref() == Some(&node)
                && !self.is_joined(fork, &node);
            if wins { Join::End(Status::Success, end.output.clone(), None) } else { self.join(&change) }
        });
        let event = TaskEvent::ChildFinished { child: child.clone(), end: Box::new(end.clone()) };
        route.events.push(event);
        self.follow_with(&mut route, then, Some((&node, index)));
        route
    }

    /// The task ends where it is.
    pub fn stop(&self, error: Error) -> Route {
        let mut route = Route::default();
        if self.place.position != Position::Ended {
            self.end(&mut route, Status::Failure, Value::Null, None, Some(error));
        }
        route
    }

    /// A child of this task begins its way: the direct one that `arrival` comes from.
    fn first_of(&self, arrival: &Arrival) -> Option<ChildName> {
        let place = *arrival.place.first()?;
        let names = self.place.forks.iter().filter_map(|(node, fork)| fork.name(node, place));
        let mut names = names.filter(|name| {
            let rest = arrival.child.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        names.next()
    }

    fn depth(&self) -> usize {
        self.config.origin.as_ref().map_or(0, |origin| origin.ancestors.len())
    }

    fn enter(&self, route: &mut Route, from: Option<&NodeId>, to: &NodeId, input: Arc<Value>, status: Status) {
        let Some(node) = self.graph.node(to) else {
            return self.end(route, Status::Failure, Value::Null, None, Some(unknown(to)));
        };
        if let Some(from) = from {
            route.events.push(TaskEvent::Routed { from: from.clone(), to: to.clone() });
        }
        if node.role != Role::Merge {
            route.next = Next::Execute(to.clone(), input);
            return;
        }
        let from = from.cloned().unwrap_or_else(|| to.clone());
        let (owner, depth) = (node.forks.len(), self.depth());
        let mut arrival = Arrival {
            merge: to.clone(),
            from,
            child: String::new(),
            place: Vec::new(),
            status,
            output: (*input).clone(),
        };
        if owner >= depth {
            let change = Change { arrival: Some(&arrival), ..Change::default() };
            let then = self.join(&change);
            route.events.push(TaskEvent::ChildArrived { arrival: Box::new(arrival) });
            return self.follow(route, Some(then));
        }
        let Some(origin) = &self.config.origin else { return };
        let Some(above) = origin.ancestors.get(owner).copied() else { return };
        arrival.child = origin.line.iter().skip(owner).map(ChildName::as_str).collect::<Vec<_>>().join("/");
        arrival.place = origin.place.iter().skip(owner).copied().collect();
        route.events.push(TaskEvent::WentUp { merge: to.clone(), owner: above });
        route.posts.push(Post::Arrived(above, arrival));
        let end = ChildEnd { status, output: Value::Null, merged: true, error: None };
        if above != origin.parent {
            route.posts.push(Post::Ended(origin.parent, origin.name(), end));
        }
        self.finish(route, status, (*input).clone(), None, None);
    }

    fn fork(&self, route: &mut Route, node: &GraphNode, kind: ChildKind, total: u32) {
        let to: Vec<NodeId> = node.out.iter().map(|edge| edge.to.clone()).collect();
        route.events.push(TaskEvent::Forked { node: node.id.clone(), kind, to, total });
        if total > 0 {
            route.next = Next::Spawn(node.id.clone());
            return;
        }
        // Nothing to split: the merge that joins it begins with an empty list; without one that is all.
        let change = Change { forked: Some((&node.id, 0)), ..Change::default() };
        let then = self.join(&change);
        self.follow(route, Some(then));
    }

    fn follow(&self, route: &mut Route, then: Option<Join>) {
        self.follow_with(route, then, None);
    }

    fn follow_with(&self, route: &mut Route, then: Option<Join>, ended: Option<(&NodeId, u32)>) {
        match then {
            None | Some(Join::Wait) => {}
            Some(Join::End(status, output, error)) => {
                self.finish_but(route, status, output, None, error, ended);
            }
            Some(Join::Up(status)) => {
                // All of it went on into merges above: the parent has to know that nothing more comes of it.
                if let Some(origin) = &self.config.origin {
                    let end = ChildEnd { status, output: Value::Null, merged: true, error: None };
                    route.posts.push(Post::Ended(origin.parent, origin.name(), end));
                }
                self.finish_but(route, status, Value::Null, None, None, ended);
            }
            Some(Join::Begin { merge, input, taken, failed, with_failed, cancelled }) => {
                route.posts.extend(cancelled.iter().cloned().map(Post::Cancel));
                route.events.push(TaskEvent::Merged { node: merge.clone(), taken, failed, with_failed, cancelled });
                route.next = Next::Execute(merge, Arc::new(input));
            }
            Some(Join::Fail { merge, why, failed, cancelled }) => {
                let node = self.graph.node(&merge);
                route.posts.extend(cancelled.iter().cloned().map(Post::Cancel));
                let error = Error::new(Code::Unprocessable, why).detail("node", merge.as_str());
                match node.filter(|node| node.continue_on_failure).and_then(|node| node.out.first()) {
                    None => self.finish_but(route, Status::Failure, Value::Null, None, Some(error), ended),
                    Some(edge) => {
                        let change_input = self.place.input_of(&merge, None, &[], &[]);
                        let (taken, with_failed) = (Vec::new(), false);
                        route.events.push(TaskEvent::Merged {
                            node: merge.clone(),
                            taken,
                            failed,
                            with_failed,
                            cancelled,
                        });
                        self.enter(route, Some(&merge), &edge.to, Arc::new(change_input), Status::Partial);
                    }
                }
            }
        }
    }

    /// What the task does when none of its nodes executes: begin a merge, end, or wait.
    fn join(&self, change: &Change<'_>) -> Join {
        let mut candidates: Vec<&GraphNode> = self.graph.nodes().iter().filter(|node| self.may_begin(node, change)).collect();
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

    /// Whether something has come to this merge of the task, or may come.
    fn may_begin(&self, node: &GraphNode, change: &Change<'_>) -> bool {
        if node.role != Role::Merge || node.forks.len() != self.depth() || self.place.begun.contains(&node.id) {
            return false;
        }
        let came = self.place.arrivals.contains_key(&node.id)
            || change.arrival.is_some_and(|arrival| arrival.merge == node.id);
        let empty = change.forked.is_some_and(|(fork, _)| self.comes_from(fork, &node.id));
        came || empty || {
            let expected = self.expected(node, change);
            expected.possible > 0 || !expected.failed.is_empty()
        }
    }

    fn comes_from(&self, fork: &NodeId, merge: &NodeId) -> bool {
        self.graph.reaches(fork, merge)
    }

    fn leads(&self, from: &NodeId, merge: &NodeId) -> bool {
        from == merge || self.graph.reaches(from, merge)
    }

    /// The first merge of this task that a child which began at `target` could have come to.
    fn first_merge(&self, target: &NodeId) -> Option<&GraphNode> {
        let mut reached = self.graph.nodes().iter().filter(|node| {
            node.role == Role::Merge
                && node.forks.len() == self.depth()
                && !self.place.begun.contains(&node.id)
                && self.leads(target, &node.id)
        });
        let first = reached.next()?;
        Some(reached.fold(first, |first, other| if self.graph.reaches(&other.id, &first.id) { other } else { first }))
    }

    fn expected(&self, merge: &GraphNode, change: &Change<'_>) -> Expected {
        let mut expected = Expected { possible: 0, arrived: 0, successes: Vec::new(), failed: Vec::new() };
        for (node, fork) in &self.place.forks {
            for (edge, target) in fork.to.iter().enumerate() {
                if !self.leads(target, &merge.id) {
                    continue;
                }
                let live = fork.live.get(edge).copied().unwrap_or_default();
                expected.possible += live.saturating_sub(self.ended_now(node, fork, edge, change));
                let blamed = fork.failed.get(edge).copied().unwrap_or_default() > 0;
                if blamed && self.first_merge(target).is_some_and(|first| first.id == merge.id) {
                    let failed = fork.ended.iter().filter(|(index, end)| {
                        is_failure(end) && (**index as usize).checked_rem(fork.to.len()) == Some(edge)
                    });
                    expected.failed.extend(failed.filter_map(|(index, _)| fork.name(node, *index)));
                }
            }
        }
        if let Some((node, index, end)) = change.ended
            && is_failure(end)
            && let Some(fork) = self.place.forks.get(node)
            && let Some(target) = fork.target(index)
            && self.first_merge(target).is_some_and(|first| first.id == merge.id)
        {
            expected.failed.extend(fork.name(node, index));
        }
        expected
    }

    /// How many children of this edge end with what just happened.
    fn ended_now(&self, node: &NodeId, fork: &Fork, edge: usize, change: &Change<'_>) -> u32 {
        let on_edge = |index: u32| (index as usize).checked_rem(fork.to.len()) == Some(edge);
        let ended = change.ended.is_some_and(|(ended, index, _)| ended == node && on_edge(index));
        let arrived = change.arrival.is_some_and(|arrival| match arrival.place.as_slice() {
            [index] => on_edge(*index) && fork.name(node, *index).is_some_and(|name| name.as_str() == arrival.child),
            _ => false,
        });
        u32::from(ended || arrived)
    }

    fn live(&self, change: &Change<'_>) -> u32 {
        let forks = self.place.forks.iter();
        forks
            .map(|(node, fork)| {
                let ended: u32 = (0..fork.to.len()).map(|edge| self.ended_now(node, fork, edge, change)).sum();
                fork.live_in_all().saturating_sub(ended)
            })
            .sum()
    }

    fn judge(&self, merge: &GraphNode, change: &Change<'_>) -> Join {
        let mut expected = self.expected(merge, change);
        let early = !matches!(merge.join.strategy, Strategy::All | Strategy::BestOf);
        if expected.possible > 0 && !early {
            return Join::Wait;
        }
        for arrived in self.place.arrivals.get(&merge.id).into_iter().flat_map(|set| set.values()) {
            expected.arrived += 1;
            if arrived.status == Status::Success {
                expected.successes.push(arrived.child.clone());
            }
        }
        if let Some(arrival) = change.arrival.filter(|arrival| arrival.merge == merge.id) {
            expected.arrived += 1;
            if arrival.status == Status::Success {
                expected.successes.push(arrival.child.clone());
            }
        }
        let Expected { possible, arrived, successes, failed } = expected;
        let fails = |why: String, failed: Vec<ChildName>| Join::Fail {
            merge: merge.id.clone(),
            why,
            failed,
            cancelled: self.unwanted(merge, change),
        };
        let is_empty_split = change.forked.is_some();
        match merge.join.strategy {
            Strategy::All | Strategy::BestOf => {
                let on_failure = merge.join.on_failure;
                if on_failure == OnFailure::Fail && !failed.is_empty() {
                    let why = format!("{} of those that it joins failed, the first is {}", failed.len(), failed[0]);
                    return fails(why, failed);
                }
                if arrived == 0 && !is_empty_split && on_failure != OnFailure::Include {
                    return fails("all of those that it joins failed".into(), failed);
                }
                self.begin_merge(merge, Vec::new(), failed, on_failure == OnFailure::Include, change)
            }
            Strategy::FirstSuccess => match successes.into_iter().next() {
                Some(first) => self.begin_merge(merge, vec![first], Vec::new(), false, change),
                None if possible > 0 => Join::Wait,
                None => fails("none of those that it joins succeeded".into(), failed),
            },
            Strategy::Quorum(wanted) => {
                let all = arrived + possible + failed.len() as u32;
                let wanted = if wanted == 0 { all / 2 + 1 } else { wanted };
                let have = successes.len() as u32;
                if have >= wanted {
                    self.begin_merge(merge, successes, Vec::new(), false, change)
                } else if have + possible < wanted {
                    fails(format!("{have} succeeded, and {wanted} are needed"), failed)
                } else {
                    Join::Wait
                }
            }
        }
    }

    fn begin_merge(
        &self,
        merge: &GraphNode,
        taken: Vec<String>,
        failed: Vec<ChildName>,
        with_failed: bool,
        change: &Change<'_>,
    ) -> Join {
        let extra = change.arrival.filter(|arrival| arrival.merge == merge.id);
        let shown = if with_failed { failed.as_slice() } else { &[] };
        let mut input = self.place.input_of(&merge.id, extra, &taken, shown);
        // The state does not have the end that just came.
        if let (Some((node, index, end)), true) = (change.ended, with_failed)
            && let Some(name) = self.place.forks.get(node).and_then(|fork| fork.name(node, index))
            && let Some(error) = &end.error
        {
            let entries = input.as_array_mut().into_iter().flatten();
            for entry in entries.filter(|entry| entry["child"] == name.as_str()) {
                entry["error"] = serde_json::json!({ "code": error.code, "message": error.message });
            }
        }
        let cancelled = self.unwanted(merge, change);
        Join::Begin { merge: merge.id.clone(), input, taken, failed, with_failed, cancelled }
    }

    /// Children that could still come to a merge that waits no more.
    fn unwanted(&self, merge: &GraphNode, change: &Change<'_>) -> Vec<ChildName> {
        let mut names = Vec::new();
        for (node, fork) in &self.place.forks {
            let gone = |index: u32| {
                change.ended.is_some_and(|(ended, at, _)| ended == node && at == index)
                    || change.arrival.is_some_and(|arrival| {
                        arrival.place.len() == 1
                            && fork.name(node, index).is_some_and(|name| name.as_str() == arrival.child)
                    })
            };
            let live = (0..fork.total).filter(|index| !fork.ended.contains_key(index) && !gone(*index));
            let coming = live.filter(|index| fork.target(*index).is_some_and(|target| self.leads(target, &merge.id)));
            names.extend(coming.filter_map(|index| fork.name(node, index)));
        }
        names
    }

    /// Whether what this fork makes comes together again, in this task or in one above.
    fn is_joined(&self, fork: &Fork, node: &NodeId) -> bool {
        let depth = self.graph.node(node).map_or(0, |node| node.forks.len());
        let merges = self.graph.nodes().iter().filter(|node| node.role == Role::Merge && node.forks.len() <= depth);
        merges.into_iter().any(|merge| fork.to.iter().any(|to| self.leads(to, &merge.id)))
    }

    /// No merge is left, and no child: the task is as its children are (seed 002 §2.1).
    fn complete(&self, change: &Change<'_>) -> Join {
        if let Some((_, 0)) = change.forked {
            return Join::End(self.place.status(), Value::Array(Vec::new()), None);
        }
        let Some((node, fork)) = self.place.last_fork.as_ref().and_then(|node| self.place.forks.get_key_value(node)) else {
            return Join::Wait;
        };
        let extra = change.ended.filter(|(ended, ..)| *ended == node).map(|(_, index, end)| (index, end));
        let mut ends: Vec<(u32, &ChildEnd)> = fork.ended.iter().map(|(index, end)| (*index, end)).chain(extra).collect();
        ends.sort_by_key(|(index, _)| *index);
        let failed = ends.iter().filter(|(_, end)| is_failure(end)).count();
        let by_itself: Vec<_> = ends.iter().filter(|(_, end)| !end.merged).collect();
        let tolerant = self.graph.node(node).is_some_and(|node| node.continue_on_failure);
        let error = ends.iter().find_map(|(_, end)| end.error.clone());
        if ends.iter().any(|(_, end)| end.merged) {
            let partial = failed > 0 || self.place.status() != Status::Success;
            return Join::Up(if partial { Status::Partial } else { Status::Success });
        }
        let partial_ends = by_itself.iter().any(|(_, end)| end.status == Status::Partial);
        match fork.kind {
            ChildKind::Clone => {
                // None succeeded, or the task would have ended with it.
                match by_itself.iter().find(|(_, end)| end.status != Status::Failure) {
                    Some((_, end)) => {
                        let status = if end.status == Status::Success { self.place.status() } else { Status::Partial };
                        Join::End(status, end.output.clone(), None)
                    }
                    None => Join::End(Status::Failure, Value::Null, error),
                }
            }
            ChildKind::Subtask => {
                let output: Value = by_itself.iter().map(|(_, end)| end.output.clone()).collect();
                if failed == 0 {
                    let partial = partial_ends || self.place.status() != Status::Success;
                    Join::End(if partial { Status::Partial } else { Status::Success }, output, None)
                } else if tolerant && failed < ends.len() {
                    Join::End(Status::Partial, output, error)
                } else {
                    Join::End(Status::Failure, output, error)
                }
            }
        }
    }

    /// Ends the task by itself, and tells its parent.
    fn end(&self, route: &mut Route, status: Status, output: Value, exit: Option<NodeId>, error: Option<Error>) {
        self.finish_but(route, status, output, exit, error, None);
    }

    fn finish_but(
        &self,
        route: &mut Route,
        status: Status,
        output: Value,
        exit: Option<NodeId>,
        error: Option<Error>,
        ended: Option<(&NodeId, u32)>,
    ) {
        let told = route.posts.iter().any(|post| matches!(post, Post::Ended(..) | Post::Arrived(..)));
        if let (Some(origin), false) = (&self.config.origin, told) {
            let end = ChildEnd { status, output: output.clone(), merged: false, error: error.clone() };
            route.posts.push(Post::Ended(origin.parent, origin.name(), end));
        }
        self.finish(route, status, output, exit, error);
        if let Some((node, index)) = ended
            && let Some(name) = self.place.forks.get(node).and_then(|fork| fork.name(node, index))
        {
            route.posts.retain(|post| *post != Post::Cancel(name.clone()));
        }
    }

    fn finish(&self, route: &mut Route, status: Status, output: Value, exit: Option<NodeId>, error: Option<Error>) {
        for (node, fork) in &self.place.forks {
            route.posts.extend(fork.live_names(node).map(Post::Cancel));
        }
        route.events.push(TaskEvent::Finished { status, output, exit, error, at: self.now });
        route.next = Next::End;
    }
}

/// What becomes of a task that waits.
enum Join {
    Wait,
    Begin {
        merge: NodeId,
        input: Value,
        taken: Vec<String>,
        failed: Vec<ChildName>,
        with_failed: bool,
        cancelled: Vec<ChildName>,
    },
    Fail { merge: NodeId, why: String, failed: Vec<ChildName>, cancelled: Vec<ChildName> },
    Up(Status),
    End(Status, Value, Option<Error>),
}

fn unknown(node: &NodeId) -> Error {
    Error::new(Code::Internal, format!("the flow has no way on at {node}"))
}

fn no_edge(node: &GraphNode) -> Error {
    let names: Vec<&str> =
        node.out.iter().map(|edge| edge.label.as_deref().unwrap_or_else(|| edge.to.as_str())).collect();
    Error::new(Code::Unprocessable, format!("{} selected no edge", node.id))
        .hint(format!("answer {{\"selected_edge\": name}} with one of: {}", names.join(", ")))
}

fn always_fails(node: &NodeId) -> Error {
    Error::new(Code::Unprocessable, format!("the exit {node} always fails"))
}
