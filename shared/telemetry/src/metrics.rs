//! Metrics of tasks, counted by flow, node, tool and provider (spec 002 §10.4), in Prometheus' text format; and the phases of
//! the tasks that have not ended. A flow's `metrics.yaml` selects metrics, labels and buckets.
//!
//! The counters follow committed events. They never fail, never wait, and change no route.

mod counter;
mod phases;
mod selection;

use actor::{ActorId, Entry, EntryObserver};
use async_trait::async_trait;
use counter::{Buckets, MetricFamily};
pub(crate) use counter::{MOST_SERIES, OTHER};
use domain::{
    Error, NodeId, Status, TaskConfig, TaskEvent, TaskPhase, TaskView, Usage, WorkspaceId,
    task::{BudgetFact, FlowRef, NodeMetrics, Resources, ToolUse, is_stop},
};
use engine::{
    AdmissionObserver, FlowCache, Tasks,
    machine::{TaskMachine, TaskState, phase},
    tasks::TaskFilter,
};
use flow::{Flow, flow::Op, metrics as catalog};
use parking_lot::Mutex;
use phases::Phases;
use selection::{Bounds, MetricSelection};
use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write as _,
    sync::{Arc, LazyLock},
};
use workspace::Workspaces;

/// The usual upper bounds of durations, in milliseconds and in seconds as Prometheus reads them.
static DURATIONS: LazyLock<Bounds> = LazyLock::new(|| {
    let bounds = [1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000, 60_000, 300_000, 3_600_000_u64];
    bounds.into_iter().map(|ms| (ms, (ms as f64 / 1000.0).to_string())).collect()
});
/// The usual upper bounds of contexts, in tokens.
static TOKENS: LazyLock<Bounds> = LazyLock::new(|| {
    [0, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576_u64]
        .into_iter()
        .map(|tokens| (tokens, tokens.to_string()))
        .collect()
});
/// The usual upper bounds of memory, in bytes: 1 MiB to 4 GiB.
static MEMORY: LazyLock<Bounds> =
    LazyLock::new(|| (0..7).map(|power| 1_u64 << (20 + 2 * power)).map(|bytes| (bytes, bytes.to_string())).collect());
/// The most flows whose selection of metrics is kept in memory.
const KEPT: usize = 1_024;
/// Tasks of a page, when those of before the start are counted.
const PAGE: usize = 256;

/// All that is counted.
struct Counters {
    wanted: HashMap<FlowRef, Arc<MetricSelection>>,
    about: BTreeSet<String>,
    phases: Phases,
    finished: MetricFamily<u64>,
    begun: MetricFamily<u64>,
    nodes: MetricFamily<u64>,
    retries: MetricFamily<u64>,
    denials: MetricFamily<u64>,
    rejected: MetricFamily<u64>,
    children: MetricFamily<u64>,
    tools: MetricFamily<u64>,
    tool_ms: MetricFamily<Buckets>,
    tool_queue_ms: MetricFamily<Buckets>,
    tool_cpu: MetricFamily<f64>,
    tool_memory: MetricFamily<Buckets>,
    tool_bytes: MetricFamily<u64>,
    node_ms: MetricFamily<Buckets>,
    queue_ms: MetricFamily<Buckets>,
    task_ms: MetricFamily<Buckets>,
    context: MetricFamily<Buckets>,
    tokens: MetricFamily<u64>,
    money: MetricFamily<f64>,
    calls: MetricFamily<u64>,
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
        let counters = self.counters.lock();
        let Counters { finished, begun, nodes, retries, denials, rejected, children, tools, tokens, calls, .. } =
            &*counters;
        let bytes = &counters.tool_bytes;
        counters.phases.render(out);
        for counter in [begun, finished, nodes, retries, denials, rejected, children, tools, bytes, calls, tokens] {
            counter.render(out);
        }
        counters.money.render(out);
        counters.tool_cpu.render(out);
        let Counters { task_ms, node_ms, queue_ms, tool_ms, tool_queue_ms, .. } = &*counters;
        for histogram in [task_ms, node_ms, queue_ms, tool_ms, tool_queue_ms] {
            histogram.render_buckets(out, true);
        }
        for histogram in [&counters.tool_memory, &counters.context] {
            histogram.render_buckets(out, false);
        }
        let name = "buildscale_flow_metrics_info";
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP {name} The metrics that flows declare.\n# TYPE {name} gauge");
        for about in &counters.about {
            let _ = writeln!(out, "{name}{{{about}}} 1");
        }
    }

    /// Counts the tasks of before the start of this process, which have not ended: most of them are not driven now. Reads
    /// every workspace, so it is for the background.
    ///
    /// # Errors
    /// Those of listing the workspaces and of [`Tasks::list`]. The tasks until then are counted.
    pub async fn count_earlier(&self, workspaces: &Workspaces, tasks: &Tasks) -> Result<(), Error> {
        let set = |counting| self.counters.lock().phases.count_earlier(counting);
        set(true);
        let counted = self.count_all(workspaces, tasks).await;
        set(false);
        counted
    }

    async fn count_all(&self, workspaces: &Workspaces, tasks: &Tasks) -> Result<(), Error> {
        let mut cursor = None;
        loop {
            let page = workspaces.list(PAGE, cursor).await?;
            for workspace in page.workspaces {
                self.count_in(workspace.workspace_id, tasks).await?;
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    async fn count_in(&self, workspace: WorkspaceId, tasks: &Tasks) -> Result<(), Error> {
        let all = TaskFilter::default();
        // Parents whose children are still to be looked at; none stands for the workspace, whose root tasks have none.
        let mut parents = vec![None];
        while let Some(parent) = parents.pop() {
            let mut cursor = None;
            loop {
                let page = match parent {
                    None => tasks.list(workspace, &all, PAGE, cursor).await?,
                    Some(parent) => tasks.children(workspace, parent, &all, PAGE, cursor).await?,
                };
                for view in page.tasks.iter().filter(|view| view.phase != TaskPhase::Finished) {
                    // Its manifests say whether it is counted, and how.
                    let flow = tasks.flows().if_it_loads(workspace, &view.flow).await?;
                    self.was(view, flow.as_deref());
                    if view.children > 0 {
                        parents.push(Some(view.task_id));
                    }
                }
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn was(&self, view: &TaskView, flow: Option<&Flow>) {
        let counters = &mut *self.counters.lock();
        let wanted = counters.wanted(&view.flow, flow);
        counters.phases.was(&wanted, view.task_id, view.phase);
    }

    /// Counts one event of a task. `state` may be the one after it or a later one.
    pub fn see(&self, config: &TaskConfig, state: &TaskState, event: &TaskEvent) {
        let loaded = self.flows.get(&config.flow);
        let counters = &mut *self.counters.lock();
        let wanted = &*counters.wanted(&config.flow, loaded.as_deref());
        let flow = config.flow.name.as_str();
        match event {
            TaskEvent::Created { config } => {
                let kind = match config.origin.as_ref().map(|origin| origin.kind) {
                    None => "root",
                    Some(domain::task::ChildKind::Clone) => "clone",
                    Some(domain::task::ChildKind::Subtask) => "subtask",
                };
                counters.begun.add(wanted, &[flow, kind], 1);
            }
            TaskEvent::NodeStarted { node, retry, queue_ms, .. } => {
                counters.queue_ms.observe(wanted, &[flow], *queue_ms, &DURATIONS);
                if retry.is_some() {
                    counters.retries.add(wanted, &[flow, node.as_str()], 1);
                }
            }
            TaskEvent::Denied { node, rule, .. } => counters.denials.add(wanted, &[flow, node.as_str(), rule], 1),
            TaskEvent::OutputRejected { node, .. } => counters.rejected.add(wanted, &[flow, node.as_str()], 1),
            TaskEvent::Forked { node, total, .. } => {
                counters.children.add(wanted, &[flow, node.as_str()], u64::from(*total));
            }
            TaskEvent::ToolUsed { used, .. } => counters.tool(wanted, used),
            TaskEvent::AgentReplied { node, answer } => {
                let provider = provider(loaded.as_deref(), node, answer.model.as_deref());
                counters.used(wanted, node, provider, answer.usage);
                counters.calls.add(wanted, &[flow, provider], u64::from(answer.steps));
                for used in &answer.tools {
                    counters.tool(wanted, used);
                }
            }
            TaskEvent::Budget { fact } => {
                if let BudgetFact::AgentEnded { node, used, model } = &**fact {
                    counters.used(wanted, node, provider(loaded.as_deref(), node, model.as_deref()), *used);
                }
            }
            TaskEvent::NodeFinished { node, status, error, metrics, .. } => {
                let NodeMetrics { duration_ms, context_tokens, .. } = metrics;
                let status = if error.as_ref().is_some_and(is_stop) { "cancelled" } else { word(*status) };
                counters.nodes.add(wanted, &[flow, node.as_str(), status], 1);
                counters.node_ms.observe(wanted, &[flow, node.as_str()], *duration_ms, &DURATIONS);
                counters.context.observe(wanted, &[flow], *context_tokens, &TOKENS);
            }
            TaskEvent::Finished { status, error, at, .. } => {
                let cancelled = error.as_ref().is_some_and(|error| error.code == domain::Code::Cancelled);
                counters.finished.add(wanted, &[flow, if cancelled { "cancelled" } else { word(*status) }], 1);
                let since = state.config.as_ref().map_or(*at, |config| config.created_at);
                let took = u64::try_from(at.since(since).as_millis()).unwrap_or(u64::MAX);
                counters.task_ms.observe(wanted, &[flow], took, &DURATIONS);
            }
            _ => {}
        }
    }

    fn does(&self, config: &TaskConfig, state: &TaskState) {
        let loaded = self.flows.get(&config.flow);
        let counters = &mut *self.counters.lock();
        let wanted = counters.wanted(&config.flow, loaded.as_deref());
        counters.phases.now(&wanted, config.task, phase(state));
    }
}

impl AdmissionObserver for TaskMetrics {
    fn accepted(&self, config: &TaskConfig, flow: &Flow) {
        let counters = &mut *self.counters.lock();
        let wanted = counters.wanted(&config.flow, Some(flow));
        counters.phases.was(&wanted, config.task, TaskPhase::Queued);
    }
}

#[async_trait]
impl EntryObserver<TaskMachine> for TaskMetrics {
    async fn loaded(&self, _: &ActorId, state: &TaskState) {
        if let Some(config) = &state.config {
            self.does(config, state);
        }
    }

    async fn committed(&self, _: &ActorId, state: &TaskState, entry: &Entry<TaskEvent>) {
        if let Some(config) = &state.config {
            entry.events.iter().for_each(|event| self.see(config, state, event));
            self.does(config, state);
        }
    }
}

impl Counters {
    fn new() -> Self {
        Self {
            wanted: HashMap::new(),
            about: BTreeSet::new(),
            phases: Phases::new(),
            begun: MetricFamily::new(&catalog::BEGUN),
            finished: MetricFamily::new(&catalog::FINISHED),
            nodes: MetricFamily::new(&catalog::NODES),
            retries: MetricFamily::new(&catalog::RETRIES),
            denials: MetricFamily::new(&catalog::DENIALS),
            rejected: MetricFamily::new(&catalog::REJECTED),
            children: MetricFamily::new(&catalog::CHILDREN),
            tools: MetricFamily::new(&catalog::TOOLS),
            calls: MetricFamily::new(&catalog::CALLS),
            tokens: MetricFamily::new(&catalog::TOKENS),
            money: MetricFamily::new(&catalog::COST),
            tool_ms: MetricFamily::new(&catalog::TOOL_DURATION),
            tool_queue_ms: MetricFamily::new(&catalog::TOOL_QUEUE),
            tool_cpu: MetricFamily::new(&catalog::TOOL_CPU),
            tool_memory: MetricFamily::new(&catalog::TOOL_MEMORY),
            tool_bytes: MetricFamily::new(&catalog::TOOL_BYTES),
            node_ms: MetricFamily::new(&catalog::NODE_DURATION),
            queue_ms: MetricFamily::new(&catalog::QUEUE_LATENCY),
            task_ms: MetricFamily::new(&catalog::TASK_DURATION),
            context: MetricFamily::new(&catalog::CONTEXT),
        }
    }

    /// The metrics that a flow wants; all of them while its manifests are not in memory.
    fn wanted(&mut self, reference: &FlowRef, flow: Option<&Flow>) -> Arc<MetricSelection> {
        if let Some(known) = self.wanted.get(reference) {
            return known.clone();
        }
        let Some(flow) = flow else {
            return Arc::new(MetricSelection::everything(&reference.name));
        };
        let wanted = Arc::new(MetricSelection::of(&reference.name, &flow.settings.metrics));
        if self.wanted.len() >= KEPT {
            self.wanted.clear();
        }
        if self.about.len() < counter::MOST_SERIES {
            self.about.extend(wanted.about.iter().cloned());
        }
        self.wanted.insert(reference.clone(), wanted.clone());
        wanted
    }

    fn tool(&mut self, wanted: &MetricSelection, used: &ToolUse) {
        let labels = [wanted.flow.as_str(), used.tool.as_str()];
        let [flow, tool] = labels;
        self.tools.add(wanted, &[flow, tool, word(used.status)], 1);
        self.tool_ms.observe(wanted, &labels, used.duration_ms, &DURATIONS);
        self.tool_queue_ms.observe(wanted, &labels, used.queue_ms, &DURATIONS);
        let Some(Resources { cpu_ms, peak_memory_bytes, bytes_in, bytes_out }) = used.resources else { return };
        self.tool_cpu.add(wanted, &labels, cpu_ms as f64 / 1000.0);
        self.tool_memory.observe(wanted, &labels, peak_memory_bytes, &MEMORY);
        self.tool_bytes.add(wanted, &[flow, tool, "in"], bytes_in);
        self.tool_bytes.add(wanted, &[flow, tool, "out"], bytes_out);
    }

    fn used(&mut self, wanted: &MetricSelection, node: &NodeId, provider: &str, usage: Usage) {
        let (flow, node) = (wanted.flow.as_str(), node.as_str());
        self.tokens.add(wanted, &[flow, node, provider, "input"], usage.input_tokens);
        self.tokens.add(wanted, &[flow, node, provider, "output"], usage.output_tokens);
        self.tokens.add(wanted, &[flow, node, provider, "cached"], usage.cached_tokens);
        self.money.add(wanted, &[flow, node, provider], usage.cost_usd);
    }
}

/// The provider of the model that answered, and where that is not known, of the one that the agent of the node asks for.
fn provider<'a>(flow: Option<&'a Flow>, node: &NodeId, answered: Option<&'a str>) -> &'a str {
    let asked = || match &flow?.nodes.get(node)?.op {
        Op::Agent { agent, .. } => flow?.agents.get(agent)?.model.as_deref(),
        _ => None,
    };
    answered.or_else(asked).and_then(|model| model.split('/').next()).unwrap_or("default")
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
    use flow::manifest::Metrics;
    use serde_json::json;

    fn wanted(manifest: serde_json::Value) -> MetricSelection {
        let manifest: Metrics = serde_json::from_value(manifest).unwrap_or_default();
        MetricSelection::of("f", &manifest)
    }

    fn has(out: &str, lines: &[&str]) {
        for line in lines {
            assert!(out.contains(&format!("{line}\n")), "{line} is not in\n{out}");
        }
    }

    #[test]
    fn s10_4_buckets_are_cumulative_and_sums_are_in_seconds() {
        let mut counters = Counters::new();
        for ms in [1, 70, 7_200_000] {
            counters.node_ms.observe(&wanted(json!({})), &["f", "n"], ms, &DURATIONS);
        }
        let mut out = String::new();
        counters.node_ms.render_buckets(&mut out, true);
        has(
            &out,
            &[
                "buildscale_task_node_duration_seconds_bucket{flow=\"f\",node=\"n\",le=\"0.001\"} 1",
                "buildscale_task_node_duration_seconds_bucket{flow=\"f\",node=\"n\",le=\"0.1\"} 2",
                "buildscale_task_node_duration_seconds_bucket{flow=\"f\",node=\"n\",le=\"3600\"} 2",
                "buildscale_task_node_duration_seconds_bucket{flow=\"f\",node=\"n\",le=\"+Inf\"} 3",
                "buildscale_task_node_duration_seconds_sum{flow=\"f\",node=\"n\"} 7200.071",
                "buildscale_task_node_duration_seconds_count{flow=\"f\",node=\"n\"} 3",
            ],
        );
    }

    fn used(resources: Option<Resources>) -> ToolUse {
        let (args, output, code) = (String::new(), String::new(), None);
        ToolUse {
            tool: "read".into(),
            args,
            status: Status::Success,
            output,
            code,
            duration_ms: 5,
            queue_ms: 70,
            resources,
        }
    }

    #[test]
    fn s10_4_waits_and_resources_of_tools_are_counted_by_tool() {
        let (mut counters, wanted) = (Counters::new(), wanted(json!({})));
        let resources = Resources { cpu_ms: 1_250, peak_memory_bytes: 3 << 20, bytes_in: 7, bytes_out: 90 };
        for resources in [Some(resources), Some(resources), None] {
            counters.tool(&wanted, &used(resources));
        }
        let mut out = String::new();
        counters.tool_cpu.render(&mut out);
        counters.tool_bytes.render(&mut out);
        counters.tool_queue_ms.render_buckets(&mut out, true);
        counters.tool_memory.render_buckets(&mut out, false);
        has(
            &out,
            &[
                "buildscale_task_tool_cpu_seconds_total{flow=\"f\",tool=\"read\"} 2.5",
                "buildscale_task_tool_bytes_total{flow=\"f\",tool=\"read\",direction=\"out\"} 180",
                "buildscale_task_tool_queue_latency_seconds_bucket{flow=\"f\",tool=\"read\",le=\"0.1\"} 3",
                "buildscale_task_tool_memory_bytes_bucket{flow=\"f\",tool=\"read\",le=\"1048576\"} 0",
                "buildscale_task_tool_memory_bytes_bucket{flow=\"f\",tool=\"read\",le=\"4194304\"} 2",
            ],
        );
    }

    #[test]
    fn s10_4_the_number_of_series_is_bounded_and_labels_are_escaped() {
        let (mut counters, wanted) = (Counters::new(), wanted(json!({})));
        counters.tools.add(&wanted, &["f", "say \"hi\"\n", "success"], 2);
        for number in 0..5_000 {
            counters.tools.add(&wanted, &["f", &format!("tool{number}"), "success"], 1);
        }
        let mut out = String::new();
        counters.tools.render(&mut out);
        assert!(out.lines().count() <= MOST_SERIES + 3, "{}", out.lines().count());
        has(&out, &["buildscale_task_tools_total{flow=\"f\",tool=\"say \\\"hi\\\"\\n\",status=\"success\"} 2"]);
        let total: u64 = out.lines().filter_map(|line| line.rsplit_once("} ")?.1.parse::<u64>().ok()).sum();
        assert_eq!(total, 5_002);
    }

    #[test]
    fn s10_4_every_key_of_metrics_yaml_acts() {
        let mut counters = Counters::new();
        let own = wanted(json!({ "version": 2, "metrics": [
            { "name": "node_duration", "type": "histogram", "buckets": [0.25, 2], "labels": { "team": "bees", "tier": 1 } },
            { "name": "context_tokens", "buckets": [100] },
            { "name": "nodes", "enabled": false },
            { "name": "tools", "description": "Tools of \"bees\"." },
        ] }));
        let usual = wanted(json!({}));
        for wanted in [&own, &usual] {
            counters.node_ms.observe(wanted, &["f", "n"], 300, &DURATIONS);
            counters.context.observe(wanted, &["f"], 50, &TOKENS);
            counters.nodes.add(wanted, &["f", "n", "success"], 1);
            counters.tool(wanted, &used(None));
        }
        let mut out = String::new();
        counters.node_ms.render_buckets(&mut out, true);
        counters.context.render_buckets(&mut out, false);
        for counter in [&counters.nodes, &counters.tools] {
            counter.render(&mut out);
        }
        counters.tool_ms.render_buckets(&mut out, true);
        has(
            &out,
            &[
                "buildscale_task_node_duration_seconds_bucket{flow=\"f\",node=\"n\",team=\"bees\",tier=\"1\",le=\"0.25\"} 0",
                "buildscale_task_node_duration_seconds_bucket{flow=\"f\",node=\"n\",team=\"bees\",tier=\"1\",le=\"2\"} 1",
                "buildscale_task_node_duration_seconds_bucket{flow=\"f\",node=\"n\",le=\"0.5\"} 1",
                "buildscale_task_nodes_total{flow=\"f\",node=\"n\",status=\"success\"} 1",
                "buildscale_task_tools_total{flow=\"f\",tool=\"read\",status=\"success\"} 2",
                // Not listed, so only the other flow has it.
                "buildscale_task_tool_duration_seconds_count{flow=\"f\",tool=\"read\"} 1",
            ],
        );
        assert!(
            own.about.contains(
                &"flow=\"f\",version=\"2\",metric=\"tools\",description=\"Tools of \\\"bees\\\".\"".to_owned()
            )
        );
        assert!(usual.about.is_empty());
        let silent = wanted(json!({ "enabled": false }));
        assert!(catalog::ALL.iter().all(|metric| silent.labels(metric).is_none()));
    }
}
