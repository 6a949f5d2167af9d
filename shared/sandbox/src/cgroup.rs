//! A control group (version 2) for all processes of a command, if the host has been given a part of the tree: by systemd (`Delegate=yes`)
//! or as the root of a container's cgroup namespace. Else process 1 of the command's namespaces adds up their usage.
//!
//! A group with controllers has no processes of its own, so the host and its children move into a group beside those of its commands, once.

use crate::options::Limits;
use domain::CallId;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

const MOUNTED: &str = "/sys/fs/cgroup";
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
/// The share of a contended CPU: a command gets a fifth of the host's share.
const WEIGHT: &str = "20";

/// How often the host tries to leave its group with its children.
const ATTEMPTS: usize = 8;

/// The group of one command; removed when this is dropped, which is when nothing is left in it.
#[derive(Debug)]
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// A group for a command; none if the host may make none, which is logged once.
    pub fn make(call: CallId, limits: &Limits) -> Option<Self> {
        static DELEGATED: OnceLock<Option<PathBuf>> = OnceLock::new();
        let found = DELEGATED.get_or_init(|| match delegated() {
            Ok(at) => {
                tracing::info!(cgroup = %at.display(), "a cgroup holds the memory, threads and CPU of each command");
                Some(at)
            }
            Err(why) => {
                tracing::info!(
                    why,
                    "memory and threads of commands are added up several times a second, and CPU is shared"
                );
                None
            }
        });
        let made = Self::within(found.as_deref()?, &call.to_string(), limits);
        made.inspect_err(|error| tracing::warn!(%error, "a command has no cgroup of its own")).ok()
    }

    fn within(parent: &Path, name: &str, limits: &Limits) -> io::Result<Self> {
        let group = Self(parent.join(name));
        fs::create_dir(&group.0)?;
        // Files in `/tmp` are in memory.
        group.set("memory.max", &(limits.memory.saturating_add(limits.scratch)).to_string())?;
        group.set("memory.oom.group", "1")?;
        // Process 1 and its threads are in it, too.
        group.set("pids.max", &(limits.processes + 8).to_string())?;
        group.set("cpu.weight", WEIGHT)?;
        // Not every kernel has swap.
        let _ = group.set("memory.swap.max", "0");
        Ok(group)
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.0.join(file), value)
    }

    /// Puts a process into it, with all that it starts from now on.
    ///
    /// # Errors
    /// Those of the kernel: the process has ended, or the group takes no more.
    pub fn add(&self, process: u32) -> io::Result<()> {
        self.set("cgroup.procs", &process.to_string())
    }

    /// Whether the kernel ended it because it had no more memory.
    pub fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.0.join("memory.events")).unwrap_or_default();
        let killed = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        killed.is_some_and(|times| times.trim() != "0")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = self.set("cgroup.kill", "1");
        if let Err(error) = fs::remove_dir(&self.0) {
            tracing::warn!(%error, cgroup = %self.0.display(), "a cgroup is left behind");
        }
    }
}

/// The group that is the host's to divide, prepared for that.
fn delegated() -> Result<PathBuf, String> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = unified(&own).ok_or("this machine has no cgroups of version 2")?;
    let at = Path::new(MOUNTED).join(own.trim_start_matches('/'));
    let has = fs::read_to_string(at.join("cgroup.controllers")).unwrap_or_default();
    if let Some(missing) = CONTROLLERS.iter().find(|one| !has.split_whitespace().any(|other| other == **one)) {
        return Err(format!("its cgroup has no controller {missing}"));
    }
    // Else the tree is somebody else's, though root could write to it.
    if own != "/" && !["user.delegate", "trusted.delegate"].iter().any(|mark| is_marked(&at, mark)) {
        return Err("its cgroup is not delegated to it (`Delegate=yes` of a systemd service)".into());
    }
    claim(&at).map_err(|error| format!("its cgroup cannot be divided: {error}"))?;
    Ok(at)
}

/// The path of a process in the tree of version 2.
fn unified(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

fn is_marked(at: &Path, mark: &str) -> bool {
    let mut value = [0; 8];
    rustix::fs::getxattr(at, mark, &mut value).is_ok_and(|length| value.get(..length) == Some(b"1"))
}

fn claim(at: &Path) -> io::Result<()> {
    let host = at.join("hub");
    match fs::create_dir(&host) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let all = CONTROLLERS.map(|one| format!("+{one}")).join(" ");
    let mut divided = Ok(());
    // A child that was started before the last one was moved is in the old group, and comes along with the next attempt.
    for _ in 0..ATTEMPTS {
        for process in fs::read_to_string(at.join("cgroup.procs"))?.split_whitespace() {
            // One that has ended by now needs no group.
            let _ = fs::write(host.join("cgroup.procs"), process);
        }
        divided = fs::write(at.join("cgroup.subtree_control"), &all);
        if divided.is_ok() {
            break;
        }
    }
    divided
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_its_bounds_and_says_when_memory_ran_out() -> io::Result<()> {
        let tree = tempfile::tempdir()?;
        let limits = Limits { memory: 1000, scratch: 24, processes: 10, ..Limits::default() };
        let group = Cgroup::within(tree.path(), "one", &limits)?;
        group.add(7)?;
        let said = |file: &str| fs::read_to_string(tree.path().join("one").join(file));
        let bounds = ["memory.max", "memory.oom.group", "pids.max", "cpu.weight", "cgroup.procs"].map(said);
        let bounds: Vec<String> = bounds.into_iter().collect::<io::Result<_>>()?;
        assert_eq!(bounds, ["1024", "1", "18", "20", "7"]);
        assert!(!group.ran_out_of_memory());
        group.set("memory.events", "low 0\noom 1\noom_kill 0\n")?;
        assert!(!group.ran_out_of_memory());
        group.set("memory.events", "low 0\noom 1\noom_kill 3\n")?;
        assert!(group.ran_out_of_memory());
        Ok(())
    }

    #[test]
    fn the_host_moves_aside_before_it_divides_its_group() -> io::Result<()> {
        let tree = tempfile::tempdir()?;
        // A kernel takes them from there as they come to another group.
        fs::write(tree.path().join("cgroup.procs"), format!("1\n{}\n", std::process::id()))?;
        for _ in 0..2 {
            claim(tree.path())?;
        }
        let moved = fs::read_to_string(tree.path().join("hub/cgroup.procs"))?;
        assert_eq!(moved, std::process::id().to_string());
        assert_eq!(fs::read_to_string(tree.path().join("cgroup.subtree_control"))?, "+cpu +memory +pids");
        assert_eq!(unified("4:memory:/a\n0::/b.slice/c\n"), Some("/b.slice/c"));
        assert_eq!(unified("4:memory:/a\n"), None);
        Ok(())
    }
}
