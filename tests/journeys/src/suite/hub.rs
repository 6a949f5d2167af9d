//! The code agent hub, `/v1`: threads with a persona, from the first turn to a restart.

use super::Stage;
use crate::{Answer, Client, Deployment, Result};
use reqwest::Method;
use serde_json::{Value, json};

/// Asks as a client of the hub.
async fn ask(client: &Client, method: Method, path: &str, body: Value) -> Result<Answer> {
    let request = client.request(method, path).header("x-client-id", "journey");
    client.send(if body.is_null() { request } else { request.json(&body) }).await
}

async fn get(client: &Client, path: &str) -> Result<Value> {
    Ok(ask(client, Method::GET, path, Value::Null).await?.is(200)?.json())
}

/// The events of a stream that has ended: name and data.
fn events(answer: &Answer) -> Result<Vec<(String, Value)>> {
    let text = String::from_utf8(answer.bytes.to_vec())?;
    let mut events = Vec::new();
    let mut name = String::new();
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("event", event)) => event.clone_into(&mut name),
            Some(("data", data)) => events.push((name.clone(), serde_json::from_str(data)?)),
            _ => {}
        }
    }
    Ok(events)
}

fn text(events: &[(String, Value)]) -> String {
    let deltas = events.iter().filter(|(name, _)| name == "message_delta");
    deltas.filter_map(|(_, data)| data["delta"].as_str()).collect()
}

pub(super) async fn threads_turns_permissions_and_resumption_over_the_hubs_door(stage: Stage) -> Result {
    let root = tempfile::tempdir()?;
    let cwd = root.path().canonicalize()?.to_str().ok_or("no UTF-8")?.to_owned();
    let mut deployment: Deployment = stage.another(&[("BUILDSCALE__HUB__ALLOWED_ROOTS", &cwd)]).await?;
    let client = deployment.client();

    // A thread in an allowed folder; another folder is refused.
    let agents = get(&client, "/v1/agents").await?;
    assert_eq!(agents["agents"][0]["id"], "buildscale");
    let outside = json!({ "agent": "buildscale", "cwd": "/" });
    ask(&client, Method::POST, "/v1/threads", outside).await?.refuses(400, "INVALID_ARGUMENT")?;
    let new = json!({ "agent": "buildscale", "cwd": cwd, "title": "A novel" });
    let made = ask(&client, Method::POST, "/v1/threads", new).await?.is(200)?.json();
    let thread = format!("/v1/threads/{}", made["threadId"].as_str().ok_or("no threadId")?);
    assert_eq!(get(&client, &thread).await?["thread"]["title"], "A novel");

    // A turn, whose answer is its stream.
    let turn = json!({ "input": "novel", "stream": true });
    let first = ask(&client, Method::POST, &format!("{thread}/turns"), turn).await?.is(200)?;
    let told = events(&first)?;
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"turn_started"), Some(&"turn_completed")));
    for name in ["reasoning_delta", "message_delta", "tool_call", "tool_call_update"] {
        assert!(names.contains(&name), "no {name} in {names:?}");
    }
    let said = text(&told);
    assert!(said.ends_with("The file of novel is done."), "{said}");

    // A turn that asks for permission, and gets none; and one that does.
    for (answer, ends) in [
        (json!({ "outcome": "declined" }), "Then I stay as I am."),
        (json!({ "optionId": "allow_once" }), "I have become a poet."),
    ] {
        let input = json!({ "input": "become a poet" });
        let begun = ask(&client, Method::POST, &format!("{thread}/turns"), input.clone()).await?.is(202)?.json();
        ask(&client, Method::POST, &format!("{thread}/turns"), input).await?.refuses(409, "CONFLICT")?;
        let turn = begun["turnId"].as_str().ok_or("no turnId")?.to_owned();
        let history = format!("{thread}/history?includeEvents=true&clientId=journey");
        let asked = |history: &Value| -> Option<Value> {
            let turn = history["turns"].as_array()?.iter().find(|one| one["turnId"] == turn.as_str())?.clone();
            let mut events = turn["events"].as_array()?.iter();
            events.find(|event| event["type"] == "permission_required").map(|event| event["data"].clone())
        };
        let permission =
            asked(&client.until(&history, |history| asked(history).is_some()).await?).ok_or("not asked")?;
        assert_eq!(permission["approval"], "file");
        let place = format!("/v1/permissions/{}", permission["permissionId"].as_str().ok_or("no permissionId")?);
        // The request survives the hub.
        deployment.kill().await?;
        ask(&client, Method::POST, &place, answer.clone()).await?.is(200)?;
        let rest = ask(&client, Method::GET, &format!("/v1/turns/{turn}/events"), Value::Null).await?.is(200)?;
        assert!(text(&events(&rest)?).ends_with(ends), "{}", text(&events(&rest)?));
        ask(&client, Method::POST, &place, answer).await?.refuses(409, "CONFLICT")?;
    }

    // A turn that is cancelled.
    let slow =
        ask(&client, Method::POST, &format!("{thread}/turns"), json!({ "input": "slow" })).await?.is(202)?.json();
    let turn = slow["turnId"].as_str().ok_or("no turnId")?.to_owned();
    let cancel = format!("/v1/turns/{turn}/cancel");
    let cancelled = ask(&client, Method::POST, &cancel, Value::Null).await?.is(200)?.json();
    assert_eq!(cancelled["status"], "cancelling");
    let rest = ask(&client, Method::GET, &format!("/v1/turns/{turn}/events"), Value::Null).await?.is(200)?;
    let last = events(&rest)?.pop().ok_or("no event")?;
    assert_eq!((last.0.as_str(), &last.1["stopReason"]), ("turn_completed", &json!("cancelled")));
    ask(&client, Method::POST, &cancel, Value::Null).await?.refuses(409, "CONFLICT")?;

    // The history has it all, and says what the streams have said.
    let history = get(&client, &format!("{thread}/history")).await?;
    let statuses: Vec<_> =
        history["turns"].as_array().ok_or("no turns")?.iter().map(|turn| turn["status"].clone()).collect();
    assert_eq!(statuses, ["completed", "completed", "completed", "cancelled"]);
    assert_eq!(history["turns"][0]["responseText"], said.as_str());
    let turn = history["turns"][0]["turnId"].as_str().ok_or("no turnId")?;
    let again = ask(&client, Method::GET, &format!("/v1/turns/{turn}/events"), Value::Null).await?.is(200)?;
    assert_eq!(text(&events(&again)?), said);
    ask(&client, Method::DELETE, &thread, Value::Null).await?.is(200)?;
    ask(&client, Method::GET, &thread, Value::Null).await?.refuses(404, "NOT_FOUND")?;
    Ok(())
}
