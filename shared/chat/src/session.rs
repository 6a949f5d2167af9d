//! Sessions of the planner chat (spec 003). A session is a chat, and its turn is the turn of `turn`, with three differences:
//!
//! - It begins with an analysis (`analysis`): rules that are certain (`rules`), else one call of the model. The analysis decides which tools
//!   the model has: none, those of the context (`contexts`), or those and `run_plan`.
//! - A plan is a call of `run_plan`. `session_plan` checks it, and says which steps are ready; a plan that cannot be carried out is the answer to the
//!   call, so that the model plans again.
//! - An executor is a chat of its own with the session where an agent has its task. `execution` sends each its task, in the entry that begins
//!   the step, and takes in its report; `executor` holds its limits. The call is answered when all steps have ended.

pub(crate) mod analysis;
pub(crate) mod contexts;
pub(crate) mod excerpts;
pub(crate) mod execution;
pub(crate) mod executor;
pub(crate) mod open;
pub(crate) mod rules;
pub(crate) mod sources;

pub use open::{NewSessionMessage, SessionChange, Sessions, is_session_of};
