//! The slots and the place of an actor: it gives them back when the work that they were for has ended.

use crate::{Places, SlotsCommand, semaphore};
use actor::OutboxMessage;
use domain::WorkspaceId;
use serde_json::json;

/// The holders under which an actor has slots and a place, or waits for them.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// The holder of the slots.
    pub slots: Option<String>,
    /// The holder of the place.
    pub place: Option<String>,
}

impl Held {
    /// The slots and the place without those in `kept`. Actors compare at the end of each step, so that no way of ending a piece of work can forget
    /// to give back.
    #[must_use]
    pub fn without(self, kept: &Self) -> Self {
        let slots = self.slots.filter(|before| kept.slots.as_ref() != Some(before));
        let place = self.place.filter(|before| kept.place.as_ref() != Some(before));
        Self { slots, place }
    }

    /// The messages that give the slots and the place back, and take requests for them out of the line. Again is harmless.
    pub fn give_back(
        self,
        workspace: WorkspaceId,
        places: Option<Places>,
        priority: i8,
    ) -> impl Iterator<Item = OutboxMessage> {
        let give = |holder| OutboxMessage::now(semaphore(workspace), json!(SlotsCommand::Give { holder }), priority);
        let place = self.place.zip(places).map(|(holder, places)| places.give(workspace, holder));
        self.slots.map(give).into_iter().chain(place)
    }
}
