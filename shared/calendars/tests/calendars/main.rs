//! Calendars elsewhere: real CalDAV servers, one that misbehaves, a stub of Google, and the state that is persisted.
#![expect(clippy::unwrap_used, reason = "tests")]

mod caldav;
mod golden;
mod google;
mod hostile;
mod others;
mod support;
