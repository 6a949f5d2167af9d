//! The metadata of runs (spec 002 §10.2).

use crate::{flows::SPLIT, rig::Rig};
use domain::Sha256;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn s10_2_every_run_keeps_the_hashes_of_what_it_was_made_with() {
    let rig = Rig::new(0).await;
    let schema = r#"{"type": "object", "required": ["items"]}"#;
    let labels = "name: Numbers\nflow_version: 1.2.3\nengine_version: \">=0.1, <99\"\nauthors: [Ada]\n\
                  schema_revisions: {list: \"7\"}\nmetadata: {team: bees}\n";
    let flow = SPLIT.replace("default_start: true,", "default_start: true, schema_in: list,");
    let files = [("workflow.yaml", flow.as_str()), ("schemas/list.json", schema), ("engine_metadata.yaml", labels)];
    rig.flow("numbers", &files).await;
    let view = rig.run("numbers", json!({ "items": [1, 2] })).await;
    let made = rig.tasks.metadata(rig.workspace, view.task_id).await.unwrap();
    assert_eq!((made.engine.name.as_str(), made.engine.version.as_str()), ("buildscale", env!("CARGO_PKG_VERSION")));
    assert_eq!(made.flow, view.flow);
    for (path, text) in files {
        assert_eq!(made.manifests.get(path), Some(&Sha256::of(text.as_bytes())), "{path}");
    }
    assert_eq!(made.schemas.keys().collect::<Vec<_>>(), ["list"]);
    assert_eq!((made.labels.get("team"), made.started_at), (Some(&json!("bees")), view.created_at));
    let declared = json!({
        "name": "Numbers", "flow_version": "1.2.3", "engine_version": ">=0.1, <99", "authors": ["Ada"],
        "schema_revisions": {"list": "7"},
    });
    assert_eq!(serde_json::to_value(&made).unwrap()["declared"], declared);
    // The flow changes; the metadata of the run do not.
    let changed = SPLIT.replace("* 2", "* 3");
    rig.flow("numbers", &[("workflow.yaml", &changed)]).await;
    assert_eq!(rig.tasks.metadata(rig.workspace, view.task_id).await.unwrap(), made);
    let later = rig.run("numbers", json!({ "items": [1, 2] })).await;
    let other = rig.tasks.metadata(rig.workspace, later.task_id).await.unwrap();
    assert_ne!(other.manifests.get("workflow.yaml"), made.manifests.get("workflow.yaml"));
    assert_eq!(
        (other.manifests.get("schemas/list.json"), other.input),
        (made.manifests.get("schemas/list.json"), made.input)
    );
    // Children are made with what their root is made with.
    let children = rig.tasks.children(rig.workspace, view.task_id, &Default::default(), 10, None).await.unwrap();
    assert_eq!(children.tasks.len(), 2);
    assert_eq!(rig.tasks.metadata(rig.workspace, children.tasks[1].task_id).await.unwrap(), made);
}
