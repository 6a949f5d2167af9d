//! Places for commands: how many run at once on a machine, for all tenants together.

use crate::{Ask, QueueLimit, SlotRequest, SlotsCommand, semaphore};
use actor::{ActorId, OutboxMessage};
use domain::WorkspaceId;
use serde_json::{Value, json};

/// The name of the slots.
const NAME: &str = "commands";
/// How many places a workspace holds at most for each that is free: one that runs all it can has three quarters of a machine.
const SHARE: u32 = 3;
/// How many commands of a workspace may wait.
const WAITING: u32 = 10_000;

/// The places of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// How many there are.
    pub at_once: u32,
    /// Whether one machine is for all workspaces. Else each workspace has a machine for itself, with so many places.
    pub shared: bool,
}

impl Places {
    /// The message that asks for a place. The asker gets the command `refusal` if too many wait.
    pub fn ask(&self, workspace: WorkspaceId, wanted: SlotRequest, refusal: Value) -> OutboxMessage {
        let ask = Ask {
            share: self.shared.then_some(SHARE),
            bound: Some(QueueLimit { waiting: WAITING, refusal }),
            ..wanted.ask(workspace, vec![(NAME.into(), self.at_once)])
        };
        self.message(workspace, ask.priority, &SlotsCommand::Ask { ask: Box::new(ask) })
    }

    /// The message that gives a place back, or takes the command out of the line.
    pub(crate) fn give(&self, workspace: WorkspaceId, holder: String) -> OutboxMessage {
        self.message(workspace, 0, &SlotsCommand::Give { holder })
    }

    fn message(&self, workspace: WorkspaceId, priority: i8, command: &SlotsCommand) -> OutboxMessage {
        let to = if self.shared { shared_places() } else { places_of(workspace) };
        OutboxMessage::now(to, json!(command), priority)
    }
}

/// The semaphore of the places on a machine that is for all workspaces.
pub fn shared_places() -> ActorId {
    semaphore(NAME)
}

/// The semaphore of the places on the machine of this workspace alone.
pub fn places_of(workspace: WorkspaceId) -> ActorId {
    semaphore(format_args!("{workspace}/{NAME}"))
}
