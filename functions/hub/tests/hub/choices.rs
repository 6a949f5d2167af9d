//! The options of a coding agent and its own choices of them, and the files that it is handed, over `/v1`.

use crate::support::{Client, Hub, Result, start};
use journeys::Answer;
use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};
use tempfile::TempDir;

struct World {
    client: Client,
    thread: String,
    cwd: String,
    _hub: Hub,
    _data: TempDir,
}

impl World {
    /// A thread of an agent of the tests that takes what `takes` says: `sees`, `hears`, `embeds`, or nothing of that.
    async fn new(takes: &str, options: Value) -> Result<Self> {
        let data = tempfile::tempdir()?;
        for name in ["app", "hub"] {
            fs::create_dir(data.path().join(name))?;
        }
        let cwd = fs::canonicalize(data.path().join("app"))?.display().to_string();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/agents/tests/agent.py");
        let script = fs::canonicalize(script)?.display().to_string();
        // The hubs of the tests have no PATH of ours.
        let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output()?;
        let python = String::from_utf8(found.stdout)?;
        // A text of JSON is one of TOML, too.
        let text = |value: &str| json!(value).to_string();
        let configuration = format!(
            "[hub]\nallowed_roots = [{}]\n[agents.test]\ncommand = {}\nargs = [{}, {}]\n",
            text(&cwd),
            text(python.trim()),
            text(&script),
            text(takes),
        );
        fs::write(data.path().join("hub/buildscale.toml"), configuration)?;
        let hub = start(&data.path().join("hub"), &[]).await?;
        let client = hub.client();
        let mut world = Self { client, thread: String::new(), cwd, _hub: hub, _data: data };
        world.thread = world.thread_with(options).await?;
        Ok(world)
    }

    async fn thread_with(&self, options: Value) -> Result<String> {
        let new = json!({ "agent": "test", "cwd": self.cwd, "agentOptions": options });
        let made = self.ask(Method::POST, "/v1/threads", new).await?.is(200)?.json();
        Ok(format!("/v1/threads/{}", made["threadId"].as_str().ok_or("no threadId")?))
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Answer> {
        let request = self.client.request(method, path).header("x-client-id", "story");
        self.client.send(if body.is_null() { request } else { request.json(&body) }).await
    }

    /// The frames of a turn, by name and data.
    async fn turn(&self, words: &str) -> Result<Vec<(String, Value)>> {
        let body = json!({ "input": words, "stream": true });
        let request = self.client.request(Method::POST, &format!("{}/turns", self.thread));
        let answer = self.client.send(request.header("x-client-id", "story").json(&body)).await?.is(200)?;
        Ok(frames(&answer.text()))
    }
}

fn frames(text: &str) -> Vec<(String, Value)> {
    let frame = |block: &str| {
        let line = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        Some((line("event")?.to_owned(), serde_json::from_str(line("data")?).ok()?))
    };
    text.split("\n\n").filter_map(frame).collect()
}

fn data<'a>(frames: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    frames.iter().find(|(known, _)| known == name).map(|(_, data)| data)
}

fn said(frames: &[(String, Value)]) -> String {
    frames.iter().filter(|(name, _)| name == "message_delta").filter_map(|(_, data)| data["delta"].as_str()).collect()
}

#[tokio::test]
async fn options_that_the_agent_does_not_offer_are_refused_at_once_or_with_the_first_turn() -> Result {
    // It has told nothing yet, and a thread starts no process.
    let world = World::new("", json!({ "mode": "fly" })).await?;
    let failed = world.turn("say hi").await?;
    let error = data(&failed, "error").ok_or("no error")?;
    assert_eq!(error["code"], "UNPROCESSABLE", "{error}");
    let words = error["message"].as_str().unwrap_or_default();
    assert!(words.contains("option mode has no value \"fly\"; one of: ask, plan"), "{error}");
    // Now it has.
    for (options, field, hint) in [
        (json!({ "mode": "swim" }), "agentOptions.mode", "one of: ask, plan"),
        (
            json!({ "configOverrides": { "effort": "most" } }),
            "agentOptions.configOverrides.effort",
            "one of: low, high",
        ),
        (json!({ "configOverrides": { "colour": "red" } }), "agentOptions.configOverrides.colour", "one of: effort"),
    ] {
        let new = json!({ "agent": "test", "cwd": world.cwd, "agentOptions": options });
        let created = world.ask(Method::POST, "/v1/threads", new).await?.refuses(422, "UNPROCESSABLE")?;
        let change = json!({ "agentOptions": options });
        let changed = world.ask(Method::PATCH, &world.thread, change).await?.refuses(422, "UNPROCESSABLE")?;
        for error in [created, changed] {
            assert_eq!((&error["details"]["field"], &error["hint"]), (&json!(field), &json!(hint)), "{error}");
        }
    }
    let fit = json!({ "agentOptions": { "mode": "plan", "configOverrides": { "effort": "high" } } });
    world.ask(Method::PATCH, &world.thread, fit).await?.is(200)?;
    assert_eq!(said(&world.turn("say hi").await?).trim(), "hi");
    Ok(())
}

#[tokio::test]
async fn a_thread_follows_the_mode_and_the_options_that_its_agent_chooses() -> Result {
    let world = World::new("", json!({ "mode": "ask" })).await?;
    let frames = world.turn("choose plan high").await?;
    assert_eq!(data(&frames, "mode_update").map(|data| &data["modeId"]), Some(&json!("plan")), "{frames:?}");
    let told = data(&frames, "config_options_update").ok_or("no options")?;
    assert_eq!(told["configOptions"][0]["currentValue"], "high");
    let shown = async || -> Result<Value> {
        let thread = world.ask(Method::GET, &world.thread, Value::Null).await?.is(200)?.json();
        Ok(thread["thread"]["agentOptions"].clone())
    };
    let session = data(&frames, "session_bound").ok_or("no session")?["sessionId"].clone();
    let chosen = json!({ "mode": "plan", "configOverrides": { "effort": "high" }, "sessionId": session });
    assert_eq!(shown().await?, chosen);
    let place = format!("{}/config-options", world.thread);
    let listed = world.ask(Method::GET, &place, Value::Null).await?.is(200)?.json();
    let current: Vec<_> =
        listed["configOptions"].as_array().into_iter().flatten().map(|option| &option["currentValue"]).collect();
    assert_eq!(current, [&json!("plan"), &json!("high")], "{listed}");
    // The process goes on: nothing is set in it again.
    assert!(!said(&world.turn("settings").await?).contains("\"mode\": \"plan\""));
    assert_eq!(shown().await?, chosen, "the next turn keeps them");
    // A person chooses again.
    let back = json!({ "mode": "ask", "sessionId": session });
    world.ask(Method::PATCH, &world.thread, json!({ "agentOptions": back })).await?.is(200)?;
    assert_eq!(shown().await?, back);
    assert!(said(&world.turn("settings").await?).contains("\"mode\": \"ask\""));
    Ok(())
}

#[tokio::test]
async fn attachments_are_handed_over_as_the_agent_takes_them_and_none_is_dropped() -> Result {
    const LINK: &str = "resource_link";
    let field =
        |name: &str, content: &str| format!("--b\r\nContent-Disposition: form-data; name={name}\r\n\r\n{content}\r\n");
    let files = [("a.png", "image"), ("b.wav", "sound"), ("c.md", "# Note"), ("d.bin", "\0\u{1}")];
    let part = |(name, content): &(&str, &str)| field(&format!("\"attachments\"; filename=\"{name}\""), content);
    let attached: String = files.iter().map(part).collect();
    let (input, stream) = (field("\"input\"", "kinds"), field("\"stream\"", "true"));
    let body = format!("{input}{stream}{attached}--b--\r\n");
    for (takes, expected) in [
        ("", [LINK, LINK, LINK, LINK]),
        ("sees", ["image", LINK, LINK, LINK]),
        ("hears", [LINK, "audio", LINK, LINK]),
        ("embeds", [LINK, LINK, "resource", LINK]),
    ] {
        let world = World::new(takes, json!({})).await?;
        let request = world.client.request(Method::POST, &format!("{}/turns", world.thread));
        let request = request.header("x-client-id", "story").header("content-type", "multipart/form-data; boundary=b");
        let answer = world.client.send(request.body(body.clone())).await?.is(200)?;
        let kinds: Vec<String> = serde_json::from_str(&said(&frames(&answer.text())))?;
        assert_eq!(kinds[..4], expected, "{takes}: {kinds:?}");
        assert!(kinds[4].contains("# Note"), "words about what it cannot open stay: {kinds:?}");
        assert_eq!(kinds[5], "text: kinds");
    }
    Ok(())
}
