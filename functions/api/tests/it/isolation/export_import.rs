//! Archives of workspaces, as members and others get and send them.

use super::world::{World, token, user_id};
use identity::Role;
use serde_json::json;

#[tokio::test]
async fn an_archive_has_what_its_reader_sees_and_comes_back_as_a_workspace_of_its_sender() {
    let world = World::open();
    let (ann, bob) = (world.tenant("ann").await, world.tenant("bob").await);
    let viewer = token(&world.person_as(&ann, Role::Viewer).await);
    for (path, content) in
        [(format!("/users/{}/draft.md", user_id("ann")), "heliotrope"), ("/shared.md".into(), "sunflower")]
    {
        let body = json!({ "path": path, "content": content }).to_string();
        world.call(Some(&ann.token), "POST", &format!("{}/files", ann.workspace), &body).await.is(201);
    }
    let export = format!("{}/export", ann.workspace);
    world.call(Some(&bob.token), "GET", &export, "").await.refuses(404, "NOT_FOUND");
    let seen = world.call(Some(&viewer), "GET", &export, "").await.is(200);
    let seen = String::from_utf8_lossy(&seen.bytes).into_owned();
    assert!(seen.contains("sunflower") && !seen.contains("heliotrope"));

    let whole = world.call(Some(&ann.token), "GET", &export, "").await.is(200);
    assert_eq!(whole.header("content-type"), "application/x-tar");
    let archive = String::from_utf8(whole.bytes.to_vec()).unwrap();
    assert!(archive.contains("heliotrope"));
    let made = world.call(Some(&bob.token), "POST", "/api/v1/imports?name=copy", &archive).await.is(201);
    assert_eq!(made.json["name"], "copy");
    let copy = format!("/api/v1/workspaces/{}", made.text("workspace_id"));
    assert_eq!(made.header("location"), copy);
    let read = format!("{copy}/files/by-path/content?path=/shared.md");
    let shared = world.call(Some(&bob.token), "GET", &read, "").await.is(200);
    assert_eq!(&shared.bytes[..], b"sunflower");
    world.call(Some(&ann.token), "GET", &read, "").await.refuses(404, "NOT_FOUND");

    // One letter is another one: nothing is made.
    let refused =
        world.call(Some(&bob.token), "POST", "/api/v1/imports", &archive.replace("sunflower", "sunflowex")).await;
    let refused = refused.refuses(400, "INVALID_ARGUMENT");
    assert!(refused.json["error"]["details"]["entry"].as_str().unwrap().starts_with("contents/"));
    let git = world.call(Some(&ann.token), "GET", &format!("{export}?format=git"), "").await.is(200);
    assert!(git.bytes.starts_with(b"feature done\n") && git.bytes.ends_with(b"done\n"));
}
