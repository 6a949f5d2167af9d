//! The actor runtime: rehydrate, decide, commit, publish, send, run effects, rest. It knows no chat and no task.
//!
//! An actor is an id, a mailbox (a queue group), an append-only log, and a pure state machine. No actor lives anywhere: a
//! worker loads it, drives it to rest, and forgets it (or keeps it warm; the log decides, not the memory).

pub mod log;

pub use log::{ActorId, Entry};
