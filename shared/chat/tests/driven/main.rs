//! Chats driven by the runtime over real tools.
#![expect(clippy::unwrap_used, reason = "tests")]

mod access;
mod agent;
mod backoff;
mod broken_streams;
mod coalescing;
mod compact;
mod ephemeral_disk;
mod first_turn;
mod fork;
mod home;
mod hub;
mod labels;
mod long_chat;
mod personas;
mod prompt;
mod rollback;
mod scenarios;
mod served;
mod session;
mod session_requests;
mod standing_rules;
mod stops;
mod table_reads;
mod threads;
mod transcript;
mod waiting_chats;
