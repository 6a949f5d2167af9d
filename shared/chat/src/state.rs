//! The state of a chat: the fold of its events. One reducer serves rehydration and live steps, so they cannot drift apart.

use crate::{
    backoff::Postponed,
    context::{LeftOut, PastTurn},
    phase::Phase,
    report::Round,
    session::carry_out::Planning,
};
use domain::{
    Approval, CallId, ChatConfig, ChatEvent, CommandId, FileId, FilePath, Limits, Message, Mode, PermissionRule,
    PlanFile, QueuedMessage, Sha256, StopId, Timestamp, ToolCall, TraceContext, TurnId, Usage,
    event::PermissionOutcome,
};
use serde::{Deserialize, Serialize};
use std::{collections::VecDeque, sync::Arc};

/// Contents that an agent is remembered to have seen; the oldest is forgotten first, and then has to be read again.
const SEEN_REMEMBERED: usize = 256;

/// Rules that a chat has at most; the oldest is forgotten first, and then a person is asked again.
const PERMISSIONS_REMEMBERED: usize = 100;

/// A chat.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ChatState {
    /// How it is set up; none before its first command.
    pub config: Option<Arc<ChatConfig>>,
    /// The turns that the model still reads, oldest first; the last one may be running.
    pub history: VecDeque<PastTurn>,
    /// The turns that it reads no more; none before the first cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// The lines of the chat's file.
    #[serde(default, skip_serializing_if = "crate::context::is_zero")]
    pub lines: u64,
    /// The turn that runs or waits for a person.
    pub turn: Option<Turn>,
    /// Turns that wait for it to end.
    pub queued: VecDeque<QueuedTurn>,
    /// The last stop that took effect.
    pub last_stop: Option<StopId>,
    /// The files that the agent has read, oldest first; none for a file that it knows to be absent.
    pub seen: VecDeque<(FilePath, Option<Sha256>)>,
    /// The usage of all ended turns.
    pub usage: Usage,
    /// Turns ended.
    pub turns: u64,
    /// The plan, once there is one.
    pub plan_path: Option<FilePath>,
    /// The file that the plan is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<FileId>,
    /// The version of a plan that is being carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
    /// The rules that people have granted, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<PermissionRule>,
    /// Why the chat is paused.
    pub paused: Option<String>,
    /// Whether it was given up.
    #[serde(default)]
    pub deleted: bool,
    /// When it last began or ended an interaction.
    pub active_at: Timestamp,
}

/// A turn that was asked for and not begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedTurn {
    /// The command that asked for it.
    pub command_id: CommandId,
    /// The time of the request.
    pub at: Timestamp,
    /// The person's words.
    pub content: String,
    /// Attached files.
    pub files: Vec<FilePath>,
    /// The text that the model reads after the words.
    pub context: String,
    /// Narrower limits.
    pub limits: Option<Limits>,
    /// Whether it goes before the others.
    #[serde(default)]
    pub next: bool,
    /// Whether it comes from somebody who may approve.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_approve: bool,
    /// The trace that it came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
}

impl QueuedTurn {
    /// The turn that an event queues, if it queues one.
    pub(crate) fn of(event: &ChatEvent) -> Option<Self> {
        let ChatEvent::TurnQueued { command_id, at, content, files, context, limits, next, may_approve, trace } = event
        else {
            return None;
        };
        let (content, files, context) = (content.clone(), files.clone(), context.clone());
        Some(Self {
            command_id: *command_id,
            at: *at,
            content,
            files,
            context,
            limits: *limits,
            next: *next,
            may_approve: *may_approve,
            trace: *trace,
        })
    }

    /// As people see it.
    pub(crate) fn shown(&self) -> QueuedMessage {
        QueuedMessage::new(TurnId(self.command_id.0), self.at, &self.content, &self.files)
    }

    /// Takes its place among those that wait.
    pub(crate) fn queue(self, waiting: &mut VecDeque<Self>) {
        if self.next { waiting.push_front(self) } else { waiting.push_back(self) }
    }
}

/// A call that was run and then asked about, because a policy of the workspace asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// The call.
    pub call_id: CallId,
    /// Its last attempt.
    pub attempt: u32,
}

/// The turn that runs or waits.
#[derive(Debug, Serialize, Deserialize)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// The number of its first event.
    pub number: u64,
    /// How often it was begun.
    pub attempt: u32,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// When the first model call began: the wall time counts from here, without the time that it waited for people.
    pub started_at: Option<Timestamp>,
    /// Milliseconds that it waited for people, slots and places.
    pub waited_ms: u64,
    /// Its limits.
    pub limits: Limits,
    /// Whether it comes from somebody who may approve.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_approve: bool,
    /// The trace that it came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The call that a person has allowed, until it is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<CallId>,
    /// The call that was asked about after it had been run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Tried>,
    /// Model calls begun.
    pub steps: u32,
    /// Its usage so far.
    pub usage: Usage,
    /// Calls of the last message that have no answer yet, the current one first.
    pub calls: VecDeque<ToolCall>,
    /// The last text of the model.
    pub last_text: String,
    /// For the agent of a task: the report on the turn so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<Box<Round>>,
    /// The name under which its call of the model has slots or waits for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<String>,
    /// The command that has a place on its machine or waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<CallId>,
    /// The time from which on the current command's machine is not ready for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unready_since: Option<Timestamp>,
    /// A postponed call of the model, until it is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postponed: Option<Postponed>,
    /// Of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning: Option<Box<Planning>>,
    /// A stop that waits for a running tool.
    pub stopping: Option<(StopId, String)>,
    /// Its present activity.
    pub phase: Phase,
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

impl Turn {
    /// Milliseconds that it waited for people and slots, when the waiting ends at `at` if it waits.
    pub fn waited_until(&self, at: Timestamp) -> u64 {
        let now = self.phase.since().map_or(0, |since| u64::try_from(at.since(since).as_millis()).unwrap_or(u64::MAX));
        self.waited_ms.saturating_add(now)
    }
}

impl ChatState {
    /// Folds one event. Total: an event that does not fit changes nothing.
    pub fn apply(&mut self, number: u64, event: &ChatEvent) {
        if let Some(message) = message_of(event) {
            self.add(message);
        }
        if let Some(round) = self.turn.as_mut().and_then(|turn| turn.round.as_mut()) {
            round.apply(event);
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
            ChatEvent::TurnQueued { .. } => {
                if let Some(queued) = QueuedTurn::of(event) {
                    queued.queue(&mut self.queued);
                }
            }
            ChatEvent::TurnStarted { turn_id, attempt, asked_at, limits, may_approve, trace } => {
                self.begin(number, *turn_id, *attempt, *asked_at, *limits);
                if let Some(turn) = &mut self.turn {
                    (turn.may_approve, turn.trace) = (*may_approve, *trace);
                }
            }
            ChatEvent::ModelStarted { message_id, attempt, at } => {
                if let Some(turn) = &mut self.turn {
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
            ChatEvent::MessageAdded { message } => {
                if let (Some(turn), Message::Assistant { content, calls, .. }) = (&mut self.turn, message) {
                    turn.last_text.clone_from(content);
                    turn.calls = calls.iter().cloned().collect();
                    turn.postponed = None;
                    turn.phase.message_added();
                }
            }
            ChatEvent::ContextCut { turns } => self.leave_out(*turns),
            ChatEvent::PlaceAwaited { call_id, attempt, at, until, .. } => {
                self.set_phase(Phase::Place { call_id: *call_id, attempt: *attempt, since: *at }, None);
                if let Some(turn) = &mut self.turn {
                    turn.place = Some(*call_id);
                    turn.unready_since = turn.unready_since.or(until.map(|_| *at));
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
                    turn.tried = Some(Tried { call_id, attempt });
                }
                let asked = Box::new(event.clone());
                self.set_phase(Phase::Permission { permission_id: *permission_id, asked, since: *at }, None);
            }
            ChatEvent::Asked { question_id, questions, at, .. } => {
                let asked = Box::new(event.clone());
                let (question_id, questions, since) = (*question_id, questions.clone(), *at);
                self.set_phase(Phase::Question { question_id, questions, asked, since }, None);
            }
            ChatEvent::SlotsAwaited { message_id, holder, at } => {
                self.set_phase(Phase::Slots { message_id: *message_id, since: *at }, None);
                if let Some(turn) = &mut self.turn {
                    turn.slots = Some(holder.clone());
                }
            }
            ChatEvent::ModelPostponed { message_id, failures, .. } => {
                if let Some(turn) = &mut self.turn {
                    if let Phase::Model { attempt, .. } = turn.phase {
                        turn.postponed = Some(Postponed { message_id: *message_id, attempt, failures: *failures });
                    }
                    turn.slots = None;
                    turn.phase = Phase::Backoff { message_id: *message_id };
                }
            }
            ChatEvent::Used { usage, .. } => {
                if let Some(turn) = &mut self.turn {
                    (turn.slots, turn.postponed) = (None, None);
                    turn.usage += *usage;
                }
            }
            ChatEvent::PlanStep { plan_path, plan_id, .. } => self.plan_is(plan_path, *plan_id),
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
            ChatEvent::RightsNarrowed { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.may_approve = false;
                }
            }
            ChatEvent::StopRequested { stop_id, reason } => {
                self.last_stop = Some(*stop_id);
                if let Some(turn) = &mut self.turn {
                    turn.stopping = Some((*stop_id, reason.clone()));
                }
            }
            ChatEvent::Done { at, .. } => self.end(*at),
            ChatEvent::Stopped { stop_id, at, .. } => {
                self.last_stop = stop_id.or(self.last_stop);
                self.end(*at);
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
            ChatEvent::PermissionsForgotten { .. } => self.permissions.clear(),
            ChatEvent::AgentBegan { .. } | ChatEvent::AgentBound { .. } => self.apply_agent(event),
            // For people only, or folded below.
            ChatEvent::AgentUpdated { .. } => {}
            ChatEvent::Thought { .. } | ChatEvent::FileUpdated { .. } | ChatEvent::Failed { .. } => {}
            ChatEvent::Analysed { .. } | ChatEvent::Planned { .. } => {}
            ChatEvent::StepStarted { .. } | ChatEvent::StepEnded { .. } => {}
        }
        self.apply_to_session(event);
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
        self.queued.retain(|queued| queued.command_id.0 != id.0);
        self.history.push_back(PastTurn::default());
        self.turn = Some(Turn {
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
            trace: None,
            steps: 0,
            usage: Usage::default(),
            calls: VecDeque::new(),
            last_text: String::new(),
            round: self.config.as_ref().and_then(|config| config.agent.as_ref()).map(|_| Box::default()),
            slots: None,
            place: None,
            unready_since: None,
            postponed: None,
            planning: self.config.as_ref().and_then(|config| config.session.as_ref()).map(|_| Box::default()),
            stopping: None,
            phase: Phase::Begun,
        });
    }

    fn end(&mut self, at: Timestamp) {
        if let Some(turn) = self.turn.take() {
            self.usage += turn.usage;
            self.turns += 1;
        }
        self.active_at = at;
    }

    fn add(&mut self, message: Message) {
        if self.history.is_empty() {
            self.history.push_back(PastTurn::default());
        }
        if let Some(turn) = self.history.back_mut() {
            turn.tokens += message.tokens();
            turn.messages.push(Arc::new(message));
        }
    }

    fn set_phase(&mut self, phase: Phase, at: Option<Timestamp>) {
        if let Some(turn) = &mut self.turn {
            if let Some(at) = at {
                turn.waited_ms = turn.waited_until(at);
            }
            turn.phase = phase;
        }
    }

    fn permit(&mut self, rule: &PermissionRule) {
        self.permissions.retain(|known| known != rule);
        self.permissions.push(rule.clone());
        if self.permissions.len() > PERMISSIONS_REMEMBERED {
            self.permissions.remove(0);
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
