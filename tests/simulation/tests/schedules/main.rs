//! Scenarios of people and chats, under every crash and under thousands of schedules.
#![expect(clippy::unwrap_used, reason = "tests")]

mod agents;
mod blame;
mod calm;
mod common;
mod crashes;
mod handoffs;
mod sabotage;
mod seeds;
mod tasks;
