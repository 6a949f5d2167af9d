//! `buildscale backup` and `buildscale restore`: they act on a data folder of this machine, whether a hub runs on it or not.

use super::failed;
use crate::backup::{self, BackupJob, Progress, RestoreJob, Summary};
use clap::Args;
use cli::{CliError, Output, counted};
use serde_json::json;
use std::{path::PathBuf, time::Duration};
use tokio::time::Instant;

/// How often a line is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(200);
/// How many damaged files are named.
const NAMED: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The folder of the backup; one that has an earlier backup of this hub is brought up to date
    #[arg(value_name = "DIR")]
    pub(crate) into: PathBuf,
    /// The data folder of the hub
    #[arg(long, value_name = "DIR", env = "BUILDSCALE_DATA_DIR", default_value = "data")]
    pub(crate) data_dir: PathBuf,
    /// Take along buildscale.toml and the folder of secrets from there
    #[arg(long)]
    pub(crate) with_secrets: bool,
    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The folder of the backup
    #[arg(value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// The data folder to restore into; it must be empty, and no hub may run there
    #[arg(long, value_name = "DIR", env = "BUILDSCALE_DATA_DIR", default_value = "data")]
    pub(crate) data_dir: PathBuf,
    /// Move the content of the data folder into a folder of its own there
    #[arg(long)]
    pub(crate) replace: bool,
    /// Restore the intact files of a backup in which others are damaged or missing
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Only compare the backup with its digests; nothing is written
    #[arg(long, conflicts_with_all = ["replace", "keep_going"])]
    pub(crate) check: bool,
    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// `buildscale backup`.
pub(crate) async fn back_up(args: BackupArgs, out: &mut Output) -> Result<(), CliError> {
    let making = BackupJob { data: &args.data_dir, into: &args.into, with_secrets: args.with_secrets };
    let made = backup::make(making, &mut drawn(out)).await.map_err(failed)?;
    print_summary(&made, "copied", out)?;
    for damaged in made.damaged.iter().take(NAMED) {
        out.problem(&format!("the content {damaged} is damaged in the data folder, and is not in the backup"), None)?;
    }
    if !made.left_out.is_empty() {
        out.notice(format_args!("left out, as without --with-secrets: {}", made.left_out.join(", ")))?;
    }
    Ok(())
}

/// `buildscale restore`.
pub(crate) fn restore(args: &RestoreArgs, out: &mut Output) -> Result<(), CliError> {
    if args.check {
        let checked = backup::check(&args.from, &mut drawn(out)).map_err(failed)?;
        return print_summary(&checked, "read, all intact", out);
    }
    let RestoreArgs { from, data_dir, replace, keep_going, .. } = args;
    let restoring = RestoreJob { from, data: data_dir, replace: *replace, keep_going: *keep_going };
    let restored = backup::restore(restoring, &mut drawn(out)).map_err(failed)?;
    print_summary(&restored, "restored", out)?;
    for damaged in restored.damaged.iter().take(NAMED) {
        out.problem(&format!("{damaged} is damaged or missing in the backup, and was left out"), None)?;
    }
    if let Some(moved) = &restored.moved_to {
        out.notice(format_args!("the earlier content is in {}; remove it when you do not need it", moved.display()))?;
    }
    Ok(())
}

/// Shows how far it has come, a few times a second.
fn drawn(out: &mut Output) -> impl FnMut(Progress) + '_ {
    let mut last: Option<(Instant, &'static str)> = None;
    move |Progress { part, files, bytes }| {
        let now = Instant::now();
        if last.is_none_or(|(at, before)| before != part || now.duration_since(at) >= DRAWN_EVERY) {
            last = Some((now, part));
            // A line that cannot be drawn is not reported: there is no other place to report it.
            drop(out.draw(&format!("{part}: {}, {}", counted(files, "file"), size(bytes))));
        }
    }
}

fn print_summary(summary: &Summary, what: &str, out: &mut Output) -> Result<(), CliError> {
    let Summary { made_at, files, bytes, copied_files, copied_bytes, damaged, left_out, moved_to, took } = summary;
    if out.is_json() {
        let seconds = (took.as_secs_f64() * 1000.0).round() / 1000.0;
        return out.json(&json!({
            "made_at": made_at, "files": files, "bytes": bytes, "copied_files": copied_files, "copied_bytes": copied_bytes,
            "damaged": damaged, "left_out": left_out, "moved_to": moved_to, "seconds": seconds,
        }));
    }
    out.progress(format_args!(
        "{} {what}, {}, in {:.1} s; the backup of {made_at} has {}, {}",
        counted(*copied_files, "file"),
        size(*copied_bytes),
        took.as_secs_f64(),
        counted(*files, "file"),
        size(*bytes)
    ))
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    let decimals = usize::from(unit > 0);
    format!("{size:.decimals$} {}", UNITS.get(unit).unwrap_or(&""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_units_that_fit() {
        for (bytes, told) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(size(bytes), told);
        }
    }
}
