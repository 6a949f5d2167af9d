//! Projects, tasks, notes, brain dumps and calendars, by the tools of the organizer.

use crate::common::{Hands, has};
use domain::{CallId, Code, FilePath, Principal, UserId};
use serde_json::{Value, json};
use uuid::Uuid;

async fn ok(hands: &mut Hands, tool: &str, args: Value) -> Value {
    let outcome = hands.call(tool, &args.to_string()).await;
    assert!(outcome.success, "{tool} {args}: {}", outcome.output);
    outcome.result
}

async fn refused(hands: &mut Hands, tool: &str, args: Value) -> (Code, String) {
    hands.refused(tool, &args.to_string()).await
}

fn paths(rows: &Value) -> Vec<&str> {
    rows.as_array().into_iter().flatten().filter_map(|row| row["path"].as_str()).collect()
}

/// Tokens, at four characters each.
fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}

#[tokio::test]
async fn a_project_is_made_listed_shown_and_changed() {
    let mut hands = Hands::agent().await;
    let made = ok(
        &mut hands,
        "create_project",
        json!({ "name": "Atlas of Rivers", "description": "Maps.", "status": "active" }),
    )
    .await;
    assert_eq!(made["path"], "/projects/atlas-of-rivers/README.md");
    let (code, told) = refused(&mut hands, "create_project", json!({ "name": "Atlas of rivers" })).await;
    assert_eq!(code, Code::Conflict);
    has(&told, &["update it"]);
    for (title, priority, due) in
        [("Order paper", "low", "2026-12-01"), ("Draw", "high", "2026-12-01"), ("Ask Ada", "high", "2026-11-01")]
    {
        let task = json!({ "project": "atlas-of-rivers", "title": title, "priority": priority, "due_date": due });
        ok(&mut hands, "create_task", task).await;
    }
    let tasks = ok(&mut hands, "list_tasks", json!({ "project": "atlas-of-rivers" })).await;
    assert_eq!(
        paths(&tasks["tasks"]),
        ["ask-ada", "draw", "order-paper"].map(|name| format!("/projects/atlas-of-rivers/tasks/{name}.md"))
    );
    let path = "/projects/atlas-of-rivers/tasks/draw.md";
    ok(&mut hands, "update_task", json!({ "path": path, "status": "done" })).await;
    assert!(hands.text(path).await.starts_with("---\ntitle: Draw\nstatus: done\npriority: high\n"));
    let filtered =
        ok(&mut hands, "list_tasks", json!({ "status": "backlog", "priority": "high", "due_before": "2026-11-30" }))
            .await;
    assert_eq!(paths(&filtered["tasks"]), ["/projects/atlas-of-rivers/tasks/ask-ada.md"]);
    let shown = ok(&mut hands, "get_project_details", json!({ "project": "atlas-of-rivers" })).await;
    assert_eq!((&shown["project"]["name"], &shown["tasks"]["total"]), (&json!("Atlas of Rivers"), &json!(3)));
    ok(
        &mut hands,
        "update_project",
        json!({ "path": "/projects/atlas-of-rivers", "status": "paused", "core_people_bonds": "Ada" }),
    )
    .await;
    let found = ok(&mut hands, "search_projects", json!({ "query": "rivers", "status": "paused" })).await;
    assert_eq!(paths(&found["projects"]), ["/projects/atlas-of-rivers/README.md"]);
}

#[tokio::test]
async fn an_update_is_refused_beyond_the_whitelist_and_over_a_text_that_was_not_read() {
    let mut hands = Hands::agent().await;
    hands.put("/projects/atlas/README.md", "---\nname: Atlas\nstatus: active\nowner: Ada\n---\n\nAll of it.\n").await;
    for field in ["owner", "path", "created_at", "slug"] {
        let (code, told) =
            refused(&mut hands, "update_project", json!({ "path": "/projects/atlas", (field): "x" })).await;
        assert_eq!(code, Code::InvalidArgument, "{field}: {told}");
    }
    let (code, _) =
        refused(&mut hands, "update_project", json!({ "path": "/projects/atlas", "status": "sleeping" })).await;
    assert_eq!(code, Code::InvalidArgument);
    // A field may be changed unread; the text may not.
    ok(&mut hands, "update_project", json!({ "path": "/projects/atlas", "end_date": "2027-01-31" })).await;
    let text = json!({ "path": "/projects/atlas", "context": "Less of it." });
    assert_eq!(refused(&mut hands, "update_project", text.clone()).await.0, Code::StaleVersion);
    ok(&mut hands, "get_project_details", json!({ "project": "atlas" })).await;
    hands.put("/projects/atlas/README.md", "---\nname: Atlas\nstatus: active\nowner: Ada\n---\n\nMore of it.\n").await;
    assert_eq!(refused(&mut hands, "update_project", text.clone()).await.0, Code::StaleVersion);
    ok(&mut hands, "get_project_details", json!({ "project": "atlas" })).await;
    ok(&mut hands, "update_project", text).await;
    assert_eq!(
        hands.text("/projects/atlas/README.md").await,
        "---\nname: Atlas\nstatus: active\nowner: Ada\n---\n\nLess of it.\n"
    );
}

#[tokio::test]
async fn the_same_call_again_changes_nothing_and_answers_the_same() {
    let mut hands = Hands::agent().await;
    ok(&mut hands, "create_project", json!({ "name": "atlas" })).await;
    hands.put("/data/a.ics", calendar("a@x", "20261201T090000Z", "Meet")).await;
    for (tool, args) in [
        ("create_task", json!({ "project": "atlas", "title": "One" })),
        ("update_task", json!({ "path": "/projects/atlas/tasks/one.md", "status": "done" })),
        ("schedule_task", json!({ "path": "/projects/atlas/tasks/one.md", "start": "2026-12-01T09:00" })),
        ("import_calendar", json!({ "path": "/data/a.ics", "project": "atlas" })),
        ("export_calendar", json!({ "path": "/data/out.ics", "project": "atlas" })),
    ] {
        let call = CallId(Uuid::now_v7());
        let first = hands.call_as(call, tool, &args.to_string()).await;
        let again = hands.call_as(call, tool, &args.to_string()).await;
        assert!(first.success && again.success, "{tool}: {} {}", first.output, again.output);
        assert_eq!(first.result["v"], again.result["v"], "{tool}");
        assert_eq!(first.result["imported"], again.result["imported"], "{tool}");
    }
}

#[tokio::test]
async fn lists_have_seventy_percent_fewer_tokens_than_details() {
    let mut hands = Hands::agent().await;
    ok(&mut hands, "create_project", json!({ "name": "atlas" })).await;
    let long =
        "The paper has to be heavy enough for ink on both sides, and the shop in the old town has it in three sizes. "
            .repeat(4);
    let mut whole = [0, 0, 0];
    for number in 0..20 {
        let title = format!("Order paper of size {number}");
        let task = json!({
            "project": "atlas", "title": title, "description": long, "priority": "high", "due_date": "2026-12-01", "assignee": "Ada",
            "duration_minutes": 30, "tags": ["paper", "shop"],
        });
        let made = [
            ("create_task", "get_task_details", task),
            (
                "create_note",
                "get_note_details",
                json!({ "project": "atlas", "title": title, "content": long, "tags": ["paper"] }),
            ),
            (
                "create_brain_dump",
                "get_brain_dump_details",
                json!({ "project": "atlas", "title": title, "content": long }),
            ),
        ];
        for (total, (create, details, args)) in whole.iter_mut().zip(made) {
            let path = ok(&mut hands, create, args).await["path"].clone();
            *total += tokens(&hands.ok(details, &json!({ "path": path }).to_string()).await);
        }
    }
    for (list, whole) in ["list_tasks", "search_notes", "search_brain_dumps"].into_iter().zip(whole) {
        let short = tokens(&hands.ok(list, r#"{"project": "atlas"}"#).await);
        let saved = 100 - 100 * short / whole;
        assert!((60..=90).contains(&saved), "{list}: {short} of {whole} tokens: {saved} % fewer");
    }
}

#[tokio::test]
async fn notes_and_thoughts_are_kept_at_home_or_in_a_project_and_are_found() {
    let mut hands = Hands::agent().await;
    ok(&mut hands, "create_project", json!({ "name": "atlas" })).await;
    let home = format!("/users/{}", Uuid::nil());
    let made =
        ok(&mut hands, "create_brain_dump", json!({ "content": "Rivers in winter\nfreeze from the banks." })).await;
    assert_eq!(made["path"], format!("{home}/brain-dumps/rivers-in-winter-freeze-from-the-banks.md"));
    ok(
        &mut hands,
        "create_note",
        json!({ "project": "atlas", "title": "Ink", "content": "Iron gall ink fades.", "category": "material" }),
    )
    .await;
    ok(&mut hands, "create_note", json!({ "title": "Bread", "content": "Buy it." })).await;
    for (tool, args, count) in [
        ("search_notes", json!({}), 2),
        ("search_notes", json!({ "query": "iron INK" }), 1),
        ("search_notes", json!({ "project": "home" }), 1),
        ("search_notes", json!({ "category": "material", "query": "bread" }), 0),
        ("search_brain_dumps", json!({ "query": "banks", "status": "pending" }), 1),
        ("search_brain_dumps", json!({ "project": "atlas" }), 0),
    ] {
        let found = ok(&mut hands, tool, args.clone()).await;
        assert_eq!(found["total"], count, "{tool} {args}: {found}");
    }
    assert_eq!(refused(&mut hands, "search_notes", json!({ "project": "none" })).await.0, Code::NotFound);
    assert_eq!(refused(&mut hands, "create_note", json!({ "project": "none", "title": "x" })).await.0, Code::NotFound);
    assert_eq!(
        refused(&mut hands, "get_note_details", json!({ "path": "/projects/atlas/README.md" })).await.0,
        Code::InvalidArgument
    );
    // Thoughts of a person are in their home, and another person's tools look into another one.
    let mut other = hands.other(Principal::User { id: UserId(Uuid::now_v7()) });
    assert_eq!(ok(&mut other, "search_brain_dumps", json!({})).await["total"], 0);
}

fn calendar(uid: &str, start: &str, title: &str) -> String {
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:{uid}\r\nDTSTART:{start}\r\nDURATION:PT1H\r\nSUMMARY:{title}\r\n\
         END:VEVENT\r\nEND:VCALENDAR\r\n"
    )
}

#[tokio::test]
async fn events_that_are_imported_are_versions_of_the_call() {
    let mut hands = Hands::agent().await;
    ok(&mut hands, "create_project", json!({ "name": "atlas" })).await;
    hands.put("/data/a.ics", calendar("a@x", "20261201T090000Z", "Meet")).await;
    let call = CallId(Uuid::now_v7());
    let args = json!({ "path": "/data/a.ics", "project": "atlas" }).to_string();
    let imported = hands.call_as(call, "import_calendar", &args).await;
    let folder = FilePath::parse(imported.result["folder"].as_str().unwrap()).unwrap();
    let listing = hands.workspace.ls(&folder, 10, None).await.unwrap();
    let [event] = listing.entries.as_slice() else { panic!("{listing:?}") };
    // So a rewind of the turn finds it.
    assert_eq!(hands.workspace.version_info(event.file_id, 1).await.unwrap().call_id, Some(call));
}

#[tokio::test]
async fn an_event_that_is_imported_again_is_the_same_file_whatever_its_title_and_its_name_are() {
    let mut hands = Hands::agent().await;
    ok(&mut hands, "create_project", json!({ "name": "atlas" })).await;
    let import = json!({ "path": "/data/a.ics", "project": "atlas" });
    hands.put("/data/a.ics", calendar("a@x", "20261201T080000Z", "Meet")).await;
    ok(&mut hands, "import_calendar", import.clone()).await;
    hands.put("/data/a.ics", calendar("a@x", "20261201T080000Z", "Meet again")).await;
    let again = ok(&mut hands, "import_calendar", import.clone()).await;
    assert_eq!(again["imported"], 1, "{again}");
    let day = json!({ "from": "2026-12-01", "to": "2026-12-02" });
    let shown = ok(&mut hands, "get_calendar_events", day.clone()).await;
    assert_eq!((&shown["total"], &shown["events"][0]["title"]), (&json!(1), &json!("Meet again")), "{shown}");

    let text = hands.text(shown["events"][0]["path"].as_str().unwrap()).await;
    ok(&mut hands, "rm", json!({ "path": shown["events"][0]["path"] })).await;
    hands.put("/projects/atlas/calendar/ours.md", text).await;
    let same = ok(&mut hands, "import_calendar", import).await;
    assert_eq!((&same["imported"], &same["unchanged"]), (&json!(0), &json!(1)), "{same}");
    assert_eq!(ok(&mut hands, "get_calendar_events", day).await["total"], 1);
}

#[tokio::test]
async fn calendars_are_imported_shown_with_tasks_and_free_slots_and_exported() {
    let mut hands = Hands::agent().await;
    for project in ["atlas", "book"] {
        ok(&mut hands, "create_project", json!({ "name": project })).await;
    }
    hands.put("/data/a.ics", calendar("a@x", "20261201T080000Z", "Meet")).await;
    let imported = ok(&mut hands, "import_calendar", json!({ "path": "/data/a.ics", "project": "atlas" })).await;
    assert_eq!((&imported["imported"], &imported["unchanged"]), (&json!(1), &json!(0)));
    let again = ok(&mut hands, "import_calendar", json!({ "path": "/data/a.ics", "project": "atlas" })).await;
    assert_eq!((&again["imported"], &again["unchanged"]), (&json!(0), &json!(1)));
    hands.put("/data/a.ics", calendar("a@x", "20261201T090000Z", "Meet")).await;
    ok(&mut hands, "import_calendar", json!({ "path": "/data/a.ics", "project": "atlas" })).await;

    hands
        .put(
            "/projects/book/calendar/weekly.md",
            "---\ntitle: Weekly\nstart: 2026-11-24T13:00\nend: 2026-11-24T14:00\ntime_zone: Europe/Berlin\nrrule: FREQ=WEEKLY\n---\n",
        )
        .await;
    hands.put("/projects/book/calendar/odd.md", "---\ntitle: Odd\nstart: never\n---\n").await;
    ok(&mut hands, "create_task", json!({ "project": "book", "title": "Write" })).await;
    let task = "/projects/book/tasks/write.md";
    let scheduled =
        json!({ "path": task, "start": "2026-12-01T15:00", "duration_minutes": 120, "time_zone": "Europe/Berlin" });
    ok(&mut hands, "schedule_task", scheduled).await;

    let day = json!({ "from": "2026-12-01", "to": "2026-12-02", "time_zone": "Europe/Berlin" });
    let shown = ok(&mut hands, "get_calendar_events", day.clone()).await;
    let times: Vec<(&str, &str)> = shown["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["title"].as_str().unwrap(), row["start"].as_str().unwrap()))
        .collect();
    assert_eq!(
        times,
        [
            ("Meet", "2026-12-01T10:00:00+01:00"),
            ("Weekly", "2026-12-01T13:00:00+01:00"),
            ("Write", "2026-12-01T15:00:00+01:00")
        ]
    );
    assert_eq!(shown["faults"].as_array().map(Vec::len), Some(1));

    let mut ask = day.clone();
    ask["duration_minutes"] = 60.into();
    let free = ok(&mut hands, "find_available_slots", ask.clone()).await;
    let starts = |found: &Value| -> Vec<String> {
        let slots = found["slots"].as_array().unwrap().iter();
        slots.map(|slot| slot["start"].as_str().unwrap()[11..16].to_owned()).collect()
    };
    assert_eq!(starts(&free), ["09:00", "11:00", "14:00"]);
    ask["calendars"] = json!(["atlas", "home"]);
    assert_eq!(starts(&ok(&mut hands, "find_available_slots", ask).await), ["09:00", "11:00"]);
    ok(&mut hands, "schedule_task", json!({ "path": task, "start": "" })).await;
    assert_eq!(ok(&mut hands, "get_calendar_events", day.clone()).await["total"], 2);

    let exported = ok(&mut hands, "export_calendar", json!({ "path": "/data/book.ics", "project": "book" })).await;
    let text = hands.text("/data/book.ics").await;
    has(
        &text,
        &["SUMMARY:Weekly", "RRULE:FREQ=WEEKLY", "BEGIN:VTIMEZONE", "DTSTART;TZID=Europe/Berlin:20261124T130000"],
    );
    ok(&mut hands, "create_project", json!({ "name": "copy" })).await;
    let copied = ok(&mut hands, "import_calendar", json!({ "path": exported["path"], "project": "copy" })).await;
    assert_eq!((&copied["imported"], &copied["problems"]), (&json!(1), &json!([])));
    hands.put("/data/mine.ics", calendar("b@x", "20261201T080000Z", "Mine")).await;
    hands.seen.clear();
    assert_eq!(refused(&mut hands, "export_calendar", json!({ "path": "/data/mine.ics" })).await.0, Code::StaleVersion);
    let (code, output) = refused(&mut hands, "import_calendar", json!({ "path": "/projects/book/README.md" })).await;
    assert_eq!(code, Code::Unprocessable);
    assert!(output.contains("/projects/book/README.md cannot be imported: "), "{output}");
}

#[tokio::test]
async fn an_export_leaves_out_the_tasks_of_a_project_that_says_so_and_tells_all_that_is_not_in_it() {
    let mut hands = Hands::agent().await;
    for project in ["atlas", "book"] {
        ok(&mut hands, "create_project", json!({ "name": project })).await;
        let title = format!("Work on {project}");
        let made = ok(&mut hands, "create_task", json!({ "project": project, "title": title })).await;
        ok(&mut hands, "schedule_task", json!({ "path": made["path"], "start": "2026-12-01T09:00" })).await;
        let event = format!("---\ntitle: Meet about {project}\nstart: 2026-12-02T09:00\n---\n");
        hands.put(&format!("/projects/{project}/calendar/meet.md"), event).await;
    }
    let set = |flag: bool| json!({ "path": "/projects/book", "calendar_sync_enabled": flag, "calendar_color_id": "7" });
    ok(&mut hands, "update_project", set(false)).await;
    let export = json!({ "path": "/data/all.ics" });
    let made = hands.call("export_calendar", &export.to_string()).await;
    assert_eq!((&made.result["events"], &made.result["kept_out"]), (&json!(3), &json!(1)), "{}", made.output);
    assert_eq!((&made.result["complete"], &made.result["faults"]), (&json!(true), &json!([])));
    has(&made.output, &["1 task of projects with calendar_sync_enabled: false"]);
    let text = hands.text("/data/all.ics").await;
    has(&text, &["SUMMARY:Work on atlas", "SUMMARY:Meet about atlas", "SUMMARY:Meet about book"]);
    assert!(!text.contains("Work on book"), "{text}");
    assert_eq!(text.matches("COLOR:dodgerblue").count(), 1, "{text}");

    ok(&mut hands, "update_project", set(true)).await;
    hands.put("/projects/book/calendar/odd.md", "---\ntitle: Odd\nstart: never\n---\n").await;
    let made = hands.call("export_calendar", &export.to_string()).await;
    assert_eq!((&made.result["events"], &made.result["kept_out"]), (&json!(4), &json!(0)), "{}", made.output);
    assert_eq!(made.result["complete"], false);
    has(&made.output, &["left out: /projects/book/calendar/odd.md"]);
    has(&hands.text("/data/all.ics").await, &["SUMMARY:Work on book"]);

    let task = "/projects/book/tasks/work-on-book.md";
    ok(&mut hands, "update_task", json!({ "path": task, "status": "done" })).await;
    ok(&mut hands, "export_calendar", export).await;
    let text = hands.text("/data/all.ics").await;
    assert!(!text.contains("Work on book"), "a task that is done stands in no calendar: {text}");
}

#[tokio::test]
async fn a_whole_day_is_the_same_day_in_every_time_zone() {
    let mut hands = Hands::agent().await;
    ok(&mut hands, "create_project", json!({ "name": "atlas" })).await;
    let event = "---\ntitle: Fair\nstart: 2026-12-01\ntime_zone: Asia/Tokyo\n---\n";
    hands.put("/projects/atlas/calendar/fair.md", event).await;
    let day = json!({ "from": "2026-12-01", "to": "2026-12-02", "time_zone": "Europe/Berlin" });
    let shown = ok(&mut hands, "get_calendar_events", day).await;
    let row = &shown["events"][0];
    assert_eq!((&row["start"], &row["end"]), (&json!("2026-12-01"), &json!("2026-12-02")), "{shown}");
}

#[tokio::test]
async fn fields_are_told_from_the_table() {
    let mut hands = Hands::agent().await;
    let told = ok(&mut hands, "get_field_info", json!({ "entity": "task", "field": "status" })).await;
    assert_eq!(told["fields"]["status"]["enum_values"], json!(["backlog", "in_progress", "done", "blocked"]));
    let all = ok(&mut hands, "get_field_info", json!({ "entity": "project" })).await;
    let updatable = all["fields"].as_object().unwrap().values().filter(|field| field["updatable"] == true).count();
    assert_eq!((updatable, &all["place"]), (19, &json!("/projects/NAME/README.md")));
    let (code, told) = refused(&mut hands, "get_field_info", json!({ "entity": "note", "field": "x" })).await;
    assert_eq!(code, Code::NotFound);
    has(&told, &["title, content, category, tags"]);
}

#[tokio::test]
async fn people_without_a_right_get_no_more_by_these_tools() {
    let mut hands = Hands::agent().await;
    ok(&mut hands, "create_note", json!({ "title": "Secret", "content": "of mine" })).await;
    ok(&mut hands, "create_project", json!({ "name": "atlas" })).await;
    // A viewer, who is not the person of the agent.
    let mut viewer = hands.viewer().await;
    assert_eq!(ok(&mut viewer, "search_notes", json!({ "query": "secret" })).await["total"], 0);
    let path = format!("/users/{}/notes/secret.md", Uuid::nil());
    assert_eq!(refused(&mut viewer, "get_note_details", json!({ "path": path })).await.0, Code::NotFound);
    assert_eq!(
        refused(&mut viewer, "create_task", json!({ "project": "atlas", "title": "x" })).await.0,
        Code::Forbidden
    );
    assert_eq!(
        refused(&mut viewer, "update_project", json!({ "path": "/projects/atlas", "status": "paused" })).await.0,
        Code::Forbidden
    );
    assert_eq!(ok(&mut viewer, "search_projects", json!({})).await["total"], 1);
}
