#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use domain::{Code, Principal};
use serde_json::json;
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeTable, Faults},
};
use workspace::{Expect, Workspace, Writer};

struct World {
    artifacts: Artifacts,
    table: Arc<FakeTable>,
    workspace: Workspace,
    owner: Owner,
    _root: tempfile::TempDir,
}

async fn world() -> World {
    let clock = Arc::new(TestClock::new(1));
    let faults = Faults { yields: 0.5, short_pages: 0.5, ..Faults::none() };
    let table = Arc::new(FakeTable::new(clock.clone(), 1, faults.clone()));
    let blobs = Arc::new(FakeBlobs::new(1, faults));
    let root = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::new(table.clone(), blobs, clock, root.path().into());
    let id = WorkspaceId::from_key("test", "workspace");
    workspaces.create(id, "test", &Principal::local()).await.unwrap();
    let workspace = workspaces.open(id, workspace::Access::platform("a test")).await.unwrap();
    let flow = FlowRef { name: "demo".into(), hash: Sha256::of(b"manifests") };
    let owner = Owner { workspace: id, task: TaskId::from_key("test", "task"), user: Principal::local().user(), flow };
    World { artifacts: Artifacts::new(table.clone(), workspaces), table, workspace, owner, _root: root }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
}

fn entry(kind: ArtifactKind, node: &str, schema: Option<&str>, seconds: i64, content: Value) -> Entry {
    let (node, schema) = (Some(node.into()), schema.map(str::to_owned));
    Entry { kind, node, attempt: 1, schema, at: at(seconds), content }
}

fn batch(rules: Rules) -> Batch {
    let mut batch = Batch::new(rules);
    batch.add(entry(
        ArtifactKind::Output,
        "plan",
        Some("plan"),
        1,
        json!({"steps": ["a", "b"], "big": 18446744073709551615_u64}),
    ));
    batch.add(entry(ArtifactKind::ToolResult, "plan", None, 2, json!({"tool": "read", "output": "sécret-token\n"})));
    batch.add(entry(ArtifactKind::ToolResult, "plan", None, 2, json!({"tool": "write", "output": "ok"})));
    batch.add(entry(ArtifactKind::Output, "write", Some("text"), 3, json!("done")));
    batch
}

impl World {
    async fn ids(&self, by: ArtifactSelector<'_>) -> Vec<String> {
        let (mut ids, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.artifacts.list(self.owner.workspace, by, (None, None), 2, cursor).await.unwrap();
            ids.extend(page.artifacts.into_iter().map(|artifact| artifact.id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return ids;
            }
        }
    }

    async fn file(&self, kind: ArtifactKind) -> String {
        let content = self.workspace.read(&path(self.owner.task, kind).unwrap(), None).await.unwrap();
        String::from_utf8(content.bytes.to_vec()).unwrap()
    }
}

#[tokio::test]
async fn s10_1_artifacts_are_files_with_an_index_by_task_node_schema_and_time() {
    let world = world().await;
    assert_eq!(world.artifacts.flush(&world.owner, batch(Rules::default())).await.unwrap(), 2);
    let all = ["plan/1/output/1", "plan/1/tool_result/1", "plan/1/tool_result/2", "write/1/output/1"];
    assert_eq!(world.ids(ArtifactSelector::Task(world.owner.task)).await, all);
    assert_eq!(world.ids(ArtifactSelector::Node { flow: "demo", node: "plan" }).await, all[..3]);
    assert_eq!(world.ids(ArtifactSelector::Schema { flow: "demo", schema: "text" }).await, all[3..]);
    assert_eq!(world.ids(ArtifactSelector::Node { flow: "other", node: "plan" }).await, [""; 0]);
    assert_eq!(world.ids(ArtifactSelector::Time).await, all);
    let (by, when) = (ArtifactSelector::Task(world.owner.task), (Some(at(2)), Some(at(3))));
    let page = world.artifacts.list(world.owner.workspace, by, when, 200, None).await.unwrap();
    let mut ids: Vec<String> = page.artifacts.iter().map(|artifact| artifact.id.clone()).collect();
    let mut cursor = page.next_cursor.clone();
    while let Some(next) = cursor.take() {
        let page = world.artifacts.list(world.owner.workspace, by, when, 200, Some(next)).await.unwrap();
        ids.extend(page.artifacts.into_iter().map(|artifact| artifact.id));
        cursor = page.next_cursor;
    }
    assert_eq!(ids, all[1..3]);
    let outputs = world.file(ArtifactKind::Output).await;
    assert_eq!(outputs.lines().count(), 2);
    assert!(outputs.contains("18446744073709551615") && outputs.contains("\"schema\":\"plan\""), "{outputs}");
}

#[tokio::test]
async fn s10_1_artifacts_of_one_schema_are_found_in_a_task_and_in_a_flow() {
    let world = world().await;
    world.artifacts.flush(&world.owner, batch(Rules::default())).await.unwrap();
    let find = async |wanted: ArtifactFilter| {
        let (mut ids, mut cursor) = (Vec::new(), None);
        loop {
            let page = world.artifacts.find(world.owner.workspace, &wanted, 2, cursor).await.unwrap();
            ids.extend(page.artifacts.into_iter().map(|artifact| artifact.id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return ids;
            }
        }
    };
    for (schema, id) in [("plan", Some("plan/1/output/1")), ("text", Some("write/1/output/1")), ("none", None)] {
        let expected: Vec<&str> = id.into_iter().collect();
        let wanted = ArtifactFilter { schema: Some(schema.into()), ..ArtifactFilter::default() };
        let of_task = ArtifactFilter { task: Some(world.owner.task), ..wanted.clone() };
        assert_eq!(find(of_task).await, expected, "{schema}");
        let of_flow = |flow: &str| ArtifactFilter { flow: Some(flow.into()), ..wanted.clone() };
        assert_eq!(find(of_flow("demo")).await, expected, "{schema}");
        assert_eq!(find(of_flow("other")).await, [""; 0], "{schema} of another flow");
        let nowhere = world.artifacts.find(world.owner.workspace, &wanted, 2, None).await.unwrap_err();
        assert_eq!(nowhere.code, Code::InvalidArgument, "a schema is that of a flow or a task");
    }
}

#[tokio::test]
async fn artifacts_of_a_task_that_is_deleted_are_on_no_list() {
    let world = world().await;
    let other = Owner { task: TaskId::from_key("test", "other"), ..world.owner.clone() };
    world.artifacts.flush(&world.owner, batch(Rules::default())).await.unwrap();
    world.artifacts.flush(&other, batch(Rules::default())).await.unwrap();
    for _ in 0..2 {
        world.artifacts.forget(world.owner.workspace, world.owner.task).await.unwrap();
        let all = ["plan/1/output/1", "plan/1/tool_result/1", "plan/1/tool_result/2", "write/1/output/1"];
        assert_eq!(world.ids(ArtifactSelector::Task(world.owner.task)).await, [""; 0]);
        assert_eq!(world.ids(ArtifactSelector::Node { flow: "demo", node: "plan" }).await, all[..3]);
        assert_eq!(world.ids(ArtifactSelector::Schema { flow: "demo", schema: "text" }).await, all[3..]);
        assert_eq!(world.ids(ArtifactSelector::Time).await, all);
        assert_eq!(world.ids(ArtifactSelector::Task(other.task)).await, all);
    }
}

#[tokio::test]
async fn s10_1_every_artifact_can_be_read_by_itself() {
    let world = world().await;
    world.artifacts.flush(&world.owner, batch(Rules::default())).await.unwrap();
    let expected = batch(Rules::default()).entries;
    let mut cursor = None;
    let mut found = Vec::new();
    loop {
        let by = ArtifactSelector::Task(world.owner.task);
        let page = world.artifacts.list(world.owner.workspace, by, (None, None), 200, cursor).await.unwrap();
        found.extend(page.artifacts);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    for (artifact, entry) in found.iter().zip(&expected) {
        let content = world.artifacts.read(world.owner.workspace, artifact).await.unwrap();
        assert_eq!(content.to_string(), entry.content.to_string(), "exactly as given");
        assert_eq!(artifact.sha256, Sha256::of(entry.content.to_string().as_bytes()));
    }
    let (output, writer) = (path(world.owner.task, ArtifactKind::Output).unwrap(), Writer::new(Principal::local()));
    world.workspace.write(&output, "{\"content\":1}\n", Expect::Any, &writer).await.unwrap();
    let error = world.artifacts.read(world.owner.workspace, &found[0]).await.unwrap_err();
    assert_eq!(error.code, Code::Conflict);
}

#[tokio::test]
async fn s10_1_to_archive_again_changes_nothing() {
    let world = world().await;
    world.artifacts.flush(&world.owner, batch(Rules::default())).await.unwrap();
    let before: Vec<_> = world.table.items().into_iter().map(|item| (item.key, item.body)).collect();
    world.artifacts.flush(&world.owner, batch(Rules::default())).await.unwrap();
    let after: Vec<_> = world.table.items().into_iter().map(|item| (item.key, item.body)).collect();
    assert_eq!(after, before, "no new version of a file, no other row");
}

#[tokio::test]
async fn s10_1_rules_say_what_is_kept() {
    let world = world().await;
    let kept = async |rules: Rules| world.artifacts.flush(&world.owner, batch(rules)).await.unwrap();
    assert_eq!(kept(Rules { enabled: false, ..Rules::default() }).await, 0);
    assert_eq!(kept(Rules { nodes: vec!["nobody".into()], ..Rules::default() }).await, 0);
    assert_eq!(world.ids(ArtifactSelector::Task(world.owner.task)).await, [""; 0]);
    let rules = Rules { tool_results: false, nodes: vec!["write".into()], ..Rules::default() };
    assert_eq!(kept(rules).await, 1);
    assert_eq!(world.ids(ArtifactSelector::Task(world.owner.task)).await, ["write/1/output/1"]);
}

#[tokio::test]
async fn s10_1_rules_leave_out_a_kind_and_let_the_index_forget() {
    let every = Rules::default;
    for (rules, left_out) in [
        (Rules { outputs: false, ..every() }, "/output/"),
        (Rules { tool_results: false, ..every() }, "/tool_result/"),
        (Rules { telemetry: false, ..every() }, "/telemetry/"),
    ] {
        let world = world().await;
        let mut all = batch(rules);
        all.add(entry(ArtifactKind::Telemetry, "plan", None, 4, json!({ "stages": 1 })));
        world.artifacts.flush(&world.owner, all).await.unwrap();
        let ids = world.ids(ArtifactSelector::Task(world.owner.task)).await;
        for kind in ["/output/", "/tool_result/", "/telemetry/"] {
            assert_eq!(ids.iter().any(|id| id.contains(kind)), kind != left_out, "{kind} without {left_out}: {ids:?}");
        }
    }
    // The clock says a time that is 778 days after the artifacts.
    for (retention_days, left) in [(Some(700), 0), (Some(800), 4), (None, 4)] {
        let world = world().await;
        world.artifacts.flush(&world.owner, batch(Rules { retention_days, ..every() })).await.unwrap();
        for by in [ArtifactSelector::Task(world.owner.task), ArtifactSelector::Time] {
            assert_eq!(world.ids(by).await.len(), left, "{retention_days:?}");
        }
    }
}

#[tokio::test]
async fn s10_1_of_what_is_too_large_the_digest_is_kept() {
    let world = world().await;
    let mut large = Batch::new(Rules { max_bytes: 100, ..Rules::default() });
    large.add(entry(ArtifactKind::Output, "a", Some("s"), 1, json!("x".repeat(200))));
    large.add(entry(ArtifactKind::Output, "b", Some("s"), 2, json!("small")));
    assert_eq!(world.artifacts.flush(&world.owner, large).await.unwrap(), 1);
    let by = ArtifactSelector::Node { flow: "demo", node: "a" };
    let page = world.artifacts.list(world.owner.workspace, by, (None, None), 9, None).await.unwrap();
    assert_eq!((page.artifacts[0].offset, page.artifacts[0].bytes), (None, 202));
    let error = world.artifacts.read(world.owner.workspace, &page.artifacts[0]).await.unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert_eq!(world.file(ArtifactKind::Output).await.lines().count(), 1);
}

#[tokio::test]
async fn s10_11_secrets_are_in_no_artifact_and_in_no_row() {
    let world = world().await;
    let redactor = Redactor::new(&[ports::Secret::new("sécret-token")]);
    let artifacts = world.artifacts.clone().redacting(redactor);
    artifacts.flush(&world.owner, batch(Rules::default())).await.unwrap();
    assert!(world.file(ArtifactKind::ToolResult).await.contains("[redacted]"));
    let everything: String = world.table.items().into_iter().map(|item| item.body).collect();
    assert!(
        !everything.contains("sécret-token") && !world.file(ArtifactKind::ToolResult).await.contains("sécret-token")
    );
}

#[tokio::test]
async fn s10_1_a_chain_of_many_nodes_leaves_few_files() {
    let world = world().await;
    let mut many = Batch::new(Rules::default());
    for n in 0..100 {
        many.add(entry(ArtifactKind::Output, &format!("n{n}"), Some("s"), n, json!({ "n": n })));
    }
    let before = world.table.commits();
    assert_eq!(world.artifacts.flush(&world.owner, many).await.unwrap(), 1);
    // One write of the file and its rows, a third of a hundred artifacts a commit.
    assert!(world.table.commits() - before <= 6, "{}", world.table.commits() - before);
    assert_eq!(world.ids(ArtifactSelector::Task(world.owner.task)).await.len(), 100);
}
