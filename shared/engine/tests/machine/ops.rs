//! Memory, artifacts and secrets over the stores that a hub has: SQLite, blobs and files in one folder.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_engine::{
    artifact::{ArtifactKind, ArtifactSelector, Artifacts, Batch, Entry, Owner, Rules},
    memory::{Memory, Scope},
    provider::BoundProviders,
    secret::{Address, FlowSecrets, Recipient},
};
use domain::{FilePath, NodeId, Principal, Sha256, TaskId, Timestamp, WorkspaceId, task::FlowRef};
use embedded::{LocalBlobs, LocalSecrets, Options, Store};
use flow::{
    adapters::Adapters,
    flow::{Bounds, ContextUse, StoreKind},
    manifest::{Credential, ProviderManifest},
};
use ports::{Blobs, Clock, Spilling, SystemClock, Table};
use serde_json::{Value, json};
use std::{path::Path, sync::Arc};
use workspace::Workspaces;

/// The stores of one process over a folder.
struct Process {
    store: Store,
    table: Arc<dyn Table>,
    workspaces: Workspaces,
}

fn start(folder: &Path) -> Process {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = Store::open(folder.join("store.sqlite3"), clock.clone(), Options::default()).unwrap();
    let blobs: Arc<dyn Blobs> = Arc::new(LocalBlobs::new(folder.join("workspaces")));
    let table: Arc<dyn Table> = Arc::new(Spilling::new(store.table(), blobs.clone()));
    let workspaces = Workspaces::new(table.clone(), blobs, clock, folder.join("workspaces"));
    Process { store, table, workspaces }
}

fn scope() -> Scope {
    let workspace = WorkspaceId::from_key("test", "workspace");
    Scope { workspace, flow: "demo".into(), root: TaskId::from_key("test", "task") }
}

fn owner() -> Owner {
    let flow = FlowRef { name: "demo".into(), hash: Sha256::of(b"manifests") };
    let Scope { workspace, root: task, .. } = scope();
    Owner { workspace, task, user: Principal::local().user(), flow }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
}

fn output(content: Value) -> Entry {
    let (node, schema) = (Some(NodeId::from("plan")), Some("plan".into()));
    Entry { kind: ArtifactKind::Output, node, attempt: 1, schema, at: at(1), content }
}

#[tokio::test]
async fn s10_10_memories_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let (scope, everything) = (scope(), flow::flow::Memory::default());
    let long = json!({"text": "größer als eine Zeile ".repeat(6000)});

    let process = start(folder.path());
    let memory = Memory::new(process.table.clone());
    for (seconds, (store, key, content)) in (0..).zip([
        (StoreKind::Task, "goal", json!("ship it")),
        (StoreKind::Project, "style", json!({"tone": "plain"})),
        (StoreKind::Global, "long", long.clone()),
    ]) {
        memory
            .remember(None, &scope, store, key, &content, &["kept".into()], at(seconds), Bounds::default())
            .await
            .unwrap();
    }
    let before = memory.assemble(&scope, &everything, &ContextUse::Global, "").await.unwrap();
    memory.keep_snapshot(&scope, scope.root, at(9)).await.unwrap();
    process.store.close().await;

    let process = start(folder.path());
    let memory = Memory::new(process.table.clone());
    let after = memory.assemble(&scope, &everything, &ContextUse::Global, "").await.unwrap();
    assert_eq!(after, before);
    // Of the three the long one is over the budget, and is left out as a whole.
    let keys: Vec<&str> = after.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!((keys, after.left_out), (vec!["style", "goal"], 1));
    let snapshot = memory.kept_snapshot(scope.workspace, scope.root).await.unwrap().unwrap();
    let kept: Vec<&str> = snapshot.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!(kept, ["goal", "style", "long"]);
    assert_eq!(snapshot.items[2].content, long);
    process.store.close().await;
}

#[tokio::test]
async fn s10_1_artifacts_are_files_that_people_and_tools_can_read() {
    let folder = tempfile::tempdir().unwrap();
    let (process, owner) = (start(folder.path()), owner());
    process.workspaces.create(owner.workspace, "test", &Principal::local()).await.unwrap();
    let artifacts = Artifacts::new(process.table.clone(), process.workspaces.clone());
    let mut batch = Batch::new(Rules::default());
    batch.add(output(json!({"steps": ["a"]})));
    assert_eq!(artifacts.flush(&owner, batch).await.unwrap(), 1);

    let workspace = process.workspaces.open(owner.workspace, workspace::Access::platform("a test")).await.unwrap();
    let file = FilePath::parse(&format!("/tasks/{}/outputs.jsonl", owner.task)).unwrap();
    let info = workspace.stat(&file).await.unwrap();
    assert_eq!(info.author, format!("task:{}", owner.task));
    let on_disk = std::fs::read_to_string(workspace.latest().join(file.relative())).unwrap();
    assert_eq!(serde_json::from_str::<Value>(on_disk.trim()).unwrap()["content"], json!({"steps": ["a"]}));
    let by = ArtifactSelector::Schema { flow: "demo", schema: "plan" };
    let page = artifacts.list(owner.workspace, by, (None, None), 10, None).await.unwrap();
    assert_eq!(artifacts.read(owner.workspace, &page.artifacts[0]).await.unwrap(), json!({"steps": ["a"]}));
    process.store.close().await;
}

/// Plants a secret where a provider gets it, has it leak into all that is kept, and searches every byte of the folder.
#[tokio::test]
async fn s10_11_a_planted_secret_is_in_nothing_that_is_kept() {
    const PLANTED: &str = "pl4nted-\"s3cret\"-value";
    let folder = tempfile::tempdir().unwrap();
    let (process, owner, scope) = (start(folder.path()), owner(), scope());
    process.workspaces.create(owner.workspace, "test", &Principal::local()).await.unwrap();

    let secrets = LocalSecrets::new(None).with_variables(|name| (name == "A_KEY").then(|| PLANTED.into()));
    let credentials = [Credential { id: "key".into(), env: Some("A_KEY".into()), ..Credential::default() }];
    let vault = FlowSecrets::open(
        &credentials,
        Recipient {
            workspace: domain::WorkspaceId(uuid::Uuid::nil()),
            address: Address::Url("https://models.example"),
        },
        &secrets,
    )
    .await
    .unwrap();
    let provider = |manifest: Value| serde_json::from_value::<ProviderManifest>(manifest).unwrap();
    let good = provider(json!({"id": "openai", "credentials": "key", "models": ["small"]}));
    let bad = provider(json!({"id": "other", "adapter": "nobody", "credentials": "key"}));
    let bound = BoundProviders::of(&Adapters::builtin(), std::slice::from_ref(&good), &credentials, &vault).unwrap();
    let (openai, _) = bound.route("openai/small").unwrap().unwrap();
    assert_eq!(openai.secret.as_ref().unwrap().expose(), PLANTED, "the one place that needs it has it");

    let refused = BoundProviders::of(&Adapters::builtin(), &[good, bad], &credentials, &vault).unwrap_err();
    let leaking = domain::Error::invalid("key", format!("the provider says: wrong key {PLANTED}")).hint(PLANTED);
    let said = [
        format!("{vault:?} {bound:?} {secrets:?}"),
        serde_json::to_string(&refused).unwrap(),
        serde_json::to_string(&bound.fingerprints()).unwrap(),
        serde_json::to_string(&vault.redactor().error(leaking)).unwrap(),
    ];

    let mut leaked = json!({"answer": format!("my key is {PLANTED}"), "raw": format!("{{\"k\":{}}}", json!(PLANTED))});
    let artifacts = Artifacts::new(process.table.clone(), process.workspaces.clone());
    let mut batch = Batch::new(Rules::default());
    batch.add(output(leaked.clone()));
    artifacts.redacting(vault.redactor().clone()).flush(&owner, batch).await.unwrap();
    vault.redactor().value(&mut leaked);
    let memory = Memory::new(process.table.clone());
    memory.remember(None, &scope, StoreKind::Task, "answer", &leaked, &[], at(1), Bounds::default()).await.unwrap();
    memory.keep_snapshot(&scope, scope.root, at(2)).await.unwrap();
    process.store.close().await;

    let needles = [PLANTED.to_owned(), json!(PLANTED).to_string().trim_matches('"').to_owned(), "s3cret".into()];
    let mut searched = 0;
    search(folder.path(), &mut |path, bytes| {
        searched += 1;
        let text = String::from_utf8_lossy(bytes);
        let found = needles.iter().find(|needle| text.contains(needle.as_str()));
        assert!(found.is_none(), "{} has {found:?}", path.display());
    });
    assert!(searched >= 3, "the store, the file and its archive were looked at: {searched}");
    for said in said {
        assert!(!needles.iter().any(|needle| said.contains(needle.as_str())), "{said}");
    }
}

fn search(folder: &Path, look: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search(&path, look);
        } else {
            look(&path, &std::fs::read(&path).unwrap());
        }
    }
}
