//! Gives back the slots and places of actors whose logs are removed. A chat or a task gives them back in the log entry that ends their use. Where its log is
//! removed before that entry, nothing else gives them back: a place on a shared machine would be lost to all workspaces.

use actor::{ActorId, Content, Envelope};
use domain::{CommandId, Principal, WorkspaceId};
use ports::{Clock, MAX_BATCH, QueueMessage, QueueSender, Result, Table};
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

    /// Gives back all that the chats and tasks of a deleted workspace hold, wait for, or have asked for in a message that still waits. Again is harmless.
    ///
    /// # Errors
    /// As [`Self::release_actor`].
    pub(crate) async fn release_workspace(&self, workspace: WorkspaceId) -> Result<()> {
        let shared = slots::shared_places();
        // The mailbox may have a request that the log does not show yet. Its place would be lost to all workspaces.
        let release = SlotsCommand::Release { party: workspace.to_string() };
        let message = self.message(&shared, release)?;
        self.queue.send(vec![message]).await?;
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
        let mut messages = Vec::new();
        for holder in state.holders(of) {
            messages.push(self.message(semaphore, SlotsCommand::Give { holder })?);
        }
        for batch in messages.chunks(MAX_BATCH) {
            self.queue.send(batch.to_vec()).await?;
        }
        Ok(())
    }

    fn message(&self, semaphore: &ActorId, body: SlotsCommand) -> Result<QueueMessage> {
        let (id, at) = (CommandId(self.clock.id()), self.clock.now());
        Envelope { id, at, by: Principal::System, content: Content::Command { body } }.to(semaphore)
    }
}
