//! What tasks use, counted by flow, node, tool and provider (seed 002 §10.4), in Prometheus' text format.
//!
//! The counters follow what is committed. They never fail, never wait, and change no route.

mod counter;

use crate::{
    FlowCache,
    flow::Op,
    machine::{TaskMachine, TaskState},
};
use actor::{ActorId, Entry, Follow};
use async_trait::async_trait;
use counter::{Buckets, Counter};
use domain::{NodeId, Status, TaskConfig, TaskEvent, Usage, task::NodeMetrics};
use std::sync::{Mutex, PoisonError};

/// The upper bounds of durations, in milliseconds and in seconds as Prometheus reads them.
const DURATIONS: [(u64, &str); 12] = [
    (1, "0.001"),
    (5, "0.005"),
    (10, "0.01"),
    (50, "0.05"),
    (100, "0.1"),
    (500, "0.5"),
    (1_000, "1"),
    (5_000, "5"),
    (10_000, "10"),
    (60_000, "60"),
    (300_000, "300"),
    (3_600_000, "3600"),
];
/// The upper bounds of contexts, in tokens.
const TOKENS: [(u64, &str); 8] = [
    (0, "0"),
    (256, "256"),
    (1_024, "1024"),
    (4_096, "4096"),
    (16_384, "16384"),
    (65_536, "65536"),
    (262_144, "262144"),
    (1_048_576, "1048576"),
];

/// All that is counted.
struct Counters {
    tasks: Counter<u64>,
    begun: Counter<u64>,
    nodes: Counter<u64>,
    retries: Counter<u64>,
    denials: Counter<u64>,
    rejected: Counter<u64>,
    children: Counter<u64>,
    tools: Counter<u64>,
    tool_ms: Counter<Buckets>,
    node_ms: Counter<Buckets>,
    queue_ms: Counter<Buckets>,
    task_ms: Counter<Buckets>,
    context: Counter<Buckets>,
    tokens: Counter<u64>,
    money: Counter<f64>,
    calls: Counter<u64>,
}

/// The counters of tasks.
pub struct TaskMetrics {
    flows: FlowCache,
    counters: Mutex<Counters>,
}

impl TaskMetrics {
    /// All at zero. `flows` is shared with the machine that drives the tasks.
    pub fn new(flows: FlowCache) -> Self {
        Self { flows, counters: Mutex::new(Counters::new()) }
    }

    /// Everything in Prometheus' text format, appended to `out`.
    pub fn render(&self, out: &mut String) {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let Counters { tasks, begun, nodes, retries, denials, rejected, children, tools, tokens, money, calls, .. } =
            &*counters;
        for counter in [begun, tasks, nodes, retries, denials, rejected, children, tools, calls, tokens] {
            counter.render(out);
        }
        money.render(out);
        for (histogram, bounds, thousandths) in [
            (&counters.task_ms, DURATIONS.as_slice(), true),
            (&counters.node_ms, DURATIONS.as_slice(), true),
            (&counters.queue_ms, DURATIONS.as_slice(), true),
            (&counters.tool_ms, DURATIONS.as_slice(), true),
            (&counters.context, TOKENS.as_slice(), false),
        ] {
            histogram.render_buckets(out, bounds, thousandths);
        }
    }

    /// Counts one event of a task. `state` may be the one after it or a later one.
    pub fn see(&self, config: &TaskConfig, state: &TaskState, event: &TaskEvent) {
        let loaded = self.flows.get(&config.flow);
        if loaded.as_ref().is_some_and(|flow| !flow.settings.metrics.enabled) {
            return;
        }
        let flow = config.flow.name.as_str();
        let counters = &mut *self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            TaskEvent::Created { config } => {
                let kind = match config.origin.as_ref().map(|origin| origin.kind) {
                    None => "root",
                    Some(domain::task::ChildKind::Clone) => "clone",
                    Some(domain::task::ChildKind::Subtask) => "subtask",
                };
                counters.begun.add(&[flow, kind], 1);
            }
            TaskEvent::NodeStarted { node, retry, queue_ms, .. } => {
                counters.queue_ms.observe(&[flow], *queue_ms, &DURATIONS);
                if retry.is_some() {
                    counters.retries.add(&[flow, node.as_str()], 1);
                }
            }
            TaskEvent::Denied { node, rule, .. } => counters.denials.add(&[flow, node.as_str(), rule], 1),
            TaskEvent::OutputRejected { node, .. } => counters.rejected.add(&[flow, node.as_str()], 1),
            TaskEvent::Forked { node, total, .. } => {
                counters.children.add(&[flow, node.as_str()], u64::from(*total));
            }
            TaskEvent::ToolUsed { used, .. } => counters.tool(&used.tool, used.status, used.duration_ms),
            TaskEvent::AgentReplied { node, answer } => {
                let model = loaded.as_ref().and_then(|flow| match &flow.nodes.get(node)?.op {
                    Op::Agent { agent, .. } => flow.agents.get(agent)?.model.clone(),
                    _ => None,
                });
                let provider = model.as_deref().and_then(|model| model.split('/').next()).unwrap_or("default");
                counters.used(flow, node, provider, answer.usage);
                counters.calls.add(&[provider], u64::from(answer.steps));
                for used in &answer.tools {
                    counters.tool(&used.tool, used.status, used.duration_ms);
                }
            }
            TaskEvent::NodeFinished { node, status, metrics, .. } => {
                let NodeMetrics { duration_ms, context_tokens, .. } = metrics;
                let status = word(*status);
                counters.nodes.add(&[flow, node.as_str(), status], 1);
                counters.node_ms.observe(&[flow, node.as_str()], *duration_ms, &DURATIONS);
                counters.context.observe(&[flow], *context_tokens, &TOKENS);
            }
            TaskEvent::Finished { status, error, at, .. } => {
                let cancelled = error.as_ref().is_some_and(|error| error.code == domain::Code::Cancelled);
                counters.tasks.add(&[flow, if cancelled { "cancelled" } else { word(*status) }], 1);
                let since = state.config.as_ref().map_or(*at, |config| config.created_at);
                let took = u64::try_from(at.since(since).as_millis()).unwrap_or(u64::MAX);
                counters.task_ms.observe(&[flow], took, &DURATIONS);
            }
            _ => {}
        }
    }
}

#[async_trait]
impl Follow<TaskMachine> for TaskMetrics {
    async fn loaded(&self, _: &ActorId, _: &TaskState) {}

    async fn committed(&self, _: &ActorId, state: &TaskState, entry: &Entry<TaskEvent>) {
        if let Some(config) = &state.config {
            entry.events.iter().for_each(|event| self.see(config, state, event));
        }
    }
}

impl Counters {
    fn new() -> Self {
        Self {
            begun: Counter::new("tasks_begun", "Tasks that began.", &["flow", "kind"]),
            tasks: Counter::new("tasks_finished", "Tasks that ended.", &["flow", "status"]),
            nodes: Counter::new("task_nodes", "Executions of nodes that ended.", &["flow", "node", "status"]),
            retries: Counter::new("task_retries", "Nodes that were tried again.", &["flow", "node"]),
            denials: Counter::new("task_denials", "What policies refused.", &["flow", "node", "rule"]),
            rejected: Counter::new("task_outputs_rejected", "Outputs that did not fit a schema.", &["flow", "node"]),
            children: Counter::new("task_children", "Clones and subtasks that were made.", &["flow", "node"]),
            tools: Counter::new("task_tools", "Uses of tools.", &["tool", "status"]),
            calls: Counter::new("task_model_calls", "Calls of models.", &["provider"]),
            tokens: Counter::new("task_tokens", "Tokens.", &["flow", "node", "provider", "direction"]),
            money: Counter::new("task_cost_usd", "US dollars.", &["flow", "node", "provider"]),
            tool_ms: Counter::new("task_tool_duration_seconds", "How long tools took.", &["tool"]),
            node_ms: Counter::new("task_node_duration_seconds", "How long nodes took.", &["flow", "node"]),
            queue_ms: Counter::new("task_queue_latency_seconds", "How long nodes waited in the queue.", &["flow"]),
            task_ms: Counter::new("task_duration_seconds", "How long tasks took.", &["flow"]),
            context: Counter::new("task_context_tokens", "Tokens of assembled contexts.", &["flow"]),
        }
    }

    fn tool(&mut self, tool: &str, status: Status, duration_ms: u64) {
        self.tools.add(&[tool, word(status)], 1);
        self.tool_ms.observe(&[tool], duration_ms, &DURATIONS);
    }

    fn used(&mut self, flow: &str, node: &NodeId, provider: &str, usage: Usage) {
        let node = node.as_str();
        self.tokens.add(&[flow, node, provider, "input"], usage.input_tokens);
        self.tokens.add(&[flow, node, provider, "output"], usage.output_tokens);
        self.tokens.add(&[flow, node, provider, "cached"], usage.cached_tokens);
        let money = self.money.series(&[flow, node, provider]);
        // What is not a price is not added up.
        if usage.cost_usd.is_finite() && usage.cost_usd > 0.0 {
            *money += usage.cost_usd;
        }
    }
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Success => "success",
        Status::Failure => "failure",
        Status::Partial => "partial",
    }
}

#[cfg(test)]
mod tests {
    use super::{counter::MOST_SERIES, *};

    #[test]
    fn s10_4_buckets_are_cumulative_and_sums_are_in_seconds() {
        let mut counters = Counters::new();
        for ms in [1, 70, 7_200_000] {
            counters.node_ms.observe(&["f", "n"], ms, &DURATIONS);
        }
        let mut out = String::new();
        counters.node_ms.render_buckets(&mut out, &DURATIONS, true);
        for line in [
            "buildscale_task_node_duration_seconds_bucket{flow=\"f\",node=\"n\",le=\"0.001\"} 1",
            "buildscale_task_node_duration_seconds_bucket{flow=\"f\",node=\"n\",le=\"0.1\"} 2",
            "buildscale_task_node_duration_seconds_bucket{flow=\"f\",node=\"n\",le=\"3600\"} 2",
            "buildscale_task_node_duration_seconds_bucket{flow=\"f\",node=\"n\",le=\"+Inf\"} 3",
            "buildscale_task_node_duration_seconds_sum{flow=\"f\",node=\"n\"} 7200.071",
            "buildscale_task_node_duration_seconds_count{flow=\"f\",node=\"n\"} 3",
        ] {
            assert!(out.contains(&format!("{line}\n")), "{line} is not in\n{out}");
        }
    }

    #[test]
    fn s10_4_the_number_of_series_is_bounded_and_labels_are_escaped() {
        let mut counters = Counters::new();
        counters.tools.add(&["say \"hi\"\n", "success"], 2);
        for number in 0..5_000 {
            counters.tools.add(&[&format!("tool{number}"), "success"], 1);
        }
        let mut out = String::new();
        counters.tools.render(&mut out);
        assert!(out.lines().count() <= MOST_SERIES + 3, "{}", out.lines().count());
        assert!(out.contains("{tool=\"say \\\"hi\\\"\\n\",status=\"success\"} 2\n"), "{out}");
        let total: u64 = out.lines().filter_map(|line| line.rsplit_once("} ")?.1.parse::<u64>().ok()).sum();
        assert_eq!(total, 5_002);
    }
}
