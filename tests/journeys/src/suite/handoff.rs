//! A plan that goes from hand to hand: files start flows, and nothing else does (spec 001 §6).

use super::Stage;
use crate::Result;
use reqwest::Method;
use serde_json::{Value, json};

const PLAN: &str = "/projects/relay/plan.md";

pub(super) async fn a_plan_goes_from_hand_to_hand(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let content = format!("{place}/files/by-path/content?path={PLAN}");
    let listed = client.get(&format!("{place}/flows")).await?;
    let flows = listed["flows"].as_array().ok_or("no flows")?;
    let planner = flows.iter().find(|flow| flow["name"] == "handoff_plan").ok_or("no planner")?;
    assert_eq!(planner["on"], json!([{ "path": "/projects/*/plan.md", "status": "draft" }]));

    // Nothing but this file starts anything.
    let goal = "---\nstatus: draft\n---\nSay hello.\n";
    client.send(client.request(Method::PUT, &content).body(goal)).await?.is(201)?;
    let done = |text: &Value| text.as_str().is_some_and(|text| text.starts_with("---\nstatus: done\n"));
    client.until(&content, done).await?;
    let all = |page: &Value| {
        let tasks = page["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
        tasks.len() == 5 && tasks.iter().all(|task| task["phase"] == "finished")
    };
    let page = client.until(&format!("{place}/tasks"), all).await?;
    let mut tasks = page["tasks"].as_array().ok_or("no tasks")?.clone();
    tasks.sort_by_key(|task| task["handoff"]["v"].as_u64());
    let told: Vec<(&Value, &Value, u64, usize)> = tasks
        .iter()
        .map(|task| {
            let handoff = &task["handoff"];
            let chain = handoff["chain"].as_array().map_or(0, Vec::len);
            (&task["flow"]["name"], &task["status"], handoff["v"].as_u64().unwrap_or_default(), chain)
        })
        .collect();
    let [plan, code, review] = [json!("handoff_plan"), json!("handoff_code"), json!("handoff_review")];
    let ok = json!("success");
    // The reviewer sends the work back once.
    let expected =
        [(&plan, &ok, 1, 0), (&code, &ok, 2, 1), (&review, &ok, 3, 2), (&code, &ok, 4, 3), (&review, &ok, 5, 4)];
    assert_eq!(told, expected, "{page:#}");
    let file_id = client.get(&format!("{place}/files/by-path?path={PLAN}")).await?["file_id"].clone();
    assert!(tasks.iter().all(|task| task["handoff"]["file_id"] == file_id && task["handoff"]["path"] == PLAN));
    let code = client.get(&format!("{place}/files/by-path/content?path=/projects/relay/src/main.txt")).await?;
    assert_eq!(code, "hello everybody");
    let review = client.get(&format!("{place}/files/by-path/content?path=/projects/relay/review.md")).await?;
    assert_eq!(review, "Now it does.\n");

    // The same content makes no version, so it starts nothing; neither does a status that no flow waits for.
    client.send(client.request(Method::PUT, &content).body("---\nstatus: asleep\n---\n")).await?.is(200)?;
    let checked = client.post(&format!("{place}/flows/handoff_code/check"), json!({})).await?;
    assert_eq!((&checked["ok"], &checked["notes"]), (&json!(true), &json!([])), "{checked}");
    let after = client.get(&format!("{place}/tasks")).await?;
    assert_eq!(after["tasks"].as_array().map(Vec::len), Some(5));
    Ok(())
}

pub(super) async fn a_key_that_may_not_run_flows_hands_on_nothing(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let workspace = place.rsplit('/').next().unwrap_or_default();
    let new = json!({ "name": "uploads", "scopes": ["read", "write"], "workspaces": [workspace] });
    let made = client.ask(Method::POST, "/api/v1/keys", new).await?.is(201)?.json();
    let key = client.with_token(Some(made["key"].as_str().ok_or("no key")?));
    let watch = client.watch_live(&place).await?;
    for door in ["content", "tool"] {
        let (path, goal) = (format!("/projects/{door}/plan.md"), "---\nstatus: draft\n---\nSay hello.\n");
        match door {
            "content" => {
                let content = format!("{place}/files/by-path/content?path={path}");
                key.send(key.request(Method::PUT, &content).body(goal)).await?.is(201)?;
            }
            _ => {
                let call = json!({ "tool": "write", "args": { "path": path, "content": goal } });
                assert_eq!(key.post(&format!("{place}/tools"), call).await?["success"], true);
            }
        }
    }
    let refused = |task: &Value| {
        task["phase"] == "finished" && task["status"] == "failure" && task["error"]["code"] == "FORBIDDEN"
    };
    let both =
        |page: &Value| page["tasks"].as_array().is_some_and(|tasks| tasks.len() == 2 && tasks.iter().all(refused));
    let page = client.until(&format!("{place}/tasks"), both).await?;
    let tasks = page["tasks"].as_array().ok_or("no tasks")?;
    assert!(tasks.iter().all(|task| task["steps"] == 0 && task["flow"]["name"] == "handoff_plan"), "{page:#}");
    for task in tasks {
        let id = &task["task_id"];
        let told = |events: &[crate::Event]| {
            events.iter().any(|event| {
                let of = |key: &str, value: &str| event.data[key] == value;
                event.name == "task_updated" && event.data["task_id"] == *id && of("status", "failure")
            })
        };
        watch.until(told).await?;
    }
    Ok(())
}
