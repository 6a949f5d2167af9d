//! The rules of a chat, for the calls of a coding agent: the same kinds as for tools, with `cwd` as the root of their paths. A call whose words
//! or file are not certain has no rule.

use crate::allow::{PlainCommand, rules_of};
use domain::{ChatConfig, FilePath, PermissionRule, ThreadAgent};
use serde_json::{Value, json};
use std::path::Path;

/// The rule that is for this call, in every mode and however long.
pub(super) fn own(config: &ChatConfig, category: &str, call: &Value) -> Option<PermissionRule> {
    let thread = config.thread.as_deref()?;
    match category {
        "command" => command(&thread.cwd, call).and_then(PlainCommand::rule),
        "file" => file(&thread.cwd, call).map(|path| PermissionRule::File { path }),
        _ => None,
    }
}

/// The rules that are for this call, and for each command in it: rules that deny are looked for by them.
pub(crate) fn all(config: &ChatConfig, category: &str, call: &Value) -> Vec<PermissionRule> {
    match category {
        "command" => rules_of(commands(config, call)),
        _ => own(config, category, call).into_iter().collect(),
    }
}

/// The first of these rules that covers a call, or a command in it.
pub(super) fn denying<'a>(
    (config, category): (&ChatConfig, &str),
    call: &Value,
    mut denied: impl Iterator<Item = &'a PermissionRule>,
) -> Option<&'a PermissionRule> {
    if category == "command" {
        let commands = commands(config, call);
        return denied.find(|rule| commands.iter().any(|command| command.is_covered_by(rule)));
    }
    let own = own(config, category, call)?;
    denied.find(|rule| **rule == own)
}

/// The commands that a call runs for certain in the folder of the thread.
fn commands(config: &ChatConfig, call: &Value) -> Vec<PlainCommand> {
    let here = config.thread.as_deref().filter(|thread| !is_elsewhere(&thread.cwd, call));
    let found = |thread: &ThreadAgent| Some(PlainCommand::all(&arguments(call)?, Some(thread.cwd.as_str())));
    here.and_then(found).unwrap_or_default()
}

/// The granted rule that covers a call, which is looked for by the rule that the call itself would get: so a call without one is covered by none.
pub(super) fn covered<'a>(
    call: &Value,
    own: Option<&PermissionRule>,
    mut granted: impl Iterator<Item = &'a PermissionRule>,
) -> Option<&'a PermissionRule> {
    match own? {
        PermissionRule::File { .. } | PermissionRule::Tool { .. } => granted.find(|rule| Some(*rule) == own),
        PermissionRule::Command { .. } | PermissionRule::CommandPrefix { .. } => {
            let command = words(call)?;
            granted.find(|rule| command.is_allowed_by(rule))
        }
        // A call is never offered one.
        PermissionRule::Deny { .. } => None,
    }
}

/// The command of a call that runs in the folder of the thread.
fn command(cwd: &str, call: &Value) -> Option<PlainCommand> {
    let input = &call["rawInput"];
    if is_elsewhere(cwd, call) || ["stdin", "env", "environment"].iter().any(|name| !input[*name].is_null()) {
        return None;
    }
    words(call)
}

/// Whether a call names another folder than that of the thread.
fn is_elsewhere(cwd: &str, call: &Value) -> bool {
    let names = ["cwd", "workdir", "directory", "dir_path", "working_directory"];
    names.iter().any(|name| match &call["rawInput"][*name] {
        Value::Null => false,
        Value::String(folder) => !folder.is_empty() && folder != cwd,
        _ => true,
    })
}

fn words(call: &Value) -> Option<PlainCommand> {
    PlainCommand::of(&arguments(call)?)
}

/// The command of a call as the arguments of our own tool have it.
fn arguments(call: &Value) -> Option<String> {
    let args = match &call["rawInput"]["command"] {
        line @ Value::String(_) => json!({ "command": line }),
        words @ Value::Array(_) => json!({ "words": words }),
        _ => return None,
    };
    Some(args.to_string())
}

/// The one file in the folder of the thread that a call writes anew.
fn file(cwd: &str, call: &Value) -> Option<FilePath> {
    if call["kind"] != "edit" {
        return None;
    }
    let of = |list: &'static str| call[list].as_array().into_iter().flatten().filter_map(|one| one["path"].as_str());
    let mut paths: Vec<&str> = of("content").chain(of("locations")).collect();
    paths.dedup();
    let [path] = paths[..] else { return None };
    let inside = Path::new(path).strip_prefix(cwd).ok()?.to_str()?;
    // A path with `..` in it is no path of a file here.
    FilePath::parse(&format!("/{inside}")).ok()
}
