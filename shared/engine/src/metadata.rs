//! The code and configuration that a run was made with (spec 002 §10.2), so that they can be verified exactly later.
//!
//! The engine's version and the fingerprints of its adapters are written down when the task is made. All else follows from
//! the bundle of manifests, which is kept under its hash and never changes.

use crate::{provider::BoundProviders, secret::FlowSecrets};
use domain::{
    Sha256, TaskConfig, TaskId, Timestamp, WorkspaceId,
    task::{FlowRef, Replay},
};
use flow::{
    Flow,
    adapters::{AdapterKind, Adapters, Fingerprint},
    canonical,
    flow::{Op, ToolTarget},
    manifest::{EngineMetadata, PluginKind},
};
use ports::{Expect, Key, Result, Table, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The version of this engine.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The revision of the events that logs hold.
const EVENTS: u32 = 1;

/// The code and configuration that a run was made with. Immutable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMetadata {
    /// The task.
    pub task_id: TaskId,
    /// The engine.
    pub engine: Engine,
    /// The flow, with the hash of all its manifests together.
    pub flow: FlowRef,
    /// The SHA-256 of every manifest, by its path in the flow's folder.
    pub manifests: BTreeMap<String, Sha256>,
    /// The revisions of the schemas: the SHA-256 of each, independent of the order of its keys.
    pub schemas: BTreeMap<String, Sha256>,
    /// The declarations of `engine_metadata.yaml`: the flow's own version, its authors, the engine that it is for and its names
    /// for the revisions of its schemas.
    #[serde(default, skip_serializing_if = "DeclaredMetadata::is_empty")]
    pub declared: DeclaredMetadata,
    /// The adapters behind the flow's models and tools.
    pub adapters: Vec<Fingerprint>,
    /// The labels of `engine_metadata.yaml`, which every run records.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub labels: Map<String, Value>,
    /// The SHA-256 of its input, independent of the order of its keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Sha256>,
    /// The task that it is a re-run of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// When it was made.
    pub started_at: Timestamp,
}

/// The author's own statements about a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeclaredMetadata {
    /// The flow's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The flow's own version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_version: Option<String>,
    /// The range of engines that it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,
    /// Its authors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// The flow's names for the revisions of its schemas, by schema.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub schema_revisions: BTreeMap<String, String>,
}

impl DeclaredMetadata {
    fn of(said: &EngineMetadata) -> Self {
        let EngineMetadata { name, flow_version, engine_version, authors, schema_revisions, .. } = said.clone();
        Self { name, flow_version, engine_version, authors, schema_revisions }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The engine that made a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The revision of the events in its logs.
    pub events: u32,
}

impl Default for Engine {
    /// This one.
    fn default() -> Self {
        Self { name: "buildscale".into(), version: VERSION.into(), events: EVENTS }
    }
}

/// The record that is written when a task is made.
#[derive(Serialize, Deserialize)]
struct Record {
    engine: Engine,
    adapters: Vec<Fingerprint>,
    input: Sha256,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replay: Option<Replay>,
    started_at: Timestamp,
}

/// The key of the record of a root task.
pub(crate) fn key(workspace: WorkspaceId, task: TaskId) -> Key {
    Key::new(partition(workspace), task.to_string())
}

/// The partition of the records of a workspace's root tasks.
pub(crate) fn partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/runs")
}

/// The record to write along with a root task that is made. Written once.
pub fn record(config: &TaskConfig, flow: &Flow, default_model: Option<&str>) -> Write {
    let record = Record {
        engine: Engine::default(),
        adapters: adapters_of(flow, default_model),
        input: canonical::hash(&config.input),
        replay: config.replay.clone(),
        started_at: config.created_at,
    };
    let body = serde_json::to_string(&record).unwrap_or_default();
    Write::put(key(config.workspace, config.task), body, Expect::Absent)
}

/// The fingerprints of the adapters that a flow uses: as it configures them, or as they come.
fn adapters_of(flow: &Flow, default_model: Option<&str>) -> Vec<Fingerprint> {
    let all = Adapters::builtin();
    let settings = &flow.settings;
    let bound = BoundProviders::of(&all, &settings.providers, &settings.credentials, &FlowSecrets::default());
    let mut found = bound.map(|bound| bound.fingerprints().to_vec()).unwrap_or_default();
    let targets = flow.tools.values().map(|tool| &tool.target);
    let mut names: BTreeSet<(AdapterKind, &str)> = targets
        .map(|target| match target {
            ToolTarget::Builtin(_) => (AdapterKind::Tool, "builtin"),
            ToolTarget::Function(_) => (AdapterKind::Tool, "function"),
            ToolTarget::Command(_) => (AdapterKind::Tool, "command"),
        })
        .collect();
    names.extend(flow.nodes.values().filter_map(|node| match node.op {
        Op::Function(_) => Some((AdapterKind::Tool, "function")),
        Op::Command(_) => Some((AdapterKind::Tool, "command")),
        _ => None,
    }));
    let models = flow.agents.values().filter_map(|agent| {
        // A persona may name a model, which is known when its agent is asked.
        let default = default_model.filter(|_| agent.persona.is_none());
        agent.model.as_deref().or(default)?.split('/').next()
    });
    names.extend(models.map(|provider| (AdapterKind::Model, provider)));
    names.extend(settings.plugins.iter().map(|plugin| match plugin.kind {
        PluginKind::JsonLines => (AdapterKind::Sink, "jsonl"),
        PluginKind::Otlp => (AdapterKind::Sink, "otlp"),
        PluginKind::Webhook => (AdapterKind::Sink, "webhook"),
    }));
    let is_there = |found: &[Fingerprint], each: &Fingerprint| found.iter().any(|one| one.id == each.id);
    for each in all.fingerprints() {
        if names.contains(&(each.kind, each.adapter.as_str())) && !is_there(&found, &each) {
            found.push(each);
        }
    }
    found.sort();
    found
}

/// The metadata of a root task; none when it was made without.
pub(crate) async fn read(
    table: &dyn Table,
    flow: &Flow,
    workspace: WorkspaceId,
    task: TaskId,
) -> Result<Option<RunMetadata>> {
    let Some(item) = table.get(&key(workspace, task)).await? else { return Ok(None) };
    let record: Record = serde_json::from_str(&item.body).map_err(|error| ports::Error::Damaged(error.to_string()))?;
    let Record { engine, adapters, input, replay, started_at } = record;
    let manifests = flow.bundle.iter().map(|(path, text)| (path.clone(), Sha256::of(text.as_bytes()))).collect();
    let schemas = flow.schemas.iter();
    let schemas = schemas.map(|(name, schema)| (name.clone(), schema.revision())).collect();
    Ok(Some(RunMetadata {
        task_id: task,
        engine,
        flow: flow.reference.clone(),
        manifests,
        schemas,
        adapters,
        declared: DeclaredMetadata::of(&flow.settings.engine_metadata),
        labels: flow.settings.engine_metadata.metadata.clone(),
        input: Some(input),
        replay,
        started_at,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::load::{KnownNames, load};

    const WORKFLOW: &str = "
nodes:
  - {id: s, kind: deterministic, role: start, context: none}
  - {id: a, kind: agent, role: linear, agent_id: a, context: none}
  - {id: e, kind: deterministic, role: exit, context: none}
edges: [{from: s, to: a}, {from: a, to: e}]
";

    #[test]
    fn s10_2_the_adapter_of_an_agent_that_names_no_model_is_that_of_the_installation() {
        let adapters = |agent: &str| -> Vec<String> {
            let files = [("workflow.yaml", WORKFLOW.to_owned()), ("agents.yaml", format!("agents: [{agent}]"))];
            let files = files.map(|(path, text)| (path.to_owned(), text));
            let flow = load("test", files.into(), &KnownNames::default()).unwrap_or_else(|report| panic!("{report}"));
            adapters_of(&flow, Some("openai/gpt")).into_iter().map(|each| each.id).collect()
        };
        assert_eq!(adapters("{id: a}"), ["openai"]);
        assert_eq!(adapters("{id: a, llm: anthropic/claude}"), ["anthropic"]);
        assert!(adapters("{id: a, persona: writer}").is_empty(), "its persona may name one");
    }

    #[test]
    fn with_what_a_run_was_made_is_read_for_ever() {
        let record = Record {
            engine: Engine { name: "buildscale".into(), version: "0.1.0".into(), events: 1 },
            adapters: Adapters::builtin().fingerprints().into_iter().filter(|each| each.adapter == "builtin").collect(),
            input: Sha256::of(b"input"),
            replay: Some(Replay { of: TaskId(uuid::Uuid::from_u128(7)), from: Some("writer".into()), retry: true }),
            started_at: Timestamp::from_millis(1_767_225_600_042),
        };
        testkit::golden::check(env!("CARGO_MANIFEST_DIR"), "run_metadata", &record);
    }
}
