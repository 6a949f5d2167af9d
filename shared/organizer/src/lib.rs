//! The organizer: projects, tasks, notes, brain dumps, events of calendars and documents (spec 003 §7, §8).
//!
//! Each of them is a Markdown file with front matter at a place that tells its kind. So there is no second store: versions, access, search, links,
//! handoff and export are those of files. This crate is the rules alone; it has no I/O.
//!
//! ```text
//!   table (kinds and fields) ──▶ schema of tools, validation, the whitelist of updates, get_field_info
//!   file ──▶ frontmatter ──▶ Entity ──▶ an abbreviated row of a list, or all details
//!   Entity with times ──▶ calendar (occurrences by RRULE) ──▶ free slots, iCalendar
//! ```
//!
//! - [`table`]: the kinds and their fields, the one place that describes them.
//! - [`kind`]: where the files of a kind are.
//! - [`entity`]: a file as an entity; making and changing one.
//! - [`rule`]: rules by which something comes again.
//! - [`calendar`]: entities with times, and their occurrences in a span.
//! - [`free_slots`]: free slots within working hours.
//! - [`field_group`]: the parts of an event that change together.
//! - [`ics`]: iCalendar files (RFC 5545) in and out.

pub mod calendar;
pub mod entity;
pub mod field_group;
pub mod free_slots;
pub mod ics;
pub mod kind;
pub mod rule;
pub mod schema;
pub mod table;

pub use calendar::{Item, Occurrence};
pub use entity::Entity;
pub use field_group::FieldGroup;
pub use frontmatter::{self as front_matter};
pub use kind::{EntityKind, Scope};
pub use recurrence::{Moment, Span, clock};
