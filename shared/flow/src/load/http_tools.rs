//! Files of `tools/`: the HTTP tools that a flow brings, declared as a workspace declares its own (step 1).

use super::{
    report::{At, Faults},
    schema_check::SchemaCheck,
    tree::{SourcePosition, SourceTree},
};
use crate::{flow::HttpTool, manifest::DECLARED_TOOL, tool_declarations::Declaration};
use domain::served::{MAX_DECLARATION, MOST_DECLARED};
use serde_json::Value;
use std::collections::BTreeMap;

/// The tools of these files, by the names that agents call them by.
pub(super) fn read(files: Vec<(&str, SourceTree)>, faults: &mut Faults) -> BTreeMap<String, HttpTool> {
    if let Some((file, _)) = files.get(MOST_DECLARED) {
        let at = At { file, place: SourcePosition::default() };
        let message = format!("a flow declares at most {MOST_DECLARED} tools");
        faults.refuse(at, "too_many_tools", message, "remove those that no node lists");
    }
    let mut tools: BTreeMap<String, HttpTool> = BTreeMap::new();
    for (file, tree) in files {
        let Some(tool) = tool(file, tree, faults) else { continue };
        if let Some(earlier) = tools.get(&tool.name) {
            let at = At { file, place: SourcePosition { line: tool.line, column: 1 } };
            let message = format!("`{}` declares `{}` already", earlier.file, tool.name);
            faults.add(at, "duplicate_id", message, "give one of them another `name`");
            continue;
        }
        tools.insert(tool.name.clone(), tool);
    }
    tools
}

/// The tool of a file; none where it has a fault without which nothing more can be said.
fn tool(file: &str, tree: SourceTree, faults: &mut Faults) -> Option<HttpTool> {
    let before = faults.count();
    let tree = SchemaCheck { file, root: &DECLARED_TOOL, secret: false, faults: &mut *faults }.check(tree)?;
    // Keys with a fault are taken out: the rest would be judged as if they were missing.
    if faults.count() > before {
        return None;
    }
    let at = |pointer: &str| At { file, place: tree.place_of(pointer) };
    let mut value = tree.to_value();
    let declared: Declaration = match serde_json::from_value(value.clone()) {
        Ok(declared) => declared,
        Err(error) => {
            faults.add(at(""), "wrong_type", format!("it cannot be read: {error}"), "look at its keys and values");
            return None;
        }
    };
    if declared.code {
        let hint = "declare it in /system/tools of the workspace: agents of flows can have it from there";
        faults.add(at("/code"), "misplaced_key", "a flow declares HTTP tools, and no tool in code", hint);
        return None;
    }
    let bare = file.rsplit('/').next().unwrap_or(file);
    for wrong in declared.checked(bare).err().unwrap_or_default() {
        faults.refuse(at(&wrong.pointer), wrong.code, wrong.message, wrong.hint);
    }
    // From here on it goes by its name, whatever its file is called.
    if let Value::Object(fields) = &mut value {
        fields.insert("name".into(), declared.plain_name(bare).into());
    }
    let declaration = value.to_string();
    if declaration.len() >= MAX_DECLARATION {
        let message = format!("it is longer than {} KiB", MAX_DECLARATION >> 10);
        faults.refuse(at(""), "wrong_value", message, "shorten its description and its parameters");
    }
    Some(HttpTool { name: declared.called(bare), file: file.into(), line: at("/name").place.line.max(1), declaration })
}
