//! Schedules of a hub: they run at their time, and by hand.

use crate::support::{ANYWHERE, Hub, text};
use ports::{Clock, SystemClock};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// The schedule, once `is_so`.
fn until(hub: &Hub, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let shown = hub.run(&["schedule", "show", name, "--json"]);
        let schedule: Value = serde_json::from_slice(&shown.stdout).unwrap();
        if is_so(&schedule) {
            return schedule;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{schedule}");
    }
}

#[test]
fn a_schedule_begins_a_chat_at_its_time_and_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(folder.path(), ANYWHERE, &[]);
    assert_eq!(text(&hub.run(&["workspaces", "create", "team"]).stderr), "", "made");
    assert!(text(&hub.run(&["schedule"]).stderr).contains("no schedules"));

    let soon = SystemClock.now() + Duration::from_secs(2);
    let once = ["schedule", "add", "Once", "--at", &soon.to_string(), "--goal", "say hello"];
    let made = hub.run(&once);
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
    let listed = text(&hub.run(&["schedule", "list"]).stdout);
    assert!(listed.contains("FREQ=DAILY, UTC") && listed.contains("paused"), "{listed}");
    let wrong = hub.run(&["schedule", "show", "Weekly"]);
    assert_eq!(wrong.status.code(), Some(3), "{}", text(&wrong.stderr));
    let wrong = hub.run(&["schedule", "add", "Bad", "--rrule", "FREQ=SECONDLY", "--goal", "x"]);
    assert!(text(&wrong.stderr).contains("FREQ is one of MINUTELY"), "{}", text(&wrong.stderr));
    assert_eq!(wrong.status.code(), Some(2));
}
