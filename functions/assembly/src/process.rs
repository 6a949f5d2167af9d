//! The environment, the identity and the resources of this process. Metrics have the names that every dashboard knows; values that the system does not
//! give are left out.

use processes::ProcessStat;
use std::{ffi::OsString, fmt::Write as _};

/// Hundredths of a second, in which `/proc` counts CPU time.
const TICKS: f64 = 100.0;

/// The variables whose names and values are texts.
pub fn environment() -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).collect()
}

/// The value of a variable.
pub fn variable<'a>(environment: &'a [(String, String)], name: &str) -> Option<&'a str> {
    environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The CPU time of this process so far, in seconds.
pub fn cpu_seconds() -> Option<f64> {
    Some(ProcessStat::of("self")?.cpu_ticks as f64 / TICKS)
}

/// The resident memory of this process, in bytes.
pub fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    Some(kilobytes.trim().parse::<u64>().ok()? * 1024)
}

/// The bytes that this process has written to disks so far.
pub fn written() -> Option<u64> {
    let io = std::fs::read_to_string("/proc/self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.trim().parse().ok()
}

/// Appends it all in Prometheus' text format. `started_at` is in milliseconds since 1970.
pub(crate) fn render(started_at: i64, out: &mut String) {
    let mut metric = |name: &str, sort: &str, help: &str, value: Option<String>| {
        if let Some(value) = value {
            let plain = name.split('{').next().unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = writeln!(out, "# HELP {plain} {help}\n# TYPE {plain} {sort}\n{name} {value}");
        }
    };
    let build = format!("buildscale_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    metric(&build, "gauge", "Which version this is.", Some("1".into()));
    let started = format!("{}.{:03}", started_at / 1000, started_at.rem_euclid(1000));
    metric("process_start_time_seconds", "gauge", "When this process began.", Some(started));
    let cpu = cpu_seconds().map(|seconds| seconds.to_string());
    metric("process_cpu_seconds_total", "counter", "CPU time that was used.", cpu);
    let resident = resident().map(|bytes| bytes.to_string());
    metric("process_resident_memory_bytes", "gauge", "Memory that is in use.", resident);
    let open = std::fs::read_dir("/proc/self/fd").ok().map(|files| files.count().to_string());
    metric("process_open_fds", "gauge", "Files and connections that are open.", open);
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn s10_4_a_process_tells_its_version_and_its_start() {
        let mut out = String::new();
        render(1_700_000_000_042, &mut out);
        let version = format!("buildscale_build_info{{version=\"{}\"}} 1\n", env!("CARGO_PKG_VERSION"));
        for line in [
            version.as_str(),
            "process_start_time_seconds 1700000000.042\n",
            "# TYPE process_start_time_seconds gauge\n",
        ] {
            assert!(out.contains(line), "{line} is not in\n{out}");
        }
        if cfg!(target_os = "linux") {
            for name in ["process_cpu_seconds_total ", "process_resident_memory_bytes ", "process_open_fds "] {
                let value = out.lines().find_map(|line| line.strip_prefix(name)?.parse::<f64>().ok());
                assert!(value.is_some_and(|value| value >= 0.0), "{name} is not in\n{out}");
            }
        }
    }
}
