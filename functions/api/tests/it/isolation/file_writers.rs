//! The right of a key to run flows, at every route that writes files: a version that a key without the scope `run` writes starts no flow.

use super::world::{World, accounts, uuid};
use crate::support::Setup;
use async_trait::async_trait;
use domain::{FilePath, WorkspaceId};
use identity::Action;
use ports::Query;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use uuid::Uuid;
use workspace::{HandoffObserver, Workspace};

/// Each new version may start a flow.
struct EachVersion;

#[async_trait]
impl HandoffObserver for EachVersion {
    async fn concerns(&self, _: &Workspace, _: &FilePath) -> workspace::Result<bool> {
        Ok(true)
    }
    async fn committed(&self, _: WorkspaceId, _: Uuid) {}
}

/// The versions that may start flows, each with whether its author may run flows.
async fn waiting(world: &World, workspace: &str) -> BTreeMap<String, Value> {
    let (mut found, mut cursor) = (BTreeMap::new(), None);
    loop {
        let query = Query::all(format!("{workspace}/handoffs"), 200).after(cursor);
        let page = world.door.table.query(&query).await.unwrap();
        found.extend(page.items.into_iter().map(|item| {
            let body: Value = serde_json::from_str(&item.body).unwrap();
            (item.key.sk, body["may_run"].clone())
        }));
        cursor = page.next;
        if cursor.is_none() {
            return found;
        }
    }
}

#[tokio::test]
async fn a_version_that_a_key_without_the_scope_run_writes_starts_no_flow_whatever_the_route() {
    let world = World::of(Setup { auth: accounts(), handoffs: Some(Arc::new(EachVersion)), ..Setup::default() });
    let ann = world.tenant("ann").await;
    let id = &ann.has["workspace_id"];
    for (scopes, may_run) in
        [(&[Action::Read, Action::Write][..], false), (&[Action::Read, Action::Write, Action::Run][..], true)]
    {
        let key = world.key("ann", scopes, None).await;
        let files = format!("{}/files", ann.workspace);
        let folder = format!("/in/{}", uuid());
        let write = async |method: &str, target: String, body: Value| {
            let before = waiting(&world, id).await;
            let reply = world.call(Some(&key), method, &target, &body.to_string()).await;
            assert!(reply.status.is_success(), "{method} {target}: {}", String::from_utf8_lossy(&reply.bytes));
            let mut after = waiting(&world, id).await;
            after.retain(|id, _| !before.contains_key(id));
            assert!(!after.is_empty(), "{method} {target} makes a version");
            assert!(after.values().all(|may| *may == json!(may_run)), "{method} {target} with {scopes:?}: {after:?}");
            reply
        };
        let path = format!("{folder}/a.md");
        let made = write("POST", files.clone(), json!({ "path": path, "content": "one" })).await;
        let file = format!("{files}/{}", made.text("file_id"));
        write("PUT", file.clone(), json!({ "content": "two" })).await;
        write("PUT", format!("{files}/by-path?path={path}"), json!({ "content": "three" })).await;
        write("PUT", format!("{file}/content"), json!("four")).await;
        write("PUT", format!("{files}/by-path/content?path={path}"), json!("five")).await;
        write("POST", format!("{file}/versions/1/restore"), json!({})).await;
        let back =
            json!({ "scope": { "kind": "path", "path": path }, "to": { "file_id": made.text("file_id"), "v": 2 } });
        write("POST", format!("{}/rewind", ann.workspace), back).await;
        let call = json!({ "tool": "write", "args": { "path": format!("{folder}/b.md"), "content": "six" } });
        write("POST", format!("{}/tools", ann.workspace), call).await;
        let item = json!({ "namespace": ["in"], "key": uuid().to_string(), "value": { "n": 7 } });
        write("PUT", format!("/langgraph/store/items?workspaceId={id}"), item).await;
    }
}
