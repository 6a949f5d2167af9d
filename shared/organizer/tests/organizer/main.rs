//! Calendars, free time and odd input.

mod free;
mod ics;
mod odd;
