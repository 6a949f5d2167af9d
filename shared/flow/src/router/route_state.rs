//! The place of a task: the fold of the events that the router decides by.

use domain::{
    Error, NodeId, Status, TaskEvent,
    task::{Arrival, ChildEnd, ChildKind, ChildName},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt::Write as _,
    sync::Arc,
};

/// The position of a task, its forks, and the arrivals at its merges.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RouteState {
    /// Its own position.
    pub position: Position,
    /// How it is so far; none before anything went wrong.
    pub status: Option<Status>,
    /// Its current output: the input of the node that executes, or of the next one.
    pub current: Arc<Value>,
    /// The forks that it executed and that something may still come of.
    pub forks: BTreeMap<NodeId, Fork>,
    /// The others, with how many children each made: a step does not look at them, however many there are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spent: BTreeMap<NodeId, u32>,
    /// How many children all its forks made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub made: u64,
    /// Arrivals at its merges until they begin, under keys that sort as the merge's input does.
    pub arrivals: BTreeMap<NodeId, BTreeMap<String, Arrived>>,
    /// How many of these came with success, a merge.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub good: BTreeMap<NodeId, u32>,
    /// Merges that have begun: later arrivals are not waited for.
    pub begun: BTreeSet<NodeId>,
    /// How much its children have told it since it last went on at a merge.
    #[serde(default, skip_serializing_if = "is_none")]
    pub heard: u32,
    /// The fork that it waits for; none once it has gone on at a merge.
    pub last_fork: Option<NodeId>,
    /// The node whose end was the last one, if it failed. The fork that it makes follows in the same entry.
    #[serde(skip)]
    pub failed: Option<NodeId>,
    /// The node from which it came to its position along an edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NodeId>,
}

/// The position of a task in the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// Nothing has begun.
    #[default]
    Nowhere,
    /// At a node, which executes, or is about to.
    At(NodeId),
    /// It waits for its children.
    Waiting,
    /// It has ended.
    Ended,
}

/// An arrival at a merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arrived {
    /// The child.
    pub child: String,
    /// The node that it comes from.
    pub from: NodeId,
    /// Its status.
    pub status: Status,
    /// Its output.
    pub output: Arc<Value>,
}

impl From<&Arrival> for Arrived {
    fn from(arrival: &Arrival) -> Self {
        let Arrival { from, child, status, output, .. } = arrival;
        Self { child: child.clone(), from: from.clone(), status: *status, output: Arc::new(output.clone()) }
    }
}

/// The children that one branch or split made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    /// Their kind.
    pub kind: ChildKind,
    /// The targets of the edges.
    pub to: Vec<NodeId>,
    /// How many there will be.
    pub total: u32,
    /// How many were sent off.
    pub spawned: u32,
    /// Those that have come to their end, by their place.
    pub ended: BTreeMap<u32, Arc<ChildEnd>>,
    /// How many have not, an edge.
    pub live: Vec<u32>,
    /// How many failed, they or something below them, an edge.
    pub failed: Vec<u32>,
    /// The sums of both over all edges.
    #[serde(default)]
    pub in_all: ForkCounts,
    /// How many went on into a merge.
    pub merged: u32,
    /// Whether its node failed and was gone past: each child gets the input of the node, also where that is a list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_failed: bool,
}

/// How many children of a fork, over all its edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkCounts {
    /// Have not come to their end.
    pub live: u32,
    /// Failed, they or something below them.
    pub failed: u32,
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Fork {
    /// The name of the child at this place.
    pub fn name(&self, node: &NodeId, index: u32) -> Option<ChildName> {
        Some(ChildName::of(node, self.target(index)?, index, self.kind))
    }

    /// The first node of the child at this place.
    pub fn target(&self, index: u32) -> Option<&NodeId> {
        self.to.get(self.edge(index)?)
    }

    pub(crate) fn edge(&self, index: u32) -> Option<usize> {
        (index as usize).checked_rem(self.to.len())
    }

    /// The names of those that have been sent off and have not ended.
    pub fn live_names<'a>(&'a self, node: &'a NodeId) -> impl Iterator<Item = ChildName> + 'a {
        (0..self.spawned).filter(|index| !self.ended.contains_key(index)).filter_map(|index| self.name(node, index))
    }

    /// The task goes on, so that children that were not sent off yet will not be.
    fn send_off_no_more(&mut self) {
        for index in self.spawned..self.total {
            self.count_off(index);
        }
        self.total = self.total.min(self.spawned);
    }

    /// One less is expected to come.
    fn count_off(&mut self, index: u32) {
        if let Some(edge) = self.edge(index)
            && let Some(live) = self.live.get_mut(edge)
            && *live > 0
        {
            *live -= 1;
            self.in_all.live = self.in_all.live.saturating_sub(1);
        }
    }

    /// Whether all that it made has come to its end, and nothing of it failed that a merge still has to count.
    fn is_spent(&self) -> bool {
        self.in_all == ForkCounts::default()
    }

    /// Takes in the end of a child; false when it had ended before.
    pub(crate) fn end(&mut self, index: u32, end: ChildEnd) -> bool {
        let Some(edge) = self.edge(index) else { return false };
        if index >= self.total || self.ended.contains_key(&index) {
            return false;
        }
        self.count_off(index);
        if let Some(failed) = self.failed.get_mut(edge) {
            *failed += failures(&end);
            self.in_all.failed += failures(&end);
        }
        self.merged += u32::from(end.merged);
        self.ended.insert(index, Arc::new(end));
        true
    }
}

/// Whether a merge has to count it as failed: it failed, or something below it did while the rest went on.
pub(crate) fn is_failure(end: &ChildEnd) -> bool {
    end.status == Status::Failure || (end.merged && end.status == Status::Partial)
}

/// How many it has to count: of one whose children went on all that failed below it.
pub(crate) fn failures(end: &ChildEnd) -> u32 {
    if is_failure(end) { end.lost.max(1) } else { 0 }
}

/// The forks that can have made a child of this name: the text before one of its slashes, with the text after it.
fn makers<'a, 'n, T>(
    name: &'n str,
    forks: &'a BTreeMap<NodeId, T>,
) -> impl Iterator<Item = (&'a NodeId, &'a T, &'n str)> {
    name.match_indices('/').filter_map(move |(slash, _)| {
        let (node, fork) = forks.get_key_value(&NodeId::from(name.get(..slash)?))?;
        Some((node, fork, name.get(slash + 1..)?))
    })
}

/// The node that made a child, and its place, by its name.
pub(crate) fn parse(name: &ChildName, forks: &BTreeMap<NodeId, Fork>) -> Option<(NodeId, u32)> {
    makers(name.as_str(), forks).find_map(|(node, fork, rest)| {
        let index = match fork.kind {
            ChildKind::Clone => fork.to.iter().position(|to| to.as_str() == rest)? as u32,
            ChildKind::Subtask => rest.strip_suffix(']')?.rsplit_once('[')?.1.parse().ok()?,
        };
        (fork.name(node, index).as_ref() == Some(name)).then(|| (node.clone(), index))
    })
}

impl RouteState {
    /// The fork and the place of the child of this task that an arrival comes from, itself or something below it; none when
    /// no such child was made, or its fork is spent.
    pub(crate) fn maker_of<'a>(&'a self, arrival: &Arrival) -> Option<(&'a NodeId, &'a Fork, u32)> {
        let index = *arrival.place.first()?;
        let mut makers = makers(&arrival.child, &self.forks);
        makers.find_map(|(node, fork, _)| {
            let name = fork.name(node, index).filter(|_| index < fork.total)?;
            let rest = arrival.child.strip_prefix(name.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then_some((node, fork, index))
        })
    }

    /// Whether a fork that is spent can have made the child that an arrival comes from.
    pub(crate) fn is_of_spent(&self, arrival: &Arrival) -> bool {
        let index = arrival.place.first();
        index.is_some_and(|index| makers(&arrival.child, &self.spent).any(|(_, made, _)| index < made))
    }

    /// How many children have not come to their end, those that are still to be sent off among them.
    pub fn live(&self) -> u32 {
        self.forks.values().map(|fork| fork.in_all.live).sum()
    }

    /// Whether this child has not come to its end.
    pub fn is_live(&self, child: &ChildName) -> bool {
        let made = parse(child, &self.forks).and_then(|(node, index)| Some((self.forks.get(&node)?, index)));
        made.is_some_and(|(fork, index)| index < fork.total && !fork.ended.contains_key(&index))
    }

    /// How the task is so far.
    pub fn status(&self) -> Status {
        self.status.unwrap_or(Status::Success)
    }

    /// Folds one event. Total; an event that does not concern the router changes nothing.
    pub fn apply(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::Created { config } => {
                self.current = Arc::new(config.input.clone());
                self.position = Position::At(config.start.clone());
            }
            TaskEvent::NodeStarted { node, .. } => self.position = Position::At(node.clone()),
            TaskEvent::NodeFinished { node, status, output, .. } => {
                self.failed = (*status == Status::Failure).then(|| node.clone());
                match status {
                    Status::Success => self.current = Arc::new(output.clone()),
                    Status::Partial => {
                        self.current = Arc::new(output.clone());
                        self.status = Some(Status::Partial);
                    }
                    // A failed node that is passed over gives its input on.
                    Status::Failure => self.status = Some(Status::Partial),
                }
            }
            TaskEvent::Caught { error, status, .. } => {
                self.status = (*status != Status::Success).then_some(*status);
                self.current = Arc::new(caught(error, &self.current));
            }
            TaskEvent::StatusSet { status } => self.status = Some(*status),
            TaskEvent::Routed { from, to } => {
                self.from = Some(from.clone());
                self.position = Position::At(to.clone());
            }
            TaskEvent::Forked { node, kind, to, total } => {
                let edges = to.len() as u32;
                let live = (0..edges).map(|edge| total / edges + u32::from(edge < total % edges)).collect();
                let fork = Fork {
                    kind: *kind,
                    to: to.clone(),
                    total: *total,
                    spawned: 0,
                    ended: BTreeMap::new(),
                    live,
                    failed: vec![0; to.len()],
                    in_all: ForkCounts { live: if edges == 0 { 0 } else { *total }, failed: 0 },
                    merged: 0,
                    of_failed: self.failed.take().as_ref() == Some(node),
                };
                self.made += u64::from(*total);
                self.forks.insert(node.clone(), fork);
                self.last_fork = Some(node.clone());
                self.position = Position::Waiting;
            }
            TaskEvent::Spawned { node, until } => {
                if let Some(fork) = self.forks.get_mut(node) {
                    fork.spawned = *until;
                }
            }
            TaskEvent::ChildArrived { arrival } => self.arrive(arrival),
            TaskEvent::ChildFinished { child, end } => {
                self.heard += 1;
                if let Some((node, index)) = parse(child, &self.forks)
                    && let Some(fork) = self.forks.get_mut(&node)
                {
                    fork.end(index, (**end).clone());
                }
            }
            TaskEvent::Merged { node, taken, failed, with_failed, ways, cancelled } => {
                let shown = if *with_failed { failed.as_slice() } else { &[] };
                self.current = Arc::new(self.input_of(node, taken, shown, ways));
                // One that takes some only never wanted the others.
                let is_partial = |arrived: &Arrived| arrived.status == Status::Partial;
                let some_partial = self.arrivals.get(node).is_some_and(|set| set.values().any(is_partial));
                if taken.is_empty() && (some_partial || !failed.is_empty()) {
                    self.status = Some(Status::Partial);
                }
                failed.iter().for_each(|child| self.settle(child));
                cancelled.iter().for_each(|child| self.settle(child));
                for (fork, of) in &mut self.forks {
                    let before = of.total;
                    of.send_off_no_more();
                    self.made -= u64::from(before - of.total);
                    if of.is_spent() {
                        self.spent.insert(fork.clone(), of.total);
                    }
                }
                self.forks.retain(|_, fork| !fork.is_spent());
                self.arrivals.remove(node);
                self.good.remove(node);
                self.begun.insert(node.clone());
                self.last_fork = None;
                self.heard = 0;
                self.position = Position::At(node.clone());
            }
            TaskEvent::Finished { status, output, .. } => {
                self.status = Some(*status);
                self.current = Arc::new(output.clone());
                self.position = Position::Ended;
                // Nothing reads these after the end, and a log of many children is long.
                self.arrivals.clear();
                self.good.clear();
                self.forks.values_mut().for_each(|fork| fork.ended.clear());
            }
            TaskEvent::ContextAssembled { .. }
            | TaskEvent::Denied { .. }
            | TaskEvent::AgentAsked { .. }
            | TaskEvent::AgentReplied { .. }
            | TaskEvent::AgentWaits { .. }
            | TaskEvent::ToolUsed { .. }
            | TaskEvent::PlanStep { .. }
            | TaskEvent::OutputRejected { .. }
            | TaskEvent::Asked { .. }
            | TaskEvent::Answered { .. }
            | TaskEvent::Archived { .. }
            | TaskEvent::Prioritized { .. }
            | TaskEvent::Labelled { .. }
            | TaskEvent::Budget { .. }
            | TaskEvent::Deleted { .. }
            | TaskEvent::Cleared
            | TaskEvent::Waiting { .. }
            | TaskEvent::HeldBack { .. }
            | TaskEvent::Diverged { .. }
            | TaskEvent::WentUp { .. }
            | TaskEvent::PauseRequested { .. }
            | TaskEvent::PausedBefore { .. }
            | TaskEvent::Continued { .. }
            | TaskEvent::StopRequested { .. }
            | TaskEvent::Parked { .. }
            | TaskEvent::Unparked { .. } => {}
        }
    }

    fn arrive(&mut self, arrival: &Arrival) {
        match arrival.place.is_empty() {
            true => self.position = Position::Waiting,
            false => self.heard += 1,
        }
        // A child of this very task has ended with it; of one further down its parent tells.
        if arrival.place.len() == 1
            && let Some((node, index)) = self.maker_of(arrival).map(|(node, _, index)| (node.clone(), index))
        {
            self.settle_at(&node, index);
        }
        if !self.begun.contains(&arrival.merge) {
            let set = self.arrivals.entry(arrival.merge.clone()).or_default();
            if let Entry::Vacant(free) = set.entry(key_of(arrival)) {
                free.insert(arrival.into());
                if arrival.status == Status::Success {
                    *self.good.entry(arrival.merge.clone()).or_default() += 1;
                }
            }
        }
    }

    /// Counts a child as one that nothing more is expected of, and that failed nothing.
    fn settle(&mut self, child: &ChildName) {
        if let Some((node, index)) = parse(child, &self.forks) {
            self.settle_at(&node, index);
        }
    }

    fn settle_at(&mut self, node: &NodeId, index: u32) {
        let Some(fork) = self.forks.get_mut(node) else { return };
        let settled = ChildEnd { status: Status::Success, output: Value::Null, merged: true, lost: 0, error: None };
        if let Some(end) = fork.ended.get_mut(&index) {
            if is_failure(end)
                && let Some(edge) = (index as usize).checked_rem(fork.to.len())
                && let Some(failed) = fork.failed.get_mut(edge)
            {
                *failed = failed.saturating_sub(failures(end));
                fork.in_all.failed = fork.in_all.failed.saturating_sub(failures(end));
                *end = Arc::new(settled);
            }
        } else {
            fork.end(index, settled);
        }
    }

    /// The input of a merge: the arrivals, in the order of the manifest and of lists, of those `taken` or of all when there
    /// are none; and the children of this task that `failed`.
    fn input_of(&self, merge: &NodeId, taken: &[String], failed: &[ChildName], ways: &[NodeId]) -> Value {
        let mut entries: BTreeMap<String, Value> = BTreeMap::new();
        let taken: BTreeSet<&str> = taken.iter().map(String::as_str).collect();
        for (key, Arrived { child, from, status, output }) in self.arrivals.get(merge).into_iter().flatten() {
            if taken.is_empty() || taken.contains(child.as_str()) {
                let entry = json!({ "from": from, "child": child, "status": status, "output": output });
                entries.insert(key.clone(), entry);
            }
        }
        for (place, child) in failed.iter().enumerate() {
            let Some((node, index)) = parse(child, &self.forks) else { continue };
            let end = self.forks.get(&node).and_then(|fork| fork.ended.get(&index));
            let from = ways.get(place).unwrap_or(&node);
            let mut entry = json!({ "from": from, "child": child, "status": Status::Failure, "output": Value::Null });
            if let (Some(error), Value::Object(fields)) = (end.and_then(|end| end.error.as_ref()), &mut entry) {
                fields.insert("error".into(), json!({ "code": error.code, "message": error.message }));
            }
            entries.entry(key(&[index], child.as_str())).or_insert(entry);
        }
        entries.into_values().collect()
    }
}

/// The input of a node behind an edge that takes failures: why the node before failed, and its input.
pub(crate) fn caught(error: &Error, input: &Value) -> Value {
    json!({ "error": error, "input": input })
}

/// The key of an arrival in its set. A child comes once. The owner, which waits at a merge while
/// one before it begins, can come again along another edge.
pub(crate) fn key_of(arrival: &Arrival) -> String {
    key(&arrival.place, if arrival.child.is_empty() { arrival.from.as_str() } else { &arrival.child })
}

/// Sorts by place, one that is above before those below it, then by name.
fn key(place: &[u32], child: &str) -> String {
    let mut key = String::with_capacity(place.len() * 11 + 1 + child.len());
    for number in place {
        let _ = write!(key, ".{number:010}");
    }
    // Sorts before the point.
    key.push(' ');
    key.push_str(child);
    key
}
