//! Persisted shapes of the engine, as every version wrote them; and an old log folds to the same state in every version.

#![expect(clippy::unwrap_used, reason = "tests")]

use actor::Machine as _;
use buildscale_engine::{
    TaskMachine,
    artifact::{Artifact, ArtifactKind},
    machine::TaskState,
    memory::Snapshot,
};
use domain::{
    FilePath, Sha256, TaskEvent, TaskId, Timestamp,
    task::{ContextItem, FlowRef},
};
use serde_json::json;
use testkit::golden;
use uuid::Uuid;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const AT: Timestamp = Timestamp::from_millis(1_767_225_600_042);

const fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_0000_0000_0000 + number)
}

fn flow() -> FlowRef {
    FlowRef { name: "review".into(), hash: Sha256::of(b"flow") }
}

/// Snapshots hold the folded state: a change of it makes earlier snapshots invalid.
#[test]
fn an_old_log_folds_to_what_it_always_did() {
    let log = include_str!("../../../domain/tests/golden/task_events/10.json");
    let events: Vec<TaskEvent> = serde_json::from_str(log).unwrap();
    let (mut state, mut states) = (TaskState::default(), Vec::new());
    for event in &events {
        state.apply(event);
        let is_shown = matches!(
            event,
            TaskEvent::NodeStarted { .. }
                | TaskEvent::AgentAsked { .. }
                | TaskEvent::AgentReplied { .. }
                | TaskEvent::Asked { .. }
                | TaskEvent::Waiting { .. }
                | TaskEvent::Answered { .. }
                | TaskEvent::ChildArrived { .. }
                | TaskEvent::PausedBefore { .. }
                | TaskEvent::Finished { .. }
                | TaskEvent::Parked { .. }
        );
        if is_shown {
            states.push(serde_json::to_value(&state).unwrap());
        }
    }
    let states: Vec<TaskState> = serde_json::from_value(json!(states)).unwrap();
    let version = golden::check(ROOT, "task_states", &states);
    assert_eq!(version, TaskMachine::VERSION, "another fold is another version of the machine");
}

#[test]
fn artifacts_and_memory_are_read_for_ever() {
    let artifact = |kind| Artifact {
        id: "writer/1/output/0".into(),
        task_id: TaskId(id(1)),
        flow: flow(),
        kind,
        node: Some("writer".into()),
        attempt: 1,
        schema: Some("review".into()),
        at: AT,
        path: FilePath::parse("/artifacts/a.jsonl").unwrap(),
        offset: Some(12),
        bytes: 34,
        sha256: Sha256::of(b"content"),
    };
    golden::check(ROOT, "artifacts", &ArtifactKind::ALL.map(artifact).to_vec());
    let item = ContextItem {
        store: "project".into(),
        key: "style".into(),
        content: json!("dry"),
        tags: vec!["review".into()],
        tokens: 1,
        at: AT,
    };
    golden::check(ROOT, "memory_snapshots", &Snapshot { at: AT, items: vec![item], cut: vec!["global".into()] });
}
