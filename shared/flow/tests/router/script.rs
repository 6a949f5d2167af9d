//! The outputs of nodes, by the name of the task and the node: the same for the router and for the model.

use crate::graphs::Plan;
use buildscale_flow::graph::{Graph, Join, NewEdge, NewNode, OnFailure, Role, Strategy};
use domain::{NodeId, Status};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
};

/// A graph, and how its nodes end.
pub struct Script {
    pub graph: Graph,
    over: BTreeSet<NodeId>,
    /// Nodes that end so wherever they execute; `task@node` for one task only. A decision takes the text as its edge, a split
    /// the number as the length of its list.
    fixed: BTreeMap<String, Fixed>,
    /// The seed of all other choices; none for success.
    seed: Option<u64>,
}

/// How a node ends.
#[derive(Clone, Debug)]
pub enum Fixed {
    Fails,
    IsPartial,
    Selects(&'static str),
    Elements(u32),
}

/// How one execution ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    pub status: Status,
    pub output: Value,
    pub elements: Option<u32>,
}

impl Script {
    /// A random graph with random outcomes.
    pub fn random(plan: &Plan, seed: u64) -> Self {
        Self { graph: plan.graph(), over: plan.over.clone(), fixed: BTreeMap::new(), seed: Some(seed) }
    }

    /// A graph from lines of the form `role id options… > target target`, in which everything succeeds.
    pub fn of(text: &str) -> Self {
        let mut plan = Plan::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (node, targets) = line.split_once('>').unwrap_or((line, ""));
            let mut words = node.split_whitespace();
            let role = serde_json::from_value(json!(words.next())).unwrap();
            let id = NodeId::from(words.next().unwrap());
            let (continue_on_failure, always_fail, join) = (false, false, Join::default());
            let mut node =
                NewNode { id: id.clone(), role, continue_on_failure, always_fail, fails_partial: false, join };
            let mut says_fail = false;
            for option in words {
                match option.split_once('=').unwrap_or((option, "")) {
                    ("continue", _) => node.continue_on_failure = true,
                    ("always_fail", _) => node.always_fail = true,
                    ("over", _) => drop(plan.over.insert(id.clone())),
                    ("first_success", _) => node.join.strategy = Strategy::FirstSuccess,
                    ("best_of", _) => node.join.strategy = Strategy::BestOf,
                    ("quorum", number) => node.join.strategy = Strategy::Quorum(number.parse().unwrap()),
                    ("ignore", _) => node.join.on_failure = OnFailure::Ignore,
                    ("fail", _) => says_fail = true,
                    ("include", _) => node.join.on_failure = OnFailure::Include,
                    ("of", of) => node.join.of = Some(of.into()),
                    other => panic!("unknown: {other:?}"),
                }
            }
            // As the loader reads it where nothing is said.
            let takes_some = matches!(node.join.strategy, Strategy::FirstSuccess | Strategy::Quorum(_));
            if takes_some && !says_fail && node.join.on_failure == OnFailure::Fail {
                node.join.on_failure = OnFailure::Ignore;
            }
            plan.nodes.push(node);
            for target in targets.split_whitespace() {
                let (to, label) = match target.split_once(':') {
                    Some((label, to)) => (to, Some(label.to_owned())),
                    None => (target, None),
                };
                plan.edges.push(NewEdge { from: id.clone(), to: to.into(), label, takes_errors: false });
            }
        }
        Self { graph: plan.graph(), over: plan.over, fixed: BTreeMap::new(), seed: None }
    }

    pub fn with(mut self, node: &str, fixed: Fixed) -> Self {
        self.fixed.insert(node.to_owned(), fixed);
        self
    }

    /// With the random outcomes of [`Self::random`] where nothing is fixed.
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    pub fn fails(self, node: &str) -> Self {
        self.with(node, Fixed::Fails)
    }

    /// The first start of the graph.
    pub fn start(&self) -> &NodeId {
        &self.graph.nodes().iter().find(|node| node.role == Role::Start).unwrap().id
    }

    /// How `node` ends in the task of this name with this input.
    pub fn act(&self, task: &str, node: &NodeId, input: &Value) -> Act {
        let fixed = self.fixed.get(&format!("{task}@{node}")).or_else(|| self.fixed.get(node.as_str()));
        let dice = self.seed.map(|seed| hash(&(seed, task, node.as_str())));
        let status = match (fixed, dice) {
            (Some(Fixed::Fails), _) => Status::Failure,
            (Some(Fixed::IsPartial), _) => Status::Partial,
            (Some(_), _) | (None, None) => Status::Success,
            (None, Some(dice)) => match dice % 16 {
                0 | 1 => Status::Failure,
                2 => Status::Partial,
                _ => Status::Success,
            },
        };
        let role = self.graph.node(node).unwrap().role;
        let number = match (fixed, dice) {
            (Some(Fixed::Elements(elements)), _) => *elements,
            (_, Some(dice)) => (dice >> 8) as u32 % 4,
            _ => 2,
        };
        let splits = role == Role::Split && self.over.contains(node) && status != Status::Failure;
        let elements = splits.then_some(number);
        // The output tells what the input was, so that one that differs is seen in all that follows.
        let mut output = json!({ "node": node, "of": hash(&without_errors(input).to_string()) });
        if role == Role::Decision {
            let out = &self.graph.node(node).unwrap().out;
            let edge = match (fixed, dice) {
                (Some(Fixed::Selects(edge)), _) => edge,
                // One in some twenty selects nothing that there is.
                (_, Some(dice)) => {
                    out.get((dice >> 16) as usize % (out.len() * 10 + 1) / 10).map_or("?", |edge| edge.to.as_str())
                }
                _ => out[0].to.as_str(),
            };
            output["selected_edge"] = json!(edge);
        }
        if status == Status::Failure {
            output = Value::Null;
        }
        Act { status, output, elements }
    }
}

/// A value without the messages of errors in it: those are for people.
pub fn without_errors(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(without_errors).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| *name != "error");
            Value::Object(fields.map(|(name, value)| (name.clone(), without_errors(value))).collect())
        }
        other => other.clone(),
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
