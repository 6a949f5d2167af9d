//! The conditions of a run.

use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};

/// Processors, kernel, file system and commit: the conditions of the figures.
pub(crate) fn conditions(home: &Path) -> Value {
    let first = |text: String| text.lines().next().unwrap_or_default().trim().to_owned();
    let read = |path: &str| fs::read_to_string(path).map(first).unwrap_or_default();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    let commit = git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".into());
    json!({
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "cpu": model.trim_start_matches([' ', '\t', ':']),
        "kernel": read("/proc/sys/kernel/osrelease"),
        "file_system": file_system(home),
        "commit": if changed { format!("{commit} and changes") } else { commit },
        "profile": if cfg!(debug_assertions) { "DEBUG: these figures mean nothing" } else { "release" },
    })
}

/// The kind and the options of the file system that `path` is on.
fn file_system(path: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mount = mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?, fields.next()?))
        })
        .filter(|(place, _, _)| path.starts_with(place))
        .max_by_key(|(place, _, _)| place.len());
    mount.map_or_else(|| "unknown".into(), |(_, kind, options)| format!("{kind} ({options})"))
}
