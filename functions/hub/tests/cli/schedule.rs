//! Schedules of a hub: they run at their time, and by hand.

use crate::support::{ANYWHERE, Hub, text};
use ports::{Clock, SystemClock};
use serde_json::Value;
use std::time::Duration;

/// The schedule, once `is_so`.
fn until(hub: &Hub, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    hub.until(&["schedule", "show", name, "--json"], is_so)
}

#[test]
fn a_schedule_begins_a_chat_at_its_time_and_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(folder.path(), ANYWHERE, &[]);
    assert_eq!(text(&hub.run(&["workspaces", "create", "team"]).stderr), "", "made");
    assert!(text(&hub.run(&["schedule"]).stderr).contains("no schedules"));

    let add = |seconds: u64| {
        let soon = (SystemClock.now() + Duration::from_secs(seconds)).to_string();
        hub.run(&["schedule", "add", "Once", "--at", &soon, "--goal", "say hello"])
    };
    // On a machine that is so busy that the time had passed before it came to the hub, a later one is given.
    let mut made = add(2);
    for seconds in [20, 100] {
        if !made.status.success() {
            made = add(seconds);
        }
    }
    assert!(made.status.success(), "{}", text(&made.stderr));
    let ran = until(&hub, "Once", |one| one["runs"] == 1);
    assert_eq!((&ran["status"], &ran["next_at"]), (&Value::from("ended"), &Value::Null));
    let chat = ran["last_run"]["chat_id"].as_str().unwrap().to_owned();
    assert!(text(&hub.run(&["chats"]).stdout).contains("say hello"));

    let daily = ["schedule", "add", "Daily", "--rrule", "FREQ=DAILY", "--chat", &chat, "--say", "and again"];
    assert!(hub.run(&daily).status.success());
    assert!(hub.run(&["schedule", "run", "Daily"]).status.success());
    let ran = until(&hub, "Daily", |one| one["runs"] == 1);
    assert_eq!((&ran["status"], &ran["last_run"]["chat_id"]), (&Value::from("active"), &Value::from(chat.as_str())));
    assert!(hub.run(&["schedule", "pause", "Daily"]).status.success());
    until(&hub, "Daily", |one| one["status"] == "paused");
    assert!(hub.run(&["schedule", "remove", "Once"]).status.success());
    let is_alone = |listed: &Value| listed["schedules"].as_array().is_some_and(|all| all.len() == 1);
    hub.until(&["schedule", "list", "--json"], is_alone);
    let listed = text(&hub.run(&["schedule", "list"]).stdout);
    assert!(listed.contains("FREQ=DAILY, UTC") && listed.contains("paused"), "{listed}");
    let alone = ["schedule", "add", "Alone", "--rrule", "FREQ=YEARLY", "--goal", "sort it", "--scenario", "autonomous"];
    assert!(hub.run(&[&alone[..], &["--overlap", "skip"]].concat()).status.success());
    let made = until(&hub, "Alone", |one| one["action"].is_object());
    assert_eq!((&made["action"]["scenario"], &made["overlap"]), (&Value::from("autonomous"), &Value::from("skip")));
    assert!(hub.run(&["schedule", "add", "Brief", "--rrule", "FREQ=DAILY", "--brief"]).status.success());
    assert_eq!(until(&hub, "Brief", |one| one["action"].is_object())["action"]["kind"], "daily_brief");
    assert!(text(&hub.run(&["schedule", "list"]).stdout).contains("the daily brief"));
    let both = hub.run(&["schedule", "add", "Both", "--rrule", "FREQ=DAILY", "--brief", "--goal", "x"]);
    assert_eq!(both.status.code(), Some(2), "one action: {}", text(&both.stderr));
    let wrong = hub.run(&["schedule", "show", "Weekly"]);
    assert_eq!(wrong.status.code(), Some(3), "{}", text(&wrong.stderr));
    let wrong = hub.run(&["schedule", "add", "Bad", "--rrule", "FREQ=SECONDLY", "--goal", "x"]);
    assert!(text(&wrong.stderr).contains("FREQ is one of MINUTELY"), "{}", text(&wrong.stderr));
    assert_eq!(wrong.status.code(), Some(2));
}
