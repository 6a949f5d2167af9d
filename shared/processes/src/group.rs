//! The process group of a program. Programs start processes of their own, and wrappers of package managers start the program: all of them end with
//! the group, also those that have left it (`strays`). Its leader is a shell that does nothing until its input ends, and then ends the group and the
//! marked processes outside of it: so they end with this process, too, also after `kill -9`.

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io,
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
};
use tokio::sync::watch;

/// The script of the guard; its argument is the mark. Without `/proc` or `grep` it ends the group alone.
const GUARD: &str = "trap '' 1 2 3 15
    read -r end
    for round in 1 2 3 4 5 6 7 8; do
        found=$(grep -lsF \"$1\" /proc/[0-9]*/environ)
        [ -n \"$found\" ] || break
        for it in $found; do it=${it#/proc/}; kill -KILL \"${it%/environ}\" 2>/dev/null; done
    done
    kill -KILL 0";
/// The variable with the marks of the groups that a process is in, with slashes between: a program in a group may start groups itself.
const MARKS: &str = "BUILDSCALE_PROCESS_GROUP";

/// A process group. Dropping it ends all of it.
#[derive(Debug)]
pub struct ProcessGroup {
    id: i32,
    /// Its own mark.
    mark: String,
    /// The guard, until the group begins to end.
    leader: Mutex<Option<Leader>>,
    /// Closed once the group has ended.
    ended: watch::Receiver<()>,
}

/// The guard, with the sender that is dropped once the group has ended.
type Leader = (Child, watch::Sender<()>);

impl ProcessGroup {
    /// A group with nothing but its guard.
    ///
    /// # Errors
    /// When `/bin/sh`, which guards it, cannot be started.
    pub fn new() -> io::Result<Self> {
        let mark = uuid::Uuid::now_v7().simple().to_string();
        let mut leader = Command::new("/bin/sh");
        leader.args(["-c", GUARD, "guard", &mark]);
        leader.env_clear().env("PATH", "/usr/bin:/bin").current_dir("/").process_group(0);
        leader.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let leader = leader.spawn()?;
        Ok(Self::of(leader.id().cast_signed(), mark, leader))
    }

    fn of(id: i32, mark: String, leader: Child) -> Self {
        let (ends, ended) = watch::channel(());
        Self { id, mark, leader: Mutex::new(Some((leader, ends))), ended }
    }

    /// Has a program start in the group, with its mark in the environment. A later `env_clear` would take the mark away.
    pub fn take_in(&self, command: &mut tokio::process::Command) {
        let marks = match std::env::var(MARKS) {
            Ok(outer) => format!("{outer}/{}", self.mark),
            Err(_) => self.mark.clone(),
        };
        command.process_group(self.id).env(MARKS, marks);
    }

    /// Begins to end all of it, and the processes that have left it. The number of the group is in use until its leader was waited for, so nothing
    /// else is hit; a second call does nothing.
    ///
    /// It reads the state and the environment of each process of the machine: some milliseconds for a few hundred, and more where a program has
    /// given its processes long environments. So in a runtime another thread does it; elsewhere it is done when this returns. A runtime that
    /// shuts down before that leaves it to the guard.
    pub fn kill(&self) {
        let Some(ending) = self.ending() else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || ending.run())),
            Err(_) => ending.run(),
        }
    }

    /// The same, and waits until all of it has ended, also where an earlier call has begun that.
    pub async fn end(&self) {
        self.kill();
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }

    fn ending(&self) -> Option<Ending> {
        let (leader, ends) = self.leader.lock().take()?;
        Some(Ending { id: self.id, mark: self.mark.clone(), leader, _ends: ends })
    }
}

/// The end of a group. One that is dropped instead closes the input of the guard, which then ends the group.
struct Ending {
    id: i32,
    mark: String,
    leader: Child,
    _ends: watch::Sender<()>,
}

impl Ending {
    fn run(mut self) {
        #[cfg(target_os = "linux")]
        crate::strays::end(self.id, MARKS, &self.mark, || self.kill_members());
        #[cfg(not(target_os = "linux"))]
        self.kill_members();
        if let Err(error) = self.leader.wait() {
            tracing::debug!(%error, "the guard of a process group was not waited for");
        }
    }

    fn kill_members(&self) {
        if let Some(group) = Pid::from_raw(self.id)
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::warn!(%error, group = self.id, "the processes of a group were not ended");
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};
    use tokio::{
        io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
        process::ChildStdout,
        time::timeout,
    };

    const PATIENCE: Duration = Duration::from_secs(60);

    /// The output of a line that runs in the group, once so many processes have said that they are there.
    async fn begun(group: &ProcessGroup, line: &str, processes: usize) -> BufReader<ChildStdout> {
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::piped());
        group.take_in(&mut command);
        let mut output = BufReader::new(command.spawn().unwrap().stdout.take().unwrap());
        for _ in 0..processes {
            let mut line = String::new();
            timeout(PATIENCE, output.read_line(&mut line)).await.unwrap().unwrap();
            assert_eq!(line, "begun\n");
        }
        output
    }

    /// All processes that hold the output open have ended.
    async fn ended(mut output: BufReader<ChildStdout>) {
        let mut rest = Vec::new();
        timeout(PATIENCE, output.read_to_end(&mut rest)).await.unwrap().unwrap();
        assert!(rest.is_empty());
    }

    /// A group of no process, and the input of its guard, which ends once that is dropped.
    fn of_no_process() -> (ProcessGroup, Option<std::process::ChildStdin>) {
        let mut guard = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let input = guard.stdin.take();
        (ProcessGroup::of(i32::MAX, uuid::Uuid::now_v7().simple().to_string(), guard), input)
    }

    #[tokio::test]
    async fn processes_in_sessions_of_their_own_end_with_the_group() {
        let group = ProcessGroup::new().unwrap();
        // A daemon, whose parent has ended; one of a program that has a group itself; and a child that has dropped its environment.
        let line = "sleeps='echo begun; exec sleep 100000'
            (setsid sh -c \"$sleeps\" &)
            (BUILDSCALE_PROCESS_GROUP=\"$BUILDSCALE_PROCESS_GROUP/0123\" setsid sh -c \"$sleeps\" &)
            env -i PATH=\"$PATH\" setsid sh -c \"$sleeps\" &
            wait";
        let output = begun(&group, line, 3).await;
        group.kill();
        ended(output).await;
    }

    #[tokio::test]
    async fn the_end_of_a_group_holds_up_no_other_task_of_its_thread() {
        let (group, input) = of_no_process();
        tokio::join!(group.end(), async { drop(input) });
        assert!(group.ended.has_changed().is_err(), "it has ended");
    }

    #[tokio::test]
    async fn the_end_of_a_group_is_waited_for_also_when_another_call_has_begun_it() {
        let (group, input) = of_no_process();
        group.kill();
        let mut end = pin!(group.end());
        let is_pending = poll_fn(|context| Poll::Ready(end.as_mut().poll(context).is_pending())).await;
        assert!(is_pending, "the guard runs");
        drop(input);
        timeout(PATIENCE, end).await.unwrap();
    }

    #[tokio::test]
    async fn processes_in_sessions_of_their_own_end_with_this_process() {
        let group = ProcessGroup::new().unwrap();
        let output = begun(&group, "setsid sh -c 'echo begun; exec sleep 100000'", 1).await;
        // A killed process leaves nothing, and so not its end of the pipe.
        drop(group.leader.lock().as_mut().and_then(|(guard, _)| guard.stdin.take()));
        ended(output).await;
    }
}
