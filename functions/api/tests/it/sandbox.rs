//! The workspace's sandbox: how it is, warmed up, let go; and commands of people.

use crate::support::{Door, Setup};
use domain::WorkspaceId;
use serde_json::json;
use std::sync::Arc;
use testkit::fakes::FakeSandboxes;

#[tokio::test]
async fn a_sandbox_is_looked_at_warmed_and_let_go_as_often_as_one_likes() {
    let sandboxes = Arc::new(FakeSandboxes::default());
    let door = Door::with(Setup { sandboxes: Some(sandboxes.clone()), ..Setup::default() });
    let workspace = door.workspace().await;
    let sandbox = format!("{workspace}/sandbox");
    sandboxes.takes(1);
    assert_eq!(door.get(&sandbox).await.is(200).text("state"), "cold");
    let starting = door.ask("POST", &sandbox, &[], "").await.is(202);
    assert_eq!(
        (starting.text("state"), starting.text("reason")),
        ("starting".into(), "a machine is looked for".into())
    );
    assert_eq!(door.get(&sandbox).await.is(200).text("state"), "ready");
    assert_eq!(door.ask("POST", &sandbox, &[], "").await.is(202).text("state"), "ready");
    for _ in 0..2 {
        door.ask("DELETE", &sandbox, &[], "").await.is(204);
        assert_eq!(door.get(&sandbox).await.is(200).text("state"), "cold");
    }
    sandboxes.cannot_start("there is no capacity");
    door.ask("POST", &sandbox, &[], "").await.is(202);
    let failed = door.get(&sandbox).await.is(200);
    assert_eq!((failed.text("state"), failed.text("reason")), ("failed".into(), "there is no capacity".into()));
    let nowhere = format!("/api/v1/workspaces/{}/sandbox", uuid::Uuid::nil());
    for method in ["GET", "POST", "DELETE"] {
        door.ask(method, &nowhere, &[], "").await.refuses(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn without_a_sandbox_the_api_says_so() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let sandbox = format!("{workspace}/sandbox");
    let why = "no sandbox is configured here";
    assert_eq!(door.get(&sandbox).await.is(200).text("reason"), why);
    assert_eq!(door.ask("POST", &sandbox, &[], "").await.is(202).text("reason"), why);
    door.ask("DELETE", &sandbox, &[], "").await.is(204);
    let call = door.json("POST", &format!("{workspace}/tools"), json!({ "tool": "exec", "args": {} })).await.is(200);
    assert_eq!(call.json["error"]["code"], "NOT_FOUND");
}

#[tokio::test]
async fn people_run_commands_once_under_a_key() {
    let sandboxes = Arc::new(FakeSandboxes::default());
    let door = Door::with(Setup { sandboxes: Some(sandboxes.clone()), ..Setup::default() });
    let workspace = door.workspace().await;
    let id: WorkspaceId = workspace.rsplit('/').next().unwrap().parse().unwrap();
    let sandbox = sandboxes.come_up(id);
    let tools = format!("{workspace}/tools");
    let call = json!({ "tool": "exec", "args": { "words": ["make", "all"] } });
    for _ in 0..2 {
        let ran = door.keyed("once", &tools, call.clone()).await.is(200);
        assert_eq!((ran.json["success"].as_bool(), &ran.json["result"]["stdout"]), (Some(true), &json!("make all")));
    }
    assert_eq!(sandbox.begun().len(), 1);
    door.json("POST", &tools, call).await.is(200);
    assert_eq!(sandbox.begun().len(), 2);
}
