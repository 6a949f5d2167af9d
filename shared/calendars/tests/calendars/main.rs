//! Calendars elsewhere: real CalDAV servers, a stub of Google, and the state that is persisted.
#![expect(clippy::unwrap_used, reason = "tests")]

mod caldav;
mod golden;
mod google;
mod support;
