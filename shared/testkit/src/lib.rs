//! The foundations of tests: a clock under the test's control, fakes that are stricter than reality, processes that die at a chosen call,
//! and one conformance suite per port.
//!
//! * [`conformance`]: every sentence of a trait's documentation as a check. Every adapter passes the same suite.
//! * [`fakes`]: ports in memory that, chosen by seed, do everything their contract does not forbid.
//! * [`crash`]: decorators that count the calls of a process and end it at one of them, and two processes of which one dies again and again.
//! * [`content()`]: long contents, piece by piece.
//! * [`crowd`]: the promise to several writers of one folder.
//! * [`flows`]: small flows for tests that need one.
//! * [`age_log`] and its like: time that passes for processes with clocks of their own.
//! * [`golden`]: the data of each version, which is read for ever.
//! * [`install`], [`installed`]: the programs of others that the scripts of the repository install; [`free_port`]: a port that they are told.
//! * [`SmallDisk`]: a disk of some MiB that can be full.
//! * [`Means`]: the means of the machine without which a test is skipped, or fails where it must run.
//! * [`TestClock`]: time that follows tokio's, so that a paused runtime skips every wait.
//!
//! But for golden files, small disks and installed programs, nothing here does I/O or spawns tasks: ten thousand schedules fit into one test run.

mod aging;
pub mod clock;
pub mod conformance;
mod content;
pub mod crash;
pub mod crowd;
mod disk;
pub mod fakes;
pub mod flows;
pub mod golden;
mod means;
mod parts;
mod queue;
mod random;

pub use aging::{age_indexed, age_log, age_partition};
pub use clock::TestClock;
pub use content::content;
pub use disk::SmallDisk;
pub use means::Means;
pub use parts::{free_port, install, installed};
pub use queue::Queue;
pub use random::Random;
