//! Calendars: events and scheduled tasks in a span of time, free slots, and calendars as iCalendar files.

use super::{
    heads::{FoundEntity, Heads},
    lists::{line, looks},
    scope::{self, folders, zone},
};
use crate::{
    call::{self, Answer, Call, Done},
    effects::{Access, Declaration, Declare},
    write::written,
};
use domain::{Code, Error, FilePath, Timestamp, text::counted};
use organizer::{
    Entity, EntityKind, Item, Moment, Occurrence, Scope, Span,
    clock::{Tz, local_text},
    free_slots::{self, Hours},
    ics::{self, ExportedEntity},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use workspace::{Expect, Workspace};

/// How long a span is that has no end.
const DAYS_AHEAD: u64 = 7;
/// The longest span.
const MAX_SPAN: Duration = Duration::from_secs(3_660 * 24 * 3_600);
/// Occurrences of one event.
const MOST: usize = 1_000;
/// Rows and slots without a limit.
const USUAL: usize = 50;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Events {
    /// 2026-12-01 or 2026-12-01T09:00; now by default.
    from: Option<String>,
    /// 7 days later by default.
    to: Option<String>,
    /// A project by its folder's name, or home; all by default.
    project: Option<String>,
    /// That of the person's profile by default.
    time_zone: Option<String>,
    /// 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Slots {
    /// The length of a slot.
    #[schemars(range(min = 5, max = 1440))]
    duration_minutes: u32,
    /// Now by default.
    from: Option<String>,
    /// 7 days later by default.
    to: Option<String>,
    /// Names of projects, and home, that have to be free; all by default.
    #[schemars(length(min = 1, max = 50))]
    calendars: Option<Vec<String>>,
    /// That of the person's profile by default.
    time_zone: Option<String>,
    /// 09:00 by default.
    work_start: Option<String>,
    /// 17:00 by default.
    work_end: Option<String>,
    /// Such as mon; Monday to Friday by default.
    #[schemars(length(min = 1, max = 7))]
    work_days: Option<Vec<String>>,
    /// 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportCalendar {
    /// Such as /projects/atlas/calendar.ics.
    path: String,
    /// A project by its folder's name, or home; all by default.
    project: Option<String>,
}

impl Declare for Events {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        looks(self.project.as_deref(), into)
    }
}

impl Declare for Slots {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        match &self.calendars {
            None => into.searches("calendars", None),
            Some(names) => names.iter().try_for_each(|name| match name.as_str() {
                scope::HOME => into.home("calendars", Access::Read),
                name => into.reads("calendars", Scope::project(name)?.folder()?.as_str()),
            }),
        }
    }
}

impl Declare for ExportCalendar {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.writes("path", &self.path)?;
        looks(self.project.as_deref(), into)
    }
}

/// A thing in a calendar.
#[derive(Debug)]
pub(super) struct Entry {
    pub path: FilePath,
    pub entity: Arc<Entity>,
    pub item: Item,
    pub id: String,
    pub updated_at: Timestamp,
}

/// One of its times.
#[derive(Debug)]
pub(super) struct At<'a> {
    pub entry: &'a Entry,
    pub time: Occurrence,
}

/// Events and scheduled tasks of these folders. Those whose times are wrong are left out, and told.
pub(super) async fn entries(
    workspace: &Workspace,
    heads: &Heads,
    (events, tasks): (Vec<FilePath>, Vec<FilePath>),
    usual: Tz,
) -> Result<(Vec<Entry>, Vec<String>, bool), Error> {
    let (mut found, whole) = heads.find(workspace, EntityKind::Event, events).await?;
    let (tasks, all) = heads.find(workspace, EntityKind::Task, tasks).await?;
    found.extend(tasks);
    let (mut entries, mut faults) = (Vec::new(), Vec::new());
    for FoundEntity { info, entity } in found {
        match Item::of(&entity, usual) {
            Ok(Some(item)) => {
                let id = format!("{}@buildscale", info.file_id);
                entries.push(Entry { path: info.path, entity, item, id, updated_at: info.updated_at });
            }
            Ok(None) => {}
            Err(error) => faults.push(format!("{}: {}", info.path, error.message)),
        }
    }
    Ok((entries, faults, whole && all))
}

/// The times of entries in a span, in order. An occurrence that was moved elsewhere is not at its old time, and a task that is done takes no time.
pub(super) fn times(entries: &[Entry], window: Span) -> (Vec<At<'_>>, bool) {
    let moved: HashSet<(&str, Timestamp)> = entries
        .iter()
        .filter_map(|entry| {
            let at = entry.entity.text("recurrence_id").and_then(Moment::parse)?;
            Some((entry.entity.text("uid")?, at.instant(entry.item.zone)))
        })
        .collect();
    let (mut found, mut all) = (Vec::new(), true);
    for entry in entries {
        if entry.entity.text("status") == Some("cancelled") || entry.entity.text("status") == Some("done") {
            continue;
        }
        let (occurrences, whole) = entry.item.occurrences(window, MOST);
        all &= whole;
        let uid = entry.entity.text("uid").filter(|_| entry.entity.text("recurrence_id").is_none());
        let is_there = |time: &Occurrence| uid.is_none_or(|uid| !moved.contains(&(uid, time.span.start)));
        found.extend(occurrences.into_iter().filter(is_there).map(|time| At { entry, time }));
    }
    found.sort_by(|a, b| (a.time.span, &a.entry.path).cmp(&(b.time.span, &b.entry.path)));
    (found, all)
}

/// A row of a calendar.
pub(super) fn row(at: &At<'_>, zone: Tz) -> Map<String, Value> {
    let mut row = Map::from_iter([
        ("path".to_owned(), json!(at.entry.path)),
        ("title".to_owned(), at.entry.entity.title().into()),
    ]);
    let mut put = |name: &str, value: Value| drop(row.insert(name.to_owned(), value));
    match at.time.all_day {
        true => {
            // A day is the same one for everybody, so it is told on the clock on which it was meant.
            let day = |moment: Timestamp| local_text(moment, at.entry.item.zone).chars().take(10).collect::<String>();
            put("start", day(at.time.span.start).into());
            put("end", day(at.time.span.end).into());
        }
        false => {
            put("start", local_text(at.time.span.start, zone).into());
            put("end", local_text(at.time.span.end, zone).into());
        }
    }
    if at.entry.entity.kind == EntityKind::Task {
        put("task", true.into());
    }
    for name in ["location", "rrule"] {
        if let Some(text) = at.entry.entity.text(name) {
            put(name, text.into());
        }
    }
    row
}

/// The span of the arguments.
fn window(call: &Call<'_>, from: Option<&str>, to: Option<&str>, zone: Tz) -> Result<Span, Error> {
    let at = |field: &str, text: &str| Moment::argument(field, text).map(|at| at.instant(zone));
    let start = from.map_or_else(|| Ok(call.workspace.now()), |text| at("from", text))?;
    let end = to.map_or_else(|| Ok(start + Duration::from_secs(DAYS_AHEAD * 24 * 3_600)), |text| at("to", text))?;
    if end <= start {
        return Err(Error::invalid("to", "it is not after the start").hint("give a later to, or an earlier from"));
    }
    match end.since(start) > MAX_SPAN {
        true => Err(Error::invalid("to", "ten years are the most that are looked through at once")
            .hint("give a to within ten years, and ask again for the rest")),
        false => Ok(Span { start, end }),
    }
}

pub(crate) async fn events(call: &Call<'_>, args: Events, heads: &Heads) -> Answer {
    let zone = zone(call, args.time_zone.as_deref()).await?;
    let window = window(call, args.from.as_deref(), args.to.as_deref(), zone)?;
    let project = args.project.as_deref();
    let both = (folders(call, EntityKind::Event, project).await?, folders(call, EntityKind::Task, project).await?);
    let (entries, faults, whole) = entries(&call.workspace, heads, both, zone).await?;
    let (found, all) = times(&entries, window);
    let limit = args.limit.unwrap_or(USUAL);
    let rows: Vec<_> = found.iter().take(limit).map(|at| row(at, zone)).collect();
    let mut output = rows.iter().map(line).collect::<Vec<_>>().join("\n");
    if rows.is_empty() {
        output = format!("nothing from {} to {}", local_text(window.start, zone), local_text(window.end, zone));
    }
    let more = found.len().saturating_sub(limit);
    if more > 0 {
        output.push_str(&format!("\n[{more} more: ask for less time, or raise the limit]"));
    }
    for fault in faults.iter().take(10) {
        output.push_str(&format!("\n[left out: {fault}]"));
    }
    let truncated = more > 0 || !all || !whole;
    let result = json!({
        "events": rows, "total": found.len(), "time_zone": zone.name(), "from": window.start, "to": window.end,
        "complete": all && whole, "faults": faults,
    });
    Ok(Done { output, truncated, result, ..Done::default() })
}

pub(crate) async fn slots(call: &Call<'_>, args: Slots, heads: &Heads) -> Answer {
    let zone = zone(call, args.time_zone.as_deref()).await?;
    let window = window(call, args.from.as_deref(), args.to.as_deref(), zone)?;
    if window.end.since(window.start)
        > Duration::from_secs(24 * 3_600 * u64::try_from(free_slots::MAX_DAYS).unwrap_or(366))
    {
        return Err(Error::invalid(
            "to",
            format!("{} days are the most that are looked through", free_slots::MAX_DAYS),
        )
        .hint("give an earlier to"));
    }
    let hours =
        Hours::usual(zone).with(args.work_start.as_deref(), args.work_end.as_deref(), args.work_days.as_deref())?;
    let mut both = (Vec::new(), Vec::new());
    for calendar in args
        .calendars
        .as_ref()
        .map_or_else(|| vec![None], |names| names.iter().map(|name| Some(name.as_str())).collect())
    {
        both.0.extend(folders(call, EntityKind::Event, calendar).await?);
        both.1.extend(folders(call, EntityKind::Task, calendar).await?);
    }
    let (entries, faults, whole) = entries(&call.workspace, heads, both, zone).await?;
    let (found, all) = times(&entries, window);
    let is_busy = |at: &&At<'_>| at.entry.entity.fields.get("busy") != Some(&Value::Bool(false));
    let busy: Vec<Span> = found.iter().filter(is_busy).map(|at| at.time.span).collect();
    let free = free_slots::slots(&busy, window, &hours, args.duration_minutes);
    let limit = args.limit.unwrap_or(USUAL);
    let told = |slot: &Span| {
        let minutes = slot.end.since(slot.start).as_secs() / 60;
        json!({ "start": local_text(slot.start, zone), "end": local_text(slot.end, zone), "minutes": minutes })
    };
    let rows: Vec<Value> = free.iter().take(limit).map(told).collect();
    let line = |row: &Value| {
        let minutes = counted(row["minutes"].as_u64().unwrap_or_default(), "minute");
        format!("{} to {} ({minutes})", word(row, "start"), word(row, "end"))
    };
    let mut output = rows.iter().map(line).collect::<Vec<_>>().join("\n");
    if rows.is_empty() {
        output = format!("no slot of {} is free within these working hours", counted(args.duration_minutes, "minute"));
    }
    for fault in faults.iter().take(10) {
        output.push_str(&format!("\n[not looked at: {fault}]"));
    }
    if !all || !whole {
        output.push_str("\n[there are too many events to look at all: name calendars, or ask for less time]");
    }
    let truncated = free.len() > limit || !all || !whole;
    let result = json!({ "slots": rows, "total": free.len(), "time_zone": zone.name(), "complete": all && whole, "faults": faults });
    Ok(Done { output, truncated, result, ..Done::default() })
}

fn word<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

pub(crate) async fn export_calendar(call: &Call<'_>, args: ExportCalendar, heads: &Heads) -> Answer {
    let path = call::path("path", &args.path)?;
    if !path.name().to_lowercase().ends_with(".ics") {
        return Err(
            Error::invalid("path", format!("{path} is no iCalendar file")).hint("give a path whose name ends in .ics")
        );
    }
    let answer = |change: &workspace::Change, count: Option<usize>| {
        let count = count.map_or(String::new(), |count| format!("{}: ", counted(count, "event")));
        written(change, format!("wrote {count}{}, version {}", change.path, change.v))
    };
    if let Some(done) = call.applied().await? {
        return Ok(answer(&done, None));
    }
    let project = args.project.as_deref();
    let both = (folders(call, EntityKind::Event, project).await?, folders(call, EntityKind::Task, project).await?);
    let (mut entries, mut faults, whole) =
        entries(&call.workspace, heads, both, scope::zone(call, None).await?).await?;
    // A task that is done stands in no calendar.
    entries.retain(|entry| entry.entity.kind != EntityKind::Task || entry.entity.text("status") != Some("done"));
    let projects = projects_of(&call.workspace, heads, &entries).await?;
    let in_calendars = |entry: &Entry| {
        let kept_out = |project: &Arc<Entity>| project.fields.get("calendar_sync_enabled") == Some(&Value::Bool(false));
        entry.entity.kind != EntityKind::Task
            || !project_folder(&entry.path).and_then(|at| projects.get(&at)).is_some_and(kept_out)
    };
    let found = entries.len();
    entries.retain(in_calendars);
    let kept_out = found - entries.len();
    let mut all = Vec::new();
    for entry in &entries {
        // Lists keep the beginning of each text; a calendar has the whole.
        let content = match call.workspace.read(&entry.path, None).await {
            Ok(content) => content,
            // It was moved or removed meanwhile, or its content is lost.
            Err(error) if matches!(error.code, Code::NotFound | Code::ContentMissing | Code::ContentDamaged) => {
                faults.push(format!("{}: {}", entry.path, error.message));
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut entity = super::heads::read(entry.entity.kind, &entry.path, &content.bytes);
        let project = project_folder(&entry.path).and_then(|folder| projects.get(&folder));
        if let Some(color) = project.and_then(|project| project.fields.get("calendar_color_id")) {
            entity.fields.entry("calendar_color_id").or_insert_with(|| color.clone());
        }
        all.push((entity, entry));
    }
    let exported: Vec<ExportedEntity<'_>> = all
        .iter()
        .map(|(entity, entry)| ExportedEntity {
            entity,
            item: &entry.item,
            id: &entry.id,
            updated_at: entry.updated_at,
        })
        .collect();
    let name = project.map_or("calendar", |project| project.rsplit('/').next().unwrap_or(project));
    let text = ics::write(name, &exported);
    // An older export is made anew; a calendar of somebody else is not overwritten unseen.
    let expect = match call.workspace.read(&path, None).await {
        Ok(content) if ics::is_export(&content.bytes) => content.info.sha256.map_or(Expect::Any, Expect::Hash),
        Ok(_) => call.expectation(&path, None).await?,
        Err(error) if error.code == Code::NotFound => Expect::Absent,
        Err(error) => return Err(error),
    };
    let change = call.workspace.write(&path, text, expect, &call.writer()).await?;
    let mut done = answer(&change, Some(exported.len()));
    if kept_out > 0 {
        let tasks = counted(kept_out, "task");
        done.output.push_str(&format!("\n[left out: {tasks} of projects with calendar_sync_enabled: false]"));
    }
    for fault in faults.iter().take(10) {
        done.output.push_str(&format!("\n[left out: {fault}]"));
    }
    if !whole {
        done.output.push_str("\n[there are too many files to look at all: name a project]");
    }
    if let Value::Object(result) = &mut done.result {
        result.extend([
            ("events".to_owned(), json!(exported.len())),
            ("kept_out".to_owned(), json!(kept_out)),
            ("complete".to_owned(), json!(whole && faults.is_empty())),
            ("faults".to_owned(), json!(faults)),
        ]);
    }
    done.truncated = !whole;
    Ok(done)
}

/// The folder of the project that a file belongs to; none for one of a home.
fn project_folder(path: &FilePath) -> Option<FilePath> {
    let folder = path.parent()?.parent()?;
    let is_project = folder.names().count() == 2 && folder.names().next() == Some("projects");
    is_project.then_some(folder)
}

/// The projects that these entries belong to, by their folders.
async fn projects_of(
    workspace: &Workspace,
    heads: &Heads,
    entries: &[Entry],
) -> Result<HashMap<FilePath, Arc<Entity>>, Error> {
    let folders: HashSet<FilePath> = entries.iter().filter_map(|entry| project_folder(&entry.path)).collect();
    let (found, _) = heads.find(workspace, EntityKind::Project, folders.into_iter().collect()).await?;
    Ok(found.into_iter().filter_map(|FoundEntity { info, entity }| Some((info.path.parent()?, entity))).collect())
}
