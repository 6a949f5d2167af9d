//! Gives back the slots and places of actors whose logs are removed. A chat or a task gives them back in the log entry that ends their use. Where its log is
//! removed before that entry, nothing else gives them back: a place on a shared machine would be lost to all workspaces.

use actor::{ActorId, Content, Envelope};
use domain::{CommandId, Principal, WorkspaceId};
use ports::{Clock, MAX_BATCH, QueueSender, Result, Table};
use slots::{SlotsCommand, SlotsMachine};
use std::sync::Arc;

/// Gives them back.
#[derive(Clone)]
pub struct Semaphores {
    /// The table with the logs of semaphores.
    pub table: Arc<dyn Table>,
    /// The way to their mailboxes.
    pub queue: Arc<dyn QueueSender>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl Semaphores {
    /// Gives back what one chat or task of this workspace holds or waits for. Again is harmless.
    ///
    /// # Errors
    /// Those of [`actor::read_state`] but damage, which is logged; those of [`QueueSender::send`].
    pub(crate) async fn release_actor(&self, workspace: WorkspaceId, actor: &ActorId) -> Result<()> {
        let places = [slots::shared_places(), slots::places_of(workspace), slots::semaphore(workspace)];
        for semaphore in places {
            self.release(&semaphore, |_, asker| asker == Some(actor)).await?;
        }
        Ok(())
    }

    /// Gives back all that the chats and tasks of a deleted workspace hold or wait for. Again is harmless.
    ///
    /// # Errors
    /// As [`Self::release_actor`].
    pub(crate) async fn release_workspace(&self, workspace: WorkspaceId) -> Result<()> {
        let party = workspace.to_string();
        self.release(&slots::shared_places(), |of, _| of == party).await?;
        for semaphore in [slots::places_of(workspace), slots::semaphore(workspace)] {
            self.release(&semaphore, |_, _| true).await?;
        }
        Ok(())
    }

    async fn release(&self, semaphore: &ActorId, of: impl Fn(&str, Option<&ActorId>) -> bool + Send) -> Result<()> {
        let state = match actor::read_state::<SlotsMachine>(&*self.table, semaphore).await {
            // A damaged semaphore grants nothing, and must keep no log from its removal.
            Err(error) if error.is_damage() => {
                tracing::error!(%semaphore, %error, "slots are not given back: the log of their semaphore is damaged");
                return Ok(());
            }
            state => state?,
        };
        let at = self.clock.now();
        let mut messages = Vec::new();
        for holder in state.holders(of) {
            let content = Content::Command { body: SlotsCommand::Give { holder } };
            let give = Envelope { id: CommandId(self.clock.id()), at, by: Principal::System, content };
            messages.push(give.to(semaphore)?);
        }
        for batch in messages.chunks(MAX_BATCH) {
            self.queue.send(batch.to_vec()).await?;
        }
        Ok(())
    }
}
