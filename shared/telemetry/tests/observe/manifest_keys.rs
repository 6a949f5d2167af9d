//! Keys of manifests that act on tasks: bounds of memory (spec 002 §10.10), and the inspector (§10.7).

use crate::rig::Rig;
use domain::TaskPhase;
use engine::memory::Memory;
use serde_json::json;
use std::time::Duration;

/// Five nodes remember something each, and a sixth tells the items that it is given, newest first.
const FIVE: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: r1, kind: deterministic, role: linear, context: none, remember: {store: project}}
  - {id: r2, kind: deterministic, role: linear, context: none, remember: {store: project}}
  - {id: r3, kind: deterministic, role: linear, context: none, remember: {store: project}}
  - {id: r4, kind: deterministic, role: linear, context: none, remember: {store: project}}
  - {id: r5, kind: deterministic, role: linear, context: none, remember: {store: project}}
  - {id: look, kind: deterministic, role: linear, context: global, op: {expr: 'context.items.map(item, item.key)'}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: r1}
  - {from: r1, to: r2}
  - {from: r2, to: r3}
  - {from: r3, to: r4}
  - {from: r4, to: r5}
  - {from: r5, to: look}
  - {from: look, to: end}
";

/// One node that tells its context.
const LOOK: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: look, kind: deterministic, role: linear, context: global, op: {expr: 'context.items.map(item, item.key)'}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: look}
  - {from: look, to: end}
";

fn items(rig: &Rig, flow: &str) -> usize {
    rig.table.partition(&format!("{}/memory/project/{flow}", rig.workspace)).len()
}

#[tokio::test(start_paused = true)]
async fn s10_10_the_newest_items_of_a_bounded_store_are_kept_and_given() {
    let rig = Rig::new(0).await;
    for (name, file, text, expected) in [
        ("free", "memory.yaml", "version: 1\n", json!(["r5", "r4", "r3", "r2", "r1"])),
        ("two", "memory.yaml", "project_store: {max_items: 2}\n", json!(["r5", "r4"])),
        ("three", "persistent_memory.yaml", "stores: [{store: project, max_items: 3}]\n", json!(["r5", "r4", "r3"])),
        ("other", "memory.yaml", "task_store: {max_items: 1}\n", json!(["r5", "r4", "r3", "r2", "r1"])),
    ] {
        rig.flow(name, &[("workflow.yaml", FIVE), (file, text)]).await;
        let view = rig.run(name, json!("x")).await;
        let given = view.output.unwrap();
        let mut sorted: Vec<&str> = given.as_array().unwrap().iter().filter_map(|key| key.as_str()).collect();
        sorted.sort_unstable();
        let mut wanted: Vec<&str> = expected.as_array().unwrap().iter().filter_map(|key| key.as_str()).collect();
        wanted.sort_unstable();
        assert_eq!(sorted, wanted, "{name}");
        assert_eq!(items(&rig, name), 2 * wanted.len(), "{name}: an item and its key each");
    }
}

#[tokio::test(start_paused = true)]
async fn s10_10_items_go_when_their_days_are_over() {
    let rig = Rig::new(0).await;
    let days = ("persistent_memory.yaml", "stores: [{store: project, retention_days: 2}]\n");
    rig.flow("kept", &[("workflow.yaml", FIVE), days]).await;
    rig.run("kept", json!("x")).await;
    assert_eq!(items(&rig, "kept"), 10);
    // The same flow, which remembers nothing more: of its project is what is asked for.
    rig.write("/system/flows/kept/workflow.yaml", LOOK).await;
    tokio::time::advance(Duration::from_secs(47 * 3600)).await;
    assert_eq!(rig.run("kept", json!("x")).await.output.unwrap().as_array().unwrap().len(), 5);
    tokio::time::advance(Duration::from_secs(2 * 3600)).await;
    assert_eq!(rig.run("kept", json!("x")).await.output, Some(json!([])));
    assert_eq!(items(&rig, "kept"), 0);
}

#[tokio::test(start_paused = true)]
async fn s10_10_the_memory_at_the_end_of_a_task_is_kept_also_where_its_nodes_only_compute() {
    let rig = Rig::new(0).await;
    rig.flow("kept", &[("workflow.yaml", FIVE)]).await;
    rig.flow("looks", &[("workflow.yaml", LOOK)]).await;
    let plain = LOOK.replace("global", "none").replace("context.items.map(item, item.key)", "input");
    rig.flow("plain", &[("workflow.yaml", plain.as_str())]).await;
    let kept = rig.run("kept", json!("x")).await;
    let looks = rig.run("looks", json!("x")).await;
    let plain = rig.run("plain", json!("x")).await;
    rig.run("kept", json!("later")).await;
    let memory = Memory::new(rig.table.clone());
    let kept = memory.kept_snapshot(rig.workspace, kept.task_id).await.unwrap().unwrap();
    let items: Vec<_> = kept.items.into_iter().map(|item| (item.key, item.content)).collect();
    assert_eq!(items, ["r1", "r2", "r3", "r4", "r5"].map(|key| (key.to_owned(), json!("x"))));
    assert!(memory.kept_snapshot(rig.workspace, looks.task_id).await.unwrap().is_some());
    assert!(memory.kept_snapshot(rig.workspace, plain.task_id).await.unwrap().is_none(), "it uses no memory");
}

#[tokio::test(start_paused = true)]
async fn s10_7_tasks_pause_where_inspector_yaml_says() {
    let rig = Rig::new(0).await;
    for (name, text, paused) in [
        ("at", "enabled: true\nbreakpoints: [r2]\n", Some("r2")),
        ("steps", "enabled: true\nstepping: true\n", Some("begin")),
        ("off", "enabled: false\nbreakpoints: [r2]\nstepping: true\n", None),
        ("silent", "enabled: true\n", None),
    ] {
        rig.flow(name, &[("workflow.yaml", FIVE), ("inspector.yaml", text)]).await;
        let task = rig.begin(name, json!("x")).await;
        rig.work().await;
        let view = rig.tasks.get(rig.workspace, task).await.unwrap();
        let at = (view.phase == TaskPhase::Paused).then(|| view.node.as_ref().map(|node| node.as_str()).unwrap());
        assert_eq!(at, paused, "{name}: {view:?}");
    }
}
