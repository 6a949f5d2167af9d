//! Observers and metrics beside real runs: they are told everything and hold up nothing.

use crate::{
    flows::{ASKS, SPLIT, TOOLS},
    rig::Rig,
};
use async_trait::async_trait;
use buildscale_telemetry::{DeliveryLimits, Observers, Sink, SinkError, Sinks, TaskFact, TaskMetrics};
use domain::{Code, Error, Principal, Status, TaskId, WorkspaceId, task::FlowRef};
use engine::NewTask;
use flow::manifest::Plugin;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// Keeps the facts that it is told.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Arc<TaskFact>>>>);

#[async_trait]
impl Sink for Kept {
    async fn send(&self, batch: &[Arc<TaskFact>]) -> Result<(), SinkError> {
        self.0.lock().extend(batch.iter().cloned());
        Ok(())
    }
}

/// Never answers.
struct Stuck;

#[async_trait]
impl Sink for Stuck {
    async fn send(&self, _: &[Arc<TaskFact>]) -> Result<(), SinkError> {
        std::future::pending().await
    }
}

struct Own(Kept);

impl Sinks for Own {
    fn open(&self, _: WorkspaceId, _: &FlowRef, plugin: &Plugin) -> Result<Arc<dyn Sink>, Error> {
        match plugin.id.as_str() {
            "good" => Ok(Arc::new(self.0.clone())),
            "stuck" => Ok(Arc::new(Stuck)),
            _ => Err(Error::new(Code::Unprocessable, "not like this")),
        }
    }
}

const PLUGINS: &str = r#"
plugins:
  - {id: good, type: json_lines, events: ["node_*", done]}
  - {id: stuck, type: webhook, config: {url: "https://example.com"}}
  - {id: broken, type: otlp, config: {endpoint: "https://example.com"}}
  - {id: off, type: otlp, enabled: false, config: {endpoint: "https://example.com"}}
"#;

fn observers(rig: &Rig, own: Kept) -> Arc<Observers> {
    fn clean(value: &mut Value) {
        match value {
            Value::String(text) => *text = text.replace("hunter2", "[redacted]"),
            Value::Array(items) => items.iter_mut().for_each(clean),
            Value::Object(fields) => fields.values_mut().for_each(clean),
            _ => {}
        }
    }
    let patience = DeliveryLimits { queue: 8, ..DeliveryLimits::default() };
    Arc::new(Observers::new(rig.cache.clone(), Arc::new(Own(own)), Arc::new(|_, value| clean(value)), patience))
}

#[tokio::test(start_paused = true)]
async fn s6_a_stuck_sink_delays_no_task_and_the_others_are_told_in_order() {
    let rig = Rig::new(1).await;
    let kept = Kept::default();
    let observers = observers(&rig, kept.clone());
    rig.follow(observers.clone());
    rig.flow("numbers", &[("workflow.yaml", SPLIT), ("plugins.yaml", PLUGINS)]).await;
    let before = tokio::time::Instant::now();
    let view = rig.run("numbers", json!({ "items": [1, 2, 3], "note": "hunter2" })).await;
    assert_eq!(view.status, Status::Success);
    // Time is paused: it passes only when all tasks wait, and none waits for a sink.
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
    observers.close(Duration::from_secs(1)).await;
    let facts = kept.0.lock().clone();
    let of_root: Vec<&Arc<TaskFact>> = facts.iter().filter(|fact| fact.task_id == view.task_id).collect();
    let numbers: Vec<u64> = of_root.iter().map(|fact| fact.number).collect();
    assert!(numbers.is_sorted() && !numbers.is_empty(), "{numbers:?}");
    assert!(facts.iter().all(|fact| fact.event.starts_with("node_") || fact.event == "done"));
    assert_eq!(facts.iter().filter(|fact| fact.event == "done").count(), 4, "the root and three subtasks");
    let child = facts.iter().find(|fact| fact.child.as_deref() == Some("each/work[1]")).unwrap();
    assert_eq!((child.root_task_id, child.parent_task_id), (view.task_id, Some(view.task_id)));
    assert_eq!(child.about.as_ref().map(|about| about.node.as_str()), Some("work"));
    let text = serde_json::to_string(&facts.iter().map(|fact| (**fact).clone()).collect::<Vec<_>>()).unwrap();
    assert!(text.contains("[redacted]") && !text.contains("hunter2"));
}

/// Takes its time.
struct Slow(Kept);

#[async_trait]
impl Sink for Slow {
    async fn send(&self, batch: &[Arc<TaskFact>]) -> Result<(), SinkError> {
        // poll: time is paused, so this is how long it takes and not how long the test does
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.send(batch).await
    }
}

#[tokio::test(start_paused = true)]
async fn s6_before_a_process_is_frozen_observers_are_waited_for_but_not_for_long() {
    let rig = Rig::new(0).await;
    let kept = Kept::default();
    let slow = Observers::new(
        rig.cache.clone(),
        Arc::new(Own(Kept::default())),
        Arc::new(|_, _| {}),
        DeliveryLimits::default(),
    );
    let slow = Arc::new(slow.with("slow", Arc::new(Slow(kept.clone()))));
    rig.follow(slow.clone());
    rig.flow("numbers", &[("workflow.yaml", SPLIT)]).await;
    let told = || kept.0.lock().iter().filter(|fact| fact.event == "done").count();
    rig.run("numbers", json!({ "items": [1] })).await;
    assert_eq!(told(), 0, "no task waits for it");
    slow.settle(Duration::from_secs(60)).await;
    assert_eq!(told(), 2, "the root and its subtask");
    // One that is stuck costs the time that there is, and no more; later facts are told.
    rig.flow("stuck", &[("workflow.yaml", SPLIT), ("plugins.yaml", PLUGINS)]).await;
    rig.run("stuck", json!({ "items": [1] })).await;
    let before = tokio::time::Instant::now();
    slow.settle(Duration::from_secs(9)).await;
    assert_eq!(before.elapsed(), Duration::from_secs(9));
    assert!(told() > 2);
}

#[tokio::test(start_paused = true)]
async fn s6_facts_that_a_slow_sink_misses_are_counted() {
    let rig = Rig::new(0).await;
    let observers = observers(&rig, Kept::default());
    rig.follow(observers.clone());
    rig.flow("numbers", &[("workflow.yaml", SPLIT), ("plugins.yaml", PLUGINS)]).await;
    rig.run("numbers", json!({ "items": (0..50).collect::<Vec<_>>() })).await;
    let counts = observers.counts();
    let of = |name: &str| counts.iter().find(|(sink, _)| sink == name).map(|(_, counts)| *counts).unwrap();
    assert!(of("numbers/stuck").dropped > 100, "{counts:?}");
    assert_eq!(counts.len(), 2, "neither the broken one nor the one that is off: {counts:?}");
    let mut out = String::new();
    observers.render(&mut out);
    let line = format!("{{sink=\"numbers/stuck\",result=\"dropped\"}} {}\n", of("numbers/stuck").dropped);
    assert!(out.contains(&line), "{out}");
}

#[tokio::test(start_paused = true)]
async fn s10_4_metrics_count_tasks_nodes_tools_and_children_by_status() {
    let rig = Rig::new(2).await;
    let metrics = Arc::new(TaskMetrics::new(rig.cache.clone()));
    rig.follow(metrics.clone());
    rig.flow("numbers", &[("workflow.yaml", SPLIT)]).await;
    rig.flow("asks", &[("workflow.yaml", ASKS), ("tools.yaml", TOOLS)]).await;
    rig.flow("silent", &[("workflow.yaml", SPLIT), ("metrics.yaml", "enabled: false\n")]).await;
    rig.run("numbers", json!({ "items": [1, 2, 3] })).await;
    rig.run("silent", json!({ "items": [1, 2, 3] })).await;
    // There is no such file.
    let failed = rig.begin("asks", json!({ "path": "/projects/none.md" })).await;
    rig.work().await;
    let _ = failed;
    let mut out = String::new();
    metrics.render(&mut out);
    for line in [
        "buildscale_tasks_begun_total{flow=\"numbers\",kind=\"root\"} 1",
        "buildscale_tasks_begun_total{flow=\"numbers\",kind=\"subtask\"} 3",
        "buildscale_tasks_finished_total{flow=\"numbers\",status=\"success\"} 4",
        "buildscale_task_nodes_total{flow=\"numbers\",node=\"work\",status=\"success\"} 3",
        "buildscale_task_children_total{flow=\"numbers\",node=\"each\"} 3",
        "buildscale_task_node_duration_seconds_count{flow=\"numbers\",node=\"gather\"} 1",
        "buildscale_task_queue_latency_seconds_count{flow=\"numbers\"} 7",
    ] {
        assert!(out.contains(&format!("{line}\n")), "{line} is not in\n{out}");
    }
    assert!(out.contains("buildscale_task_tools_total{flow=\"asks\",tool=\"read\","), "{out}");
    assert!(!out.contains("silent"), "{out}");
}

const MEASURED: &str = r#"
version: 3
metrics:
  - {name: tasks, labels: {team: bees}}
  - {name: node_duration, type: histogram, buckets: [0.25, 2], labels: {team: bees}}
  - {name: nodes, enabled: false}
  - {name: tasks_finished, description: How runs end.}
"#;

#[tokio::test(start_paused = true)]
async fn s10_4_a_flow_says_what_is_measured_of_it_and_how() {
    let rig = Rig::new(3).await;
    let metrics = Arc::new(TaskMetrics::new(rig.cache.clone()));
    rig.follow(metrics.clone());
    rig.flow("numbers", &[("workflow.yaml", SPLIT), ("metrics.yaml", MEASURED)]).await;
    rig.run("numbers", json!({ "items": [1, 2, 3] })).await;
    let mut out = String::new();
    metrics.render(&mut out);
    for line in [
        "buildscale_tasks_finished_total{flow=\"numbers\",status=\"success\"} 4",
        "buildscale_task_node_duration_seconds_bucket{flow=\"numbers\",node=\"gather\",team=\"bees\",le=\"0.25\"} 1",
        "buildscale_task_node_duration_seconds_bucket{flow=\"numbers\",node=\"gather\",team=\"bees\",le=\"2\"} 1",
        "buildscale_tasks{flow=\"numbers\",phase=\"running\",team=\"bees\"} 0",
        "buildscale_flow_metrics_info{flow=\"numbers\",version=\"3\",metric=\"tasks_finished\",description=\"How runs end.\"} 1",
    ] {
        assert!(out.contains(&format!("{line}\n")), "{line} is not in\n{out}");
    }
    for silent in ["buildscale_task_nodes_total{", "buildscale_tasks_begun_total{", "le=\"0.001\""] {
        assert!(!out.contains(silent), "{silent} is in\n{out}");
    }
}

#[tokio::test(start_paused = true)]
async fn s10_4_tasks_are_counted_by_phase_also_those_of_before_the_start() {
    let rig = Rig::new(4).await;
    let before = Arc::new(TaskMetrics::new(rig.cache.clone()));
    rig.follow(before.clone());
    rig.flow("asks", &[("workflow.yaml", ASKS), ("tools.yaml", TOOLS)]).await;
    rig.write("/projects/there.md", "words").await;
    for _ in 0..3 {
        rig.begin("asks", json!({ "path": "/projects/there.md" })).await;
    }
    rig.work().await;
    let phase = |metrics: &TaskMetrics, phase: &str| {
        let mut out = String::new();
        metrics.render(&mut out);
        let of = format!("buildscale_tasks{{flow=\"asks\",phase=\"{phase}\"}} ");
        out.lines().find_map(|line| line.strip_prefix(&of)?.parse::<u64>().ok())
    };
    assert_eq!(phase(&before, "suspended"), Some(3));
    // Accepted, and not begun.
    rig.begin("asks", json!({ "path": "/projects/there.md" })).await;
    let after = TaskMetrics::new(rig.cache.clone());
    assert_eq!(phase(&after, "suspended"), None);
    after.count_earlier(rig.workspaces(), &rig.tasks).await.unwrap();
    assert_eq!((phase(&after, "suspended"), phase(&after, "queued")), (Some(3), Some(1)));

    // One that is accepted is queued until a worker begins it, and accepted again it is the same one.
    let counted = rig.tasks.clone().counted_by(before.clone());
    let task = TaskId(rig.id());
    let create = async || {
        let new = NewTask { input: json!({ "path": "/projects/there.md" }), ..NewTask::default() };
        counted.create(rig.workspace, task, "asks", new, &Principal::local()).await.unwrap();
    };
    create().await;
    assert_eq!((phase(&before, "queued"), phase(&before, "suspended")), (Some(1), Some(3)));
    rig.work().await;
    assert_eq!((phase(&before, "queued"), phase(&before, "suspended")), (Some(0), Some(5)));
    create().await;
    rig.work().await;
    assert_eq!((phase(&before, "queued"), phase(&before, "suspended")), (Some(0), Some(5)));
}
