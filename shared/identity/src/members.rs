//! The members of a workspace, and their roles.
//!
//! A membership is one item under the workspace, found by person in the index: to ask for a role is one read by key, which sees every
//! change at once; only lists of one's workspaces may lag. The ids of the owners are one more item, which every change of an owner replaces
//! under its revision: so two owners who remove each other at once cannot leave a workspace without an owner.

use crate::{
    caller::Caller,
    error::{Result, damaged, json, known, port},
    permission::{Action, Role},
};
use domain::{Code, Error, Principal, Timestamp, UserId, WorkspaceId};
use ports::{Clock, Expect, Item, Key, Query, Table, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, sync::Arc};

/// How often a change is tried again when somebody else was faster.
const ATTEMPTS: usize = 8;

/// A member of a workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The user.
    pub user_id: UserId,
    /// Their role.
    pub role: Role,
    /// The name under which the issuer of tokens knows them, if it is not a UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The user who made them a member.
    pub added_by: UserId,
    /// The time of the addition.
    pub added_at: Timestamp,
}

/// A page of members.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemberPage {
    /// The members, by id.
    pub members: Vec<Member>,
    /// The cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A workspace that somebody is a member of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The role.
    pub role: Role,
    /// When it began.
    pub since: Timestamp,
}

/// A page of memberships.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembershipPage {
    /// The memberships, by the workspaces' ids.
    pub memberships: Vec<Membership>,
    /// The cursor of the next page.
    pub next_cursor: Option<String>,
}

/// The user that changes members, with their role in the workspace.
#[derive(Clone, Copy, Debug)]
pub struct ActingMember {
    /// The user.
    pub user: UserId,
    /// Their role.
    pub role: Role,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Record {
    pub workspace_id: WorkspaceId,
    #[serde(flatten)]
    pub member: Member,
    /// Fields of a newer version: a membership that has some is refused, because a change would lose them.
    #[serde(flatten)]
    pub newer: Map<String, Value>,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Owners {
    pub owners: BTreeSet<UserId>,
}

/// The members of all workspaces.
///
/// # Errors
/// Every operation can fail with `UPSTREAM_UNAVAILABLE` when the table does not answer, `STORAGE_FULL` when it has no room, and `INTERNAL`
/// for a membership that is damaged or of a newer version. A change can also fail with `CONFLICT` when others were faster at each of eight
/// attempts.
#[derive(Clone)]
pub struct Members {
    table: Arc<dyn Table>,
    clock: Arc<dyn Clock>,
}

impl Members {
    /// Kept in this table.
    pub fn new(table: Arc<dyn Table>, clock: Arc<dyn Clock>) -> Self {
        Self { table, clock }
    }

    /// The role of a caller in a workspace; none when they are no member, or when their credential is not for it. The machine's own person
    /// is an owner everywhere, and costs no read.
    ///
    /// # Errors
    /// Those of [`Members`].
    pub async fn role(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Option<Role>> {
        if !caller.reaches(workspace) {
            return Ok(None);
        }
        if caller.user == Principal::local().user() {
            return Ok(Some(Role::Owner));
        }
        Ok(self.find(workspace, caller.user).await?.map(|(record, _)| record.member.role))
    }

    /// Whether a workspace has owners of its own. One that BuildScale made for a user, such as for a case of an evaluation, has none, and
    /// belongs to that user.
    ///
    /// # Errors
    /// Those of [`Members`].
    pub async fn has_owners(&self, workspace: WorkspaceId) -> Result<bool> {
        Ok(self.table.get(&owners_place(workspace)).await.map_err(port)?.is_some())
    }

    /// The writes that make the maker of a new workspace its owner; none for the machine's own person, who is an owner everywhere. They belong into the commit that makes the
    /// workspace, on the condition that there is none: a membership without a workspace would be chosen for its person, and a workspace without an owner could not be reached.
    ///
    /// # Errors
    /// `INTERNAL` when the membership cannot be written as JSON.
    pub fn founding(&self, workspace: WorkspaceId, founder: &Caller) -> Result<Vec<Write>> {
        if founder.user == Principal::local().user() {
            return Ok(Vec::new());
        }
        let member = Member {
            user_id: founder.user,
            role: Role::Owner,
            subject: founder.subject.clone(),
            added_by: founder.user,
            added_at: self.clock.now(),
        };
        let owners = Owners { owners: [founder.user].into() };
        Ok(vec![put(workspace, member, Expect::Any)?, Write::put(owners_place(workspace), json(&owners)?, Expect::Any)])
    }

    /// One member.
    ///
    /// # Errors
    /// `NOT_FOUND` when they are no member; else those of [`Members`].
    pub async fn get(&self, workspace: WorkspaceId, user: UserId) -> Result<Member> {
        self.find(workspace, user)
            .await?
            .map(|(record, _)| record.member)
            .ok_or_else(|| Error::not_found("member", user))
    }

    /// The members of a workspace; `limit` is cut to 1 to 200.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another workspace; else those of [`Members`].
    pub async fn list(&self, workspace: WorkspaceId, limit: usize, cursor: Option<String>) -> Result<MemberPage> {
        let query = Query::all(partition(workspace), limit.clamp(1, 200)).after(cursor);
        let page = self.table.query(&query).await.map_err(ports::validate::of_page(&query, port))?;
        let members = page.items.iter().map(|item| Ok(record(item)?.member)).collect::<Result<_>>()?;
        Ok(MemberPage { members, next_cursor: page.next })
    }

    /// The workspaces that a person is a member of; `limit` is cut to 1 to 200. May lag behind a change that was just made.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another person; else those of [`Members`].
    pub async fn of(&self, user: UserId, limit: usize, cursor: Option<String>) -> Result<MembershipPage> {
        let query = Query::all(index(user), limit.clamp(1, 200)).after(cursor);
        let page = self.table.query_index(&query).await.map_err(ports::validate::of_page(&query, port))?;
        let membership = |item: &Item| {
            let record = record(item)?;
            let Member { role, added_at: since, .. } = record.member;
            Ok(Membership { workspace: record.workspace_id, role, since })
        };
        let memberships = page.items.iter().map(membership).collect::<Result<_>>()?;
        Ok(MembershipPage { memberships, next_cursor: page.next })
    }

    /// Makes somebody a member. Again with the same role changes nothing, and returns the member as they are.
    ///
    /// # Errors
    /// `FORBIDDEN` for a role above one's own, and for `by` who may not administer; `INVALID_ARGUMENT` for the machine's own person;
    /// `CONFLICT` when they are a member in another role; else those of [`Members`].
    pub async fn add(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        subject: Option<String>,
        role: Role,
        by: ActingMember,
    ) -> Result<Member> {
        may_give(by, role)?;
        if user == Principal::local().user() {
            return Err(Error::invalid("user_id", "the machine's own person is an owner everywhere"));
        }
        let member = Member { user_id: user, role, subject, added_by: by.user, added_at: self.clock.now() };
        let kept = self.change(workspace, user, |found| match found {
            Some(found) if found.role == role => Ok(Some(found.clone())),
            Some(found) => Err(Error::new(Code::Conflict, format!("this person is a member already: {}", found.role))
                .hint("change the role instead")),
            None => Ok(Some(member.clone())),
        });
        Ok(kept.await?.unwrap_or(member))
    }

    /// Gives a member another role.
    ///
    /// # Errors
    /// `NOT_FOUND` when they are no member; `FORBIDDEN` when the old or the new role is above one's own, or `by` may not administer;
    /// `CONFLICT` when no owner would be left; else those of [`Members`].
    pub async fn set_role(&self, workspace: WorkspaceId, user: UserId, role: Role, by: ActingMember) -> Result<Member> {
        may_give(by, role)?;
        let changed = self.change(workspace, user, |found| {
            let found = found.ok_or_else(|| Error::not_found("member", user))?;
            may_take(by, found)?;
            Ok(Some(Member { role, ..found.clone() }))
        });
        changed.await?.ok_or_else(|| Error::not_found("member", user))
    }

    /// Ends a membership: somebody else's, or one's own.
    ///
    /// # Errors
    /// `NOT_FOUND` when they are no member; `FORBIDDEN` for somebody else with a role above one's own, or when `by` may not administer;
    /// `CONFLICT` when no owner would be left; else those of [`Members`].
    pub async fn remove(&self, workspace: WorkspaceId, user: UserId, by: ActingMember) -> Result<()> {
        let removed = self.change(workspace, user, |found| {
            let found = found.ok_or_else(|| Error::not_found("member", user))?;
            if by.user != user {
                may_take(by, found)?;
            }
            Ok(None)
        });
        removed.await.map(drop)
    }

    /// Replaces a membership by the result of `decide`, together with the owners when those change.
    async fn change(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        decide: impl Fn(Option<&Member>) -> Result<Option<Member>>,
    ) -> Result<Option<Member>> {
        for _ in 0..ATTEMPTS {
            let found = self.find(workspace, user).await?;
            let before = found.as_ref().map(|(record, _)| &record.member);
            let after = decide(before)?;
            if before == after.as_ref() {
                return Ok(after);
            }
            let expect = found.as_ref().map_or(Expect::Absent, |(_, rev)| Expect::Rev(*rev));
            let mut writes = vec![match &after {
                Some(member) => put(workspace, member.clone(), expect)?,
                None => Write::delete(place(workspace, user), expect),
            }];
            let is_owner = |member: Option<&Member>| member.is_some_and(|member| member.role == Role::Owner);
            if is_owner(before) != is_owner(after.as_ref()) {
                writes.push(self.with_owner(workspace, user, is_owner(after.as_ref())).await?);
            }
            match self.table.commit(writes).await {
                Ok(()) => return Ok(after),
                Err(ports::Error::Conflict { .. }) => {}
                Err(error) => return Err(port(error)),
            }
        }
        Err(Error::new(Code::Conflict, "others change the members of this workspace again and again").hint("try again"))
    }

    /// The write that adds a person to the owners, or removes them: `CONFLICT` when no owner would be left.
    async fn with_owner(&self, workspace: WorkspaceId, user: UserId, is_one: bool) -> Result<Write> {
        let item = self.table.get(&owners_place(workspace)).await.map_err(port)?;
        let expect = item.as_ref().map_or(Expect::Absent, |item| Expect::Rev(item.rev));
        let mut owners: Owners = match item {
            Some(item) => serde_json::from_str(&item.body).map_err(damaged)?,
            None => Owners::default(),
        };
        if is_one {
            owners.owners.insert(user);
        } else {
            owners.owners.remove(&user);
        }
        if owners.owners.is_empty() {
            return Err(Error::new(Code::Conflict, "this is the last owner, and a workspace has one")
                .hint("make somebody else an owner first, or delete the workspace"));
        }
        Ok(Write::put(owners_place(workspace), json(&owners)?, expect))
    }

    async fn find(&self, workspace: WorkspaceId, user: UserId) -> Result<Option<(Record, u64)>> {
        let item = self.table.get(&place(workspace, user)).await.map_err(port)?;
        item.map(|item| Ok((record(&item)?, item.rev))).transpose()
    }
}

impl ActingMember {
    /// Of this caller, with this role.
    pub fn of(caller: &Caller, role: Role) -> Self {
        Self { user: caller.user, role }
    }
}

/// A member cannot give a role above their own; only owners make owners.
fn may_give(by: ActingMember, role: Role) -> Result<()> {
    if by.role.may(Action::Administer) && role <= by.role {
        return Ok(());
    }
    let hint = if role == Role::Owner { "an owner can" } else { "an admin or an owner can" };
    Err(Error::new(Code::Forbidden, format!("{} cannot give the role {role}", by.role.with_article())).hint(hint))
}

/// A member cannot change or remove members with a role above their own.
fn may_take(by: ActingMember, member: &Member) -> Result<()> {
    if by.role.may(Action::Administer) && member.role <= by.role {
        return Ok(());
    }
    Err(Error::new(Code::Forbidden, format!("{} changes no {}", by.role.with_article(), member.role))
        .hint("an owner can"))
}

/// The deletion of a workspace clears this partition and that of the owners.
fn partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/members")
}

fn place(workspace: WorkspaceId, user: UserId) -> Key {
    Key::new(partition(workspace), user.to_string())
}

fn owners_place(workspace: WorkspaceId) -> Key {
    Key::new(format!("{workspace}/owners"), "owners")
}

fn index(user: UserId) -> String {
    format!("member/{user}")
}

fn put(workspace: WorkspaceId, member: Member, expect: Expect) -> Result<Write> {
    let under = Key::new(index(member.user_id), workspace.to_string());
    let place = place(workspace, member.user_id);
    Ok(Write::put(place, json(&Record { workspace_id: workspace, member, newer: Map::new() })?, expect).indexed(under))
}

fn record(item: &Item) -> Result<Record> {
    let record: Record = serde_json::from_str(&item.body).map_err(damaged)?;
    known(&record.newer)?;
    Ok(record)
}
