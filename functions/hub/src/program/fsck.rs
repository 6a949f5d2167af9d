//! `buildscale fsck`: checks a data folder of this machine.

use super::failed;
use crate::fsck::{self, Summary};
use clap::Args;
use cli::{CliError, Exit, Output};
use serde_json::json;
use std::path::PathBuf;
use workspace::{Fault, Part};

/// How many faults are shown; all of them are counted, and `--json` has all.
const SHOWN: usize = 1_000;

#[derive(Debug, Args)]
pub(crate) struct FsckArgs {
    /// The data directory of the hub, which must not run
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
    let mut faults: Vec<Fault> = Vec::new();
    let mut keep = |fault: &Fault| {
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
        out.line(told(fault))?;
    }
    if checked.faults > faults.len() as u64 {
        out.line(format_args!("… and {} more; --json shows all", checked.faults - faults.len() as u64))?;
    }
    out.line(format_args!(
        "checked {} workspaces, {} folders, {} files, {} versions, {} contents ({} bytes), {} paths of latest/",
        checked.workspaces,
        checked.folders,
        checked.files,
        checked.versions,
        checked.contents,
        checked.bytes,
        checked.mirrored
    ))?;
    out.line(match (store.is_empty(), checked.faults, checked.faults - checked.repaired) {
        (false, ..) => "the store is damaged: restore a backup".to_owned(),
        (true, 0, _) => "no faults".to_owned(),
        (true, faults, 0) => format!("{faults} faults, all repaired"),
        (true, faults, left) if args.repair => {
            format!("{faults} faults, {left} of them not repaired: a backup may have the contents")
        }
        (true, faults, _) => format!("{faults} faults; --repair repairs those that can be"),
    })?;
    Ok(exit)
}

/// One line: the workspace, the store, the place, the fault.
fn told(fault: &Fault) -> String {
    let part = match fault.part {
        Part::Index => "index",
        Part::Links => "links",
        Part::Archive => "archive",
        Part::Mirror => "mirror",
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
