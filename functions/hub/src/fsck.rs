//! The check of a data folder on which no hub runs.
//!
//! A hub that runs flushes files to `latest/` after their commits, so a check beside it would tell of faults that are none. Therefore the check takes
//! the lock of the data folder. A running hub looks after its contents by itself: it scrubs them.

use crate::{
    HubError,
    backup::BackupError,
    layout::{STORE, WORKSPACES},
};
use embedded::{Durability, LocalBlobs, Lock, Options, Store};
use ports::{Blobs, Clock, Spilling, SystemClock, Table};
use std::{path::Path, sync::Arc};
use workspace::{CheckCounts, FsckFault, Workspaces};

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The faults of the store's file, in the words of SQLite. Nothing repairs them but a backup.
    pub store: Vec<String>,
    /// The workspaces. Nothing of a store with faults is read.
    pub checked: CheckCounts,
}

impl Summary {
    /// Whether nothing is wrong, or nothing any more.
    pub fn is_sound(&self) -> bool {
        self.store.is_empty() && self.checked.faults == self.checked.repaired
    }
}

/// Checks the data folder, and repairs it with `repair`. Without that, nothing in it changes.
///
/// # Errors
/// [`HubError::Backup`] when the folder has no store; [`HubError::Store`] when a hub runs on it, or the store cannot be opened;
/// [`HubError::Repair`] when a store does not answer. A fault is no error.
pub async fn check(data: &Path, repair: bool, tell: &mut (dyn FnMut(&FsckFault) + Send)) -> Result<Summary, HubError> {
    let path = data.join(STORE);
    if !path.is_file() {
        return Err(BackupError::NoData(data.to_owned()).into());
    }
    let lock = Lock::take(&path)?;
    let store = embedded::check_store(&path)?;
    if !store.is_empty() {
        return Ok(Summary { store, checked: CheckCounts::default() });
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    if !repair {
        let checked = workspaces(data, embedded::frozen_table(&path, clock.clone()), clock).fsck(false, tell).await;
        return Ok(Summary { store, checked: checked.map_err(HubError::Repair)? });
    }
    // The store takes the lock by itself.
    drop(lock);
    let options = Options { durability: Durability::Full, has_data: true, ..Options::default() };
    let opened = Store::open(&path, clock.clone(), options)?;
    let all = workspaces(data, opened.table(), clock);
    let checked = all.fsck(true, tell).await.map_err(HubError::Repair)?;
    // The mark of each mirror moves on, so that the next start compares little.
    all.checkpoint().await.map_err(HubError::Repair)?;
    opened.close().await;
    Ok(Summary { store, checked })
}

fn workspaces(data: &Path, table: Arc<dyn Table>, clock: Arc<dyn Clock>) -> Workspaces {
    let files = data.join(WORKSPACES);
    let blobs: Arc<dyn Blobs> = Arc::new(LocalBlobs::new(&files));
    Workspaces::new(Arc::new(Spilling::new(table, blobs.clone())), blobs, clock, files)
}
