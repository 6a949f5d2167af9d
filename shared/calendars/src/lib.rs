//! Calendars elsewhere that are kept the same as events of a workspace: CalDAV (RFC 4791, RFC 6578) and Google Calendar.
//!
//! ```text
//!   /users/<id>/calendars/work.yaml ── Connection ──▶ Remote (caldav, google): changes since a token, conditional writes
//!   …/calendar/*.md ── Local ─┐                          │
//!   work.sync.json ── State ──┴─▶ plan (pure, per event) ─┴─▶ writes there, then files here, then the state
//! ```
//!
//! A sync is a call of the tool `sync_calendar` (`ports` of [`tools::CalendarSync`]): it acts as its caller, and a schedule calls it again and again. It
//! converges: whatever of it was done before a crash is found done by the next one.
//!
//! - [`connection`]: the declaration.
//! - [`remote`]: what a calendar elsewhere has to do.
//! - [`merge`], [`plan`]: which side wins, by the values that both had last. Pure.
//! - [`state`]: these values.
//! - [`caldav`], [`google`]: the protocols.
//! - [`sync`]: one sync.

pub mod caldav;
pub mod connection;
pub mod google;
mod http;
pub mod merge;
pub mod plan;
pub mod remote;
pub mod state;
pub mod sync;

pub use connection::{CalendarsConfig, Connection};
pub use http::Egress;
pub use sync::{CalendarParts, Calendars};
