//! One step of a machine: the state that it works on, and its decision so far.

use super::{Decision, EffectKey, Machine, OutboxMessage, redact};
use ports::Redactor;

/// One step: the machine decides on an input. The step owns the state for that time and folds each event as it is pushed, so the state
/// always has what the step has decided. A machine asks the state, and never its own events.
///
/// A step that panics takes its state along: only the log has it then.
pub struct Step<M: Machine> {
    state: M::State,
    /// The number of the next event.
    next: u64,
    redactor: Redactor,
    decision: Decision<M>,
}

impl<M: Machine> Step<M> {
    /// A step on `state`; its first event has the number `next`.
    pub fn new(state: M::State, next: u64) -> Self {
        Self { state, next, redactor: Redactor::default(), decision: Decision::default() }
    }

    /// The same, which takes secrets out of events and messages before anything comes of them.
    pub(crate) fn redacting(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }

    /// The state, with all events of this step.
    pub fn state(&self) -> &M::State {
        &self.state
    }

    /// Adds an event, and folds it into the state.
    pub fn push(&mut self, mut event: M::Event) {
        redact::event(&mut event, &self.redactor);
        self.decision.records.extend(M::record(&self.state, &event));
        M::apply(&mut self.state, self.next, &event);
        self.next += 1;
        self.decision.events.push(event);
    }

    /// Adds a message.
    pub fn send(&mut self, mut message: OutboxMessage) {
        redact::message(&mut message, &self.redactor);
        self.decision.send.push(message);
    }

    /// Adds an effect.
    pub fn run(&mut self, key: EffectKey, effect: M::Effect) {
        self.decision.effects.push((key, effect));
    }

    /// Cancels an effect that runs; its report is dropped.
    pub fn cancel(&mut self, key: EffectKey) {
        self.decision.cancel.push(key);
    }

    /// For [`Input::Park`](crate::Input::Park): gives the failed work up, so that the actor is not paused.
    pub fn give_up(&mut self) {
        self.decision.gives_up = true;
    }

    /// Ends the step: the state after it, and the decision.
    pub fn end(self) -> (M::State, Decision<M>) {
        (self.state, self.decision)
    }
}
