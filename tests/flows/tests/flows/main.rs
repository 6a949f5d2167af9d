//! Flows on a real hub, within one process. They are one program, as each would link all of a hub.

mod admission;
mod agents;
mod answered_cases;
mod budget;
mod built_in;
mod commands;
mod deaths;
mod evaluate;
mod evaluation_stops;
mod handoff;
mod history;
mod inspector;
mod keys;
mod limits;
mod progress;
mod sweeps;
mod together;
mod whole;
