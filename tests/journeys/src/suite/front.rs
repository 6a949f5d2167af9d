//! The rest of the front: workspaces, refusals, its description of itself.

use super::Stage;
use crate::Result;
use reqwest::Method;
use serde_json::{Value, json};

pub(super) async fn workspaces_are_made_renamed_and_removed(stage: Stage) -> Result {
    let client = stage.client();
    let (one, other) = (client.place().await?, client.place().await?);
    let renamed = client.ask(Method::PATCH, &one, json!({ "name": "Research" })).await?.is(200)?.json();
    assert_eq!(renamed["name"], "Research");
    client.ask(Method::PATCH, &one, json!({ "name": "" })).await?.refuses(400, "INVALID_ARGUMENT")?;
    assert_eq!(client.get(&one).await?["name"], "Research");
    let page = client.get("/api/v1/workspaces?limit=1").await?;
    assert_eq!(page["workspaces"].as_array().map(Vec::len), Some(1));
    assert!(page["next_cursor"].is_string(), "{page}");
    client.file(&one, "/projects/a.md", "one").await?;
    client.ask(Method::DELETE, &one, Value::Null).await?.is(204)?;
    for path in [one.clone(), format!("{one}/files"), format!("{one}/chats")] {
        client.look(&path).await?.refuses(404, "NOT_FOUND")?;
    }
    client.look(&other).await?.is(200)?;
    Ok(())
}

pub(super) async fn refusals_come_in_one_envelope(stage: Stage) -> Result {
    const NOWHERE: &str = "/api/v1/workspaces/019bf537-f228-7cd3-aa1c-3da8af302e12";
    let client = stage.client();
    let place = client.place().await?;
    client.look("/api/v1/nothing").await?.refuses(404, "NOT_FOUND")?;
    client.ask(Method::PUT, "/api/v1/workspaces", Value::Null).await?.is(405)?;
    for path in [NOWHERE.to_owned(), format!("{NOWHERE}/chats"), format!("{place}/chats/{}", &NOWHERE[19..])] {
        client.look(&path).await?.refuses(404, "NOT_FOUND")?;
    }
    for path in ["/api/v1/workspaces/x", "/api/v1/workspaces?limit=many", &format!("{place}/files?cursor=odd")] {
        client.look(path).await?.refuses(400, "INVALID_ARGUMENT")?;
    }
    for body in [json!([]), json!({}), json!({ "nam": "x" }), json!({ "name": 5 })] {
        client.ask(Method::POST, "/api/v1/workspaces", body).await?.refuses(400, "INVALID_ARGUMENT")?;
    }
    let no_json = client.request(Method::POST, "/api/v1/workspaces").header("content-type", "application/json");
    client.send(no_json.body("{")).await?.refuses(400, "INVALID_ARGUMENT")?;
    let odd_model = json!({ "goal": "x", "model": "nobody/nothing" });
    client.ask(Method::POST, &format!("{place}/chats"), odd_model).await?.refuses(400, "INVALID_ARGUMENT")?;

    // The request's own id comes back, when it is a sane one; and each key stands for one request.
    let named = client.request(Method::GET, NOWHERE).header("x-request-id", "journey-7");
    assert_eq!(client.send(named).await?.refuses(404, "NOT_FOUND")?["request_id"], "journey-7");
    let keyed = async |name: &str| {
        let request = client.request(Method::POST, &format!("{place}/files")).header("idempotency-key", "one-file");
        client.send(request.json(&json!({ "path": name, "content": "x" }))).await
    };
    let first = keyed("/projects/one.md").await?.is(201)?.json();
    assert_eq!(keyed("/projects/one.md").await?.is(201)?.json(), first);
    keyed("/projects/two.md").await?.refuses(409, "IDEMPOTENCY_MISMATCH")?;

    // An input that is too long for a command is refused with the reason.
    client.flow(&place, "approval", &[("workflow.yaml", testkit::flows::APPROVAL)]).await?;
    let long = json!({ "input": "x".repeat(300_000) });
    let refused = client.ask(Method::POST, &format!("{place}/flows/approval/tasks"), long).await?;
    refused.refuses(413, "PAYLOAD_TOO_LARGE")?;
    Ok(())
}

pub(super) async fn it_tells_its_state_and_its_abilities(stage: Stage) -> Result {
    let client = stage.client();
    let nobody = client.with_token(None);
    assert_eq!(nobody.get("/health").await?["status"], "ok");
    assert_eq!(nobody.get("/ready").await?["status"], "ready");
    let document = nobody.get("/openapi.json").await?;
    assert!(document["paths"]["/api/v1/workspaces/{workspace_id}/chats"]["post"].is_object());
    let models = client.get("/api/v1/models").await?;
    let listed = models["models"].as_array().ok_or("no models")?;
    assert!(listed.iter().any(|model| model["id"] == "scripted/demo"), "{models}");
    let schemas = client.get("/api/v1/flow-schemas").await?.to_string();
    assert!(schemas.contains("workflow"), "{schemas}");
    client.get("/api/v1/flow-schemas/workflow").await?;

    let place = client.place().await?;
    let skill = "---\nname: GitHub\ndescription: Opens pull requests\n---\n# How\n";
    client.file(&place, "/system/skills/github/SKILL.md", skill).await?;
    let skills = client.get(&format!("{place}/skills")).await?;
    let github = skills["skills"].as_array().into_iter().flatten().find(|skill| skill["name"] == "github").cloned();
    assert_eq!(github.ok_or("no github")?["description"], "Opens pull requests");
    assert_eq!(client.get(&format!("{place}/agents")).await?["agents"][0]["name"], "assistant");
    assert_eq!(client.get(&format!("{place}/usage")).await?["total"]["turns"], 0);
    client.look(&format!("{place}/usage?from=yesterday")).await?.refuses(400, "INVALID_ARGUMENT")?;
    Ok(())
}
