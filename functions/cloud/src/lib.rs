//! The same system on AWS, a binary a deployable:
//!
//! | binary | is | takes |
//! |---|---|---|
//! | `buildscale-api` | a Lambda behind an HTTP API | requests; it answers 202 when the command is in the queue |
//! | `buildscale-worker` | a Lambda on the FIFO queue | batches of commands; it drives their actors to rest |
//! | `buildscale-timer` | a Lambda on the delay queue and on a schedule | what is due, and what was left behind |
//! | `buildscale-stream` | a container behind a load balancer | watchers, for as long as they like |
//!
//! What they do is in `functions/api`, `worker` and `stream`, as in the hub; [`assemble`] is the one place that knows which adapter
//! stands behind which port. What is added here is what Lambda asks for: deadlines, batches, and who acknowledges.

pub mod assemble;
pub mod stream;
pub mod timer;
pub mod worker;

mod readonly;

/// Why a function does not start.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A variable of what was deployed.
    #[error(transparent)]
    Deployed(#[from] aws::ConfigError),
    /// Another variable, or the models.
    #[error(transparent)]
    Assembly(#[from] assembly::Failure),
    /// The socket of the container.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
