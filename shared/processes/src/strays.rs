//! Processes that a program started and that have left its process group: those in a session of their own (`setsid`), and daemons, whose parents
//! have ended.
//!
//! A process is found by its mark, a variable of the environment that each child inherits, and by its parents for as long as these run. One that
//! drops its environment and its parents is not found: a program runs as the person who has it run, and may do all that this person may. Nothing
//! of the kernel's holds such a process without a privilege: a process namespace would take the sandboxes of agents away, and a cgroup has to
//! be delegated.

use crate::ProcessStat;
use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
};
use std::{
    collections::{BTreeSet, HashSet},
    fs,
    io::Read as _,
};

/// How often it is looked for processes that were started while others were ended.
const ROUNDS: usize = 16;
/// How much of an environment is read, in bytes. A program begins with 6 MiB at the most, and a process may say later that all of its memory is one.
const ENVIRONMENT: u64 = 8 * 1024 * 1024;

/// A process of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
    /// When it started, in ticks since the machine did: with its number, this names it for good.
    started: u64,
    is_marked: bool,
}

/// Ends the processes that have `mark` among the marks of the variable `marks` of their environment, and those below them and below the process group
/// `group`; the group itself is ended by `end_group`, once the processes below it are known.
pub(crate) fn end(group: i32, marks: &str, mark: &str, end_group: impl FnOnce()) {
    let first = strays(&processes(marks, mark), group);
    end_group();
    first.iter().for_each(Process::kill);
    let mut ended: HashSet<Process> = first.into_iter().collect();
    for _ in 0..ROUNDS {
        let found = strays(&processes(marks, mark), group);
        let new: Vec<Process> = found.into_iter().filter(|found| ended.insert(*found)).collect();
        if new.is_empty() {
            return;
        }
        new.iter().for_each(Process::kill);
    }
    tracing::warn!(group, "the processes of a group start others faster than they are ended");
}

/// The processes that are marked or have a parent in the group or among these, without the group's own.
fn strays(all: &[Process], group: i32) -> BTreeSet<Process> {
    let mut known: HashSet<i32> =
        all.iter().filter(|one| one.is_marked || one.group == group).map(|one| one.id).collect();
    loop {
        let below: Vec<i32> = all.iter().filter(|one| known.contains(&one.parent)).map(|one| one.id).collect();
        let before = known.len();
        known.extend(below);
        if known.len() == before {
            break;
        }
    }
    let own = std::process::id().cast_signed();
    all.iter().filter(|one| known.contains(&one.id) && one.group != group && one.id != own).copied().collect()
}

/// The processes that have not ended.
fn processes(marks: &str, mark: &str) -> Vec<Process> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter_map(|number| Process::look(number, marks, mark)).collect()
}

impl Process {
    fn look(id: i32, marks: &str, mark: &str) -> Option<Self> {
        let ProcessStat { parent, group, started, .. } = ProcessStat::of(id).filter(|stat| !stat.has_ended)?;
        let mut environment = Vec::new();
        // The environment of another user's process cannot be read.
        if let Ok(file) = fs::File::open(format!("/proc/{id}/environ")) {
            let _ = file.take(ENVIRONMENT).read_to_end(&mut environment);
        }
        let is_marked = environment.split(|byte| *byte == 0).any(|variable| has_mark(variable, marks, mark));
        Some(Self { id, parent, group, started, is_marked })
    }

    /// Ends it, and no other process that has its number since.
    fn kill(&self) {
        let Some(id) = Pid::from_raw(self.id) else { return };
        let process = pidfd_open(id, PidfdFlags::empty());
        // After the open: the descriptor stays that of the process whose start is compared here.
        if Self::look(self.id, "", "").is_none_or(|now| now.started != self.started) {
            return;
        }
        let killed = match process {
            Ok(process) => pidfd_send_signal(process, Signal::KILL),
            Err(Errno::SRCH) => Ok(()),
            // A kernel before Linux 5.3, or a container that does not let this call through.
            Err(_) => kill_process(id, Signal::KILL),
        };
        if let Err(error) = killed
            && error != Errno::SRCH
        {
            tracing::warn!(%error, process = self.id, "a process that has left its group was not ended");
        }
    }
}

/// Whether `variable`, such as `MARKS=one/two`, is the one with the marks, and has this mark.
fn has_mark(variable: &[u8], marks: &str, mark: &str) -> bool {
    let value = variable.strip_prefix(marks.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
    value.is_some_and(|value| value.split(|byte| *byte == b'/').any(|one| one == mark.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: i32, parent: i32, group: i32, is_marked: bool) -> Process {
        Process { id, parent, group, started: 7, is_marked }
    }

    #[test]
    fn strays_are_marked_or_below_the_group_or_below_another_stray() {
        let all = [
            process(10, 1, 10, false),
            process(11, 10, 10, true),
            process(12, 11, 12, false),
            process(13, 12, 12, false),
            process(14, 1, 14, true),
            process(15, 14, 15, false),
            process(16, 1, 16, false),
            process(17, 16, 16, false),
        ];
        let found: Vec<i32> = strays(&all, 10).iter().map(|one| one.id).collect();
        assert_eq!(found, [12, 13, 14, 15]);
    }

    #[test]
    fn this_process_is_found_with_its_start_and_is_not_marked() {
        let own = std::process::id().cast_signed();
        let found = Process::look(own, "NO_SUCH_VARIABLE", "1");
        assert!(found.is_some_and(|own| own.started > 0 && own.parent > 0 && !own.is_marked), "{found:?}");
    }

    #[test]
    fn a_mark_is_one_of_those_of_its_variable() {
        let has = |variable: &str| has_mark(variable.as_bytes(), "MARKS", "one");
        assert!(has("MARKS=one") && has("MARKS=outer/one") && has("MARKS=one/inner"));
        assert!(!has("MARKS=ones") && !has("OTHER=one") && !has("MARKS") && !has("") && !has("MARKS=outer/two"));
    }
}
