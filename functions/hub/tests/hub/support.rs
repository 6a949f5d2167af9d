//! The hub that Cargo has just built, as a child process.

pub use journeys::{Client, Hub, PATIENCE, Result, count, world::LOG};

use std::path::Path;

/// Starts one on this data folder, with the suite's script as its model and with these variables.
pub async fn start(data: &Path, settings: &[(&str, &str)]) -> Result<Hub> {
    Hub::start_scripted(Path::new(env!("CARGO_BIN_EXE_buildscale")), data, settings).await
}
