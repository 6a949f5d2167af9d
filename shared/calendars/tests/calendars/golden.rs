//! The state of a connected calendar, as every version wrote it.

use buildscale_calendars::state::{Conflict, Failed, KnownEvent, KnownObject, SyncState};
use domain::{FileId, FilePath, Sha256, Timestamp};
use organizer::FieldGroup;
use testkit::golden;
use uuid::Uuid;

#[test]
fn states_are_read_for_ever() {
    let at = Timestamp::from_millis(1_800_000_000_000);
    let event = KnownEvent {
        file: FileId(Uuid::from_u128(1)),
        sha256: Some(Sha256::of(b"x")),
        values: FieldGroup::ALL.into_iter().map(|group| (group, "0123456789ab".to_owned())).collect(),
    };
    let known = KnownObject { etag: "\"1\"".into(), uid: "a@b".into(), events: [(String::new(), event)].into() };
    let mut state = SyncState::new("caldav https://dav.example.org/ ada  home".into());
    state.token = Some("sync/1".into());
    state.synced_at = Some(at);
    state.failed = Some(Failed { at, why: "the calendar server fails (503)".into() });
    state.problems = vec!["others changed events meanwhile".into()];
    let path = FilePath::parse("/users/1/calendar/a.md").unwrap_or_else(|_| FilePath::root());
    state.add([Conflict { at, path, v: 3, what: "title changed on both sides".into() }]);
    state.objects.insert("/ada/work/a.ics".into(), known);
    golden::check(env!("CARGO_MANIFEST_DIR"), "calendar_state", &state);
    let text = serde_json::to_string(&state).unwrap_or_default();
    assert_eq!(SyncState::read(&text, state.calendar.clone()), state);
    assert_eq!(SyncState::read(&text, "another".into()), SyncState::new("another".into()));
}
