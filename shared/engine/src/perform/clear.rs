//! Clearing up after a deleted task: its artifacts go into the trash and off the lists, its memory is removed, the chats of its agents are deleted as
//! chats are, its children as tasks are.

use crate::{
    log,
    machine::{TaskDescendants, actor_id},
    perform::{TaskEffects, memory_scope},
};
use actor::{Content, Envelope};
use domain::{Code, CommandId, Error, FilePath, Principal, TaskCommand, TaskConfig, TaskId};
use std::time::Duration;
use workspace::Access;

/// Messages that are sent at once.
const BATCH: usize = 50;
/// How often it is tried again while something does not answer, and the longest pause between.
const TRIES: u32 = 12;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl TaskEffects {
    /// Clears up after a task. Each part may be done again; a part that does not answer for minutes is left as it is, and logged.
    pub(super) async fn clear(&self, config: &TaskConfig) {
        for tries in 0..TRIES {
            match self.clear_once(config).await {
                Ok(()) => return,
                Err(error) if tries + 1 == TRIES || error.code != Code::UpstreamUnavailable => {
                    return tracing::error!(task = %config.task, %error, "files or chats of a deleted task stay");
                }
                Err(error) => tracing::warn!(task = %config.task, %error, "a deleted task is cleared up again"),
            }
            tokio::time::sleep((Duration::from_millis(100) * 2_u32.pow(tries)).min(LONGEST_PAUSE)).await;
        }
    }

    async fn clear_once(&self, config: &TaskConfig) -> Result<(), Error> {
        let (mut log, mut left) = (log::of(config.workspace, config.task), TaskDescendants::default());
        while let Some((_, _, event)) = log.next(&*self.table).await.map_err(unavailable)? {
            left.note(config, &event);
        }
        let mut batch = Vec::with_capacity(BATCH);
        let TaskDescendants { children, chats, .. } = left;
        for child in &children {
            batch.push(self.deletion_of(config, *child)?);
            if batch.len() == BATCH || children.last() == Some(child) {
                self.mailbox.send_all(std::mem::take(&mut batch)).await.map_err(unavailable)?;
            }
        }
        for chat in chats {
            let (mailbox, clock, by) = (&self.mailbox, &*self.clock, Principal::System);
            chat::delete(&self.workspaces, mailbox, clock, config.workspace, chat, &by).await?;
        }
        self.artifacts.forget(config.workspace, config.task).await?;
        // Its children have the same one.
        if config.origin.is_none() {
            self.memory.forget_task(&memory_scope(config)).await?;
        }
        let files = self.workspaces.open(config.workspace, Access::platform("artifacts of a deleted task")).await?;
        match files.rm(&FilePath::parse(&format!("/tasks/{}", config.task))?, &Principal::System.into()).await {
            Ok(_) => Ok(()),
            Err(error) if error.code == Code::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn deletion_of(&self, config: &TaskConfig, child: TaskId) -> Result<ports::QueueMessage, Error> {
        let id = CommandId::from_key(&child.to_string(), "delete");
        let content = Content::Command { body: TaskCommand::Delete };
        let envelope = Envelope { id, at: self.clock.now(), by: Principal::System, content };
        envelope.to(&actor_id(config.workspace, child)).map_err(unavailable)
    }
}

fn unavailable(error: ports::Error) -> Error {
    let code = if error.kind() == ports::ErrorKind::Retry { Code::UpstreamUnavailable } else { Code::Internal };
    Error::new(code, error.to_string())
}
