//! Takes in deliveries of the mailbox: commands, alone or together, and messages for an actor that is paused or about to end.

use super::{AskedOfTree, Draft, Drive, DriveError, while_unavailable};
use crate::{Content, Envelope, Input, Machine, Parking, load::Loaded};
use domain::CommandId;
use ports::{Delivery, Error, QueueMessage};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl<M: Machine> Drive<'_, M> {
    /// Takes in one delivery, and those `behind` it that can be decided together with it. Returns how many it took. Their effects are
    /// running when this returns.
    ///
    /// The number of deliveries says nothing here: a long turn may well outlive many workers. [`crate::delivery_attempt`] has the counts that do.
    pub(super) async fn take_in(
        &mut self,
        envelope: Envelope<M::Command>,
        delivery: &Delivery,
        behind: &[Delivery],
    ) -> Result<usize, DriveError> {
        let consumed = self.loaded.consumed.contains(&envelope.id);
        if (consumed || delivery.attempt > 1) && !self.loaded.unsettled_outbox.is_empty() {
            // A worker may have died between the commit and the sends, where these are two calls. The ids make sending again harmless.
            let outbox = self.loaded.unsettled_outbox.clone();
            while_unavailable(|| self.ports.queue.send(outbox.clone())).await?;
        }
        if matches!(&envelope.content, Content::Command { body } if !consumed && M::ends(body)) {
            return self.take_in_last(envelope).await;
        }
        if self.loaded.parked {
            return self.take_in_while_parked(envelope, &delivery.body).await;
        }
        let next = match &envelope.content {
            Content::Command { body } if !consumed => Some(body),
            _ => None,
        };
        let asked = self.asked_of_tree(next).await?;
        let asks_anew = matches!(envelope.content, Content::Continue) && M::asks_anew(&self.loaded.state);
        if M::in_flight(&self.loaded.state) || asks_anew {
            self.prepare(None).await?;
            self.skip_expired_numbers().await?;
            let input = asked.stop.clone().map_or(Input::Resume, Input::Halt);
            self.step(input, None).await?;
        }
        match envelope.content {
            Content::Command { body } if !consumed => {
                self.prepare(Some(&body)).await?;
                let input = Input::Command { id: envelope.id, by: envelope.by, at: envelope.at, command: body };
                // Running effects report after each step: with deliveries behind it, the order of commands and reports would be unclear.
                let behind = if self.running.is_empty() { behind } else { &[] };
                self.take_in_together((envelope.id, input), delivery, behind, asked).await
            }
            _ => Ok(1),
        }
    }

    /// Decides a command, and then those `behind` it as long as nothing needs doing outside in between: one entry for all of
    /// them. A parent that ten thousand children report to would otherwise pay ten thousand commits.
    async fn take_in_together(
        &mut self,
        (id, input): (CommandId, Input<M>),
        delivery: &Delivery,
        behind: &[Delivery],
        asked: AskedOfTree,
    ) -> Result<usize, DriveError> {
        let (stamp, mut draft) = self.draft();
        draft.consume(id, delivery.body.len());
        if matches!(&input, Input::Command { command, .. } if M::is_noted(command)) {
            draft.no_longer_waits(self.actor, id);
        }
        for request in asked.holds {
            if self.holds_seen.insert(request.hold_id) {
                self.decide(&mut draft, Input::Hold(request), &stamp)?;
            }
        }
        self.decide(&mut draft, input, &stamp)?;
        if let Some(request) = asked.stop {
            // Nothing new begins in a tree that was stopped, in any state of the actor.
            draft.effects.clear();
            self.decide(&mut draft, Input::Halt(request), &stamp)?;
        }
        let mut taken = 1;
        for delivery in behind {
            let goes_on = draft.effects.is_empty() && !M::in_flight(&self.loaded.state);
            if !goes_on || !draft.has_room(delivery.body.len()) {
                break;
            }
            let Some((envelope, command)) = self.joining(&draft, delivery) else { break };
            if self.prepare(Some(&command)).await.is_err() {
                break;
            }
            let stamp = self.ports.clock.stamp();
            let is_noted = M::is_noted(&command);
            let input = Input::Command { id: envelope.id, by: envelope.by, at: envelope.at, command };
            // One that panics is left to be the first of a delivery, so that it alone is blamed.
            let Ok(decision) = catch_unwind(AssertUnwindSafe(|| self.handle(&draft, input, &stamp))) else {
                // It took the state along.
                let read = while_unavailable(|| Loaded::<M>::read(&*self.ports.table, self.actor)).await?;
                self.loaded.state = read.state;
                draft.fold_into(&mut self.loaded.state);
                break;
            };
            draft.consume(envelope.id, delivery.body.len());
            if is_noted {
                draft.no_longer_waits(self.actor, envelope.id);
            }
            self.add(&mut draft, decision, &stamp)?;
            taken += 1;
        }
        self.commit(draft).await?;
        Ok(taken)
    }

    /// The command of a delivery, if it can be decided together with those before it: a new one.
    fn joining(&self, draft: &Draft<M>, delivery: &Delivery) -> Option<(Envelope<()>, M::Command)> {
        let Envelope { id, at, by, content } = Envelope::<M::Command>::parse(&delivery.body).ok()?;
        let Content::Command { body: command } = content else { return None };
        let is_known = self.loaded.consumed.contains(&id) || draft.commands.contains(&id);
        let joins = !is_known && !M::ends(&command);
        joins.then_some((Envelope { id, at, by, content: Content::Command { body: () } }, command))
    }

    async fn prepare(&self, next: Option<&M::Command>) -> Result<(), Error> {
        while_unavailable(|| self.ports.perform.prepare(self.actor, &self.loaded.state, next)).await
    }

    /// Takes in a command that ends the actor, in any state. Work in flight is resumed after it, if any of it is left to complete.
    async fn take_in_last(&mut self, envelope: Envelope<M::Command>) -> Result<usize, DriveError> {
        let was_in_flight = M::in_flight(&self.loaded.state);
        if was_in_flight {
            self.skip_expired_numbers().await?;
        }
        let Content::Command { body: command } = envelope.content else { return Ok(1) };
        // A failed preparation does not keep the actor from its end.
        if let Err(error) = self.prepare(Some(&command)).await {
            tracing::warn!(actor = %self.actor, error = %error.with_causes(), "an actor ends without its prepared data");
        }
        let (stamp, mut draft) = self.draft();
        draft.consume(envelope.id, 0);
        draft.parking = self.loaded.parked.then(|| Parking { parked: false, messages: Vec::new() });
        self.decide(&mut draft, Input::Command { id: envelope.id, by: envelope.by, at: envelope.at, command }, &stamp)?;
        self.commit(draft).await?;
        // Effects that the command itself began are running already.
        if was_in_flight && M::in_flight(&self.loaded.state) {
            self.step(Input::Resume, None).await?;
        }
        Ok(1)
    }

    /// Pauses the actor: `envelope` failed too often. It is kept, unless it was consumed and the failure is in its work, or the machine
    /// gives it up.
    pub async fn park(&mut self, envelope: (CommandId, String), reason: String) -> Result<(), DriveError> {
        let known = self.loaded.consumed.contains(&envelope.0)
            || self.loaded.parked_mail.iter().any(|(id, _)| *id == envelope.0);
        let (stamp, mut draft) = self.draft();
        if !self.loaded.parked {
            let command = if known { None } else { command_in::<M>(&envelope.1) };
            let decision = self.handle(&draft, Input::Park { reason, command }, &stamp);
            let gives_up = decision.gives_up;
            self.add(&mut draft, decision, &stamp)?;
            if gives_up {
                draft.commands.extend((!known).then_some(envelope.0));
                return self.commit(draft).await;
            }
        }
        let envelope = (envelope.0, self.ports.secrets.redactor().text(&envelope.1).into_owned());
        let envelope = if known { Vec::new() } else { vec![envelope] };
        draft.parking = Some(Parking { parked: true, messages: envelope });
        self.commit(draft).await
    }

    async fn take_in_while_parked(&mut self, envelope: Envelope<M::Command>, body: &str) -> Result<usize, DriveError> {
        match envelope.content {
            Content::Command { body } if M::gives_up(&body) && !self.loaded.consumed.contains(&envelope.id) => {
                self.unpark(envelope.id, true).await?;
            }
            Content::Command { .. } => self.park((envelope.id, body.to_owned()), String::new()).await?,
            Content::Continue => {}
            // It did resume the actor, which failed again since: that is for a person to see.
            Content::Unpark { .. } if self.loaded.consumed.contains(&envelope.id) => {}
            Content::Unpark { drop } => self.unpark(envelope.id, drop).await?,
        }
        Ok(1)
    }

    /// Resumes a paused actor: first the work that was in flight, then the messages that were put aside. The first of these is the one that
    /// failed, and `drop` gives it up.
    async fn unpark(&mut self, command: CommandId, drop: bool) -> Result<(), DriveError> {
        // A failed preparation does not keep the actor from giving its work up.
        if drop && let Err(error) = self.prepare(None).await {
            tracing::warn!(actor = %self.actor, error = %error.with_causes(), "an actor gives its work up without its prepared data");
        }
        let (stamp, mut draft) = self.draft();
        let was_in_flight = M::in_flight(&self.loaded.state);
        draft.consume(command, 0);
        self.decide(&mut draft, Input::Unpark { drop }, &stamp)?;
        let given_up = usize::from(drop && !was_in_flight);
        for (dropped, _) in self.loaded.parked_mail.iter().take(given_up) {
            draft.no_longer_waits(self.actor, *dropped);
        }
        let first = self.loaded.next;
        let again = |(id, body): &(CommandId, String)| QueueMessage {
            group: self.actor.as_str().into(),
            id: format!("{id}/unparked/{first}"),
            body: body.clone(),
            ..QueueMessage::default()
        };
        draft.outbox.extend(self.loaded.parked_mail.iter().skip(given_up).map(again));
        draft.parking = Some(Parking { parked: false, messages: Vec::new() });
        self.commit(draft).await?;
        if M::in_flight(&self.loaded.state) && self.running.is_empty() {
            self.prepare(None).await?;
            self.step(Input::Resume, None).await?;
        }
        Ok(())
    }
}

/// The command that a message has, if it can be read.
fn command_in<M: Machine>(body: &str) -> Option<M::Command> {
    match Envelope::<M::Command>::parse(body).ok()?.content {
        Content::Command { body } => Some(body),
        Content::Continue | Content::Unpark { .. } => None,
    }
}
