//! Work that waits for a disk or computes for long: on a thread for such work, so that nobody waits for it who need not.
//!
//! A simulation has it done where it is called. Otherwise the time that a thread takes would decide in which order things happen, and
//! a seed would stand for many runs.

use ports::crash;
use std::{cell::Cell, marker::PhantomData};
use tokio::task::{JoinError, spawn_blocking};

thread_local! {
    static INLINE: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, such work is done where it is called on this thread.
#[derive(Debug)]
pub struct Inline(PhantomData<*const ()>);

/// Has such work done where it is called, on this thread: for a runtime with one thread, whose order of things has to be the same
/// each time.
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
