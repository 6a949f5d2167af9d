//! The destinations of observers: of facts about tasks, and of everything else that goes out in batches.

use super::event::TaskFact;
use async_trait::async_trait;
use std::sync::Arc;

/// A place that facts go to. It is called with one batch at a time, in order; a batch that failed comes again as it was, so a
/// sink that did take it may see it twice.
#[async_trait]
pub trait Sink<T = TaskFact>: Send + Sync {
    /// Takes a batch, which is never empty.
    ///
    /// # Errors
    /// It was not taken.
    async fn send(&self, batch: &[Arc<T>]) -> Result<(), SinkError>;
}

/// A batch that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct SinkError {
    /// The reason, for people; without secrets.
    pub why: String,
    /// Whether it may well be taken later.
    pub again: bool,
}

impl SinkError {
    /// It may be taken later.
    pub fn for_now(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: true }
    }

    /// Trying again is no use.
    pub fn for_good(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: false }
    }
}
