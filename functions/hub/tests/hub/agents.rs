//! Chats whose turns a coding agent performs: an agent of the tests, which does what the words say (`shared/agents/tests/agent.py`).

use crate::support::{Client, Hub, Result, count, start};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

pub(crate) struct World {
    pub hub: Hub,
    pub client: Client,
    pub place: String,
    pub cwd: String,
    pub data: TempDir,
}

pub(crate) async fn world() -> Result<World> {
    let data = tempfile::tempdir()?;
    let app = data.path().join("app");
    std::fs::create_dir(&app)?;
    let cwd = std::fs::canonicalize(&app)?.display().to_string();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/agents/tests/agent.py");
    let script = std::fs::canonicalize(script)?.display().to_string();
    // The hubs of the tests have no PATH of ours.
    let found = std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output()?;
    let python = String::from_utf8(found.stdout)?;
    let settings = [
        ("BUILDSCALE__HUB__ALLOWED_ROOTS", cwd.as_str()),
        ("BUILDSCALE__AGENTS__TEST__COMMAND", python.trim()),
        ("BUILDSCALE__AGENTS__TEST__ARGS", script.as_str()),
    ];
    let hub = start(&data.path().join("hub"), &settings).await?;
    let client = hub.client();
    let place = client.place().await?;
    Ok(World { hub, client, place, cwd, data })
}

impl World {
    async fn chat(&self, goal: &str) -> Result<String> {
        self.chat_in(&self.cwd, goal).await
    }

    pub async fn chat_in(&self, cwd: &str, goal: &str) -> Result<String> {
        let new = json!({ "goal": goal, "agent": "test", "cwd": cwd });
        let made = self.client.ask(Method::POST, &format!("{}/chats", self.place), new).await?.is(202)?.json();
        Ok(format!("{}/chats/{}", self.place, made["chat_id"].as_str().ok_or("no chat_id")?))
    }

    pub async fn decide(&self, chat: &str, n: usize, decision: Value) -> Result {
        let asked = self.client.watch(chat).until_nth("permission_required", n).await?;
        let permission = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
        self.client.post(&format!("{chat}/permissions/{permission}"), decision).await?;
        Ok(())
    }

    pub async fn last_words(&self, chat: &str, turns: usize) -> Result<String> {
        let done = self.client.watch(chat).until_nth("done", turns).await?;
        Ok(done.data["message"].as_str().unwrap_or_default().to_owned())
    }
}

#[tokio::test]
async fn an_agent_performs_the_turns_of_a_chat_and_its_calls_are_shown() -> Result {
    let world = world().await?;
    let listed = world.client.get("/api/v1/agents").await?;
    let all = listed["agents"].as_array().ok_or("no agents")?;
    assert!(all.iter().any(|agent| agent["id"] == "test" && agent["available"] == true), "{listed}");
    assert_eq!(listed["allowed_roots"], json!(["/workspace", world.cwd]));

    let chat = world.chat("call").await?;
    let watch = world.client.watch(&chat);
    watch.until_event("done").await?;
    let events = watch.events();
    for name in ["agent_session", "call", "observation"] {
        assert_eq!(count(&events, name), 1, "{name}");
    }
    let call = events.iter().find(|event| event.name == "call").ok_or("no call")?;
    assert_eq!((&call.data["title"], &call.data["args"]), (&json!("make"), &json!({ "command": "make" })));
    world.client.post(&chat, json!({ "content": "say hello there" })).await?;
    assert_eq!(world.last_words(&chat, 2).await?.trim(), "hello there");
    Ok(())
}

/// The words of an agent in a turn of a thread.
async fn said(client: &Client, thread: &str, words: &str) -> Result<String> {
    let request = client.request(Method::POST, &format!("{thread}/turns")).header("x-client-id", "story");
    let frames = request.json(&json!({ "input": words, "stream": true })).send().await?.text().await?;
    let data = frames.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    Ok(data.filter_map(|data| data["delta"].as_str().map(str::to_owned)).collect())
}

/// How many processes work in a folder.
fn working_in(folder: &str) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let folders = processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok());
    folders.filter(|cwd| cwd.as_path() == Path::new(folder)).count()
}

#[tokio::test]
async fn section_4_no_agent_starts_before_the_first_turn_of_its_thread_and_then_in_its_folder() -> Result {
    let world = world().await?;
    let mut threads = Vec::new();
    for name in ["unused", "used"] {
        let cwd = format!("{}/{name}", world.cwd);
        std::fs::create_dir(&cwd)?;
        let request = world.client.request(Method::POST, "/v1/threads").header("x-client-id", "story");
        let made = request.json(&json!({ "agent": "test", "cwd": cwd })).send().await?.error_for_status()?;
        let made: Value = made.json().await?;
        threads.push((format!("/v1/threads/{}", made["threadId"].as_str().ok_or("no threadId")?), cwd));
    }
    let [(_, unused), (thread, used)] = &threads[..] else { return Err("there are two threads".into()) };
    assert_eq!((working_in(&world.cwd), working_in(unused), working_in(used)), (0, 0, 0));
    let said = said(&world.client, thread, "say hello").await?;
    assert!(said.trim_end().ends_with("hello"), "{said}");
    // An agent that the hub or the other thread had started would work by now.
    assert_eq!((working_in(&world.cwd), working_in(unused), working_in(used) > 0), (0, 0, true));
    Ok(())
}

#[tokio::test]
async fn the_settings_of_a_thread_reach_its_agent_with_the_next_turn() -> Result {
    let world = world().await?;
    let asked = async |method: Method, path: &str, body: Value| -> Result<Value> {
        let request = world.client.request(method, path).header("x-client-id", "story").json(&body);
        Ok(request.send().await?.error_for_status()?.json().await?)
    };
    let new = json!({ "agent": "test", "cwd": world.cwd, "agentOptions": { "mode": "ask" } });
    let made = asked(Method::POST, "/v1/threads", new).await?;
    let thread = format!("/v1/threads/{}", made["threadId"].as_str().ok_or("no threadId")?);
    let first: Value = serde_json::from_str(&said(&world.client, &thread, "settings").await?)?;
    assert_eq!(first["mode"], "ask");
    // Its options have the agent's own values, and take what it offers.
    let place = format!("{thread}/config-options");
    let listed = asked(Method::GET, &place, json!({})).await?;
    let current = |options: &Value| {
        let of = |option: &Value| format!("{} {}", option["id"], option["currentValue"]);
        options["configOptions"].as_array().map(|all| all.iter().map(of).collect::<Vec<_>>()).unwrap_or_default()
    };
    assert_eq!(current(&listed), [r#""mode" "ask""#, r#""effort" "low""#], "{listed}");
    for (id, value, field) in [("effort", "most", "value"), ("colour", "red", "configId"), ("mode", "fly", "value")] {
        let wrong = world.client.request(Method::POST, &place).header("x-client-id", "story");
        let refused = world.client.send(wrong.json(&json!({ "configId": id, "value": value }))).await?;
        let error = refused.refuses(400, "INVALID_ARGUMENT")?;
        assert_eq!((&error["details"]["field"], error["hint"].is_string()), (&json!(field), true), "{error}");
    }
    let set = asked(Method::POST, &place, json!({ "configId": "effort", "value": "high" })).await?;
    assert_eq!(current(&set), [r#""mode" "ask""#, r#""effort" "high""#], "{set}");
    // A client gives back the session that it was shown.
    let shown = asked(Method::GET, &thread, Value::Null).await?["thread"]["agentOptions"].clone();
    assert_eq!((&shown["sessionId"], &shown["mode"]), (&first["session"], &json!("ask")), "{shown}");
    let overrides = json!({ "effort": "high" });
    let options =
        json!({ "mode": "plan", "modelId": "large", "configOverrides": overrides, "sessionId": first["session"] });
    asked(Method::PATCH, &thread, json!({ "agentOptions": options })).await?;
    let second: Value = serde_json::from_str(&said(&world.client, &thread, "settings").await?)?;
    let told = json!({ "mode": "plan", "model": "large", "effort": "high", "session": first["session"] });
    assert_eq!(second, told, "the same conversation goes on with them");
    // The agent's own session can be chosen, too.
    let options = json!({ "mode": "plan", "sessionId": "another" });
    asked(Method::PATCH, &thread, json!({ "agentOptions": options })).await?;
    let third: Value = serde_json::from_str(&said(&world.client, &thread, "settings").await?)?;
    assert_eq!(third, json!({ "mode": "plan", "session": "another" }));
    // So can a new one.
    let left = asked(Method::PATCH, &thread, json!({ "agentOptions": { "mode": "plan" } })).await?;
    assert_eq!(left["thread"]["agentOptions"], json!({ "mode": "plan" }));
    let told = said(&world.client, &thread, "settings").await?;
    let fourth: Value = serde_json::from_str(told.get(told.find('{').ok_or("no settings")?..).unwrap_or_default())?;
    let session = fourth["session"].as_str().ok_or("no session")?;
    assert!(session != "another" && Some(session) != first["session"].as_str(), "{fourth}");
    let shown = asked(Method::GET, &thread, Value::Null).await?["thread"]["agentOptions"].clone();
    assert_eq!(shown, json!({ "mode": "plan", "sessionId": session }));
    Ok(())
}

#[tokio::test]
async fn a_person_decides_on_the_requests_of_an_agent_and_a_rule_answers_the_next() -> Result {
    let world = world().await?;
    let chat = world.chat("ask make x").await?;
    let asked = world.client.watch(&chat).until_event("permission_required").await?;
    assert_eq!(asked.data["options"].as_array().map(Vec::len), Some(3), "{}", asked.data);
    let permission = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
    let wrong = json!({ "outcome": "approved", "option_id": "no" });
    let refused = world.client.ask(Method::POST, &format!("{chat}/permissions/{permission}"), wrong).await?;
    refused.refuses(400, "INVALID_ARGUMENT")?;
    world.decide(&chat, 1, json!({ "outcome": "approved", "option_id": "ever" })).await?;
    assert_eq!(world.last_words(&chat, 1).await?, "ever");
    world.client.post(&chat, json!({ "content": "ask make x" })).await?;
    world.decide(&chat, 2, json!({ "outcome": "declined" })).await?;
    assert_eq!(world.last_words(&chat, 2).await?, "no");
    world.client.post(&chat, json!({ "content": "ask make x" })).await?;
    world.decide(&chat, 3, json!({ "outcome": "approved", "always": true })).await?;
    assert_eq!(world.last_words(&chat, 3).await?, "once");
    world.client.post(&chat, json!({ "content": "ask make x" })).await?;
    assert_eq!(world.last_words(&chat, 4).await?, "once", "nobody is asked");
    Ok(())
}

#[tokio::test]
async fn a_request_outlives_the_hub_and_its_answer_reaches_no_other_process() -> Result {
    let mut world = world().await?;
    let chat = world.chat("ask rm x").await?;
    world.client.watch(&chat).until_event("permission_required").await?;
    world.hub.kill().await?;
    world.hub.restart().await?;
    let view = world.client.until(&chat, |view| view["status"] == "suspended").await?;
    assert_eq!(view["waiting_for"][0]["event"], "permission_required", "{view}");
    world.decide(&chat, 1, json!({ "outcome": "approved" })).await?;
    let failed = world.client.watch(&chat).until_event("error").await?;
    assert_eq!(failed.data["code"], "UPSTREAM_UNAVAILABLE", "{}", failed.data);
    world.client.post(&chat, json!({ "content": "blocks" })).await?;
    assert_eq!(world.last_words(&chat, 2).await?, r#"["blocks"]"#, "the session is loaded by another process");

    // A turn that runs as the hub dies is told, and its prompt is not given twice.
    world.client.post(&chat, json!({ "content": "slow" })).await?;
    world.client.until(&chat, |view| view["status"] == "running").await?;
    world.hub.kill().await?;
    world.hub.restart().await?;
    let done = world.client.watch(&chat).until_nth("done", 3).await?;
    assert_eq!(done.data["stop_reason"], "error");
    Ok(())
}

#[tokio::test]
async fn a_crash_and_a_stop_of_an_agent_end_its_turn_alone() -> Result {
    let world = world().await?;
    let chat = world.chat("crash").await?;
    let failed = world.client.watch(&chat).until_event("error").await?;
    assert!(failed.data["message"].as_str().unwrap_or_default().contains("exit code 7"), "{}", failed.data);
    world.client.post(&chat, json!({ "content": "slow" })).await?;
    world.client.watch(&chat).until_event("chunk").await?;
    world.client.post(&format!("{chat}/stop"), json!({})).await?;
    let stopped = world.client.watch(&chat).until_event("stopped").await?;
    assert_eq!(stopped.data["reason"], "user_cancelled");
    world.client.post(&chat, json!({ "content": "say still here" })).await?;
    assert_eq!(world.last_words(&chat, 2).await?.trim(), "still here");
    Ok(())
}

#[tokio::test]
async fn a_folder_outside_of_the_roots_and_an_unknown_agent_are_refused() -> Result {
    let world = world().await?;
    for (new, field) in [
        (json!({ "goal": "x", "agent": "test", "cwd": "/" }), "cwd"),
        (json!({ "goal": "x", "agent": "test", "cwd": "app" }), "cwd"),
        (json!({ "goal": "x", "agent": "test" }), "cwd"),
        (json!({ "goal": "x", "agent": "nobody", "cwd": world.cwd }), "agent"),
        (json!({ "goal": "x", "cwd": world.cwd }), "agent"),
    ] {
        let refused = world.client.ask(Method::POST, &format!("{}/chats", world.place), new.clone()).await?;
        let error = refused.refuses(400, "INVALID_ARGUMENT")?;
        assert!(error.to_string().contains(field), "{new}: {error}");
    }
    Ok(())
}
