//! Work that waits for a disk or computes for long runs on a blocking thread, so that other tasks of the runtime do not wait for it.
//!
//! A simulation runs it on the calling thread. Otherwise the time that a thread takes would decide the order of events, and one seed would
//! stand for many different runs.

use ports::crash;
use std::{cell::Cell, marker::PhantomData};
use tokio::task::{JoinError, spawn_blocking};

thread_local! {
    static INLINE: Cell<bool> = const { Cell::new(false) };
}

/// While this guard lives, blocking work runs inline on the thread that created it.
#[derive(Debug)]
pub struct Inline(PhantomData<*const ()>);

/// Runs blocking work inline on this thread: for a runtime with one thread whose order of events must be the same in each run.
#[must_use]
pub fn inline() -> Inline {
    INLINE.set(true);
    Inline(PhantomData)
}

impl Drop for Inline {
    fn drop(&mut self) {
        INLINE.set(false);
    }
}

/// Does `work`.
///
/// # Errors
/// When it panics, or its runtime ends before it has begun.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    if INLINE.get() {
        return Ok(work());
    }
    let handed = crash::hand_on();
    spawn_blocking(move || handed.run(work)).await
}
