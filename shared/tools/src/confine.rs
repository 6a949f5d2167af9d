//! Keeping a tool inside one folder (spec 002 §5, filesystem root).
//!
//! It is known of each tool where its arguments name paths; a tool of which it is not known cannot be confined, and is
//! refused. The arguments are looked at as data, so a call has to run with the very value that was checked.

use crate::call;
use domain::{Code, Error, FilePath};
use serde_json::Value;

/// A place in the arguments of a tool that names what it touches.
#[derive(Clone, Copy)]
enum Place {
    /// One path.
    Path(&'static str),
    /// The folder that is searched; without it the whole workspace is.
    Folder(&'static str),
    /// The plan file; without it the chat's own is meant.
    Plan(&'static str),
    /// A list of paths.
    Paths(&'static str),
    /// A list of objects with a path each.
    Files(&'static str, &'static str),
}

/// Where a tool names what it touches; none for a tool of which that is not known. Globs and names are no such places: they
/// only choose among what is below the folder that is searched.
fn places(tool: &str) -> Option<&'static [Place]> {
    use Place::{Files, Folder, Path, Paths, Plan};
    Some(match tool {
        "ls" | "glob" | "grep" | "find" => &[Folder("path")],
        "read" | "edit" | "write" | "mkdir" | "rm" | "file_info" => &[Path("path")],
        "mv" => &[Path("from"), Path("to")],
        "cat" => &[Paths("paths")],
        "read_many" => &[Files("files", "path")],
        "plan_write" | "plan_update_step" => &[Plan("path")],
        "ask_user" => &[],
        _ => return None,
    })
}

/// What a call touches: the paths that its arguments name, with the folder that is searched and the plan file by default. `plan` is
/// the plan file that a call means which names none. `FORBIDDEN` for a tool of which it is not known, `INVALID_ARGUMENT` when the arguments
/// are not what the tool takes.
pub fn touched(tool: &str, args: &Value, plan: &FilePath) -> Result<Vec<FilePath>, Error> {
    let places = places(tool).ok_or_else(|| {
        Error::new(Code::Forbidden, format!("it is not known where the tool {tool:?} names what it touches"))
    })?;
    let mut touched = Vec::new();
    for place in places {
        match *place {
            Place::Path(field) => touched.push(match given(args, field)? {
                Some(path) => parsed(field, path)?,
                None => return Err(missing(field)),
            }),
            Place::Folder(field) => {
                touched.push(given(args, field)?.map_or(Ok(FilePath::root()), |path| parsed(field, path))?);
            }
            Place::Plan(field) => {
                touched.push(given(args, field)?.map_or(Ok(plan.clone()), |path| parsed(field, path))?);
            }
            Place::Paths(field) => {
                for path in listed(args, field)? {
                    touched.push(parsed(field, path)?);
                }
            }
            Place::Files(field, inner) => {
                for file in listed(args, field)? {
                    touched.push(parsed(field, given(file, inner)?.ok_or_else(|| missing(inner))?)?);
                }
            }
        }
    }
    Ok(touched)
}

/// Refuses a call that touches anything but `root` and what is in it. What it would touch by default counts as named: a search
/// that names no folder searches everything. `FORBIDDEN` with the argument at fault, `INVALID_ARGUMENT` when the
/// arguments are not what the tool takes.
pub fn confine(tool: &str, args: &Value, root: &FilePath) -> Result<(), Error> {
    if root.is_root() {
        return Ok(());
    }
    let places = places(tool)
        .ok_or_else(|| Error::new(Code::Forbidden, format!("the tool {tool:?} cannot be confined to {root}")))?;
    places.iter().try_for_each(|place| match *place {
        Place::Path(field) => match given(args, field)? {
            Some(path) => within(tool, field, path, root),
            None => Err(missing(field)),
        },
        Place::Folder(field) | Place::Plan(field) => match given(args, field)? {
            Some(path) => within(tool, field, path, root),
            None => Err(outside(tool, field, "the default", root)),
        },
        Place::Paths(field) => listed(args, field)?.iter().try_for_each(|path| within(tool, field, path, root)),
        Place::Files(field, inner) => listed(args, field)?.iter().try_for_each(|file| match given(file, inner)? {
            Some(path) => within(tool, field, path, root),
            None => Err(Error::invalid(field, format!("the argument {inner:?} is missing in {field}"))),
        }),
    })
}

/// The arguments with which a call stays inside `root`: a search that names no folder searches that one, and a plan that
/// has no path is kept in it. Refused as [`confine`] says.
pub fn confined(tool: &str, mut args: Value, root: &FilePath) -> Result<Value, Error> {
    if root.is_root() {
        return Ok(args);
    }
    for place in places(tool).unwrap_or_default() {
        let (field, default) = match *place {
            Place::Folder(field) => (field, root.clone()),
            Place::Plan(field) => (field, root.join("plan.md")?),
            Place::Path(_) | Place::Paths(_) | Place::Files(..) => continue,
        };
        if let Value::Object(fields) = &mut args
            && fields.get(field).is_none_or(Value::is_null)
        {
            fields.insert(field.into(), default.as_str().into());
        }
    }
    confine(tool, &args, root)?;
    Ok(args)
}

/// The value of a field; none when it is left out, or null, which is the same to every tool.
fn given<'a>(args: &'a Value, field: &str) -> Result<Option<&'a Value>, Error> {
    let fields = args.as_object().ok_or_else(|| Error::invalid("args", "the arguments are no object"))?;
    Ok(fields.get(field).filter(|value| !value.is_null()))
}

fn listed<'a>(args: &'a Value, field: &str) -> Result<&'a Vec<Value>, Error> {
    let list = given(args, field)?.and_then(Value::as_array);
    list.ok_or_else(|| Error::invalid(field, format!("the argument {field:?} is no list")))
}

fn missing(field: &str) -> Error {
    Error::invalid(field, format!("the argument {field:?} is missing"))
}

fn parsed(field: &str, path: &Value) -> Result<FilePath, Error> {
    let text = path.as_str().ok_or_else(|| Error::invalid(field, format!("a path in {field:?} is no text")))?;
    call::path(field, text)
}

fn within(tool: &str, field: &str, path: &Value, root: &FilePath) -> Result<(), Error> {
    let path = parsed(field, path)?;
    if path.is_within(root) { Ok(()) } else { Err(outside(tool, field, path.as_str(), root)) }
}

fn outside(tool: &str, field: &str, what: &str, root: &FilePath) -> Error {
    Error::new(Code::Forbidden, format!("{what} is outside of {root}, the only folder that {tool} may touch here"))
        .hint(format!("name a path within {root}"))
        .detail("field", field)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::Registry;
    use serde_json::json;

    #[test]
    fn it_is_known_of_every_tool_where_its_paths_are() {
        for spec in Registry::builtin().specs().iter() {
            let places = places(&spec.name).unwrap_or_else(|| panic!("{} cannot be confined", spec.name));
            let known = |name: &str| {
                places.iter().any(|place| match *place {
                    Place::Path(field) | Place::Folder(field) | Place::Plan(field) | Place::Paths(field) => {
                        field == name
                    }
                    Place::Files(field, _) => field == name,
                })
            };
            // What else the tools take are patterns, contents, hashes, numbers and flags.
            let harmless = [
                "limit",
                "cursor",
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
                "questions",
                "title",
                "steps",
                "notes",
                "step",
                "status",
            ];
            for name in spec.parameters["properties"].as_object().unwrap().keys() {
                assert!(known(name) || harmless.contains(&name.as_str()), "is {name} of {} a path?", spec.name);
            }
        }
    }

    #[test]
    fn s5_paths_outside_of_the_root_are_refused() {
        let root: FilePath = "/projects/app".parse().unwrap();
        let code = |tool: &str, args: Value| confine(tool, &args, &root).err().map(|error| error.code);
        assert_eq!(code("read", json!({ "path": "/projects/app/a.md" })), None);
        assert_eq!(code("rm", json!({ "path": "//projects/./app/" })), None);
        assert_eq!(code("read", json!({ "path": "/projects/app2/a.md" })), Some(Code::Forbidden));
        assert_eq!(code("read", json!({ "path": "/projects/app/../b" })), Some(Code::InvalidArgument));
        assert_eq!(code("read", json!({})), Some(Code::InvalidArgument));
        assert_eq!(code("read", json!({ "path": ["/projects/app/a"] })), Some(Code::InvalidArgument));
        assert_eq!(code("read", json!(["/projects/app/a"])), Some(Code::InvalidArgument));
        assert_eq!(code("mv", json!({ "from": "/projects/app/a", "to": "/b" })), Some(Code::Forbidden));
        assert_eq!(code("cat", json!({ "paths": ["/projects/app/a", "/b"] })), Some(Code::Forbidden));
        assert_eq!(code("read_many", json!({ "files": [{ "path": "/b" }] })), Some(Code::Forbidden));
        assert_eq!(code("grep", json!({ "pattern": "x" })), Some(Code::Forbidden), "by default it searches everything");
        assert_eq!(code("exec", json!({ "path": "/projects/app/a" })), Some(Code::Forbidden), "it is not known");
        assert_eq!(confine("exec", &json!({}), &FilePath::root()).err(), None, "/ confines nothing");
    }

    #[test]
    fn what_is_left_out_means_the_root() {
        let root: FilePath = "/projects/app".parse().unwrap();
        let args = |tool: &str, args: Value| confined(tool, args, &root).unwrap();
        assert_eq!(args("ls", json!({})), json!({ "path": "/projects/app" }));
        assert_eq!(args("ls", json!({ "path": null })), json!({ "path": "/projects/app" }));
        assert_eq!(args("plan_update_step", json!({ "step": 1 }))["path"], "/projects/app/plan.md");
        assert_eq!(confined("ls", json!([]), &root).err().map(|error| error.code), Some(Code::InvalidArgument));
    }
}
