//! The inputs that the previous hub died in, and those that this hub refuses for that reason.

use domain::Timestamp;
use embedded::CrashMarks;
use ports::{
    SystemClock,
    crash::{self, Crashes, ENOUGH, InputVerdict},
};
use std::{path::Path, sync::Arc};

/// The folder of the data folder.
const FOLDER: &str = "crashes";

/// Reads and logs the computations that the previous hub ended in, and begins to note those of this one. To be called when nothing else
/// uses the data folder. A hub that cannot note them works without marks.
pub(crate) fn begin(data: &Path) {
    let (marks, left) = match CrashMarks::open(&data.join(FOLDER)) {
        Ok(opened) => opened,
        Err(error) => {
            tracing::warn!(%error, "computations are not noted: an input that ends the process can do so again");
            return;
        }
    };
    let crashes =
        Crashes::new(Arc::new(marks), Arc::new(SystemClock), left.known, &left.marks, env!("CARGO_PKG_VERSION"));
    for mark in &left.marks {
        let (input, at, alone) = (mark.id, &*mark.place, mark.alone);
        match crashes.standing(mark.id) {
            InputVerdict::Refused => {
                let deaths = ENOUGH;
                tracing::error!(%input, at, deaths, "the hub died of this input, which is not tried again");
            }
            _ => {
                tracing::warn!(%input, at, alone, "the hub before this one ended in the middle of this: it computes alone now")
            }
        }
    }
    for case in crashes.refused() {
        let since: Timestamp = case.at;
        tracing::warn!(input = %case.id, at = case.place, %since, "this input is not tried again");
    }
    crash::install(crashes);
}
