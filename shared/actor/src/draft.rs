//! A log entry in the making: the decisions of one step, or of several that need nothing from outside in between.

use crate::{ActorId, Content, Decision, EffectKey, Entry, Envelope, Machine, OutboxMessage, Parking, View};
use domain::{CommandId, Principal, Stamp, Timestamp, json_length};
use ports::{MAX_BATCH, MAX_WRITES, QueueMessage, Result, validate};
use std::{slice, time::Duration};
use uuid::Uuid;

/// A draft with this many bytes of commands, messages and weighed events is full. So entries stay well below the longest body that the table takes.
const BYTES: usize = 32 * 1024;

/// Decisions that the log does not have yet. Their events are in the state already, so that each step decides on the result of the one
/// before it; if the write fails, the state is thrown away.
pub(crate) struct Draft<M: Machine> {
    first: u64,
    at: Timestamp,
    step: Uuid,
    /// The commands that it consumes.
    pub commands: Vec<CommandId>,
    events: Vec<M::Event>,
    /// Messages to send: those of the steps, and those that were put aside.
    pub outbox: Vec<QueueMessage>,
    /// The change of the actor's pause, if any.
    pub parking: Option<Parking>,
    /// Records to keep beside the log.
    pub records: Vec<View>,
    /// Effects to start.
    pub effects: Vec<(EffectKey, M::Effect)>,
    messages: usize,
    /// Events whose bytes are counted.
    weighed: usize,
    /// Of commands, messages and weighed events.
    bytes: usize,
}

impl<M: Machine> Draft<M> {
    /// An empty one, of an entry that begins with number `first`.
    pub fn new(first: u64, stamp: &Stamp) -> Self {
        Self {
            first,
            at: stamp.at,
            step: stamp.id,
            commands: Vec::new(),
            events: Vec::new(),
            outbox: Vec::new(),
            parking: None,
            records: Vec::new(),
            effects: Vec::new(),
            messages: 0,
            weighed: 0,
            bytes: 0,
        }
    }

    /// The number of its next event.
    pub fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Folds its events into a state that was read from the log.
    pub fn fold_into(&self, state: &mut M::State) {
        (self.first..).zip(&self.events).for_each(|(number, event)| M::apply(state, number, event));
    }

    /// Takes in the decision of a step, except for the effects that it cancels.
    ///
    /// # Errors
    /// [`ports::Error::Invalid`] for a message whose command is no JSON, or is too long for the queue. The state is then worth nothing.
    pub fn add(&mut self, actor: &ActorId, decision: Decision<M>, stamp: &Stamp) -> Result<()> {
        let Decision { events, records, send, effects, cancel: _, gives_up: _ } = decision;
        for sent in send {
            let message = self.message(actor, &sent, stamp.at)?;
            self.bytes += message.body.len();
            self.outbox.push(message);
            self.messages += 1;
        }
        self.events.extend(events);
        self.records.extend(records);
        self.effects.extend(effects);
        Ok(())
    }

    /// Takes out its effect if it is the only one, it `may` be taken, and there is room for the decision on its report.
    pub fn take_only_effect(&mut self, may: impl FnOnce(&M::Effect) -> bool) -> Option<(EffectKey, M::Effect)> {
        let [(_, effect)] = self.effects.as_slice() else { return None };
        if !may(effect) {
            return None;
        }
        self.weigh_events();
        if self.has_room(0) { self.effects.pop() } else { None }
    }

    /// Whether it is older than this at the time of a stamp. The time of its entry is that of its beginning.
    pub fn is_older_than(&self, age: Duration, stamp: &Stamp) -> bool {
        stamp.at.since(self.at) > age
    }

    /// Counts the bytes of its newest events, too. Those that follow from commands are as long as these, and need no weighing.
    fn weigh_events(&mut self) {
        let follow_from_commands = self.weighed == 0 && !self.commands.is_empty();
        if !follow_from_commands {
            self.bytes += self.events.iter().skip(self.weighed).map(json_length).sum::<usize>();
        }
        self.weighed = self.events.len();
    }

    /// Whether it has room for the decision on a command of `bytes` bytes.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.commands.len() < MAX_BATCH && self.records.len() < MAX_WRITES / 2 && self.bytes + bytes <= BYTES
    }

    /// Takes away the note that a command waits.
    pub fn no_longer_waits(&mut self, actor: &ActorId, command: CommandId) {
        self.records.push(View { key: actor.waiting_key(command), index: None, body: None });
    }

    /// Notes that a command of `bytes` bytes is consumed.
    pub fn consume(&mut self, command: CommandId, bytes: usize) {
        self.commands.push(command);
        self.bytes += bytes;
    }

    /// The entry; none when there is nothing to write.
    pub fn entry(&mut self) -> Option<Entry<M::Event>> {
        if self.events.is_empty() && self.outbox.is_empty() && self.parking.is_none() {
            return None;
        }
        Some(Entry {
            first: self.first,
            next: self.first + (self.events.len() as u64).max(1),
            at: self.at,
            step: self.step,
            commands: std::mem::take(&mut self.commands),
            events: std::mem::take(&mut self.events),
            outbox: std::mem::take(&mut self.outbox),
            parking: self.parking.take(),
        })
    }

    /// An outgoing message in the form of the queue. Its ids follow from its place in the log, so a second sending is harmless.
    fn message(&self, actor: &ActorId, sent: &OutboxMessage, at: Timestamp) -> Result<QueueMessage> {
        let name = format!("{}/{}", self.first, self.messages);
        let id = CommandId::from_key(actor.as_str(), &name);
        let content = Content::Command { body: &sent.command };
        let message = Envelope { id, at, by: Principal::System, content }.to(&sent.to)?;
        let id = format!("{actor}/{name}");
        let message = QueueMessage { id, deliver_at: sent.deliver_at, priority: sent.priority, ..message };
        // Once it is committed it is sent again until the queue has it, and a queue never takes it.
        validate::messages(slice::from_ref(&message))?;
        Ok(message)
    }
}
