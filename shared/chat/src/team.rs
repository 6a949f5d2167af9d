//! The team of a chat (spec 000 §4.3): several agents carry one plan out side by side.
//!
//! Each agent is a chat of its own, with its persona, file and log; the chat that has the team is told of their steps and of the ends of their
//! turns, by messages. They coordinate through the plan alone: a step is claimed by a conditional write (`tools::plan`). The turn of the chat
//! begins them and waits; it asks no model. When an agent has ended its turn, the steps that it held are free again (`plan_poll`). When all have
//! ended and steps are free, those that ended by themselves go on, as long as a round gets a step done (`rounds`). The
//! agents of a turn, and their states, are a part of its state (`state/team.rs`).

pub(crate) mod drive;
pub(crate) mod member;
pub(crate) mod plan_poll;
pub(crate) mod rounds;
