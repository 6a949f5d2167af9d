//! Where there is no Landlock.

use crate::{
    options::Options,
    plan::Plan,
    run::{Refusal, Run},
    scratch::Scratch,
};
use ports::Exec;
use std::{path::Path, sync::Arc};

/// Runs nothing.
pub(crate) async fn run(_: &Arc<Run>, options: &Options, latest: &Path, command: Exec) -> Result<(), Refusal> {
    let scratch = Scratch::make(&options.scratch, command.call).map_err(|error| Refusal::Failed(error.to_string()))?;
    // What makes no sense anywhere is said first.
    Plan::new(&command, latest, scratch.path())?;
    Err(Refusal::Refused("commands are confined by Landlock and seccomp, which only Linux has".into()))
}
