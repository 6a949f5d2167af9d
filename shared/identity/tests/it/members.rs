//! Members: the rights to give and take roles, and that a workspace keeps an owner under any concurrent changes.

use buildscale_identity::{ActingMember, Caller, Members, Role};
use domain::{Code, UserId, WorkspaceId};
use ports::Table;
use std::sync::Arc;
use testkit::{
    TestClock,
    fakes::{FakeTable, Faults},
};
use uuid::Uuid;

const SPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(100));
const OTHER: WorkspaceId = WorkspaceId(Uuid::from_u128(101));

fn user(n: u128) -> UserId {
    UserId(Uuid::from_u128(n))
}

fn caller(n: u128) -> Caller {
    Caller::account(user(n), format!("user {n}"))
}

fn acting(n: u128, role: Role) -> ActingMember {
    ActingMember { user: user(n), role }
}

/// The members of all workspaces, of which one is made by the first person.
async fn founded(seed: u64, faults: Faults) -> Members {
    let clock = Arc::new(TestClock::new(seed));
    let table = Arc::new(FakeTable::new(clock.clone(), seed, faults));
    let members = Members::new(table.clone(), clock);
    table.commit(members.founding(SPACE, &caller(1)).unwrap()).await.unwrap();
    members
}

#[tokio::test(start_paused = true)]
async fn the_maker_of_a_workspace_owns_it_and_others_are_nothing_in_it() {
    let members = founded(1, Faults::none()).await;
    assert_eq!(members.founding(SPACE, &Caller::machine()).unwrap(), [], "the machine's own person is no member");
    assert_eq!(members.role(&caller(1), SPACE).await.unwrap(), Some(Role::Owner));
    assert_eq!(members.role(&caller(1), OTHER).await.unwrap(), None);
    assert_eq!(members.role(&caller(2), SPACE).await.unwrap(), None);
    assert_eq!(members.role(&Caller::machine(), OTHER).await.unwrap(), Some(Role::Owner));
    let elsewhere = Caller { workspaces: Some([OTHER].into()), ..caller(1) };
    assert_eq!(members.role(&elsewhere, SPACE).await.unwrap(), None, "the credential is for another workspace");
    let of = members.of(user(1), 10, None).await.unwrap().memberships;
    assert_eq!(of.iter().map(|one| (one.workspace, one.role)).collect::<Vec<_>>(), [(SPACE, Role::Owner)]);
}

#[tokio::test(start_paused = true)]
async fn a_member_cannot_give_or_take_more_than_they_have() {
    let members = founded(2, Faults::none()).await;
    let owner = acting(1, Role::Owner);
    for (n, role) in [(2, Role::Admin), (3, Role::Editor), (4, Role::Member), (5, Role::Viewer)] {
        members.add(SPACE, user(n), None, role, owner).await.unwrap();
    }
    for (by, role) in [(2, Role::Admin), (3, Role::Editor), (4, Role::Member), (5, Role::Viewer)] {
        for given in Role::ALL {
            let may = role == Role::Admin && given <= Role::Admin;
            let result = members.add(SPACE, user(10), None, given, acting(by, role)).await;
            assert_eq!(result.is_ok(), may, "a {role} makes somebody {given}");
            if may {
                members.remove(SPACE, user(10), acting(by, role)).await.unwrap();
            }
        }
        let demoted = members.set_role(SPACE, user(1), Role::Viewer, acting(by, role)).await;
        let refused = demoted.unwrap_err();
        let why = match role {
            Role::Admin => "an admin changes no owner",
            Role::Editor => "an editor cannot give the role viewer",
            Role::Member => "a member cannot give the role viewer",
            _ => "a viewer cannot give the role viewer",
        };
        assert_eq!((refused.code, refused.message.as_str()), (Code::Forbidden, why));
        let removed = members.remove(SPACE, user(1), acting(by, role)).await;
        assert_eq!(removed.unwrap_err().code, Code::Forbidden);
    }
    let again = members.add(SPACE, user(3), None, Role::Viewer, owner).await.unwrap_err();
    assert_eq!(again.code, Code::Conflict, "a role is changed, not given twice");
    assert_eq!(members.set_role(SPACE, user(9), Role::Viewer, owner).await.unwrap_err().code, Code::NotFound);
    members.remove(SPACE, user(5), acting(5, Role::Viewer)).await.unwrap();
    assert_eq!(members.role(&caller(5), SPACE).await.unwrap(), None, "everybody may leave");
    let page = members.list(SPACE, 2, None).await.unwrap();
    assert_eq!((page.members.len(), page.next_cursor.is_some()), (2, true));
}

#[tokio::test(start_paused = true)]
async fn the_last_owner_stays_also_when_two_remove_each_other_at_once() {
    for seed in 0..50 {
        let members = founded(seed, Faults { yields: 0.7, ..Faults::none() }).await;
        members.add(SPACE, user(2), None, Role::Owner, acting(1, Role::Owner)).await.unwrap();
        let (one, other) = (members.clone(), members.clone());
        let removed = futures::future::join(
            async move { one.remove(SPACE, user(2), acting(1, Role::Owner)).await },
            async move { other.set_role(SPACE, user(1), Role::Viewer, acting(2, Role::Owner)).await },
        )
        .await;
        let (removed, demoted) = (removed.0.is_ok(), removed.1.is_ok());
        assert!(removed != demoted, "seed {seed}: exactly one of them wins");
        let owners = members.list(SPACE, 10, None).await.unwrap().members;
        assert_eq!(owners.iter().filter(|member| member.role == Role::Owner).count(), 1, "seed {seed}");
    }
    let members = founded(0, Faults::none()).await;
    let refused = members.remove(SPACE, user(1), acting(1, Role::Owner)).await.unwrap_err();
    assert_eq!(refused.code, Code::Conflict);
}

#[tokio::test(start_paused = true)]
async fn a_member_who_is_added_again_is_returned_as_they_are() {
    let members = founded(3, Faults::none()).await;
    let first = members.add(SPACE, user(2), Some("Ada".into()), Role::Admin, acting(1, Role::Owner)).await.unwrap();
    let again = members.add(SPACE, user(2), Some("Bob".into()), Role::Admin, acting(2, Role::Admin)).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(members.get(SPACE, user(2)).await.unwrap(), first);
}
