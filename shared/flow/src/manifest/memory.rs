//! `memory.yaml` and `persistent_memory.yaml`: the memory that nodes are given.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The stores and context profiles of a flow. All stores are kept in the table of the installation. One key `memory` around
/// everything is good, too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryManifest {
    /// The version of this file, for people.
    pub version: Value,
    /// The memory of one task and its descendants.
    pub task_store: Option<StoreConfig>,
    /// The memory of all tasks of this flow in a workspace.
    pub project_store: Option<StoreConfig>,
    /// The memory of a workspace.
    pub global_store: Option<StoreConfig>,
    /// The contexts that nodes can name.
    pub context_profiles: Vec<ProfileManifest>,
}

/// The settings of a store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// How it is kept: `table`. Names that mean another place of this machine elsewhere (`in_memory`, `file`, `sqlite`) are noted;
    /// any other is refused.
    #[serde(rename = "type")]
    pub sort: Option<String>,
    /// The most items that nodes are given of it: the newest.
    #[schemars(range(min = 1))]
    pub max_items: Option<u64>,
    /// Without effect here, and noted so.
    pub config: Option<Map<String, Value>>,
}

/// One context that a node can name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileManifest {
    /// Its id.
    #[schemars(length(min = 1))]
    pub id: String,
    /// Its name, for people.
    pub name: Option<String>,
    /// Its purpose.
    pub description: Option<String>,
    /// Its budget.
    #[schemars(range(min = 1))]
    pub max_tokens: u64,
    /// The order in which items are chosen; `recency` when nothing is said.
    pub retrieval_policy: Option<Retrieval>,
    /// The stores that are searched.
    pub sources: Vec<SourceManifest>,
}

/// A store that is searched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceManifest {
    /// In which store.
    pub store: StoreKind,
    /// Only items with one of these tags; all when nothing is said.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// How long memory is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PersistentMemory {
    /// The version of this file, for people.
    pub version: Value,
    /// One entry per store.
    pub stores: Vec<PersistentStore>,
}

/// How long the items of a store are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PersistentStore {
    /// The store.
    pub store: StoreKind,
    /// The kind of store, as `type` in memory.yaml.
    pub backend: Option<String>,
    /// Days until an item goes, from when it was remembered; never when nothing is said.
    #[schemars(range(min = 1))]
    pub retention_days: Option<u32>,
    /// The most items; the oldest go first.
    #[schemars(range(min = 1))]
    pub max_items: Option<u64>,
    /// Without effect here, and noted so.
    pub config: Option<Map<String, Value>>,
}

/// The layers of memory (spec 002 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreKind {
    /// Of one root task and its descendants.
    Task,
    /// Of the flow's project: all tasks of one flow in a workspace.
    Project,
    /// Of the workspace.
    Global,
}

impl StoreKind {
    /// The layers, the nearest first.
    pub const ALL: [Self; 3] = [Self::Task, Self::Project, Self::Global];

    /// As manifests, policies and contexts name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Project => "project",
            Self::Global => "global",
        }
    }
}

/// How items of memory are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Retrieval {
    /// The newest first.
    Recency,
    /// Those that are nearest in meaning to the task's input, by the embedding model of the installation. Where none is configured, those that share
    /// the most telling words with it (BM25), and the check notes so.
    Semantic,
    /// Both, ranked together.
    Hybrid,
}
