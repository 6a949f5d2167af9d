//! The usage of processes, all of them together, from `/proc`.

use std::fs;

/// A file of a process in `/proc`; none once the process has ended. A process may give itself a name of any bytes, so those that are no text are
/// replaced: else it could hide from its limits.
fn text_of(process: i32, file: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{process}/{file}")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The usage of several processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Their threads.
    pub tasks: usize,
    /// Bytes that they have in memory or in swap and that are not on a disk: their own, and those that they share.
    pub memory: u64,
}

impl Usage {
    /// Of these processes. Memory that several share is counted for each of them, until that comes to more than `most`: then it is
    /// counted once, which takes longer.
    pub fn of(processes: &[i32], most: u64) -> Self {
        let read = |file| move |process: &i32| text_of(*process, file);
        let mut used = Self::default();
        for text in processes.iter().filter_map(read("status")) {
            used.tasks += usize::try_from(number(&text, "Threads:")).unwrap_or_default();
            used.memory += kilobytes(&text, &["RssAnon:", "RssShmem:", "VmSwap:"]);
        }
        if used.memory > most {
            let shared = processes.iter().filter_map(read("smaps_rollup"));
            used.memory = shared.map(|text| kilobytes(&text, &["Pss_Anon:", "Pss_Shmem:", "SwapPss:"])).sum();
        }
        used
    }
}

fn kilobytes(text: &str, names: &[&str]) -> u64 {
    names.iter().map(|name| number(text, name)).sum::<u64>() << 10
}

/// The number behind a name at the beginning of a line.
fn number(text: &str, name: &str) -> u64 {
    let found = text.lines().find_map(|line| line.strip_prefix(name));
    found.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_names() {
        let text = "Name:\tThreads: 7\nRssAnon:\t     12 kB\nRssFile:\t 4000 kB\nRssShmem:\t      3 kB\nThreads:\t5\n";
        assert_eq!((number(text, "Threads:"), number(text, "VmSwap:")), (5, 0));
        assert_eq!(kilobytes(text, &["RssAnon:", "RssShmem:", "VmSwap:"]), 15 << 10);
    }

    #[test]
    fn a_name_that_is_no_text_hides_no_process() {
        let named = std::thread::spawn(|| {
            rustix::thread::set_name(c"x\xff")
                .map(|()| Usage::of(&[rustix::thread::gettid().as_raw_nonzero().get()], u64::MAX))
        });
        let used = named.join().expect("it does not panic").expect("it is named");
        assert!(used.tasks >= 1 && used.memory > 4096, "{used:?}");
    }

    #[test]
    fn this_process_uses_something_and_one_that_is_gone_uses_nothing() {
        let own = std::process::id().cast_signed();
        let used = Usage::of(&[own], u64::MAX);
        assert!(used.tasks >= 1 && used.memory > 4096, "{used:?}");
        // Memory that it shares with no process is the same in both ways of counting.
        assert!(Usage::of(&[own], 0).memory > 4096);
        assert_eq!(Usage::of(&[i32::MAX], 0), Usage::default());
    }
}
