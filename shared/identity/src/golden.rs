//! Records of people, and their tokens and keys, in the format of every version.

use crate::{
    ApiKey, Member, Role, Scopes, Stream, error,
    key::Record as KeyRecord,
    limits::Window,
    members::{Owners, Record as MemberRecord},
    permission::Action,
    ticket::Claims,
    transfer::TransferClaims,
};
use domain::{ChatId, Sha256, TaskId, Timestamp, UserId, WorkspaceId};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, json};
use testkit::golden;
use uuid::Uuid;

const AT: Timestamp = Timestamp::from_millis(1_767_225_600_042);

const fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_0000_0000_0000 + number)
}

fn check<T: Serialize + DeserializeOwned>(shape: &str, values: &T) {
    golden::check(env!("CARGO_MANIFEST_DIR"), shape, values);
}

fn key() -> ApiKey {
    ApiKey {
        key_id: id(1),
        user_id: UserId(id(2)),
        name: "ci".into(),
        scopes: Scopes::of(Action::ALL),
        workspaces: Some([WorkspaceId(id(3))].into()),
        created_at: AT,
        expires_at: Some(AT),
        revoked_at: Some(AT),
    }
}

fn member(role: Role) -> MemberRecord {
    let member = Member {
        user_id: UserId(id(2)),
        role,
        subject: Some("ann@example.com".into()),
        added_by: UserId(id(4)),
        added_at: AT,
    };
    MemberRecord { workspace_id: WorkspaceId(id(3)), member, newer: Map::new() }
}

#[test]
fn records_of_people_stay_readable_for_ever() {
    check("api_keys", &KeyRecord { key: key(), secret_sha256: Sha256::of(b"secret"), newer: Map::new() });
    let roles = [Role::Viewer, Role::Member, Role::Editor, Role::Admin, Role::Owner];
    check("members", &roles.map(member));
    check("owners", &Owners { owners: [UserId(id(2))].into() });
    check("requests", &Window { seconds: vec![(1_767_225_600, 3), (1_767_225_601, 1)] });
    let claims = |stream| {
        let (workspace, user) = (WorkspaceId(id(3)), UserId(id(2)));
        Claims { workspace, stream, user, key: None, expires: AT.as_millis() }
    };
    check("tickets", &[claims(Stream::Chat(ChatId(id(5)))), claims(Stream::Task(TaskId(id(6))))]);
    let content = |writes| TransferClaims {
        workspace: WorkspaceId(id(3)),
        digest: Sha256::of(b"content"),
        writes,
        part: None,
        user: UserId(id(2)),
        expires: AT.as_millis(),
    };
    check("content_tickets", &[content(None), content(Some(5_000_000_000))]);
    check("part_tickets", &TransferClaims { part: Some((3, Sha256::of(b"part"))), ..content(Some(16_777_216)) });
}

/// A restriction of a newer version is not ignored, and its new fields are not lost.
#[test]
fn items_with_unknown_fields_are_left_alone() {
    let with_more = |mut value: serde_json::Value| {
        value["newer"] = json!("more");
        value
    };
    let key = KeyRecord { key: key(), secret_sha256: Sha256::of(b"secret"), newer: Map::new() };
    let key = serde_json::from_value::<KeyRecord>(with_more(json!(key))).map(|record| error::known(&record.newer));
    assert!(matches!(key, Ok(Err(_))));
    let member = serde_json::from_value::<MemberRecord>(with_more(json!(member(Role::Owner))));
    assert!(matches!(member.map(|record| error::known(&record.newer)), Ok(Err(_))));
    assert!(serde_json::from_value::<Owners>(with_more(json!(Owners::default()))).is_err());
    assert!(serde_json::from_value::<Window>(with_more(json!(Window::default()))).is_err());
}
