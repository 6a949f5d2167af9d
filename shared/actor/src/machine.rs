//! The trait that the runtime requires of a state machine: pure functions only.

mod redact;
mod step;

pub use step::Step;

use crate::{ActorId, Entry, StopTarget};
use async_trait::async_trait;
use bytes::Bytes;
use domain::{
    Announced, CommandId, Principal, Stamp, StopId, Timestamp, Waiting, WorkspaceEvent, WorkspaceId, changes_channel,
};
use ports::{Key, QueueMessage};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// A pure state machine. The same state, input and stamp give the same decision, on every machine and after every crash.
///
/// # Example
/// ```
/// use buildscale_actor::{Input, Machine, Step, View};
/// use domain::{CommandId, Principal, Stamp, Timestamp};
/// use serde::{Deserialize, Serialize};
///
/// struct Counter;
///
/// #[derive(Serialize, Deserialize)]
/// struct Add(u32);
///
/// #[derive(Serialize, Deserialize)]
/// struct Added(u32);
///
/// impl Machine for Counter {
///     const KIND: &'static str = "counter";
///     type State = u32;
///     type Command = Add;
///     type Event = Added;
///     type Effect = ();
///     type Report = ();
///
///     fn apply(state: &mut u32, _number: u64, Added(count): &Added) {
///         *state += count;
///     }
///     fn handle(&self, step: &mut Step<Self>, input: Input<Self>, _stamp: &Stamp) {
///         if let Input::Command { command: Add(count), .. } = input {
///             step.push(Added(count));
///         }
///     }
///     fn in_flight(_state: &u32) -> bool {
///         false
///     }
///     fn is_transient(_event: &Added) -> bool {
///         false
///     }
///     fn view(_state: &u32) -> Option<View> {
///         None
///     }
/// }
///
/// let stamp = Stamp { at: Timestamp::default(), id: uuid::Uuid::nil() };
/// let (id, by) = (CommandId(stamp.id), Principal::System);
/// let mut step = Step::new(40, 1);
/// Counter.handle(&mut step, Input::Command { id, by, at: stamp.at, command: Add(2) }, &stamp);
/// assert_eq!(*step.state(), 42);
/// ```
pub trait Machine: Send + Sync + Sized + 'static {
    /// The first part of its actors' ids.
    const KIND: &'static str;
    /// The version of the fold: raised with every change after which the same log folds to something else, be it a new field
    /// of the state or a new field of an event. A snapshot counts for the version that made it, and is no more than a
    /// saving: a worker of another version folds the log anew. So two versions at work at once take nothing from each other.
    const VERSION: u32 = 1;
    /// Whether the oldest entries are removed from the logs, up to one after which the actor [was as new](Machine::is_as_new): for actors that live for
    /// ever, and whose logs nobody else reads.
    const TRUNCATES: bool = false;
    /// The fold of the log. Its default is an actor without events.
    type State: Default + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// The commands of the machine.
    type Command: Serialize + DeserializeOwned + Send + Sync + 'static;
    /// The events of the machine: past-tense facts.
    type Event: Serialize + DeserializeOwned + Send + Sync + 'static;
    /// The effects of the machine: requests to do something outside.
    type Effect: Send + 'static;
    /// The reports of effects.
    type Report: Send + 'static;

    /// Folds the event with this number into the state. Total: it fails for no event.
    fn apply(state: &mut Self::State, number: u64, event: &Self::Event);
    /// Decides on an input: asks the state of the step, and adds its decisions to the step.
    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, stamp: &Stamp);
    /// Whether effects are in flight: begun by a decision, and not reported yet.
    fn in_flight(state: &Self::State) -> bool;
    /// Whether the actor waits for something and has not asked for it: an older version ended a pause without a message. Then the message that tells
    /// the actor to go on ([`resend_outbox`](crate::resend_outbox)) gives it [`Input::Resume`], and no other message does.
    fn asks_anew(state: &Self::State) -> bool {
        let _ = state;
        false
    }
    /// Whether the actor has come to its end, and hardly any command comes to it: it is then neither kept in memory nor flushed to a
    /// snapshot.
    fn is_over(state: &Self::State) -> bool {
        let _ = state;
        false
    }
    /// Whether the state equals the default one, that of an actor without events, in each version of the fold.
    fn is_as_new(state: &Self::State) -> bool {
        let _ = state;
        false
    }
    /// Whether an effect does its work elsewhere, and only waits in this process: for a model, or for a command in a sandbox. A
    /// process that dies meanwhile did not die of it.
    fn waits(&self, effect: &Self::Effect) -> bool {
        let _ = effect;
        false
    }
    /// Whether an effect only computes its report from its own fields: it reads nothing that changes, nothing outside sees it, and it reports once, at
    /// its end. Such an effect may run before its entry is durable, and the entry may hold the decision on its report. If the entry is not written,
    /// nothing remains of the effect.
    fn is_pure(&self, effect: &Self::Effect) -> bool {
        let _ = effect;
        false
    }
    /// Whether the event may expire from the log.
    fn is_transient(event: &Self::Event) -> bool;
    /// Whether the command ends the actor for good. Earlier commands do not matter then: it is taken in before work in flight is resumed,
    /// and also while the actor is paused, whose messages are dropped with it.
    fn ends(command: &Self::Command) -> bool {
        let _ = command;
        false
    }
    /// Whether the command ends the work that is in flight, so that it also ends the pause of an actor: it is taken as
    /// [`Input::Unpark`] with `drop`.
    fn gives_up(command: &Self::Command) -> bool {
        let _ = command;
        false
    }
    /// Whether the sender left a note that this command waits ([`crate::Mailbox::note`]): it goes with the entry that consumes it.
    fn is_noted(command: &Self::Command) -> bool {
        let _ = command;
        false
    }
    /// The tree of actors that this one works in, if it works for others: a stop of the tree is a stop of this actor. `next` is the command
    /// that is decided next; an actor without events finds the tree in it.
    fn tree(state: &Self::State, next: Option<&Self::Command>) -> Option<ActorTree> {
        let _ = (state, next);
        None
    }
    /// The actor as lists show it, kept in the table along with the entries that change it.
    fn view(state: &Self::State) -> Option<View>;
    /// The message that tells watchers of the actor's surroundings about its present state, with its bus channel. It is a hint, sent
    /// after the commit of a view that changed, if it differs from the last one.
    fn announce(state: &Self::State) -> Option<Announcement> {
        let _ = state;
        None
    }
    /// The actor as the list of what waits for people has it, while it does ([`crate::waiting`]).
    fn waiting(state: &Self::State) -> Option<Waiting> {
        let _ = state;
        None
    }
    /// A record to keep for good beside the log because of `event`, such as the cost of a turn. `state` is the one before it.
    fn record(state: &Self::State, event: &Self::Event) -> Option<View> {
        let _ = (state, event);
        None
    }
}

/// Follows the commits of actors on the machine that drives them: a projection, such as the chat's file.
#[async_trait]
pub trait EntryObserver<M: Machine>: Send + Sync {
    /// The actor was read from its log. A worker may have died between a commit and the call of [`EntryObserver::committed`].
    async fn loaded(&self, actor: &ActorId, state: &M::State) {
        let _ = (actor, state);
    }
    /// An entry was committed; `state` is the one after it. Called in order, before the worker goes on.
    async fn committed(&self, actor: &ActorId, state: &M::State, entry: &Entry<M::Event>);
}

/// Several observers, called one after the other.
pub struct EntryObservers<M: Machine>(pub Vec<Arc<dyn EntryObserver<M>>>);

#[async_trait]
impl<M: Machine> EntryObserver<M> for EntryObservers<M> {
    async fn loaded(&self, actor: &ActorId, state: &M::State) {
        for observer in &self.0 {
            observer.loaded(actor, state).await;
        }
    }

    async fn committed(&self, actor: &ActorId, state: &M::State, entry: &Entry<M::Event>) {
        for observer in &self.0 {
            observer.committed(actor, state, entry).await;
        }
    }
}

/// Adds messages to the outbox of an entry before it is written, for a part that follows actors and misses nothing. An entry and these messages are
/// one write, so a crash loses none of them.
#[async_trait]
pub trait OutboxContributor<M: Machine>: Send + Sync {
    /// The messages that go along with this entry; `state` is the one after it. Their ids follow from the numbers of its events, so that sending
    /// them again has no effect. Not asked for entries of transient events.
    ///
    /// # Errors
    /// Those of a port that it reads. The step is then tried again.
    async fn of(&self, actor: &ActorId, state: &M::State, entry: &Entry<M::Event>) -> ports::Result<Vec<QueueMessage>>;
}

/// A machine whose actors have no projection.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

#[async_trait]
impl<M: Machine> EntryObserver<M> for NoObserver {
    async fn committed(&self, _actor: &ActorId, _state: &M::State, _entry: &Entry<M::Event>) {}
}

/// An input that a machine decides on.
#[derive(Debug)]
pub enum Input<M: Machine> {
    /// A command, for the first time.
    Command {
        /// Its id.
        id: CommandId,
        /// The sender.
        by: Principal,
        /// When it was accepted.
        at: Timestamp,
        /// The command.
        command: M::Command,
    },
    /// A report of a running effect.
    Report(M::Report),
    /// The worker that ran the effects in flight is gone: decide to run them again, as a new attempt.
    Resume,
    /// Somebody wants the running work stopped.
    Stop(StopRequest),
    /// The tree that the actor works in was stopped, and nothing of the actor runs: its last decision was not begun, or the worker that ran
    /// it is gone. It ends at once.
    Halt(StopRequest),
    /// The tree that the actor works in is held. This is decided before the next input, and once in a drive at least: the same request
    /// again changes nothing.
    Hold(HoldRequest),
    /// A command failed again and again; nothing more is done until somebody resumes the actor, unless the machine gives it up
    /// ([`Decision::gives_up`]).
    Park {
        /// The reason.
        reason: String,
        /// The command, if it was not taken in: work in flight is not the reason then.
        command: Option<M::Command>,
    },
    /// The actor is resumed; with `drop`, the work that was in flight is given up.
    Unpark {
        /// Whether the work in flight is given up.
        drop: bool,
    },
}

/// A tree of actors that work for one: a task with the tasks below it and the chats of their agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorTree {
    /// The actor at its root: requests to stop are kept beside its log and announced on its channel.
    pub root: ActorId,
    /// The members whose stop is this actor's stop: its own and all between it and the root, the root included.
    pub members: Vec<uuid::Uuid>,
}

/// A request to stop, as it is kept for the worker to find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopRequest {
    /// The request.
    pub stop_id: StopId,
    /// The target of the stop.
    pub target: StopTarget,
    /// When it was asked for.
    pub at: Timestamp,
    /// The reason, such as `user_cancelled`.
    pub reason: String,
}

/// A request to hold a part of a tree: nothing new of it begins until somebody lets it go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldRequest {
    /// The request.
    pub hold_id: uuid::Uuid,
    /// From the root of the tree to the actor that is held with all below it.
    pub path: Vec<uuid::Uuid>,
    /// When it was asked for.
    pub at: Timestamp,
}

/// The decision of a machine on one input.
#[derive(Debug)]
pub struct Decision<M: Machine> {
    /// The events.
    pub events: Vec<M::Event>,
    /// Records to keep beside the log because of them ([`Machine::record`]).
    pub records: Vec<View>,
    /// Messages to send, once the events are durable.
    pub send: Vec<OutboxMessage>,
    /// Effects to run, once the events are durable (a [pure](Machine::is_pure) one maybe before), each under a key that no other effect of
    /// this actor ever has.
    pub effects: Vec<(EffectKey, M::Effect)>,
    /// Effects to cancel; their reports are dropped.
    pub cancel: Vec<EffectKey>,
    /// For [`Input::Park`]: the failed work is given up, so the actor is not paused and needs no resume.
    pub gives_up: bool,
}

impl<M: Machine> Default for Decision<M> {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            records: Vec::new(),
            send: Vec::new(),
            effects: Vec::new(),
            cancel: Vec::new(),
            gives_up: false,
        }
    }
}

/// A command to some actor, itself included.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxMessage {
    /// The receiver.
    pub to: ActorId,
    /// The command, as JSON.
    pub command: serde_json::Value,
    /// Not before this time.
    pub deliver_at: Option<Timestamp>,
    /// Of the actors of a tenant that wait for a worker, those with more go first; usually 0.
    pub priority: i8,
}

impl OutboxMessage {
    /// A command that is delivered at once.
    pub fn now(to: impl Into<ActorId>, command: serde_json::Value, priority: i8) -> Self {
        Self { to: to.into(), command, deliver_at: None, priority }
    }
}

/// One attempt of one effect, such as `model/<message>/1`. Also its idempotency key towards the outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EffectKey(pub String);

/// A message for a bus channel other than the actor's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The channel.
    pub channel: String,
    /// The message, as its subscribers read it.
    pub message: Bytes,
}

impl Announcement {
    /// Of a change in a workspace, on the channel of its changes.
    pub fn of_workspace(workspace: WorkspaceId, event: WorkspaceEvent) -> Option<Self> {
        let message = serde_json::to_vec(&Announced { id: None, event }).ok()?.into();
        Some(Self { channel: changes_channel(workspace), message })
    }
}

/// One item beside the log, written with the entry that it follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its key in the table.
    pub key: Key,
    /// Its key in the index, if it has one.
    pub index: Option<Key>,
    /// Its JSON; none for one that is to be removed.
    pub body: Option<String>,
}
