//! Drives one actor to rest: decide, commit and send, publish, run effects, and again with their reports.

mod take;

use crate::{
    ActorId, ActorTree, Announcement, Content, Decision, EffectKey, EffectRunner, Entry, EntryObserver, Envelope,
    Executor, HoldRequest, Input, Machine, OutboxContributor, Step, StopRequest, View,
    delivery_attempt::DeliveryAttempt,
    draft::Draft,
    effect::{Reported, Running},
    ended,
    failure::DriveError,
    load::Loaded,
    log,
    mailbox::Unreadable,
    retry::while_unavailable,
    waiting,
};
use bytes::Bytes;
use domain::{CommandId, Stamp, StopId};
use futures::StreamExt;
use ports::{
    Bus, Clock, Delivery, Error, Expect, Item, Key, KnownSecrets, QueueMessage, QueueSender, Subscription, Table, Write,
};
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// How long entries of transient events stay in the log.
const TRANSIENT_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Numbers to skip when transient entries at the log's end may have expired: more than one message can have had.
const SKIPPED_NUMBERS: u64 = 1 << 20;
/// How often a worker looks for a request to stop whose announcement the bus lost.
const CONTROL_CHECKED_EVERY: Duration = Duration::from_secs(2);
/// The most reports of pure effects in one entry.
const COMPUTED_TOGETHER: usize = 16;
/// The longest time between the beginning of an entry and a report of a pure effect in it.
const COMPUTED_WITHIN: Duration = Duration::from_millis(1);

/// The ports and settings that actors of one kind are driven with.
pub(crate) struct Ports<M: Machine> {
    pub machine: M,
    pub perform: Arc<dyn EffectRunner<M>>,
    pub table: Arc<dyn Table>,
    pub queue: Arc<dyn QueueSender>,
    pub bus: Arc<dyn Bus>,
    pub clock: Arc<dyn Clock>,
    pub follow: Arc<dyn EntryObserver<M>>,
    pub contributor: Option<Arc<dyn OutboxContributor<M>>>,
    pub secrets: KnownSecrets,
    pub executor: Executor,
}

/// The requests to stop or hold the tree that an actor works in.
#[derive(Default)]
struct AskedOfTree {
    /// To stop.
    stop: Option<StopRequest>,
    /// To begin nothing new.
    holds: Vec<HoldRequest>,
}

/// How a drive ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nothing is in flight.
    AtRest,
    /// It was cut short. Work in flight goes on with a message of the actor to itself; a delivery that was not begun comes again.
    CutShort,
}

pub(crate) struct Drive<'a, M: Machine> {
    ports: &'a Ports<M>,
    actor: &'a ActorId,
    pub loaded: Loaded<M>,
    running: Running<M>,
    /// Deliveries that all is done for.
    pub done: usize,
    /// Entries committed so far.
    pub committed: u32,
    /// Decides whether a failure is the actor's own.
    attempt: &'a mut DeliveryAttempt,
    stops_seen: HashSet<StopId>,
    holds_seen: HashSet<uuid::Uuid>,
    /// The tree that the actor works in, once that is known.
    tree: Option<ActorTree>,
}

impl<'a, M: Machine> Drive<'a, M> {
    pub fn new(ports: &'a Ports<M>, actor: &'a ActorId, loaded: Loaded<M>, attempt: &'a mut DeliveryAttempt) -> Self {
        let running = Running::new(ports.perform.clone(), ports.executor.clone(), actor.clone());
        let (done, committed) = (0, 0);
        let (stops_seen, holds_seen, tree) = (HashSet::new(), HashSet::new(), None);
        Self { ports, actor, loaded, running, done, committed, attempt, stops_seen, holds_seen, tree }
    }

    /// Takes in the deliveries one after the other, each when nothing is in flight for the one before, until `cut`
    /// says that time is up.
    pub async fn run(&mut self, deliveries: &[Delivery], cut: &CancellationToken) -> Result<Ended, DriveError> {
        while let Some((delivery, behind)) = deliveries.get(self.done..).and_then(<[_]>::split_first) {
            if self.done > 0 && cut.is_cancelled() {
                return Ok(Ended::CutShort);
            }
            let envelope = Envelope::parse(&delivery.body).map_err(|error| match error {
                Unreadable::Newer(_) => DriveError::Newer(format!("a command: {error}")),
                Unreadable::Damaged(_) => DriveError::Poison(format!("the command cannot be read: {error}")),
            })?;
            let taken = self.take_in(envelope, delivery, behind).await?;
            let ended = self.run_effects(cut).await?;
            self.done += taken;
            if ended == Ended::CutShort {
                return Ok(ended);
            }
        }
        Ok(Ended::AtRest)
    }

    /// Feeds the machine with reports of effects, until no effect runs.
    async fn run_effects(&mut self, cut: &CancellationToken) -> Result<Ended, DriveError> {
        if self.running.is_empty() {
            return self.rest();
        }
        // Listen first, then look: a request in between is seen twice rather than never.
        let mut control = match self.ports.bus.subscribe(&self.actor.control_channel()).await {
            Ok(control) => control,
            // The bus is a hint: without it a stop is seen a moment later.
            Err(error) => {
                tracing::warn!(actor = %self.actor, error = %error.with_causes(), "stops are looked for in the table alone");
                futures::stream::pending().boxed()
            }
        };
        if let Some(tree) = self.tree.as_ref().filter(|tree| tree.root != *self.actor)
            && let Ok(of_tree) = self.ports.bus.subscribe(&tree.root.control_channel()).await
        {
            control = futures::stream::select(control, of_tree).boxed();
        }
        self.look_for_stop().await?;
        let mut looking = tokio::time::interval_at(Instant::now() + CONTROL_CHECKED_EVERY, CONTROL_CHECKED_EVERY);
        looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.running.is_empty() {
            if self.running.only_waits() {
                self.attempt.start_waiting().await;
            }
            tokio::select! {
                biased;
                () = cut.cancelled() => return self.checkpoint().await,
                () = announced(&mut control) => self.look_for_stop().await?,
                _ = looking.tick() => self.look_for_stop().await?,
                report = self.running.next() => {
                    let Reported { report, is_last } = report.map_err(DriveError::Panicked)?;
                    if is_last {
                        self.attempt.start_computing().await?;
                    }
                    self.step(Input::Report(report), None).await?;
                    if is_last {
                        self.attempt.record_progress().await;
                    }
                }
            }
        }
        self.rest()
    }

    fn rest(&self) -> Result<Ended, DriveError> {
        // Work that was in flight when the actor was paused stays so until the actor is resumed.
        let is_stranded = M::in_flight(&self.loaded.state) && !self.loaded.parked;
        if is_stranded { Err(DriveError::Stranded) } else { Ok(Ended::AtRest) }
    }

    /// Aborts running effects and tells the actor to continue in another delivery; work in flight becomes a new attempt.
    async fn checkpoint(&mut self) -> Result<Ended, DriveError> {
        let id = CommandId::from_key(self.actor.as_str(), &format!("continue/{}", self.loaded.next));
        let envelope = Envelope::<M::Command> {
            id,
            at: self.ports.clock.now(),
            by: domain::Principal::System,
            content: Content::Continue,
        };
        let message = envelope.to(self.actor)?;
        while_unavailable(|| self.ports.queue.send(vec![message.clone()])).await?;
        Ok(Ended::CutShort)
    }

    async fn look_for_stop(&mut self) -> Result<(), DriveError> {
        let requests = while_unavailable(|| self.actor.controls(&*self.ports.table)).await?;
        for item in requests {
            let request: StopRequest =
                serde_json::from_str(&item.body).map_err(|error| DriveError::Newer(format!("a stop: {error}")))?;
            // A request that goes with a command has its id. Where the command is consumed, a sender that got no answer has repeated the request.
            let is_done = self.loaded.consumed.contains(&CommandId(request.stop_id.0));
            if !is_done && self.stops_seen.insert(request.stop_id) {
                self.step(Input::Stop(request), None).await?;
            }
        }
        let AskedOfTree { stop, holds } = self.asked_of_tree(None).await?;
        for request in holds {
            if self.holds_seen.insert(request.hold_id) {
                self.step(Input::Hold(request), None).await?;
            }
        }
        match stop {
            Some(request) if self.stops_seen.insert(request.stop_id) => self.step(Input::Stop(request), None).await,
            _ => Ok(()),
        }
    }

    /// Reads the requests to stop or hold the actor's tree. One read for each delivery of an actor that works in a tree, and none for any
    /// other.
    async fn asked_of_tree(&mut self, next: Option<&M::Command>) -> Result<AskedOfTree, DriveError> {
        if self.tree.is_none() {
            self.tree = M::tree(&self.loaded.state, next);
        }
        let mut asked = AskedOfTree::default();
        let Some(tree) = &self.tree else { return Ok(asked) };
        for item in &while_unavailable(|| tree.root.tree_controls(&*self.ports.table)).await? {
            let newer = |error: serde_json::Error| DriveError::Newer(format!("a request to a tree: {error}"));
            let is_of = |key: fn(&ActorId, uuid::Uuid) -> Key| {
                tree.members.iter().any(|member| key(&tree.root, *member) == item.key)
            };
            if asked.stop.is_none() && is_of(ActorId::tree_control_key) {
                asked.stop = Some(serde_json::from_str(&item.body).map_err(newer)?);
            } else if is_of(ActorId::tree_hold_key) {
                asked.holds.push(serde_json::from_str(&item.body).map_err(newer)?);
            }
        }
        Ok(asked)
    }

    fn draft(&self) -> (Stamp, Draft<M>) {
        let stamp = self.ports.clock.stamp();
        let draft = Draft::new(self.loaded.next, &stamp);
        (stamp, draft)
    }

    fn decide(&mut self, draft: &mut Draft<M>, input: Input<M>, stamp: &Stamp) -> Result<(), Error> {
        let decision = self.handle(draft, input, stamp);
        self.add(draft, decision, stamp)
    }

    /// Lends the state to the machine for one step. If that panics, the state is gone.
    fn handle(&mut self, draft: &Draft<M>, input: Input<M>, stamp: &Stamp) -> Decision<M> {
        let state = std::mem::take(&mut self.loaded.state);
        let mut step = Step::new(state, draft.next()).redacting(self.ports.secrets.redactor());
        self.ports.machine.handle(&mut step, input, stamp);
        let (state, decision) = step.end();
        self.loaded.state = state;
        decision
    }

    fn add(&mut self, draft: &mut Draft<M>, decision: Decision<M>, stamp: &Stamp) -> Result<(), Error> {
        for key in &decision.cancel {
            self.running.cancel(key);
        }
        draft.add(self.actor, decision, stamp)
    }

    /// Decides and commits.
    async fn step(&mut self, input: Input<M>, consumes: Option<CommandId>) -> Result<(), DriveError> {
        let (stamp, mut draft) = self.draft();
        draft.commands.extend(consumes);
        self.decide(&mut draft, input, &stamp)?;
        self.commit(draft).await
    }

    /// Makes the decisions durable with one conditional write, then carries them out. Pure effects compute before, or meanwhile, unless the delivery has
    /// come before: then the log has to name what the process may have died of.
    async fn commit(&mut self, mut draft: Draft<M>) -> Result<(), DriveError> {
        let is_first = self.attempt.is_first();
        if is_first {
            self.compute(&mut draft)?;
        }
        let machine = &self.ports.machine;
        let (pure, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut draft.effects).into_iter().partition(|(_, effect)| is_first && machine.is_pure(effect));
        self.start(pure);
        let mut entry = draft.entry();
        if let Some(entry) = &mut entry {
            self.add_contributed(entry).await?;
            self.write(entry, draft.records).await?;
        }
        self.start(others);
        // Last, so that the update of a projection delays neither the model nor a tool.
        if let Some(entry) = entry.filter(|entry| !is_transient::<M>(entry)) {
            self.ports.follow.committed(self.actor, &self.loaded.state, &entry).await;
        }
        Ok(())
    }

    /// Runs a pure effect here, decides on its report, and goes on with the pure effect that this decision asks for: one entry for all of them. An entry has
    /// one time, so a report that took longer comes to a later entry. A stop is read between two entries only, so their number is bounded.
    fn compute(&mut self, draft: &mut Draft<M>) -> Result<(), Error> {
        for _ in 0..COMPUTED_TOGETHER {
            if !self.running.is_empty() {
                break;
            }
            let may = |effect: &M::Effect| self.ports.machine.is_pure(effect);
            let Some((key, effect)) = draft.take_only_effect(may) else { break };
            let waits = self.ports.machine.waits(&effect);
            let Some(report) = self.running.start_here(key.clone(), effect, waits) else { break };
            let stamp = self.ports.clock.stamp();
            if draft.is_older_than(COMPUTED_WITHIN, &stamp) {
                self.running.report_later(key, report);
                break;
            }
            self.decide(draft, Input::Report(report), &stamp)?;
        }
        Ok(())
    }

    fn start(&mut self, effects: Vec<(EffectKey, M::Effect)>) {
        for (key, effect) in effects {
            let waits = self.ports.machine.waits(&effect);
            self.running.start(key, effect, waits);
        }
    }

    /// The messages of those that follow the actor are in the entry that they are about.
    async fn add_contributed(&self, entry: &mut Entry<M::Event>) -> Result<(), DriveError> {
        if let Some(contributor) = self.ports.contributor.as_ref().filter(|_| !is_transient::<M>(entry)) {
            let added = while_unavailable(|| contributor.of(self.actor, &self.loaded.state, entry)).await?;
            entry.outbox.extend(added);
        }
        Ok(())
    }

    /// Writes an entry and the records `beside` it, and sends its messages. The entry keeps a message only where the commit does not send it: it may
    /// have to be sent again.
    async fn write(&mut self, entry: &mut Entry<M::Event>, mut beside: Vec<View>) -> Result<(), DriveError> {
        let messages = match self.ports.table.sends() {
            true => std::mem::take(&mut entry.outbox),
            false => entry.outbox.clone(),
        };
        let body = serde_json::to_string(entry).map_err(|error| Error::Invalid(error.to_string()))?;
        self.loaded.note(entry, body.len());
        let key = self.actor.entry_key(entry.first);
        let transient = is_transient::<M>(entry);
        let mut put = Write::put(key, body.clone(), Expect::Absent);
        if transient {
            put = put.expiring(entry.at + TRANSIENT_KEPT);
        }
        let view = if transient { None } else { M::view(&self.loaded.state) };
        let view = view.filter(|view| self.loaded.view.as_ref() != Some(view));
        beside.extend(view.clone());
        if let Some(left) = view.as_ref().filter(|view| view.body.is_none()) {
            beside.extend(ended::note(self.actor, &left.key, entry.at));
        }
        let waits = if transient { self.loaded.waiting.clone() } else { M::waiting(&self.loaded.state) };
        let waits_otherwise = waits != self.loaded.waiting;
        if waits_otherwise {
            beside.extend(waiting::written(self.loaded.waiting.as_ref(), waits.as_ref()));
        }
        // The removal of a log takes the view along: a step that ends afterwards must not put the actor on a list again.
        let listed = self.loaded.view.as_ref().filter(|view| view.body.is_some()).map(|view| view.key.clone());
        let mut writes = vec![put];
        writes.extend(beside.into_iter().map(|View { key, index, body }| match body {
            Some(body) => {
                let expect = if listed.as_ref() == Some(&key) { Expect::Present } else { Expect::Any };
                Write::Put { key, body, index, expires_at: None, expect }
            }
            None => Write::delete(key, Expect::Any),
        }));
        self.commit_once(writes, messages, entry).await?;
        self.committed += 1;
        let has_new_view = view.is_some();
        if has_new_view {
            self.loaded.view = view;
        }
        // The bus is a hint: a subscriber that misses it reads the log.
        if let Err(error) = self.ports.bus.publish(self.actor.as_str(), Bytes::from(body)).await {
            tracing::warn!(actor = %self.actor, error = %error.with_causes(), "an entry was not published");
        }
        if has_new_view {
            self.announce().await;
        }
        if waits_otherwise {
            let before = std::mem::replace(&mut self.loaded.waiting, waits);
            self.publish(waiting::announcement(before.as_ref(), self.loaded.waiting.as_ref())).await;
        }
        if !entry.outbox.is_empty() {
            while_unavailable(|| self.ports.queue.send(entry.outbox.clone())).await?;
        }
        Ok(())
    }

    async fn announce(&mut self) {
        let news = M::announce(&self.loaded.state);
        if news.is_none() || news == self.loaded.announced {
            return;
        }
        self.publish(news.clone()).await;
        self.loaded.announced = news;
    }

    async fn publish(&self, news: Option<Announcement>) {
        if let Some(Announcement { channel, message }) = news
            && let Err(error) = self.ports.bus.publish(&channel, message).await
        {
            tracing::warn!(actor = %self.actor, error = %error.with_causes(), "a change of state was not announced");
        }
    }

    /// Commits, also when the table does not say whether it did: an entry that is there under this step's own id is ours. Where the view is gone that
    /// this worker knows, the first entry tells why: it is there if the view alone is gone, which is then written again, and gone if the log was removed.
    async fn commit_once(
        &self,
        mut writes: Vec<Write>,
        messages: Vec<QueueMessage>,
        entry: &Entry<M::Event>,
    ) -> Result<(), DriveError> {
        let (table, messages) = (&self.ports.table, &messages);
        loop {
            let attempted = &writes;
            let commit = || async move {
                match messages.is_empty() {
                    true => table.commit(attempted.clone()).await,
                    false => table.commit_sending(attempted.clone(), messages.clone()).await,
                }
            };
            match while_unavailable(commit).await {
                Ok(()) => return Ok(()),
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            let found = self.get(&self.actor.entry_key(entry.first)).await?;
            if let Some(item) = found {
                let ours = item.content::<log::Step>()?.step == entry.step;
                return if ours { Ok(()) } else { Err(DriveError::Lost) };
            }
            if !expect_no_view(&mut writes) {
                return Err(DriveError::Lost);
            }
            // A log that is truncated has no first entry either.
            if !M::TRUNCATES && self.get(&self.actor.entry_key(1)).await?.is_none() {
                return Err(DriveError::Removed);
            }
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>, Error> {
        while_unavailable(|| self.ports.table.get(key)).await
    }

    /// Clients may have seen numbers whose transient entries have expired since. Numbers never come twice, so an entry without events takes
    /// the next one and skips all numbers that clients may have seen.
    async fn skip_expired_numbers(&mut self) -> Result<(), DriveError> {
        let stamp = self.ports.clock.stamp();
        if stamp.at.since(self.loaded.newest_at) < TRANSIENT_KEPT / 2 {
            return Ok(());
        }
        let first = self.loaded.next;
        let mut entry = Entry {
            first,
            next: first + SKIPPED_NUMBERS,
            at: stamp.at,
            step: stamp.id,
            commands: Vec::new(),
            events: Vec::new(),
            outbox: Vec::new(),
            parking: None,
        };
        self.write(&mut entry, Vec::new()).await
    }
}

/// Lets these writes succeed without a view; true if one of them demanded it.
fn expect_no_view(writes: &mut [Write]) -> bool {
    let mut expected = false;
    for write in writes {
        if let Write::Put { expect, .. } = write
            && *expect == Expect::Present
        {
            *expect = Expect::Any;
            expected = true;
        }
    }
    expected
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
