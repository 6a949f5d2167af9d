//! Waiting for a provider that failed in a way that passes. The call rests as rows: its entry says why and until when, and a message that
//! is due then has the model asked again.

use crate::{phase::Phase, state::Turn, step::Step};
use domain::{ChatCommand, ChatEvent, Error, MessageId, StopReason, event::RetryWait};
use std::time::Duration;

impl Turn {
    /// How often the provider has failed the call that brings this message.
    pub(crate) fn failures_of(&self, message: MessageId) -> u32 {
        self.postponed.filter(|postponed| postponed.message_id == message).map_or(0, |postponed| postponed.failures)
    }

    /// The next attempt of the call that brings this message.
    pub(crate) fn attempt_of(&self, message: MessageId) -> u32 {
        let before = self.postponed.filter(|postponed| postponed.message_id == message);
        before.map_or(1, |postponed| postponed.attempt + 1)
    }
}

impl Step<'_> {
    /// The call is made again after this long, unless the turn's time is up by then: then the failure stands.
    pub(crate) fn postpone(&mut self, message_id: MessageId, error: Error, failures: u32, after: Duration) {
        let at = self.stamp.at;
        let until = at + after;
        if self.turn().is_some_and(|turn| until >= turn.deadline(at)) {
            self.push(ChatEvent::Failed { error });
            return self.finish(StopReason::Error);
        }
        self.push(ChatEvent::ModelPostponed(RetryWait { message_id, failures, error, at, until }));
        self.later(until, &ChatCommand::AskAgain { message_id, failures });
    }

    /// The time has come. A message that comes twice, or after a stop, calls no model.
    pub(crate) fn ask_again(&mut self, message: MessageId, failures: u32) {
        let Some(turn) = self.turn() else { return };
        let waits = matches!(turn.phase, Phase::Backoff { message_id } if message_id == message);
        if waits && turn.failures_of(message) == failures {
            self.ask_model(message, turn.attempt_of(message));
        }
    }
}
