//! Emulators of what the cloud functions talk to, as processes that live as long as a test: DynamoDB by dynoxide, SQS and S3 by
//! LocalStack, Redis by itself, ECS by ourselves, the other shapes by moto. `scripts/emulators` installs them; a test that finds one missing
//! fails and says so, because a test that skips itself proves nothing.
//!
//! * [`Emulator`] starts one on a free port, waits until it answers, and takes its whole process group down when dropped.
//! * [`account`] makes what the template makes: a table, queues, a bucket.
//! * [`ecs`] runs sandboxes as processes.
//! * [`Role`] is how a task of ECS comes by its credentials.
//! * [`schedules`] fires what Scheduler would.
//! * `momento` is Momento Topics, behind a feature.
//! * [`FaultProxy`] stands between a client and an emulator and loses what it is told to lose; [`Calls`] also counts. [`Line`] is the
//!   same for what is no HTTP, and [`commands`] counts what a Redis did.

pub mod account;
mod calls;
mod commands;
pub mod ecs;
mod emulator;
mod fate;
mod line;
#[cfg(feature = "momento")]
pub mod momento;
mod proxy;
mod role;
pub mod schedules;

pub use calls::{Call, Calls};
pub use commands::{commands, listeners};
pub use emulator::{Emulator, Error};
pub use fate::{Deed, Fate};
pub use line::{Line, State};
pub use proxy::FaultProxy;
pub use role::Role;
