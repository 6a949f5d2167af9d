//! A child process that never outlives its owner.

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::{
    io,
    ops::{Deref, DerefMut},
};
use tokio::process::{Child, Command};

/// A child process. When it is dropped it is killed, and the drop returns after its end: then its locks and ports are free for the next
/// one. (Tokio's `kill_on_drop` alone returns while the process still ends.)
pub(super) struct Process(Child);

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        command.spawn().map(Self)
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.start_kill());
        let id = self.0.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let Some(id) = id else { return };
        // Tokio reaps it afterwards, so its status stays.
        let ended =
            rustix::io::retry_on_intr(|| waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
        debug_assert!(ended.is_ok(), "{ended:?}");
    }
}
