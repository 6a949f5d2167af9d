//! AWS Lambda on one machine, for tests: function binaries as they are deployed, each instance behind a Runtime API of its own
//! that sets deadlines and keeps them; queues that feed functions; and HTTP in front of them. [`Binaries`] finds those that were built.
//!
//! ```text
//!   HTTP ─ front ─ gateway ─┐
//!                           ├─ Function: instances, one invocation each at a time ─ Runtime API ─ the binary
//!   SQS ────────── mapping ─┘
//! ```
//!
//! Its strict parts: an instance runs one invocation at a time; one that overruns its deadline is killed in the middle of its work, as is
//! one that a test kills; a chain of messages that enters a function more than 16 times is dropped if the function does not allow it; the
//! environment of a function is the one that the test gives it and nothing else.
#![expect(clippy::missing_errors_doc, reason = "helpers of tests: any error ends the test")]
#![expect(clippy::expect_used, missing_docs, reason = "means of tests")]

mod binaries;
mod front;
mod function;
mod gateway;
mod instance;
mod lease;
mod lineage;
mod mapping;
mod start;

pub use binaries::Binaries;
pub use front::{Front, Origins};
pub use function::{Failure, Function, Settings};
pub use gateway::Gateway;
pub use lineage::RecursiveLoop;
pub use mapping::{Mapping, MappingSettings};
pub use start::{Start, start};
