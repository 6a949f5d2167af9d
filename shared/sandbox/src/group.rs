//! The process group of a command: all processes of the command are found and ended by it.
//!
//! Its leader is a guard: a shell of the host's, which nothing confines, that does nothing until its input ends, and then ends the group with
//! itself. Only this process has the other end of that pipe, so the group ends with this process in any case, also after `kill -9`. (The
//! kernel's own means, `PR_SET_PDEATHSIG`, is about the thread that starts a process, which here ends at once, and about none of that
//! process's children.) The group exists before the command, which can neither leave it nor reach the guard ([`crate::confine`]); and as
//! long as the guard is not waited for, the kernel does not reuse its number, so that only the command can be hit.

use crate::plan::PATH;
use processes::ProcessStat;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, kill_process_group, prlimit};
use std::{
    collections::HashMap,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    process::{Child, Command, Stdio},
};

/// The script of the guard. It survives every signal to the whole group but a SIGKILL or a SIGSTOP; by number, since shells differ in
/// names.
const GUARD: &str = "trap '' 1 2 3 4 5 6 7 8 10 11 12 13 14 15 16 20 21 22 23 24 25 26 27 28 29 30 31 \
    34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
    echo; read -r end; kill -KILL 0";

/// A group with all processes of the command.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Child,
}

impl Group {
    /// One with nothing but its guard.
    ///
    /// # Errors
    /// When its guard cannot be started, or ends before it is on guard.
    pub fn new() -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let mut leader = Command::new("sh");
        leader.args(["-c", GUARD]).env_clear().env("PATH", PATH).current_dir("/").process_group(0);
        leader.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut group = Self { leader: leader.spawn()? };
        // It says when it is on guard.
        if let Some(mut said) = group.leader.stdout.take() {
            said.read_exact(&mut [0])?;
        }
        Ok(group)
    }

    /// Its number.
    pub fn id(&self) -> i32 {
        self.leader.id().cast_signed()
    }

    /// Ends all that is in it now. The kernel does that at once for all of them: none can start another in between.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Does something while the group is paused, and nothing is started: so its processes cannot outrun it.
    pub fn paused<T>(&self, work: impl FnOnce() -> T) -> T {
        self.signal(Signal::STOP);
        // Not the guard: if this process ended now, the guard would stay stopped.
        if let Some(guard) = Pid::from_raw(self.id()) {
            let _ = kill_process(guard, Signal::CONT);
        }
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

    /// Bytes of the files that it has open and that are unlinked.
    pub fn unlinked(&self) -> u64 {
        let files =
            |member: Pid| std::fs::read_dir(format!("/proc/{}/fd", member.as_raw_nonzero())).into_iter().flatten();
        let open = self.members().into_iter().flat_map(files).flatten();
        let found = open.filter_map(|entry| std::fs::metadata(entry.path()).ok());
        let nameless: HashMap<(u64, u64), u64> = found
            .filter(|file| file.is_file() && file.nlink() == 0)
            .map(|file| ((file.dev(), file.ino()), file.blocks() * 512))
            .collect();
        nameless.values().sum()
    }

    fn has(&self, process: i32) -> bool {
        ProcessStat::of(process).is_some_and(|stat| !stat.has_ended && stat.group == self.id())
    }

    /// Sets limits for all processes in it, and so for their children.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::{
        ffi::OsStrExt,
        process::{CommandExt, ExitStatusExt},
    };

    #[test]
    fn a_name_that_is_no_text_hides_no_member() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join(std::ffi::OsStr::from_bytes(b"x\xff"));
        std::os::unix::fs::symlink("/bin/cat", &program)?;
        let group = Group::new()?;
        let mut named = Command::new(&program);
        let mut named =
            named.arg0("cat").process_group(group.id()).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let members: Vec<i32> = group.members().into_iter().map(Pid::as_raw_pid).collect();
        assert_eq!(members, [named.id().cast_signed()]);
        drop(group);
        named.wait()?;
        Ok(())
    }

    #[test]
    fn a_group_ends_with_its_holder() -> io::Result<()> {
        let mut group = Group::new()?;
        let stubborn = "trap '' HUP TERM; echo; while :; do sleep 1000; done";
        let mut sleeper = Command::new("sh");
        sleeper.args(["-c", stubborn]).process_group(group.id()).stdout(Stdio::piped());
        let mut sleeper = sleeper.spawn()?;
        let begun = sleeper.stdout.take().map(|mut output| output.read_exact(&mut [0]));
        assert_eq!(begun.transpose()?, Some(()));
        // Signals that a command may send to its own group do not help it: the guard stays.
        for signal in [Signal::TERM, Signal::HUP, Signal::STOP, Signal::CONT] {
            group.signal(signal);
        }
        assert!(sleeper.try_wait()?.is_none());
        // Nor does one that ends others: only the guard is asked, and answers by being there.
        if let Some(guard) = Pid::from_raw(group.id()) {
            for signal in [Signal::ABORT, Signal::PROF, Signal::SYS, Signal::XCPU, Signal::VTALARM] {
                kill_process(guard, signal)?;
            }
        }
        // A killed process leaves nothing, and so not its end of the pipe.
        drop(group.leader.stdin.take());
        assert_eq!(sleeper.wait()?.signal(), Some(9));
        Ok(())
    }
}
