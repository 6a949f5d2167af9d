//! Standing rules: calls that a person with the right to approve allows in all chats of a workspace, or in their own chats of it.
//!
//! A chat asks as it always does, and the rule answers in the place of people, as they would: with a decision. So no chat depends on rules
//! elsewhere, a rule that is revoked counts no more from then on, and a rule that is not found in time leaves the question to people. A rule
//! covers the very calls that the request offers a rule for, in the same folder: it is never wider than what was shown.

use crate::{
    chats::{Chats, internal},
    decide::{Decision, RuleScope},
    machine::ChatMachine,
    phase::Phase,
    state::ChatState,
};
use actor::{ActorId, Entry, EntryObserver};
use async_trait::async_trait;
use domain::{
    ChatConfig, ChatEvent, ChatId, Code, CommandId, Error, PermissionId, PermissionRule, Principal, Sha256, Timestamp,
    UserId, WorkspaceId, event::PermissionOutcome,
};
use ports::{Expect, Key, Query, Write};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How many rules a workspace lists, and so has.
const MOST: usize = 500;

/// A rule of a workspace, or of a person in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StandingRule {
    /// Its id: the same for the same rule in the same folder.
    pub rule_id: String,
    /// How far it goes.
    pub scope: RuleScope,
    /// The rule.
    pub rule: PermissionRule,
    /// The folder of the machine that its paths are in, where it is of a coding agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The person who granted it.
    pub by: UserId,
    /// When it was granted.
    pub at: Timestamp,
}

impl StandingRule {
    fn id(rule: &PermissionRule, cwd: Option<&str>) -> String {
        let text = serde_json::json!([rule, cwd]).to_string();
        Sha256::of(text.as_bytes()).to_string().chars().take(16).collect()
    }

    fn key(workspace: WorkspaceId, scope: RuleScope, by: UserId, id: &str) -> Key {
        let place = match scope {
            RuleScope::Person => format!("person/{by}/{id}"),
            RuleScope::Workspace | RuleScope::Chat => format!("workspace/{id}"),
        };
        Key::new(format!("{workspace}/rules"), place)
    }
}

fn cwd_of(config: &ChatConfig) -> Option<&str> {
    config.thread.as_deref().map(|thread| thread.cwd.as_str())
}

impl Chats {
    /// The standing rules of a workspace, with those of this person, in no certain order.
    ///
    /// # Errors
    /// Those of [`Chats`].
    pub async fn standing_rules(&self, workspace: WorkspaceId, by: UserId) -> Result<Vec<StandingRule>, Error> {
        let page = self.table.query(&Query::all(format!("{workspace}/rules"), MOST)).await.map_err(internal)?;
        let rules = page.items.iter().filter_map(|item| serde_json::from_str::<StandingRule>(&item.body).ok());
        Ok(rules.filter(|rule| rule.scope == RuleScope::Workspace || rule.by == by).collect())
    }

    /// Revokes a standing rule: of the workspace, or of this person. The caller has seen to it that `by` may approve.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such rule; those of [`Chats`].
    pub async fn revoke_standing(&self, workspace: WorkspaceId, id: &str, by: UserId) -> Result<(), Error> {
        let all = self.standing_rules(workspace, by).await?;
        let keys = all.iter().filter(|rule| rule.rule_id == id);
        let writes: Vec<Write> = keys
            .map(|rule| Write::delete(StandingRule::key(workspace, rule.scope, rule.by, id), Expect::Any))
            .collect();
        if writes.is_empty() {
            return Err(Error::not_found("rule", id).hint("GET the workspace's permissions lists its rules"));
        }
        self.table.commit(writes).await.map_err(internal)
    }

    /// Refuses a rule beyond what is listed: it could be neither seen nor revoked.
    pub(crate) async fn demand_room(&self, workspace: WorkspaceId) -> Result<(), Error> {
        let page = self.table.query(&Query::all(format!("{workspace}/rules"), MOST)).await.map_err(internal)?;
        match page.next.is_none() && page.items.len() < MOST {
            true => Ok(()),
            false => Err(Error::new(Code::Conflict, format!("a workspace has {MOST} rules at most"))
                .hint("revoke those that are not needed, or grant the rule for this chat alone")),
        }
    }

    /// Grants the rule that a request offered beyond its chat.
    pub(crate) async fn grant_standing(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        (rule, scope): (PermissionRule, RuleScope),
        by: UserId,
    ) -> Result<(), Error> {
        let made = self.made(workspace, chat).await?;
        let cwd = made.as_deref().and_then(cwd_of).map(ToOwned::to_owned);
        let rule_id = StandingRule::id(&rule, cwd.as_deref());
        let key = StandingRule::key(workspace, scope, by, &rule_id);
        let granted = StandingRule { rule_id, scope, rule, cwd, by, at: self.clock.now() };
        let body = serde_json::to_string(&granted).map_err(internal)?;
        self.table.commit(vec![Write::put(key, body, Expect::Any)]).await.map_err(internal)
    }
}

/// Answers the requests of chats by standing rules, and passes all on.
pub struct Standing {
    chats: Chats,
    next: Arc<dyn EntryObserver<ChatMachine>>,
}

impl Standing {
    /// Before `next`.
    pub fn new(chats: Chats, next: Arc<dyn EntryObserver<ChatMachine>>) -> Self {
        Self { chats, next }
    }

    /// The request that is open in a turn whose rules count, and the rule that it offers.
    fn open(state: &ChatState) -> Option<(&ChatConfig, PermissionId, &PermissionRule)> {
        let turn = state.turn.as_ref().filter(|turn| turn.may_approve)?;
        match &turn.phase {
            Phase::Permission { permission_id, asked, .. } => match &**asked {
                ChatEvent::PermissionRequired { always: Some(rule), .. } => {
                    Some((state.config.as_deref()?, *permission_id, rule))
                }
                _ => None,
            },
            _ => None,
        }
    }

    async fn answer(&self, state: &ChatState) -> Result<(), Error> {
        let Some((config, permission_id, rule)) = Self::open(state) else { return Ok(()) };
        let id = StandingRule::id(rule, cwd_of(config));
        for scope in [RuleScope::Workspace, RuleScope::Person] {
            let key = StandingRule::key(config.workspace, scope, config.user, &id);
            let Some(item) = self.chats.table.get(&key).await.map_err(internal)? else { continue };
            let granted: StandingRule = serde_json::from_str(&item.body).map_err(internal)?;
            let decision = Decision::new(permission_id, PermissionOutcome::Approved);
            let by = Principal::User { id: granted.by };
            let command = CommandId::from_key("standing", &permission_id.to_string());
            return self.chats.send_decision(config.workspace, config.chat, command, decision, &by).await;
        }
        Ok(())
    }
}

#[async_trait]
impl EntryObserver<ChatMachine> for Standing {
    async fn loaded(&self, actor: &ActorId, state: &ChatState) {
        self.next.loaded(actor, state).await;
    }

    async fn committed(&self, actor: &ActorId, state: &ChatState, entry: &Entry<ChatEvent>) {
        self.next.committed(actor, state, entry).await;
        let asks = entry.events.iter().any(|event| matches!(event, ChatEvent::PermissionRequired { .. }));
        if asks && let Err(error) = self.answer(state).await {
            tracing::warn!(%actor, %error, "a rule was not looked for: people are asked");
        }
    }
}
