//! The turn of a chat that runs or waits.

use super::{history::RunningCompaction, team::Team};
use crate::{phase::Phase, session_plan::Planning, turn_report::TurnReport};
use domain::{
    AnswerFormat, CallId, ChatEvent, FilePath, Limits, MessageId, StopId, Timestamp, ToolCall, TraceContext, TurnId,
    Usage, event::SteeringWords,
};
use serde::{Deserialize, Serialize};
use slots::Held;
use std::collections::VecDeque;

/// A call that was run and then asked about, because a policy of the workspace asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptedCall {
    /// The call.
    pub call_id: CallId,
    /// Its last attempt.
    pub attempt: u32,
}

/// A call of the model that failed in a way that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostponedCall {
    /// The message to come.
    pub message_id: MessageId,
    /// The last attempt, as [`Phase::Model`] counts them.
    pub attempt: u32,
    /// How often the provider failed; an attempt that ended with its worker is none of its failures.
    pub failures: u32,
}

/// A turn that ended, for those that tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTurn {
    /// Its id.
    pub id: TurnId,
    /// Whether it was no part of the conversation: a compaction that a person asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_internal: bool,
    /// Whether it left a plan to be approved that no turn before it did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub submits_plan: bool,
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
    /// Whether it comes from somebody who may run no flows, or was continued by such a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_not_run: bool,
    /// Whether another person than that of the chat has begun it, or continued it: the agent has no access to the home of its person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_home: bool,
    /// The trace that it came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The format that its answer has to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<AnswerFormat>,
    /// The ids of the standing rules that deny in it, as they were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// The files of which standing rules deny new contents in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_files: Vec<FilePath>,
    /// The call that a person has allowed, until it is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<CallId>,
    /// The call that was asked about after it had been run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<AttemptedCall>,
    /// Model calls begun.
    pub steps: u32,
    /// Its usage so far.
    pub usage: Usage,
    /// Our estimate of the context of its last call of the model, in tokens; 0 for calls with a context of their own.
    #[serde(default, skip_serializing_if = "super::history::is_zero")]
    pub estimated: u64,
    /// The reasoning of the call that brings the next message so far, in bytes; 0 for calls whose context is not estimated.
    #[serde(default, skip_serializing_if = "super::history::is_zero")]
    pub thought: u64,
    /// The usage of the agents that worked for it and have ended.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub agents_usage: Usage,
    /// Calls of the last message that have no answer yet, the current one first.
    pub calls: VecDeque<ToolCall>,
    /// The last text of the model.
    pub last_text: String,
    /// For the agent of a task: the report on the turn so far.
    #[serde(rename = "round", default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<TurnReport>>,
    /// How often it asked for slots or for a place. A grant names the request that it answers.
    #[serde(default, skip_serializing_if = "super::history::is_zero")]
    pub requests: u32,
    /// The name under which its call of the model has slots or waits for them. A chat that is paused while it waits has withdrawn its request, and
    /// asks anew when it goes on.
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
    pub postponed: Option<PostponedCall>,
    /// Of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning: Option<Box<Planning>>,
    /// The compaction that it is at, or for which alone it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacting: Option<RunningCompaction>,
    /// Whether the context was compacted in it; it is not compacted by itself a second time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compacted: bool,
    /// The model that answered last, as its provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Requests to steer it whose words are not there yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steering: Vec<StopId>,
    /// Words that people added, which the model reads with its next call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<SteeringWords>,
    /// The commands whose words it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<StopId>,
    /// A stop that waits for a running tool.
    pub stopping: Option<(StopId, String)>,
    /// The agents that carry the plan out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<Box<Team>>,
    /// Its present activity.
    pub phase: Phase,
}

impl Turn {
    /// Takes a right away for the rest of the turn.
    pub(crate) fn lose(&mut self, event: &ChatEvent) {
        match event {
            ChatEvent::RightsNarrowed { .. } => self.may_approve = false,
            ChatEvent::RunWithheld => self.may_not_run = true,
            ChatEvent::HomeWithheld => self.no_home = true,
            _ => {}
        }
    }

    /// Its answer has to have this format.
    pub(crate) fn ask_for(&mut self, format: &AnswerFormat) {
        self.format = Some(format.clone());
    }

    /// The slots and the place that it has or waits for.
    pub(crate) fn held(&self) -> Held {
        Held { slots: self.slots.clone(), place: self.place.map(|call| call.to_string()) }
    }

    /// Whether effects are in flight.
    pub(crate) fn is_in_flight(&self) -> bool {
        !self.phase.is_suspended() || self.team.as_ref().is_some_and(|team| team.looking > 0)
    }

    /// Whether it is no part of the conversation: a person asked for a compaction, and it has nothing else to do.
    pub fn is_internal(&self) -> bool {
        self.compacting.is_some_and(|compacting| compacting.internal)
    }

    /// Milliseconds that it waited for people and slots, when the waiting ends at `at` if it waits.
    pub fn waited_until(&self, at: Timestamp) -> u64 {
        let now = self.phase.since().map_or(0, |since| u64::try_from(at.since(since).as_millis()).unwrap_or(u64::MAX));
        self.waited_ms.saturating_add(now)
    }
}
