//! The state of a process, as `/proc/<number>/stat` has it (proc_pid_stat(5)).

use std::{fmt, fs};

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// Whether it has ended, and at most waits for its parent to take note of that.
    pub has_ended: bool,
    /// The number of its parent.
    pub parent: i32,
    /// The number of its process group.
    pub group: i32,
    /// Its CPU time, in ticks.
    pub cpu_ticks: u64,
    /// The CPU time of its child processes that it has waited for, in ticks.
    pub children_cpu_ticks: u64,
    /// When it started, in ticks since the machine did: with its number, this names it for good.
    pub started: u64,
}

impl ProcessStat {
    /// That of a process by its number, or of `self`. None where there is no such process, and where the system has no `/proc`.
    pub fn of(process: impl fmt::Display) -> Option<Self> {
        // A process may give itself a name of any bytes, and must not hide by that.
        let bytes = fs::read(format!("/proc/{process}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(stat: &str) -> Option<Self> {
        // The second field is a name in brackets, with anything in it; these are the third and those after it.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
        let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
        Some(Self {
            has_ended: matches!(fields.first(), Some(&("Z" | "X"))),
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            cpu_ticks: number(11)? + number(12)?,
            children_cpu_ticks: number(13)? + number(14)?,
            started: number(19)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_a_name_with_anything_in_it() {
        let stat = "7 (a) b) (S 1 2) Z 3 5 5 0 -1 4194560 1 2 3 4 10 20 300 400 20 0 1 0 98765 0 0\n";
        let read = ProcessStat {
            has_ended: true,
            parent: 3,
            group: 5,
            cpu_ticks: 30,
            children_cpu_ticks: 700,
            started: 98765,
        };
        assert_eq!(ProcessStat::parse(stat), Some(read));
        let running = stat.replace(") Z 3", ") S 3");
        assert_eq!(ProcessStat::parse(&running), Some(ProcessStat { has_ended: false, ..read }));
        for broken in ["", "7 (a", "7 (a) S 1 2", running.replace("98765", "x").as_str()] {
            assert_eq!(ProcessStat::parse(broken), None, "{broken}");
        }
    }
}
