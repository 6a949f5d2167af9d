//! The chat: a state machine for turns of a conversation, its effects on the outside, and the API for people.
//!
//! The way of a message, by file: [`Chats`] is the API for people. `commands` accepts the message, and the actor runtime brings it to
//! [`ChatMachine`]: `inputs` takes it in, and leads each input to its part. Modules name only those below them (a guard holds it). In broad lines, from the
//! bottom up:
//!
//! - `state` is the fold of the events, with `phase`, `turn_report` and `session_plan`; `machine` has the effects and their reports; `context` decides
//!   what the model reads, and `omitted_results` what of a turn that alone is too long.
//! - `step` collects what is decided in one step; `calls`, `gate`, `simple_gate`, `allow`, `agent`, `offered_tools` and `tool_allowlist` are about single calls
//!   of tools: whether they are offered, and run unasked.
//! - Reasons why a turn waits: `ask` (permissions, questions), `handed_out_calls` (programs elsewhere), `slots`, `backoff`, `places`.
//! - `turn` asks the model and goes from call to call; `session` (the planner chat), `team` (several agents on one plan), `compact` and `coding`
//!   (coding agents) are what other turns have beside that.
//! - What comes to a turn: `effect_reports` (the reports of effects), `human_answers` and `decide` (people), `approve`, `steer`, `rollback`, `cancel` (stop),
//!   `resume`.
//!
//! `perform` calls models and tools; `transcript` keeps the chat's own file up to date; `prompt`, `definitions`, `front_matter`, `home` and `built_in`
//! are personas, skills and profiles; `scenario` sets new chats up, and `daily_brief` makes those of daily briefs. A chat can also be the conversation of a task's agent: `agent` says what is different
//! then, and `report` tells the task the result of each turn.

mod agent;
mod allow;
mod answer_claims;
mod answer_format;
mod answer_limits;
mod approve;
mod ask;
mod attachments;
mod backoff;
mod built_in;
mod calls;
mod cancel;
mod chats;
mod coding;
mod commands;
mod compact;
mod context;
mod context_record;
mod daily_brief;
mod decide;
mod definitions;
mod delete;
mod effect_reports;
mod fork;
mod front_matter;
mod gate;
mod handed_out_calls;
mod history_range;
mod home;
mod human_answers;
mod inputs;
mod keys;
mod locations;
mod machine;
mod media;
mod mode;
mod offered_tools;
mod omitted_results;
mod perform;
mod phase;
mod pieces;
mod places;
mod policy;
mod prompt;
mod reader;
mod remains;
mod repeated_calls;
mod report;
mod request_checks;
mod requests;
mod resume;
mod retries;
mod rollback;
mod sampling;
mod scenario;
mod session;
mod session_plan;
mod settings;
mod shell;
mod simple_gate;
mod size;
mod slots;
mod standing_rules;
mod state;
mod steer;
mod step;
mod team;
mod threads;
mod tool_allowlist;
mod tool_disclosure;
mod tool_uses;
mod transcript;
mod turn;
mod turn_budget;
mod turn_report;
mod view;
mod wait_reasons;

pub use answer_format::{FORMAT_WORDS, check_answer_format};
pub use approve::Approve;
pub use chats::{Chats, KnowsModel};
pub use context_record::{GivenAnalysis, GivenContext, GivenCut, GivenLocation, GivenPart, Purpose, TurnContexts};
pub use decide::{Decision, RuleScope};
pub use definitions::{Definition, DefinitionKind, built_in_personas, definitions, persona_file};
pub use delete::delete;
pub use fork::ForkPoint;
pub use front_matter::{FrontMatter, FrontMatterFault, front_matter};
pub use gate::{Gate, GateDecision, GateRequest};
pub use handed_out_calls::CallAnswer;
pub use history_range::{HistoryRange, RangeCalls};
pub use keys::actor_id;
pub use locations::LocationCounts;
pub use machine::{
    AgentDoes, AgentReport, AgentWork, ChatEffect, ChatMachine, CostEstimator, FileRewind, FileRewindResult,
    ModelAnswer, PlanPoll, PlanPollResult, Report,
};
pub use perform::ChatEffects;
pub use prompt::{Persona, SystemText, persona, system_text};
pub use reader::{ChatPage, ChatReader, HistoryPage, NumberedMessage, TurnUsage, UsageScope};
pub use remains::{remove_chat, remove_remains};
pub use requests::{Accepted, LeaderRights, NewChat, NewMessage, Setup};
pub use scenario::set_up;
pub use session::{NewSessionMessage, SessionChange, Sessions, is_session_of};
pub use settings::{SessionSettings, Settings};
pub use shell::commands_in;
pub use simple_gate::SimpleGate;
pub use standing_rules::{StandingRule, StandingRuleObserver};
pub use state::ChatState;
pub use threads::{
    NewThread, ThreadCompaction, ThreadPage, ThreadReader, ThreadRecord, ThreadTurn, ThreadWithView, Threads,
    TurnRecord,
};
pub use tool_uses::ToolUses;
pub use transcript::Transcript;
pub use wait_reasons::QueuedBehind;
