//! Functions of a client: the agent calls them, and the client runs them.

use crate::fields;
use domain::{CLIENT_PREFIX, ClientEffects, ClientFunction, Error, ToolSpec, json_length};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const FIELD: &str = "tools";
/// The most functions, the longest name without our prefix, and the longest of all of them as JSON, in bytes.
const MOST: usize = 64;
const MAX_NAME: usize = 55;
const MAX_ALL: usize = 64 * 1024;

/// Reads the functions of a request. The forms of chat completions, of responses and of AG-UI are known.
///
/// # Errors
/// `INVALID_ARGUMENT` about `tools`.
pub(crate) fn read(body: &Map<String, Value>) -> Result<Vec<ClientFunction>, Error> {
    match fields::given(body, FIELD) {
        Some(tools) => all(FIELD, tools, |_| Ok(ClientEffects::Own)),
        None => Ok(Vec::new()),
    }
}

/// Reads the functions of a new thread, each of which may declare its `effects`: `own`, `read`, `write`, `execute` or `mcp`.
///
/// # Errors
/// `INVALID_ARGUMENT` about `functions`.
pub fn declared(functions: &Value) -> Result<Vec<ClientFunction>, Error> {
    all("functions", functions, |function| match function.get("effects") {
        None => Ok(ClientEffects::Own),
        Some(effects) => serde_json::from_value(effects.clone())
            .map_err(|_| Error::invalid("functions", "the effects of a function are own, read, write, execute or mcp")),
    })
}

fn all(
    field: &str,
    tools: &Value,
    effects: impl Fn(&Value) -> Result<ClientEffects, Error>,
) -> Result<Vec<ClientFunction>, Error> {
    let wrong = |why: String| Error::invalid(field, why);
    let tools = tools.as_array().ok_or_else(|| wrong(format!("{field} is a list")))?;
    if tools.len() > MOST || json_length(tools) > MAX_ALL {
        return Err(wrong(format!("there are at most {MOST} functions, of {} KiB in all", MAX_ALL >> 10)));
    }
    let mut functions = Vec::<ClientFunction>::new();
    for tool in tools {
        if tool.get("type").is_some_and(|kind| kind != "function") || !tool.is_object() {
            let kind: String = tool["type"].as_str().unwrap_or("of no type").chars().take(32).collect();
            return Err(wrong(format!("a tool {kind:?} cannot be honoured here")).hint(
                "send functions alone: the agent has the tools of the workspace, of its servers, and of the web",
            ));
        }
        let function = tool.get("function").unwrap_or(tool);
        let name = function["name"].as_str().unwrap_or_default();
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fits) {
            return Err(wrong(format!("the name of a function has 1 to {MAX_NAME} letters, digits, _ and -")));
        }
        let parameters = match function.get("parameters") {
            None | Some(Value::Null) => json!({ "type": "object", "properties": {} }),
            Some(schema) if schema.is_object() => schema.clone(),
            Some(_) => return Err(wrong(format!("the parameters of {name} are no JSON Schema"))),
        };
        let description = function["description"].as_str().unwrap_or_default().to_owned();
        let name = format!("{CLIENT_PREFIX}{name}");
        if functions.iter().any(|known| known.spec.name == name) {
            return Err(wrong("two functions have the same name".into()));
        }
        let spec = Arc::new(ToolSpec { name, description, parameters });
        functions.push(ClientFunction { spec, effects: effects(function)? });
    }
    Ok(functions)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn names(tools: Value) -> Result<Vec<String>, Error> {
        let body = json!({ "tools": tools });
        Ok(read(body.as_object().unwrap())?.into_iter().map(|function| function.spec.name.clone()).collect())
    }

    #[test]
    fn functions_of_a_thread_say_what_they_do() {
        let all =
            json!([{ "name": "look", "effects": "read" }, { "name": "run", "effects": "execute" }, { "name": "own" }]);
        let effects: Vec<_> = declared(&all).unwrap().into_iter().map(|function| function.effects).collect();
        assert_eq!(effects, [ClientEffects::Read, ClientEffects::Execute, ClientEffects::Own]);
        let wrong = declared(&json!([{ "name": "look", "effects": "none" }])).unwrap_err();
        assert_eq!(wrong.details["field"], "functions");
    }

    #[test]
    fn all_forms_are_read_and_anything_else_is_refused() {
        let both = json!([
            { "type": "function", "function": { "name": "a", "parameters": { "type": "object" } } },
            { "type": "function", "name": "b", "strict": true },
            { "name": "c", "description": "Of AG-UI.", "parameters": {} },
        ]);
        assert_eq!(names(both).unwrap(), ["client__a", "client__b", "client__c"]);
        for tools in [
            json!([{ "type": "web_search" }]),
            json!([{ "name": "" }]),
            json!(["a"]),
            json!([{ "type": "function", "name": "a b" }]),
            json!([{ "type": "function", "name": "a" }, { "type": "function", "name": "a" }]),
            json!([{ "type": "function", "name": "a", "parameters": "none" }]),
            json!({}),
        ] {
            assert_eq!(names(tools).unwrap_err().details["field"], "tools");
        }
    }
}
