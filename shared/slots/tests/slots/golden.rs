//! Persisted data and messages of semaphores stay readable for ever: see docs/architecture/upgrading.md.

use actor::ActorId;
use buildscale_slots::{Ask, QueueLimit, SlotsCommand, SlotsEvent};
use domain::Timestamp;
use serde_json::json;
use testkit::golden;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn ask() -> Box<Ask> {
    Box::new(Ask {
        holder: "task/node/1".into(),
        wants: vec![("flow/review/abc".into(), 3), ("node/review/abc/write".into(), 1)],
        party: "workspace".into(),
        priority: 7,
        share: Some(3),
        to: ActorId::new("task", "workspace/task"),
        grant: json!({ "type": "wake" }),
        bound: Some(QueueLimit { waiting: 10_000, refusal: json!({ "type": "refuse" }) }),
    })
}

#[test]
fn commands_and_events_of_semaphores_are_read_for_ever() {
    let holder = || "task/node/1".to_owned();
    let commands = vec![
        SlotsCommand::Ask { ask: ask() },
        SlotsCommand::Give { holder: holder() },
        SlotsCommand::Release { party: "workspace".into() },
    ];
    golden::check(ROOT, "commands", &commands);
    let at = Timestamp::from_millis(1_767_225_600_042);
    let events = vec![
        SlotsEvent::Asked { ask: ask(), at },
        SlotsEvent::Granted { holder: holder() },
        SlotsEvent::Given { holder: holder() },
    ];
    golden::check(ROOT, "events", &events);
}
