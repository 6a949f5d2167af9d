//! `buildscale` alone, on a terminal: chats on the full screen.
//!
//! ```text
//!   bytes ─ keys ─┐                                       ┌─ draw (areas, rows, panel) ─ terminal
//!                 ├─ Input ─ machine (Screen, ChatPane) ──┤
//!   events ───────┘   pure: no time, no hub               └─ Action ─ edge ─ hub
//! ```
//!
//! The transcript of a chat is the fold of its events, as in every view of a chat. The screen keeps drafts and places alone.

mod chat_pane;
mod commands;
mod composer;
mod draw;
mod event_loop;
mod form;
mod hub;
mod key_effects;
mod keys;
mod machine;
mod panel;
mod pick;
mod rows;
mod scroll;
mod terminal;
mod transcript;
mod viewport;

#[cfg(test)]
mod tests;

pub(crate) use event_loop::run;
