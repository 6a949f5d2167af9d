//! Chats driven by the runtime over real tools.
#![expect(clippy::unwrap_used, reason = "tests")]

mod access;
mod agent;
mod backoff;
mod begun;
mod breaks;
mod cold;
mod compact;
mod fork;
mod hub;
mod long;
mod own;
mod paused;
mod pieces;
mod prompt;
mod reads;
mod scenarios;
mod served;
mod session;
mod standing_rules;
mod threads;
mod transcript;
