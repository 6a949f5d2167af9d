//! Decisions of people on permissions: a yes or a no, each of which may grant a rule, and a no may have a reason. The API checks them, and so
//! does the chat itself, as the view at the API may be behind.

use crate::{
    chats::{Chats, internal},
    coding,
    keys::{actor_id, decided_key, permission_key, refused_key},
    state::PERMISSIONS_REMEMBERED,
    wait_reasons::{not_asked, waiting},
};
use domain::{
    AgentOption, ChatCommand, ChatId, Code, CommandId, Error, PermissionId, PermissionRule, Principal, Sha256,
    Timestamp, WorkspaceId, event::PermissionOutcome,
};
use ports::{Expect, Write};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// The longest reason, in characters.
const MAX_REASON: usize = 1_000;

/// How far a rule goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// The chat that asked. The code agent hub calls it a thread.
    #[default]
    #[serde(alias = "thread")]
    Chat,
    /// All chats of the workspace that work for the person.
    Person,
    /// All chats of the workspace.
    Workspace,
}

/// How long a decision that was accepted stands against another one, if the chat does not take it in.
const DECIDED_FOR: Duration = Duration::from_secs(60);

/// A decision that was accepted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptedDecision {
    command: CommandId,
    outcome: PermissionOutcome,
    always: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    option_id: Option<String>,
    at: Timestamp,
}

impl AcceptedDecision {
    fn says(&self, other: &Self) -> bool {
        let same = |one: &Self| (one.outcome, one.always, one.option_id.clone());
        self.command == other.command || same(self) == same(other)
    }
}

/// A decision on a permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The permission.
    pub permission_id: PermissionId,
    /// Yes or no.
    pub outcome: PermissionOutcome,
    /// Whether a rule is granted, too: with a yes the one that was offered, with a no the one that denies its calls.
    pub always: bool,
    /// With [`Decision::always`]: how far the rule goes.
    pub scope: RuleScope,
    /// The digest of the request that was decided on, where its reader names it: the decision counts for no other one.
    pub digest: Option<Sha256>,
    /// Why it is a no.
    pub reason: Option<String>,
    /// The option of the coding agent that asks; without it the agent's yes or no for this once.
    pub option_id: Option<String>,
}

impl Decision {
    /// A plain yes or no.
    pub fn new(permission_id: PermissionId, outcome: PermissionOutcome) -> Self {
        let (always, scope, digest, reason, option_id) = (false, RuleScope::Chat, None, None, None);
        Self { permission_id, outcome, always, scope, digest, reason, option_id }
    }

    /// Checks that its parts fit together.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.always && self.outcome == PermissionOutcome::Cancelled {
            return Err(Error::invalid("always", "a rule comes with a yes or a no, and this is neither")
                .hint("leave always out, or send the outcome approved or declined"));
        }
        if !self.always && self.scope != RuleScope::Chat {
            return Err(Error::invalid("scope", "a scope is that of a rule that is granted")
                .hint("leave it out, or send always beside the outcome"));
        }
        let Some(reason) = &self.reason else { return Ok(()) };
        if self.outcome != PermissionOutcome::Declined {
            return Err(Error::invalid("reason", "a reason is given with the outcome declined alone")
                .hint("leave the reason out, or post it as a message"));
        }
        if reason.trim().is_empty() {
            return Err(Error::invalid("reason", "the reason is empty").hint("leave it out, or say why"));
        }
        let length = reason.chars().count();
        if length > MAX_REASON {
            return Err(Error::invalid(
                "reason",
                format!("the reason has {length} characters; the limit is {MAX_REASON}"),
            )
            .hint("shorten it, or post it as a message"));
        }
        Ok(())
    }

    /// Checks that a rule which it grants was offered.
    pub(crate) fn check_offered(&self, is_offered: bool) -> Result<(), Error> {
        if is_offered || !self.always {
            return Ok(());
        }
        Err(Error::invalid("always", "the request offers no rule that could be granted")
            .hint("leave always out: this call can be decided on alone"))
    }

    /// Checks that a rule which it grants to the chat has a place among those that the chat has: a rule that denies makes none for it, unless it is
    /// for the same calls and goes.
    pub(crate) fn check_room(&self, known: &[PermissionRule], offered: Option<&PermissionRule>) -> Result<(), Error> {
        let is_full = known.len() >= PERMISSIONS_REMEMBERED && known.iter().all(|rule| rule.denies().is_some());
        let replaces = || known.iter().any(|rule| rule.denies() == offered);
        if !self.grants_to_chat() || !is_full || replaces() {
            return Ok(());
        }
        let message = format!("the chat has {PERMISSIONS_REMEMBERED} rules that deny, and takes no further rule");
        Err(Error::new(Code::Conflict, message)
            .detail("field", "always")
            .hint("revoke a rule of the chat, or leave always out: this call can be decided on alone"))
    }

    /// Checks that it is about the request that was shown, where it says which.
    fn check_digest(&self, asked: &Value) -> Result<(), Error> {
        let shown = asked["digest"].as_str();
        match (&self.digest, shown) {
            (Some(digest), Some(shown)) if digest.to_string() != shown => {
                Err(Error::new(Code::Conflict, "the request shows something else than the one that was decided on")
                    .detail("field", "digest")
                    .detail("digest", shown)
                    .hint("read the request again, and decide on what it shows"))
            }
            // A view that an older version wrote has no digest.
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Whether the rule is one of the chat. A standing rule is not: the chat would keep it when the standing one is revoked.
    fn grants_to_chat(&self) -> bool {
        self.always && self.scope == RuleScope::Chat
    }

    /// The rule that it grants, of the rule that was offered.
    pub(crate) fn granted(&self, offered: PermissionRule) -> Option<PermissionRule> {
        if !self.always {
            return None;
        }
        match self.outcome {
            PermissionOutcome::Approved => Some(offered),
            PermissionOutcome::Declined => Some(offered.denied()),
            PermissionOutcome::Cancelled => None,
        }
    }

    /// The option of the agent that it chooses, where an agent asks with these options.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about `option_id`.
    pub(crate) fn option(&self, options: Option<&[AgentOption]>) -> Result<Option<String>, Error> {
        match (options, &self.option_id) {
            (Some(options), named) => coding::chosen(options, self.outcome, named.as_deref()),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(Error::invalid("option_id", "the request offers no options")
                .hint("leave option_id out: this call is approved or declined")),
        }
    }
}

impl Chats {
    /// Decides on a permission. The caller has seen to it that `by` may approve.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about `always`, `reason` or `option_id`; those of [`Chats::refuse_decision`] when the permission is not open; `CONFLICT`
    /// when another decision on it was accepted that the chat has not taken in yet, when the request has another digest, and when there is no room for
    /// the rule.
    pub async fn decide(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        mut decision: Decision,
        by: &Principal,
    ) -> Result<(), Error> {
        decision.check()?;
        let view = self.get(workspace, chat).await?;
        let id = decision.permission_id.to_string();
        let decided = (decision.permission_id, decision.outcome);
        let Some(asked) = waiting(&view, "permission_required", "permission_id", &id) else {
            return self.refuse_decision(workspace, chat, command, decided, by).await;
        };
        decision.check_digest(asked)?;
        decision.check_offered(asked.get("always").is_some_and(Value::is_object))?;
        let offered: Option<PermissionRule> = serde_json::from_value(asked["always"].clone()).ok();
        decision.check_room(&view.permissions, offered.as_ref())?;
        decision.option(options(asked).as_deref())?;
        let rule = Some(decision.scope)
            .filter(|scope| *scope != RuleScope::Chat)
            .and_then(|scope| Some((decision.granted(offered?)?, scope)));
        if let Err(refusal) = self.claim_decision(workspace, chat, command, &decision).await {
            if refusal.code == Code::Conflict {
                self.note_refused(workspace, chat, decided, by, true).await;
            }
            return Err(refusal);
        }
        // The rule first: a repetition of the request finds the permission decided, and would grant nothing more.
        if let Some(rule) = rule {
            let granted = self.grant_standing(workspace, chat, rule, by.user()).await;
            // There is no room for the rule. Without one this call can be decided on at once.
            if granted.as_ref().is_err_and(|refusal| refusal.code == Code::Conflict)
                && let Err(error) = self.withdraw_decision(workspace, chat, command, decision.permission_id).await
            {
                tracing::warn!(%chat, error = %error.with_causes(), "the note of a refused decision stays for a while");
            }
            // The chat learns of no rule with this decision, so the agent reads it in the reason.
            let told = granted?.decision(decision.permission_id);
            decision.reason = decision.reason.or(told.reason);
        }
        self.send_decision(workspace, chat, command, decision, by).await
    }

    /// Refuses a decision on a permission that is not open, and has the log of the chat keep it. The caller has seen to it that the chat exists, and
    /// that `by` may approve.
    ///
    /// # Errors
    /// `CONFLICT`, unless this very command decided on the permission; `NOT_FOUND` when the chat never asked for it.
    pub async fn refuse_decision(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        decided: (PermissionId, PermissionOutcome),
        by: &Principal,
    ) -> Result<(), Error> {
        let done = actor::has_consumed(&*self.table, &actor_id(workspace, chat), command).await;
        if done.map_err(internal)? {
            return Ok(());
        }
        let (permission, _) = decided;
        let item = self.table.get(&permission_key(workspace, permission)).await.map_err(internal)?;
        let asked_by: Option<ChatId> =
            item.map(|item| serde_json::from_str(&item.body)).transpose().map_err(internal)?;
        let was_asked = asked_by == Some(chat);
        self.note_refused(workspace, chat, decided, by, was_asked).await;
        match was_asked {
            true => Err(not_asked("permission", "permission_id", &permission.to_string())),
            false => Err(Error::not_found("permission", permission)
                .detail("permission_id", permission.to_string())
                .hint("this chat never asked for it; the chat's waiting_for lists the open ones")),
        }
    }

    /// Has the log of a chat keep a decision that was refused: the same one of a person once, however often and late it is repeated. Of the decisions
    /// of a person on requests that the chat never made, the first alone is kept, since their ids may be made up.
    async fn note_refused(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        (permission_id, outcome): (PermissionId, PermissionOutcome),
        by: &Principal,
        was_asked: bool,
    ) {
        let id = match was_asked {
            true => CommandId::from_key("a refused decision", &format!("{permission_id} {outcome:?} {by}")),
            false => CommandId::from_key("an unknown decision", &by.to_string()),
        };
        let note = ChatCommand::NoteRefused { permission_id, outcome };
        if let Err(error) = self.send_note(workspace, chat, id, by, note).await {
            tracing::warn!(%permission_id, %error, "the log of the chat has no word of a decision that was refused");
        }
    }

    /// Sends a note, unless it was sent before: a chat remembers its last commands alone.
    async fn send_note(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        id: CommandId,
        by: &Principal,
        note: ChatCommand,
    ) -> Result<(), Error> {
        let mark = refused_key(workspace, chat, id);
        if self.table.get(&mark).await.map_err(internal)?.is_some() {
            return Ok(());
        }
        self.send(workspace, chat, id, by, note).await?;
        // The mark comes last: a note that a crash kept back is sent by the next repetition.
        match self.table.commit(vec![Write::put(mark, "{}", Expect::Absent)]).await {
            Ok(()) | Err(ports::Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(internal(error)),
        }
    }

    /// Notes the decision beside the log of the chat: of two opposite ones at once the first is accepted, and the other is refused.
    async fn claim_decision(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        decision: &Decision,
    ) -> Result<(), Error> {
        let key = decided_key(workspace, chat, decision.permission_id);
        let at = self.clock.now();
        let wanted = AcceptedDecision {
            command,
            outcome: decision.outcome,
            always: decision.always,
            option_id: decision.option_id.clone(),
            at,
        };
        // The second round reads the decision that was faster.
        for _ in 0..2 {
            let item = self.table.get(&key).await.map_err(internal)?;
            let expect = match &item {
                None => Expect::Absent,
                Some(item) => {
                    let before: AcceptedDecision = serde_json::from_str(&item.body).map_err(internal)?;
                    if before.says(&wanted) {
                        return Ok(());
                    }
                    // One whose command was lost does not stand in the way for ever.
                    if at.is_within(DECIDED_FOR, before.at) {
                        break;
                    }
                    Expect::Rev(item.rev)
                }
            };
            let body = serde_json::to_string(&wanted).map_err(internal)?;
            let note = Write::put(key.clone(), body, expect).expiring(at + 2 * DECIDED_FOR);
            match self.table.commit(vec![note]).await {
                Ok(()) => return Ok(()),
                Err(ports::Error::Conflict { .. }) => {}
                Err(error) => return Err(internal(error)),
            }
        }
        let error = Error::new(Code::Conflict, "somebody else has just decided on this permission, and otherwise");
        Err(error.hint("the event permission_resolved tells the decision that counts"))
    }

    /// Takes back the note of a decision that came to nothing: it would stand in the way of another one for [`DECIDED_FOR`].
    async fn withdraw_decision(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        permission: PermissionId,
    ) -> ports::Result<()> {
        let key = decided_key(workspace, chat, permission);
        let Some(item) = self.table.get(&key).await? else { return Ok(()) };
        let noted = serde_json::from_str::<AcceptedDecision>(&item.body);
        match noted.is_ok_and(|noted| noted.command == command) {
            true => self.table.commit(vec![Write::delete(key, Expect::Rev(item.rev))]).await,
            false => Ok(()),
        }
    }

    pub(crate) async fn send_decision(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        decision: Decision,
        by: &Principal,
    ) -> Result<(), Error> {
        let always = decision.grants_to_chat();
        let Decision { permission_id, outcome, always: _, scope: _, digest: _, reason, option_id } = decision;
        let decide = ChatCommand::Decide { permission_id, outcome, always, reason, option_id };
        self.send(workspace, chat, command, by, decide).await
    }

    /// Takes back the rules that were granted in a chat: the one with this id, or all of them. The chat does so between two turns, or while it
    /// waits for a person; a turn that runs keeps them until then. The caller has seen to it that `by` may approve.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat or rule.
    pub async fn forget_permissions(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        rule_id: Option<String>,
        by: &Principal,
    ) -> Result<(), Error> {
        let view = self.get(workspace, chat).await?;
        if let Some(id) = rule_id.as_deref().filter(|id| !view.permissions.iter().any(|rule| rule.id() == **id)) {
            return Err(Error::not_found("rule", id).hint("GET the chat's permissions lists its rules with their ids"));
        }
        // All of them also when the view has none: a rule may have been granted a moment ago.
        self.send(workspace, chat, CommandId(self.clock.id()), by, ChatCommand::ForgetPermissions { rule_id }).await
    }
}

/// The options of the agent that a view of an open permission has.
fn options(asked: &Value) -> Option<Vec<AgentOption>> {
    let text = |option: &Value, name: &str| option[name].as_str().unwrap_or_default().to_owned();
    let of = |option: &Value| AgentOption {
        id: text(option, "option_id"),
        name: text(option, "name"),
        kind: text(option, "kind"),
    };
    Some(asked.get("options")?.as_array()?.iter().map(of).collect())
}
