//! `metrics.yaml`, `artifacts.yaml` and `plugins.yaml`: records of runs, and their receivers. None of it changes a route.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The metrics of this flow's tasks, as `/metrics` shows them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Metrics {
    /// The version of this file; `buildscale_flow_metrics_info` shows it.
    pub version: Value,
    /// Whether this flow's tasks are measured.
    pub enabled: bool,
    /// The metrics; all by default, with their usual buckets and labels.
    pub metrics: Vec<MetricManifest>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { version: Value::Null, enabled: true, metrics: Vec::new() }
    }
}

/// One metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricManifest {
    /// Its name: `tasks`, `tasks_begun`, `tasks_finished`, `nodes`, `retries`, `denials`, `outputs_rejected`, `children`, `tools`,
    /// `model_calls`, `tokens`, `cost`, `task_duration`, `node_duration`, `queue_latency`, `tool_duration`, `context_tokens`.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its meaning for this flow; `buildscale_flow_metrics_info` shows it.
    pub description: Option<String>,
    /// Its kind: `counter`, `gauge` or `histogram`. A kind that the metric does not have is refused.
    #[serde(rename = "type")]
    pub sort: Option<String>,
    /// Whether it is measured.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// For a histogram: the upper bounds of its buckets, rising; of durations in seconds. The usual ones when nothing is said.
    #[serde(default)]
    pub buckets: Vec<f64>,
    /// Labels that every value of this flow has: texts, numbers, true or false.
    #[serde(default)]
    pub labels: Map<String, Value>,
}

/// The files to keep under `/tasks/<id>/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Artifacts {
    /// The version of this file, for people.
    pub version: Value,
    /// Whether anything is.
    pub enabled: bool,
    /// The outputs of nodes.
    pub outputs: bool,
    /// The results of tools.
    pub tool_results: bool,
    /// Metrics and events.
    pub telemetry: bool,
    /// The outputs of these nodes only; of all when nothing is said.
    pub nodes: Vec<String>,
    /// Days until they go; never when nothing is said.
    #[schemars(range(min = 1))]
    pub retention_days: Option<u32>,
}

impl Default for Artifacts {
    fn default() -> Self {
        Self {
            version: Value::Null,
            enabled: true,
            outputs: true,
            tool_results: true,
            telemetry: true,
            nodes: Vec::new(),
            retention_days: None,
        }
    }
}

/// The observers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["plugins"]))]
pub struct Plugins {
    /// The version of this file, for people.
    pub version: Value,
    /// The observers.
    pub plugins: Vec<Plugin>,
}

/// One observer. It reads events; it can change nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plugin {
    /// Its id.
    #[schemars(length(min = 1))]
    pub id: String,
    /// Its name, for people.
    pub name: Option<String>,
    /// Its purpose.
    pub description: Option<String>,
    /// The kind of built-in observer.
    #[serde(rename = "type")]
    pub kind: PluginKind,
    /// Whether it is told anything.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The types of events that it is told, with `*`; all when nothing is said.
    #[serde(default)]
    pub events: Vec<String>,
    /// Its settings, such as `url` or `path`. Secrets only as references: `{env: NAME}`, `{file: path}`,
    /// `{secret: name}`.
    #[serde(default)]
    pub config: Map<String, Value>,
}

/// The built-in observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PluginKind {
    /// One line of JSON an event, appended to a file.
    JsonLines,
    /// OTLP over HTTP.
    Otlp,
    /// A signed POST an event, tried again when it fails.
    Webhook,
}

/// The type of a key of an observer's `config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigKey {
    /// An address of HTTP.
    Address,
    /// A text.
    Text,
    /// A whole number.
    Number,
    /// True or false.
    Flag,
    /// A reference to a secret.
    Secret,
    /// References to secrets, by name.
    Secrets,
}

impl PluginKind {
    /// The keys of `config`, each with the kind of its value, and whether it is required.
    pub fn keys(self) -> &'static [(&'static str, ConfigKey, bool)] {
        match self {
            Self::JsonLines => &[("path", ConfigKey::Text, false), ("max_bytes", ConfigKey::Number, false)],
            Self::Webhook => &[("url", ConfigKey::Address, true), ("secret", ConfigKey::Secret, false)],
            Self::Otlp => &[
                ("endpoint", ConfigKey::Address, true),
                ("headers", ConfigKey::Secrets, false),
                ("service_name", ConfigKey::Text, false),
                ("content", ConfigKey::Flag, false),
            ],
        }
    }
}

fn yes() -> bool {
    true
}
