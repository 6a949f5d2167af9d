//! Times of calendars: days, clocks of time zones, and rules by which something comes again (RFC 5545 §3.3.10). Pure.
//!
//! Events, tasks and schedules have the same zones and the same rules. Only the rules that each takes differ ([`rule::TakenRules`]).
//!
//! - [`clock`]: days, times on the clock of a zone, and moments.
//! - [`rule`]: rules, checked, and their times.

pub mod clock;
mod minutes;
mod part;
pub mod rule;

pub use clock::{Moment, Span, Tz};
