//! What a deleted task has left behind goes: its artifacts into the trash, the chats of its agents as chats do, its children as it
//! does itself.

use crate::{machine::actor_id, perform::TaskEffects};
use actor::{Content, Mail, read_after};
use domain::{
    Code, CommandId, Error, FilePath, NodeId, Principal, TaskCommand, TaskConfig, TaskEvent, TaskId,
    task::{ChildKind, ChildName},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Entries of the log that are read at once.
const PAGE: usize = 200;
/// Messages that are sent at once.
const BATCH: usize = 50;
/// How often it is tried again while something does not answer, and the longest pause between.
const TRIES: u32 = 12;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl TaskEffects {
    /// Clears up after a task. Each part may be done again; what does not answer for minutes is left as it is, and logged.
    pub(super) async fn clear(&self, config: &TaskConfig, children: &[TaskId]) {
        for tries in 0..TRIES {
            match self.clear_once(config, children).await {
                Ok(()) => return,
                Err(error) if tries + 1 == TRIES || error.code != Code::UpstreamUnavailable => {
                    return tracing::error!(task = %config.task, %error, "what a deleted task left behind stays");
                }
                Err(error) => tracing::warn!(task = %config.task, %error, "a deleted task is cleared up again"),
            }
            tokio::time::sleep((Duration::from_millis(100) * 2_u32.pow(tries)).min(LONGEST_PAUSE)).await;
        }
    }

    async fn clear_once(&self, config: &TaskConfig, children: &[TaskId]) -> Result<(), Error> {
        // The state knows the children of splits that are open, the log those of all.
        let mut children: BTreeSet<TaskId> = children.iter().copied().collect();
        let mut forks: BTreeMap<NodeId, (ChildKind, Vec<NodeId>)> = BTreeMap::new();
        let (actor, mut after, mut chats) = (actor_id(config.workspace, config.task), 0, BTreeSet::new());
        loop {
            let page = read_after::<TaskEvent>(&*self.table, &actor, after, PAGE).await.map_err(unavailable)?;
            for event in page.entries.iter().flat_map(|entry| &entry.events) {
                match event {
                    TaskEvent::AgentAsked { chat, .. } => _ = chats.insert(*chat),
                    TaskEvent::Forked { node, kind, to, .. } => _ = forks.insert(node.clone(), (*kind, to.clone())),
                    TaskEvent::Spawned { node, until } => {
                        let Some((kind, to)) = forks.get(node) else { continue };
                        let named = (0..*until).zip(to.iter().cycle());
                        children
                            .extend(named.map(|(index, to)| config.task.child(&ChildName::of(node, to, index, *kind))));
                    }
                    _ => {}
                }
            }
            match page.entries.last() {
                Some(entry) if page.more => after = entry.next - 1,
                _ => break,
            }
        }
        let mut mail = Vec::with_capacity(BATCH);
        for child in &children {
            mail.push(self.deletion_of(config, *child)?);
            if mail.len() == BATCH || children.last() == Some(child) {
                self.mailbox.send_all(std::mem::take(&mut mail)).await.map_err(unavailable)?;
            }
        }
        for chat in chats {
            let (mailbox, clock, by) = (&self.mailbox, &*self.clock, Principal::System);
            chat::delete(&self.workspaces, mailbox, clock, config.workspace, chat, &by).await?;
        }
        let files = self.workspaces.open(config.workspace).await?;
        match files.rm(&FilePath::parse(&format!("/tasks/{}", config.task))?, &Principal::System.into()).await {
            Ok(_) => Ok(()),
            Err(error) if error.code == Code::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn deletion_of(&self, config: &TaskConfig, child: TaskId) -> Result<ports::Outgoing, Error> {
        let id = CommandId::from_key(&child.to_string(), "delete");
        let content = Content::Command { body: TaskCommand::Delete };
        let mail = Mail { id, at: self.clock.now(), by: Principal::System, content };
        mail.to(&actor_id(config.workspace, child)).map_err(unavailable)
    }
}

fn unavailable(error: ports::Error) -> Error {
    let code = if error.kind() == ports::Kind::Retry { Code::UpstreamUnavailable } else { Code::Internal };
    Error::new(code, error.to_string())
}
