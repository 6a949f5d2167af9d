//! The MCP servers of a workspace, sign-ins at them, and the server that a workspace is.

use crate::support::Door;
use serde_json::{Value, json};

#[tokio::test]
async fn servers_are_listed_and_signed_in_at_by_the_address_that_the_request_came_to() {
    let door = Door::open();
    let at = format!("{}/mcp", door.workspace().await);
    let listed = door.get(&format!("{at}/servers")).await.is(200);
    let server = &listed.json["servers"][0];
    assert_eq!((&server["name"], &server["state"]), (&json!("tracker"), &json!("needs_sign_in")));
    let host = [("host", "127.0.0.1:8686")];
    let begun = door.ask("POST", &format!("{at}/tracker/authorize"), &host, "").await.is(200);
    assert_eq!(begun.header("cache-control"), "no-store");
    let url = begun.text("authorize_url");
    assert_eq!(begun.json["confirm"], false, "the machine has one person");
    assert!(url.ends_with("redirect_uri=http://127.0.0.1:8686/api/v1/mcp/callback"), "{url}");
    door.ask("DELETE", &format!("{at}/tracker/authorize"), &host, "").await.is(204);
}

#[tokio::test]
async fn section_12_one_address_reaches_the_first_workspace_or_the_one_that_is_named() {
    let door = Door::open();
    let write = async |at: &str, path: &str| {
        let params = json!({ "name": "write", "arguments": { "path": path, "content": "x" } });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        door.json("POST", at, message).await.is(200).json["result"]["isError"].clone()
    };
    // A person without a workspace gets one.
    assert_eq!(write("/mcp", "/first.md").await, false);
    let listed = door.get("/api/v1/workspaces").await.is(200);
    let first = format!("/api/v1/workspaces/{}", listed.json["workspaces"][0]["workspace_id"].as_str().unwrap());
    let second = door.workspace().await;
    let named = format!("/mcp?workspaceId={}", second.rsplit('/').next().unwrap());
    assert_eq!(write(&named, "/second.md").await, false);
    assert_eq!(write("/mcp", "/third.md").await, false);
    for (workspace, path, status) in [
        (&first, "/first.md", 200),
        (&first, "/third.md", 200),
        (&first, "/second.md", 404),
        (&second, "/second.md", 200),
        (&second, "/first.md", 404),
    ] {
        door.get(&format!("{workspace}/files/by-path?path={path}")).await.is(status);
    }
}

#[tokio::test]
async fn s10_11_words_that_a_host_sends_to_a_chat_lose_known_secrets_and_contents_of_files_do_not() {
    let mut door = Door::open();
    let known = ports::KnownSecrets::default();
    known.learn(&[ports::Secret::new("planted-secret")]);
    door.router = door.router.clone().layer(axum::Extension(known));
    let workspace = door.workspace().await;
    let at = format!("{workspace}/mcp");
    let call = async |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        door.json("POST", &at, message).await.is(200).json["result"]["isError"].clone()
    };
    assert_eq!(call("write", json!({ "path": "/own.md", "content": "planted-secret" })).await, false);
    let content = door.get(&format!("{workspace}/files/by-path/content?path=/own.md")).await.is(200);
    assert_eq!(content.bytes, "planted-secret");
    door.take_messages().await;
    assert_ne!(call("chat_start", json!({ "goal": "Keep planted-secret" })).await, true);
    let sent = door.take_messages().await.join("\n");
    assert!(sent.contains("Keep [redacted]") && !sent.contains("planted-secret"), "{sent}");
}

#[tokio::test]
async fn the_answer_of_an_issuer_is_taken_without_a_credential_and_shown_as_plain_text() {
    let door = Door::open();
    let done = door.get("/api/v1/mcp/callback?state=a&code=b").await.is(200);
    assert!(done.header("content-type").starts_with("text/plain"), "{:?}", done.headers);
    assert_eq!(done.header("cache-control"), "no-store");
    assert!(String::from_utf8_lossy(&done.bytes).starts_with("Signed in at the MCP server tracker."));
    let shown = door.get("/api/v1/mcp/callback?state=confirmed&code=b").await.is(200);
    assert!(String::from_utf8_lossy(&shown.bytes).contains("The code is 1234 5678."));
    door.get("/api/v1/mcp/callback?state=unknown&code=b").await.refuses(404, "NOT_FOUND");
    door.get("/api/v1/mcp/callback?code=b").await.refuses(400, "INVALID_ARGUMENT");
}
