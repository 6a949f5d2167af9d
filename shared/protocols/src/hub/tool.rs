//! Calls of our own tools, as the tool calls of the Agent Client Protocol.

use serde_json::{Value, json};

/// The longest title, in characters.
const MAX_TITLE: usize = 120;

/// The kind of a tool, as clients choose icons by.
pub(crate) fn kind(tool: &str) -> &'static str {
    match tool {
        "read" | "list" | "ls" | "history" | "describe" => "read",
        "write" | "edit" | "multi_edit" | "append" | "patch" | "touch" => "edit",
        "rm" | "remove" | "delete" => "delete",
        "mv" | "move" | "rename" => "move",
        "grep" | "glob" | "find" | "search" | "recall" => "search",
        "exec" | "run" | "bash" | "run_command" => "execute",
        "fetch" => "fetch",
        tool if tool.starts_with("plan") => "think",
        _ => "other",
    }
}

/// The arguments as JSON; a text that is none as it is.
pub(crate) fn arguments(args: &str) -> Value {
    domain::exact_numbers::value_or_text(args)
}

/// The words for people that say what a call does: its command, else the tool and its path.
pub(crate) fn title(tool: &str, path: Option<&str>, args: &Value) -> String {
    let title = match (args.get("command"), path) {
        (Some(Value::String(command)), _) => command.clone(),
        (Some(Value::Array(words)), _) => {
            words.iter().map(|word| word.as_str().unwrap_or_default()).collect::<Vec<_>>().join(" ")
        }
        (_, Some(path)) => format!("{tool} {path}"),
        (_, None) => match args.get("path").and_then(Value::as_str) {
            Some(path) => format!("{tool} {path}"),
            None => tool.to_owned(),
        },
    };
    let mut cut: String = title.chars().take(MAX_TITLE).collect();
    if cut.len() < title.len() {
        cut.push('…');
    }
    cut
}

/// The longest words about a request for permission, in characters.
const MAX_ASKED: usize = 4_000;

/// The words for people about a request for permission: the whole command, so that its end is not approved unseen. A coding agent's call
/// has the input of its tool, and words of its own.
pub(crate) fn asked(tool: &str, call: &Value, is_of_agent: bool) -> String {
    let input = if is_of_agent { &call["rawInput"] } else { call };
    let words = |list: &Vec<Value>| list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
    let command = match &input["command"] {
        Value::String(command) => Some(command.clone()),
        Value::Array(list) => Some(words(list)),
        _ if is_of_agent => {
            let told = [&input["url"], &call["title"]];
            told.into_iter().filter_map(Value::as_str).find(|text| !text.is_empty()).map(str::to_owned)
        }
        _ => None,
    };
    let Some(command) = command.filter(|command| !command.is_empty()) else { return title(tool, None, call) };
    let mut cut: String = command.chars().take(MAX_ASKED).collect();
    if cut.len() < command.len() {
        cut.push('…');
    }
    cut
}

/// A text as the content of a tool call.
pub(crate) fn content(text: &str) -> Value {
    json!([{ "type": "content", "content": { "type": "text", "text": text } }])
}
