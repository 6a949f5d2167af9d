//! Files that the process died of: walks through all files leave them out, and say so.

use crate::keys::Keys;
use domain::Sha256;
use ports::crash::{self, Id};
use std::fmt::Display;

/// Does something with the content of a file of a workspace. None when the process died of that content before, and it is left out.
pub(crate) async fn unless_refused<T>(
    keys: &Keys,
    file: impl Display,
    content: Option<Sha256>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let (workspace, Some(content)) = (keys.0.to_string(), content) else { return Some(work.await) };
    let place = || format!("the content of the file {file} of the workspace {workspace}");
    let id = || Id::of(&[b"content", workspace.as_bytes(), content.as_bytes()]);
    let done = crash::guarded(place, id, work).await;
    if done.is_err() {
        tracing::warn!(workspace, %file, %content, "a file is left out: the process died of it while nothing else ran");
    }
    done.ok()
}
