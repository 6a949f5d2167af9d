//! Details: everything about one entity; and what fields there are.

use super::{
    heads::{Heads, whole},
    lists::{line, plural, task_order},
};
use crate::{
    call::{Answer, Call, Done},
    effects::{Declaration, Declare},
};
use domain::{Error, FilePath};
use organizer::{EntityKind, Scope, schema, table};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use workspace::Info;

/// How many entries of each kind the details of a project name.
const ENTRIES: usize = 20;

/// The arguments of the details of one kind.
pub(crate) trait Details {
    const KIND: EntityKind;
    fn path(&self) -> &str;
}

macro_rules! details_of {
    ($Args:ident, $kind:ident, $doc:literal) => {
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $Args {
            #[doc = $doc]
            path: String,
        }

        impl Details for $Args {
            const KIND: EntityKind = EntityKind::$kind;
            fn path(&self) -> &str {
                &self.path
            }
        }

        impl Declare for $Args {
            fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
                into.reads("path", &self.path)
            }
        }
    };
}

details_of!(TaskOf, Task, "The task, by its path from a list.");
details_of!(NoteOf, Note, "The note, by its path from a list.");
details_of!(BrainDumpOf, BrainDump, "The brain dump, by its path from a list.");

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectDetails {
    /// The project, by the name of its folder.
    project: String,
}

impl Declare for ProjectDetails {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.reads("project", Scope::project(&self.project)?.folder()?.as_str())
    }
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum KindArg {
    Project,
    Task,
    Note,
    BrainDump,
    Event,
    Document,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FieldInfo {
    /// The kind of entity.
    entity: KindArg,
    /// One field; all by default.
    field: Option<String>,
}

impl Declare for FieldInfo {
    fn declare(&self, _: &mut Declaration<'_>) -> Result<(), Error> {
        Ok(())
    }
}

pub(crate) async fn details<D: Details>(call: &Call<'_>, args: D) -> Answer {
    let (info, entity, text) = whole(call, D::KIND, args.path()).await?;
    let mut output = head(&info);
    output.push_str(&text);
    for fault in &entity.faults {
        output.push_str(&format!("\n[{fault}]"));
    }
    let seen = vec![(info.path.clone(), info.sha256)];
    Ok(Done { output, result: entity_json(&info, &entity), seen, ..Done::default() })
}

/// The metadata of an entity as a model reads it.
fn head(info: &Info) -> String {
    format!("{} (version {}, by {}, {})\n", info.path, info.v, info.author, info.updated_at)
}

/// An entity with all its fields.
pub(super) fn entity_json(info: &Info, entity: &organizer::Entity) -> Value {
    let mut fields = entity.fields.clone();
    for (name, value) in [
        ("path", json!(info.path)),
        ("author", json!(info.author)),
        ("created_at", json!(info.created_at)),
        ("updated_at", json!(info.updated_at)),
    ] {
        fields.insert(name.to_owned(), value);
    }
    json!({ (entity.kind.name()): fields, "v": info.v, "hash": info.sha256, "faults": entity.faults })
}

pub(crate) async fn project_details(call: &Call<'_>, args: ProjectDetails, heads: &Heads) -> Answer {
    let scope = Scope::project(&args.project)?;
    let folder = scope.folder()?;
    super::scope::expect_project(&call.workspace, &folder).await?;
    let (mut output, mut result, mut seen) = (String::new(), json!({ "project": { "path": folder } }), Vec::new());
    match whole(call, EntityKind::Project, folder.as_str()).await {
        Ok((info, entity, text)) => {
            output = format!("{}{text}", head(&info));
            result = entity_json(&info, &entity);
            seen.push((info.path, info.sha256));
        }
        // A folder without the file is a project that nobody has described.
        Err(error) if error.code == domain::Code::NotFound => {
            output.push_str(&format!("{folder} has no README.md yet"))
        }
        Err(error) => return Err(error),
    }
    for kind in [EntityKind::Task, EntityKind::Event, EntityKind::Note, EntityKind::BrainDump, EntityKind::Document] {
        let (mut found, all) = heads.find(&call.workspace, kind, vec![scope.folder_of(kind)?]).await?;
        if kind == EntityKind::Task {
            found.sort_by_cached_key(task_order);
        }
        let rows: Vec<_> = found.iter().take(ENTRIES).map(|one| one.entity.row(&one.info.path)).collect();
        if !rows.is_empty() {
            let more = if found.len() > ENTRIES || !all {
                format!(" ({} of {})", rows.len(), found.len())
            } else {
                String::new()
            };
            output.push_str(&format!(
                "\n{}{more}:\n{}",
                plural(kind),
                rows.iter().map(line).collect::<Vec<_>>().join("\n")
            ));
        }
        result[plural(kind)] = json!({ "total": found.len(), "first": rows });
    }
    Ok(Done { output, result, seen, ..Done::default() })
}

pub(crate) async fn field_info(_: &Call<'_>, args: FieldInfo) -> Answer {
    let kind = match args.entity {
        KindArg::Project => EntityKind::Project,
        KindArg::Task => EntityKind::Task,
        KindArg::Note => EntityKind::Note,
        KindArg::BrainDump => EntityKind::BrainDump,
        KindArg::Event => EntityKind::Event,
        KindArg::Document => EntityKind::Document,
    };
    let fields = match args.field.as_deref() {
        None => schema::infos(kind),
        Some(name) => {
            let field = table::field(kind, name).ok_or_else(|| {
                let names: Vec<&str> = table::all(kind).map(|field| field.name).collect();
                let shown: String = name.chars().take(64).collect();
                let error =
                    Error::not_found("field", format!("{shown:?} of a {}", kind.words())).detail("field", "field");
                error.hint(format!("the fields are: {}", names.join(", ")))
            })?;
            serde_json::Map::from_iter([(field.name.to_owned(), schema::info(field))])
        }
    };
    let place = Scope::project("NAME")
        .and_then(|scope| scope.place(kind, "NAME"))
        .as_ref()
        .map(FilePath::to_string)
        .unwrap_or_default();
    let lines: Vec<String> = fields.iter().map(|(name, info)| format!("{name}: {info}")).collect();
    let output = format!("{}: a file such as {place}\n{}", kind.words(), lines.join("\n"));
    Ok(Done { output, result: json!({ "entity": kind, "place": place, "fields": fields }), ..Done::default() })
}
