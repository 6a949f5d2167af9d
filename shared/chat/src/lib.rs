//! The chat: a state machine for turns of a conversation, its effects on the outside, and the API for people.
//!
//! The way of a message, by file: [`Chats`] accepts it and answers; the actor runtime brings it to [`ChatMachine`], whose
//! parts are `turn` (model, tools, limits), `reported` (what effects report), `gate` and `allow` (the calls that run unasked), `cancel` (stop), `ask` and `decide`
//! (questions, permissions), and `slots`, `backoff` and
//! `places` (reasons why a call of the model or a command waits), over the state that `state` folds; `context` decides what
//! the model reads; `prompt`, `shelf`, `front_matter`, `reach` and `in_the_box` are personas and skills; `perform` calls models and tools; `transcript` keeps the chat's own file up to date. `session` is what the turns of the planner chat have beside that; `scenario` sets new chats up, and `team` is for several agents on one plan. A chat can also be
//! the conversation of a task's agent: `agent` says what is different then, and `report` tells the task the result of each
//! turn.

mod agent;
mod allow;
mod approve;
mod ask;
mod asked;
mod attached;
mod backoff;
mod cancel;
mod chats;
mod coding;
mod compact;
mod context;
mod decide;
mod delete;
mod fork;
mod front_matter;
mod gate;
mod given;
mod handed;
mod in_the_box;
mod keys;
mod machine;
mod media;
mod mode;
mod perform;
mod phase;
mod places;
mod policy;
mod prompt;
mod reach;
mod reading;
mod report;
mod reported;
mod resume;
mod rollback;
mod sample;
mod scenario;
mod session;
mod settings;
mod shelf;
mod size;
mod slots;
mod standing;
mod state;
mod steer;
mod stretch;
mod team;
mod threads;
mod transcript;
mod turn;
mod turn_budget;
mod uses;
mod view;
mod waits;

pub use approve::Approve;
pub use chats::{Accepted, Chats, NewChat, NewMessage, Setup};
pub use coding::{AgentDoes, AgentReport, AgentWork};
pub use decide::Decision;
pub use delete::delete;
pub use fork::ForkPoint;
pub use front_matter::{Fault, FrontMatter, front_matter};
pub use gate::{Gate, GateDecision, GateRequest, SimpleGate};
pub use given::{GivenContext, GivenPart, TurnContexts};
pub use handed::CallAnswer;
pub use keys::actor_id;
pub use machine::{ChatEffect, ChatMachine, ModelAnswer, Report};
pub use perform::ChatEffects;
pub use prompt::system_text;
pub use reading::{ChatPage, ChatReader, HistoryPage, NumberedMessage, TurnUsage};
pub use rollback::{TakeBack, TakenBack};
pub use scenario::set_up;
pub use session::{NewSessionMessage, SessionChange, Sessions};
pub use settings::{SessionSettings, Settings};
pub use shelf::{Described, Shelf, described, described_in_the_box, persona_file};
pub use standing::{RuleScope, Standing, StandingRule};
pub use state::ChatState;
pub use stretch::{Stretch, StretchCalls};
pub use team::look::{Look, Looked};
pub use threads::{
    NewThread, ThreadCompaction, ThreadPage, ThreadReader, ThreadRecord, ThreadTurn, Threads, TurnRecord, WithView,
};
pub use transcript::Transcript;
pub use uses::Uses;
pub use waits::QueuedBehind;
