//! All runs of a chat's thread, one after the other.

use super::{Mode, chat::ChatRun};
use crate::{Frame, Part, Projection};
use domain::{ChatEvent, Timestamp, TurnId};
use uuid::Uuid;

/// The view of a thread as the runs in it. It is over when the chat is deleted.
#[derive(Debug)]
pub struct ThreadRuns {
    run: ChatRun,
    is_deleted: bool,
}

impl ThreadRuns {
    /// The view in these modes, under the client's id of the thread. Without a mode it has the begin and the end of each run.
    pub fn new(thread: String, graph: String, modes: Vec<Mode>) -> Self {
        let none = Part::first(TurnId(Uuid::nil()));
        Self { run: ChatRun::new(none, thread, graph, modes), is_deleted: false }
    }
}

impl Projection for ThreadRuns {
    type Event = ChatEvent;

    fn take_in(&mut self, number: u64, at: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        match event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => self.run.begin_turn(*turn_id),
            // The end of a turn that waits is no run of its own, and neither is what happens to its chat meanwhile.
            ChatEvent::Stopped { .. }
            | ChatEvent::Paused { .. }
            | ChatEvent::Configured { .. }
            | ChatEvent::TurnQueued(_)
            | ChatEvent::PermissionsForgotten { .. } => {}
            ChatEvent::Deleted { .. } => self.is_deleted = true,
            _ => self.run.go_on(number, frames),
        }
        self.run.take_in(number, at, event, frames);
    }

    fn is_over(&self) -> bool {
        self.is_deleted
    }

    fn ends_with_its_stream(&self) -> bool {
        self.run.ends_with_its_stream()
    }
}
