//! The rows of the chats of a deleted workspace, and their removal.

use crate::{
    keys::{actor_id, people_partition, permission_partition},
    standing_rules, threads,
};
use actor::ended;
use domain::WorkspaceId;
use ports::{Result, Table};

/// Removes the chats of a deleted workspace that are on its lists, those of its agents among them, with their logs; and its requests for permission,
/// rules and threads. The records of usage stay: the limits of a person count them wherever they were spent. Chats that were deleted before are
/// [`actor::ended`]. Again is harmless.
///
/// # Errors
/// Those of [`Table::clear`]. Some of it is gone then.
pub async fn remove_remains(table: &dyn Table, workspace: WorkspaceId) -> Result<()> {
    let chat = |id: &str| Some(actor_id(workspace, id.parse().ok()?));
    ended::remove_listed(table, &people_partition(workspace), chat).await?;
    let others = [permission_partition(workspace), standing_rules::partition(workspace), threads::partition(workspace)];
    for partition in others {
        table.clear(&partition).await?;
    }
    Ok(())
}
