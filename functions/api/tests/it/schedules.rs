//! Schedules through the door. No worker runs here: what is accepted waits in the queue.

use crate::support::Door;
use serde_json::{Value, json};

fn daily() -> Value {
    json!({
        "name": "Daily brief", "rrule": "FREQ=DAILY", "time_zone": "Europe/Berlin", "begins": "2027-01-01T08:00",
        "action": { "kind": "chat", "goal": "Write the brief" },
    })
}

#[tokio::test]
async fn a_schedule_is_there_when_it_is_accepted_and_is_made_once() {
    let door = Door::open();
    let at = format!("{}/schedules", door.workspace().await);
    let made = door.keyed("one", &at, daily()).await.is(202);
    let id = made.text("schedule_id");
    assert!(made.header("location").ends_with(&format!("/schedules/{id}")));
    assert_eq!(made.json["times"]["begins"], "20270101T080000");
    assert_eq!((&made.json["status"], &made.json["next_at"]), (&json!("active"), &json!("2027-01-01T07:00:00.000Z")));
    assert_eq!(door.keyed("one", &at, daily()).await.is(202).text("schedule_id"), id);
    let listed = door.get(&at).await.is(200);
    assert_eq!(listed.json["schedules"].as_array().unwrap().len(), 1);
    assert_eq!(door.get(&format!("{at}/{id}")).await.is(200).json, listed.json["schedules"][0]);
    let bodies = door.take_messages().await;
    assert!(bodies.len() == 1 && bodies[0].contains(r#""command":"create""#), "{bodies:?}");
}

#[tokio::test]
async fn a_schedule_begins_a_chat_by_a_scenario_with_limits() {
    let door = Door::open();
    let at = format!("{}/schedules", door.workspace().await);
    let action = json!({ "kind": "chat", "goal": "Sort the attic", "mode": "chat", "scenario": "autonomous",
        "limits": { "max_steps": 3, "max_tokens": 5_000, "max_wall_ms": 60_000, "max_cost_usd": 0.5 } });
    let body = json!({ "name": "Attic", "rrule": "FREQ=DAILY", "action": action });
    let made = door.json("POST", &at, body).await.is(202);
    assert_eq!(made.json["action"], action);
    let sent = door.take_messages().await.concat();
    assert!(sent.contains(r#""scenario":"autonomous""#) && sent.contains(r#""max_steps":3"#), "{sent}");
    let brief = json!({ "name": "Brief", "rrule": "FREQ=DAILY", "action": { "kind": "daily_brief" } });
    let made = door.json("POST", &at, brief).await.is(202);
    assert_eq!(made.json["action"], json!({ "kind": "daily_brief" }));
    let unknown = json!({ "kind": "chat", "goal": "x", "scenario": "dreaming" });
    let body = json!({ "name": "Attic", "rrule": "FREQ=DAILY", "action": unknown });
    door.json("POST", &at, body).await.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn commands_to_a_schedule_are_accepted_and_those_to_none_are_refused() {
    let door = Door::open();
    let at = format!("{}/schedules", door.workspace().await);
    let one = format!("{at}/{}", door.json("POST", &at, daily()).await.is(202).text("schedule_id"));
    door.json("PATCH", &one, json!({ "paused": true })).await.is(202);
    let renamed = json!({ "name": "Morning brief", "at": "2027-02-01T08:00:00Z" });
    door.json("PATCH", &one, renamed).await.is(202);
    let run = door.json("POST", &format!("{one}/run"), json!({})).await.is(202);
    assert_eq!(run.json["schedule_id"], one.rsplit('/').next().unwrap());
    door.ask("DELETE", &one, &[], "").await.is(204);
    let commands: Vec<String> = door.take_messages().await;
    assert!(!commands.concat().contains("overlap"), "runs begin beside each other where nothing else is said");
    for (command, body) in ["create", "pause", "change", "run_now", "delete"].iter().zip(&commands) {
        assert!(body.contains(&format!(r#""command":"{command}""#)), "{body}");
    }
    let none = format!("{at}/{}", uuid::Uuid::now_v7());
    door.get(&none).await.refuses(404, "NOT_FOUND");
    door.json("PATCH", &none, json!({ "paused": true })).await.refuses(404, "NOT_FOUND");
    door.json("POST", &format!("{none}/run"), json!({})).await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_schedule_says_what_becomes_of_runs_while_its_last_work_is_not_done() {
    let door = Door::open();
    let at = format!("{}/schedules", door.workspace().await);
    let mut body = daily();
    body["overlap"] = json!("skip");
    let made = door.json("POST", &at, body.clone()).await.is(202);
    assert_eq!(made.json["overlap"], "skip");
    body["overlap"] = json!("wait");
    door.json("POST", &at, body).await.refuses(400, "INVALID_ARGUMENT");
    let one = format!("{at}/{}", made.text("schedule_id"));
    door.json("PATCH", &one, json!({ "overlap": "begin" })).await.is(202);
    let commands = door.take_messages().await;
    assert!(commands.len() == 2 && commands[0].contains(r#""overlap":"skip""#), "{commands:?}");
    assert!(!commands[1].contains("overlap"), "{}", commands[1]);
}

#[tokio::test]
async fn schedules_that_make_no_sense_are_refused_by_field() {
    let door = Door::open();
    let at = format!("{}/schedules", door.workspace().await);
    let with = |changes: Value| {
        let mut body = daily();
        for (key, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => drop(body.as_object_mut().unwrap().remove(key)),
                value => body[key] = value.clone(),
            }
        }
        body
    };
    for (changes, field) in [
        (json!({ "name": "" }), "name"),
        (json!({ "name": "x".repeat(101) }), "name"),
        (json!({ "rrule": "FREQ=SECONDLY" }), "rrule"),
        (json!({ "rrule": "FREQ=DAILY\nEXDATE:20270101T080000" }), "rrule"),
        (json!({ "rrule": "FREQ=DAILY;UNTIL=20270101T000000Z" }), "rrule"),
        (json!({ "time_zone": "Mars/Olympus" }), "time_zone"),
        (json!({ "begins": "tomorrow" }), "begins"),
        (json!({ "action": { "kind": "tool", "tool": "fly" } }), "action.tool"),
        (
            json!({ "action": { "kind": "tool", "tool": "sync_calendar", "args": { "path": "x".repeat(40_000) } } }),
            "action.args",
        ),
        (json!({ "at": "2027-01-01T08:00:00Z" }), "rrule"),
        (json!({ "rrule": null }), "time_zone"),
        (json!({ "rrule": null, "time_zone": null }), "begins"),
        (json!({ "rrule": null, "time_zone": null, "begins": null }), "rrule"),
        (json!({ "rrule": null, "time_zone": null, "begins": null, "at": "2001-01-01T08:00:00Z" }), "at"),
        (json!({ "action": { "kind": "chat", "goal": " " } }), "action.goal"),
        (json!({ "action": { "kind": "chat", "goal": "x".repeat(40_000) } }), "action.goal"),
        (json!({ "action": { "kind": "chat", "goal": "x", "model": "m".repeat(201) } }), "action.model"),
        (json!({ "action": { "kind": "chat", "goal": "x", "role": "r".repeat(201) } }), "action.role"),
        (json!({ "action": { "kind": "daily_brief", "model": "m".repeat(201) } }), "action.model"),
        (json!({ "action": { "kind": "chat", "goal": "x", "mode": "build" } }), "action.mode"),
        (json!({ "action": { "kind": "chat", "goal": "x", "limits": { "max_steps": 0 } } }), "action.limits.max_steps"),
        (
            json!({ "action": { "kind": "chat", "goal": "x", "mode": "plan", "scenario": "plan_then_execute" } }),
            "action.mode",
        ),
        (json!({ "action": { "kind": "task", "flow": "" } }), "action.flow"),
        (json!({ "action": { "kind": "task", "flow": "a/b" } }), "action.flow"),
        (json!({ "action": { "kind": "task", "flow": ".git" } }), "action.flow"),
        (json!({ "action": { "kind": "task", "flow": "a\nb" } }), "action.flow"),
        (json!({ "action": { "kind": "chat", "goal": "x", "role": "../planner" } }), "action.role"),
        (json!({ "action": { "kind": "chat", "goal": "x", "role": "~" } }), "action.role"),
        (json!({ "name": "a\u{202E}b" }), "name"),
    ] {
        let refused = door.json("POST", &at, with(changes.clone())).await.refuses(400, "INVALID_ARGUMENT");
        assert_eq!(refused.json["error"]["details"]["field"], field, "{changes}: {}", refused.json);
    }
    door.json("POST", &at, with(json!({ "action": { "kind": "mail" } }))).await.refuses(400, "INVALID_ARGUMENT");
    assert!(door.take_messages().await.is_empty());
}
