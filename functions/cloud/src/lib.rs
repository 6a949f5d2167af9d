//! The same system on AWS, one binary per deployable:
//!
//! | binary | is | takes |
//! |---|---|---|
//! | `buildscale-api` | a Lambda behind an HTTP API | requests; it answers 202 when the command is in the queue |
//! | `buildscale-worker` | a Lambda on the FIFO queue | batches of commands; it drives their actors to rest |
//! | `buildscale-timer` | a Lambda on the delay queue and on a schedule | due messages, and stranded work |
//! | `buildscale-stream` | a container behind a load balancer, or a Lambda that streams | watchers |
//! | `buildscale-sandbox` | one container per workspace | manifests of its files, searches, commands, words for programs |
//!
//! Their work is in `functions/api`, `worker`, `stream` and `sandbox`, as in the hub; [`assemble`] is the one place that knows which
//! adapter stands behind which port. This crate adds the demands of Lambda: deadlines, batches, and acknowledgement.

pub mod assemble;
pub mod bus;
pub mod faults;
pub mod http_events;
pub mod origin;
pub mod sandbox;
pub mod stream;
pub mod timer;
pub mod whole_answers;
pub mod worker;

mod batch_response;
mod programs;
mod refusal;
mod sandbox_sweep;
mod stream_redirect;

/// Logs the counts since the last time, as a bare line: CloudWatch takes no metrics out of lines that are wrapped into others.
pub(crate) fn tell(emf: &assembly::Emf, clock: &dyn ports::Clock) {
    if let Some(line) = emf.line(clock.now()) {
        // A process that cannot log cannot report that either.
        drop(std::io::Write::write_all(&mut std::io::stdout().lock(), format!("{line}\n").as_bytes()));
    }
}

/// Why a function does not start.
#[derive(Debug, thiserror::Error)]
pub enum FunctionError {
    /// A variable of the deployment.
    #[error(transparent)]
    Deployed(#[from] aws::ConfigError),
    /// Another variable, or the models.
    #[error(transparent)]
    Assembly(#[from] assembly::SetupError),
    /// The socket of the container.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
