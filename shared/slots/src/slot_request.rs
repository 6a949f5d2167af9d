//! The request of an actor for slots or for a place, and the message that it becomes.

use crate::{Ask, SlotsCommand, semaphore};
use actor::{ActorId, OutboxMessage};
use domain::WorkspaceId;
use serde_json::{Value, json};

/// A request for slots or for a place.
#[derive(Clone, Debug)]
pub struct SlotRequest {
    /// The purpose of the slots, unique per request.
    pub holder: String,
    /// Of the requests of a workspace, one with more goes first; -100 to 100.
    pub priority: i8,
    /// The actor that gets the grant.
    pub to: ActorId,
    /// The command by which this actor begins.
    pub grant: Value,
}

impl SlotRequest {
    /// The message that asks the semaphore of a workspace for slots.
    pub fn for_slots(self, workspace: WorkspaceId, wants: Vec<(String, u32)>) -> OutboxMessage {
        let priority = self.priority;
        let ask = Box::new(self.ask(workspace, wants));
        OutboxMessage::now(semaphore(workspace), json!(SlotsCommand::Ask { ask }), priority)
    }

    /// The same as a semaphore reads it: without a share and without a limit on requests that wait.
    pub(crate) fn ask(self, workspace: WorkspaceId, wants: Vec<(String, u32)>) -> Ask {
        let Self { holder, priority, to, grant } = self;
        Ask { holder, wants, party: workspace.to_string(), share: None, priority, to, grant, bound: None }
    }
}
