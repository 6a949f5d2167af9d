//! Calendars, free time and odd input.

mod foreign_calendars;
mod free_slots;
mod ics;
