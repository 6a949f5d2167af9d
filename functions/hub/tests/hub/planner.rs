//! The planner chat on a real hub: whatever happens to a turn, its stream ends with `done`, and with an error right before it where there is one.

use crate::support::{Client, Hub, Result, start};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use std::path::Path;
use testkit::SmallDisk;

const DOOR: &str = "/api/agent/stream";
/// Greetings are answered at once, a tale takes a while, and a riddle is thought about for ever: a rule decides so, and no analysis is asked for. What
/// is to be studied needs a plan.
const SCRIPT: &str = r#"
rules:
- when: {system: '^You are the analyst of a planner chat'}
  steps: [{text: '{"strategy": "complex", "reasoning": "it has two sides"}'}]
- when: {system: '^You are an executor'}
  steps: [{text: 'It is blue.', chunks: 3, delay_ms: 200}]
- when: {system: '^You are the planner of a chat', user: '^Study'}
  steps:
  - calls: [{tool: run_plan, args: {steps: [{step: 1, description: 'look at it'}, {step: 2, description: 'tell of it', depends_on: [1]}]}}]
  - {text: 'It is told.'}
- when: {user: '^What is a tale'}
  steps: [{text: 'one two three four five six seven eight nine ten', chunks: 10, delay_ms: 150}]
- when: {user: '^What is a riddle'}
  steps: [{hang: true}]
- steps: [{text: 'Hello.'}]
"#;

async fn on(data: &Path, settings: &[(&str, &str)]) -> Result<Hub> {
    let script = data.join("planner.yaml");
    std::fs::write(&script, SCRIPT)?;
    let script = script.display().to_string();
    start(data, &[&[("BUILDSCALE__AI__SCRIPT", script.as_str())][..], settings].concat()).await
}

/// A stream of the planner chat, frame by frame: the number of its event, if it has one, and its data.
struct Stream {
    response: Response,
    text: String,
}

impl Stream {
    async fn of(client: &Client, method: Method, path: &str, body: Value) -> Result<Self> {
        let request = client.request(method, path);
        let response = if body.is_null() { request } else { request.json(&body) }.send().await?;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        Ok(Self { response, text: String::new() })
    }

    async fn say(client: &Client, message: &str) -> Result<Self> {
        Self::of(client, Method::POST, DOOR, json!({ "message": message })).await
    }

    /// The next frame; none at the end, also where the connection breaks.
    async fn next(&mut self) -> Option<(Option<u64>, Value)> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let (id, data) = (field("id: "), field("data: "));
                self.text = rest.to_owned();
                if let Some(data) = data {
                    return Some((id.and_then(|id| id.parse().ok()), serde_json::from_str(&data).unwrap_or_default()));
                }
            }
            let bytes = self.response.chunk().await.ok().flatten()?;
            self.text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    /// The types of all further frames, and the reason of the end.
    async fn rest(&mut self) -> (Vec<String>, Value) {
        let (mut kinds, mut reason) = (Vec::new(), Value::Null);
        while let Some((_, data)) = self.next().await {
            reason = data["finished_reason"].clone();
            kinds.push(data["type"].as_str().unwrap_or_default().to_owned());
        }
        (kinds, reason)
    }
}

#[tokio::test]
async fn the_first_frame_leaves_before_any_model_is_asked_and_a_stop_and_a_time_out_end_with_done() -> Result {
    let data = tempfile::tempdir()?;
    let hub = on(data.path(), &[("BUILDSCALE__AI__LIMITS__MAX_WALL_MS", "2500")]).await?;
    let client = hub.client();
    let place = client.place().await?;

    let mut riddle = Stream::say(&client, "What is a riddle?").await?;
    let (number, first) = riddle.next().await.ok_or("no frame")?;
    assert_eq!((number, &first["type"]), (None, &json!("session")), "the model will never answer");
    let session = first["session"]["id"].as_str().ok_or("no session")?;
    client.post(&format!("{place}/chats/{session}/stop"), Value::Null).await?;
    let (kinds, reason) = riddle.rest().await;
    assert_eq!((kinds.last().map(String::as_str), &reason), (Some("done"), &json!("cancelled")), "{kinds:?}");
    assert!(!kinds.contains(&"error".to_owned()), "the person wanted it: {kinds:?}");

    // The client has the end of the turn, and a new title behind it is no further turn.
    let kept = client.get(&format!("{DOOR}?session_id={session}")).await?;
    let chat = format!("{place}/chats/{session}");
    client.ask(Method::PATCH, &chat, json!({ "title": "Riddles" })).await?.good()?;
    client.until(&chat, |chat| chat["title"] == "Riddles").await?;
    let rest = format!("{DOOR}?session_id={session}&after={}", kept["last_seq"]);
    client.ask(Method::GET, &rest, Value::Null).await?.is(204)?;

    let mut riddle = Stream::say(&client, "What is a riddle?").await?;
    let (kinds, reason) = riddle.rest().await;
    assert!(kinds.ends_with(&["error".to_owned(), "done".to_owned()]), "{kinds:?}");
    assert_eq!(reason, "time_limit");
    Ok(())
}

#[tokio::test]
async fn the_stream_of_a_session_goes_on_after_the_hub_was_killed_and_ends_with_done() -> Result {
    let data = tempfile::tempdir()?;
    let mut hub = on(data.path(), &[]).await?;
    let client = hub.client();
    client.place().await?;
    let mut tale = Stream::say(&client, "What is a tale?").await?;
    let (mut session, mut last) = (String::new(), 0);
    while let Some((number, data)) = tale.next().await {
        last = number.unwrap_or(last);
        match data["type"].as_str() {
            Some("session") => session = data["session"]["id"].as_str().unwrap_or_default().to_owned(),
            Some("text") => break,
            _ => {}
        }
    }
    hub.kill().await?;
    let (kinds, _) = tale.rest().await;
    assert!(!kinds.contains(&"done".to_owned()), "it broke: {kinds:?}");
    hub.restart().await?;
    let path = format!("{DOOR}?session_id={session}&after={last}");
    let mut again = Stream::of(&hub.client(), Method::GET, &path, Value::Null).await?;
    let (kinds, reason) = again.rest().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "done").count(), 1, "{kinds:?}");
    assert_eq!((kinds.last().map(String::as_str), &reason), (Some("done"), &json!("stop")), "{kinds:?}");
    Ok(())
}

#[tokio::test]
async fn a_plan_goes_on_after_the_hub_was_killed_and_each_of_its_steps_ends_once() -> Result {
    let data = tempfile::tempdir()?;
    let mut hub = on(data.path(), &[]).await?;
    let client = hub.client();
    client.place().await?;
    let mut plan = Stream::say(&client, "Study the atlas").await?;
    let (mut session, mut last) = (String::new(), 0);
    while let Some((number, data)) = plan.next().await {
        last = number.unwrap_or(last);
        match data["type"].as_str() {
            Some("session") => session = data["session"]["id"].as_str().unwrap_or_default().to_owned(),
            Some("executor_spawned") => break,
            _ => {}
        }
    }
    hub.kill().await?;
    drop(plan);
    hub.restart().await?;
    let client = hub.client();
    let path = format!("{DOOR}?session_id={session}&after={last}");
    let (kinds, reason) = Stream::of(&client, Method::GET, &path, Value::Null).await?.rest().await;
    let count = |kind: &str| kinds.iter().filter(|known| *known == kind).count();
    assert_eq!((count("executor_result"), count("step_complete")), (2, 2), "{kinds:?}");
    assert_eq!((count("executor_spawned"), count("done")), (1, 1), "the first executor is not begun again: {kinds:?}");
    assert_eq!((kinds.last().map(String::as_str), &reason), (Some("done"), &json!("stop")), "{kinds:?}");
    let kept = client.get(&format!("/api/agent/plans?session_id={session}")).await?;
    let steps = kept["plans"][0]["steps"].as_array().ok_or("no plan")?;
    assert!(steps.len() == 2 && steps.iter().all(|step| step["status"] == "completed"), "{kept}");
    Ok(())
}

#[tokio::test]
async fn a_hub_for_one_person_refuses_messages_that_come_too_fast_before_their_stream() -> Result {
    let data = tempfile::tempdir()?;
    let hub = on(data.path(), &[("BUILDSCALE__PLANNER__REQUESTS_PER_MINUTE", "2")]).await?;
    let client = hub.client();
    let place = client.place().await?;
    // However slow the machine is: more than twice the limit of a minute are not all let in within the time that they take.
    for _ in 0..40 {
        let answer = client.ask(Method::POST, DOOR, json!({ "message": "Hello!", "stream": false })).await?;
        if answer.status != StatusCode::TOO_MANY_REQUESTS {
            answer.is(202)?;
            continue;
        }
        assert!(answer.header("retry-after").parse::<u64>().is_ok_and(|seconds| (1..=61).contains(&seconds)));
        assert_eq!(answer.refuses(429, "RATE_LIMITED")?["details"]["limit"], "requests");
        // All else is this person's own business.
        client.ask(Method::POST, &format!("{place}/chats"), json!({ "goal": "hello" })).await?.is(202)?;
        return Ok(());
    }
    Err("2 a minute were never too many".into())
}

#[tokio::test]
async fn on_a_full_disk_a_running_turn_ends_with_done_and_a_message_is_refused_before_its_stream() -> Result {
    const BYTES: u64 = 12 * 1024 * 1024;
    let Some(disk) = SmallDisk::mounted(BYTES)? else { return Ok(()) };
    let hub = on(disk.path(), &[]).await?;
    let client = hub.client();
    client.place().await?;
    let mut tale = Stream::say(&client, "What is a tale?").await?;
    while let Some((_, data)) = tale.next().await {
        if data["type"] == "text" {
            break;
        }
    }
    disk.fill()?;
    client.until("/ready", |ready| ready["degraded"]["disk"].is_string()).await?;
    client.ask(Method::POST, DOOR, json!({ "message": "Hello!" })).await?.refuses(507, "STORAGE_FULL")?;
    let (kinds, reason) = tale.rest().await;
    assert_eq!((kinds.last().map(String::as_str), &reason), (Some("done"), &json!("stop")), "{kinds:?}");
    disk.free()?;
    client.until("/ready", |ready| ready["degraded"].is_null()).await?;
    let (kinds, _) = Stream::say(&client, "Hello!").await?.rest().await;
    assert_eq!(kinds.last().map(String::as_str), Some("done"), "{kinds:?}");
    Ok(())
}
