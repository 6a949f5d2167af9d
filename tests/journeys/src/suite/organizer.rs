//! Projects, tasks, notes and calendars: files, which tools make, list, show and change.

use super::Stage;
use crate::Result;
use serde_json::{Value, json};

const CALENDAR: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:fair@example.org\r\n\
    DTSTART;TZID=Europe/Berlin:20261201T100000\r\nDTEND;TZID=Europe/Berlin:20261201T120000\r\nRRULE:FREQ=WEEKLY;COUNT=3\r\n\
    SUMMARY:Fair\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

pub(super) async fn projects_tasks_and_calendars_are_files_with_tools(stage: Stage) -> Result {
    let client = stage.client();
    let place = client.place().await?;
    let tools = format!("{place}/tools");
    let call = async |tool: &str, args: Value| -> Result<Value> {
        let done = client.post(&tools, json!({ "tool": tool, "args": args })).await?;
        match done["success"] == true {
            true => Ok(done["result"].clone()),
            false => Err(format!("{tool} {args}: {done}").into()),
        }
    };
    call("create_project", json!({ "name": "Atlas", "description": "Maps of rivers" })).await?;
    call("create_task", json!({ "project": "atlas", "title": "Order paper", "priority": "high" })).await?;
    call("create_note", json!({ "title": "Ink", "content": "Iron gall ink fades." })).await?;
    let task = "/projects/atlas/tasks/order-paper.md";
    call("update_task", json!({ "path": task, "status": "in_progress" })).await?;

    // A person writes a task by hand, and it is one like any other.
    client.file(&place, "/projects/atlas/tasks/draw.md", "---\ntitle: Draw\nstatus: backlog\n---\nWith ink.").await?;
    let listed = call("list_tasks", json!({ "project": "atlas" })).await?;
    assert_eq!((&listed["total"], &listed["tasks"][0]["path"]), (&json!(2), &json!(task)), "{listed}");
    assert_eq!(call("search_notes", json!({ "query": "gall ink" })).await?["total"], 1);

    // A calendar comes in, a task is put beside it, and the rest of the day is free.
    client.file(&place, "/data/fair.ics", CALENDAR).await?;
    let imported = call("import_calendar", json!({ "path": "/data/fair.ics", "project": "atlas" })).await?;
    assert_eq!(imported["imported"], 1, "{imported}");
    let time =
        json!({ "path": task, "start": "2026-12-01T12:00", "duration_minutes": 60, "time_zone": "Europe/Berlin" });
    call("schedule_task", time).await?;
    let day = json!({ "from": "2026-12-01", "to": "2026-12-02", "time_zone": "Europe/Berlin", "duration_minutes": 60 });
    let free = call("find_available_slots", day).await?;
    let starts: Vec<&str> =
        free["slots"].as_array().into_iter().flatten().filter_map(|slot| slot["start"].as_str()).collect();
    assert_eq!(starts, ["2026-12-01T09:00:00+01:00", "2026-12-01T13:00:00+01:00"], "{free}");
    let weeks = json!({ "from": "2026-12-01", "to": "2027-12-01", "project": "atlas" });
    assert_eq!(call("get_calendar_events", weeks).await?["total"], 4);
    let exported = call("export_calendar", json!({ "path": "/data/atlas.ics", "project": "atlas" })).await?;
    assert_eq!(exported["path"], "/data/atlas.ics");
    Ok(())
}
