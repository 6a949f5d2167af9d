//! The process group of an agent. Agents start processes of their own, and wrappers of package managers start the agent: all of them end with
//! the group. Its leader is a shell that does nothing until its input ends, and then ends the group: so it ends with this process, too, also
//! after `kill -9`.

use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io,
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
};

const GUARD: &str = "trap '' 1 2 3 15; read -r end; kill -KILL 0";

#[derive(Debug)]
pub(crate) struct Group {
    id: i32,
    leader: Mutex<Option<Child>>,
}

impl Group {
    /// A group with nothing but its guard.
    pub fn new() -> io::Result<Self> {
        let mut leader = Command::new("/bin/sh");
        leader.args(["-c", GUARD]).env_clear().current_dir("/").process_group(0);
        leader.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let leader = leader.spawn()?;
        Ok(Self { id: leader.id().cast_signed(), leader: Mutex::new(Some(leader)) })
    }

    pub fn id(&self) -> i32 {
        self.id
    }

    /// Ends all of it. The number of the group is in use until its leader was waited for, so nothing else is hit; a second call does nothing.
    pub fn kill(&self) {
        let Some(mut leader) = self.leader.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        if let Some(group) = Pid::from_raw(self.id)
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::warn!(%error, group = self.id, "the processes of an agent were not ended");
        }
        if let Err(error) = leader.wait() {
            tracing::debug!(%error, "the guard of an agent was not waited for");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
