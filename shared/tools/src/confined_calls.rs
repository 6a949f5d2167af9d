//! Calls that stay within a folder.

use crate::{
    Registry,
    effects::{TouchedPath, Unnamed},
    kind::ToolKind,
};
use domain::{Code, Error, FilePath};
use serde_json::Value;

/// The arguments with which a call of a built-in tool stays within `root` (spec 002 §5): a search that names no folder searches that
/// one, and a plan without a path is kept in it. A call has to run with the very arguments that this returns.
///
/// # Errors
/// `FORBIDDEN`, with the argument at fault, for a call that touches anything else, and for a command or an unknown tool; `INVALID_ARGUMENT`
/// when the tool takes no such arguments.
pub fn confined(tool: &str, mut args: Value, root: &FilePath) -> Result<Value, Error> {
    if root.is_root() {
        return Ok(args);
    }
    let plan = root.join("plan.md")?;
    let registry = Registry::builtin();
    if registry.kind(tool).is_none_or(|kind| kind == ToolKind::Exec) {
        return Err(Error::new(Code::Forbidden, format!("the tool {tool:?} cannot be confined to {root}")));
    }
    for TouchedPath { path, field, unnamed, .. } in registry.effects(tool, &args.to_string(), &plan)?.touches {
        match (unnamed, &mut args) {
            (None, _) if path.is_within(root) => {}
            (Some(unnamed), Value::Object(fields)) => {
                let meant = if unnamed == Unnamed::Plan { &plan } else { root };
                fields.insert(field.into(), meant.as_str().into());
            }
            _ => {
                return Err(outside(tool, field, &path, root));
            }
        }
    }
    Ok(args)
}

fn outside(tool: &str, field: &str, path: &FilePath, root: &FilePath) -> Error {
    Error::new(Code::Forbidden, format!("{path} is outside of {root}, the only folder that {tool} may touch here"))
        .hint(format!("name a path within {root}"))
        .detail("field", field)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn s5_paths_outside_of_the_root_are_refused() {
        let root: FilePath = "/projects/app".parse().unwrap();
        let code = |tool: &str, args: Value| confined(tool, args, &root).err().map(|error| error.code);
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
        assert_eq!(code("grep", json!({ "pattern": "x", "path": "/" })), Some(Code::Forbidden));
        assert_eq!(
            code("exec", json!({ "folder": "/projects/app/a" })),
            Some(Code::Forbidden),
            "it is fenced elsewhere"
        );
        assert_eq!(confined("exec", json!({}), &FilePath::root()).err(), None, "/ confines nothing");
    }

    #[test]
    fn a_left_out_argument_means_the_root() {
        let root: FilePath = "/projects/app".parse().unwrap();
        let args = |tool: &str, args: Value| confined(tool, args, &root).unwrap();
        assert_eq!(args("ls", json!({})), json!({ "path": "/projects/app" }));
        assert_eq!(args("ls", json!({ "path": null })), json!({ "path": "/projects/app" }));
        let id = "019bf537-f228-7cd3-aa1c-3da8af302e12";
        assert_eq!(args("file_info", json!({ "file_id": id })), json!({ "file_id": id, "path": "/projects/app" }));
        assert_eq!(confined("file_info", json!({}), &root).err().map(|error| error.code), Some(Code::InvalidArgument));
        assert_eq!(args("plan_update_step", json!({ "step": 1, "status": "done" }))["path"], "/projects/app/plan.md");
        assert_eq!(confined("ls", json!([]), &root).err().map(|error| error.code), Some(Code::InvalidArgument));
    }
}
