//! People of whom nothing is at hand but a schedule: their rights, which are those of their membership, and their calls of tools.

use async_trait::async_trait;
use domain::{CallId, Code, Error, Principal, UserId, WorkspaceId};
use identity::{Action, Caller, Members};
use serde_json::{Map, Value};
use std::sync::Arc;
use tools::{Call, Registry};
use workspace::{Access, Workspaces};

/// The roles of members decide.
#[derive(Clone)]
pub(crate) struct MemberRights(pub Members);

impl MemberRights {
    async fn role(&self, user: UserId, workspace: WorkspaceId) -> Result<Option<identity::Role>, Error> {
        let caller = match user == Principal::local().user() {
            true => Caller::machine(),
            false => Caller::account(user, String::new()),
        };
        self.0.role(&caller, workspace).await
    }
}

#[async_trait]
impl schedule::Rights for MemberRights {
    async fn check(&self, user: UserId, workspace: WorkspaceId, action: &schedule::Action) -> Result<(), Error> {
        let needs = match action {
            schedule::Action::Chat { .. } | schedule::Action::Message { .. } | schedule::Action::DailyBrief { .. } => {
                Action::Converse
            }
            schedule::Action::Task { .. } => Action::Run,
            schedule::Action::Tool { .. } => Action::Write,
        };
        match self.role(user, workspace).await? {
            Some(role) if role.may(needs) => Ok(()),
            Some(role) => Err(Error::new(
                Code::Forbidden,
                format!("the maker of this schedule is {}, without the right to {needs}", role.with_article()),
            )
            .hint("ask an admin of the workspace for another role, then resume it")),
            None => Err(Error::new(Code::Forbidden, "the maker of this schedule is no member of the workspace")
                .hint("another member can make a schedule of their own")),
        }
    }
}

/// The tools, as members with their roles.
pub(crate) struct MemberCalls {
    pub rights: MemberRights,
    pub tools: Arc<Registry>,
    pub workspaces: Workspaces,
}

#[async_trait]
impl schedule::ToolCalls for MemberCalls {
    async fn call(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        call: CallId,
        tool: &str,
        args: &Map<String, Value>,
        is_again: bool,
    ) -> Result<String, Error> {
        let role = self.rights.role(user, workspace).await?;
        let by = Principal::User { id: user };
        let opened = self.workspaces.open(workspace, Access::of(&by, role.map(api::as_policies_know))).await?;
        if is_again {
            self.tools.check_repeat(&opened, &[], tool).await?;
        }
        let may_run = role.is_some_and(|role| role.may(Action::Run));
        let call = Call { may_run, ..Call::outside(opened, call, by) };
        let outcome = self.tools.call(&call, tool, &Value::Object(args.clone()).to_string()).await;
        match outcome.error {
            Some(error) => Err(error),
            None => Ok(outcome.output),
        }
    }
}
