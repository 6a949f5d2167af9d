//! The files that a flow is made of, as types: one per manifest, each with a JSON Schema.
//!
//! The types say what there is; the schema of a type is what the loader checks files against and what editors complete
//! from, so these two cannot disagree. Keys that begin with `x-` are left alone everywhere.

mod agents;
mod config;
mod evaluations;
mod memory;
mod observe;
mod providers;
mod schema;
mod workflow;

pub use agents::{AgentConfig, AgentLimits, AgentManifest, Agents, Root, ToolManifest, ToolPermissions, Tools};
pub use config::{
    Bootstrap, CliProfile, CliProfiles, CustomCommand, Deployment, EngineMetadata, EnvironmentVariable, Execution,
    Fingerprint, InputMapping, Inspector, Policies, PolicyManifest, PolicyTarget, QueuePolicy, SessionPolicies,
    TaskBudgetManifest, TelemetryOverlay,
};
pub use evaluations::{Assertion, AssertionKind, Case, Evaluations, Suite};
pub use memory::{
    MemoryManifest, PersistentMemory, PersistentStore, ProfileManifest, Retrieval, SourceManifest, StoreConfig,
    StoreKind,
};
pub use observe::{Artifacts, ConfigKey, MetricManifest, Metrics, Plugin, PluginKind, Plugins};
pub use providers::{Auth, AuthSource, Credential, Credentials, ProviderManifest, Providers, SecretReference};
pub use schema::schemas;
pub(crate) use schema::{DECLARED_TOOL, raw as schema_of};
pub use workflow::{
    AskManifest, EdgeManifest, ErrorRouteManifest, KeepManifest, MergeManifest, NodeKind, NodeManifest, OpManifest,
    OpName, OpSpec, QuestionManifest, RememberManifest, RetriesManifest, RetryManifest, SplitManifest, StrategyName,
    Trigger, TriggerEvent, TriggerPattern, Workflow,
};

/// The configuration of a flow beside its graph, its agents, its tools and its memory. Parsed and checked by shape; the
/// users of each part read it here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `providers.yaml`.
    pub providers: Vec<ProviderManifest>,
    /// `provider_credentials.yaml`: references, never values.
    pub credentials: Vec<Credential>,
    /// `plugins.yaml`: observers.
    pub plugins: Vec<Plugin>,
    /// `evaluations.yaml`.
    pub evaluations: Vec<Suite>,
    /// `metrics.yaml`.
    pub metrics: Metrics,
    /// `artifacts.yaml`.
    pub artifacts: Artifacts,
    /// `inspector.yaml`.
    pub inspector: Inspector,
    /// `cli_profiles.yaml`.
    pub cli_profiles: Vec<CliProfile>,
    /// `persistent_memory.yaml`.
    pub persistent_memory: Vec<PersistentStore>,
    /// `engine_metadata.yaml`.
    pub engine_metadata: EngineMetadata,
    /// `deployment.yaml`.
    pub deployment: Option<Deployment>,
    /// The order of tasks when not all can run, of `execution.yaml`.
    pub queue_policy: QueuePolicy,
}

/// The kinds of manifests: the name of the schema, the file names without extension (the first is the one we write), and
/// the key that holds the list where a file is nothing but a list.
pub(crate) const MANIFESTS: &[(&str, &[&str], &str)] = &[
    ("workflow", &["workflow"], "nodes"),
    ("agents", &["agents"], "agents"),
    ("tools", &["tools"], "tools"),
    ("memory", &["memory"], "context_profiles"),
    ("policy", &["policy", "policies"], "rules"),
    ("providers", &["providers"], "providers"),
    ("provider_credentials", &["provider_credentials"], "provider_credentials"),
    ("evaluations", &["evaluations"], "suites"),
    ("metrics", &["metrics"], "metrics"),
    ("artifacts", &["artifacts"], ""),
    ("plugins", &["plugins"], "plugins"),
    ("execution", &["execution", "scheduler"], ""),
    ("inspector", &["inspector"], ""),
    ("cli_profiles", &["cli_profiles"], "profiles"),
    ("persistent_memory", &["persistent_memory"], "stores"),
    ("engine_metadata", &["engine_metadata"], ""),
    ("deployment", &["deployment"], ""),
];
