//! The crash-point simulator: whole scenarios of people and chats, on a clock that jumps, over stores that fail by seed, in
//! processes that die at a chosen call.
//!
//! ```text
//!   Scenario (acts of people)  ─┐
//!   Plan (deaths, their times,  ├─> run ──> World (the survivors) ──> invariants
//!         faults, seed)        ─┘
//! ```
//!
//! - A [`World`] has the survivors of deaths: table, queue, bus, blobs, the folders on disk, the clock.
//! - A [`Process`] is one life of a hub over it. Everything that it does passes through its ports, so that a death next to
//!   one of its calls stands for every death there is; see [`testkit::crash`]. A process can also be cut off for a while
//!   and come back as a zombie, when another one has taken over: see [`Link`].
//! - A [`Scenario`] has the acts of people, as data; [`person`] does them, and repeats requests without an answer.
//! - [`run`] plays a scenario under a [`Plan`] until all is at rest, and asks every function of [`invariants`].
//!
//! - [`agent`] is a coding agent, a child of a process, which dies with it or at a step of its own.
//! - [`tasks`] does the same with flows, and [`handoffs`] with files that start flows.
//!
//! Deliberately absent: it does not tear files on disk (the workspace's own tests do), and it takes the fakes' word for the promises of adapters (the
//! conformance suites hold those to it).
#![expect(clippy::missing_errors_doc, reason = "helpers of tests: any error ends the test")]

pub mod agent;
mod check;
pub mod cluster;
pub mod handoffs;
pub mod invariants;
pub mod network;
pub mod person;
pub mod plan;
pub mod process;
mod retrying_stores;
mod run;
pub mod sabotage;
pub mod scenario;
mod script;
pub mod tasks;
mod watcher;
pub mod world;

pub use handoffs::play_handoffs;
pub use network::Link;
pub use plan::{Life, Plan};
pub use process::{Fate, Process};
pub use run::{Outcome, play, run};
pub use sabotage::Safeguard;
pub use scenario::{Act, Scenario, Until};
pub use tasks::{TaskScenario, play_tasks};
pub use watcher::Seen;
pub use world::World;
