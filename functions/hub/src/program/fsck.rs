//! `buildscale fsck`: checks a data folder of this machine.

use super::failed;
use crate::fsck::{self, Summary};
use clap::Args;
use cli::{CliError, Exit, Output, counted};
use serde_json::json;
use std::path::PathBuf;
use workspace::{FsckFault, FsckPart};

/// How many faults are shown; all of them are counted, and `--json` has all.
const SHOWN: usize = 1_000;

#[derive(Debug, Args)]
pub(crate) struct FsckArgs {
    /// The data folder of the hub, which must not run
    #[arg(long, value_name = "DIR", env = "BUILDSCALE_DATA_DIR", default_value = "data")]
    pub(crate) data_dir: PathBuf,
    /// Repair what can be repaired; without it nothing is written
    #[arg(long)]
    pub(crate) repair: bool,
    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// `buildscale fsck`.
pub(crate) async fn run(args: FsckArgs, out: &mut Output) -> Result<Exit, CliError> {
    let is_json = out.is_json();
    let mut faults: Vec<FsckFault> = Vec::new();
    let mut keep = |fault: &FsckFault| {
        if is_json || faults.len() < SHOWN {
            faults.push(fault.clone());
        }
    };
    let summary = fsck::check(&args.data_dir, args.repair, &mut keep).await.map_err(failed)?;
    let exit = if summary.is_sound() { Exit::Done } else { Exit::Failed };
    let Summary { store, checked } = &summary;
    if is_json {
        out.json(&json!({ "sound": summary.is_sound(), "store": store, "checked": checked, "faults": faults }))?;
        return Ok(exit);
    }
    for line in store {
        out.line(format_args!("store: {line}"))?;
    }
    for fault in &faults {
        out.line(fault_line(fault))?;
    }
    if checked.faults > faults.len() as u64 {
        out.line(format_args!("… and {} more; --json shows all", checked.faults - faults.len() as u64))?;
    }
    out.line(format_args!(
        "checked {}, {}, {}, {}, {} ({}), {} of latest/",
        counted(checked.workspaces, "workspace"),
        counted(checked.folders, "folder"),
        counted(checked.files, "file"),
        counted(checked.versions, "version"),
        counted(checked.contents, "content"),
        counted(checked.bytes, "byte"),
        counted(checked.mirrored, "path")
    ))?;
    if checked.without_mirror > 0 {
        let without = counted(checked.without_mirror, "workspace");
        out.line(format_args!(
            "latest/ of {without} is not there, as after a restore: the hub makes it when it starts"
        ))?;
    }
    out.line(match (store.is_empty(), checked.faults, checked.faults - checked.repaired) {
        (false, ..) => "the store is damaged: restore a backup".to_owned(),
        (true, 0, _) => "no faults".to_owned(),
        (true, faults, 0) => format!("{}, all repaired", counted(faults, "fault")),
        (true, faults, left) if args.repair => {
            format!("{}, {left} of them not repaired: a backup may have the contents", counted(faults, "fault"))
        }
        (true, faults, _) => format!("{}; --repair repairs those that can be", counted(faults, "fault")),
    })?;
    Ok(exit)
}

/// One line: the workspace, the store, the place, the fault.
fn fault_line(fault: &FsckFault) -> String {
    let part = match fault.part {
        FsckPart::Index => "index",
        FsckPart::Links => "links",
        FsckPart::Archive => "archive",
        FsckPart::Mirror => "mirror",
    };
    let mut line = format!("{} {part}", fault.workspace_id);
    if let Some(path) = &fault.path {
        // A name can have any character that is no control character; one that is damaged can have those, too.
        line.extend([' '].into_iter().chain(path.chars().map(|c| if c.is_control() { '?' } else { c })));
    } else if let Some(id) = &fault.file_id {
        line.push_str(&format!(" {id}"));
    }
    if let Some(v) = fault.v {
        line.push_str(&format!(" v{v}"));
    }
    let repaired = if fault.repaired { " (repaired)" } else { "" };
    format!("{line}: {}{repaired}", fault.message)
}
