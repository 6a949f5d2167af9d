//! Changes: entities are made and updated, tasks scheduled, calendars imported. The table says which fields there are and which an update may change.

use super::{
    heads::{FoundEntity, Heads, changeable},
    scope::{expect_project, scope},
};
use crate::{
    call::{self, Answer, Call, Done, file_updated},
    effects::{Access, Declaration, Declare},
    write::written,
};
use domain::{CallId, Code, Error, FilePath, text::counted};
use organizer::{Entity, EntityKind, Moment, Scope, front_matter, ics, kind, schema, table};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};
use workspace::{Change, Expect, Writer};

/// How often an update is made again of a file that others change at the same time.
const ATTEMPTS: u32 = 8;

/// The arguments with which an entity is made: the fields of the table, and the project it belongs to.
pub(crate) trait New: Sized {
    const KIND: EntityKind;
    fn given(self) -> Map<String, Value>;
}

/// The arguments of an update: the path, and fields of the whitelist.
pub(crate) trait Changed: Sized {
    const KIND: EntityKind;
    fn given(self) -> Map<String, Value>;
}

fn object(properties: Map<String, Value>, required: &[&str]) -> Schema {
    let schema =
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    match schema {
        Value::Object(map) => map.into(),
        _ => Schema::default(),
    }
}

/// The arguments of a tool that makes or changes an entity: the fields of its kind, as the table has them.
macro_rules! fields_of {
    ($Args:ident, $Trait:ident, $kind:ident, $schema:ident, $declare:ident) => {
        #[derive(Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $Args(Map<String, Value>);

        impl $Trait for $Args {
            const KIND: EntityKind = EntityKind::$kind;
            fn given(self) -> Map<String, Value> {
                self.0
            }
        }

        impl JsonSchema for $Args {
            fn schema_name() -> Cow<'static, str> {
                stringify!($Args).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema(EntityKind::$kind)
            }
        }

        impl Declare for $Args {
            fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
                $declare(EntityKind::$kind, &self.0, into)
            }
        }
    };
}

fields_of!(CreateProject, New, Project, schema_of_new, declare_new);
fields_of!(CreateTask, New, Task, schema_of_new, declare_new);
fields_of!(CreateNote, New, Note, schema_of_new, declare_new);
fields_of!(CreateBrainDump, New, BrainDump, schema_of_new, declare_new);
fields_of!(UpdateProject, Changed, Project, schema_of_update, declare_update);
fields_of!(UpdateTask, Changed, Task, schema_of_update, declare_update);

fn schema_of_update(kind: EntityKind) -> Schema {
    let mut properties = Map::from_iter([path_argument(kind)]);
    properties.extend(schema::properties_of_update(kind));
    object(properties, &["path"])
}

fn declare_update(kind: EntityKind, given: &Map<String, Value>, into: &mut Declaration<'_>) -> Result<(), Error> {
    let path = given.get("path").and_then(Value::as_str).unwrap_or_default();
    into.writes("path", kind.at(path)?.as_str())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleTask {
    /// The task, by its path from a list.
    path: String,
    /// 2026-12-01T09:00 on the clock of the time zone; an empty text takes it out of the calendar.
    start: String,
    /// By its duration when none.
    end: Option<String>,
    /// An hour when nothing is known.
    #[schemars(range(min = 1, max = 44640))]
    duration_minutes: Option<u64>,
    /// That of the task, or of the person's profile, by default.
    time_zone: Option<String>,
    /// Such as FREQ=WEEKLY;BYDAY=MO.
    rrule: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportCalendar {
    /// Such as /data/ada.ics.
    path: String,
    /// A project by its folder's name; the person's own calendar by default.
    project: Option<String>,
}

impl Declare for ScheduleTask {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.writes("path", EntityKind::Task.at(&self.path)?.as_str())
    }
}

impl Declare for ImportCalendar {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.reads("path", &self.path)?;
        match self.project.as_deref() {
            None | Some(super::scope::HOME) => into.home("project", Access::Write),
            Some(project) => into.writes("project", Scope::project(project)?.folder_of(EntityKind::Event)?.as_str()),
        }
    }
}

fn path_argument(kind: EntityKind) -> (String, Value) {
    let description = match kind {
        EntityKind::Project => "The project, by the path of its folder or its README.md.".to_owned(),
        kind => format!("The {}, by its path from a list.", kind.words()),
    };
    ("path".to_owned(), json!({ "type": "string", "description": description }))
}

fn schema_of_new(kind: EntityKind) -> Schema {
    let (mut properties, required) = schema::properties_of_new(kind);
    if kind != EntityKind::Project {
        let description = "A project by its folder's name; the person's home by default.";
        properties.insert("project".to_owned(), json!({ "type": "string", "description": description }));
    }
    object(properties, &required)
}

/// The title of something new: of thoughts without one their first words.
fn title_of(kind: EntityKind, given: &Map<String, Value>) -> String {
    let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let first_words = || organizer::entity::preview(text(table::body(kind)).unwrap_or_default(), 60);
    text(kind.title()).map_or_else(first_words, str::to_owned)
}

/// The scope of something new, and its place in it; none for the place in a home, which the arguments do not tell.
fn declare_new(kind: EntityKind, given: &Map<String, Value>, into: &mut Declaration<'_>) -> Result<(), Error> {
    let title = title_of(kind, given);
    let project = given.get("project").and_then(Value::as_str);
    match (kind, project) {
        (EntityKind::Project, _) => into.writes("name", kind::new_project(&title)?.place(kind, &title)?.as_str()),
        (_, None | Some(super::scope::HOME)) => into.home("project", Access::Write),
        (_, Some(project)) => into.writes("project", Scope::project(project)?.place(kind, &title)?.as_str()),
    }
}

pub(crate) async fn create<N: New>(call: &Call<'_>, args: N) -> Answer {
    let (kind, mut given) = (N::KIND, args.given());
    given.retain(|_, value| value.as_str() != Some(""));
    let project = given.shift_remove("project").and_then(|project| project.as_str().map(str::to_owned));
    let title = title_of(kind, &given);
    let scope = match kind {
        EntityKind::Project => kind::new_project(&title)?,
        _ => scope(call, project.as_deref())?,
    };
    let path = scope.place(kind, &title)?;
    if let Some(done) = call.applied().await? {
        return Ok(made(kind, &done));
    }
    if let (Scope::Project(folder), true) = (&scope, kind != EntityKind::Project) {
        expect_project(&call.workspace, folder).await?;
    }
    if table::fields(kind).iter().any(|field| field.name == kind.title() && !field.required) {
        given.entry(kind.title()).or_insert_with(|| title.clone().into());
    }
    let text = Entity::create(kind, &given)?;
    match call.workspace.write(&path, text, Expect::Absent, &call.writer()).await {
        Ok(change) => Ok(made(kind, &change)),
        Err(error) if error.code == Code::Conflict => Err(error.hint(format!(
            "there is a {} at {path} already: update it, or choose another {}",
            kind.words(),
            kind.title()
        ))),
        Err(error) => Err(error),
    }
}

fn made(kind: EntityKind, change: &Change) -> Done {
    written(change, format!("made the {} {}", kind.words(), change.path))
}

pub(crate) async fn update<C: Changed>(call: &Call<'_>, args: C) -> Answer {
    let mut changes = args.given();
    let path = changes.shift_remove("path").and_then(|path| path.as_str().map(str::to_owned)).unwrap_or_default();
    if changes.is_empty() {
        let names: Vec<&str> = table::updatable(C::KIND).map(|field| field.name).collect();
        return Err(Error::invalid("args", "no field is changed").hint(format!("the fields are: {}", names.join(", "))));
    }
    change(call, C::KIND, &path, &changes).await
}

/// Changes fields of an entity. Others may change other fields at the same time; a text that is replaced has to be the one that the caller read.
async fn change(call: &Call<'_>, kind: EntityKind, path: &str, changes: &Map<String, Value>) -> Answer {
    let names = || changes.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let told = |change: &Change| format!("changed {} of {}: version {}", names(), change.path, change.v);
    for _ in 0..ATTEMPTS {
        if let Some(done) = call.applied().await? {
            return Ok(written_unseen(call, &done, told(&done)));
        }
        let (info, text) = changeable(call, kind, path).await?;
        if changes.contains_key(table::body(kind)) {
            let expect = call.expectation(&info.path, None).await?;
            call.workspace.expect(&info.path, expect).await?;
        }
        let text = Entity::update(kind, &text, changes)?;
        let expect = info.sha256.map_or(Expect::Any, Expect::Hash);
        match call.workspace.write(&info.path, text, expect, &call.writer()).await {
            Ok(change) => {
                let mut done = written(&change, told(&change));
                // The agent knows the whole only if it knew the version before.
                done.seen.retain(|(path, _)| call.seen.get(path) == Some(&info.sha256));
                return Ok(done);
            }
            Err(error) if error.code == Code::StaleVersion => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(Code::Conflict, format!("{path} is changed by others all the time")).hint("try again"))
}

fn written_unseen(call: &Call<'_>, change: &Change, output: String) -> Done {
    let mut done = written(change, output);
    done.seen.retain(|(path, digest)| call.seen.get(path) == Some(digest));
    done
}

pub(crate) async fn schedule_task(call: &Call<'_>, args: ScheduleTask) -> Answer {
    let ScheduleTask { path, start, end, duration_minutes, time_zone, rrule } = args;
    let text = |text: Option<String>| text.map(Value::from);
    let mut changes = Map::from_iter([("scheduled_start".to_owned(), Value::from(start.clone()))]);
    let is_taken_out = start.trim().is_empty();
    // A new time has a new end: one that is left out goes by the duration.
    let end = end.unwrap_or_default();
    changes.insert("scheduled_end".to_owned(), if is_taken_out { "".into() } else { end.clone().into() });
    for (name, value) in [
        ("duration_minutes", duration_minutes.map(Value::from)),
        ("time_zone", text(time_zone)),
        ("rrule", text(rrule)),
    ] {
        if let Some(value) = value {
            changes.insert(name.to_owned(), value);
        }
    }
    if let (Some(start), Some(end)) = (Moment::parse(&start), Moment::parse(&end)) {
        let zone = organizer::clock::Tz::UTC;
        if start.is_day() == end.is_day()
            && end.instant(zone) <= start.instant(zone)
            && !matches!((start, end), (Moment::At(_), Moment::Local(_)) | (Moment::Local(_), Moment::At(_)))
        {
            return Err(
                Error::invalid("end", "it is not after the start").hint("give a later end, or an earlier start")
            );
        }
    }
    change(call, EntityKind::Task, &path, &changes).await
}

pub(crate) async fn import_calendar(call: &Call<'_>, args: ImportCalendar) -> Answer {
    let from = call::path("path", &args.path)?;
    let content = call.workspace.read(&from, None).await?;
    let imported = ics::read(&String::from_utf8_lossy(&content.bytes)).map_err(|error| {
        let message = format!("{from} cannot be imported: {}", error.message);
        Error { message, ..error }
    })?;
    let scope = scope(call, args.project.as_deref())?;
    if let Scope::Project(folder) = &scope {
        expect_project(&call.workspace, folder).await?;
    }
    let folder = scope.folder_of(EntityKind::Event)?;
    let known = KnownEvents::of(call, &folder).await?;
    let (mut count, mut same, mut done) = (0_usize, 0_usize, Done::default());
    for (number, fields) in (0_u32..).zip(&imported.events) {
        let path = known.file(fields, folder.join(&event_file(fields)?)?);
        // Each file is a write of its own, under a key of its own: the call that runs again makes none twice.
        let writer = Writer { key: Some(part_of(call.call_id, number)), ..call.writer() };
        match import_one(call, &path, fields, &writer).await? {
            Some(change) => {
                count += 1;
                done.events.extend(file_updated(&change, None));
            }
            None => same += 1,
        }
    }
    let mut output = format!("imported {} from {from} into {folder}", counted(count, "event"));
    for (number, what) in [(same, "were there as they are"), (imported.skipped, "other entries were left out")] {
        if number > 0 {
            output.push_str(&format!("; {number} {what}"));
        }
    }
    for problem in &imported.problems {
        output.push_str(&format!("\n[{problem}]"));
    }
    done.result = json!({
        "calendar": imported.name, "folder": folder, "imported": count, "unchanged": same, "skipped": imported.skipped,
        "problems": imported.problems,
    });
    Ok(Done { output, ..done })
}

/// Writes an event; an event that was imported before is updated, and keeps what others added to its file. None when nothing changes.
async fn import_one(
    call: &Call<'_>,
    path: &FilePath,
    fields: &Map<String, Value>,
    writer: &Writer,
) -> Result<Option<Change>, Error> {
    for _ in 0..ATTEMPTS {
        if let Some(done) = call.workspace.applied(writer).await? {
            return Ok(Some(done));
        }
        let (text, expect) = match call.workspace.read(path, None).await {
            Ok(content) => {
                let before = Entity::text_of(&content.bytes)?.to_owned();
                let parts = front_matter::read(&before);
                // The import removes a field that the calendar could have and has not; a person here set each other one.
                let gone = ["end", "rrule", "except", "location", "status", "busy", "attendees", "description"]
                    .into_iter()
                    .filter(|name| {
                        !fields.contains_key(*name)
                            && match *name {
                                "description" => !parts.body.trim().is_empty(),
                                name => parts.keys.contains_key(name),
                            }
                    });
                let mut all = fields.clone();
                all.extend(gone.map(|name| (name.to_owned(), "".into())));
                let text = Entity::put(&before, EntityKind::Event, &all)?;
                if text == before {
                    return Ok(None);
                }
                (text, content.info.sha256.map_or(Expect::Any, Expect::Hash))
            }
            Err(error) if error.code == Code::NotFound => (Entity::create(EntityKind::Event, fields)?, Expect::Absent),
            Err(error) => return Err(error),
        };
        match call.workspace.write(path, text, expect, writer).await {
            Ok(change) => return Ok(Some(change)),
            Err(error) if matches!(error.code, Code::StaleVersion | Code::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(Code::Conflict, format!("{path} is changed by others all the time")).hint("try again"))
}

/// The files of events that a folder has.
struct KnownEvents {
    paths: HashSet<FilePath>,
    /// By their identities in other calendars: of several files with the same one the first.
    files: HashMap<String, FilePath>,
}

impl KnownEvents {
    async fn of(call: &Call<'_>, folder: &FilePath) -> Result<Self, Error> {
        let (found, _) = Heads::shared().find(&call.workspace, EntityKind::Event, vec![folder.clone()]).await?;
        let (mut paths, mut files) = (HashSet::new(), HashMap::new());
        for FoundEntity { info, entity } in found {
            if let Some(identity) = identity(&entity.fields) {
                files.entry(identity).or_insert_with(|| info.path.clone());
            }
            paths.insert(info.path);
        }
        Ok(Self { paths, files })
    }

    /// The file of an event: that at the path of its name, else the one with its identity, since titles change and people rename files. The path of its
    /// name for a new one.
    fn file(&self, fields: &Map<String, Value>, named: FilePath) -> FilePath {
        if self.paths.contains(&named) {
            return named;
        }
        identity(fields).and_then(|identity| self.files.get(&identity)).cloned().unwrap_or(named)
    }
}

/// The identity of an event, or of a moved occurrence, in other calendars; none for one that was made here.
fn identity(fields: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(text("uid")).filter(|uid| !uid.is_empty()).map(|uid| format!("{uid}\n{}", text("recurrence_id")))
}

/// The name of the file of a new event of another calendar: its title, and its identity there.
///
/// # Errors
/// None in practice: an event without a title that can be a name is `event`.
pub fn event_file(fields: &Map<String, Value>) -> Result<String, Error> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let identity = identity(fields).unwrap_or_else(|| format!("{}\n{}", text("title"), text("start")));
    let digest = domain::Sha256::of(identity.as_bytes()).to_string();
    let title = kind::slug("title", text("title")).unwrap_or_else(|_| "event".into());
    Ok(format!(
        "{}-{}.md",
        title.chars().take(40).collect::<String>().trim_end_matches('-'),
        digest.get(..10).unwrap_or(&digest)
    ))
}

/// The id of a part of a call.
fn part_of(call: CallId, number: u32) -> CallId {
    let digest = domain::Sha256::of(format!("{call}/{number}").as_bytes());
    let number = u128::from_str_radix(digest.to_string().get(..32).unwrap_or_default(), 16).unwrap_or_default();
    CallId(uuid::Builder::from_u128(number).with_version(uuid::Version::Random).into_uuid())
}
