//! Emulators of what the cloud functions talk to, as processes that live as long as a test: DynamoDB by dynoxide, SQS and S3 by
//! LocalStack, Redis by itself, the other shapes by moto. `scripts/emulators` installs them; a test that finds one missing
//! fails and says so, because a test that skips itself proves nothing.
//!
//! * [`Emulator`] starts one on a free port, waits until it answers, and takes its whole process group down when dropped.
//! * [`account`] makes what the template makes: a table, queues, a bucket.
//! * [`schedules`] fires what Scheduler would.
//! * [`FaultProxy`] stands between a client and an emulator and loses what it is told to lose; [`Calls`] also counts.

pub mod account;
mod calls;
mod emulator;
mod proxy;
pub mod schedules;

pub use calls::Calls;
pub use emulator::{Emulator, Error};
pub use proxy::{Fate, FaultProxy};
