//! Standing rules: calls that a person with the right to approve allows or denies in all chats of a workspace, or in their own chats of it.
//!
//! A chat asks as it always does, and the rule answers in the place of people, as they would: with a decision. So no chat depends on rules
//! elsewhere, a rule that is revoked counts no more from then on, and a rule that is not found in time leaves the question to people. A rule
//! covers the very calls that the request offers a rule for, in the same folder: it is never wider than what was shown. A rule that denies is looked
//! for first, in the turns of all people, and for each command in a line.
//!
//! A rule that denies also reaches calls that nobody is asked about. The machine reads nothing, so effects bring it the ids of these rules: once per
//! turn, with the first answer of the model that has a call which a rule can cover, and with the prompt of a coding agent. The log has the ids, so
//! that a replay judges the same. A turn without such calls reads nothing.

use crate::{
    agent,
    allow::{self, may_have_rule},
    chats::{Chats, internal},
    coding,
    decide::{Decision, RuleScope},
    machine::{AgentReport, ChatMachine, ModelAnswer, Report},
    mode,
    perform::ChatEffects,
    phase::Phase,
    state::ChatState,
    step::Step,
};
use actor::{ActorId, EffectContext, Entry, EntryObserver};
use async_trait::async_trait;
use domain::{
    CallId, ChatConfig, ChatEvent, ChatId, Code, CommandId, Error, FilePath, Message, MessageId, PermissionId,
    PermissionRule, Principal, Sha256, Timestamp, ToolCall, UserId, WorkspaceId, event::PermissionOutcome,
};
use ports::{AgentTurn, ErrorKind, Expect, Item, Key, Query, Table, Write};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tools::Registry;

/// How many rules a workspace has at most.
const MOST: usize = 500;
/// The length of a rule's id, in hexadecimal digits.
const ID: usize = 16;
/// How many rules are revoked together.
const REVOKED: usize = 50;
/// How much of a rule's words the reason of a no has, in characters: a reason has a thousand at most.
const REASON: usize = 900;
/// The pauses before the rules are read again: a table that stumbles for a moment ends no turn.
const PAUSES: [Duration; 3] = [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(1)];

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
        Sha256::of(text.as_bytes()).to_string().chars().take(ID).collect()
    }

    /// The answer to a request that it covers. With a no the agent reads which rule it is.
    pub(crate) fn decision(&self, permission: PermissionId) -> Decision {
        let Some(denied) = self.rule.denies() else {
            return Decision::new(permission, PermissionOutcome::Approved);
        };
        let whose = if self.scope == RuleScope::Person { "of this person" } else { "of the workspace" };
        let words: String = denied.to_string().chars().take(REASON).collect();
        let reason = Some(format!("the rule {} {whose} denies {words}", self.rule_id));
        Decision { reason, ..Decision::new(permission, PermissionOutcome::Declined) }
    }

    fn key(workspace: WorkspaceId, scope: RuleScope, by: UserId, id: &str) -> Key {
        let place = match scope {
            RuleScope::Person => format!("person/{by}/{id}"),
            RuleScope::Workspace | RuleScope::Chat => format!("workspace/{id}"),
        };
        Key::new(partition(workspace), place)
    }
}

/// The partition of the standing rules of a workspace.
pub(crate) fn partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/rules")
}

/// The rows of all standing rules of a workspace, from all pages. A page ends at 1 MiB, and two rules that are granted at once may be one more than there
/// is room for.
async fn rows(table: &dyn Table, workspace: WorkspaceId) -> ports::Result<Vec<Item>> {
    table.all(Query::all(partition(workspace), MOST)).await
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
        let rows = rows(&*self.table, workspace).await.map_err(internal)?;
        let rules = rows.iter().filter_map(|item| serde_json::from_str::<StandingRule>(&item.body).ok());
        Ok(rules.filter(|rule| rule.scope == RuleScope::Workspace || rule.by == by).collect())
    }

    /// Revokes a standing rule of the workspace, or of this person. A rule that cannot be read is revoked, too: it may deny. The caller has seen to it
    /// that `by` may approve.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such rule; those of [`Chats`].
    pub async fn revoke_standing(&self, workspace: WorkspaceId, id: &str, by: UserId) -> Result<(), Error> {
        let is_id = id.len() == ID && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut writes = Vec::new();
        for scope in [RuleScope::Workspace, RuleScope::Person].into_iter().filter(|_| is_id) {
            let key = StandingRule::key(workspace, scope, by, id);
            if self.table.get(&key).await.map_err(internal)?.is_some() {
                writes.push(Write::delete(key, Expect::Any));
            }
        }
        if writes.is_empty() {
            return Err(Error::not_found("rule", id).hint("GET the workspace's permissions lists its rules"));
        }
        self.table.commit(writes).await.map_err(internal)
    }

    /// Revokes all standing rules of a workspace that is being deleted, those of every person: none holds in one that is made under its id later.
    ///
    /// # Errors
    /// Those of [`Chats`]. Some rules may be revoked then, and a repetition revokes the rest.
    pub async fn revoke_all_standing(&self, workspace: WorkspaceId) -> Result<(), Error> {
        self.table.clear(&partition(workspace)).await.map_err(internal)
    }

    /// Revokes the rules of a person for their own chats of a workspace, which that person has left: nobody else sees them, or can revoke them.
    ///
    /// # Errors
    /// Those of [`Chats`]. Some rules may be revoked then, and a repetition revokes the rest.
    pub async fn revoke_standing_of(&self, workspace: WorkspaceId, person: UserId) -> Result<(), Error> {
        let rules = Query::prefix(partition(workspace), &format!("person/{person}/"), REVOKED);
        loop {
            let page = self.table.query(&rules).await.map_err(internal)?;
            let gone: Vec<Write> = page.items.into_iter().map(|item| Write::delete(item.key, Expect::Any)).collect();
            if gone.is_empty() {
                return Ok(());
            }
            self.table.commit(gone).await.map_err(internal)?;
        }
    }

    /// Refuses a rule for which there is no room. One that is there already takes its own place.
    async fn demand_room(&self, workspace: WorkspaceId, key: &Key) -> Result<(), Error> {
        let rows = rows(&*self.table, workspace).await.map_err(internal)?;
        match rows.len() < MOST || rows.iter().any(|item| item.key == *key) {
            true => Ok(()),
            false => Err(Error::new(Code::Conflict, format!("a workspace has {MOST} rules at most"))
                .hint("revoke those that are not needed, or grant the rule for this chat alone")),
        }
    }

    /// Grants the rule that a request offered beyond its chat, and gives it.
    ///
    /// # Errors
    /// `CONFLICT` when there is no room for it; those of [`Chats`].
    pub(crate) async fn grant_standing(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        (rule, scope): (PermissionRule, RuleScope),
        by: UserId,
    ) -> Result<StandingRule, Error> {
        let made = self.made(workspace, chat).await?;
        let cwd = made.as_deref().and_then(cwd_of).map(ToOwned::to_owned);
        let rule_id = StandingRule::id(&rule, cwd.as_deref());
        let key = StandingRule::key(workspace, scope, by, &rule_id);
        self.demand_room(workspace, &key).await?;
        let granted = StandingRule { rule_id, scope, rule, cwd, by, at: self.clock.now() };
        let body = serde_json::to_string(&granted).map_err(internal)?;
        self.table.commit(vec![Write::put(key, body, Expect::Any)]).await.map_err(internal)?;
        Ok(granted)
    }
}

/// The standing rules that deny in chats of a workspace that work for a person.
#[derive(Default)]
struct Denials {
    rule_ids: Vec<String>,
    /// The files of which they deny new contents.
    files: Vec<FilePath>,
}

/// Reads them.
async fn denials(table: &dyn Table, workspace: WorkspaceId, person: UserId) -> ports::Result<Denials> {
    let own = format!("person/{person}/");
    let mut pauses = PAUSES.into_iter();
    let rows = loop {
        match (rows(table, workspace).await, pauses.next()) {
            (Err(error), Some(pause)) if error.kind() == ErrorKind::Retry => {
                tracing::warn!(%workspace, error = %error.with_causes(), "the standing rules are read again");
                tokio::time::sleep(pause).await;
            }
            (rows, _) => break rows?,
        }
    };
    let mut read = Denials::default();
    for item in &rows {
        let id = item.key.sk.strip_prefix("workspace/").or_else(|| item.key.sk.strip_prefix(&own));
        let rule = serde_json::from_str::<StandingRule>(&item.body).ok();
        // A rule that cannot be read may deny. No id of a rule that allows is that of a denial.
        let Some(id) = id.filter(|_| rule.as_ref().is_none_or(|rule| rule.rule.denies().is_some())) else { continue };
        read.rule_ids.push(id.to_owned());
        if let Some(StandingRule { rule, cwd: None, .. }) = &rule
            && let Some(PermissionRule::File { path }) = rule.denies()
        {
            read.files.push(path.clone());
        }
    }
    Ok(read)
}

/// The end of a turn whose standing rules cannot be read.
fn unread(chat: ChatId, error: &ports::Error) -> Error {
    tracing::warn!(%chat, error = %error.with_causes(), "the standing rules could not be read: the turn ends");
    Error::new(Code::UpstreamUnavailable, "the rules of the workspace could not be read")
        .hint("no call has run without them: send the message again")
}

/// Whether a rule may be for this call.
fn can_be_covered(tools: &Registry, config: &ChatConfig, call: &ToolCall) -> bool {
    let effects = agent::effects(tools, config, call, &mode::default_plan(config));
    effects.is_ok_and(|effects| may_have_rule(effects.kind))
}

impl Step<'_> {
    /// The id of the standing rule that denies the calls of this rule, if the turn knows of one.
    pub(crate) fn standing_denial(&self, rule: &PermissionRule) -> Option<String> {
        let id = StandingRule::id(&rule.clone().denied(), cwd_of(self.config()?));
        self.turn()?.denied.contains(&id).then_some(id)
    }

    /// Whether the standing rules were read in this turn: with the first message of the model that has a call which they can cover.
    pub(crate) fn knows_denials(&self) -> bool {
        let Some(config) = self.config() else { return false };
        let messages = self.state().history.back().into_iter().flat_map(|turn| &turn.messages);
        let calls = messages.filter_map(|message| match &**message {
            Message::Assistant { calls, .. } => Some(calls),
            Message::User { .. } | Message::Tool { .. } | Message::System { .. } => None,
        });
        calls.flatten().any(|call| can_be_covered(&self.machine.tools, config, call))
    }
}

impl ChatEffects {
    /// Reads the standing rules before an answer with calls that they can cover, and reports those that deny. No call begins without them: the answer
    /// comes to nothing where they cannot be read.
    pub(crate) async fn with_denials(
        &self,
        report: Report,
        config: &ChatConfig,
        context: &EffectContext<ChatMachine>,
    ) -> Report {
        let Some(message_id) = self.message_that_rules_cover(&report, config) else { return report };
        match denials(&*self.mailbox.table, config.workspace, config.user).await {
            Ok(Denials { rule_ids, .. }) if rule_ids.is_empty() => report,
            Ok(Denials { rule_ids, files }) => {
                context.report(Report::Denies { message_id, rule_ids, files }).await;
                report
            }
            Err(error) => {
                if let Report::ModelFinished(answer) = report {
                    let ModelAnswer { usage, model, .. } = *answer;
                    context.report(Report::Spent { message_id, usage, model, estimated: false }).await;
                }
                Report::ModelFailed { message_id, error: unread(config.chat, &error), timed_out: false }
            }
        }
    }

    /// The message of an answer with a call that a rule can cover.
    fn message_that_rules_cover(&self, report: &Report, config: &ChatConfig) -> Option<MessageId> {
        let Report::ModelFinished(answer) = report else { return None };
        let call = |(tool, args): &(String, String)| ToolCall {
            call_id: CallId(answer.message_id.0),
            tool: tool.clone(),
            args: args.clone(),
        };
        let covers = answer.calls.iter().map(call).any(|call| can_be_covered(&self.tools, config, &call));
        covers.then_some(answer.message_id)
    }

    /// Reads the standing rules for the turn of a coding agent that works for this person, and reports those that deny.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when they cannot be read: the turn must not go on then.
    pub(crate) async fn tell_denials(
        &self,
        by: &Principal,
        (turn, leg): (AgentTurn, MessageId),
        context: &EffectContext<ChatMachine>,
    ) -> Result<(), Error> {
        let read = denials(&*self.mailbox.table, turn.workspace, by.user()).await;
        let Denials { rule_ids, .. } = read.map_err(|error| unread(turn.chat, &error))?;
        if !rule_ids.is_empty() {
            context.report(Report::Agent { leg, report: AgentReport::Denies(rule_ids) }).await;
        }
        Ok(())
    }
}

/// Answers the requests of chats by standing rules.
pub struct StandingRuleObserver(pub Chats);

impl StandingRuleObserver {
    /// The request that is open, and the rules that answer it in the place of people, those that deny first.
    fn open(state: &ChatState) -> Option<(PermissionId, Vec<PermissionRule>)> {
        let (config, turn) = (state.config.as_deref()?, state.turn.as_ref()?);
        let Phase::Permission { permission_id, asked, .. } = &turn.phase else { return None };
        let ChatEvent::PermissionRequired { category, tool, args, always, agent, .. } = &**asked else { return None };
        let mut denied = match agent {
            Some(_) => coding::rules_for(config, category, &serde_json::from_str(args).unwrap_or_default()),
            // The words of a client's own command are read by a shell elsewhere.
            None if category == "command" && agent::of_client(config, tool).is_none() => {
                allow::of_command(args, &turn.denied_files)
            }
            None => Vec::new(),
        };
        if let Some(rule) = always.as_ref().filter(|rule| !denied.contains(rule)) {
            denied.push(rule.clone());
        }
        let allows = always.iter().filter(|_| turn.may_approve).cloned();
        Some((*permission_id, denied.into_iter().map(PermissionRule::denied).chain(allows).collect()))
    }

    async fn answer(&self, state: &ChatState) -> Result<(), Error> {
        let (Some(config), Some((permission_id, rules))) = (&state.config, Self::open(state)) else {
            return Ok(());
        };
        if rules.is_empty() {
            return Ok(());
        }
        let denied = denials(&*self.0.table, config.workspace, config.user).await.map_err(internal)?.rule_ids;
        for rule in rules {
            let id = StandingRule::id(&rule, cwd_of(config));
            if rule.denies().is_some() && !denied.contains(&id) {
                continue;
            }
            for scope in [RuleScope::Workspace, RuleScope::Person] {
                let key = StandingRule::key(config.workspace, scope, config.user, &id);
                let Some(item) = self.0.table.get(&key).await.map_err(internal)? else { continue };
                let granted: StandingRule = serde_json::from_str(&item.body).map_err(internal)?;
                let (decision, by) = (granted.decision(permission_id), Principal::User { id: granted.by });
                let command = CommandId::from_key("standing", &permission_id.to_string());
                return self.0.send_decision(config.workspace, config.chat, command, decision, &by).await;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl EntryObserver<ChatMachine> for StandingRuleObserver {
    async fn committed(&self, actor: &ActorId, state: &ChatState, entry: &Entry<ChatEvent>) {
        let asks = entry.events.iter().any(|event| matches!(event, ChatEvent::PermissionRequired { .. }));
        if asks && let Err(error) = self.answer(state).await {
            tracing::warn!(%actor, %error, "a rule was not looked for: people are asked");
        }
    }
}
