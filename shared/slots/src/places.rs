//! Places for commands: how many run at once on a machine, for all tenants together.

use crate::{Ask, QueueLimit, SlotsCommand, semaphore};
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

/// A command that wants a place.
#[derive(Clone, Debug)]
pub struct PlaceRequest {
    /// The purpose of the place, unique per command.
    pub holder: String,
    /// Before which others of its workspace it goes.
    pub priority: i8,
    /// The actor to tell.
    pub to: ActorId,
    /// The command that tells it that it may begin.
    pub grant: Value,
    /// The command that tells it that too many wait.
    pub refusal: Value,
}

impl Places {
    /// The message that asks for a place.
    pub fn ask(&self, workspace: WorkspaceId, wanted: PlaceRequest) -> OutboxMessage {
        let PlaceRequest { holder, priority, to, grant, refusal } = wanted;
        let ask = Ask {
            holder,
            wants: vec![(NAME.into(), self.at_once)],
            party: workspace.to_string(),
            priority,
            share: self.shared.then_some(SHARE),
            to,
            grant,
            bound: Some(QueueLimit { waiting: WAITING, refusal }),
        };
        self.message(workspace, priority, &SlotsCommand::Ask { ask: Box::new(ask) })
    }

    /// The message that gives a place back, or takes the command out of the line.
    pub fn give(&self, workspace: WorkspaceId, holder: &str) -> OutboxMessage {
        self.message(workspace, 0, &SlotsCommand::Give { holder: holder.to_owned() })
    }

    fn message(&self, workspace: WorkspaceId, priority: i8, command: &SlotsCommand) -> OutboxMessage {
        let to = if self.shared { shared_places() } else { places_of(workspace) };
        OutboxMessage { to, command: json!(command), deliver_at: None, priority }
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
