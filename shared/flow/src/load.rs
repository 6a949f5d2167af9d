//! From a folder of manifests to a [`Flow`], or to a report of all its faults (spec 002 §8).
//!
//! ```text
//!   files ─ 1 load_manifests ─ 2 validate_references ─ 3 construct_nodes ─ 4 check_graph ─┐
//!                                                                                         │
//!   Flow or Report ─ 8 finish ─ 7 load_plugins ─ 6 register_tools ─ 5 initialise_memory ──┘
//! ```
//!
//! No step stops at a fault. A wrong value is reported and taken out, and the rest is looked at by the following steps; an id
//! that was there is remembered although its entry was taken out, so that one mistake is one fault. Loading is pure: it reads
//! no file, no clock and no environment, so the same files are the same flow everywhere.

mod case_answers;
mod checks;
mod components;
mod documents;
mod expressions;
mod http_tools;
mod ineffective_keys;
mod known_names;
mod metric_checks;
mod nodes;
mod plugins;
mod references;
mod report;
mod schema_check;
mod secrets;
mod tools;
mod tree;
mod triggers;

pub use crate::{
    bundle::{hash, is_part, read_folder},
    report::{ManifestFault, Report},
};
pub use checks::TAMPERED;
pub use known_names::{KnownNames, SERVED};
pub use triggers::triggers_of_workflow;

use crate::{
    Graph,
    flow::{Agent, Flow, FlowLimits, Memory, Node, PolicyRule, Schema, ToolBinding},
    graph::{FaultAt, GraphFault, GraphFaultKind, NewEdge, NewNode},
    manifest::Settings,
};
use documents::Documents;
use domain::{NodeId, task::FlowRef};
use report::{Faults, begin_hints, meant, nearest};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// The most nodes and edges of a flow. Its graph has a bit per pair of nodes, which says whether one leads to the other.
const MOST_NODES: usize = 10_000;
const MOST_EDGES: usize = 20_000;

/// Loads a flow from the texts of its files, by their paths in the folder. `name` is what tasks call it by: the folder's name.
///
/// # Errors
/// Everything that is wrong, sorted by place.
pub fn load(name: &str, files: BTreeMap<String, String>, known: &KnownNames) -> Result<Flow, Report> {
    load_as(name, files, known, false)
}

fn load_as(name: &str, files: BTreeMap<String, String>, known: &KnownNames, is_accepted: bool) -> Result<Flow, Report> {
    begin_hints();
    let mut loader = Loader::load_manifests(&files, known, is_accepted);
    loader.check_size();
    loader.check_package(&files);
    loader.validate_references();
    let nodes = loader.construct_nodes();
    loader.check_ineffective_keys();
    let graph = loader.check_graph();
    let memory = loader.initialise_memory();
    let tools = loader.register_tools();
    let settings = loader.load_plugins();
    loader.finish(name, files, graph, nodes, memory, tools, settings)
}

impl Flow {
    /// The flow of a bundle, as [`Flow::bundle`] keeps it: the same bundle is the same flow. A bundle was accepted when tasks were
    /// made of it, so it is only checked as far as running it requires.
    ///
    /// # Errors
    /// All faults: something that it needs may have been removed.
    pub fn from_bundle(name: &str, bundle: BTreeMap<String, String>, known: &KnownNames) -> Result<Self, Report> {
        load_as(name, bundle, known, true)
    }
}

/// A folder while it is loaded.
struct Loader<'a> {
    known: &'a KnownNames,
    faults: Faults,
    docs: Documents,
    schemas: HashMap<String, Arc<Schema>>,
}

impl<'a> Loader<'a> {
    /// Step 1: reads every file, checks its shape, and compiles the schemas.
    fn load_manifests(files: &BTreeMap<String, String>, known: &'a KnownNames, is_accepted: bool) -> Self {
        let mut faults = Faults::new(is_accepted);
        let (docs, schemas) = Documents::read(files, &mut faults);
        Self { known, faults, docs, schemas }
    }

    /// Refuses a flow with too many nodes or edges. The other checks do not look at them then.
    fn check_size(&mut self) {
        let workflow = &self.docs.workflow.value;
        let sizes = [("nodes", workflow.nodes.len(), MOST_NODES), ("edges", workflow.edges.len(), MOST_EDGES)];
        let is_above = |(_, count, most): &(&str, usize, usize)| count > most;
        if self.faults.is_accepted() || !sizes.iter().any(is_above) {
            return;
        }
        for (key, count, most) in sizes.into_iter().filter(is_above) {
            let message = format!("the flow has {count} {key}; {most} are the most");
            let at = self.docs.workflow.at(&format!("/{key}"));
            self.faults.refuse(at, "too_many", message, "a split makes many tasks of a few nodes");
        }
        self.docs.workflow.listed = false;
        self.docs.workflow.value.nodes.clear();
        self.docs.workflow.value.edges.clear();
    }

    /// Step 4: builds the graph; its faults get the places of their nodes and edges. Nodes and edges that could not be read
    /// are not reported again.
    fn check_graph(&mut self) -> Graph {
        if !self.docs.workflow.listed {
            return Graph::default();
        }
        let has_edges = self.docs.workflow.has("edges");
        let (nodes, node_places) = self.new_nodes();
        let (edges, edge_places) = self.new_edges();
        let ids: Vec<NodeId> = nodes.iter().map(|node| node.id.clone()).collect();
        let built = match self.faults.is_accepted() {
            true => Graph::build_accepted(nodes.clone(), edges.clone()),
            false => Graph::build(nodes.clone(), edges.clone()),
        };
        let faults = match built {
            Ok(graph) => {
                self.check_quorums(&graph);
                self.check_reads(&graph);
                return graph;
            }
            Err(faults) => self.without_consequences(faults, nodes, edges),
        };
        for fault in faults.into_iter().filter(|fault| has_edges || !fault.kind.is_about_edges()) {
            let own_role = |place: &usize| {
                let node = node_places.get(*place).and_then(|index| self.docs.workflow.value.nodes.get(*index));
                node.is_some_and(|node| node.role.is_some())
            };
            let pointer = match fault.at {
                FaultAt::Graph => "/nodes".into(),
                // The role is a guess, because the written one is none; that has its own fault.
                FaultAt::Node(place) if matches!(fault.kind, GraphFaultKind::Degree { .. }) && !own_role(&place) => {
                    continue;
                }
                FaultAt::Node(place) => {
                    let key = match fault.kind {
                        GraphFaultKind::Degree { .. } => "role",
                        GraphFaultKind::AlwaysFail { .. } => "always_fail",
                        GraphFaultKind::OfWhat { .. } | GraphFaultKind::OfNotAbove { .. } => "merge/of",
                        _ => "id",
                    };
                    format!("/nodes/{}/{key}", node_places.get(place).copied().unwrap_or_default())
                }
                FaultAt::Edge(place) => {
                    let index = edge_places.get(place).copied().unwrap_or_default();
                    let edge = self.docs.workflow.value.edges.get(index);
                    let key = match &fault.kind {
                        GraphFaultKind::UnknownEnd(id)
                            if edge.is_some_and(|edge| edge.from.as_deref() == Some(id.as_str())) =>
                        {
                            "/from"
                        }
                        GraphFaultKind::UnknownEnd(_) => "/to",
                        GraphFaultKind::DuplicateLabel { .. } => "/label",
                        _ => "",
                    };
                    format!("/edges/{index}{key}")
                }
            };
            let meant = match &fault.kind {
                GraphFaultKind::UnknownEnd(id) | GraphFaultKind::OfWhat { of: id, .. } => {
                    nearest(id.as_str(), ids.iter().map(NodeId::as_str), "workflow.yaml")
                }
                _ => None,
            };
            let hint = meant.unwrap_or_else(|| fault.kind.hint().into());
            let at = self.docs.workflow.at(&pointer);
            self.faults.add(at, fault.kind.code(), fault.to_string(), hint);
        }
        Graph::default()
    }

    /// Step 8: the flow, if nothing was wrong.
    #[expect(clippy::too_many_arguments, reason = "one argument for what each step made")]
    fn finish(
        self,
        name: &str,
        mut files: BTreeMap<String, String>,
        graph: Graph,
        nodes: HashMap<NodeId, Node>,
        memory: Memory,
        tools: HashMap<String, ToolBinding>,
        settings: Settings,
    ) -> Result<Flow, Report> {
        let default_start = self.default_start();
        let (Some(default_start), true) = (default_start, self.faults.is_empty()) else {
            return Err(self.faults.report());
        };
        files.retain(|path, _| is_part(path));
        let workflow = &self.docs.workflow.value;
        let is_checked = !self.faults.is_accepted();
        Ok(Flow {
            reference: FlowRef { name: name.into(), hash: hash(&files) },
            description: workflow.description.clone(),
            default_start,
            agents: self.agents(),
            policy: self.policy(),
            limits: self.limits(),
            triggers: self.triggers(),
            graph,
            nodes,
            tools,
            memory,
            settings,
            bundle: Arc::new(files),
            is_checked,
            notes: self.faults.report().notes,
            schemas: self.schemas,
            http_tools: self.docs.http_tools,
        })
    }

    /// The faults without those that only follow from another one: an edge with a mistyped end leaves a node that no edge leads
    /// to, and an edge that closes a cycle is one too many. Faults that remain when these are corrected are told, too.
    fn without_consequences(
        &self,
        faults: Vec<GraphFault>,
        nodes: Vec<NewNode>,
        mut edges: Vec<NewEdge>,
    ) -> Vec<GraphFault> {
        let ids: Vec<String> = nodes.iter().map(|node| node.id.to_string()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut dropped = BTreeSet::new();
        let mut unsure = self.docs.workflow.value.nodes.iter().any(|node| node.id.is_none());
        for fault in &faults {
            match (&fault.kind, fault.at) {
                (GraphFaultKind::UnknownEnd(id), FaultAt::Edge(place)) => {
                    let near = meant(id.as_str(), &ids).map(NodeId::from);
                    unsure |= near.is_none();
                    let Some(edge) = edges.get_mut(place) else { continue };
                    let near = near.unwrap_or_else(|| id.clone());
                    let end = if edge.from == *id { &mut edge.from } else { &mut edge.to };
                    *end = near;
                }
                (GraphFaultKind::Cycle(_), FaultAt::Edge(place)) => drop(dropped.insert(place)),
                _ => {}
            }
        }
        let has_unreadable = self.docs.workflow.value.nodes.iter().any(|node| node.id.is_none());
        let mended: Vec<NewEdge> =
            edges.into_iter().enumerate().filter(|(place, _)| !dropped.contains(place)).map(|(_, edge)| edge).collect();
        let left = Graph::build(nodes, mended).err().unwrap_or_default();
        let follows = |fault: &GraphFault| match fault.kind {
            GraphFaultKind::UnknownEnd(_) => has_unreadable,
            GraphFaultKind::Unreachable(_) | GraphFaultKind::NoExit(_) | GraphFaultKind::Degree { .. } => {
                unsure || !left.contains(fault)
            }
            _ => false,
        };
        faults.into_iter().filter(|fault| !follows(fault)).collect()
    }

    /// The nodes that have an id, with their places in the manifest.
    fn new_nodes(&self) -> (Vec<NewNode>, Vec<usize>) {
        let nodes = self.docs.workflow.value.nodes.iter().enumerate();
        nodes.filter_map(|(place, node)| Some((self.new_node(node)?, place))).unzip()
    }

    /// The edges that have both ends, with their places in the manifest.
    fn new_edges(&self) -> (Vec<NewEdge>, Vec<usize>) {
        let edges = self.docs.workflow.value.edges.iter().enumerate();
        edges
            .filter_map(|(place, edge)| {
                let (from, to) = (edge.from.as_deref()?.into(), edge.to.as_deref()?.into());
                let takes_errors = self.takes_errors(edge);
                Some((NewEdge { from, to, label: edge.label.clone(), takes_errors }, place))
            })
            .unzip()
    }

    fn agents(&self) -> HashMap<String, Agent> {
        let agents = self.docs.agents.value.agents.iter();
        agents
            .map(|agent| (agent.id.clone(), components::agent(agent, self.known.limits.unwrap_or_default())))
            .collect()
    }

    fn policy(&self) -> Vec<PolicyRule> {
        self.docs.policy.value.rules.iter().map(components::policy_rule).collect()
    }

    fn limits(&self) -> FlowLimits {
        components::limits(&self.docs.execution.value, &self.docs.providers.value.providers)
    }
}
