//! Door 3, the planner chat (spec 003 §1): one turn of a session as frames whose data have a `type`, and sessions as clients read them.
//!
//! The log of the session has all that a stream shows, also of the plan and its executors; so one log is folded, and a stream resumes by its
//! numbers. The calls of an executor are in the log of its own chat.

mod records;
mod session;
mod turn;

/// The tool that a plan is: it is shown as a plan.
const RUN_PLAN: &str = "run_plan";

pub use records::Records;
pub use session::{message, session, session_frame};
pub use turn::{PlannerTurn, Shows};
