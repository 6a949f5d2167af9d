//! The changes of a workspace's files, for clients that refresh their view: the records that every commit writes, in the order of
//! their ids, and an announcement of each on the bus.

use crate::{Change, Result, Workspace, Workspaces, error, keys::Keys};
use access::Action;
use domain::{Announced, PresenceTarget, Timestamp, UserId, WorkspaceEvent, changes_channel};
use ports::{Bus, Query};
use std::{sync::Arc, time::Duration};
use uuid::Uuid;

/// The longest time between the drawing of a change's id and its commit. A reader that has read up to some moment looks this far
/// before it for changes that were committed late. A commit that takes longer writes a second record, with a new id.
pub const LATE: Duration = Duration::from_secs(30);

/// Records read at once.
const PAGE: usize = 500;

/// A page of changes.
#[derive(Debug, Default)]
pub struct ChangePage {
    /// The changes with the ids of their records, in the order of the ids.
    pub changes: Vec<(Uuid, WorkspaceEvent)>,
    /// The cursor of the next page; none at the end.
    pub next: Option<String>,
}

impl Workspaces {
    /// Announces changes on this bus from now on; the first bus counts.
    #[must_use]
    pub fn announcing(self, bus: Arc<dyn Bus>) -> Self {
        drop(self.0.bus.set(bus));
        self
    }
}

impl Workspace {
    /// The changes of files whose records were made at `from` or later, as this party [sees](Workspace::seen) them. Records are kept for 30 days.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when the table does not answer.
    pub async fn changes_from(&self, from: Timestamp, cursor: Option<String>) -> Result<ChangePage> {
        let range = Query { from: Some(Keys::changes_from(from)), ..Query::all(self.0.keys.changes(), PAGE) };
        let page = self.0.table.query(&range.after(cursor)).await.map_err(error::port)?;
        let mut changes = Vec::with_capacity(page.items.len());
        for (item, change) in ports::readable::<Change>(&page.items) {
            let Ok(id) = item.key.sk.parse() else { continue };
            changes.extend(self.seen(change.event()).map(|event| (id, event)));
        }
        Ok(ChangePage { changes, next: page.next })
    }

    /// Tells watchers that a person looks at something, or has looked away. Nothing keeps it: a watcher that comes later hears of it when it is
    /// told again.
    ///
    /// # Errors
    /// `NOT_FOUND` or `FORBIDDEN` for a path that the party of this handle may not read; `NOT_FOUND` for one where nothing is;
    /// `UPSTREAM_UNAVAILABLE` when the bus or the table does not answer.
    pub async fn announce_presence(&self, user_id: UserId, at: PresenceTarget, here: bool) -> Result<()> {
        let path = at.path()?;
        self.demand(Action::Read, &path)?;
        if here && matches!(at, PresenceTarget::Path(_)) {
            self.stat(&path).await?;
        }
        let Some(bus) = self.0.shared.upgrade().and_then(|shared| shared.bus.get().cloned()) else { return Ok(()) };
        let announced = Announced { id: None, event: WorkspaceEvent::Presence { user_id, at, here } };
        let message = error::json(&announced)?;
        bus.publish(&changes_channel(self.0.id), message.into()).await.map_err(error::port)
    }

    /// Tells watchers of a change that was committed. It is a hint: a watcher that misses it reads the record.
    pub(crate) async fn announce(&self, id: Uuid, change: &Change) {
        let Some(bus) = self.0.shared.upgrade().and_then(|shared| shared.bus.get().cloned()) else { return };
        let announced = Announced { id: Some(id), event: change.event() };
        let Ok(message) = serde_json::to_vec(&announced) else { return };
        if let Err(error) = bus.publish(&changes_channel(self.0.id), message.into()).await {
            tracing::warn!(workspace = %self.0.id, error = %error.with_causes(), "a change of a file was not announced");
        }
    }
}
