//! The tools that a chat has where its context, its persona or its flow lists them: those of the organizer.

use super::{Builder, Run};
use crate::{
    args,
    effects::Declare,
    kind::ToolKind,
    organizer::{
        self, BrainDumpOf, CalendarSync, CreateBrainDump, CreateNote, CreateProject, CreateTask, Events,
        ExportCalendar, FieldInfo, Heads, ImportCalendar, ListTasks, NoteOf, ProjectDetails, ScheduleTask,
        SearchBrainDumps, SearchNotes, SearchProjects, Slots, SyncCalendar, TaskOf, UpdateProject, UpdateTask,
    },
};
use ::search::Search;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// A tool: its kind, its name, its description.
type ToolEntry = (ToolKind, &'static str, &'static str);

/// Registers `$runs`, which gets the call and its arguments.
macro_rules! tool {
    ($into:ident, $about:expr, $Args:ty, |$call:ident, $args:ident| $runs:expr) => {
        add::<$Args>(
            &mut $into,
            $about,
            Box::new(|$call, args| {
                Box::pin(async move {
                    let $args: $Args = args::read(args)?;
                    $runs.await
                })
            }),
        )
    };
}

/// Registers a search of the type `$Args`, which asks the index, too.
macro_rules! searching {
    ($into:ident, $about:expr, $Args:ty, $search:ident) => {{
        let index = $search.clone();
        add::<$Args>(
            &mut $into,
            $about,
            Box::new(move |call, args| {
                let index = index.clone();
                Box::pin(async move {
                    let args: $Args = args::read(args)?;
                    organizer::search(call, args, Heads::shared(), index.as_ref()).await
                })
            }),
        )
    }};
}

fn add<Args: JsonSchema + DeserializeOwned + Declare>(into: &mut Builder, (kind, name, does): ToolEntry, run: Run) {
    into.add::<Args>(kind, name, does, run);
}

/// In the order of the specification: providers cache it, so new ones are added at the end.
pub(super) fn make(search: Option<Search>, calendars: Option<Arc<dyn CalendarSync>>) -> Builder {
    use ToolKind::{Read, Write};
    let mut all = Builder::default();
    let about = (
        Read,
        "list_tasks",
        "List tasks, abbreviated: those that are worked on, then by the day on which they are due.",
    );
    tool!(all, about, ListTasks, |call, args| organizer::list_tasks(call, args, Heads::shared()));
    let about = (Read, "get_task_details", "Show everything about one task.");
    tool!(all, about, TaskOf, |call, args| organizer::details(call, args));
    let about = (Read, "search_projects", "List or search projects, abbreviated.");
    searching!(all, about, SearchProjects, search);
    let about = (Read, "get_project_details", "Show everything about one project, and lists of what is in it.");
    tool!(all, about, ProjectDetails, |call, args| organizer::project_details(call, args, Heads::shared()));
    let about = (Read, "search_notes", "List or search notes, abbreviated.");
    searching!(all, about, SearchNotes, search);
    let about = (Read, "get_note_details", "Show the whole of one note.");
    tool!(all, about, NoteOf, |call, args| organizer::details(call, args));
    let about = (
        Read,
        "get_calendar_events",
        "List events and scheduled tasks of a span of time, with each occurrence of those that come again.",
    );
    tool!(all, about, Events, |call, args| organizer::events(call, args, Heads::shared()));
    let about =
        (Read, "find_available_slots", "Find free slots within working hours. Ask it before you schedule a task.");
    tool!(all, about, Slots, |call, args| organizer::slots(call, args, Heads::shared()));
    let about = (Read, "search_brain_dumps", "List or search brain dumps, abbreviated.");
    searching!(all, about, SearchBrainDumps, search);
    let about = (Read, "get_brain_dump_details", "Show the whole of one brain dump.");
    tool!(all, about, BrainDumpOf, |call, args| organizer::details(call, args));
    let about = (
        Read,
        "get_field_info",
        "Tell the fields of a kind of entity: meaning, type, allowed values, and whether an update may change it.",
    );
    tool!(all, about, FieldInfo, |call, args| organizer::field_info(call, args));
    let about = (Write, "create_project", "Make a project, with a folder of its own below /projects.");
    tool!(all, about, CreateProject, |call, args| organizer::create(call, args));
    let about = (
        Write,
        "update_project",
        "Change fields of a project; an empty text takes one out. context replaces the whole text: read its details first.",
    );
    tool!(all, about, UpdateProject, |call, args| organizer::update(call, args));
    let about = (Write, "create_task", "Make a task.");
    tool!(all, about, CreateTask, |call, args| organizer::create(call, args));
    let about = (
        Write,
        "update_task",
        "Change fields of a task; an empty text takes one out. description replaces the whole text: read its details first.",
    );
    tool!(all, about, UpdateTask, |call, args| organizer::update(call, args));
    let about = (Write, "schedule_task", "Put a task into the calendar, move it there, or take it out again.");
    tool!(all, about, ScheduleTask, |call, args| organizer::schedule_task(call, args));
    let about = (Write, "create_note", "Make a note.");
    tool!(all, about, CreateNote, |call, args| organizer::create(call, args));
    let about = (Write, "create_brain_dump", "Keep thoughts as they came, to sort them later.");
    tool!(all, about, CreateBrainDump, |call, args| organizer::create(call, args));
    let about = (
        Write,
        "import_calendar",
        "Take the events of an iCalendar file (.ics) over; those that are there are updated.",
    );
    tool!(all, about, ImportCalendar, |call, args| organizer::import_calendar(call, args));
    let about = (Write, "export_calendar", "Write events and scheduled tasks as an iCalendar file (.ics).");
    tool!(all, about, ExportCalendar, |call, args| organizer::export_calendar(call, args, Heads::shared()));
    if let Some(calendars) = calendars {
        let run: Run = Box::new(move |call, args| {
            let calendars = Arc::clone(&calendars);
            Box::pin(async move { organizer::sync(call, args::read(args)?, &*calendars).await })
        });
        let does = "Keep a connected calendar (CalDAV, Google) the same as its events here: changes go both ways. Answers with what changed, and \
            with conflicts.";
        add::<SyncCalendar>(&mut all, (ToolKind::Served, "sync_calendar", does), run);
    }
    all
}
