//! The semantics of spec 002 §3 a second time, as plainly as possible: all tasks of a flow in one tree that everybody can look
//! into. Nothing is counted and nothing is sent; each decision is made by going through the tree again.
//!
//! The specification leaves open the order in which tasks that run beside each other get on, and that is all that this model takes
//! from the run that it checks: the task that ended its node next, and the task that learned of an end next.
//!
//! The rules, by role (`own` merges are those that belong to the task, by the forks around them):
//!
//! * A task goes along edges. It makes children at branches and splits and waits for them.
//! * At a merge of its own it waits; at one of a task above, it is over, and lies there with its output.
//! * It is over when it reaches an exit, fails, goes up, or waits and nothing can come. Children that are not over
//!   are then unwanted.
//! * A branch whose clones meet nowhere is over with the first clone that succeeds.
//! * While a task waits, the first of its merges to which something came, or may come, or could have come but failed, is the
//!   one it waits at; see [`Naive::judge`] for when that begins.

mod look;

use crate::{
    drive::Step,
    script::{Act, Script, without_errors},
};
use buildscale_flow::graph::{GraphNode, OnFailure, Role, Strategy};
use domain::{NodeId, Status};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// All tasks of a flow, by their names.
pub struct Naive<'a> {
    script: &'a Script,
    pub tasks: BTreeMap<String, Token>,
}

/// One task.
#[derive(Clone, Debug)]
pub struct Token {
    /// The name of the task above, and the node that made this one; none for the root.
    parent: Option<(String, NodeId)>,
    /// Its name and those above it, each under the one above; and their places among their siblings.
    line: Vec<String>,
    places: Vec<usize>,
    start: NodeId,
    /// Whether it was sent off; the children of a large split are not all at once.
    is_sent: bool,
    at: At,
    /// The nodes that it executed, with their inputs.
    pub trace: Vec<(NodeId, Value)>,
    current: Value,
    is_partial: bool,
    is_stopping: bool,
    /// The fork that it waits for.
    waits_for: Option<NodeId>,
    /// The names of its children, by the fork that made them.
    children: BTreeMap<NodeId, Vec<String>>,
    /// The tasks whose end it has learned of.
    heard: BTreeSet<String>,
    /// Children that it has stopped.
    unwanted: BTreeSet<String>,
    /// Merges that have begun.
    begun: BTreeSet<NodeId>,
    /// Its own outputs at merges of its own.
    brought: Vec<Brought>,
    pub end: Option<End>,
}

#[derive(Clone, Debug, PartialEq)]
enum At {
    NotBegun,
    Node(NodeId),
    Waiting,
    Over,
}

/// How a task is over.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// By itself.
    Itself(Status, Value),
    /// It lies at a merge that belongs to the task with so many tasks above it.
    Up(usize, Brought),
    /// All that it made lies at merges above it; whether something of it failed.
    Dissolved(Status),
}

/// An output that lies at a merge.
#[derive(Clone, Debug, PartialEq)]
pub struct Brought {
    merge: NodeId,
    from: NodeId,
    pub status: Status,
    pub output: Value,
    /// The places of its child, as the owner of the merge sees them.
    places: Vec<usize>,
    child: String,
}

impl<'a> Naive<'a> {
    /// Does the same steps.
    pub fn run(script: &'a Script, steps: &[Step]) -> Self {
        let mut naive = Self { script, tasks: BTreeMap::new() };
        naive.make(None, Vec::new(), Vec::new(), script.start().clone(), json!("in"));
        for step in steps {
            match step {
                Step::Sent(task) => naive.token(task).is_sent = true,
                Step::Begin(task) => naive.begin(task),
                Step::Done(task) => naive.done(task),
                Step::Heard { by, of } => naive.hear(by, of),
                Step::Stop(task) => naive.stop(task),
            }
        }
        naive
    }

    fn make(
        &mut self,
        parent: Option<(String, NodeId)>,
        line: Vec<String>,
        places: Vec<usize>,
        start: NodeId,
        input: Value,
    ) {
        let token = Token {
            parent,
            places,
            start,
            is_sent: false,
            at: At::NotBegun,
            trace: Vec::new(),
            current: input,
            is_partial: false,
            is_stopping: false,
            waits_for: None,
            children: BTreeMap::new(),
            heard: BTreeSet::new(),
            unwanted: BTreeSet::new(),
            begun: BTreeSet::new(),
            brought: Vec::new(),
            end: None,
            line: line.clone(),
        };
        self.tasks.insert(line.join("/"), token);
    }

    fn begin(&mut self, task: &str) {
        let Token { parent, start, current, .. } = self.tasks[task].clone();
        let from = parent.map_or_else(|| start.clone(), |(_, fork)| fork);
        self.go(task, &from, &start, current);
    }

    /// Along an edge.
    fn go(&mut self, task: &str, from: &NodeId, to: &NodeId, value: Value) {
        let depth = self.tasks[task].line.len();
        let node = self.node(to);
        if node.role != Role::Merge {
            return self.execute(task, to, value);
        }
        let owner = node.forks.len();
        let token = self.token(task);
        let brought = Brought {
            merge: to.clone(),
            from: from.clone(),
            status: token.status(),
            output: value,
            places: token.places[owner..].to_vec(),
            child: token.line[owner..].join("/"),
        };
        if owner == depth {
            token.brought.push(brought);
            token.at = At::Waiting;
            self.decide(task);
        } else {
            self.over(task, End::Up(owner, brought));
        }
    }

    fn execute(&mut self, task: &str, node: &NodeId, input: Value) {
        let token = self.token(task);
        token.trace.push((node.clone(), without_errors(&input)));
        token.current = input;
        token.at = At::Node(node.clone());
    }

    /// The node that the task executes has ended.
    fn done(&mut self, task: &str) {
        let Token { at: At::Node(node), current, is_stopping, .. } = self.tasks[task].clone() else {
            panic!("{task:?} executes nothing")
        };
        if is_stopping {
            return self.over(task, End::Itself(Status::Failure, Value::Null));
        }
        let node = self.node(&node);
        let Act { status, output, elements } = self.script.act(task, &node.id, &current);
        if status == Status::Failure && !node.continue_on_failure {
            return self.over(task, End::Itself(Status::Failure, output));
        }
        let token = self.token(task);
        token.is_partial |= status != Status::Success;
        token.current = if status == Status::Failure { current } else { output.clone() };
        let (value, so_far) = (token.current.clone(), token.status());
        match node.role {
            Role::Start | Role::Linear | Role::Merge => self.go(task, &node.id, &node.out[0].to, value),
            Role::Decision => {
                let selects = |name: &str| {
                    let by_label = node.out.iter().find(|edge| edge.label.as_deref() == Some(name));
                    by_label.or_else(|| node.out.iter().find(|edge| edge.to.as_str() == name))
                };
                match output["selected_edge"].as_str().and_then(selects) {
                    Some(edge) => self.go(task, &node.id, &edge.to, value),
                    None => self.over(task, End::Itself(Status::Failure, output)),
                }
            }
            Role::Branch => self.fork(task, &node, node.out.len(), |to, _| format!("{}/{to}", node.id)),
            Role::Split => {
                let many = elements.map_or(node.out.len(), |elements| elements as usize);
                self.fork(task, &node, many, |to, index| format!("{}/{to}[{index}]", node.id));
            }
            Role::Exit => {
                let status = if node.always_fail { Status::Failure } else { so_far };
                self.over(task, End::Itself(status, value));
            }
        }
    }

    fn fork(&mut self, task: &str, node: &GraphNode, many: usize, name: impl Fn(&NodeId, usize) -> String) {
        let token = self.tasks[task].clone();
        let mut children = Vec::new();
        for index in 0..many {
            let to = &node.out[index % node.out.len()].to;
            let (mut line, mut places) = (token.line.clone(), token.places.clone());
            line.push(name(to, index));
            places.push(index);
            children.push(line.join("/"));
            self.make(Some((task.to_owned(), node.id.clone())), line, places, to.clone(), token.current.clone());
        }
        let token = self.token(task);
        token.children.insert(node.id.clone(), children);
        token.waits_for = Some(node.id.clone());
        token.at = At::Waiting;
        if many == 0 {
            self.decide(task);
        }
    }

    /// `by` learns that `of` is over.
    fn hear(&mut self, by: &str, of: &str) {
        let child = self.tasks[of].clone();
        let token = &self.tasks[by];
        let is_late = match self.at_merge_of(by, &child) {
            // Also once a merge after it has begun: before that one nothing was waited for here.
            Some(brought) => token.begun.iter().any(|begun| self.leads(&brought.merge, begun)),
            None => token.unwanted.contains(of),
        };
        if token.at == At::Over || is_late || !self.token(by).heard.insert(of.to_owned()) {
            return;
        }
        let token = self.tasks[by].clone();
        if token.at != At::Waiting {
            return;
        }
        let is_first = matches!(&child.parent, Some((_, fork)) if token.waits_for.as_ref() == Some(fork)
            && self.node(fork).role == Role::Branch
            && !self.meets_again(fork));
        match child.end {
            Some(End::Itself(Status::Success, output)) if is_first => {
                self.over(by, End::Itself(token.status(), output))
            }
            _ => self.decide(by),
        }
    }

    fn stop(&mut self, task: &str) {
        match self.tasks[task].at {
            At::Over => {}
            At::Node(_) => self.token(task).is_stopping = true,
            At::NotBegun | At::Waiting => self.over(task, End::Itself(Status::Failure, Value::Null)),
        }
    }

    fn over(&mut self, task: &str, end: End) {
        let token = self.token(task);
        token.at = At::Over;
        token.end = Some(end);
    }

    /// The next act of a task that waits.
    fn decide(&mut self, task: &str) {
        let own = self.own_merges(task).into_iter().filter(|merge| {
            !self.tasks[task].begun.contains(&merge.id)
                && (!self.came(task, &merge.id).is_empty()
                    || self.children(task).iter().any(|child| self.may_come(task, child, &merge.id))
                    || !self.failed_before(task, &merge.id).is_empty()
                    || self.is_empty_split(task, &merge.id))
        });
        let mut own: Vec<GraphNode> = own.collect();
        own.sort_by(|left, right| left.id.cmp(&right.id));
        let first =
            own.iter().find(|merge| !own.iter().any(|other| other.id != merge.id && self.leads(&other.id, &merge.id)));
        match first.cloned() {
            Some(merge) => self.judge(task, &merge),
            None if self.children(task).iter().any(|child| self.is_live(task, child)) => {}
            None => self.complete(task),
        }
    }

    /// Whether a merge begins, and with what.
    ///
    /// * `all` and `best_of`: when no further child can come, and none can go past the task, to a merge above. With `fail`, not
    ///   if one that could have come failed; and if no child came, only with `include`, or if there was nothing to split.
    /// * `first_success`: with the first that succeeded; `quorum`: with those that succeeded when they are enough. Not if
    ///   no further child can come, nor go past the task; and with `fail`, not after one that could have come failed.
    fn judge(&mut self, task: &str, merge: &GraphNode) {
        let came = self.came(task, &merge.id);
        let failed = self.failed_before(task, &merge.id);
        let coming = self.children(task).iter().filter(|child| self.may_come(task, child, &merge.id)).count();
        let going_up = self.children(task).iter().filter(|child| self.may_go_up(task, child)).count();
        let good: Vec<Brought> = came.iter().filter(|brought| brought.status == Status::Success).cloned().collect();
        let refused = merge.join.on_failure == OnFailure::Fail && !failed.is_empty();
        let taken = match merge.join.strategy {
            // More than half of all that come, however many each child comes as.
            Strategy::Quorum(0) if self.may_come_as_several(task, &merge.id) => return,
            Strategy::FirstSuccess | Strategy::Quorum(_) if refused => None,
            Strategy::All | Strategy::BestOf => {
                if coming + going_up > 0 {
                    return;
                }
                let none = came.is_empty()
                    && !self.is_empty_split(task, &merge.id)
                    && (merge.join.on_failure != OnFailure::Include || merge.join.strategy == Strategy::BestOf);
                (!none && !refused).then(|| came.clone())
            }
            Strategy::FirstSuccess => good.first().map(|first| {
                // The task itself may have come twice, along two edges: that is one who came.
                came.iter().filter(|brought| brought.child == first.child).cloned().collect()
            }),
            Strategy::Quorum(wanted) => {
                let lost: usize = failed.iter().map(|failed| self.lost(&below(task, &failed.child))).sum();
                let all = came.len() + coming + lost;
                let wanted = if wanted == 0 { all / 2 + 1 } else { wanted as usize };
                (good.len() >= wanted).then_some(good)
            }
        };
        let takes_all = matches!(merge.join.strategy, Strategy::All | Strategy::BestOf);
        if taken.is_none() && coming + going_up > 0 && (takes_all || !refused) {
            return;
        }
        let some_partial = came.iter().any(|brought| brought.status == Status::Partial);
        let mut input = taken.clone().unwrap_or(came);
        let is_partial =
            taken.is_none() || merge.join.strategy != Strategy::FirstSuccess && (!failed.is_empty() || some_partial);
        if taken.is_some() && merge.join.on_failure == OnFailure::Include {
            input.extend(failed);
            input.sort_by(|left, right| (&left.places, &left.child).cmp(&(&right.places, &right.child)));
        }
        let list = |brought: &Brought| {
            let Brought { from, child, status, output, .. } = brought;
            json!({ "from": from, "child": child, "status": status, "output": output })
        };
        let input: Value = input.iter().map(list).collect();
        if taken.is_none() && !merge.continue_on_failure {
            return self.over(task, End::Itself(Status::Failure, Value::Null));
        }
        let unwanted = self.children(task).into_iter().filter(|child| {
            self.may_come(task, child, &merge.id) || self.is_live(task, child) && !self.tasks[child].is_sent
        });
        let unwanted: Vec<String> = unwanted.collect();
        let token = self.token(task);
        token.unwanted.extend(unwanted);
        token.begun.insert(merge.id.clone());
        token.is_partial |= is_partial;
        token.waits_for = None;
        match taken {
            Some(_) => self.execute(task, &merge.id, input),
            // It failed and is passed over: its arrivals go on.
            None => self.go(task, &merge.id, &merge.out[0].to, input),
        }
    }

    /// Nothing more can come: the task is as the children that it waits for are.
    fn complete(&mut self, task: &str) {
        let token = self.tasks[task].clone();
        let fork = token.waits_for.clone().unwrap_or_else(|| panic!("{task:?} waits for nothing"));
        let ends: Vec<End> = token.children[&fork].iter().filter_map(|child| self.tasks[child].end.clone()).collect();
        let failed = ends.iter().filter(|end| end.has_failed()).count();
        if ends.iter().any(|end| !matches!(end, End::Itself(..))) {
            let status = if failed > 0 { Status::Partial } else { token.status() };
            return self.over(task, End::Dissolved(status));
        }
        let itself = |wanted: Status| {
            ends.iter().find_map(|end| match end {
                End::Itself(status, output) if *status == wanted => Some(output.clone()),
                _ => None,
            })
        };
        let end = if self.node(&fork).role == Role::Branch {
            match (itself(Status::Success), itself(Status::Partial)) {
                (Some(output), _) => (token.status(), output),
                (None, Some(output)) => (Status::Partial, output),
                (None, None) => (Status::Failure, Value::Null),
            }
        } else {
            let output: Value = ends
                .iter()
                .map(|end| if let End::Itself(_, output) = end { output.clone() } else { Value::Null })
                .collect();
            let some_partial = itself(Status::Partial).is_some();
            let status = match failed {
                0 if some_partial => Status::Partial,
                0 => token.status(),
                _ if failed < ends.len() && self.node(&fork).continue_on_failure => Status::Partial,
                _ => Status::Failure,
            };
            (status, output)
        };
        self.over(task, End::Itself(end.0, end.1));
    }
}

fn below(task: &str, child: &str) -> String {
    if task.is_empty() { child.to_owned() } else { format!("{task}/{child}") }
}

impl Token {
    fn status(&self) -> Status {
        if self.is_partial { Status::Partial } else { Status::Success }
    }
}

impl End {
    /// Whether a merge counts it as failed: it failed, or something below it did while the rest went up.
    fn has_failed(&self) -> bool {
        match self {
            Self::Itself(status, _) => *status == Status::Failure,
            Self::Up(..) => false,
            Self::Dissolved(status) => *status != Status::Success,
        }
    }
}
