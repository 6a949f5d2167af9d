//! Flows of tasks that were loaded once, and load no more; and the list of a workspace with many flows.

use crate::{flows::SPLIT, rig::Rig};
use domain::{Code, FilePath, Principal};
use engine::{FlowCache, Flows, Tasks};
use flow::load::KnownNames;
use ports::{Clock, Expect, Key, Table, Write};
use serde_json::json;
use std::sync::Arc;
use testkit::{
    TestClock,
    fakes::{FakeBus, FakeQueue, Faults},
};

/// Another process over the same table: no flow is in its memory.
fn another_process(rig: &Rig) -> Tasks {
    let clock: Arc<dyn Clock> = Arc::new(TestClock::new(1));
    let flows = Flows::new(rig.table.clone(), rig.workspaces().clone(), FlowCache::default(), KnownNames::default());
    let queue = Arc::new(FakeQueue::new(clock.clone(), 1, Faults::none(), 9));
    let bus = Arc::new(FakeBus::new(1, Faults::none()));
    Tasks::new(rig.table.clone(), queue, bus, clock, rig.workspaces().clone(), flows)
}

#[tokio::test(start_paused = true)]
async fn a_flow_that_loads_no_more_is_told_with_its_faults_and_its_history_is_read() {
    let rig = Rig::new(0).await;
    rig.flow("numbers", &[("workflow.yaml", SPLIT)]).await;
    let view = rig.run("numbers", json!({ "items": [1] })).await;
    let key = Key::new(format!("{}/flows", rig.workspace), format!("{}/{}", view.flow.name, view.flow.hash));
    let keep = async |body: &str| {
        let put = Write::put(key.clone(), body, Expect::Present);
        rig.table.commit(vec![put]).await.unwrap();
    };

    keep(&json!({ "workflow.yaml": "nodes: [" }).to_string()).await;
    let tasks = another_process(&rig);
    let refused = tasks.flows().by_hash(rig.workspace, &view.flow).await.unwrap_err();
    assert_eq!(refused.code, Code::Unprocessable);
    assert!(refused.details["faults"].as_array().is_some_and(|faults| !faults.is_empty()), "{refused:?}");
    let history = buildscale_telemetry::history(&tasks, rig.workspace, view.task_id, 0, 9).await.unwrap();
    assert!(!history.stages.is_empty());

    // Damage is none of its faults, and is not passed over.
    keep("no JSON").await;
    let tasks = another_process(&rig);
    assert_eq!(tasks.flows().by_hash(rig.workspace, &view.flow).await.unwrap_err().code, Code::Internal);
    assert_eq!(
        buildscale_telemetry::history(&tasks, rig.workspace, view.task_id, 0, 9).await.unwrap_err().code,
        Code::Internal
    );
}

#[tokio::test(start_paused = true)]
async fn all_flows_of_a_workspace_are_listed() {
    const MANY: usize = 205;
    let rig = Rig::new(0).await;
    let files = rig.workspaces().open(rig.workspace, workspace::Access::platform("a test")).await.unwrap();
    for n in 0..MANY {
        let folder = FilePath::parse(&format!("/system/flows/own{n:03}")).unwrap();
        files.mkdir(&folder, &Principal::local().into()).await.unwrap();
    }
    let listed = rig.tasks.flows().list(rig.workspace).await.unwrap();
    assert_eq!(listed.iter().filter(|flow| flow.name.starts_with("own") && !flow.built_in).count(), MANY);
}
