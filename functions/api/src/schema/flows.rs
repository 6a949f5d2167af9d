//! The shapes of flows, their faults, and evaluations.

use flow::{
    flow::{ContextUse, Op},
    graph::Role as GraphRole,
    load::Report,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;

/// A flow in a list.
#[derive(Serialize, ToSchema)]
pub struct FlowSummary {
    /// The name of its folder in `/system/flows`.
    pub name: String,
    /// The SHA-256 of its manifests, where they have no fault.
    pub hash: Option<String>,
    /// Its purpose, in the words of its manifest.
    pub description: Option<String>,
    /// How many nodes it has; 0 for one with faults.
    pub nodes: u64,
    /// How many faults it has.
    pub faults: u64,
    /// Whether it is one in the box, which the workspace has no folder of.
    pub built_in: Option<bool>,
    /// The files whose new versions start a task of it.
    pub on: Option<Vec<FlowTrigger>>,
}

/// Files whose new versions start a task of a flow: those that fulfil all conditions.
#[derive(Serialize, ToSchema)]
pub struct FlowTrigger {
    /// The pattern of their paths.
    #[schema(example = "/projects/*/plan.md")]
    pub path: String,
    /// The `status` in their front matter.
    pub status: Option<String>,
    /// Other keys of the front matter, with their values.
    #[schema(value_type = Option<Object>)]
    pub front_matter: Option<Map<String, Value>>,
    /// `created` for first versions only, `updated` for later ones only.
    pub event: Option<String>,
}

/// The flows of a workspace.
#[derive(Serialize, ToSchema)]
pub struct Flows {
    /// The flows, by name.
    pub flows: Vec<FlowSummary>,
}

/// The role of a node.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeRole {
    /// Normalises the input.
    Start,
    /// Transforms.
    Linear,
    /// Selects one of its edges.
    Decision,
    /// Makes a clone an edge.
    Branch,
    /// Makes subtasks.
    Split,
    /// Waits for those that come to it.
    Merge,
    /// Presents the task's status.
    Exit,
}

impl From<GraphRole> for NodeRole {
    fn from(role: GraphRole) -> Self {
        match role {
            GraphRole::Start => Self::Start,
            GraphRole::Linear => Self::Linear,
            GraphRole::Decision => Self::Decision,
            GraphRole::Branch => Self::Branch,
            GraphRole::Split => Self::Split,
            GraphRole::Merge => Self::Merge,
            GraphRole::Exit => Self::Exit,
        }
    }
}

/// The operation of a node.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeOp {
    /// Gives its input back.
    Identity,
    /// An expression.
    Expr,
    /// A template.
    Template,
    /// One tool.
    Tool,
    /// A command in the sandbox.
    Command,
    /// A registered function.
    Function,
    /// An agent.
    Agent,
    /// People.
    Ask,
}

impl From<&Op> for NodeOp {
    fn from(op: &Op) -> Self {
        match op {
            Op::Identity => Self::Identity,
            Op::Expr(_) => Self::Expr,
            Op::Template(_) => Self::Template,
            Op::Tool { .. } => Self::Tool,
            Op::Command(_) => Self::Command,
            Op::Function(_) => Self::Function,
            Op::Agent { .. } => Self::Agent,
            Op::Ask(_) => Self::Ask,
        }
    }
}

/// A node of a flow.
#[derive(Serialize, ToSchema)]
pub struct FlowNode {
    /// Its id.
    pub id: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its role in the graph.
    pub role: NodeRole,
    /// Its operation.
    pub op: NodeOp,
    /// Its agent, for an agent node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The part of memory that it is given: `none`, `global`, or the name of a profile.
    pub context: String,
    /// The tools that it may use.
    pub tools: Vec<String>,
    /// The schema of its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_in: Option<String>,
    /// The schema of its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_out: Option<String>,
    /// Whether the task goes on when it fails.
    pub continue_on_failure: bool,
    /// Whether it makes a failure of every task that reaches it.
    pub always_fail: bool,
}

/// An edge of a flow.
#[derive(Serialize, ToSchema)]
pub struct FlowEdge {
    /// The node that it leaves.
    pub from: String,
    /// The node that it reaches.
    pub to: String,
    /// Its name for decisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A flow.
#[derive(Serialize, ToSchema)]
pub struct Flow {
    /// The name of its folder.
    pub name: String,
    /// The SHA-256 of its manifests.
    pub hash: String,
    /// The start node of tasks that name none.
    pub default_start: String,
    /// The JSON Schema of that node's input, where it has one: forms are made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub input_schema: Option<Value>,
    /// Its nodes, in the order of the manifest.
    pub nodes: Vec<FlowNode>,
    /// Its edges, in the order of the manifest, node by node.
    pub edges: Vec<FlowEdge>,
    /// The profiles of its `cli_profiles.yaml`, the default one first.
    #[schema(value_type = Vec<Object>)]
    pub profiles: Vec<Value>,
    /// The files whose new versions start a task of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<FlowTrigger>, required = false)]
    pub on: Vec<flow::trigger::Trigger>,
}

impl Flow {
    /// The shape of a loaded flow.
    pub(crate) fn of(flow: &flow::Flow) -> Self {
        let node = |shape: &flow::graph::GraphNode| {
            let node = flow.nodes.get(&shape.id);
            FlowNode {
                id: shape.id.to_string(),
                name: node.and_then(|node| node.name.clone()),
                role: shape.role.into(),
                op: node.map_or(NodeOp::Identity, |node| NodeOp::from(&node.op)),
                agent: node.and_then(|node| match &node.op {
                    Op::Agent { agent, .. } => Some(agent.clone()),
                    _ => None,
                }),
                context: match node.map(|node| &node.context) {
                    None | Some(ContextUse::None) => "none".into(),
                    Some(ContextUse::Global) => "global".into(),
                    Some(ContextUse::Profile(profile)) => profile.clone(),
                },
                tools: node.map(|node| node.tools.clone()).unwrap_or_default(),
                schema_in: node.and_then(|node| node.schema_in.clone()),
                schema_out: node.and_then(|node| node.schema_out.clone()),
                continue_on_failure: shape.continue_on_failure,
                always_fail: shape.always_fail,
            }
        };
        let edges = |shape: &flow::graph::GraphNode| {
            let from = shape.id.to_string();
            let edge = move |edge: &flow::graph::Edge| FlowEdge {
                from: from.clone(),
                to: edge.to.to_string(),
                label: edge.label.clone(),
            };
            shape.out.iter().map(edge).collect::<Vec<_>>()
        };
        let profiles = flow.settings.cli_profiles.iter();
        let schema_in = flow.nodes.get(&flow.default_start).and_then(|node| node.schema_in.as_ref());
        let input_schema = schema_in
            .and_then(|name| flow.bundle.get(&format!("schemas/{name}.json")))
            .and_then(|text| serde_json::from_str(text).ok());
        Self {
            name: flow.reference.name.clone(),
            hash: flow.reference.hash.to_string(),
            default_start: flow.default_start.to_string(),
            input_schema,
            nodes: flow.graph.nodes().iter().map(node).collect(),
            edges: flow.graph.nodes().iter().flat_map(edges).collect(),
            profiles: profiles.filter_map(|profile| serde_json::to_value(profile).ok()).collect(),
            on: flow.triggers.clone(),
        }
    }
}

/// Something that is wrong with a flow.
#[derive(Serialize, ToSchema)]
pub struct FlowFault {
    /// The file, by its path in the folder.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The kind of fault, for programs.
    pub code: &'static str,
    /// The fault.
    pub message: String,
    /// The advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// All faults of a flow.
#[derive(Serialize, ToSchema)]
pub struct FlowReport {
    /// Whether nothing is.
    pub ok: bool,
    /// The SHA-256 of its manifests, where nothing is wrong with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The faults, by place.
    pub faults: Vec<FlowFault>,
    /// The keys of the manifests that have no effect here, by place. They are no faults.
    pub notes: Vec<FlowFault>,
}

impl FlowReport {
    /// The report about a flow that was checked, with notes on triggers that it shares with other flows.
    pub(crate) fn of(checked: Result<Arc<flow::Flow>, Report>, shared: Vec<flow::load::ManifestFault>) -> Self {
        let (hash, faults, notes) = match checked {
            Ok(flow) => (Some(flow.reference.hash.to_string()), Vec::new(), [flow.notes.clone(), shared].concat()),
            Err(report) => (None, report.faults, report.notes),
        };
        let fault = |fault: flow::load::ManifestFault| FlowFault {
            file: fault.file,
            line: fault.line,
            column: fault.column,
            code: fault.code,
            message: fault.message,
            hint: Some(fault.hint),
        };
        let told = |faults: Vec<flow::load::ManifestFault>| faults.into_iter().map(fault).collect();
        Self { ok: hash.is_some(), hash, faults: told(faults), notes: told(notes) }
    }
}

/// The JSON Schemas of all manifests.
#[derive(Serialize, ToSchema)]
pub struct FlowSchemas {
    /// The schemas, by the manifests' names without extension.
    #[schema(value_type = Object)]
    pub schemas: Map<String, Value>,
}
