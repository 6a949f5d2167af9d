//! The state of a chat: the fold of its events. One reducer serves rehydration and live steps, so they cannot drift apart.

mod history;
mod team;
mod turn;

use crate::{agent, phase::Phase};
use domain::{
    Approval, ChatConfig, ChatEvent, FileId, FilePath, Limits, Message, Mode, PermissionRule, PlanFile, Sha256, StopId,
    StopReason, Timestamp, TurnId, Usage,
    event::{HandedOut, PermissionOutcome, PlaceWait, RetryWait, SlotWait, TurnWait},
};
pub use history::{LastCompaction, OmittedTurns, PastTurn, RunningCompaction, Summary, TokenCount};
use serde::{Deserialize, Serialize};
use std::{collections::VecDeque, sync::Arc};
#[cfg(test)]
pub use team::TeamMember;
pub use team::{Team, TeamMemberStatus};
pub use turn::{AttemptedCall, EndedTurn, PostponedCall, Turn};

/// Contents that an agent is remembered to have seen; the oldest is forgotten first, and then has to be read again.
const SEEN_REMEMBERED: usize = 256;

/// Rules that a chat has at most; the oldest is forgotten first, and then a person is asked again.
pub(crate) const PERMISSIONS_REMEMBERED: usize = 100;

/// The reason of a stop whose turn is taken back.
pub(crate) const ROLLED_BACK: &str = "rolled_back";

/// A chat.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ChatState {
    /// How it is set up; none before its first command.
    pub config: Option<Arc<ChatConfig>>,
    /// The turns that the model still reads, oldest first; the last one may be running.
    pub history: VecDeque<PastTurn>,
    /// The turns that it reads no more; none before the first cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<OmittedTurns>,
    /// The summary of compacted turns, which the model reads first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The last compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Box<LastCompaction>>,
    /// The provider's own count of the last context, where our estimate was too small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<TokenCount>,
    /// The size of the tools of the last call of the model, in tokens.
    #[serde(default, skip_serializing_if = "history::is_zero")]
    pub tools_tokens: u64,
    /// The lines of the chat's file.
    #[serde(default, skip_serializing_if = "history::is_zero")]
    pub lines: u64,
    /// The turn that runs or waits for a person.
    pub turn: Option<Turn>,
    /// Turns that wait for it to end.
    pub queued: VecDeque<TurnWait>,
    /// The last stop that took effect.
    pub last_stop: Option<StopId>,
    /// The last turn, if it was stopped to be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_for_rollback: Option<TurnId>,
    /// The files that the agent has read, oldest first; none for a file that it knows to be absent.
    pub seen: VecDeque<(FilePath, Option<Sha256>)>,
    /// The usage of all ended turns.
    pub usage: Usage,
    /// The usage of all turns of its agents that have ended.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub agents_usage: Usage,
    /// Turns ended.
    pub turns: u64,
    /// Its messages, with those that the model reads no more.
    #[serde(default, skip_serializing_if = "history::is_zero")]
    pub message_count: u64,
    /// The plan, once there is one.
    pub plan_path: Option<FilePath>,
    /// The file that the plan is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<FileId>,
    /// Whether the plan was written in the mode `plan` since it was last submitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plan_is_new: bool,
    /// The last turn that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<EndedTurn>,
    /// The version of a plan that is being carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
    /// The rules that people have granted, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<PermissionRule>,
    /// When the coding agent last chose a mode or an option by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_chose_at: Option<Timestamp>,
    /// The mode that the coding agent chose by itself last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_mode: Option<String>,
    /// Why the chat is paused.
    pub paused: Option<String>,
    /// Whether it was given up.
    #[serde(default)]
    pub deleted: bool,
    /// When it last began or ended an interaction.
    pub active_at: Timestamp,
}

/// The message that an event adds to the history, if it adds one.
pub(crate) fn message_of(event: &ChatEvent) -> Option<Message> {
    match event {
        ChatEvent::MessageAdded { message } => Some(message.clone()),
        ChatEvent::Observed { call_id, tool, output, success, at, .. } => Some(Message::Tool {
            call_id: *call_id,
            tool: tool.clone(),
            at: *at,
            output: output.clone(),
            success: *success,
        }),
        _ => None,
    }
}

impl ChatState {
    /// Folds one event. Total: an event that does not fit changes nothing.
    pub fn apply(&mut self, number: u64, event: &ChatEvent) {
        if let Some(message) = message_of(event) {
            self.add(message);
        }
        if let Some(report) = self.turn.as_mut().and_then(|turn| turn.report.as_mut()) {
            report.apply(event);
        }
        match event {
            ChatEvent::Created { config } => {
                self.active_at = config.created_at;
                if let Some(PlanFile { path, id }) = &config.plan {
                    self.plan_is(path, Some(*id));
                }
                self.config = Some(Arc::new((**config).clone()));
            }
            ChatEvent::Configured { config } => self.config = Some(Arc::new((**config).clone())),
            ChatEvent::TurnQueued(wait) => {
                let goes_first = wait.next.unwrap_or_default();
                let wait = TurnWait { next: Some(goes_first), ..wait.clone() };
                if goes_first { self.queued.push_front(wait) } else { self.queued.push_back(wait) }
            }
            ChatEvent::TurnStarted { turn_id, attempt, asked_at, limits, may_approve, trace } => {
                self.begin(number, *turn_id, *attempt, *asked_at, *limits);
                if let Some(turn) = &mut self.turn {
                    (turn.may_approve, turn.trace) = (*may_approve, *trace);
                }
            }
            ChatEvent::ModelStarted { message_id, attempt, at, context, .. } => {
                // An analysis has no tools, and says nothing about the contexts of answers.
                let record = context.as_ref().filter(|record| !record.analysis);
                if let Some(record) = record {
                    self.tools_tokens = record.tools();
                }
                if let Some(turn) = &mut self.turn {
                    (turn.estimated, turn.thought) = (record.map_or(0, |record| record.tokens()), 0);
                    if turn.started_at.is_none() {
                        turn.started_at = Some(*at);
                        self.active_at = *at;
                    }
                    turn.waited_ms = turn.waited_until(*at);
                    turn.steps += u32::from(*attempt == 1);
                    turn.phase = Phase::Model { message_id: *message_id, attempt: *attempt, text: String::new() };
                }
            }
            ChatEvent::Chunk { text, message_id } => {
                if let Some(turn) = &mut self.turn
                    && let Phase::Model { message_id: current, text: so_far, .. }
                    | Phase::Agent { message_id: current, text: so_far, .. } = &mut turn.phase
                    && current == message_id
                {
                    so_far.push_str(text);
                }
            }
            ChatEvent::Thought { text, message_id } => {
                if let Some(turn) = self.turn.as_mut().filter(|turn| turn.estimated > 0)
                    && let Phase::Model { message_id: current, .. } = &turn.phase
                    && current == message_id
                {
                    turn.thought += text.len() as u64;
                }
            }
            ChatEvent::MessageAdded { message: Message::User { id, .. } } => {
                if let Some(turn) = &mut self.turn {
                    turn.words.retain(|words| words.command_id.0 != id.0);
                }
            }
            ChatEvent::MessageAdded { message } => {
                if let (Some(turn), Message::Assistant { content, calls, .. }) = (&mut self.turn, message) {
                    turn.last_text.clone_from(content);
                    turn.calls = calls.iter().cloned().collect();
                    turn.postponed = None;
                    turn.phase.message_added();
                }
            }
            ChatEvent::ContextCut { turns } => self.leave_out(*turns),
            ChatEvent::PlaceAwaited(PlaceWait { call_id, attempt, at, until, .. }) => {
                self.set_phase(Phase::Place { call_id: *call_id, attempt: *attempt, since: *at }, Some(*at));
                if let Some(turn) = &mut self.turn {
                    turn.place = Some(*call_id);
                    turn.requests += u32::from(until.is_none());
                    // One that asks for a place has no machine that could be ready.
                    turn.unready_since = until.map(|_| turn.unready_since.unwrap_or(*at));
                }
            }
            ChatEvent::CallStarted { call_id, attempt, at, .. } => {
                self.set_phase(Phase::Tool { call_id: *call_id, attempt: *attempt }, *at);
            }
            ChatEvent::Observed { call_id, seen, at, .. } => {
                for (path, content) in seen {
                    self.remember(path, *content);
                }
                self.set_phase(Phase::Begun, Some(*at));
                if let Some(turn) = &mut self.turn {
                    turn.calls.retain(|call| call.call_id != *call_id);
                    turn.place = turn.place.filter(|holder| holder != call_id);
                    turn.unready_since = None;
                    turn.allowed = turn.allowed.filter(|allowed| allowed != call_id);
                    turn.tried = turn.tried.filter(|tried| tried.call_id != *call_id);
                }
            }
            ChatEvent::PermissionRequired { permission_id, at, .. } => {
                // A policy of the workspace asked when the call was run already.
                if let Some(turn) = &mut self.turn
                    && let Phase::Tool { call_id, attempt } = turn.phase
                {
                    turn.tried = Some(AttemptedCall { call_id, attempt });
                }
                let asked = Box::new(event.clone());
                self.set_phase(Phase::Permission { permission_id: *permission_id, asked, since: *at }, None);
            }
            ChatEvent::Asked { question_id, questions, at, .. } => {
                // A server asked when the call was run already.
                if let (Some(turn), Some(config)) = (&mut self.turn, &self.config)
                    && let Phase::Tool { call_id, attempt } = turn.phase
                    && turn.calls.front().is_some_and(|call| agent::is_served(config, &call.tool))
                {
                    turn.tried = Some(AttemptedCall { call_id, attempt });
                }
                let asked = Box::new(event.clone());
                let (question_id, questions, since) = (*question_id, questions.clone(), *at);
                self.set_phase(Phase::Question { question_id, questions, asked, since }, None);
            }
            ChatEvent::HandedOut(HandedOut { call_id, at, .. }) => {
                let (asked, since) = (Box::new(event.clone()), *at);
                self.set_phase(Phase::Handed { call_id: *call_id, asked, since }, None);
            }
            ChatEvent::SlotsAwaited(SlotWait { message_id, holder, at }) => {
                self.set_phase(Phase::Slots { message_id: *message_id, since: *at }, Some(*at));
                if let Some(turn) = &mut self.turn {
                    turn.slots = Some(holder.clone());
                    turn.requests += 1;
                }
            }
            ChatEvent::ModelPostponed(RetryWait { message_id, failures, .. }) => {
                if let Some(turn) = &mut self.turn {
                    if let Phase::Model { attempt, .. } = turn.phase {
                        turn.postponed = Some(PostponedCall { message_id: *message_id, attempt, failures: *failures });
                    }
                    turn.slots = None;
                    turn.phase = Phase::Backoff { message_id: *message_id };
                }
            }
            ChatEvent::Used { usage, model, context_used, context_limit, estimated: is_estimate } => {
                // Of the call of the model that was begun last, and not of those that a server of a tool asks for behind it.
                let estimated = self.turn.as_mut().map_or(0, |turn| std::mem::take(&mut turn.estimated));
                if !is_estimate {
                    self.count_context(estimated, *context_used, *context_limit);
                }
                if let Some(turn) = &mut self.turn {
                    // A call that is made again after the death of its worker has its slots.
                    if !is_estimate {
                        (turn.slots, turn.postponed) = (None, None);
                    }
                    turn.thought = 0;
                    turn.usage += *usage;
                    turn.answered_by = model.clone().or(turn.answered_by.take());
                }
            }
            ChatEvent::PlanStep { plan_path, plan_id, .. } => {
                self.plan_is(plan_path, *plan_id);
                self.plan_is_new |= self.plans();
            }
            ChatEvent::FileUpdated { path, .. } => {
                self.plan_is_new |= self.plans() && self.plan_path.as_ref() == Some(path);
            }
            ChatEvent::ModeChanged { mode, plan_path, .. } => {
                self.mode_is(*mode);
                if let Some(path) = plan_path {
                    self.plan_is(path, None);
                }
            }
            ChatEvent::PlanApproved { approval } => {
                self.mode_is(Mode::Build);
                self.plan_is(&approval.plan_path, Some(approval.plan_id));
                self.approval = Some(approval.clone());
            }
            ChatEvent::RightsNarrowed { .. } | ChatEvent::RunWithheld | ChatEvent::HomeWithheld => {
                self.turn.iter_mut().for_each(|turn| turn.lose(event));
            }
            ChatEvent::FormatAsked { format } => self.turn.iter_mut().for_each(|turn| turn.ask_for(format)),
            ChatEvent::DenialsRead { rule_ids, files } => {
                if let Some(turn) = &mut self.turn {
                    turn.denied.clone_from(rule_ids);
                    turn.denied_files.clone_from(files);
                }
            }
            ChatEvent::StopRequested { stop_id, reason } => {
                self.last_stop = Some(*stop_id);
                if let Some(turn) = &mut self.turn {
                    turn.stopping = Some((*stop_id, reason.clone()));
                }
            }
            ChatEvent::Done { at, stop_reason, .. } => self.end(*at, *stop_reason == StopReason::EndTurn),
            ChatEvent::Stopped { turn_id, stop_id, reason, at, .. } => {
                // A compaction that a person asked for has no part in the history.
                let counts = self.turn.as_ref().is_some_and(|turn| !turn.is_internal());
                self.stopped_for_rollback = (counts && reason == ROLLED_BACK).then_some(*turn_id);
                self.last_stop = stop_id.or(self.last_stop);
                self.end(*at, false);
            }
            ChatEvent::Paused { reason, .. } => {
                self.paused = Some(reason.clone());
                if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.phase.is_suspended()) {
                    (turn.slots, turn.place) = (None, None);
                }
            }
            ChatEvent::Unpaused { .. } => self.paused = None,
            ChatEvent::Deleted { .. } => {
                self.deleted = true;
                self.queued.clear();
            }
            ChatEvent::PermissionResolved { always, outcome, at, .. } => {
                if let Some(turn) = self.turn.as_mut().filter(|_| *outcome == PermissionOutcome::Approved)
                    && let Phase::Permission { asked, .. } = &turn.phase
                    && let ChatEvent::PermissionRequired { call_id, .. } = &**asked
                {
                    turn.allowed = Some(*call_id);
                }
                if let Some(rule) = always {
                    self.permit(rule);
                }
                self.set_phase(Phase::Begun, Some(*at));
            }
            ChatEvent::PermissionsForgotten { rule: Some(rule), .. } => self.permissions.retain(|known| known != rule),
            ChatEvent::PermissionsForgotten { rule: None, .. } => self.permissions.clear(),
            ChatEvent::Rollback { fact } => self.apply_rollback(fact),
            ChatEvent::AgentBegan { .. } | ChatEvent::AgentBound { .. } | ChatEvent::AgentUpdated { .. } => {
                self.apply_agent(event);
            }
            // For people only, or folded below.
            ChatEvent::Failed { .. } | ChatEvent::DecisionRefused { .. } => {}
            ChatEvent::Analysed { .. } | ChatEvent::Planned { .. } => {}
            ChatEvent::StepStarted { .. } | ChatEvent::StepEnded { .. } | ChatEvent::Team { .. } => {}
            ChatEvent::CompactionBegan { .. } | ChatEvent::Compacted { .. } | ChatEvent::CompactionUndone { .. } => {
                self.apply_compaction(event);
            }
            ChatEvent::CompactionSkipped { at, .. } => self.active_at = *at,
            ChatEvent::SteerRequested { .. } | ChatEvent::SteerAwaited { .. } | ChatEvent::Steered { .. } => {
                self.apply_steering(event);
            }
        }
        self.apply_to_session(event);
        self.apply_to_team(event);
        self.count_agents(event);
        self.count_lines(event);
    }

    fn mode_is(&mut self, mode: Mode) {
        if let Some(config) = &mut self.config {
            Arc::make_mut(config).mode = mode;
        }
        if mode != Mode::Build {
            self.approval = None;
        }
    }

    /// Sets the plan of the chat. A plan given by its path alone keeps the known id of that path.
    fn plan_is(&mut self, path: &FilePath, id: Option<FileId>) {
        let known = self.plan_id.filter(|_| self.plan_path.as_ref() == Some(path));
        self.plan_path = Some(path.clone());
        self.plan_id = id.or(known);
    }

    fn begin(&mut self, number: u64, id: TurnId, attempt: u32, asked_at: Timestamp, limits: Limits) {
        if let Some(turn) = &mut self.turn
            && turn.id == id
        {
            turn.attempt = attempt;
            return;
        }
        self.stopped_for_rollback = None;
        self.queued.retain(|queued| queued.command_id.0 != id.0);
        self.history.push_back(PastTurn::default());
        self.turn = Some(Turn {
            denied: Vec::new(),
            denied_files: Vec::new(),
            allowed: None,
            tried: None,
            id,
            number,
            attempt,
            asked_at,
            started_at: None,
            waited_ms: 0,
            limits,
            may_approve: false,
            may_not_run: false,
            no_home: false,
            trace: None,
            format: None,
            steps: 0,
            usage: Usage::default(),
            agents_usage: Usage::default(),
            estimated: 0,
            thought: 0,
            calls: VecDeque::new(),
            last_text: String::new(),
            report: self.config.as_ref().and_then(|config| config.agent.as_ref()).map(|_| Box::default()),
            slots: None,
            place: None,
            unready_since: None,
            requests: 0,
            postponed: None,
            planning: self.config.as_ref().and_then(|config| config.session.as_ref()).map(|_| Box::default()),
            compacting: None,
            compacted: false,
            answered_by: None,
            steering: Vec::new(),
            words: Vec::new(),
            steered: Vec::new(),
            stopping: None,
            team: None,
            phase: Phase::Begun,
        });
    }

    /// Whether it is in the mode `plan`.
    fn plans(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config.mode == Mode::Plan)
    }

    fn end(&mut self, at: Timestamp, by_itself: bool) {
        if let Some(turn) = self.turn.take() {
            let submits_plan = by_itself && !turn.is_internal() && self.plans() && self.plan_is_new;
            self.plan_is_new &= !submits_plan;
            self.ended = Some(EndedTurn { id: turn.id, is_internal: turn.is_internal(), submits_plan });
            self.usage += turn.usage;
            self.turns += 1;
        }
        self.active_at = at;
    }

    fn add(&mut self, message: Message) {
        self.message_count += 1;
        if self.history.is_empty() {
            self.history.push_back(PastTurn::default());
        }
        if let Some(turn) = self.history.back_mut() {
            turn.tokens += message.tokens();
            turn.messages.push(Arc::new(message));
        }
    }

    pub(crate) fn set_phase(&mut self, phase: Phase, at: Option<Timestamp>) {
        if let Some(turn) = &mut self.turn {
            if let Some(at) = at {
                turn.waited_ms = turn.waited_until(at);
            }
            turn.phase = phase;
        }
    }

    /// Keeps a rule. One that denies takes the place of the one that allows the same, and the other way round.
    fn permit(&mut self, rule: &PermissionRule) {
        fn of(rule: &PermissionRule) -> &PermissionRule {
            rule.denies().unwrap_or(rule)
        }
        self.permissions.retain(|known| of(known) != of(rule));
        self.permissions.push(rule.clone());
        if self.permissions.len() > PERMISSIONS_REMEMBERED {
            // The oldest that allows: without it a person is asked. One that denies never goes by itself.
            if let Some(oldest) = self.permissions.iter().position(|known| known.denies().is_none()) {
                self.permissions.remove(oldest);
            }
        }
    }

    fn remember(&mut self, path: &FilePath, content: Option<Sha256>) {
        self.seen.retain(|(known, _)| known != path);
        self.seen.push_back((path.clone(), content));
        if self.seen.len() > SEEN_REMEMBERED {
            self.seen.pop_front();
        }
    }
}
