//! The tasks that led to a version: those of the chain that its author's task is in.

use crate::log;
use domain::{ChatEvent, Principal, WorkspaceId, task::HandoffLink};
use ports::{Result, Table};

/// The chain of tasks that the author of a version belongs to, the author's own task last; empty for people, and for agents in their chats.
///
/// # Errors
/// Those of the table, and one of an entry that cannot be read.
pub(super) async fn chain_of(table: &dyn Table, workspace: WorkspaceId, by: &Principal) -> Result<Vec<HandoffLink>> {
    let task = match by {
        Principal::Task { task, .. } => Some(*task),
        Principal::Agent { chat, .. } => {
            let log = actor::read_after::<ChatEvent>(table, &chat::actor_id(workspace, *chat), 0, 1).await?;
            log.entries.iter().flat_map(|entry| &entry.events).find_map(|event| match event {
                ChatEvent::Created { config } => config.agent.as_ref().and_then(|agent| agent.of_task()),
                _ => None,
            })
        }
        Principal::User { .. } | Principal::System => None,
    };
    let Some(task) = task else { return Ok(Vec::new()) };
    let Some(config) = log::config(table, workspace, task).await? else { return Ok(Vec::new()) };
    let root = config.root();
    let mut chain = config.handoff.map(|handoff| handoff.chain).unwrap_or_default();
    chain.push(HandoffLink { flow: config.flow.name, task: root });
    Ok(chain)
}
