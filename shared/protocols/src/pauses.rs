//! Pauses that were ended. A pause ends the answer of a client that waits for one, since a person has to resume the chat. Once it is resumed, the
//! log goes on behind the pause, and a fold that stopped there would tell neither the rest of the turn nor any later turn.

use crate::{Frame, Projection};
use domain::{ChatEvent, Timestamp};

/// A view without the pauses before the event with the number `since`: those had ended when the stream was opened.
#[derive(Debug)]
struct AfterPauses {
    since: u64,
    view: Box<dyn Projection<Event = ChatEvent>>,
}

/// The view without the pauses before the event with the number `since`; the view as it is where no event comes before it.
pub fn after_pauses(
    since: u64,
    view: Box<dyn Projection<Event = ChatEvent>>,
) -> Box<dyn Projection<Event = ChatEvent>> {
    // Views with one state share one fold, and so they stay as they are where they can.
    if since <= 1 { view } else { Box::new(AfterPauses { since, view }) }
}

impl Projection for AfterPauses {
    type Event = ChatEvent;

    fn name(&self) -> &'static str {
        self.view.name()
    }

    fn take_in(&mut self, number: u64, at: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        if number >= self.since || !matches!(event, ChatEvent::Paused { .. }) {
            self.view.take_in(number, at, event, frames);
        }
    }

    fn is_over(&self) -> bool {
        self.view.is_over()
    }

    fn ends_with_its_stream(&self) -> bool {
        self.view.ends_with_its_stream()
    }
}

/// Leaves the pauses of a log out that were ended, for a fold of the log as it is: a pause that lasts comes last.
#[derive(Debug, Default)]
pub struct PauseFilter {
    lasts: Option<(u64, Timestamp, ChatEvent)>,
}

impl PauseFilter {
    /// Hands the next event of the log on, unless it is a pause.
    pub fn take_in(
        &mut self,
        number: u64,
        at: Timestamp,
        event: &ChatEvent,
        mut take_in: impl FnMut(u64, Timestamp, &ChatEvent),
    ) {
        match event {
            ChatEvent::Paused { .. } => {
                self.lasts = Some((number, at, event.clone()));
                return;
            }
            ChatEvent::Unpaused { .. } => self.lasts = None,
            _ => {}
        }
        take_in(number, at, event);
    }

    /// Hands the pause on that lasts, if there is one: the log is read.
    pub fn end(self, mut take_in: impl FnMut(u64, Timestamp, &ChatEvent)) {
        if let Some((number, at, event)) = self.lasts {
            take_in(number, at, &event);
        }
    }
}
