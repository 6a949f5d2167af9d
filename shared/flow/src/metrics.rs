//! The metrics: their names in `metrics.yaml` and in Prometheus, and the kind of each.

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How many there were up to each bound; of durations in seconds, which are measured in milliseconds.
    Seconds,
    /// The same of tokens.
    Tokens,
    /// The same of bytes.
    Bytes,
}

/// One metric.
#[derive(Debug)]
pub struct Metric {
    /// Its name in `metrics.yaml`.
    pub name: &'static str,
    /// Its name on `/metrics`.
    pub shown: &'static str,
    /// Its kind.
    pub sort: Sort,
    /// Its meaning.
    pub help: &'static str,
    /// The labels that it has by itself.
    pub labels: &'static [&'static str],
}

impl Sort {
    /// How Prometheus and `metrics.yaml` call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Seconds | Self::Tokens | Self::Bytes => "histogram",
        }
    }
}

/// Names one metric per line: constant, name, name on `/metrics`, sort, help, labels.
macro_rules! metrics {
    ($($constant:ident $name:literal $shown:literal $sort:ident $help:literal [$($label:literal),*];)*) => {
        $(#[doc = $help]
        pub static $constant: Metric = Metric {
            name: $name,
            shown: $shown,
            sort: Sort::$sort,
            help: $help,
            labels: &[$($label),*],
        };)*
        /// All of them, in the order in which they are shown.
        pub static ALL: &[&Metric] = &[$(&$constant),*];
    };
}

metrics! {
    TASKS "tasks" "buildscale_tasks" Gauge "Tasks that have not ended, by phase." ["flow", "phase"];
    BEGUN "tasks_begun" "buildscale_tasks_begun_total" Counter "Tasks that began." ["flow", "kind"];
    FINISHED "tasks_finished" "buildscale_tasks_finished_total" Counter "Tasks that ended." ["flow", "status"];
    NODES "nodes" "buildscale_task_nodes_total" Counter "Executions of nodes that ended." ["flow", "node", "status"];
    RETRIES "retries" "buildscale_task_retries_total" Counter "Nodes that were tried again." ["flow", "node"];
    DENIALS "denials" "buildscale_task_denials_total" Counter "Denials by policies." ["flow", "node", "rule"];
    REJECTED "outputs_rejected" "buildscale_task_outputs_rejected_total" Counter "Outputs that did not fit a schema." ["flow", "node"];
    CHILDREN "children" "buildscale_task_children_total" Counter "Clones and subtasks that were made." ["flow", "node"];
    TOOLS "tools" "buildscale_task_tools_total" Counter "Uses of tools." ["flow", "tool", "status"];
    CALLS "model_calls" "buildscale_task_model_calls_total" Counter "Calls of models." ["flow", "provider"];
    TOKENS "tokens" "buildscale_task_tokens_total" Counter "Tokens." ["flow", "node", "provider", "direction"];
    COST "cost" "buildscale_task_cost_usd_total" Counter "US dollars." ["flow", "node", "provider"];
    TASK_DURATION "task_duration" "buildscale_task_duration_seconds" Seconds "How long tasks took." ["flow"];
    NODE_DURATION "node_duration" "buildscale_task_node_duration_seconds" Seconds "How long nodes took." ["flow", "node"];
    QUEUE_LATENCY "queue_latency" "buildscale_task_queue_latency_seconds" Seconds "How long nodes waited in the queue." ["flow"];
    TOOL_DURATION "tool_duration" "buildscale_task_tool_duration_seconds" Seconds "How long tools took." ["flow", "tool"];
    TOOL_QUEUE "tool_queue_latency" "buildscale_task_tool_queue_latency_seconds" Seconds "How long uses of tools waited before they began." ["flow", "tool"];
    TOOL_CPU "tool_cpu" "buildscale_task_tool_cpu_seconds_total" Counter "CPU seconds of commands." ["flow", "tool"];
    TOOL_MEMORY "tool_memory" "buildscale_task_tool_memory_bytes" Bytes "The most memory of a process of commands." ["flow", "tool"];
    TOOL_BYTES "tool_bytes" "buildscale_task_tool_bytes_total" Counter "Bytes that commands read from standard input, and wrote." ["flow", "tool", "direction"];
    CONTEXT "context_tokens" "buildscale_task_context_tokens" Tokens "Tokens of assembled contexts." ["flow"];
}

/// The metric that `metrics.yaml` calls by this name.
pub fn named(name: &str) -> Option<&'static Metric> {
    ALL.iter().copied().find(|metric| metric.name == name)
}
