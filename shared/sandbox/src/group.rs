//! The process group of a command: by it everything that the command started is found and ended.
//!
//! Its leader is a process that ends at once and is not waited for until the end. So the group is there before the command is, which
//! cannot leave it ([`crate::confine`]); and as long as the leader is not waited for, the kernel gives its number to nobody else, so
//! that nothing but the command can be hit.

use crate::plan::PATH;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};
use std::{
    io,
    process::{Child, Command, Stdio},
};

/// A group with whatever the command started.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Child,
}

impl Group {
    /// An empty one.
    pub fn new() -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let mut leader = Command::new("true");
        leader.env_clear().env("PATH", PATH).process_group(0);
        leader.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { leader: leader.spawn()? })
    }

    /// Its number.
    pub fn id(&self) -> i32 {
        self.leader.id().cast_signed()
    }

    /// Ends all that is in it now. The kernel does that at once for all of them: none can start another in between.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Does something while nothing in it goes on, and nothing is started: it cannot be overtaken by what it looks at.
    pub fn paused<T>(&self, work: impl FnOnce() -> T) -> T {
        self.signal(Signal::STOP);
        let done = work();
        self.signal(Signal::CONT);
        done
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.id())
            && let Err(error) = kill_process_group(group, signal)
        {
            tracing::error!(%error, group = self.id(), ?signal, "a command cannot be reached");
        }
    }

    /// The processes that are in it, and not over.
    pub fn members(&self) -> Vec<Pid> {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        numbers.filter(|number| *number != self.id() && self.has(*number)).filter_map(Pid::from_raw).collect()
    }

    fn has(&self, process: i32) -> bool {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
        // The name before it may have anything in it.
        let Some((_, after)) = stat.rsplit_once(") ") else { return false };
        let mut fields = after.split(' ');
        let (state, group) = (fields.next(), fields.nth(1));
        !matches!(state, Some("Z" | "X")) && group.and_then(|group| group.parse().ok()) == Some(self.id())
    }

    /// Sets limits for all that is in it, and so for whatever they start.
    pub fn limit(&self, limits: &[(Resource, u64)]) {
        self.paused(|| {
            for member in self.members() {
                for (resource, most) in limits {
                    let limit = Rlimit { current: Some(*most), maximum: Some(*most) };
                    // It may have ended; a limit that is lower already cannot be raised.
                    let _ = prlimit(Some(member), *resource, limit);
                }
            }
        });
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        let _ = self.leader.wait();
    }
}
