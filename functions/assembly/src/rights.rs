//! The rights of people when nothing of theirs is at hand but a schedule: those of their membership.

use async_trait::async_trait;
use domain::{Code, Error, Principal, UserId, WorkspaceId};
use identity::{Action, Caller, Members};

/// The roles of members decide.
pub(crate) struct MemberRights(pub Members);

#[async_trait]
impl schedule::Rights for MemberRights {
    async fn check(&self, user: UserId, workspace: WorkspaceId, action: &schedule::Action) -> Result<(), Error> {
        let needs = match action {
            schedule::Action::Chat { .. } | schedule::Action::Message { .. } => Action::Converse,
            schedule::Action::Task { .. } => Action::Run,
        };
        let caller = match user == Principal::local().user() {
            true => Caller::machine(),
            false => Caller::account(user, String::new()),
        };
        match self.0.role(&caller, workspace).await? {
            Some(role) if role.may(needs) => Ok(()),
            Some(role) => Err(Error::new(
                Code::Forbidden,
                format!("the maker of this schedule is a {role}, without the right to {needs}"),
            )
            .hint("ask an admin of the workspace for another role, then resume it")),
            None => Err(Error::new(Code::Forbidden, "the maker of this schedule is no member of the workspace")
                .hint("another member can make a schedule of their own")),
        }
    }
}
