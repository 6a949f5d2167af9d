//! The names in `/system`, kept in memory: each call of a model asks whether the workspace declares tools there, and nearly none does.
//!
//! A name comes or goes with a change whose path, or whose path before, is inside of `/system`. Where this process alone writes, the names that were
//! read are good until such a change.

use crate::Change;
use domain::FilePath;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// The folder.
pub(crate) const SYSTEM: &str = "/system";
/// The most names that are kept; a longer list is read each time.
const MOST_KEPT: usize = 256;

/// The names, as far as they are known.
#[derive(Default)]
pub(crate) struct SystemFolder(Mutex<KeptNames>);

#[derive(Default)]
struct KeptNames {
    names: Option<Arc<[String]>>,
    /// How often the names were forgotten.
    forgotten: u64,
}

impl SystemFolder {
    fn lock(&self) -> MutexGuard<'_, KeptNames> {
        self.0.lock()
    }

    /// The names, and how often they were forgotten so far.
    pub fn kept(&self) -> (Option<Arc<[String]>>, u64) {
        let kept = self.lock();
        (kept.names.clone(), kept.forgotten)
    }

    /// Keeps names that were read after they had been forgotten so often. If they were forgotten once more since then, they may lack a change, and
    /// are not kept.
    pub fn keep(&self, names: &Arc<[String]>, forgotten: u64) {
        let mut kept = self.lock();
        if kept.forgotten == forgotten && names.len() <= MOST_KEPT {
            kept.names = Some(Arc::clone(names));
        }
    }

    /// Forgets the names. To be called after a commit that may have changed them.
    pub fn forget(&self) {
        let mut kept = self.lock();
        kept.names = None;
        kept.forgotten += 1;
    }

    /// The same if this change may have done so.
    pub fn forget_after(&self, change: &Change) {
        let is_inside = |path: &FilePath| inside(path.as_str()).is_some();
        if is_inside(&change.path) || change.from.as_ref().is_some_and(is_inside) {
            self.forget();
        }
    }
}

/// The part of a path behind `/system/`.
pub(crate) fn inside(path: &str) -> Option<&str> {
    path.strip_prefix(SYSTEM)?.strip_prefix('/')
}
