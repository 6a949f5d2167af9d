//! The effects of a call, as its tool declares them from the arguments: one declaration for the gate of chats, for modes, for the folder
//! that a tool is kept within, for the display of a call, and for the log.
//!
//! A tool cannot be registered without its [`Declare`], which sees the arguments as the type that the tool itself runs with. So
//! arguments that are not of this type are known to do nothing, and are refused.

use crate::{call, kind::ToolKind};
use domain::{Error, FilePath};

/// The kinds of access to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It, or a path below it, is read.
    Read,
    /// It is written, or made.
    Write,
    /// It is taken away from there, with all below it.
    Remove,
}

/// A path that a call touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchedPath {
    /// The kind of access.
    pub access: Access,
    /// The path.
    pub path: FilePath,
    /// The argument that names it.
    pub field: &'static str,
    /// The meaning of the argument if it was left out.
    pub(crate) unnamed: Option<Unnamed>,
}

/// The meanings of an argument that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unnamed {
    /// The whole workspace.
    Everything,
    /// The chat's plan.
    Plan,
    /// The home of the person.
    Home,
}

/// The effects of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects {
    /// The kind of the tool.
    pub kind: ToolKind,
    /// The paths that it touches, in the order of its arguments. For a command those at which its files are kept: else its sandbox confines it.
    pub touches: Vec<TouchedPath>,
}

impl Effects {
    /// Those of a tool that touches no file.
    pub fn none(kind: ToolKind) -> Self {
        Self { kind, touches: Vec::new() }
    }

    /// The paths that are not as before afterwards.
    pub fn changed(&self) -> impl Iterator<Item = &FilePath> {
        self.touches.iter().filter(|touch| touch.access != Access::Read).map(|touch| &touch.path)
    }

    /// The path that the call is about, for display: of a move the source, of several files the first, of an argument that was left out, and
    /// of a command none.
    pub fn about(&self) -> Option<&FilePath> {
        let first = self.touches.first().filter(|touch| touch.unnamed.is_none() && self.kind != ToolKind::Exec);
        first.map(|touch| &touch.path)
    }
}

/// Declares the effects of a tool from its arguments.
pub(crate) trait Declare {
    /// Tells all that a call with these arguments touches. `INVALID_ARGUMENT` for a path that is none.
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error>;
}

/// Collects the declared effects of a call.
///
/// # Errors
/// Of every method: `INVALID_ARGUMENT` about `field` for a path that is none.
pub(crate) struct Declaration<'a> {
    plan: &'a FilePath,
    touches: Vec<TouchedPath>,
}

impl<'a> Declaration<'a> {
    /// Of nothing yet. `plan` is the plan file of a call that names none.
    pub fn new(plan: &'a FilePath) -> Self {
        Self { plan, touches: Vec::new() }
    }

    pub fn of(self, kind: ToolKind) -> Effects {
        Effects { kind, touches: self.touches }
    }

    /// A path that is read.
    ///
    /// # Errors
    /// Those of [`Declaration`].
    pub fn reads(&mut self, field: &'static str, path: &str) -> Result<(), Error> {
        self.add(Access::Read, field, path)
    }

    /// A path that is written.
    ///
    /// # Errors
    /// Those of [`Declaration`].
    pub fn writes(&mut self, field: &'static str, path: &str) -> Result<(), Error> {
        self.add(Access::Write, field, path)
    }

    /// A path that is removed.
    ///
    /// # Errors
    /// Those of [`Declaration`].
    pub fn removes(&mut self, field: &'static str, path: &str) -> Result<(), Error> {
        self.add(Access::Remove, field, path)
    }

    /// A folder that is looked through; without one everything is.
    ///
    /// # Errors
    /// Those of [`Declaration`].
    pub fn searches(&mut self, field: &'static str, path: Option<&str>) -> Result<(), Error> {
        self.add_or(Access::Read, field, path, (Unnamed::Everything, FilePath::root()))
    }

    /// The plan, which is written; without one the chat's own is meant.
    ///
    /// # Errors
    /// Those of [`Declaration`].
    pub fn plans(&mut self, field: &'static str, path: Option<&str>) -> Result<(), Error> {
        self.add_or(Access::Write, field, path, (Unnamed::Plan, self.plan.clone()))
    }

    /// The home of the person, or a place in it: the arguments do not tell whose it is, so the folder of all homes is declared.
    ///
    /// # Errors
    /// None in practice: the path is valid.
    pub fn home(&mut self, field: &'static str, access: Access) -> Result<(), Error> {
        let path = FilePath::parse("/users")?;
        self.touches.push(TouchedPath { access, path, field, unnamed: Some(Unnamed::Home) });
        Ok(())
    }

    fn add(&mut self, access: Access, field: &'static str, path: &str) -> Result<(), Error> {
        self.touches.push(TouchedPath { access, path: call::path(field, path)?, field, unnamed: None });
        Ok(())
    }

    fn add_or(
        &mut self,
        access: Access,
        field: &'static str,
        path: Option<&str>,
        (unnamed, default): (Unnamed, FilePath),
    ) -> Result<(), Error> {
        match path {
            Some(path) => self.add(access, field, path),
            None => {
                self.touches.push(TouchedPath { access, path: default, field, unnamed: Some(unnamed) });
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::Registry;
    use domain::Code;
    use organizer::EntityKind;
    use serde_json::{Value, json};

    fn effects(tool: &str, args: Value) -> Result<Effects, Error> {
        let plan = "/chats/c/plan.md".parse().unwrap();
        Registry::builtin().effects(tool, &args.to_string(), &plan)
    }

    /// Arguments that the tool takes, each text a path of its own.
    fn sample(schema: &Value, at: &str) -> Value {
        if let Some(values) = schema["enum"].as_array() {
            return values[0].clone();
        }
        match schema["type"].as_str() {
            Some("object") => {
                let fields = schema["properties"].as_object().into_iter().flatten();
                fields.map(|(name, schema)| (name.clone(), sample(schema, &format!("{at}/{name}")))).collect()
            }
            Some("array") => json!([sample(&schema["items"], at)]),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("boolean") => json!(true),
            _ => json!(at),
        }
    }

    #[test]
    fn every_tool_declares_each_of_its_arguments_that_is_a_path() {
        // The others are patterns, contents, hashes, numbers and flags.
        let harmless = [
            "limit",
            "cursor",
            "file_id",
            "pattern",
            "offset",
            "from_byte",
            "glob",
            "ignore_case",
            "literal",
            "context",
            "mode",
            "edits",
            "last_read_hash",
            "content",
            "name",
            "type",
            "min_size",
            "max_size",
            "modified_after",
            "modified_before",
            "hidden",
            "raw",
            "questions",
            "title",
            "steps",
            "depends_on",
            "notes",
            "step",
            "status",
            "tag",
            "tags",
            "kind",
            "remove",
            "depth",
            "v",
        ];
        // Those of the organizer: fields of the table, and filters.
        let fields = EntityKind::ALL.into_iter().flat_map(organizer::table::updatable).map(|field| field.name);
        let filters = [
            "query",
            "due_before",
            "entity",
            "field",
            "from",
            "to",
            "start",
            "end",
            "work_start",
            "work_end",
            "work_days",
        ];
        let of_organizer: Vec<&str> = fields.chain(filters).collect();
        let registry = Registry::builtin();
        for spec in registry.specs().iter().chain(registry.optional().iter()) {
            let is_optional = registry.optional().iter().any(|optional| optional.name == spec.name);
            let mut args = sample(&spec.parameters, "");
            if spec.name == "ask_user" {
                args = json!({ "questions": [{ "name": "a", "question": "b" }] });
            }
            if is_optional {
                for (name, value) in [("project", "/projects/a"), ("title", "A title"), ("name", "A name")] {
                    if let Some(argument) = args.get_mut(name) {
                        *argument = value.into();
                    }
                }
                let place = match spec.name.as_str() {
                    "update_project" => "/projects/a",
                    "import_calendar" | "export_calendar" => "/data/a.ics",
                    _ => "/projects/a/tasks/a.md",
                };
                if let Some(path) = args.get_mut("path") {
                    *path = place.into();
                }
                if let Some(calendars) = args.get_mut("calendars") {
                    *calendars = json!(["/projects/a"]);
                }
            }
            let effects = effects(&spec.name, args).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
            for name in spec.parameters["properties"].as_object().unwrap().keys() {
                let is_declared = effects.touches.iter().any(|touch| touch.field == name);
                let is_field = is_optional && !is_declared && of_organizer.contains(&name.as_str());
                let is_harmless = harmless.contains(&name.as_str()) && !is_declared || is_field;
                assert!(is_declared != is_harmless, "is {name} of {} a path?", spec.name);
            }
            let changes = effects.changed().next().is_some();
            assert_eq!(changes, matches!(effects.kind, ToolKind::Write | ToolKind::Arrange), "{}", spec.name);
        }
    }

    #[test]
    fn arguments_that_a_tool_does_not_take_are_refused() {
        let code = |tool: &str, args: Value| effects(tool, args).err().map(|error| error.code);
        for args in [
            json!({}),
            json!([]),
            json!({ "path": ["/a"], "content": "" }),
            json!({ "path": "../a", "content": "" }),
            json!({ "path": "/a", "content": "", "also": "/b" }),
        ] {
            assert_eq!(code("write", args.clone()), Some(Code::InvalidArgument), "{args}");
        }
        assert_eq!(code("write", json!({ "path": "/a", "content": "", "last_read_hash": null })), None);
        assert_eq!(code("nothing", json!({})), Some(Code::NotFound));
    }

    #[test]
    fn a_call_is_shown_with_the_path_that_it_is_about() {
        let about = |tool: &str, args: Value| effects(tool, args).ok()?.about().map(ToString::to_string);
        assert_eq!(about("read", json!({ "path": "//a/./b" })).as_deref(), Some("/a/b"));
        assert_eq!(about("mv", json!({ "from": "/a", "to": "/b" })).as_deref(), Some("/a"));
        assert_eq!(about("cat", json!({ "paths": ["/a", "/b"] })).as_deref(), Some("/a"));
        assert_eq!(about("read_many", json!({ "files": [{ "path": "/a" }] })).as_deref(), Some("/a"));
        assert_eq!(about("ls", json!({})), None);
        assert_eq!(about("read", json!({ "from": "/a" })), None);
    }
}
