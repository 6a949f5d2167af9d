//! The workspace of the header `X-Workspace-Id`, at the routes of protocols, whose paths name none.

use super::{
    rows::{HERE, ROWS},
    world::World,
};
use http::header::{AUTHORIZATION, HeaderName};
use identity::Action;
use serde_json::json;

/// The headers of a request with this key, to this workspace.
fn headers(key: &str, workspace: Option<&str>) -> Vec<(HeaderName, String)> {
    let named = workspace.map(|id| (HeaderName::from_static("x-workspace-id"), id.to_owned()));
    [(AUTHORIZATION, format!("Bearer {key}"))].into_iter().chain(named).collect()
}

#[tokio::test]
async fn a_key_for_one_workspace_reaches_no_other_of_its_person() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let made = world.json(&ann.token, "POST", "/api/v1/workspaces", json!({ "name": "second" })).await.is(201);
    let (first, second) = (ann.has["workspace_id"].as_str(), made.text("workspace_id"));
    let bound = world.key("ann", &Action::ALL, Some(&second)).await;
    let free = world.key("ann", &Action::ALL, None).await;
    let mut protocols = [("/openai/", 0), ("/langgraph/", 0), ("/a2a", 0), ("/v1/", 0)];
    for row in ROWS.iter().filter(|row| row.query.starts_with(HERE)) {
        let (target, body) = ann.filled(row, None);
        let target = target.replace(&ann.fill(HERE, None), "");
        for (_, routes) in protocols.iter_mut().filter(|(path, _)| target.starts_with(path)) {
            *routes += 1;
        }
        let refused = world.call_with(headers(&bound, Some(first)), row.method(), &target, &body).await;
        refused.refuses(404, "NOT_FOUND");
        // The same call is let in with a key for all workspaces. One that changes the tenant would change it for the rows behind it.
        if row.method() == "GET" {
            let reply = world.call_with(headers(&free, Some(first)), "GET", &target, &body).await;
            let status = reply.status.as_u16();
            assert!(![401, 403, 404].contains(&status), "{}: {status}", row.route);
        }
    }
    assert!(protocols.iter().all(|(_, routes)| *routes > 0), "{protocols:?}");
}

#[tokio::test]
async fn a_key_for_one_workspace_works_in_it_without_the_header() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let made = world.json(&ann.token, "POST", "/api/v1/workspaces", json!({ "name": "second" })).await.is(201);
    let second = made.text("workspace_id");
    let bound = world.key("ann", &Action::ALL, Some(&second)).await;
    let threads = async |headers| {
        world.call_with(headers, "POST", "/langgraph/threads/search", "{}").await.is(200).json.as_array().unwrap().len()
    };
    assert_eq!(threads(headers(&bound, None)).await, 0);
    assert_eq!(threads(headers(&bound, Some(&second))).await, 0);
    assert_ne!(threads(headers(&ann.token, Some(&ann.has["workspace_id"]))).await, 0);
    // A header that is there goes before the parameter of the address.
    let target = ann.fill("/langgraph/threads/search?workspaceId={workspace_id}", None);
    let found = world.call_with(headers(&bound, Some(&second)), "POST", &target, "{}").await.is(200);
    assert_eq!(found.json, json!([]));
}
