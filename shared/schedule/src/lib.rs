//! Schedules: a chat, a message, a task or a call of a tool begins at a time, or again and again by a rule of iCalendar (RFC 5545 §3.3.10) in a time zone.
//!
//! A schedule is an actor. It sends itself a message that the queue holds back until it is due, so an idle schedule costs nothing but its
//! rows, and a hub that was switched off finds its schedules due at the next start.
//!
//! ```text
//!   person ── Create ──▶ schedule ── Tick, held back until due ──▶ schedule ── Run ──▶ Chats::create, Chats::post, Tasks::create or a tool
//!                                                  ▲────── the next one ──────┘
//! ```
//!
//! - [`rule`]: the times, and the next one after a given one. Pure.
//! - [`machine`]: the decisions. Pure.
//! - [`run`]: begins what is due, as the person who made the schedule, with the rights that they have then.
//! - [`schedules`]: the way in.

mod config;
mod event;
pub mod machine;
mod remains;
pub mod rule;
pub mod run;
pub mod schedules;
mod state;

pub use config::{Action, MissedPolicy, OverlapPolicy, ScheduleConfig, StartedWork};
pub use event::{ScheduleCommand, ScheduleEvent};
pub use machine::{ScheduleEffect, ScheduleMachine, ScheduleReport};
pub use remains::remove_remains;
pub use rule::{Times, TimesError};
pub use run::{Rights, ScheduleEffects, ToolCalls};
pub use schedules::{NewSchedule, NewTimes, ScheduleChange, SchedulePage, Schedules};
pub use state::{LastRun, ScheduleState, ScheduleStatus, ScheduleView};
