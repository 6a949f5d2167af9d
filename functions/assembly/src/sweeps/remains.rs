//! The rest of deleted workspaces, removed once nothing works in them: the logs of their chats and tasks, their memory, and all that came late.

use super::{Sweep, SweepStep, due::DuePlace};
use async_trait::async_trait;
use domain::Error;
use ports::Clock;
use std::{sync::Arc, time::Duration};
use workspace::Workspaces;

/// Workspaces of one step: each may have many chats and tasks.
const AT_ONCE: usize = 1;

/// Removes it.
pub struct DeletedWorkspaces {
    /// The workspaces.
    pub workspaces: Workspaces,
    /// How long work that is being stopped may well go on.
    pub patience: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Sweep for DeletedWorkspaces {
    fn name(&self) -> &'static str {
        "remains"
    }

    /// The cursor is the place in the index: a workspace whose rest cannot be removed now is passed by. Within one that takes longer, the next step goes on
    /// with the rows that are left.
    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let mut place = DuePlace::read(from, self.clock.now() - self.patience);
        let removed = self.workspaces.remove_remains_before(place.before, AT_ONCE, place.cursor.take()).await?;
        let (gone, failed, next) = removed;
        let next = place.next(next, 1);
        Ok(SweepStep { count: gone.len() as u64, failed, more: next.is_some(), next })
    }
}
