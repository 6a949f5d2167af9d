//! The tools of the organizer: projects, tasks, notes, brain dumps and calendars (spec 003 §7, §8).
//!
//! The entities are files; the crate `organizer` has their table and rules. These tools act as their caller through the workspace, like all others.
//! Lists are abbreviated, details are whole.
//!
//! They are registered beside the tools that every chat has: a chat is offered them where its context, its persona or its flow lists them.

mod changes;
mod details;
mod heads;
mod lists;
mod overview;
mod scope;
mod sync;
mod times;

pub use ::organizer::kind::words_of;
pub use changes::event_file;
pub use overview::{events_ahead, file_overview, open_tasks, project_overview, today};

pub use heads::EntityCounts;
pub use scope::zone_of;
pub use sync::{CalendarSync, Synced};

pub(crate) use changes::{
    CreateBrainDump, CreateNote, CreateProject, CreateTask, ImportCalendar, ScheduleTask, UpdateProject, UpdateTask,
    create, import_calendar, schedule_task, update,
};
pub(crate) use details::{
    BrainDumpOf, FieldInfo, NoteOf, ProjectDetails, TaskOf, details, field_info, project_details,
};
pub(crate) use heads::Heads;
pub(crate) use lists::{ListTasks, SearchBrainDumps, SearchNotes, SearchProjects, list_tasks, search};
pub(crate) use sync::{SyncCalendar, sync};
pub(crate) use times::{Events, ExportCalendar, Slots, events, export_calendar, slots};

/// The looks for entities in the memory of this process so far. An entity is kept with the digest of its file, so one that changed is read again.
pub fn entity_counts() -> EntityCounts {
    Heads::shared().counts()
}

/// The reading tools of the organizer, in the order of the specification.
pub const READING: [&str; 11] = [
    "list_tasks",
    "get_task_details",
    "search_projects",
    "get_project_details",
    "search_notes",
    "get_note_details",
    "get_calendar_events",
    "find_available_slots",
    "search_brain_dumps",
    "get_brain_dump_details",
    "get_field_info",
];

/// The writing tools of the organizer.
pub const WRITING: [&str; 9] = [
    "create_project",
    "update_project",
    "create_task",
    "update_task",
    "schedule_task",
    "create_note",
    "create_brain_dump",
    "import_calendar",
    "export_calendar",
];
