//! The planner chat: a message is answered, looked up, or planned and carried out; its stream is watched, left and found again.

use super::Stage;
use crate::{Client, Result};
use reqwest::{Method, Response};
use serde_json::{Value, json};

const DOOR: &str = "/api/agent/stream";

/// The door of a workspace.
fn door(place: &str) -> Result<String> {
    Ok(format!("{DOOR}?workspace_id={}", place.rsplit('/').next().ok_or("a place")?))
}

/// A frame: the number of its event, if it has one, and its data.
type Seen = (Option<u64>, Value);

/// A stream that is read frame by frame.
struct Stream {
    response: Response,
    text: String,
}

impl Stream {
    async fn of(client: &Client, method: Method, path: &str, body: Value) -> Result<Self> {
        let request = client.request(method, path).header("accept", "text/event-stream");
        let response = if body.is_null() { request } else { request.json(&body) }.send().await?;
        if response.status() != 200 {
            return Err(format!("{}: {}", response.status(), response.text().await?).into());
        }
        Ok(Self { response, text: String::new() })
    }

    /// The next frame; none at the end.
    async fn next(&mut self) -> Result<Option<Seen>> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let (id, data) = (field("id: "), field("data: "));
                self.text = rest.to_owned();
                if let Some(data) = data {
                    return Ok(Some((id.and_then(|id| id.parse().ok()), serde_json::from_str(&data)?)));
                }
            }
            match self.response.chunk().await? {
                Some(bytes) => self.text.push_str(std::str::from_utf8(&bytes)?),
                None => return Ok(None),
            }
        }
    }

    /// The frames up to the first of this type.
    async fn until(&mut self, kind: &str) -> Result<Vec<Seen>> {
        let mut seen = Vec::new();
        while let Some(frame) = self.next().await? {
            let is_it = frame.1["type"] == kind;
            seen.push(frame);
            if is_it {
                return Ok(seen);
            }
        }
        Err(format!("the stream ended without {kind}: {seen:?}").into())
    }

    /// All frames: the stream ends by itself.
    async fn rest(&mut self) -> Result<Vec<Seen>> {
        let mut seen = Vec::new();
        while let Some(frame) = self.next().await? {
            seen.push(frame);
        }
        Ok(seen)
    }
}

fn kinds(frames: &[Seen]) -> Vec<&str> {
    frames.iter().map(|(_, data)| data["type"].as_str().unwrap_or_default()).collect()
}

fn count(frames: &[Seen], kind: &str) -> usize {
    kinds(frames).iter().filter(|known| **known == kind).count()
}

fn said(frames: &[Seen]) -> String {
    frames.iter().filter_map(|(_, data)| data["content"].as_str()).collect()
}

pub(super) async fn a_message_is_answered_looked_up_or_planned_and_carried_out(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let id = place.rsplit('/').next().ok_or("a place")?;
    let door = door(&place)?;
    let say = async |body: Value| Stream::of(&client, Method::POST, &door, body).await;
    client.file(&place, "/projects/atlas/README.md", "# Atlas\nA map of everything.").await?;

    // A greeting: the session first, no model for the analysis, the end last.
    let frames = say(json!({ "message": "Hello!", "context_type": "general" })).await?.rest().await?;
    let kinds_of = kinds(&frames);
    assert_eq!((&kinds_of[..2], kinds_of.last()), (&["session", "analysis"][..], Some(&"done")), "{frames:?}");
    assert_eq!((&frames[0].1["session"]["context_type"], said(&frames)), (&json!("global"), "Hello.".to_owned()));
    assert_eq!(frames[1].1["analysis"]["strategy"], "simple");
    let session = frames[0].1["session"]["id"].as_str().ok_or("no session")?.to_owned();

    // A look, in the same session and another context.
    let look = json!({ "message": "List the files", "session_id": session, "context_type": "project_audit", "entity_id": "atlas" });
    let frames = say(look).await?.rest().await?;
    assert_eq!(
        (count(&frames, "tool_call"), count(&frames, "tool_result"), count(&frames, "error")),
        (1, 1, 0),
        "{frames:?}"
    );
    let called = frames.iter().find(|(_, data)| data["type"] == "tool_call").ok_or("no call")?;
    assert_eq!(called.1["tool_call"]["function"]["name"], "ls");
    let (_, looked) = frames.iter().find(|(_, data)| data["type"] == "tool_result").ok_or("no result")?;
    assert_eq!(frames[0].1["session"]["context_type"], "project_audit");

    // A plan: two steps side by side, then one that needs both.
    let frames = say(json!({ "message": "Study the atlas", "session_id": session })).await?.rest().await?;
    let plan = frames.iter().find(|(_, data)| data["type"] == "plan_created").ok_or("no plan")?;
    assert_eq!(plan.1["plan"]["steps"][2]["dependsOn"], json!([1, 2]));
    for kind in ["step_start", "executor_spawned", "executor_result", "step_complete"] {
        assert_eq!(count(&frames, kind), 3, "{kind}: {frames:?}");
    }
    let results = frames.iter().filter(|(_, data)| data["type"] == "executor_result");
    assert!(results.clone().all(|(_, data)| data["result"]["success"] == true), "{frames:?}");
    assert!(results.clone().any(|(_, data)| data["result"]["toolCallsMade"] == 1), "{frames:?}");
    assert_eq!((said(&frames).as_str(), kinds(&frames).last()), ("Both are there.", Some(&"done")));

    // The stream goes on after any of its events, and there is nothing after the last one.
    let numbers: Vec<u64> = frames.iter().filter_map(|(number, _)| *number).collect();
    let (middle, last) = (numbers[numbers.len() / 2], numbers[numbers.len() - 1]);
    let again = format!("{door}&session_id={session}&after={middle}");
    let rest = Stream::of(&client, Method::GET, &again, Value::Null).await?.rest().await?;
    let wanted: Vec<&Seen> = frames.iter().filter(|(number, _)| number.is_some_and(|number| number > middle)).collect();
    let numbered: Vec<&Seen> = rest.iter().filter(|(number, _)| number.is_some()).collect();
    assert_eq!(numbered, wanted);
    client.look(&format!("{door}&session_id={session}&after={last}")).await?.is(204)?;

    // The session with its messages, and on the list; its title is the first message that says something.
    let found = client.get(&format!("{door}&session_id={session}")).await?;
    assert_eq!(found["session"]["title"], "List the files");
    let roles: Vec<&str> =
        found["messages"].as_array().into_iter().flatten().filter_map(|one| one["role"].as_str()).collect();
    assert_eq!((roles.first(), roles.last()), (Some(&"user"), Some(&"assistant")));
    let row =
        found["messages"].as_array().into_iter().flatten().find(|one| one["tool_name"] == "ls").ok_or("no row")?;
    assert_eq!(row["tool_result"], looked["result"], "a row has the result as the stream told it");
    // Its plan is a row with the executions of its steps.
    let kept = client.get(&format!("/api/agent/plans?workspace_id={id}&session_id={session}")).await?;
    assert_eq!(
        (kept["plans"].as_array().map(Vec::len), &kept["plans"][0]["status"]),
        (Some(1), &json!("completed")),
        "{kept}"
    );
    let executions = kept["plans"][0]["executions"].as_array().ok_or("no executions")?;
    assert!(executions.iter().all(|one| one["status"] == "completed" && one["ended_at"].is_string()), "{kept}");
    assert_eq!((executions.len(), &kept["compressions"]), (3, &json!([])), "{kept}");
    let agents = kept["agents"].as_array().ok_or("no agents")?;
    assert!(agents.len() == 3 && agents.iter().all(|agent| agent["status"] == "completed"), "{kept}");
    let listed = client.get(&door).await?;
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(1), "{listed}");
    client.look(&format!("{door}&session_id={id}")).await?.refuses(404, "NOT_FOUND")?;
    let odd = json!({ "message": "Hello!", "context_type": "everything" });
    client.ask(Method::POST, &door, odd).await?.refuses(400, "INVALID_ARGUMENT")?;
    let nowhere = json!({ "message": "Hello!", "context_type": "project", "entity_id": "none" });
    client.ask(Method::POST, &door, nowhere).await?.refuses(404, "NOT_FOUND")?;
    Ok(())
}

pub(super) async fn a_plan_is_stopped_with_its_executors(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let door = door(&place)?;
    // Its executors never end by themselves.
    let mut stream = Stream::of(&client, Method::POST, &door, json!({ "message": "Ponder the atlas" })).await?;
    let begun = stream.until("executor_spawned").await?;
    let session = begun[0].1["session"]["id"].as_str().ok_or("no session")?.to_owned();
    let executor = begun.last().and_then(|(_, data)| data["executorId"].as_str()).ok_or("no executor")?.to_owned();
    client.post(&format!("{place}/chats/{session}/stop"), Value::Null).await?;
    let rest = stream.rest().await?;
    let last = &rest.last().ok_or("no end")?.1;
    assert_eq!((&last["type"], &last["finished_reason"]), (&json!("done"), &json!("cancelled")));
    assert_eq!(count(&rest, "executor_result"), 2, "{rest:?}");
    client.until(&format!("{place}/chats/{executor}"), |chat| chat["status"] == "idle").await?;
    // Nobody talks to an executor, and the session goes on.
    let message = json!({ "content": "hello" });
    client.ask(Method::POST, &format!("{place}/chats/{executor}"), message).await?.refuses(409, "CONFLICT")?;
    let again = json!({ "message": "Hello!", "session_id": session });
    let frames = Stream::of(&client, Method::POST, &door, again).await?.rest().await?;
    assert_eq!(kinds(&frames).last(), Some(&"done"));
    Ok(())
}

fn ends(frames: &[Seen], reason: &str) -> bool {
    let last = frames.last().map(|(_, data)| data);
    count(frames, "done") == 1 && last.is_some_and(|last| last["finished_reason"] == reason)
}

pub(super) async fn a_message_while_a_turn_runs_waits_or_is_refused_or_takes_its_place(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let door = door(&place)?;
    let say = async |body: Value| Stream::of(&client, Method::POST, &door, body).await;
    // Its executors never end by themselves.
    let mut running = say(json!({ "message": "Ponder the atlas" })).await?;
    let begun = running.until("executor_spawned").await?;
    let session = begun[0].1["session"]["id"].as_str().ok_or("no session")?.to_owned();
    let chat = format!("{place}/chats/{session}");
    let hello = |on_busy: &str| json!({ "message": "Hello!", "session_id": session, "on_busy": on_busy });

    client.ask(Method::POST, &door, hello("reject")).await?.refuses(409, "CONFLICT")?;
    let mut queued = say(hello("enqueue")).await?;
    assert_eq!(queued.until("session").await?.len(), 1);
    client.post(&format!("{chat}/stop"), Value::Null).await?;
    let (stopped, answered) = (running.rest().await?, queued.rest().await?);
    assert!(ends(&stopped, "cancelled") && !said(&stopped).contains("Hello."), "{stopped:?}");
    assert!(ends(&answered, "stop") && said(&answered) == "Hello.", "{answered:?}");

    for on_busy in ["interrupt", "rollback"] {
        let mut running = say(json!({ "message": "Ponder the atlas", "session_id": session })).await?;
        running.until("executor_spawned").await?;
        let answered = say(hello(on_busy)).await?.rest().await?;
        let stopped = running.rest().await?;
        assert!(ends(&stopped, "cancelled") && !said(&stopped).contains("Hello."), "{on_busy}: {stopped:?}");
        assert!(ends(&answered, "stop") && said(&answered) == "Hello.", "{on_busy}: {answered:?}");
    }
    client.watch(&chat).until_event("rolled_back").await?;
    client.ask(Method::POST, &door, hello("maybe")).await?.refuses(400, "INVALID_ARGUMENT")?;
    Ok(())
}

pub(super) async fn words_that_steer_are_answered_by_the_turn_that_runs(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let door = door(&place)?;
    let say = async |body: Value| Stream::of(&client, Method::POST, &door, body).await;
    let mut tale = say(json!({ "message": "What is a tale?" })).await?;
    let begun = tale.until("text").await?;
    let session = begun[0].1["session"]["id"].as_str().ok_or("no session")?.to_owned();
    let steer = json!({ "message": "And hurry", "session_id": session, "on_busy": "steer" });
    let steered = say(steer).await?.rest().await?;
    assert!(ends(&steered, "stop") && said(&steered).ends_with("Hello."), "{steered:?}");
    // A machine that is so slow that the tale was over before gives the words a turn of their own.
    let told = tale.rest().await?;
    let took_them_in = said(&told).ends_with("Hello.");
    assert!(ends(&told, "stop") && (took_them_in || said(&told).ends_with("ten")), "{told:?}");
    let turns = if took_them_in { 1 } else { 2 };
    let rests = |found: &Value| found["session"]["agent_metadata"]["running"] == false;
    let found = client.until(&format!("{door}&session_id={session}"), rests).await?;
    assert_eq!(found["session"]["turns"], turns, "{found}");
    let words = found["messages"].as_array().into_iter().flatten().filter(|one| one["content"] == "And hurry");
    assert_eq!(words.count(), 1, "{found}");
    Ok(())
}

pub(super) async fn a_message_without_a_stream_is_answered_in_its_session(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let door = door(&place)?;
    let message = json!({ "message": "Study the atlas", "stream": false });
    let made = client.ask(Method::POST, &door, message).await?.is(202)?.json();
    let session = made["session"]["id"].as_str().ok_or("no session")?.to_owned();
    let path = format!("{door}&session_id={session}");
    let rests =
        |found: &Value| found["session"]["turns"] == 1 && found["session"]["agent_metadata"]["running"] == false;
    let found = client.until(&path, rests).await?;
    let messages = found["messages"].as_array().ok_or("no messages")?;
    let last = messages.last().ok_or("no message")?;
    assert_eq!((&last["role"], &last["content"]), (&json!("assistant"), &json!("Both are there.")));

    // Its executors are counted with it, once: the records of their turns add up to what the session says.
    let chat = client.get(&format!("{place}/chats/{session}")).await?;
    let used = client.get(&format!("{place}/usage?chat_id={session}")).await?;
    let tokens =
        |usage: &Value| usage["input_tokens"].as_u64().unwrap_or(0) + usage["output_tokens"].as_u64().unwrap_or(0);
    assert_eq!(tokens(&used["total"]), tokens(&chat["usage"]) + tokens(&chat["agents_usage"]), "{used} {chat}");
    let of_agents = |part: &&Value| part["parent_chat_id"] == session.as_str();
    assert_eq!(used["parts"].as_array().into_iter().flatten().filter(of_agents).count(), 3, "{used}");
    assert_eq!(found["session"]["total_tokens_used"].as_u64(), Some(tokens(&used["total"])));

    // It runs again from the moment on in which it has the next message.
    let next = json!({ "message": "List the projects", "session_id": session, "stream": false });
    let taken = client.ask(Method::POST, &door, next).await?.is(202)?.json();
    assert_eq!(taken["session"]["agent_metadata"]["running"], true, "{taken}");
    let rests = |found: &Value| found["session"]["agent_metadata"]["running"] == false;
    let found = client.until(&path, rests).await?;
    let last = found["messages"].as_array().and_then(|messages| messages.last());
    assert_eq!(last.map(|last| &last["content"]), Some(&json!("There they are.")), "{found}");
    Ok(())
}
