//! The pages that people look at: workspaces, tools, personas, models, usage, counters.

use crate::support::{Door, Setup};
use ports::ModelInfo;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

#[tokio::test]
async fn workspaces_are_made_listed_renamed_and_removed() {
    let door = Door::open();
    let made = door.json("POST", "/api/v1/workspaces", json!({ "name": " Research " })).await.is(201);
    assert_eq!(made.text("name"), "Research");
    let at = made.header("location").to_owned();
    door.workspace().await;
    let first = door.get("/api/v1/workspaces?limit=1").await.is(200);
    let second = door.get(&format!("/api/v1/workspaces?limit=1&cursor={}", first.text("next_cursor"))).await.is(200);
    assert_ne!(first.json["workspaces"], second.json["workspaces"]);
    assert_eq!(door.json("PATCH", &at, json!({ "name": "Other" })).await.is(200).text("name"), "Other");
    door.json("PATCH", &at, json!({ "name": "" })).await.refuses(400, "INVALID_ARGUMENT");
    assert_eq!(door.get(&at).await.is(200).text("name"), "Other");
    door.ask("DELETE", &at, &[], "").await.is(204);
    door.get(&at).await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn tools_are_the_agents_own() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let tools = format!("{workspace}/tools");
    let listed = door.get(&tools).await.is(200);
    assert!(listed.json["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "grep"));
    let call = json!({ "tool": "write", "args": { "path": "/projects/a.md", "content": "hello" } });
    assert_eq!(door.json("POST", &tools, call).await.is(200).json["success"], true);
    let read = door.json("POST", &tools, json!({ "tool": "read", "args": { "path": "/projects/a.md" } })).await.is(200);
    assert!(read.text("output").contains("hello"), "{}", read.json);
    let unknown = door.json("POST", &tools, json!({ "tool": "raed" })).await.is(200);
    assert_eq!((&unknown.json["success"], &unknown.json["error"]["code"]), (&json!(false), &json!("NOT_FOUND")));
    let missing = door.json("POST", &tools, json!({ "tool": "read", "args": { "path": "/none" } })).await.is(200);
    assert_eq!((&missing.json["success"], &missing.json["result"]), (&json!(false), &json!(null)));
}

#[tokio::test]
async fn on_a_full_disk_tools_that_look_work_and_those_that_write_are_refused() {
    let door = Door::open();
    let tools = format!("{}/tools", door.workspace().await);
    let write = json!({ "tool": "write", "args": { "path": "/projects/a.md", "content": "hello" } });
    door.json("POST", &tools, write.clone()).await.is(200);
    door.full.store(true, Ordering::SeqCst);
    door.json("POST", &tools, write).await.refuses(507, "STORAGE_FULL");
    for look in [json!({ "tool": "read", "args": { "path": "/projects/a.md" } }), json!({ "tool": "ls" })] {
        assert_eq!(door.json("POST", &tools, look).await.is(200).json["success"], true);
    }
    let unknown = door.json("POST", &tools, json!({ "tool": "raed" })).await.is(200);
    assert_eq!(unknown.json["error"]["code"], "NOT_FOUND");
}

#[tokio::test]
async fn on_a_full_disk_every_door_looks_and_stops() {
    let door = Door::open();
    let workspace = door.workspace().await;
    door.full.store(true, Ordering::SeqCst);
    door.json("POST", &format!("{workspace}/search"), json!({ "query": "hello" })).await.is(200);
    for look in ["threads/search", "store/items/search", "store/namespaces", "assistants/search"] {
        door.json("POST", &format!("/langgraph/{look}"), json!({})).await.is(200);
    }
    let back = json!({ "scope": { "kind": "workspace" }, "to": { "time": "2026-01-01T00:00:00Z" }, "preview": true });
    door.json("POST", &format!("{workspace}/rewind"), back.clone()).await.is(200);
    let back = json!({ "scope": back["scope"], "to": back["to"] });
    door.json("POST", &format!("{workspace}/rewind"), back).await.refuses(507, "STORAGE_FULL");
    let (id, none) = (uuid::Uuid::nil(), "0".repeat(64));
    for stop in [
        format!("/openai/v1/responses/resp_{none}/cancel"),
        format!("/langgraph/threads/none/runs/{id}/cancel"),
        format!("/v1/turns/{id}/cancel?clientId=test"),
    ] {
        door.ask("POST", &stop, &[], "").await.refuses(404, "NOT_FOUND");
    }
    let call = async |method: &str, params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
        door.ask("POST", "/a2a", &headers, body).await.is(200)
    };
    let listed = call("ListTasks", json!({})).await;
    assert!(listed.json["result"].is_object(), "{}", listed.json);
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] });
    let refused = call("SendMessage", json!({ "message": message })).await;
    assert!(refused.json["error"].to_string().contains("STORAGE_FULL"), "{}", refused.json);
}

#[tokio::test]
async fn on_a_full_disk_schedules_are_paused_and_webhooks_are_disabled() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let new = json!({ "name": "Brief", "rrule": "FREQ=DAILY", "action": { "kind": "chat", "goal": "Write it" } });
    let id = door.json("POST", &format!("{workspace}/schedules"), new).await.is(202).text("schedule_id");
    let new = json!({ "name": "Team", "url": "https://receiver.example/hook", "events": ["turn.ended"] });
    let made = door.json("POST", &format!("{workspace}/webhooks"), new).await.is(201);
    let hook = format!("{workspace}/webhooks/{}", made.json["webhook"]["webhook_id"].as_str().unwrap());
    let (schedule, cron) = (format!("{workspace}/schedules/{id}"), format!("/langgraph/runs/crons/{id}"));
    door.full.store(true, Ordering::SeqCst);
    for (at, stop, accepted, further) in [
        (&schedule, json!({ "paused": true }), 202, [json!({ "paused": false }), json!({ "name": "Other" })]),
        (&cron, json!({ "enabled": false }), 200, [json!({ "enabled": true }), json!({ "schedule": "0 9 * * *" })]),
        (&hook, json!({ "enabled": false }), 200, [json!({ "enabled": true }), json!({ "name": "Other" })]),
    ] {
        for adds in further {
            door.json("PATCH", at, adds).await.refuses(507, "STORAGE_FULL");
        }
        door.json("PATCH", at, stop).await.is(accepted);
    }
}

#[tokio::test]
async fn personas_and_skills_are_read_from_their_files() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let content = "---\nname: GitHub\ndescription: Opens pull requests\n---\n# How\n";
    let file = door.file(&workspace, "/system/skills/github/SKILL.md", content).await;
    door.file(&workspace, "/system/skills/readme.md", "not a skill").await;
    let skills = door.get(&format!("{workspace}/skills")).await.is(200);
    let github =
        skills.json["skills"].as_array().unwrap().iter().find(|skill| skill["name"] == "github").unwrap().clone();
    assert_eq!((&github["title"], &github["description"]), (&json!("GitHub"), &json!("Opens pull requests")));
    assert!(file.ends_with(github["file_id"].as_str().unwrap()));
    let agents = door.get(&format!("{workspace}/agents")).await.is(200);
    assert_eq!(agents.json["agents"][0]["name"], "assistant");
}

#[tokio::test]
async fn personas_in_the_box_are_listed_and_read_until_the_workspace_has_its_own() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let listed = async || {
        let agents = door.get(&format!("{workspace}/agents")).await.is(200).json["agents"].clone();
        agents.as_array().unwrap().iter().find(|agent| agent["name"] == "reviewer").unwrap().clone()
    };
    let boxed = listed().await;
    assert_eq!((&boxed["path"], boxed.get("file_id")), (&json!("/system/agents/reviewer/AGENT.md"), None));
    assert!(boxed["tools"].as_array().unwrap().contains(&json!("write(/**/{review.md,*-review.md})")), "{boxed}");
    let reviewer = format!("{workspace}/agents/reviewer");
    let text = door.get(&reviewer).await.is(200).text("text");
    assert!(text.starts_with("---\nname: reviewer\n") && text.contains("## Method"), "{text}");
    door.get(&format!("{workspace}/agents/nobody")).await.refuses(404, "NOT_FOUND");
    door.get(&format!("{workspace}/agents/..%2Fskills")).await.refuses(400, "INVALID_ARGUMENT");

    let own = "---\nname: reviewer\ntools: [raed]\n---\nYou review.\n";
    let file = door.file(&workspace, "/system/agents/reviewer/AGENT.md", own).await;
    let own_one = listed().await;
    assert!(file.ends_with(own_one["file_id"].as_str().unwrap()));
    assert_eq!(own_one["faults"][0]["line"], 3, "{own_one}");
    assert_eq!(door.get(&reviewer).await.is(200).text("text"), own);
}

#[tokio::test]
async fn a_skill_with_a_fault_is_named_with_its_line_and_public_ones_load_unchanged() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let skill = "---\nname: pdf\ndescription: Fills forms.\nlicense: Apache-2.0\ncompatibility: Needs python3\nmetadata:\n  author: x\n\
                 allowed-tools: Bash(python:*) Read\n---\n# PDF\nSee references/FORMS.md.\n";
    door.file(&workspace, "/system/skills/pdf/SKILL.md", skill).await;
    door.file(&workspace, "/system/skills/pdf/references/FORMS.md", "# Forms").await;
    door.file(&workspace, "/system/skills/pdf/scripts/fill.py", "print(1)").await;
    door.file(&workspace, "/system/skills/Bad_Name/SKILL.md", "---\nname: Bad_Name\ndescription: x\n---\n").await;
    let skills = door.get(&format!("{workspace}/skills")).await.is(200);
    let named = |name: &str| {
        skills.json["skills"].as_array().unwrap().iter().find(|skill| skill["name"] == name).unwrap().clone()
    };
    let pdf = named("pdf");
    assert_eq!(pdf.get("faults"), None);
    assert_eq!(pdf["allowed_tools"], json!(["Bash(python:*)", "Read"]));
    assert_eq!((&pdf["license"], &pdf["metadata"]), (&json!("Apache-2.0"), &json!({ "author": "x" })));
    assert_eq!(named("Bad_Name")["faults"][0]["line"], 2);
    let seeds = ["convert-a-table", "review-a-change", "write-a-plan", "write-a-report"];
    assert!(seeds.iter().all(|name| named(name).get("faults").is_none()));
    let chat = json!({ "goal": "go" });
    door.json("POST", &format!("{workspace}/chats"), chat).await.is(202);
}

#[tokio::test]
async fn models_say_plainly_that_none_is_configured() {
    let model = |id: &str, available: bool| ModelInfo {
        id: id.into(),
        provider: id.split('/').next().unwrap_or_default().into(),
        available,
        note: None,
        default: true,
        context_tokens: Some(1000),
    };
    for (id, available, configured, advice) in [
        ("scripted/demo", true, false, true),
        ("openai/gpt-5", true, true, false),
        // The script of `ai.script` is no demo.
        ("scripted/script", true, true, false),
        // The demo does not answer for a model that was chosen and has no key.
        ("openai/gpt-5", false, false, false),
    ] {
        let door = Door::with(Setup { models: vec![model(id, available)], ..Setup::default() });
        let models = door.get("/api/v1/models").await.is(200);
        assert_eq!(models.json["configured"], configured, "{id}");
        let note = models.json.get("note").and_then(Value::as_str);
        assert_eq!(note.is_some_and(|note| note.starts_with("No model is configured")), advice, "{id}: {note:?}");
    }
}

#[tokio::test]
async fn usage_is_summed_by_day_person_chat_and_model() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let nothing = door.get(&format!("{workspace}/usage")).await.is(200);
    assert_eq!((&nothing.json["total"]["turns"], &nothing.json["parts"]), (&json!(0), &json!([])));
    let partition = format!("{}/usage", workspace.rsplit('/').next().unwrap());
    let id = "019bf537-f228-7cd3-aa1c-3da8af302e12";
    for (day, turn) in [("2026-11-01", 1), ("2026-11-30", 2), ("2026-11-30", 3), ("2026-12-01", 4)] {
        let usage = json!({ "input_tokens": 10, "output_tokens": 2, "cached_tokens": 1, "cost_usd": 0.5 });
        let turn_id = id.replace("12", &format!("0{turn}"));
        let record =
            json!({ "day": day, "chat_id": id, "turn_id": turn_id, "model": null, "calls": 3, "usage": usage });
        let key = ports::Key::new(&partition, format!("{day}/{id}/{turn_id}"));
        door.table.commit(vec![ports::Write::put(key, record.to_string(), ports::Expect::Any)]).await.unwrap();
    }
    for day in ["2026-11-30", "2026-12-01"] {
        let usage = json!({ "input_tokens": 70, "output_tokens": 0, "cached_tokens": 0, "cost_usd": 0.25 });
        let spent = json!({ "day": day, "purpose": "embedding", "model": "a/b", "calls": 4, "usage": usage });
        let key = ports::Key::new(partition.replace("usage", "spent"), format!("{day}/embedding/a/b"));
        door.table.commit(vec![ports::Write::put(key, spent.to_string(), ports::Expect::Any)]).await.unwrap();
    }
    let used = door.get(&format!("{workspace}/usage?from=2026-11-01&to=2026-11-30")).await.is(200);
    let total = json!({
        "turns": 3, "calls": 13, "input_tokens": 100, "output_tokens": 6, "cached_tokens": 3, "cost_usd": 1.75,
    });
    let other = json!([{
        "day": "2026-11-30", "purpose": "embedding", "model": "a/b",
        "calls": 4, "input_tokens": 70, "output_tokens": 0, "cost_usd": 0.25,
    }]);
    assert_eq!(used.json["other"], other, "vectors are no turns");
    assert_eq!(used.json["total"], total);
    assert_eq!(used.json["parts"].as_array().unwrap().len(), 2);
    assert_eq!((&used.json["parts"][1]["day"], &used.json["parts"][1]["turns"]), (&json!("2026-11-30"), &json!(2)));
    // A chat with its agents is the sum of its own turns and theirs; every turn is counted once.
    let agent = id.replace("12", "34");
    let usage = json!({ "input_tokens": 5, "output_tokens": 1, "cached_tokens": 0, "cost_usd": 0.25 });
    let record = json!({
        "day": "2026-11-30", "chat_id": agent, "turn_id": agent, "parent_chat_id": id, "model": "a/b", "calls": 1, "usage": usage,
    });
    let key = ports::Key::new(&partition, format!("2026-11-30/{agent}/{agent}"));
    door.table.commit(vec![ports::Write::put(key, record.to_string(), ports::Expect::Any)]).await.unwrap();
    let (ann, bob) = (id.replace("12", "a1"), id.replace("12", "b0"));
    for (turn, user) in [("e1", &ann), ("e2", &ann), ("e3", &bob)] {
        let turn_id = id.replace("12", turn);
        let record = json!({
            "day": "2026-10-01", "chat_id": id, "turn_id": turn_id, "user_id": user, "model": "a/b", "calls": 1, "usage": usage,
        });
        let key = ports::Key::new(&partition, format!("2026-10-01/{id}/{turn_id}"));
        door.table.commit(vec![ports::Write::put(key, record.to_string(), ports::Expect::Any)]).await.unwrap();
    }
    let october = format!("{workspace}/usage?from=2026-10-01&to=2026-10-31");
    let used = door.get(&october).await.is(200);
    let parts = used.json["parts"].as_array().unwrap();
    let by: Vec<_> = parts.iter().map(|part| (&part["user_id"], &part["turns"], &part["cost_usd"])).collect();
    assert_eq!(by, [(&json!(ann), &json!(2), &json!(0.5)), (&json!(bob), &json!(1), &json!(0.25))]);
    assert_eq!(used.json["total"]["cost_usd"], 0.75, "persons add up to the sum");
    let used = door.get(&format!("{october}&user_id={bob}")).await.is(200);
    assert_eq!((&used.json["total"]["turns"], &used.json["other"]), (&json!(1), &json!([])));
    for (chat, turns, cost) in [(id, 4, 1.75), (agent.as_str(), 1, 0.25), (&id.replace("12", "56"), 0, 0.0)] {
        let used = door.get(&format!("{workspace}/usage?from=2026-11-01&to=2026-11-30&chat_id={chat}")).await.is(200);
        assert_eq!((&used.json["total"]["turns"], &used.json["total"]["cost_usd"]), (&json!(turns), &json!(cost)));
    }
    for bad in [
        "chat_id=1",
        "user_id=ann",
        "from=yesterday",
        "from=20261101",
        "from=2026-12-01&to=2026-11-01",
        "to=2026-13-01",
    ] {
        door.get(&format!("{workspace}/usage?{bad}")).await.refuses(400, "INVALID_ARGUMENT");
    }
}

#[tokio::test]
async fn requests_are_counted_by_route() {
    let door = Door::open();
    assert_eq!(door.get("/health").await.is(200).text("status"), "ok");
    door.get("/api/v1/workspaces/x").await;
    door.get("/nothing").await;
    let metrics = door.get("/metrics").await.is(200);
    let text = String::from_utf8_lossy(&metrics.bytes);
    for line in [
        "buildscale_http_request_duration_seconds_count{method=\"GET\",route=\"/health\",status=\"200\"} 1\n",
        "route=\"/api/v1/workspaces/{workspace_id}\",status=\"400\"} 1\n",
        "_count{method=\"GET\",route=\"unmatched\",status=\"404\"} 1\n",
        "others_total 7\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
