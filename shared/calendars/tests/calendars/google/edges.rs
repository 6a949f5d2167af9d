//! Copies of files, changes during a sync, and events that are deleted with their occurrences.

use super::{change, connected, event, team};
use domain::Code;
use serde_json::{Value, json};

/// An event of a whole day in June.
fn day(number: u32) -> Value {
    json!({
        "iCalUID": format!("{number}@google.com"), "summary": format!("Day {number}"), "status": "confirmed",
        "start": { "date": format!("2026-06-0{number}") }, "end": { "date": format!("2026-06-0{}", number + 1) },
    })
}

#[tokio::test]
async fn a_copy_of_a_file_takes_no_event_over() {
    let (desk, shared) = connected().await;
    shared.lock().store("team", team());
    desk.sync().await;
    let file = desk.with("title: Team").await;
    let text = desk.read(&file).await;
    // Its name comes first.
    desk.put("calendar/a-copy.md", &text.replace("title: Team", "title: Another")).await;
    let copied = desk.sync().await;
    assert_eq!(copied["there"], json!({ "made": 0, "changed": 0, "removed": 0 }), "{copied}");
    assert!(copied["problems"].to_string().contains("a-copy.md are the same event"), "{copied}");
    assert_eq!(event(&shared, "team")["summary"], "Team");

    desk.put(&file, &text.replace("title: Team", "title: Team meeting")).await;
    assert_eq!(desk.sync().await["there"]["changed"], 1);
    assert_eq!(event(&shared, "team")["summary"], "Team meeting");
}

#[tokio::test]
async fn a_change_during_a_sync_wins_over_a_deletion() {
    let (desk, shared) = connected().await;
    for number in 1..=2 {
        shared.lock().store(&format!("day{number}"), day(number));
    }
    desk.sync().await;
    let (first, second) = (desk.with("title: Day 1").await, desk.with("title: Day 2").await);
    desk.put(&first, &desk.read(&first).await.replace("title: Day 1", "title: Day one")).await;
    let changed = desk.read(&second).await.replace("title: Day 2", "title: Day two");
    {
        let mut stub = shared.lock();
        stub.store("day2", json!({ "status": "cancelled" }));
        // The sync has looked at the files by now, and writes the first event.
        stub.meanwhile = Some(Box::pin(desk.putting(&second, &changed)));
    }
    let synced = desk.sync().await;
    assert_eq!((&synced["here"]["removed"], &synced["there"]["made"]), (&json!(0), &json!(1)), "{synced}");
    assert!(desk.read(&second).await.contains("title: Day two"));
    let stub = shared.lock();
    assert!(stub.events.values().any(|(_, event)| event["summary"] == "Day two"), "{:?}", stub.events);
}

#[tokio::test]
async fn moved_occurrences_are_deleted_with_their_event() {
    for is_told in [true, false] {
        let (desk, shared) = connected().await;
        shared.lock().store("team", team());
        change(&shared, "team_20260330T070000Z", "summary", "Team, late".into());
        // The events from some day on are an event of their own, whose id begins with that of the event before.
        shared.lock().store("team_R20260601T070000", day(1));
        assert_eq!(desk.sync().await["here"]["made"], 3);
        {
            let mut stub = shared.lock();
            stub.store("team", json!({ "status": "cancelled" }));
            if is_told {
                let at = json!({ "dateTime": "2026-03-30T09:00:00+02:00", "timeZone": "Europe/Berlin" });
                let gone = json!({ "status": "cancelled", "recurringEventId": "team", "originalStartTime": at });
                stub.store("team_20260330T070000Z", gone);
            }
        }
        let synced = desk.sync().await;
        assert_eq!(synced["here"]["removed"], 2, "{synced}");
        assert_eq!(desk.events().await.len(), 1);
        desk.settled().await;
    }
}

#[tokio::test]
async fn an_answer_that_is_no_list_or_has_no_end_removes_nothing_here() {
    let (desk, shared) = connected().await;
    shared.lock().store("day1", day(1));
    desk.sync().await;
    let page = |next: usize| json!({ "items": [], "nextPageToken": next.to_string() });
    let endless = (0..1_000).map(|at| page(at % 2)).collect();
    for answers in [vec![json!({})], vec![json!([])], vec![page(1), page(1)], endless] {
        {
            let mut stub = shared.lock();
            // The calendar is looked at as a whole then.
            (stub.forgotten, stub.answers) = (stub.change + 1, answers);
        }
        let error = desk.sync_at(&desk.home("calendars/work.yaml")).await.unwrap_err();
        assert_eq!(error.code, Code::Unprocessable, "{error}");
        assert_eq!(desk.events().await.len(), 1);
    }
    shared.lock().answers.clear();
    desk.settled().await;
}
