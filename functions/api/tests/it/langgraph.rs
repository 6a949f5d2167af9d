//! Crons of the door of LangGraph: what a schedule cannot do for them is refused, and is not left out.

use crate::support::Door;
use serde_json::{Value, json};

const ALONE: &str = "/langgraph/runs/crons";
const OF_THREAD: &str = "/langgraph/threads/mine/runs/crons";

/// A cron of the persona `assistant` with these fields.
fn cron(more: &Value) -> Value {
    let mut cron = json!({ "assistant_id": "assistant", "input": { "messages": "Hello" }, "schedule": "0 9 * * *" });
    cron.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    cron
}

#[tokio::test]
async fn what_a_cron_cannot_do_is_refused_by_its_name() {
    let door = Door::open();
    door.workspace().await;
    let run = json!({ "assistant_id": "assistant", "input": { "messages": "Hello" }, "if_not_exists": "create" });
    door.json("POST", "/langgraph/threads/mine/runs", run).await.is(200);
    door.take_messages().await;
    let two = json!([{ "type": "system", "content": "Be short." }, { "type": "human", "content": "Hello" }]);
    for (path, more, field) in [
        (OF_THREAD, json!({ "assistant_id": "reviewer" }), "assistant_id"),
        (OF_THREAD, json!({ "multitask_strategy": "interrupt" }), "multitask_strategy"),
        (OF_THREAD, json!({ "config": { "configurable": { "model": "m" } } }), "config"),
        (ALONE, json!({ "on_run_completed": "delete" }), "on_run_completed"),
        (ALONE, json!({ "checkpoint": { "checkpoint_id": "00000000000000000001" } }), "checkpoint"),
        (ALONE, json!({ "end_time": "tomorrow" }), "end_time"),
        (ALONE, json!({ "input": { "messages": two } }), "input"),
    ] {
        let refused = door.json("POST", path, cron(&more)).await.refuses(400, "INVALID_ARGUMENT");
        assert_eq!(refused.json["error"]["details"]["field"], field, "{more}: {}", refused.json);
    }
    assert!(door.take_messages().await.is_empty());
}

#[tokio::test]
async fn a_cron_ends_at_its_end_time() {
    let door = Door::open();
    door.workspace().await;
    let ends = json!({ "end_time": "2099-01-01T01:00:00+01:00", "on_run_completed": "keep" });
    let made = door.json("POST", ALONE, cron(&ends)).await.is(200);
    assert_eq!((made.text("schedule").as_str(), made.text("end_time").as_str()), ("0 9 * * *", "2099-01-01T00:00:00Z"));
    let sent = door.take_messages().await.concat();
    assert!(sent.contains(";UNTIL=20990101T000000Z"), "{sent}");
    // Without its schedule such a field would change nothing.
    let one = format!("{ALONE}/{}", made.text("cron_id"));
    for (field, value) in [("timezone", "Europe/Berlin"), ("end_time", "2099-06-01T00:00:00Z")] {
        let refused = door.json("PATCH", &one, json!({ field: value })).await.refuses(400, "INVALID_ARGUMENT");
        assert_eq!(refused.json["error"]["details"]["field"], field);
    }
    assert!(door.take_messages().await.is_empty());
}
