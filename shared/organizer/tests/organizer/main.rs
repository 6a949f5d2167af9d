//! Calendars, free time and odd input.

mod free_slots;
mod ics;
mod odd;
