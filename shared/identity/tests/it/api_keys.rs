//! API keys: made once, kept as a digest, scoped, and void when they are taken back.

use buildscale_identity::{Action, ApiKeys, CredentialKind, NewKey, Scopes};
use domain::{Code, UserId, WorkspaceId};
use ports::Clock;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use testkit::{
    TestClock,
    fakes::{FakeTable, Faults},
};
use uuid::Uuid;

fn rig() -> (ApiKeys, Arc<FakeTable>, Arc<TestClock>) {
    let clock = Arc::new(TestClock::new(3));
    let table = Arc::new(FakeTable::new(clock.clone(), 3, Faults::none()));
    (ApiKeys::new(table.clone(), clock.clone()), table, clock)
}

fn new(name: &str) -> NewKey {
    NewKey { name: name.into(), scopes: Scopes::of([Action::Read]), workspaces: None, expires_at: None }
}

const ANN: UserId = UserId(Uuid::from_u128(1));
const BOB: UserId = UserId(Uuid::from_u128(2));

#[tokio::test(start_paused = true)]
async fn a_key_calls_for_its_person_with_its_scopes_and_its_secret_is_kept_nowhere() {
    let (keys, table, _) = rig();
    let workspace = WorkspaceId(Uuid::from_u128(7));
    let listed = NewKey { workspaces: Some([workspace].into()), ..new("CI") };
    let (key, text) = keys.create(ANN, listed).await.unwrap();
    let caller = keys.verify(&text).await.unwrap();
    assert_eq!((caller.user, caller.means), (ANN, CredentialKind::Key(key.key_id)));
    assert!(caller.scopes.has(Action::Read) && !caller.scopes.has(Action::Write));
    assert!(caller.reaches(workspace) && !caller.reaches(WorkspaceId(Uuid::from_u128(8))));
    assert!(!caller.is_in_person());
    let secret = text.splitn(3, '_').nth(2).unwrap();
    assert_eq!(secret.len(), 43);
    let kept = format!("{:?}", table.items());
    assert!(!kept.contains(secret) && kept.contains("secret_sha256"));
    assert_eq!(keys.list(ANN, 10, None).await.unwrap().keys, [key]);
    assert_eq!(keys.list(BOB, 10, None).await.unwrap().keys, []);
}

#[tokio::test(start_paused = true)]
async fn wrong_revoked_and_expired_keys_are_refused_in_the_same_words() {
    let (keys, _, clock) = rig();
    let (one, text) = keys.create(ANN, new("one")).await.unwrap();
    let (_, other) = keys.create(ANN, new("other")).await.unwrap();
    let soon = NewKey { expires_at: Some(clock.now() + Duration::from_secs(60)), ..new("soon") };
    let (_, expiring) = keys.create(ANN, soon).await.unwrap();
    assert!(keys.verify(&expiring).await.is_ok());
    tokio::time::advance(Duration::from_secs(60)).await;

    assert_eq!(keys.revoke(BOB, one.key_id).await.unwrap_err().code, Code::NotFound);
    assert!(keys.verify(&text).await.is_ok());
    let revoked = keys.revoke(ANN, one.key_id).await.unwrap();
    assert!(revoked.revoked_at.is_some());
    assert_eq!(keys.revoke(ANN, one.key_id).await.unwrap(), revoked, "again is harmless");

    let (other_id, other_secret) = other.rsplit_once('_').filter(|(id, _)| id.len() == 36).unwrap_or_else(|| {
        let id = 4 + 32;
        (&other[..id], &other[id + 1..])
    });
    let bad = [
        text.clone(),
        expiring,
        format!("{other_id}_{}", &text[37..]),
        format!("bsk_{}_{other_secret}", Uuid::from_u128(5).simple()),
        format!("{other}x"),
        other_id.to_owned(),
        "bsk_".into(),
        "bsk_x_y".into(),
    ];
    for bad in bad {
        let refused = keys.verify(&bad).await.unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (Code::Unauthorized, "the API key is not valid"), "{bad}");
    }
    assert!(keys.verify(&other).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_key_says_what_it_is_for() {
    let (keys, _, clock) = rig();
    for (bad, field) in [
        (new(""), "name"),
        (new("a\nb"), "name"),
        (NewKey { scopes: Scopes::of([]), ..new("x") }, "scopes"),
        (NewKey { workspaces: Some([].into()), ..new("x") }, "workspaces"),
        (NewKey { expires_at: Some(clock.now()), ..new("x") }, "expires_at"),
    ] {
        let refused = keys.create(ANN, bad).await.unwrap_err();
        assert_eq!((refused.code, &refused.details["field"]), (Code::InvalidArgument, &field.into()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_void_goes_after_30_days_and_one_that_works_stays() {
    let (keys, table, clock) = rig();
    let day = Duration::from_secs(24 * 3600);
    let soon = NewKey { expires_at: Some(clock.now() + day), ..new("soon") };
    let (soon, _) = keys.create(ANN, soon).await.unwrap();
    let late = NewKey { expires_at: Some(clock.now() + 365 * day), ..new("late") };
    let (late, late_text) = keys.create(ANN, late).await.unwrap();
    let (revoked, _) = keys.create(ANN, new("revoked")).await.unwrap();
    let (stays, stays_text) = keys.create(ANN, new("stays")).await.unwrap();
    keys.revoke(ANN, revoked.key_id).await.unwrap();
    let names = async || {
        let page = keys.list(ANN, 10, None).await.unwrap();
        page.keys.into_iter().map(|key| key.name).collect::<BTreeSet<_>>()
    };
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();

    tokio::time::advance(30 * day - Duration::from_secs(60)).await;
    assert_eq!(names().await, of(&["soon", "late", "revoked", "stays"]));
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(names().await, of(&["soon", "late", "stays"]));
    assert_eq!(keys.revoke(ANN, revoked.key_id).await.unwrap_err().code, Code::NotFound);
    tokio::time::advance(day).await;
    assert_eq!(names().await, of(&["late", "stays"]));
    assert_eq!(keys.revoke(ANN, soon.key_id).await.unwrap_err().code, Code::NotFound);
    for text in [&late_text, &stays_text] {
        assert!(keys.verify(text).await.is_ok());
    }
    // One that is revoked before its end goes 30 days after that.
    keys.revoke(ANN, late.key_id).await.unwrap();
    tokio::time::advance(30 * day).await;
    assert_eq!(names().await, of(&["stays"]));
    assert_eq!(table.items().len(), 1);
    assert!(keys.revoke(ANN, stays.key_id).await.is_ok());
}
