//! Driving one actor to rest: decide, commit, publish, send, run effects, and again with what they report.

use crate::{
    ActorId, Content, Decision, Entry, Input, Letter, Machine, Mail, Parking, StopRequest, Target, View,
    effect::Running, load::Loaded, log, retry::while_unavailable, runtime::Ports,
};
use bytes::Bytes;
use domain::{CommandId, Stamp, StopId, Timestamp};
use futures::StreamExt;
use ports::{Error, Expect, Outgoing, Subscription, Write};
use std::{collections::HashSet, time::Duration};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// How long entries of transient events stay in the log.
const TRANSIENT_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Numbers to skip when transient entries at the log's end may have expired: more than one message can have had.
const SKIPPED_NUMBERS: u64 = 1 << 20;
/// How often a worker looks for a request to stop whose announcement the bus lost.
const CONTROL_CHECKED_EVERY: Duration = Duration::from_secs(2);

/// Why a drive ended before its actor was at rest.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Another worker wrote the next entry: this one does not own the actor (any more).
    #[error("another worker drives this actor")]
    Lost,
    #[error("a port failed")]
    Port(#[from] Error),
    #[error("panicked: {0}")]
    Panicked(String),
    /// Tried too often without a step forward: the actor has to be paused.
    #[error("{0}")]
    Poison(String),
    #[error("the machine says that effects are in flight, and none is")]
    Stranded,
}

impl Failure {
    /// Whether a store did not answer: that passes, and is nobody's fault here.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Port(Error::Unavailable { .. }))
    }
}

/// How a drive ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nothing is in flight.
    AtRest,
    /// It was cut short, and the actor told itself to continue.
    Checkpointed,
}

/// What goes into an entry beside the machine's decision.
#[derive(Default)]
struct Beside {
    /// The command that it consumes.
    command: Option<CommandId>,
    /// What it says about the actor being paused.
    parking: Option<Parking>,
    /// Mail that was put aside and is sent again.
    forwarded: Vec<Outgoing>,
}

pub(crate) struct Drive<'a, M: Machine> {
    ports: &'a Ports<M>,
    actor: &'a ActorId,
    pub loaded: Loaded<M>,
    running: Running<M>,
    /// Entries committed so far.
    pub committed: u32,
    stops_seen: HashSet<StopId>,
}

impl<'a, M: Machine> Drive<'a, M> {
    pub fn new(ports: &'a Ports<M>, actor: &'a ActorId, loaded: Loaded<M>) -> Self {
        let running = Running::new(ports.perform.clone());
        Self { ports, actor, loaded, running, committed: 0, stops_seen: HashSet::new() }
    }

    /// Takes in one message of the mailbox and goes on until nothing is in flight or `cut` says that time is up.
    /// `attempt` counts the deliveries of this message; what is tried more often than `max_attempts` is poison.
    ///
    /// A long turn may well outlive many workers, so what is in flight is not judged by how often its message came, but by
    /// how often the very effect that it is at was begun, by deliveries of this one message: a checkpoint is no failure.
    pub async fn run(
        &mut self,
        mail: Mail<M::Command>,
        body: &str,
        (attempt, max_attempts): (u32, u32),
        cut: &CancellationToken,
    ) -> Result<Ended, Failure> {
        let consumed = self.loaded.consumed.contains(&mail.id);
        if (consumed || attempt > 1) && !self.loaded.unsettled_outbox.is_empty() {
            // A worker may have died between the commit and the sends. The ids make sending again harmless.
            let outbox = self.loaded.unsettled_outbox.clone();
            while_unavailable(|| self.ports.queue.send(outbox.clone())).await?;
        }
        if matches!(&mail.content, Content::Command { body } if !consumed && M::ends(body)) {
            return self.take_in_last(mail, cut).await;
        }
        if self.loaded.parked {
            return self.take_in_while_parked(mail, body, cut).await;
        }
        let begun = M::attempt(&self.loaded.state);
        if begun >= max_attempts && attempt >= max_attempts {
            return Err(Failure::Poison(format!("the same step was begun {begun} times and never ended")));
        }
        let is_new_command = matches!(mail.content, Content::Command { .. }) && !consumed;
        if is_new_command && attempt > max_attempts {
            return Err(Failure::Poison(format!("the command {} failed {} times", mail.id, attempt - 1)));
        }
        if M::in_flight(&self.loaded.state) {
            self.skip_expired_numbers().await?;
            self.step(Input::Resume, None).await?;
        }
        if let Content::Command { body } = mail.content
            && !consumed
        {
            let input = Input::Command { id: mail.id, by: mail.by, at: mail.at, command: body };
            self.step(input, Some(mail.id)).await?;
        }
        self.run_effects(cut).await
    }

    /// Takes in a command that ends the actor, whatever the actor is at. What was in flight is resumed after it, if any of
    /// it is left to complete.
    async fn take_in_last(&mut self, mail: Mail<M::Command>, cut: &CancellationToken) -> Result<Ended, Failure> {
        if M::in_flight(&self.loaded.state) {
            self.skip_expired_numbers().await?;
        }
        let Content::Command { body: command } = mail.content else { return self.rest() };
        let stamp = self.ports.clock.stamp();
        let input = Input::Command { id: mail.id, by: mail.by, at: mail.at, command };
        let decision = self.ports.machine.handle(&self.loaded.state, input, &stamp);
        let parking = self.loaded.parked.then(|| Parking { parked: false, mail: Vec::new() });
        self.commit(decision, Beside { command: Some(mail.id), parking, ..Beside::default() }, stamp).await?;
        if M::in_flight(&self.loaded.state) {
            self.step(Input::Resume, None).await?;
        }
        self.run_effects(cut).await
    }

    /// Puts the actor aside: `mail` failed too often. It is kept, unless it was consumed and what failed is its work.
    pub async fn park(&mut self, mail: (CommandId, String), reason: String) -> Result<(), Failure> {
        let known =
            self.loaded.consumed.contains(&mail.0) || self.loaded.parked_mail.iter().any(|(id, _)| *id == mail.0);
        let stamp = self.ports.clock.stamp();
        let decision = if self.loaded.parked {
            Decision::default()
        } else {
            self.ports.machine.handle(&self.loaded.state, Input::Park { reason }, &stamp)
        };
        let parking = Parking { parked: true, mail: if known { Vec::new() } else { vec![mail] } };
        self.commit(decision, Beside { parking: Some(parking), ..Beside::default() }, stamp).await
    }

    async fn take_in_while_parked(
        &mut self,
        mail: Mail<M::Command>,
        body: &str,
        cut: &CancellationToken,
    ) -> Result<Ended, Failure> {
        match mail.content {
            Content::Command { .. } => self.park((mail.id, body.to_owned()), String::new()).await?,
            Content::Continue => {}
            // It did resume the actor, which failed again since: that is for a person to see.
            Content::Unpark { .. } if self.loaded.consumed.contains(&mail.id) => {}
            Content::Unpark { drop } => {
                self.unpark(mail.id, drop).await?;
                return self.run_effects(cut).await;
            }
        }
        Ok(Ended::AtRest)
    }

    /// Goes on where the actor was paused: with the work that was in flight, then with the mail that was put aside. What
    /// failed is the first of these, and with `drop` it is given up.
    async fn unpark(&mut self, command: CommandId, drop: bool) -> Result<(), Failure> {
        let stamp = self.ports.clock.stamp();
        let was_in_flight = M::in_flight(&self.loaded.state);
        let decision = self.ports.machine.handle(&self.loaded.state, Input::Unpark { drop }, &stamp);
        let given_up = usize::from(drop && !was_in_flight);
        let first = self.loaded.next;
        let again = |(id, body): &(CommandId, String)| Outgoing {
            group: self.actor.as_str().into(),
            id: format!("{id}/unparked/{first}"),
            body: body.clone(),
            deliver_at: None,
        };
        let forwarded = self.loaded.parked_mail.iter().skip(given_up).map(again).collect();
        let parking = Parking { parked: false, mail: Vec::new() };
        self.commit(decision, Beside { command: Some(command), parking: Some(parking), forwarded }, stamp).await?;
        if M::in_flight(&self.loaded.state) && self.running.is_empty() {
            self.step(Input::Resume, None).await?;
        }
        Ok(())
    }

    /// Feeds the machine with what its effects report, until none is running.
    async fn run_effects(&mut self, cut: &CancellationToken) -> Result<Ended, Failure> {
        if self.running.is_empty() {
            return self.rest();
        }
        // Listen first, then look: a request in between is seen twice rather than never.
        let mut control = self.ports.bus.subscribe(&self.actor.control_channel()).await?;
        self.look_for_stop().await?;
        let mut looking = tokio::time::interval_at(Instant::now() + CONTROL_CHECKED_EVERY, CONTROL_CHECKED_EVERY);
        looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.running.is_empty() {
            tokio::select! {
                biased;
                () = cut.cancelled() => return self.checkpoint().await,
                () = announced(&mut control) => self.look_for_stop().await?,
                _ = looking.tick() => self.look_for_stop().await?,
                report = self.running.next() => {
                    let report = report.map_err(Failure::Panicked)?;
                    self.step(Input::Report(report), None).await?;
                }
            }
        }
        self.rest()
    }

    fn rest(&self) -> Result<Ended, Failure> {
        if M::in_flight(&self.loaded.state) { Err(Failure::Stranded) } else { Ok(Ended::AtRest) }
    }

    /// Gives up what runs and tells the actor to continue in another delivery; what was in flight becomes a new attempt.
    async fn checkpoint(&mut self) -> Result<Ended, Failure> {
        let id = CommandId::from_key(self.actor.as_str(), &format!("continue/{}", self.loaded.next));
        let mail = Mail::<M::Command> {
            id,
            at: self.ports.clock.now(),
            by: domain::Principal::System,
            content: Content::Continue,
        };
        let message = mail.to(self.actor)?;
        while_unavailable(|| self.ports.queue.send(vec![message.clone()])).await?;
        Ok(Ended::Checkpointed)
    }

    async fn look_for_stop(&mut self) -> Result<(), Failure> {
        for target in [Target::Everything, Target::First] {
            let key = self.actor.control_key(target);
            let Some(item) = while_unavailable(|| self.ports.table.get(&key)).await? else { continue };
            let request: StopRequest = log::parse(&item.body)?;
            if self.stops_seen.insert(request.stop_id) {
                self.step(Input::Stop(request), None).await?;
            }
        }
        Ok(())
    }

    /// Decides and commits.
    async fn step(&mut self, input: Input<M>, consumes: Option<CommandId>) -> Result<(), Failure> {
        let stamp = self.ports.clock.stamp();
        let decision = self.ports.machine.handle(&self.loaded.state, input, &stamp);
        self.commit(decision, Beside { command: consumes, ..Beside::default() }, stamp).await
    }

    /// Makes a decision durable with one conditional write, then carries it out.
    async fn commit(&mut self, decision: Decision<M>, beside: Beside, stamp: Stamp) -> Result<(), Failure> {
        let Decision { events, send, effects, cancel } = decision;
        let Beside { command, parking, forwarded } = beside;
        for key in &cancel {
            self.running.cancel(key);
        }
        let mut committed = None;
        let changes_something = !events.is_empty() || !send.is_empty() || parking.is_some();
        if changes_something {
            let first = self.loaded.next;
            let mut outbox = self.outbox(first, stamp.at, &send)?;
            outbox.extend(forwarded);
            let entry = Entry {
                first,
                next: first + (events.len() as u64).max(1),
                at: stamp.at,
                step: stamp.id,
                command,
                events,
                outbox,
                parking,
            };
            self.write(&entry).await?;
            committed = Some(entry);
        }
        for (key, effect) in effects {
            self.running.start(key, effect);
        }
        // Last: a file that shows what was said keeps neither the model nor a tool waiting.
        if let Some(entry) = committed.filter(|entry| !is_transient::<M>(entry)) {
            self.ports.follow.committed(self.actor, &self.loaded.state, &entry).await;
        }
        Ok(())
    }

    fn outbox(&self, first: u64, at: Timestamp, letters: &[Letter]) -> Result<Vec<Outgoing>, Failure> {
        let outgoing = |(position, letter): (usize, &Letter)| {
            let name = format!("{first}/{position}");
            let id = CommandId::from_key(self.actor.as_str(), &name);
            let by = domain::Principal::System;
            let content = Content::Command { body: &letter.command };
            let body = serde_json::to_string(&Mail { id, at, by, content })
                .map_err(|error| Error::Invalid(error.to_string()))?;
            let id = format!("{}/{name}", self.actor);
            Ok(Outgoing { group: letter.to.as_str().into(), id, body, deliver_at: letter.deliver_at })
        };
        letters.iter().enumerate().map(outgoing).collect()
    }

    async fn write(&mut self, entry: &Entry<M::Event>) -> Result<(), Failure> {
        let body = serde_json::to_string(entry).map_err(|error| Error::Invalid(error.to_string()))?;
        let mut beside: Vec<View> = Vec::new();
        self.loaded.apply_seeing(entry, body.len(), |state, event| beside.extend(M::record(state, event)));
        let key = self.actor.entry_key(entry.first);
        let transient = is_transient::<M>(entry);
        let mut put = Write::put(key, body.clone(), Expect::Absent);
        if transient {
            put = put.expiring(entry.at + TRANSIENT_KEPT);
        }
        let view = if transient { None } else { M::view(&self.loaded.state) };
        let view = view.filter(|view| self.loaded.view.as_ref() != Some(view));
        beside.extend(view.clone());
        let mut writes = vec![put];
        writes.extend(beside.into_iter().map(|View { key, index, body }| match body {
            Some(body) => Write::Put { key, body, index, expires_at: None, expect: Expect::Any },
            None => Write::delete(key, Expect::Any),
        }));
        self.commit_once(writes, entry).await?;
        self.committed += 1;
        if view.is_some() {
            self.loaded.view = view;
        }
        // The bus is a hint: whoever misses it reads the log.
        if let Err(error) = self.ports.bus.publish(self.actor.as_str(), Bytes::from(body)).await {
            tracing::warn!(actor = %self.actor, %error, "an entry was not published");
        }
        if !entry.outbox.is_empty() {
            while_unavailable(|| self.ports.queue.send(entry.outbox.clone())).await?;
        }
        Ok(())
    }

    /// Commits, also when the table does not say whether it did: an entry that is there under this step's own id is ours.
    async fn commit_once(&self, writes: Vec<Write>, entry: &Entry<M::Event>) -> Result<(), Failure> {
        match while_unavailable(|| self.ports.table.commit(writes.clone())).await {
            Ok(()) => Ok(()),
            Err(Error::Conflict { .. }) => {
                let key = self.actor.entry_key(entry.first);
                let found = while_unavailable(|| self.ports.table.get(&key)).await?;
                let ours = match found {
                    Some(item) => log::parse::<log::Step>(&item.body)?.step == entry.step,
                    None => false,
                };
                if ours { Ok(()) } else { Err(Failure::Lost) }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Clients may have seen numbers whose transient entries have expired since. Numbers never come twice, so an entry
    /// without events takes the next one and skips beyond all that may have been seen.
    async fn skip_expired_numbers(&mut self) -> Result<(), Failure> {
        let stamp = self.ports.clock.stamp();
        if stamp.at.since(self.loaded.newest_at) < TRANSIENT_KEPT / 2 {
            return Ok(());
        }
        let first = self.loaded.next;
        let entry = Entry {
            first,
            next: first + SKIPPED_NUMBERS,
            at: stamp.at,
            step: stamp.id,
            command: None,
            events: Vec::new(),
            outbox: Vec::new(),
            parking: None,
        };
        self.write(&entry).await
    }
}

/// Whether an entry is only of interest until the message that it belongs to is complete.
fn is_transient<M: Machine>(entry: &Entry<M::Event>) -> bool {
    !entry.events.is_empty() && entry.events.iter().all(M::is_transient)
}

/// Waits for an announcement; a subscription that ended announces nothing.
async fn announced(control: &mut Subscription) {
    if control.next().await.is_none() {
        std::future::pending::<()>().await;
    }
}
