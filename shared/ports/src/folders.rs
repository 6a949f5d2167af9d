//! The folders of the machine that threads may work in (spec 004 §9 (4)).

use crate::Result;
use async_trait::async_trait;

/// The folders below the allowed roots. Where a deployment has none, threads work in the files of their workspace alone.
#[async_trait]
pub trait Folders: Send + Sync {
    /// The allowed roots, resolved.
    fn roots(&self) -> Vec<String>;
    /// The folder under its resolved path. The answer holds for this moment: a link may lead elsewhere later.
    ///
    /// # Errors
    /// `Invalid` for a path that is relative, absent, no folder, or outside of the allowed roots after symbolic links are resolved.
    async fn allowed(&self, cwd: &str) -> Result<String>;
    /// At most `limit` folders that complete `text`: those in the folder that it begins with, by the beginning of their name. Hidden
    /// folders only for a name that begins with a dot. Folders outside of the roots are not found.
    ///
    /// # Errors
    /// `Unavailable` when the machine does not answer.
    async fn search(&self, text: &str, limit: usize) -> Result<Vec<String>>;
}
