//! Work that begins by itself.

use super::Stage;
use crate::Result;
use ports::{Clock as _, SystemClock};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) async fn a_daily_brief_is_written_at_its_time_and_a_tool_is_called_by_itself(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let schedules = format!("{place}/schedules");
    let one = |made: &Value| format!("{schedules}/{}", made["schedule_id"].as_str().unwrap_or_default());
    let file = |path: &str| format!("{place}/files/by-path/content?path={path}");

    // The first time of a rule is soon; the next one is tomorrow, at the same time on the clock of the zone.
    let mut ahead = Duration::from_secs(3);
    let brief = loop {
        let soon = (SystemClock.now() + ahead).to_string();
        let soon = soon.get(..19).ok_or("no time")?;
        let brief = json!({
            "name": "Daily brief", "rrule": "FREQ=DAILY", "begins": soon, "missed": "skip",
            "action": { "kind": "chat", "goal": "brief" },
        });
        let made = client.post(&schedules, brief).await?;
        if made["next_at"].as_str().is_some_and(|at| at.starts_with(soon)) {
            break one(&made);
        }
        // A machine that is so busy that the time had passed is asked for a later one.
        client.ask(Method::DELETE, &one(&made), Value::Null).await?.is(204)?;
        ahead *= 2;
    };
    let ran = client.until(&brief, |brief| brief["runs"] == 1).await?;
    assert_eq!((&ran["status"], &ran["skipped"]), (&json!("active"), &json!(0)), "{ran}");
    assert!(ran["next_at"].as_str() > ran["last_run"]["due"].as_str(), "{ran}");
    let chat = format!("{place}/chats/{}", ran["last_run"]["chat_id"].as_str().unwrap_or_default());
    client.until(&chat, |chat| chat["status"] == "idle" && chat["turns"] == 1).await?;
    assert_eq!(client.look(&file("/projects/brief/a.md")).await?.is(200)?.bytes, b"second");

    // An autonomous chat works without a client, within its limits.
    let alone =
        json!({ "kind": "chat", "goal": "Sort the attic", "scenario": "autonomous", "limits": { "max_steps": 3 } });
    let alone = json!({ "name": "Attic", "rrule": "FREQ=DAILY", "action": alone });
    let alone = one(&client.post(&schedules, alone).await?);
    client.post(&format!("{alone}/run"), json!({})).await?;
    let ran = client.until(&alone, |alone| alone["last_run"]["chat_id"].is_string()).await?;
    let chat = format!("{place}/chats/{}", ran["last_run"]["chat_id"].as_str().unwrap_or_default());
    client.until(&chat, |chat| chat["status"] == "idle" && chat["turns"] == 1).await?;
    let watch = client.watch(&chat);
    let end = watch.until_event("done").await?;
    assert_eq!(end.data["stop_reason"], "step_limit", "its own limit ended it");
    let asked = |name: &str| watch.events().iter().filter(|event| event.name == name).count();
    assert_eq!((asked("question"), asked("permission_required")), (0, 0), "it asked nobody");

    // A daily brief is a chat of a persona that looks at tasks and the calendar, and writes one file.
    let written = json!({ "name": "Mine", "rrule": "FREQ=DAILY", "action": { "kind": "daily_brief" } });
    let written = one(&client.post(&schedules, written).await?);
    client.post(&format!("{written}/run"), json!({})).await?;
    let ran = client.until(&written, |written| written["last_run"]["chat_id"].is_string()).await?;
    let chat = format!("{place}/chats/{}", ran["last_run"]["chat_id"].as_str().unwrap_or_default());
    let view = client.until(&chat, |chat| chat["status"] == "idle" && chat["turns"] == 1).await?;
    assert_eq!((&view["role"], &view["title"]), (&json!("brief-writer"), &json!("Daily brief")), "{view}");
    let watch = client.watch(&chat);
    watch.until_event("done").await?;
    let events = watch.events();
    let me = client.get(&format!("{place}/members/me")).await?;
    let home = format!("/users/{}", me["user_id"].as_str().ok_or("no user_id")?);
    let asked = events.iter().find(|event| event.name == "message").and_then(|event| event.data["content"].as_str());
    let files = [format!("{home}/brief.md"), format!("{home}/daily-brief.md")];
    assert!(asked.is_some_and(|asked| files.iter().all(|file| asked.contains(file))), "{asked:?}");
    let ended = |success: bool| events.iter().filter(|event| event.data["success"] == success).count();
    assert_eq!((ended(true), ended(false)), (2, 1), "it looks, and writes nowhere else: {events:?}");

    let args = json!({ "path": "/data/log.md", "content": "by itself" });
    let call =
        json!({ "name": "Log", "rrule": "FREQ=DAILY", "action": { "kind": "tool", "tool": "write", "args": args } });
    let call = one(&client.post(&schedules, call).await?);
    client.post(&format!("{call}/run"), json!({})).await?;
    let ran = client.until(&call, |call| call["last_run"]["output"].is_string()).await?;
    assert!(ran["last_run"]["output"].as_str().is_some_and(|output| output.contains("/data/log.md")), "{ran}");
    assert_eq!(client.look(&file("/data/log.md")).await?.is(200)?.bytes, b"by itself");

    // A call that fails is told, and is made again the next time.
    let wrong = json!({ "kind": "tool", "tool": "read", "args": { "path": "/data/none.md" } });
    let wrong = client.post(&schedules, json!({ "name": "Wrong", "rrule": "FREQ=DAILY", "action": wrong })).await?;
    let wrong = one(&wrong);
    client.post(&format!("{wrong}/run"), json!({})).await?;
    let ran = client.until(&wrong, |wrong| wrong["last_run"]["error"].is_object()).await?;
    assert_eq!((&ran["last_run"]["error"]["code"], &ran["status"]), (&json!("NOT_FOUND"), &json!("active")), "{ran}");
    let none = json!({ "kind": "tool", "tool": "fly", "args": {} });
    let refused = json!({ "name": "None", "rrule": "FREQ=DAILY", "action": none });
    client.ask(Method::POST, &schedules, refused).await?.refuses(400, "INVALID_ARGUMENT")?;

    // A time at which the chat of the run before still waits begins no other one, and a person begins one all the same.
    let asking = json!({ "kind": "chat", "goal": "ask" });
    let night = json!({ "name": "Night", "rrule": "FREQ=DAILY", "overlap": "skip", "action": asking });
    let night = one(&client.post(&schedules, night).await?);
    client.post(&format!("{night}/run"), json!({})).await?;
    let first = client.until(&night, |night| night["runs"] == 1).await?["last_run"]["chat_id"].clone();
    let mut ahead = Duration::from_secs(3);
    // A machine that is so busy that the time had passed is asked for a later one.
    while client.ask(Method::PATCH, &night, json!({ "at": SystemClock.now() + ahead })).await?.status != 202 {
        ahead *= 2;
    }
    let skipped = client.until(&night, |night| night["last_run"]["error"].is_object()).await?;
    let error = &skipped["last_run"]["error"];
    assert_eq!((&error["code"], &error["details"]["chat_id"]), (&json!("CONFLICT"), &first), "{skipped}");
    client.post(&format!("{night}/run"), json!({})).await?;
    client.until(&night, |night| night["runs"] == 2).await?;
    Ok(())
}
