//! The sandbox of systems without Landlock.

use crate::{
    options::Options,
    plan::{Plan, find, open_folder},
    run::{Refusal, Run},
};
use domain::WorkspaceId;
use ports::{Exec, RunningProgram};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Confines nothing.
///
/// # Errors
/// Always.
pub fn confine(_: &[PathBuf], _: &[PathBuf]) -> Result<(), String> {
    can_confine()
}

/// Whether it can.
///
/// # Errors
/// Always.
pub fn can_confine() -> Result<(), String> {
    Err("programs are confined by Landlock, which only Linux has".into())
}

/// Becomes nobody else.
///
/// # Errors
/// Never.
pub fn become_user_of(_: WorkspaceId, _: &[&Path]) -> std::io::Result<Option<u32>> {
    Ok(None)
}

/// Runs nothing.
pub(crate) async fn start_program(_: &Options, _: WorkspaceId, _: &Path, _: Exec) -> Result<RunningProgram, Refusal> {
    Err(Refusal::Refused("programs are confined by Landlock and seccomp, which only Linux has".into()))
}

/// Runs nothing.
pub(crate) async fn run(
    _: &Arc<Run>,
    options: &Options,
    _: WorkspaceId,
    latest: &Path,
    command: Exec,
) -> Result<(), Refusal> {
    // A command that makes no sense anywhere gets that error first.
    let plan = Plan::new(&command, &options.scratch)?;
    open_folder(latest, &command.root)?;
    open_folder(latest, &command.folder)?;
    find(&plan.words, &plan.env, &latest.join(command.folder.relative()))?;
    Err(Refusal::Refused("commands are confined by Landlock and seccomp, which only Linux has".into()))
}
