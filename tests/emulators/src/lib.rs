//! Emulators of the services of the cloud functions, as processes that live as long as a test: DynamoDB by dynoxide, SQS and S3 by
//! LocalStack, Redis by itself, ECS by ourselves, the other shapes by moto. `scripts/emulators` installs them; a test that finds one
//! missing fails and says so, because a test that skips itself proves nothing.
//!
//! * [`Emulator`] starts one on a free port, waits until it answers, and takes its whole process group down when dropped.
//! * [`account`] makes the resources of the template: a table, queues, a bucket.
//! * [`ecs`] runs sandboxes as processes.
//! * [`Role`] gives a task of ECS its credentials.
//! * [`schedules`] fires schedules as Scheduler would.
//! * [`momento`] is Momento Topics.
//! * [`FaultProxy`] stands between a client and an emulator and loses the messages that it is told to lose; [`Calls`] also counts. [`Line`]
//!   is the same for protocols other than HTTP, and [`commands`] counts the commands of a Redis.
#![expect(clippy::missing_errors_doc, reason = "helpers of tests: any error ends the test")]

pub mod account;
mod calls;
mod commands;
pub mod ecs;
mod emulator;
mod fate;
mod line;
pub mod momento;
mod proxy;
mod role;
pub mod schedules;

pub use calls::{Call, Calls};
pub use commands::{commands, listeners};
pub use emulator::{Emulator, Error};
pub use fate::{Fate, FaultAction};
pub use line::{Line, State};
pub use proxy::FaultProxy;
pub use role::Role;
