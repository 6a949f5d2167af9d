//! Persisted data and messages of the runtime, in the format of every version. (Snapshots are in `versions.rs`.)

#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_actor::{Content, Entry, Envelope, HoldRequest, Parking, StopRequest, StopTarget};
use domain::{CommandId, Principal, StopId, Timestamp};
use ports::QueueMessage;
use serde_json::{Value, json};
use testkit::golden;
use uuid::Uuid;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const AT: Timestamp = Timestamp::from_millis(1_767_225_600_042);

const fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_0000_0000_0000 + number)
}

fn message() -> QueueMessage {
    QueueMessage { group: "task/w/t".into(), id: "1".into(), body: "{}".into(), deliver_at: Some(AT), priority: -3 }
}

#[test]
fn entries_are_read_for_ever() {
    let entry = |parking| Entry {
        first: 7,
        next: 9,
        at: AT,
        step: id(1),
        commands: vec![CommandId(id(2))],
        events: vec![json!({ "type": "chunk" }), json!({ "type": "done" })],
        outbox: vec![message()],
        parking,
    };
    let parked = Parking { parked: true, messages: vec![(CommandId(id(2)), "{}".into())] };
    golden::check(ROOT, "entries", &[None, Some(parked)].map(entry));
    // An entry may leave out empty fields.
    let least = json!({ "first": 1, "next": 2, "at": AT, "step": id(1) });
    assert_eq!(serde_json::from_value::<Entry<Value>>(least).unwrap().events, Vec::<Value>::new());
}

#[test]
fn mail_is_read_for_ever() {
    let envelope = |content| Envelope { id: CommandId(id(2)), at: AT, by: Principal::System, content };
    let contents =
        [Content::Command { body: json!({ "command": "delete" }) }, Content::Continue, Content::Unpark { drop: true }];
    golden::check(ROOT, "mail", &contents.map(envelope));
}

#[test]
fn requests_to_stop_and_to_hold_are_read_for_ever() {
    let request = |target| StopRequest { stop_id: StopId(id(3)), target, at: AT, reason: "user_cancelled".into() };
    golden::check(
        ROOT,
        "stops",
        &[StopTarget::This(id(4)), StopTarget::First, StopTarget::Everything, StopTarget::Tree].map(request).to_vec(),
    );
    let hold = HoldRequest { hold_id: id(5), path: vec![id(6), id(7)], at: AT };
    golden::check(ROOT, "holds", &[hold]);
    let newer = json!({ "stop_id": id(3), "target": "first", "at": AT, "reason": "", "only_tools": true });
    assert!(serde_json::from_value::<StopRequest>(newer).is_err(), "no part of a request is overlooked");
}
