//! The actor runtime: rehydrate, decide, commit, publish, send, run effects, rest. It knows no chat and no task.
//!
//! An actor is an id, a mailbox (a queue group), an append-only log, and a pure state machine ([`Machine`]). No actor
//! lives anywhere: a worker loads it, drives it to rest, and forgets it or keeps it warm. The log decides, not the memory.
//!
//! The way of a command, by file: [`mailbox`] brings it, [`load`] rehydrates the actor, [`machine`] decides in a [`Step`], [`drive`]
//! commits, publishes, sends and runs effects until the actor rests, [`runtime`] settles the delivery. Commands that come together and need
//! nothing from outside in between become one entry: [`draft`]. Data of a newer version is left to a worker of that version: [`newer_version`].
//! Logs of actors that live for ever are shortened: [`truncate`].
//! Failures that are an actor's own fault: [`delivery_attempt`]. Turns on the processors: [`executor`].

mod actor_cache;
mod actor_driver;
mod delivery_attempt;
mod draft;
mod drive;
mod effect;
pub mod ended;
mod executor;
mod failure;
mod load;
pub mod log;
pub mod machine;
pub mod mailbox;
mod newer_version;
mod resend_outbox;
mod retry;
mod runtime;
mod stop_target;
mod truncate;
mod view;
pub mod waiting;
pub mod watchdog;

pub use actor_cache::{CacheCounts, CacheLimits, CacheSize};
pub use actor_driver::ActorDriver;
pub use delivery_attempt::Quarantine;
pub use effect::{EffectContext, EffectRunner};
pub use executor::{Executor, Job};
pub use load::{consumed, has_consumed, read_state};
pub use log::{ActorId, Entry, LogPage, LogReader, Parking, next_number, read_after, read_before};
pub use machine::{
    ActorTree, Announcement, Decision, EffectKey, EntryObserver, EntryObservers, HoldRequest, Input, Machine,
    NoObserver, OutboxContributor, OutboxMessage, Step, StopRequest, View,
};
pub use mailbox::{Content, Envelope, Mailbox, Unreadable, unreachable};
pub use resend_outbox::resend_outbox;
pub use runtime::{Options, Runtime, Settlement};
pub use stop_target::StopTarget;
pub use view::{page_of_views, view_at, view_in_list};
