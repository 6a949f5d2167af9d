//! The decisions of the router.

use crate::graph::{GraphNode, Role};
use crate::router::{
    MAX_OUTPUT, Router,
    exit::always_fails,
    join::{Change, Join},
    route_state::{Position, RouteState, caught, key_of, parse},
};
use domain::{
    Code, Error, NodeId, Status, TaskEvent, TaskId, json_length,
    task::{Arrival, ChildEnd, ChildKind, ChildName, NodeMetrics},
};
use serde_json::Value;
use std::sync::Arc;

/// The decision of the router.
#[derive(Debug, Default)]
pub struct Route {
    /// The events, in order.
    pub events: Vec<TaskEvent>,
    /// Messages to other tasks.
    pub posts: Vec<TaskMessage>,
    /// The next act of the task.
    pub next: Next,
    /// How many of the events the place has that the next of them are decided by.
    seen: usize,
}

/// The next act of a task.
#[derive(Debug, Default, PartialEq)]
pub enum Next {
    /// Nothing changes: it goes on, or waits.
    #[default]
    Same,
    /// It executes this node with this input.
    Execute(NodeId, Arc<Value>),
    /// It makes the children of this fork.
    Spawn(NodeId),
    /// It has ended.
    End,
}

/// A message to another task.
#[derive(Debug, PartialEq)]
pub enum TaskMessage {
    /// Something comes to a merge of a task above.
    Arrived(TaskId, Arrival),
    /// The parent's child has come to its end.
    Ended(TaskId, ChildName, ChildEnd),
    /// A child is not needed, and is stopped.
    Cancel(ChildName),
}

/// How the node of a task ended.
#[derive(Debug)]
pub struct NodeOutcome<'a> {
    /// The status.
    pub status: Status,
    /// Its output.
    pub output: &'a Value,
    /// Why it failed.
    pub error: Option<&'a Error>,
    /// For a split over a list: how many elements it has.
    pub elements: Option<u32>,
    /// For a failure that an edge takes: the target of the edge.
    pub caught: Option<&'a NodeId>,
}

/// The target of the edge that the output of a decision [selects](GraphNode::selected_edge).
pub fn selected<'a>(node: &'a GraphNode, output: &Value) -> Option<&'a NodeId> {
    node.selected_edge(output).map(|edge| &edge.to)
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
    pub fn finished(&self, node: &NodeId, outcome: &NodeOutcome<'_>) -> Route {
        let mut route = Route::default();
        let Some(node) = self.graph.node(node) else {
            self.end(&mut route, Status::Failure, Value::Null, None, Some(unknown(node)));
            return route;
        };
        let failed = outcome.status == Status::Failure;
        if let (true, Some(to), Some(error)) = (failed, outcome.caught, outcome.error) {
            let (status, input) = (self.place.status(), caught(error, &self.place.current));
            route.events.push(TaskEvent::Caught { node: node.id.clone(), error: error.clone(), status });
            self.enter(&mut route, Some(&node.id), to, Arc::new(input), status);
            return route;
        }
        if failed && !node.continue_on_failure {
            self.end(&mut route, Status::Failure, outcome.output.clone(), None, outcome.error.cloned());
            return route;
        }
        let output = if failed { self.place.current.clone() } else { Arc::new(outcome.output.clone()) };
        if outcome.status != Status::Success && self.place.status() == Status::Success {
            // The rest is decided by the status that the end of this node makes.
            let place = RouteState { status: Some(Status::Partial), ..self.place.clone() };
            return Router { place: &place, ..*self }.leave(node, outcome, output);
        }
        self.leave(node, outcome, output)
    }

    /// Goes on from a node that did not fail, or whose failure is gone past.
    fn leave(&self, node: &GraphNode, outcome: &NodeOutcome<'_>, output: Arc<Value>) -> Route {
        let mut route = Route::default();
        let (failed, status) = (outcome.status == Status::Failure, self.place.status());
        match node.role {
            Role::Start | Role::Linear | Role::Merge => match node.out.iter().find(|edge| !edge.takes_errors) {
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
            // Each child would be sent all of the input, and no message takes that.
            Role::Branch | Role::Split if failed && json_length(&*output) > MAX_OUTPUT => {
                let error = outcome.error.cloned().map(|error| error.detail("input_bytes", json_length(&*output)));
                self.end(&mut route, Status::Failure, outcome.output.clone(), None, error);
            }
            Role::Branch => self.fork(&mut route, node, ChildKind::Clone, node.out.len() as u32),
            Role::Split => {
                let total = outcome.elements.unwrap_or(node.out.len() as u32);
                self.fork(&mut route, node, ChildKind::Subtask, total);
            }
            Role::Exit => {
                let (status, error) = match (node.always_fail, status) {
                    (true, _) => {
                        let error = always_fails(self.graph, node, self.place.from.as_ref(), &output);
                        (Status::Failure, Some(error))
                    }
                    (false, Status::Partial) if node.fails_partial => (Status::Failure, Some(fails_partial(&node.id))),
                    (false, _) => (status, None),
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
        let maker = self.place.maker_of(&arrival);
        let known = arrival.place.is_empty() || maker.is_some() || self.place.is_of_spent(&arrival);
        // A merge after this one begins only when nothing is waited for here: a child that comes all the same was stopped.
        let is_live = maker.is_some_and(|(_, fork, index)| !fork.ended.contains_key(&index));
        let is_passed = || self.place.begun.iter().any(|later| self.graph.reaches(&arrival.merge, later));
        let late = self.place.begun.contains(&arrival.merge) || (!is_live && is_passed());
        let twice = self.place.arrivals.get(&arrival.merge).is_some_and(|set| set.contains_key(&key_of(&arrival)));
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
                && !self.is_joined(&node);
            if wins { Join::End(self.place.status(), end.output.clone(), None) } else { self.join(&change) }
        });
        route.events.push(TaskEvent::ChildFinished { child: child.clone(), end: Box::new(end.clone()) });
        self.follow(&mut route, then);
        route
    }

    /// The next act of a task that may go on once a turn of the recorded task is complete.
    pub fn go_on(&self) -> Route {
        let mut route = Route::default();
        if self.place.position == Position::Waiting {
            self.follow(&mut route, Some(self.join(&Change::default())));
        }
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

    pub(super) fn depth(&self) -> usize {
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
        if let Some(error) = self.too_long(&input) {
            return self.end(route, Status::Failure, Value::Null, None, Some(error));
        }
        arrival.child = origin.line.iter().skip(owner).map(ChildName::as_str).collect::<Vec<_>>().join("/");
        arrival.place = origin.place.iter().skip(owner).copied().collect();
        route.events.push(TaskEvent::WentUp { merge: to.clone(), owner: above });
        route.posts.push(TaskMessage::Arrived(above, arrival));
        if above != origin.parent {
            // Its arrival tells its status.
            self.tell_parent(
                route,
                ChildEnd { status: Status::Success, output: Value::Null, merged: true, lost: 0, error: None },
            );
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
        let place = self.after(route);
        let router = Router { place: &place, ..*self };
        router.follow(route, Some(router.join(&Change::default())));
    }

    /// The place with what this very route has decided since.
    fn after(&self, route: &mut Route) -> RouteState {
        let mut place = self.place.clone();
        route.events.iter().skip(route.seen).for_each(|event| place.apply(event));
        route.seen = route.events.len();
        place
    }

    fn follow(&self, route: &mut Route, then: Option<Join>) {
        match then {
            None | Some(Join::Wait) => {}
            Some(Join::End(status, output, error)) => self.end(route, status, output, None, error),
            Some(Join::Up(status, lost)) => {
                // All of it went on into merges above: the parent has to know that nothing more comes of it.
                self.tell_parent(route, ChildEnd { status, output: Value::Null, merged: true, lost, error: None });
                self.finish(route, status, Value::Null, None, None);
            }
            Some(Join::Begin { merge, taken, failed, with_failed, cancelled, partial }) => {
                route.posts.extend(cancelled.iter().cloned().map(TaskMessage::Cancel));
                let ways = self.ways_of(&merge, if with_failed { &failed } else { &[] });
                let node = merge.clone();
                route.events.push(TaskEvent::Merged { node, taken, failed, with_failed, ways, cancelled });
                if partial {
                    route.events.push(TaskEvent::StatusSet { status: Status::Partial });
                }
                route.next = Next::Execute(merge, self.after(route).current);
            }
            Some(Join::Fail { merge, why, failed, cancelled }) => {
                let error = why.detail("node", merge.as_str());
                self.fail_merge(route, &merge, &error, failed, cancelled);
                let goes_on = self.graph.node(&merge).filter(|node| node.continue_on_failure);
                match goes_on.and_then(|node| node.out.first()) {
                    None => self.end(route, Status::Failure, Value::Null, None, Some(error)),
                    Some(edge) => {
                        let place = self.after(route);
                        let router = Router { place: &place, ..*self };
                        router.enter(route, Some(&merge), &edge.to, place.current.clone(), place.status());
                    }
                }
            }
        }
    }

    /// A merge that fails before its node begins is a stage all the same: its arrivals, the failed children, and the reason.
    fn fail_merge(
        &self,
        route: &mut Route,
        merge: &NodeId,
        error: &Error,
        failed: Vec<ChildName>,
        cancelled: Vec<ChildName>,
    ) {
        route.posts.extend(cancelled.iter().cloned().map(TaskMessage::Cancel));
        let (node, attempt, at) = (merge.clone(), 1, self.now);
        route.events.extend([
            TaskEvent::Merged {
                node: node.clone(),
                taken: Vec::new(),
                failed,
                with_failed: false,
                ways: Vec::new(),
                cancelled,
            },
            TaskEvent::NodeStarted { node: node.clone(), attempt, retry: None, queue_ms: 0, at },
            TaskEvent::NodeFinished {
                node,
                attempt,
                status: Status::Failure,
                output: Value::Null,
                error: Some(error.clone()),
                metrics: NodeMetrics::default(),
                at,
            },
        ]);
    }

    /// The nodes over which these children would have come to the merge: of several, the first of the manifest.
    fn ways_of(&self, merge: &NodeId, children: &[ChildName]) -> Vec<NodeId> {
        let Some(merge) = self.graph.node(merge) else { return Vec::new() };
        let way = |child: &ChildName| {
            let (node, index) = parse(child, &self.place.forks)?;
            let begins = self.place.forks.get(&node)?.target(index)?;
            let leads = |from: &&NodeId| *from == begins || self.graph.reaches(begins, from);
            // One whose edge leads to the merge itself comes from the fork.
            Some(merge.inbound.iter().find(leads).unwrap_or(&node).clone())
        };
        children.iter().map(|child| way(child).unwrap_or_else(|| merge.id.clone())).collect()
    }

    /// Ends the task by itself, and tells its parent. It fails where no message takes its output.
    fn end(&self, route: &mut Route, status: Status, output: Value, exit: Option<NodeId>, error: Option<Error>) {
        let (status, output, error) = match self.too_long(&output) {
            Some(too_long) => (Status::Failure, Value::Null, error.or(Some(too_long))),
            None => (status, output, error),
        };
        let end = ChildEnd { status, output: output.clone(), merged: false, lost: 0, error: error.clone() };
        self.tell_parent(route, end);
        self.finish(route, status, output, exit, error);
    }

    /// Why no task above can be told of this output, if that is so. A root tells nobody.
    fn too_long(&self, output: &Value) -> Option<Error> {
        self.config.origin.as_ref()?;
        let bytes = json_length(output);
        (bytes > MAX_OUTPUT).then(|| {
            let text = format!("the output is {bytes} bytes long; {MAX_OUTPUT} fit into a message to the task above");
            Error::new(Code::PayloadTooLarge, text)
                .hint("give the merge before it an operation that shortens it, or write it to a file")
        })
    }

    fn tell_parent(&self, route: &mut Route, end: ChildEnd) {
        if let Some(origin) = &self.config.origin {
            route.posts.push(TaskMessage::Ended(origin.parent, origin.name(), end));
        }
    }

    fn finish(&self, route: &mut Route, status: Status, output: Value, exit: Option<NodeId>, error: Option<Error>) {
        if !self.place.forks.is_empty() {
            let place = self.after(route);
            let live = place.forks.iter().flat_map(|(node, fork)| fork.live_names(node));
            route.posts.extend(live.map(TaskMessage::Cancel));
        }
        route.events.push(TaskEvent::Finished { status, output, exit, error, at: self.now });
        route.next = Next::End;
    }
}

fn unknown(node: &NodeId) -> Error {
    Error::new(Code::Internal, format!("the flow has no way on at {node}"))
}

fn no_edge(node: &GraphNode) -> Error {
    Error::new(Code::Unprocessable, format!("{} selected no edge", node.id))
        .hint(format!("answer {{\"selected_edge\": name}} with one of: {}", node.choices()))
}

fn fails_partial(node: &NodeId) -> Error {
    Error::new(Code::Unprocessable, format!("the exit {node} takes no task that is partial"))
        .hint("the history says which node, clone or subtask failed on the way")
}
